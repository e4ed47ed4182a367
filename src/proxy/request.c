/* SPDX-License-Identifier: MIT */
/*
 * What a head asks for, and the head that is sent on in its place. Nothing of
 * the old head is passed on as bytes: what is forwarded is written anew.
 */
#include "proxy/private.h"

#include <string.h>
#include <strings.h>

/* 0, or -1 if there are two. */
static int find_one(const struct sba_proxy_head *h, const char *name, struct sba_proxy_span *ret)
{
	bool found = false;
	for (size_t i = 0; i < h->headers_n; i++) {
		if (!sba_proxy_span_is(h->headers[i].name, name))
			continue;
		if (found)
			return -1;
		found = true;
		*ret = h->headers[i].value;
	}
	return 0;
}

static int parse_length(struct sba_proxy_span s, uint64_t *ret)
{
	char digits[19]; /* 10^18 - 1 at most: no overflow */
	int64_t n;
	if (s.len == 0 || s.len >= sizeof(digits))
		return SBA_EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return SBA_EINVAL;
	}
	memcpy(digits, s.at, s.len);
	digits[s.len] = '\0';
	if (sba_parse_int(digits, 0, INT64_MAX, &n) < 0)
		return SBA_EINVAL;
	*ret = (uint64_t)n;
	return 0;
}

static int read_framing(const struct sba_proxy_head *h, struct sba_proxy_request *r,
			struct sba_error *err)
{
	struct sba_proxy_span length = { 0 }, coding = { 0 }, host = { 0 };
	if (find_one(h, "content-length", &length) < 0)
		return sba_proxy_bad(err, 400, "two lengths");
	if (find_one(h, "transfer-encoding", &coding) < 0)
		return sba_proxy_bad(err, 400, "two transfer codings");
	/* Some old clients send CONNECT without Host, where it says nothing. */
	if (find_one(h, "host", &host) < 0 || (h->minor == 1 && !host.at && !r->connect))
		return sba_proxy_bad(err, 400, "not one Host");
	if (length.at && coding.at)
		return sba_proxy_bad(err, 400, "a length and a transfer coding");
	if (coding.at && (h->minor == 0 || !sba_proxy_span_is(coding, "chunked")))
		return sba_proxy_bad(err, 400, "a transfer coding other than chunked");
	if (length.at && parse_length(length, &r->length) < 0)
		return sba_proxy_bad(err, 400, "a length that is no number");
	r->chunked = coding.at;
	r->has_length = length.at;
	return 0;
}

static int read_authority(struct sba_proxy_span s, uint16_t default_port,
			  struct sba_proxy_request *r, struct sba_error *err)
{
	int rc = sba_proxy_authority_parse(s.at, s.len, default_port, &r->authority, err);
	if (rc < 0) {
		sba_wrap(err, rc, "bad request");
		if (err)
			err->http_status = 400;
	}
	return rc;
}

static int read_connect(const struct sba_proxy_head *h, struct sba_proxy_request *r,
			struct sba_error *err)
{
	if (r->chunked || r->length > 0)
		return sba_proxy_bad(err, 400, "CONNECT with a body");
	return read_authority(h->target, 0, r, err);
}

static int read_absolute(const struct sba_proxy_head *h, struct sba_proxy_request *r,
			 struct sba_error *err)
{
	static const char scheme[] = "http://";
	struct sba_proxy_span t = h->target;
	if (t.len >= 8 && strncasecmp(t.at, "https://", 8) == 0)
		return sba_proxy_bad(err, 400, "https goes through CONNECT");
	if (t.len < strlen(scheme) || strncasecmp(t.at, scheme, strlen(scheme)) != 0)
		return sba_proxy_bad(err, 400,
				     "this is a proxy: CONNECT host:port, or http://host/path");
	if (memchr(t.at, '#', t.len))
		return sba_proxy_bad(err, 400, "a fragment in the target");
	t.at += strlen(scheme);
	t.len -= strlen(scheme);
	size_t n = 0;
	while (n < t.len && t.at[n] != '/' && t.at[n] != '?')
		n++;
	r->path = (struct sba_proxy_span){ t.at + n, t.len - n };
	return read_authority((struct sba_proxy_span){ t.at, n }, 80, r, err);
}

int sba_proxy_request_read(const struct sba_proxy_head *head, struct sba_proxy_request *ret,
			   struct sba_error *err)
{
	struct sba_proxy_request r = { 0 };
	if (head->method.len == 5 && memcmp(head->method.at, "TRACE", 5) == 0)
		return sba_proxy_bad(err, 405, "TRACE would show what a proxy adds");
	r.connect = head->method.len == 7 && memcmp(head->method.at, "CONNECT", 7) == 0;
	int rc = read_framing(head, &r, err);
	if (rc < 0)
		return rc;
	rc = r.connect ? read_connect(head, &r, err) : read_absolute(head, &r, err);
	if (rc < 0)
		return rc;
	*ret = r;
	return 0;
}

/* ---- the head that is sent on ---- */

static bool is_in_list(struct sba_proxy_span list, struct sba_proxy_span name)
{
	while (list.len > 0) {
		struct sba_proxy_span s = sba_proxy_span_trim(sba_proxy_span_take(&list, ','));
		if (s.len == name.len && strncasecmp(s.at, name.at, s.len) == 0)
			return true;
	}
	return false;
}

static bool is_between_hops(const struct sba_proxy_head *h, struct sba_proxy_span name)
{
	static const char *const own[] = { "connection",     "keep-alive", "te",
					   "trailer",        "upgrade",    "transfer-encoding",
					   "content-length", "host" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(own); i++) {
		if (sba_proxy_span_is(name, own[i]))
			return true;
	}
	if (name.len >= 6 && strncasecmp(name.at, "proxy-", 6) == 0)
		return true;
	for (size_t i = 0; i < h->headers_n; i++) {
		if (sba_proxy_span_is(h->headers[i].name, "connection") &&
		    is_in_list(h->headers[i].value, name))
			return true;
	}
	return false;
}

static void put_span(struct sba_buf *out, struct sba_proxy_span s)
{
	sba_buf_put(out, s.at, s.len);
}

static void put_path(struct sba_buf *out, const struct sba_proxy_head *h,
		     const struct sba_proxy_request *r)
{
	bool options = h->method.len == 7 && memcmp(h->method.at, "OPTIONS", 7) == 0;
	if (r->path.len == 0)
		sba_buf_putc(out, options ? '*' : '/');
	else if (r->path.at[0] == '?')
		sba_buf_putc(out, '/');
	put_span(out, r->path);
}

static void put_host(struct sba_buf *out, const struct sba_proxy_authority *a)
{
	sba_buf_printf(out, strchr(a->host, ':') ? "Host: [%s]" : "Host: %s", a->host);
	if (a->port != 80)
		sba_buf_printf(out, ":%u", a->port);
	sba_buf_puts(out, "\r\n");
}

void sba_proxy_request_write(const struct sba_proxy_head *head, const struct sba_proxy_request *r,
			     struct sba_buf *out)
{
	put_span(out, head->method);
	sba_buf_putc(out, ' ');
	put_path(out, head, r);
	sba_buf_printf(out, " HTTP/1.%d\r\n", head->minor);
	put_host(out, &r->authority);
	for (size_t i = 0; i < head->headers_n; i++) {
		const struct sba_proxy_header *h = &head->headers[i];
		if (is_between_hops(head, h->name))
			continue;
		put_span(out, h->name);
		sba_buf_puts(out, ": ");
		put_span(out, h->value);
		sba_buf_puts(out, "\r\n");
	}
	if (r->chunked)
		sba_buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (r->has_length)
		sba_buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	sba_buf_puts(out, "Connection: close\r\n\r\n");
}
