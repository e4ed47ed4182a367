/* SPDX-License-Identifier: MIT */
/*
 * A login of the CLI's own instead of a key: the one secret that enters a sandbox, where
 * its user asks for it. It is placed once, hidden in all that is said, and never copied.
 */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

static const struct sba_driver *driver_of(const char *agent)
{
	return agent ? sba_driver_find(agent) : NULL;
}

const struct sba_login *sba_agent_login(const char *agent)
{
	const struct sba_driver *d = driver_of(agent);
	return d ? d->login : NULL;
}

/* ---- what is secret ---- */

void sba_secrets_fini(struct sba_secrets *s)
{
	for (size_t i = 0; i < s->own_n; i++)
		sba_redact_free(s->own[i]);
	*s = (struct sba_secrets){ 0 };
}

bool sba_secrets_none(const struct sba_secrets *s)
{
	return !s || (!s->key && !s->own_n);
}

static size_t hide(const struct sba_redact *r, char *text, size_t len, bool last)
{
	struct sba_redact_scan scan = { .last = last };
	return sba_redact(r, text, len, &scan);
}

size_t sba_secrets_hide(const struct sba_secrets *s, char *text, size_t len, bool last)
{
	size_t safe = s->key ? hide(s->key, text, len, last) : len;
	for (size_t i = 0; i < s->own_n; i++) {
		size_t n = hide(s->own[i], text, len, last);
		safe = n < safe ? n : safe;
	}
	return safe;
}

int sba_agent_read_login(struct sba_agent *a, const struct sba_agent_options *o,
			 struct sba_error *err)
{
	SBA_STRV struct sba_strv secrets = { 0 };
	bool elsewhere = o->offline || o->provider || o->base_url || o->key;
	a->login = *sba_sandbox_info(a->sandbox)->login && a->driver->login && !elsewhere;
	if (a->login && (o->max_tokens > 0 || o->max_requests > 0))
		return sba_hint(err,
				sba_fail(err, SBA_EINVAL,
					 "%s goes to its provider by a login of its own: nobody "
					 "counts its tokens and requests",
					 a->driver->name),
				"no budget, or a key instead of the login");
	int rc = sba_sandbox_login_secrets(a->sandbox, &secrets, err);
	for (size_t i = 0; rc == 0 && i < secrets.n; i++) {
		rc = sba_redact_new(secrets.v[i], &a->secrets.own[i], err);
		a->secrets.own_n += rc == 0;
	}
	return rc;
}

/* ---- placing it ---- */

int sba_agent_check_login(const char *agent, const char *text, size_t len, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	SBA_STRV struct sba_strv secrets = { 0 };
	const struct sba_login *login = sba_agent_login(agent);
	if (!login)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s keeps no login of its own",
				agent ? agent : "");
	if (sba_json_parse(text, len, "login", &j, NULL) < 0 || !json_is_object(j))
		return sba_fail(err, SBA_ECONFIG, "this is no login of %s: not a JSON object",
				agent);
	int rc = sba_login_secrets(j, &secrets, err);
	if (rc == 0 && secrets.n == 0)
		rc = sba_fail(err, SBA_ECONFIG, "there is no login of %s in it", agent);
	return rc;
}

static bool beneath(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static int place(struct sba_agent *a, const char *text, size_t len, struct sba_error *err)
{
	struct sba_inside in;
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(8 * SBA_KIB);
	int rc = sba_agent_inside(a, &in, err);
	if (rc < 0)
		return rc;
	if (beneath(in.home, in.workdir))
		return sba_fail(err, SBA_EREFUSED,
				"the home of its user, %s, is in the workspace: what is there is "
				"copied and dumped",
				in.home);
	sba_buf_printf(&path, "%s/%s", in.home, a->driver->login->path);
	rc = sba_buf_check(&path, "path", err);
	return rc == 0 ? in.write(&in, path.data, text, len, 0600, err) : rc;
}

int sba_agent_place_login(struct sba_sandbox *s, const char *agent, const char *text, size_t len,
			  struct sba_error *err)
{
	struct sba_agent a = { .sandbox = s, .driver = driver_of(agent) };
	int rc = sba_agent_check_login(agent, text, len, err);
	if (rc == 0 &&
	    (!a.driver || strcmp(sba_sandbox_info(s)->login, a.driver->login->path) != 0))
		rc = sba_fail(err, SBA_EINVAL, "it was not made for a login of %s", agent);
	if (rc == 0)
		rc = place(&a, text, len, err);
	free(a.home);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': the login of %s",
				 sba_sandbox_info(s)->name, agent)
		      : 0;
}
