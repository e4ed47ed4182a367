/* SPDX-License-Identifier: MIT */
/*
 * The head of a request, strictly: whatever two readers could take differently
 * (bare line feeds, folded lines, spaces before a colon) is refused. It knows
 * syntax only; what is asked for is request.c's.
 */
#include "proxy/private.h"

#include <string.h>
#include <strings.h>

bool sba_proxy_span_is(struct sba_proxy_span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

int sba_proxy_bad(struct sba_error *err, int status, const char *why)
{
	sba_fail(err, SBA_EPROTO, "bad request: %s", why);
	if (err)
		err->http_status = status;
	return SBA_EPROTO;
}

struct sba_proxy_span sba_proxy_span_take(struct sba_proxy_span *rest, char c)
{
	const char *at = memchr(rest->at, c, rest->len);
	size_t len = at ? (size_t)(at - rest->at) : rest->len;
	struct sba_proxy_span s = { rest->at, len };
	rest->at += len + (at ? 1 : 0);
	rest->len -= len + (at ? 1 : 0);
	return s;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

struct sba_proxy_span sba_proxy_span_trim(struct sba_proxy_span s)
{
	while (s.len > 0 && is_space(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && is_space(s.at[s.len - 1]))
		s.len--;
	return s;
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct sba_proxy_span s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!is_token_char(s.at[i]))
			return false;
	}
	return s.len > 0;
}

static const char *bad_byte(const char *data, size_t i)
{
	unsigned char c = (unsigned char)data[i];
	if (c == '\n')
		return i == 0 || data[i - 1] != '\r' ? "a line feed without a carriage return"
						     : NULL;
	if (i > 0 && data[i - 1] == '\r')
		return "a carriage return without a line feed";
	if (c == '\r' || c == '\t' || (c >= ' ' && c != 0x7F))
		return NULL;
	return c ? "a control character" : "a NUL";
}

/* Finds the head's end, and a bad byte without waiting for it. */
static ssize_t find_end(const char *data, size_t len, struct sba_error *err)
{
	for (size_t i = 0; i < len && i < SBA_PROXY_HEAD_MAX; i++) {
		const char *why = bad_byte(data, i);
		if (why)
			return sba_proxy_bad(err, 400, why);
		if (i >= 3 && memcmp(data + i - 3, "\r\n\r\n", 4) == 0)
			return (ssize_t)i + 1;
	}
	if (len >= SBA_PROXY_HEAD_MAX)
		return sba_proxy_bad(err, 431, "the head is larger than 16 KiB");
	return 0;
}

/* A line without its end; rest is behind that. */
static struct sba_proxy_span take_line(struct sba_proxy_span *rest)
{
	struct sba_proxy_span line = sba_proxy_span_take(rest, '\n');
	if (line.len > 0)
		line.len--;
	return line;
}

static int parse_request_line(struct sba_proxy_span line, struct sba_proxy_head *h,
			      struct sba_error *err)
{
	h->method = sba_proxy_span_take(&line, ' ');
	if (!is_token(h->method))
		return sba_proxy_bad(err, 400, "no method");
	h->target = sba_proxy_span_take(&line, ' ');
	for (size_t i = 0; i < h->target.len; i++) {
		if (h->target.at[i] <= ' ')
			return sba_proxy_bad(err, 400, "a byte in the target that must be escaped");
	}
	if (h->target.len == 0)
		return sba_proxy_bad(err, 400, "no target");
	if (line.len != 8 || memcmp(line.at, "HTTP/", 5) != 0 || line.at[6] != '.')
		return sba_proxy_bad(err, 400, "no HTTP version");
	if (line.at[5] != '1' || (line.at[7] != '0' && line.at[7] != '1'))
		return sba_proxy_bad(err, 505, "HTTP/1.0 and HTTP/1.1 are spoken here");
	h->minor = line.at[7] - '0';
	return 0;
}

static int parse_header(struct sba_proxy_span line, struct sba_proxy_header *h,
			struct sba_error *err)
{
	if (is_space(line.at[0]))
		return sba_proxy_bad(err, 400, "a folded header line");
	if (!memchr(line.at, ':', line.len))
		return sba_proxy_bad(err, 400, "a header without a colon");
	h->name = sba_proxy_span_take(&line, ':');
	if (!is_token(h->name))
		return sba_proxy_bad(err, 400, "a header name that is none");
	h->value = sba_proxy_span_trim(line);
	return 0;
}

ssize_t sba_proxy_head_parse(const char *data, size_t len, struct sba_proxy_head *ret,
			     struct sba_error *err)
{
	memset(ret, 0, sizeof(*ret));
	ssize_t size = find_end(data, len, err);
	if (size <= 0)
		return size;
	struct sba_proxy_span rest = { data, (size_t)size };
	int rc = parse_request_line(take_line(&rest), ret, err);
	while (rc == 0) {
		struct sba_proxy_span line = take_line(&rest);
		if (line.len == 0)
			break;
		if (ret->headers_n == SBA_PROXY_HEADERS_MAX)
			return sba_proxy_bad(err, 431, "more than 64 headers");
		rc = parse_header(line, &ret->headers[ret->headers_n++], err);
	}
	ret->size = (size_t)size;
	return rc < 0 ? rc : size;
}
