/* SPDX-License-Identifier: MIT */
/* A request as a program inside sends it, cut by the first byte: the cut must not
 * matter, and what is sent on must be read as one request by a strict reader. */
#include "proxy/private.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const struct sba_proxy_head *h, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < h->headers_n; i++)
		n += sba_proxy_span_is(h->headers[i].name, name);
	return n;
}

static void check_sent_on(const struct sba_buf *out, const struct sba_proxy_request *r)
{
	struct sba_proxy_head h;
	struct sba_error err;
	assert(!out->failed);
	ssize_t n = sba_proxy_head_parse(out->data, out->len, &h, &err);
	/* What is added may pass a limit that the request kept. */
	if (n < 0 && err.http_status == 431)
		return;
	assert(n > 0 && (size_t)n == out->len);
	assert(h.target.at[0] == '/' || h.target.at[0] == '*');
	assert(count(&h, "host") == 1 && count(&h, "connection") == 1);
	assert(count(&h, "content-length") + count(&h, "transfer-encoding") ==
	       (size_t)(r->chunked || r->has_length));
	assert(count(&h, "proxy-authorization") == 0 && count(&h, "upgrade") == 0);
}

static int feed(const struct sba_proxy_request *r, const char *data, size_t size, size_t piece,
		struct sba_buf *out, bool *ret_done)
{
	struct sba_proxy_body b;
	int rc = 0;
	sba_proxy_body_init(&b, r);
	for (size_t at = 0; rc == 0 && at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		rc = sba_proxy_body_feed(&b, data + at, n, out, NULL);
	}
	*ret_done = b.done;
	return rc;
}

static void check_body(const struct sba_proxy_request *r, const char *data, size_t size,
		       size_t piece)
{
	struct sba_buf whole = SBA_BUF_INIT(SIZE_MAX / 2), cut = SBA_BUF_INIT(SIZE_MAX / 2);
	struct sba_buf again = SBA_BUF_INIT(SIZE_MAX / 2);
	bool done, cut_done, again_done;
	int rc = feed(r, data, size, SIZE_MAX / 2, &whole, &done);
	assert(rc == feed(r, data, size, piece, &cut, &cut_done));
	assert(done == cut_done);
	assert(whole.len <= size + 64);
	if (rc == 0 && whole.len) {
		assert(feed(r, whole.data, whole.len, SIZE_MAX / 2, &again, &again_done) == 0);
		assert(again_done == done && again.len == whole.len);
		assert(memcmp(again.data, whole.data, whole.len) == 0);
	}
	sba_buf_fini(&whole);
	sba_buf_fini(&cut);
	sba_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_proxy_head h;
	struct sba_proxy_request r;
	struct sba_error err;
	if (size < 1)
		return 0;
	const char *text = (const char *)data + 1;
	size_t piece = (size_t)data[0] + 1;
	ssize_t n = sba_proxy_head_parse(text, size - 1, &h, &err);
	assert(n >= 0 || err.http_status >= 400);
	if (n <= 0)
		return 0;
	for (size_t cut = 0; cut < (size_t)n; cut += piece)
		assert(sba_proxy_head_parse(text, cut, &h, NULL) == 0);
	assert(sba_proxy_head_parse(text, (size_t)n, &h, &err) == n);
	if (sba_proxy_request_read(&h, &r, &err) < 0) {
		assert(err.http_status >= 400);
		return 0;
	}
	assert(r.authority.host[0] && r.authority.port);
	if (r.connect)
		return 0;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT((size_t)4 * SBA_PROXY_HEAD_MAX);
	sba_proxy_request_write(&h, &r, &out);
	check_sent_on(&out, &r);
	check_body(&r, text + n, size - 1 - (size_t)n, piece);
	return 0;
}
