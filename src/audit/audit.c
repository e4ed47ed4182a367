/* SPDX-License-Identifier: MIT */
/* The handle: whose record it is, and what is done outside of turns. */
#include "audit/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"

static void who_fini(struct sba_audit_who *w)
{
	char **all[] = { &w->sandbox, &w->sandbox_id, &w->agent,  &w->image,   &w->user,
			 &w->network, &w->allow,      &w->digest, &w->version, &w->provider };
	for (size_t i = 0; i < SBA_ARRAY_LEN(all); i++) {
		free(*all[i]);
		*all[i] = NULL;
	}
}

static int fill_gaps(struct sba_audit_who *w, struct sba_error *err)
{
	char **all[] = { &w->sandbox, &w->sandbox_id, &w->agent,  &w->image,   &w->user,
			 &w->network, &w->allow,      &w->digest, &w->version, &w->provider };
	for (size_t i = 0; i < SBA_ARRAY_LEN(all); i++) {
		if (!*all[i] && !(*all[i] = strdup("")))
			return sba_fail_nomem(err);
	}
	return 0;
}

int sba_audit_new(const struct sba_audit_options *o, struct sba_audit_who *take_who,
		  struct sba_audit **ret, struct sba_error *err)
{
	struct sba_audit *a = calloc(1, sizeof(*a));
	if (!a) {
		who_fini(take_who);
		return sba_fail_nomem(err);
	}
	pthread_mutex_init(&a->lock, NULL);
	a->who = *take_who;
	*take_who = (struct sba_audit_who){ 0 };
	a->retention_days = o->retention_days;
	a->root = strdup(o->root ? o->root : "");
	int rc = a->root ? fill_gaps(&a->who, err) : sba_fail_nomem(err);
	if (rc == 0 && a->root[0] != '/')
		rc = sba_fail(err, SBA_EINVAL, "audit root '%s': not an absolute path", a->root);
	for (size_t i = 0; rc == 0 && o->secrets && o->secrets[i]; i++)
		rc = sba_audit_hide(a, o->secrets[i], err);
	if (rc < 0) {
		sba_audit_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

/* ---- of a sandbox ---- */

/* "repo:claude-2.1.332-20261129" says 2.1.332. */
static char *version_of(const char *image, const char *agent)
{
	const char *tag = strrchr(image, ':');
	size_t len = strlen(agent);
	if (!len || !tag || strncmp(tag + 1, agent, len) != 0 || tag[1 + len] != '-')
		return strdup("");
	const char *version = tag + 2 + len, *date = strrchr(version, '-');
	return date ? strndup(version, (size_t)(date - version)) : strdup("");
}

/* All that a sandbox says of itself could be copied. */
static bool who_is_whole(const struct sba_audit_who *w)
{
	return w->sandbox && w->sandbox_id && w->agent && w->image && w->user && w->network &&
	       w->allow && w->provider && w->version;
}

static int hide_login(struct sba_audit *a, struct sba_sandbox *s, struct sba_error *err)
{
	SBA_STRV struct sba_strv secrets = { 0 };
	int rc = sba_sandbox_login_secrets(s, &secrets, err);
	for (size_t i = 0; rc == 0 && i < secrets.n; i++)
		rc = sba_audit_hide(a, secrets.v[i], err);
	return rc;
}

int sba_audit_open(const struct sba_audit_options *o, struct sba_sandbox *s, struct sba_audit **ret,
		   struct sba_error *err)
{
	const struct sba_sandbox_info *i = sba_sandbox_info(s);
	struct sba_audit_who who = {
		.sandbox = strdup(i->name),
		.sandbox_id = strdup(i->id),
		.agent = strdup(i->agent),
		.image = strdup(i->image),
		.user = strdup(i->user),
		.network = strdup(i->network),
		.allow = strdup(i->allow),
		.provider = strdup(i->provider),
		.version = version_of(i->image, i->agent),
	};
	struct sba_audit *a = NULL;
	if (!who_is_whole(&who)) {
		who_fini(&who);
		return sba_fail_nomem(err);
	}
	int rc = sba_audit_new(o, &who, &a, err);
	if (rc == 0)
		rc = hide_login(a, s, err);
	if (rc == 0)
		rc = sba_audit_connections_open(a, &a->connections, err);
	if (rc < 0) {
		sba_audit_close(a);
		return rc;
	}
	a->sandbox = s;
	a->observer = (struct sba_observer){ .connection = sba_audit_connections_tell,
					     .user = a->connections };
	sba_sandbox_observe(s, &a->observer);
	*ret = a;
	return 0;
}

/* What a user gave the sandbox for its programs, by the names that people give such
 * things. */
static bool names_secret(const char *name, size_t len)
{
	static const char *const words[] = { "KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL" };
	char copy[128];
	snprintf(copy, sizeof(copy), "%.*s", (int)(len < sizeof(copy) ? len : sizeof(copy) - 1),
		 name);
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		if (strcasestr(copy, words[i]))
			return true;
	}
	return false;
}

void sba_audit_hide_env(struct sba_audit *a, const json_t *env)
{
	size_t i;
	const json_t *pair;
	pthread_mutex_lock(&a->lock);
	json_array_foreach(env, i, pair)
	{
		const char *text = json_string_value(pair);
		size_t len = text ? strcspn(text, "=") : 0;
		struct sba_error err = { 0 };
		if (text && text[len] && names_secret(text, len) &&
		    sba_audit_hide(a, text + len + 1, &err) < 0)
			sba_log("audit", "%s", err.text);
	}
	pthread_mutex_unlock(&a->lock);
}

/* One request, and only before a turn: what else is recorded need not wait for it. */
void sba_audit_ask(struct sba_audit *a)
{
	SBA_JSON json_t *j = NULL;
	if (!a->sandbox || a->asked || !sba_sandbox_engine(a->sandbox) ||
	    sba_container_inspect(sba_sandbox_engine(a->sandbox), sba_sandbox_container(a->sandbox),
				  sba_sandbox_until(a->sandbox, SBA_AUDIT_ASK_MS), &j, NULL) < 0)
		return;
	const char *digest = sba_json_str(j, "Image");
	char *copy = digest ? strdup(digest) : NULL;
	a->asked = true;
	sba_audit_hide_env(a, sba_json_get(j, "Config.Env"));
	if (!copy)
		return;
	free(a->who.digest);
	a->who.digest = copy;
}

/* ---- what is recorded outside of turns ---- */

static int append(struct sba_audit *a, const char *kind, const char *payload, int64_t time_ms,
		  struct sba_error *err)
{
	struct sba_audit_folder f = SBA_AUDIT_FOLDER_INIT;
	const struct sba_audit_place at = { .time_ms = time_ms };
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(SBA_AUDIT_LINE_MAX);
	int rc = sba_audit_folder_for_sandbox(a, &f, err);
	if (rc < 0)
		return rc;
	SBA_CLOSE int fd = sba_audit_events_open(f.fd, err);
	sba_audit_line_other(&line, &at, kind, payload);
	rc = fd < 0 ? fd : sba_buf_check(&line, kind, err);
	if (rc == 0) {
		sba_audit_hide_in(a, line.data, line.len);
		rc = sba_write_all(fd, line.data, line.len, err);
	}
	sba_audit_folder_close(&f);
	return rc;
}

int sba_audit_record_at(struct sba_audit *a, const char *kind, const char *payload, int64_t time_ms,
			struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(payload, strlen(payload), kind, &j, err);
	if (rc == 0 && !json_is_object(j))
		rc = sba_fail(err, SBA_EINVAL, "%s: the payload is no object", kind);
	SBA_FREE char *one_line = rc == 0 ? sba_json_dump(j) : NULL;
	if (rc == 0 && !one_line)
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&a->lock);
	if (a->turn)
		sba_audit_turn_other(a->turn, kind, one_line, time_ms);
	else
		rc = append(a, kind, one_line, time_ms, err);
	pthread_mutex_unlock(&a->lock);
	return rc < 0 ? sba_wrap(err, rc, "audit") : 0;
}

int sba_audit_record(struct sba_audit *a, const char *kind, const char *payload,
		     struct sba_error *err)
{
	return sba_audit_record_at(a, kind, payload, sba_unix_ms(), err);
}

void sba_audit_close(struct sba_audit *a)
{
	if (!a)
		return;
	if (a->sandbox)
		sba_sandbox_unobserve(a->sandbox, &a->observer);
	sba_audit_connections_close(a->connections);
	for (size_t i = 0; i < a->secrets_n; i++)
		sba_redact_free(a->secrets[i]);
	who_fini(&a->who);
	pthread_mutex_destroy(&a->lock);
	free(a->root);
	free(a);
}
