/* SPDX-License-Identifier: MIT */
/*
 * Letting a registry know who we are: HTTP Basic, or a token from the place that its
 * challenge names (Docker's token specification). Credentials go to that place over
 * TLS only, or in the clear where the registry itself is plain and on this machine.
 */
#include "base/limits.h"
#include "registry/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

static void wipe_buf(struct sba_buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	sba_buf_fini(b);
}

/* "Authorization: Basic …"; NULL where memory is out. */
static char *basic(const struct sba_credentials *c)
{
	struct sba_buf pair = SBA_BUF_INIT(2 * (size_t)SBA_KEY_MAX + 2);
	struct sba_buf header = SBA_BUF_INIT(4 * (size_t)SBA_KEY_MAX);
	char *ret = NULL;
	sba_buf_reserve(&pair, strlen(c->user) + strlen(c->password) + 2);
	sba_buf_puts(&pair, c->user);
	sba_buf_putc(&pair, ':');
	sba_buf_puts(&pair, c->password);
	sba_buf_reserve(&header, 2 * pair.len + 64);
	sba_buf_puts(&header, "Authorization: Basic ");
	if (!pair.failed)
		sba_base64_put(&header, pair.data, pair.len, false);
	if (!pair.failed && !header.failed)
		ret = sba_buf_take(&header);
	wipe_buf(&pair);
	wipe_buf(&header);
	return ret;
}

static bool has_password(const struct sba_credentials *c)
{
	return c && c->user && c->password;
}

/* ---- tokens ---- */

static void put_query(struct sba_buf *b, const struct sba_challenge *c, const char *scope)
{
	if (*c->service) {
		sba_buf_puts(b, "&service=");
		sba_buf_put_url(b, c->service);
	}
	sba_buf_puts(b, "&scope=");
	sba_buf_put_url(b, *c->scope ? c->scope : scope);
}

/* The identity token goes in a body: in no log of a proxy. */
static void put_form(struct sba_buf *b, const struct sba_challenge *c, const char *scope,
		     const char *identity_token)
{
	sba_buf_reserve(b, 3 * strlen(identity_token) + 2048);
	sba_buf_puts(b, "grant_type=refresh_token&client_id=sandbox-agent&refresh_token=");
	sba_buf_put_url(b, identity_token);
	put_query(b, c, scope);
}

static int send_for_token(struct sba_registry *r, const struct sba_challenge *c, const char *scope,
			  struct sba_until until, struct sba_http_response **ret,
			  struct sba_error *err)
{
	const struct sba_credentials *who = r->credentials;
	bool refresh = who && who->identity_token;
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_STRV struct sba_strv headers = { 0 };
	struct sba_buf form = SBA_BUF_INIT(4 * (size_t)SBA_KEY_MAX);
	char *secret = !refresh && has_password(who) ? basic(who) : NULL;
	sba_buf_puts(&url, c->realm);
	if (refresh) {
		put_form(&form, c, scope, who->identity_token);
	} else {
		sba_buf_puts(&url, strchr(c->realm, '?') ? "" : "?client_id=sandbox-agent");
		put_query(&url, c, scope);
	}
	struct sba_http_call call = { .method = refresh ? "POST" : "GET",
				      .headers = &headers,
				      .secret_header = secret,
				      .body = form.data,
				      .body_len = form.len };
	int rc = sba_buf_check(&url, "the token's URL", err);
	if (rc == 0)
		rc = sba_buf_check(&form, "the token's form", err);
	if (rc == 0 && refresh)
		rc = sba_strv_add(&headers, "Content-Type: application/x-www-form-urlencoded", err);
	call.url = url.data;
	if (rc == 0)
		rc = sba_http_client_send(r->http, &call, until, ret, err);
	wipe(secret);
	wipe_buf(&form);
	return rc;
}

static int take_token(struct sba_registry *r, struct sba_buf *body, struct sba_error *err)
{
	json_error_t where;
	/* In no error of a parser: it would quote the token. */
	SBA_JSON json_t *j = sba_json_load(body->data ? body->data : "", body->len, 0, &where);
	if (!j && errno == ENOMEM)
		return sba_fail_nomem(err);
	const char *token = sba_json_str(j, "token");
	if (!token || !*token)
		token = sba_json_str(j, "access_token");
	if (!token || !*token)
		return sba_fail(err, SBA_EPROTO, "its answer holds no token");
	char *header = NULL;
	if (asprintf(&header, "Authorization: Bearer %s", token) < 0)
		return sba_fail_nomem(err);
	wipe(r->authorization);
	r->authorization = header;
	return 0;
}

static int fetch_token(struct sba_registry *r, const struct sba_challenge *c, const char *scope,
		       struct sba_until until, struct sba_error *err)
{
	struct sba_http_response *answer = NULL;
	struct sba_buf body = SBA_BUF_INIT(SBA_REGISTRY_ERROR_MAX);
	bool clear = sba_starts_with(c->realm, "http://") && r->plain;
	if (!sba_starts_with(c->realm, "https://") && !clear)
		return sba_fail(err, SBA_EREFUSED,
				"it wants us to log in at '%.200s', which is no https:// URL",
				c->realm);
	int rc = send_for_token(r, c, scope, until, &answer, err);
	if (rc == 0 && sba_http_response_status(answer) != 200)
		rc = sba_registry_refused(r, answer, "a token", until, err);
	if (rc == 0)
		rc = sba_registry_read(answer, until, &body, err);
	if (rc == 0)
		rc = take_token(r, &body, err);
	sba_http_response_close(answer);
	wipe_buf(&body);
	return rc < 0 ? sba_wrap(err, rc, "log in at %.200s", c->realm) : 0;
}

int sba_registry_login(struct sba_registry *r, const char *challenge, const char *scope,
		       struct sba_until until, struct sba_error *err)
{
	struct sba_challenge c;
	int rc = sba_challenge_parse(challenge, &c, err);
	if (rc < 0)
		return rc;
	if (strcmp(c.scheme, "bearer") == 0 && r->credentials && r->credentials->registry_token) {
		wipe(r->authorization);
		if (asprintf(&r->authorization, "Authorization: Bearer %s",
			     r->credentials->registry_token) < 0) {
			r->authorization = NULL;
			return sba_fail_nomem(err);
		}
		return 0;
	}
	if (strcmp(c.scheme, "bearer") == 0)
		return fetch_token(r, &c, scope, until, err);
	if (strcmp(c.scheme, "basic") != 0)
		return sba_fail(err, SBA_EUNSUPPORTED, "it wants '%s', which is not known here",
				c.scheme);
	if (!has_password(r->credentials))
		return SBA_EPERM; /* the 401 itself says it best */
	wipe(r->authorization);
	r->authorization = basic(r->credentials);
	return r->authorization ? 0 : sba_fail_nomem(err);
}
