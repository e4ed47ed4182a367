/* SPDX-License-Identifier: MIT */
/*
 * One exchange of request and answer: which connection, whether it may be
 * tried again, and what the engine's error answers mean.
 */
#include "engine/private.h"

#include <string.h>

/* Any negative descriptor is nothing to poll; this one says that it is meant so. */
enum { REGARDLESS = -2 };

struct sba_until sba_engine_until_regardless(int64_t ms)
{
	return sba_until_sooner((struct sba_until){ SBA_NEVER, REGARDLESS }, ms);
}

struct sba_until sba_engine_limit(const struct sba_engine *e, struct sba_until until)
{
	if (until.cancel_fd < 0 && until.cancel_fd != REGARDLESS)
		until.cancel_fd = e->cancel_fd;
	return until;
}

static const char *tried(const struct sba_request *r)
{
	return r->tried ? r->tried : r->path;
}

/* ---- the answer ---- */

static int receive_head(struct sba_wire *w, struct sba_until until, struct sba_http_head *ret,
			struct sba_error *err)
{
	bool continued = false;
	for (;;) {
		int rc = sba_wire_take_head(w, ret, &continued, err);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		ssize_t n = sba_wire_fill_wait(w, until, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return sba_fail(err, SBA_ELOST, "the engine closed the connection %s",
					w->heard ? "in the middle of its answer" : "unanswered");
	}
}

/* The engine's own words: the message of its JSON, or a plain text. A push that fails at
 * once comes from Podman (4.3 to 5.4) as the line that it would be later. */
static void engine_words(const struct sba_buf *body, const struct sba_http_head *h,
			 struct sba_buf *ret)
{
	SBA_JSON json_t *j = NULL;
	const char *text = body->data ? body->data : "";
	if (sba_json_parse(text, body->len, "answer", &j, NULL) == 0) {
		const char *message = sba_json_str(j, "message");
		message = message ? message : sba_json_str(j, "errorDetail.message");
		text = message ? message : text;
	}
	size_t len = strlen(text);
	while (len > 0 && strchr(" \r\n\t", text[len - 1]))
		len--;
	if (len > 0)
		sba_buf_put_visible(ret, text, len, true);
	else
		sba_buf_printf(ret, "the engine says %d %s", h->status, h->reason);
}

static int code_of(int status, const char *words)
{
	/* 500: Podman (4.3 to 5.4), where the container goes while it is asked. */
	if (status == 404 || (status == 500 && strstr(words, "no such container")))
		return SBA_ENOTFOUND;
	if (status == 409)
		return SBA_EEXIST;
	if (status == 400 && sba_starts_with(words, "client version"))
		return SBA_EUNSUPPORTED;
	return SBA_EENGINE;
}

/* Reads what there is of an error's body; one that breaks off still tells. */
static int fail_with_answer(struct sba_body *body, struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_ENGINE_ERROR_MAX);
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(8 * (size_t)SBA_ENGINE_ERROR_MAX);
	int rc = sba_body_read_all(body, &text, until, NULL);
	if (rc == SBA_ECANCELED)
		return sba_fail(err, rc, "%s: cancelled", body->tried);
	engine_words(&text, &body->head, &words);
	const char *said = words.data ? words.data : "";
	rc = sba_fail(err, code_of(body->head.status, said), "%s: %s", body->tried, said);
	if (err)
		err->http_status = body->head.status;
	return rc;
}

/* ---- the exchange ---- */

/* Safe to repeat after it may have been carried out. */
static bool idempotent(const char *method)
{
	static const char *const yes[] = { "GET", "HEAD", "DELETE", "PUT" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(yes); i++) {
		if (strcmp(method, yes[i]) == 0)
			return true;
	}
	return false;
}

/* The engine may close a kept connection just when the next request goes out.
 * That is no failure as long as nothing can have been done twice. */
static bool may_repeat(const struct sba_wire *w, const struct sba_exchange *x,
		       const struct sba_outgoing *o, int rc)
{
	return rc == SBA_ELOST && w->reused && !w->heard && !o->source_used &&
	       (w->written == 0 || idempotent(x->request->method));
}

/* Takes the wire. */
static int converse(struct sba_engine *e, struct sba_wire *w, const struct sba_exchange *x,
		    struct sba_outgoing *o, struct sba_until until, bool *repeat,
		    struct sba_body **ret, struct sba_error *err)
{
	struct sba_http_head head = { 0 };
	int rc = sba_outgoing_send(o, w, until, &head, err);
	if (rc == 0)
		rc = receive_head(w, x->answer_ms ? sba_until_sooner(until, x->answer_ms) : until,
				  &head, err);
	w->whole = sba_outgoing_done(o);
	*repeat = may_repeat(w, x, o, rc);
	if (rc >= 0)
		rc = sba_body_new(e, w, &head, x, ret, err);
	if (rc < 0) {
		sba_http_head_fini(&head);
		sba_wire_close(w);
	}
	return rc;
}

static int exchange(struct sba_engine *e, const struct sba_exchange *x, struct sba_outgoing *o,
		    struct sba_until until, struct sba_body **ret, struct sba_error *err)
{
	struct sba_wire *w = sba_pool_take(e);
	bool repeat = false;
	if (w) {
		int rc = converse(e, w, x, o, until, &repeat, ret, err);
		if (!repeat)
			return rc;
		sba_outgoing_rewind(o);
	}
	int rc = sba_wire_open(e, until, &w, err);
	return rc < 0 ? rc : converse(e, w, x, o, until, &repeat, ret, err);
}

static bool is_success(int status)
{
	return (status >= 200 && status < 300) || status == 304 || status == 101;
}

static int ask(struct sba_engine *e, const struct sba_exchange *x, struct sba_until until,
	       struct sba_body **ret, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	struct sba_outgoing o;
	int rc = sba_outgoing_init(&o, e, x, err);
	if (rc == 0)
		rc = sba_until_check(until, err); /* nothing is sent for who has given up */
	if (rc == 0)
		rc = exchange(e, x, &o, until, &body, err);
	sba_outgoing_fini(&o);
	if (rc == SBA_ECONNECT || rc == SBA_EPERM)
		return rc; /* says all there is to say */
	if (rc < 0)
		return sba_wrap(err, rc, "%s", tried(x->request));
	if (!is_success(body->head.status))
		return fail_with_answer(body, until, err);
	*ret = sba_move(&body);
	return 0;
}

/* A first try that failed and was repeated must leave no trace in err. */
int sba_engine_exchange(struct sba_engine *e, const struct sba_exchange *x, struct sba_until until,
			struct sba_body **ret, struct sba_error *err)
{
	struct sba_error why;
	int rc = ask(e, x, until, ret, &why);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

static int parse_answer(const struct sba_body *body, const struct sba_buf *text, json_t **ret,
			struct sba_error *err)
{
	if (text->len == 0) {
		*ret = json_null();
		return 0;
	}
	int rc = sba_json_parse(text->data, text->len, "the engine's answer", ret, err);
	return rc < 0 ? sba_wrap(err, rc, "%s", body->tried) : 0;
}

int sba_engine_call_until(struct sba_engine *e, const struct sba_request *request,
			  struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_ENGINE_BODY_MAX);
	struct sba_exchange x = { .request = request };
	int rc = sba_engine_exchange(e, &x, until, &body, err);
	if (rc == 0)
		rc = sba_body_read_all(body, &text, until, err);
	if (rc < 0 || !ret)
		return rc;
	return parse_answer(body, &text, ret, err);
}

int sba_engine_call(struct sba_engine *e, const struct sba_request *request, struct sba_until until,
		    json_t **ret, struct sba_error *err)
{
	return sba_engine_call_until(e, request, sba_engine_limit(e, until), ret, err);
}

int sba_engine_stream(struct sba_engine *e, const struct sba_request *request,
		      const char *content_type, sba_source_fn *source, void *user,
		      struct sba_until until, struct sba_body **ret, struct sba_error *err)
{
	struct sba_exchange x = {
		.request = request,
		.content_type = content_type,
		.source = source,
		.user = user,
	};
	return sba_engine_exchange(e, &x, sba_engine_limit(e, until), ret, err);
}

/* ---- queries ---- */

void sba_query_put(struct sba_buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	sba_buf_putc(b, b->data && strchr(b->data, '?') ? '&' : '?');
	sba_buf_puts(b, name);
	sba_buf_putc(b, '=');
	sba_buf_put_url(b, value);
}

void sba_query_put_json(struct sba_buf *b, const char *name, const json_t *value)
{
	if (!value)
		return;
	SBA_FREE char *text = sba_json_dump(value);
	if (text)
		sba_query_put(b, name, text);
	else
		b->failed = SBA_ENOMEM;
}
