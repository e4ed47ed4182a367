/* SPDX-License-Identifier: MIT */
/*
 * Reading the body of an answer, whatever its framing. Only the framing's own
 * end is the end: a connection that closes before it lost something.
 */
#include "engine/private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int framing_of(struct sba_body *b, const char *method, struct sba_error *err)
{
	const char *coding = sba_http_head_get(&b->head, "transfer-encoding");
	const char *length = sba_http_head_get(&b->head, "content-length");
	int status = b->head.status;
	int64_t n;
	if (strcmp(method, "HEAD") == 0 || status == 204 || status == 304) {
		b->framing = SBA_BODY_NONE;
	} else if (coding) {
		if (strcasecmp(coding, "chunked") != 0)
			return sba_fail(err, SBA_EPROTO, "transfer coding '%s'", coding);
		b->framing = SBA_BODY_CHUNKED;
	} else if (length) {
		if (sba_parse_int(length, 0, INT64_MAX, &n) < 0)
			return sba_fail(err, SBA_EPROTO, "content length '%s'", length);
		b->framing = SBA_BODY_LENGTH;
		b->left = (uint64_t)n;
	} else {
		b->framing = SBA_BODY_UNTIL_CLOSE;
	}
	b->ended = b->framing == SBA_BODY_NONE || (b->framing == SBA_BODY_LENGTH && b->left == 0);
	return 0;
}

static bool is_reusable(const struct sba_body *b)
{
	const char *connection = sba_http_head_get(&b->head, "connection");
	return b->head.minor >= 1 && b->framing != SBA_BODY_UNTIL_CLOSE && b->wire->whole &&
	       !(connection && strcasestr(connection, "close"));
}

int sba_body_new(struct sba_engine *e, struct sba_wire *take_wire, struct sba_http_head *take_head,
		 const struct sba_exchange *x, struct sba_body **ret, struct sba_error *err)
{
	if (take_head->status == 101 && !x->upgrade)
		return sba_fail(err, SBA_EPROTO, "the engine switched protocols unasked");
	struct sba_body *b = calloc(1, sizeof(*b));
	if (!b)
		return sba_fail_nomem(err);
	b->e = e;
	b->wire = take_wire;
	b->head = *take_head;
	const char *tried = x->request->tried ? x->request->tried : x->request->path;
	snprintf(b->tried, sizeof(b->tried), "%s", tried);
	int rc = framing_of(b, x->request->method, err);
	if (rc < 0) {
		free(b);
		return rc;
	}
	b->reusable = is_reusable(b);
	*take_head = (struct sba_http_head){ 0 };
	*ret = b;
	return 0;
}

/* A span is never longer than what the decoder was lent. */
static ssize_t take_chunked(struct sba_body *b, char *buf, size_t size, struct sba_error *err)
{
	struct sba_wire *w = b->wire;
	const char *payload;
	size_t len;
	size_t lent = w->len < size ? w->len : size;
	ssize_t n = sba_chunked_feed(&b->chunked, w->room.data + w->at, lent, &payload, &len,
				     &b->ended, err);
	if (n < 0)
		return n;
	memcpy(buf, payload, len);
	sba_wire_consume(w, (size_t)n);
	return (ssize_t)len;
}

static ssize_t take_plain(struct sba_body *b, char *buf, size_t size)
{
	struct sba_wire *w = b->wire;
	size_t len = w->len < size ? w->len : size;
	if (b->framing == SBA_BODY_LENGTH) {
		if (len > b->left)
			len = (size_t)b->left;
		b->left -= len;
		b->ended = b->left == 0;
	}
	memcpy(buf, w->room.data + w->at, len);
	sba_wire_consume(w, len);
	return (ssize_t)len;
}

/* Up to `size` bytes of what has been received; 0 if there was only framing. */
static ssize_t take(struct sba_body *b, char *buf, size_t size, struct sba_error *err)
{
	return b->framing == SBA_BODY_CHUNKED ? take_chunked(b, buf, size, err)
					      : take_plain(b, buf, size);
}

/* The connection has ended. */
static int at_close(struct sba_body *b, struct sba_error *err)
{
	if (b->framing != SBA_BODY_UNTIL_CLOSE)
		return sba_fail(err, SBA_ELOST, "the engine closed the connection in the middle");
	b->ended = true;
	return 0;
}

static ssize_t read_body(struct sba_body *b, void *buf, size_t size, struct sba_until until,
			 struct sba_error *err)
{
	while (!b->ended) {
		if (b->wire->len > 0) {
			ssize_t n = take(b, buf, size, err);
			if (n != 0)
				return n;
			continue;
		}
		ssize_t n = sba_wire_fill_wait(b->wire, until, err);
		if (n == 0)
			n = at_close(b, err);
		if (n < 0)
			return n;
	}
	return 0;
}

ssize_t sba_body_read(struct sba_body *b, void *buf, size_t size, struct sba_until until,
		      struct sba_error *err)
{
	if (size == 0)
		return sba_fail(err, SBA_EINVAL, "%s: reading into nothing", b->tried);
	ssize_t n = read_body(b, buf, size, sba_engine_limit(b->e, until), err);
	return n < 0 ? sba_wrap(err, (int)n, "%s", b->tried) : n;
}

int sba_body_read_all(struct sba_body *body, struct sba_buf *b, struct sba_until until,
		      struct sba_error *err)
{
	for (;;) {
		char piece[16384];
		ssize_t n = read_body(body, piece, sizeof(piece), until, err);
		if (n < 0)
			return sba_wrap(err, (int)n, "%s", body->tried);
		if (n == 0)
			return 0;
		sba_buf_put(b, piece, (size_t)n);
		int rc = sba_buf_check(b, "the engine's answer", err);
		if (rc < 0)
			return sba_wrap(err, rc, "%s", body->tried);
	}
}

void sba_body_close(struct sba_body *b)
{
	if (!b)
		return;
	if (b->wire && b->ended && b->reusable && b->wire->len == 0)
		sba_pool_put(b->e, b->wire);
	else
		sba_wire_close(b->wire);
	sba_http_head_fini(&b->head);
	free(b);
}

void sba_cleanup_body(struct sba_body **b)
{
	sba_body_close(*b);
}
