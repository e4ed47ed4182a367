/* SPDX-License-Identifier: MIT */
/*
 * Credentials where docker users have them: config.json and the programs that it
 * names. Both are outsiders' bytes; what they hold is wiped when it has served.
 */
#include "base/limits.h"
#include "registry/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#define HELPER "docker-credential-"

enum { HELPER_MS = 30 * 1000 };

static void wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void sba_credentials_fini(struct sba_credentials *c)
{
	wipe(c->user);
	wipe(c->password);
	wipe(c->identity_token);
	wipe(c->registry_token);
	*c = (struct sba_credentials){ 0 };
}

static void wipe_buf(struct sba_buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	sba_buf_fini(b);
}

/* jansson leaves what it frees as it was. */
static void wipe_json(json_t *j)
{
	const char *key;
	json_t *value;
	if (json_is_string(j))
		explicit_bzero((char *)(uintptr_t)json_string_value(j), json_string_length(j));
	json_object_foreach(j, key, value) wipe_json(value);
}

static void forget_json(json_t **j)
{
	wipe_json(*j);
	json_decref(*j);
}
#define SECRET_JSON __attribute__((cleanup(forget_json)))

/* jansson's own words would quote what may be a secret. */
static int parse_secret(const char *text, size_t len, json_t **ret, struct sba_error *err)
{
	json_error_t e;
	json_t *j = sba_json_load(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!j && errno == ENOMEM)
		return sba_fail_nomem(err);
	if (!j)
		return sba_fail(err, SBA_ECONFIG, "not JSON, in line %d", e.line);
	*ret = j;
	return json_is_object(j) ? 0 : sba_fail(err, SBA_ECONFIG, "not an object");
}

/* An empty string is none, as for docker. */
static int copy(const json_t *from, const char *key, char **to, struct sba_error *err)
{
	const json_t *value = json_object_get(from, key);
	if (!value || json_is_null(value) || json_string_length(value) == 0) {
		if (value && !json_is_null(value) && !json_is_string(value))
			return sba_fail(err, SBA_ECONFIG, "%s: not a string", key);
		return 0;
	}
	*to = strdup(json_string_value(value));
	return *to ? 0 : sba_fail_nomem(err);
}

/* ---- auths ---- */

/* base64 of "user:password"; docker drops NULs behind it. */
static int take_auth(const char *auth, struct sba_credentials *c, struct sba_error *err)
{
	struct sba_buf b = SBA_BUF_INIT(SBA_KEY_MAX);
	int rc = sba_base64_decode(auth, strlen(auth), false, &b);
	const char *colon = rc == 0 && b.data ? strchr(b.data, ':') : NULL;
	if (rc == SBA_ENOMEM) {
		rc = sba_fail_nomem(err);
	} else if (!colon || colon == b.data) {
		rc = sba_fail(err, SBA_ECONFIG, "auth: not the base64 of USER:PASSWORD");
	} else {
		free(c->user);
		wipe(c->password);
		c->user = strndup(b.data, (size_t)(colon - b.data));
		c->password = strdup(colon + 1);
		rc = c->user && c->password ? 0 : sba_fail_nomem(err);
	}
	wipe_buf(&b);
	return rc;
}

static int take_entry(const json_t *entry, struct sba_credentials *c, struct sba_error *err)
{
	if (!json_is_object(entry))
		return sba_fail(err, SBA_ECONFIG, "not an object");
	const char *auth = sba_json_str(entry, "auth");
	int rc = copy(entry, "username", &c->user, err);
	if (rc == 0)
		rc = copy(entry, "password", &c->password, err);
	if (rc == 0)
		rc = copy(entry, "identitytoken", &c->identity_token, err);
	if (rc == 0)
		rc = copy(entry, "registrytoken", &c->registry_token, err);
	if (rc == 0 && auth && *auth)
		rc = take_auth(auth, c, err);
	return rc;
}

/* Old entries are URLs: "https://host/v1/". */
static bool is_of_host(const char *key, const char *host)
{
	static const char *const schemes[] = { "https://", "http://" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(schemes); i++) {
		if (sba_starts_with(key, schemes[i]))
			key += strlen(schemes[i]);
	}
	size_t len = strcspn(key, "/");
	return strlen(host) == len && strncasecmp(key, host, len) == 0;
}

static int find_entry(const json_t *auths, const char *host, struct sba_credentials *c,
		      struct sba_error *err)
{
	const char *key;
	const json_t *entry = json_object_get(auths, host);
	json_t *value;
	const char *found = host;
	json_object_foreach((json_t *)(uintptr_t)auths, key, value)
	{
		if (!entry && is_of_host(key, host)) {
			entry = value;
			found = key;
		}
	}
	int rc = entry ? take_entry(entry, c, err) : 0;
	return rc < 0 ? sba_wrap(err, rc, "auths.%.200s", found) : 0;
}

/* ---- which helper ---- */

static int take_helper(const json_t *name, const char *key, char **ret, struct sba_error *err)
{
	const char *s = json_string_value(name);
	if (!name || (s && !*s))
		return 0;
	/* It becomes part of a program's name: no path, no option. */
	if (!s || !sba_is_word(s, "_.-", 64))
		return sba_fail(err, SBA_ECONFIG, "%s: not the name of a credential helper", key);
	*ret = strdup(s);
	return *ret ? 0 : sba_fail_nomem(err);
}

static int choose(const json_t *config, const char *host, struct sba_credentials *c, char **helper,
		  struct sba_error *err)
{
	const json_t *helpers = json_object_get(config, "credHelpers");
	const json_t *auths = json_object_get(config, "auths");
	if (helpers && !json_is_object(helpers))
		return sba_fail(err, SBA_ECONFIG, "credHelpers: not an object");
	if (auths && !json_is_object(auths))
		return sba_fail(err, SBA_ECONFIG, "auths: not an object");
	int rc = take_helper(json_object_get(helpers, host), "credHelpers", helper, err);
	if (rc == 0 && !*helper)
		rc = take_helper(json_object_get(config, "credsStore"), "credsStore", helper, err);
	return rc == 0 && !*helper ? find_entry(auths, host, c, err) : rc;
}

int sba_credentials_parse(const char *text, size_t len, const char *host,
			  struct sba_credentials *ret, char **ret_helper, struct sba_error *err)
{
	SECRET_JSON json_t *config = NULL;
	struct sba_credentials c = { 0 };
	char *helper = NULL;
	int rc = parse_secret(text, len, &config, err);
	if (rc == 0)
		rc = choose(config, host, &c, &helper, err);
	if (rc < 0) {
		sba_credentials_fini(&c);
		free(helper);
		return rc;
	}
	*ret = c;
	*ret_helper = helper;
	return 0;
}

/* ---- asking a helper ---- */

int sba_credentials_parse_answer(const char *text, size_t len, struct sba_credentials *ret,
				 struct sba_error *err)
{
	SECRET_JSON json_t *answer = NULL;
	struct sba_credentials c = { 0 };
	int rc = parse_secret(text, len, &answer, err);
	if (rc < 0)
		return sba_wrap(err, rc, "what it says");
	rc = copy(answer, "Username", &c.user, err);
	if (rc == 0)
		rc = copy(answer, "Secret", &c.password, err);
	if (rc == 0 && !c.password)
		rc = sba_fail(err, SBA_ECONFIG, "what it says has no Secret");
	if (rc < 0) {
		sba_credentials_fini(&c);
		return rc;
	}
	if (c.user && strcmp(c.user, "<token>") == 0) {
		c.identity_token = sba_move(&c.password);
		free(sba_move(&c.user));
	}
	*ret = c;
	return 0;
}

/* Its words for "I know nothing of that registry", on stdout, with an exit status. */
static bool knows_none(const struct sba_buf *b)
{
	return b->data && strstr(b->data, "credentials not found") != NULL;
}

static int ask_helper(const char *helper, const char *host, struct sba_until until,
		      struct sba_credentials *ret, struct sba_error *err)
{
	char program[sizeof(HELPER) + 64];
	snprintf(program, sizeof(program), HELPER "%s", helper);
	const char *const argv[] = { program, "get", NULL };
	struct sba_buf b = SBA_BUF_INIT(SBA_KEY_MAX);
	int status = 0;
	/* Growing would leave copies behind. */
	if (sba_buf_reserve(&b, SBA_KEY_MAX))
		b.data[0] = '\0';
	int rc = sba_child_run(argv, host, sba_until_sooner(until, HELPER_MS), &b, &status, err);
	if (rc == SBA_ENOTFOUND) {
		rc = sba_fail(err, SBA_ECONFIG, "there is no such program");
		sba_hint(err, rc, "config.json names it in credHelpers or credsStore");
	} else if (rc == SBA_ETIMEOUT) {
		sba_fail(err, rc, "it does not end");
	} else if (rc == 0 && WIFSIGNALED(status)) {
		rc = sba_fail(err, SBA_ECONFIG, "it was ended by signal %d", WTERMSIG(status));
	} else if (rc == 0 && WEXITSTATUS(status) != 0 && !knows_none(&b)) {
		rc = sba_fail(err, SBA_ECONFIG, "it failed with exit status %d",
			      WEXITSTATUS(status));
	} else if (rc == 0 && WEXITSTATUS(status) == 0) {
		rc = sba_credentials_parse_answer(b.data ? b.data : "", b.len, ret, err);
	}
	wipe_buf(&b);
	return rc < 0 ? sba_wrap(err, rc, "'%s get' for %s", program, host) : 0;
}

int sba_credentials_find(const char *folder, const char *host, struct sba_until until,
			 struct sba_credentials *ret, struct sba_error *err)
{
	char path[4096];
	struct sba_credentials c = { 0 };
	struct sba_buf b = SBA_BUF_INIT(SBA_CONFIG_MAX);
	SBA_FREE char *helper = NULL;
	if ((size_t)snprintf(path, sizeof(path), "%s/config.json", folder) >= sizeof(path))
		return sba_fail(err, SBA_EINVAL, "the path of docker's folder is too long");
	int rc = sba_read_file(path, SBA_CONFIG_MAX, &b, err);
	if (rc == SBA_ENOTFOUND) {
		sba_buf_fini(&b);
		*ret = c;
		return 0;
	}
	if (rc == 0)
		rc = sba_credentials_parse(b.data ? b.data : "", b.len, host, &c, &helper, err);
	wipe_buf(&b);
	if (rc < 0)
		return sba_wrap(err, rc, "%s", path);
	if (helper)
		rc = ask_helper(helper, host, until, &c, err);
	if (rc == 0)
		*ret = c;
	return rc;
}

/* ---- for the engine ---- */

static int add(json_t *j, const char *key, const char *value)
{
	return value ? json_object_set_new(j, key, json_string(value)) : 0;
}

int sba_credentials_header(const struct sba_credentials *c, const char *host, char **ret,
			   struct sba_error *err)
{
	SECRET_JSON json_t *j = json_object();
	struct sba_buf b = SBA_BUF_INIT(4 * (size_t)SBA_KEY_MAX);
	bool anybody = c->user || c->password || c->identity_token || c->registry_token;
	if (!j || add(j, "username", c->user) < 0 || add(j, "password", c->password) < 0 ||
	    add(j, "identitytoken", c->identity_token) < 0 ||
	    add(j, "registrytoken", c->registry_token) < 0 ||
	    (anybody && add(j, "serveraddress", host) < 0))
		return sba_fail(err, SBA_ECONFIG, "the credentials for %s are no text", host);
	char *text = sba_json_dump(j);
	/* Room for all at once: growing would leave copies behind. */
	if (text && sba_buf_reserve(&b, strlen(text) * 2 + 8))
		sba_base64_put(&b, text, strlen(text), true);
	wipe(text);
	int rc = text ? sba_buf_check(&b, "the credentials", err) : sba_fail_nomem(err);
	if (rc == 0)
		*ret = sba_buf_take(&b);
	else
		wipe_buf(&b);
	return rc;
}
