/* SPDX-License-Identifier: MIT */
/*
 * A request on its way out: its head, a JSON body, or a body that streams in
 * chunks. While it writes it also listens, because an engine that refuses an
 * upload answers, closes and resets: the answer counts, not the broken pipe.
 */
#include "engine/private.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- the head ---- */

/* What must not break out of its line: everything here is made by this
 * library, so this only guards against our own mistakes. */
static bool line_safe(const char *s)
{
	return !s || s[strcspn(s, " \r\n\t")] == '\0';
}

static void put_host(struct sba_buf *b, const struct sba_address *a)
{
	if (!a->tcp)
		sba_buf_puts(b, "Host: docker\r\n"); /* without one: 400 */
	else if (strchr(a->host, ':'))
		sba_buf_printf(b, "Host: [%s]:%s\r\n", a->host, a->port);
	else
		sba_buf_printf(b, "Host: %s:%s\r\n", a->host, a->port);
}

static void put_body_headers(struct sba_buf *b, const struct sba_exchange *x, const char *json)
{
	if (x->source)
		sba_buf_printf(b,
			       "Content-Type: %s\r\nTransfer-Encoding: chunked\r\n"
			       "Expect: 100-continue\r\n",
			       x->content_type);
	else if (json)
		sba_buf_printf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			       strlen(json));
	else if (strcmp(x->request->method, "POST") == 0)
		sba_buf_puts(b, "Content-Length: 0\r\n");
}

static void put_head(struct sba_buf *b, const struct sba_engine *e, const struct sba_exchange *x,
		     const char *json)
{
	const struct sba_request *r = x->request;
	sba_buf_printf(b, "%s ", r->method);
	if (e->api[0])
		sba_buf_printf(b, "/v%s", e->api);
	sba_buf_printf(b, "%s HTTP/1.1\r\n", r->path);
	put_host(b, &e->address);
	sba_buf_puts(b, "User-Agent: sandbox-agent\r\n");
	if (r->registry_auth)
		sba_buf_printf(b, "X-Registry-Auth: %s\r\n", r->registry_auth);
	if (x->upgrade)
		sba_buf_puts(b, "Connection: Upgrade\r\nUpgrade: tcp\r\n");
	put_body_headers(b, x, json);
	sba_buf_puts(b, "\r\n");
	if (json)
		sba_buf_puts(b, json);
}

int sba_outgoing_init(struct sba_outgoing *o, const struct sba_engine *e,
		      const struct sba_exchange *x, struct sba_error *err)
{
	*o = (struct sba_outgoing){ .source = x->source, .user = x->user, .expect = x->source };
	sba_buf_init(&o->head, SBA_ENGINE_BODY_MAX);
	if (!line_safe(x->request->path) || !line_safe(x->request->registry_auth))
		return sba_fail(err, SBA_EINVAL, "white space in a request's path or credentials");
	SBA_FREE char *json = x->request->json ? sba_json_dump(x->request->json) : NULL;
	if (x->request->json && !json)
		return sba_fail_nomem(err);
	put_head(&o->head, e, x, json);
	return sba_buf_check(&o->head, "the request", err);
}

void sba_outgoing_fini(struct sba_outgoing *o)
{
	sba_buf_fini(&o->head);
	free(o->piece);
	o->piece = NULL;
}

/* To be sent once more; only while the source has not been asked. */
void sba_outgoing_rewind(struct sba_outgoing *o)
{
	o->head_at = 0;
	o->broken = false;
	o->expect = o->source != NULL;
}

/* ---- answers that come meanwhile ---- */

int sba_wire_take_head(struct sba_wire *w, struct sba_http_head *ret, bool *continued,
		       struct sba_error *err)
{
	while (w->len > 0) {
		struct sba_http_head h;
		ssize_t n = sba_http_head_parse(w->room.data + w->at, w->len, &h, err);
		if (n <= 0)
			return (int)n;
		sba_wire_consume(w, (size_t)n);
		if (h.status >= 200 || h.status == 101) {
			*ret = h;
			return 1;
		}
		*continued = *continued || h.status == 100;
		sba_http_head_fini(&h);
	}
	return 0;
}

/* Receives without waiting and looks for a head. The end of the connection
 * shows up as SBA_ELOST. */
static int listen_for_head(struct sba_wire *w, struct sba_http_head *ret, bool *continued,
			   struct sba_error *err)
{
	ssize_t n = sba_wire_fill(w, err);
	if (n == SBA_AGAIN)
		return 0;
	if (n == 0)
		return sba_fail(err, SBA_ELOST, "the engine closed the connection");
	return n < 0 ? (int)n : sba_wire_take_head(w, ret, continued, err);
}

/* The engine says 100 once it wants the body, or refuses before a byte of it
 * went out. One that says nothing gets it after a second. */
static int await_continue(struct sba_wire *w, struct sba_until until, struct sba_http_head *ret,
			  struct sba_error *err)
{
	struct sba_until soon = sba_until_sooner(until, SBA_ENGINE_CONTINUE_MS);
	bool continued = false;
	while (!continued) {
		int rc = sba_wait_fd(w->t->fd, POLLIN, soon, err);
		if (rc == SBA_ETIMEOUT)
			return sba_until_check(until, err);
		if (rc < 0)
			return rc;
		rc = listen_for_head(w, ret, &continued, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- the body ---- */

enum { CHUNK_HEAD = 10 }; /* eight hex digits, CR LF */

static int next_piece(struct sba_outgoing *o, struct sba_error *err)
{
	if (!o->piece)
		o->piece = malloc(CHUNK_HEAD + SBA_ENGINE_UPLOAD_PIECE + 2);
	if (!o->piece)
		return sba_fail_nomem(err);
	char *data = o->piece + CHUNK_HEAD;
	o->source_used = true;
	ssize_t n = o->source(o->user, data, SBA_ENGINE_UPLOAD_PIECE, err);
	if (n < 0)
		return (int)n;
	o->piece_at = 0;
	if (n == 0) {
		memcpy(o->piece, "0\r\n\r\n", 5);
		o->piece_len = 5;
		o->source_ended = true;
		return 0;
	}
	char size[CHUNK_HEAD + 1];
	snprintf(size, sizeof(size), "%08x\r\n", (unsigned)n);
	memcpy(o->piece, size, CHUNK_HEAD);
	memcpy(data + n, "\r\n", 2);
	o->piece_len = CHUNK_HEAD + (size_t)n + 2;
	return 0;
}

/* What is to be written next. */
static int pending(struct sba_outgoing *o, const char **data, size_t *len, struct sba_error *err)
{
	if (o->head_at < o->head.len) {
		*data = o->head.data + o->head_at;
		*len = o->head.len - o->head_at;
		return 0;
	}
	if (o->source && o->piece_at == o->piece_len && !o->source_ended) {
		int rc = next_piece(o, err);
		if (rc < 0)
			return rc;
	}
	*data = o->piece ? o->piece + o->piece_at : NULL;
	*len = o->piece_len - o->piece_at;
	return 0;
}

static void sent(struct sba_outgoing *o, size_t n)
{
	if (o->head_at < o->head.len)
		o->head_at += n;
	else
		o->piece_at += n;
}

bool sba_outgoing_done(const struct sba_outgoing *o)
{
	return o->head_at == o->head.len && o->piece_at == o->piece_len &&
	       (!o->source || o->source_ended);
}

/* Writes what goes without waiting. */
static int push(struct sba_outgoing *o, struct sba_wire *w, struct sba_error *err)
{
	const char *data;
	size_t len;
	int rc = pending(o, &data, &len, err);
	if (rc < 0)
		return rc;
	ssize_t n = sba_wire_write(w, data, len, err);
	if (n > 0)
		sent(o, (size_t)n);
	o->broken = n < 0 && n != SBA_AGAIN;
	return 0;
}

static int wait_both(struct sba_wire *w, struct sba_until until, struct sba_error *err)
{
	short events = (short)(w->t->read_wants | w->t->write_wants);
	int rc = sba_wait_fd(w->t->fd, events, sba_until_sooner(until, SBA_ENGINE_STALL_MS), err);
	if (rc == SBA_ETIMEOUT && sba_until_left(until) != 0)
		return sba_fail(err, SBA_ETIMEOUT, "the engine takes no more: stalled for %d s",
				SBA_ENGINE_STALL_MS / 1000);
	return rc;
}

/* One round of listening, before the body and between its pieces. */
static int listen_between(struct sba_outgoing *o, struct sba_wire *w, struct sba_until until,
			  struct sba_http_head *ret, struct sba_error *err)
{
	bool continued = false;
	if (o->expect && o->head_at == o->head.len) {
		o->expect = false;
		return await_continue(w, until, ret, err);
	}
	int events = wait_both(w, until, err);
	if (events < 0)
		return events;
	return events & ~POLLOUT ? listen_for_head(w, ret, &continued, err) : 0;
}

int sba_outgoing_send(struct sba_outgoing *o, struct sba_wire *w, struct sba_until until,
		      struct sba_http_head *ret, struct sba_error *err)
{
	for (;;) {
		int rc = push(o, w, err);
		if (rc < 0 || o->broken || sba_outgoing_done(o))
			return rc;
		rc = listen_between(o, w, until, ret, err);
		if (rc != 0)
			return rc;
	}
}
