/* SPDX-License-Identifier: MIT */
/*
 * One request to a service, tried again where that is harmless, and what its refusals mean
 * in our words. Whatever the service says, no secret of ours is among it.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PAUSE_MS = 200 };

struct sba_until sba_remote_until(const struct sba_remote *r, int64_t ms)
{
	return (struct sba_until){ sba_until_in(ms).deadline_ms, sba_cancel_fd(r->cancel) };
}

/* ---- refusals ---- */

static const struct {
	int from, to;
	int code;
	const char *what, *hint;
} refusals[] = {
	{ 400, 400, SBA_EINVAL, "it cannot do that", NULL },
	{ 401, 401, SBA_EPERM, "it does not take the key", NULL },
	{ 402, 402, SBA_ELIMIT, "the account has no credit for it", NULL },
	{ 403, 403, SBA_EPERM, "the key may not do that", NULL },
	{ 404, 404, SBA_ENOTFOUND, "it is not there", NULL },
	{ 409, 409, SBA_EBUSY, "its state does not allow it", NULL },
	{ 413, 413, SBA_ELIMIT, "it is too large", NULL },
	{ 415, 415, SBA_EPROTO, "it does not understand us", "is the URL that of its API?" },
	{ 422, 422, SBA_EINVAL, "it cannot do that", NULL },
	{ 429, 429, SBA_ELIMIT, "we have asked too often, or have too many", "wait a while" },
	{ 507, 507, SBA_ELIMIT, "its disk is full", NULL },
	{ 500, 599, SBA_EENGINE, "it is in trouble", "try again later" },
};

static size_t find_refusal(int status)
{
	size_t i = 0;
	while (i < SBA_ARRAY_LEN(refusals) &&
	       (status < refusals[i].from || status > refusals[i].to))
		i++;
	return i;
}

/* As far as it comes in a moment. */
static void read_words(struct sba_remote *r, const struct sba_remote_call *c,
		       struct sba_http_response *answer, struct sba_until until,
		       struct sba_remote_words *ret)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(SBA_REMOTE_ERROR_MAX);
	const char *value = c->secret ? strchr(c->secret, ':') : NULL;
	const char *const secrets[2] = { r->key,
					 value ? value + 1 + strspn(value + 1, " ") : NULL };
	char piece[4096];
	ssize_t n;
	while (!body.failed &&
	       (n = sba_http_response_read(answer, piece, sizeof(piece),
					   sba_until_sooner(until, 5000), NULL)) > 0)
		sba_buf_put(&body, piece, (size_t)n);
	sba_remote_words(body.data, body.len, secrets, ret);
}

static int refused(struct sba_remote *r, const struct sba_remote_call *c,
		   struct sba_http_response *answer, struct sba_until until, struct sba_error *err)
{
	int status = sba_http_response_status(answer);
	size_t i = find_refusal(status);
	bool known = i < SBA_ARRAY_LEN(refusals);
	struct sba_remote_words words;
	read_words(r, c, answer, until, &words);
	bool said = *words.text || *words.code;
	/* Its words say more than its status does. */
	bool no_image = strstr(words.code, "IMAGE");
	int rc = sba_fail(err,
			  no_image ? SBA_EIMAGE
			  : known  ? refusals[i].code
				   : SBA_EPROTO,
			  "%s: %s: %s: %d%s%s%s%s%s", r->kind->backend->name, c->what,
			  no_image ? "it cannot get the image"
			  : known  ? refusals[i].what
				   : "it answers what nobody expects",
			  status, said ? " (" : "", words.code,
			  *words.code && *words.text ? ": " : "", words.text, said ? ")" : "");
	if (err)
		err->http_status = status;
	if (rc == SBA_EPERM && r->key && r->key_from)
		return sba_hint(err, rc, "the key is that of %s", r->key_from);
	if (rc == SBA_EPERM && !r->key)
		return sba_hint(err, rc, "%s", r->kind->missing_key);
	if (known && refusals[i].hint && !no_image)
		return sba_hint(err, rc, "%s", refusals[i].hint);
	return rc;
}

/* ---- trying ---- */

static int send_once(struct sba_remote *r, const struct sba_remote_call *c, struct sba_until until,
		     struct sba_http_response **ret, struct sba_error *err)
{
	SBA_STRV struct sba_strv headers = { 0 };
	bool has_body = c->body || c->body_read;
	int rc = has_body ? sba_strv_addf(&headers, err, "Content-Type: %s",
					  c->type ? c->type : "application/json")
			  : 0;
	if (rc == 0)
		rc = sba_strv_add(&headers, "User-Agent: sandbox-agent/" SBA_VERSION, err);
	for (size_t i = 0; rc == 0 && c->headers && i < c->headers->n; i++)
		rc = sba_strv_add(&headers, c->headers->v[i], err);
	if (rc < 0)
		return rc;
	const struct sba_http_call call = {
		.method = c->method,
		.url = c->url,
		.headers = &headers,
		.secret_header = c->secret,
		.body = c->body,
		.body_len = c->body_len,
		.body_read = c->body_read,
		.body_user = c->body_user,
	};
	rc = sba_http_client_send(r->http, &call, until, ret, err);
	if (rc == SBA_ECONNECT && !sba_remote_is_distrusted(err))
		return sba_hint(err, sba_wrap(err, rc, "%s: %s", r->kind->backend->name, c->what),
				"is the service at %.*s?", (int)strcspn(c->url, "?"), c->url);
	return rc < 0 ? sba_wrap(err, rc, "%s: %s", r->kind->backend->name, c->what) : 0;
}

bool sba_remote_is_distrusted(const struct sba_error *err)
{
	return err && err->code == SBA_ECONNECT && err->sys_errno == EKEYREJECTED;
}

static bool is_busy(int status)
{
	return status == 429 || (status >= 502 && status <= 504);
}

/* How long to wait before the next try; -1: none is worth it. */
static int64_t pause_before(const struct sba_http_response *answer, int tries)
{
	const char *text = answer ? sba_http_response_header(answer, "Retry-After") : NULL;
	int64_t s;
	if (tries >= SBA_REMOTE_TRIES)
		return -1;
	if (text && sba_parse_int(text, 0, INT32_MAX, &s) == 0)
		return s * 1000 <= SBA_REMOTE_RETRY_MS ? s * 1000 : -1;
	return (int64_t)FIRST_PAUSE_MS << (tries - 1);
}

int sba_remote_open_call(struct sba_remote *r, const struct sba_remote_call *c,
			 struct sba_until until, struct sba_http_response **ret,
			 struct sba_error *err)
{
	for (int tries = 1;; tries++) {
		struct sba_http_response *answer = NULL;
		int rc = send_once(r, c, until, &answer, err);
		int status = rc == 0 ? sba_http_response_status(answer) : 0;
		if (status >= 200 && status <= 299) {
			*ret = answer;
			return 0;
		}
		/* A body that was read is not there a second time. */
		bool again = c->again && !c->body_read &&
			     ((rc == SBA_ECONNECT && !sba_remote_is_distrusted(err)) ||
			      rc == SBA_ELOST || (rc == 0 && is_busy(status)));
		int64_t pause = again ? pause_before(answer, tries) : -1;
		if (rc == 0 && pause < 0)
			rc = refused(r, c, answer, until, err);
		sba_http_response_close(answer);
		if (pause < 0)
			return rc;
		rc = sba_wait_fd(-1, 0, sba_until_sooner(until, pause), err);
		if (rc == SBA_ECANCELED || sba_until_left(until) == 0)
			return sba_wrap(err, rc, "%s: %s", r->kind->backend->name, c->what);
	}
}

int sba_remote_read_json(struct sba_remote *r, const struct sba_remote_call *c,
			 struct sba_http_response *answer, struct sba_until until, json_t **ret,
			 struct sba_error *err)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(SBA_REMOTE_ANSWER_MAX);
	char piece[16 * SBA_KIB];
	ssize_t n;
	while ((n = sba_http_response_read(answer, piece, sizeof(piece), until, err)) > 0) {
		sba_buf_put(&body, piece, (size_t)n);
		int rc = sba_buf_check(&body, "its answer", err);
		if (rc < 0)
			return sba_wrap(err, rc, "%s: %s", r->kind->backend->name, c->what);
	}
	if (n < 0)
		return sba_wrap(err, (int)n, "%s: %s", r->kind->backend->name, c->what);
	if (!ret)
		return 0;
	*ret = NULL;
	if (body.len == 0)
		return 0;
	int rc = sba_json_parse(body.data, body.len, "its answer", ret, err);
	if (rc < 0 && rc != SBA_ENOMEM && err)
		rc = err->code = SBA_EPROTO;
	return rc < 0 ? sba_hint(err, sba_wrap(err, rc, "%s: %s", r->kind->backend->name, c->what),
				 "is the URL that of its API?")
		      : 0;
}

int sba_remote_call(struct sba_remote *r, const struct sba_remote_call *c, struct sba_until until,
		    json_t **ret, struct sba_error *err)
{
	struct sba_http_response *answer = NULL;
	int rc = sba_remote_open_call(r, c, until, &answer, err);
	if (rc == 0)
		rc = sba_remote_read_json(r, c, answer, until, ret, err);
	sba_http_response_close(answer);
	return rc;
}

int sba_remote_cut_lines(struct sba_buf *line, const char *data, size_t len,
			 int (*take)(void *user, struct sba_error *err), void *user,
			 struct sba_error *err)
{
	int rc = 0;
	while (rc == 0 && len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;
		sba_buf_put(line, data, n);
		rc = sba_buf_check(line, "an event of its stream", err);
		if (rc == 0 && end) {
			rc = take(user, err);
			sba_buf_reset(line);
		}
		n += end != NULL;
		data += n;
		len -= n;
	}
	return rc;
}
