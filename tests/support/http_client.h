/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP client for tests of our servers: what went over the wire, and
 * whether the answer was whole. Include after cmocka.h.
 */
#ifndef SBA_TEST_HTTP_CLIENT_H
#define SBA_TEST_HTTP_CLIENT_H

#include "base/base.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct reply {
	int status; /* 0: no answer at all */
	struct sba_buf raw;
	struct sba_buf body; /* without chunk framing */
	bool whole;          /* the end was announced, not just reached */
};

static inline int client_connect(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void client_send(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
		if (n <= 0)
			return; /* the server may rightly have had enough */
		p += n;
		len -= (size_t)n;
	}
}

/* Sends a request with `headers` ("A: b\r\n…") and a body (may be NULL). */
static inline void client_request(int fd, const char *line, const char *headers, const char *body)
{
	struct sba_buf b = SBA_BUF_INIT(128 << 20);
	sba_buf_printf(&b, "%s HTTP/1.1\r\nHost: test\r\n%s", line, headers);
	if (body)
		sba_buf_printf(&b, "Content-Length: %zu\r\n", strlen(body));
	sba_buf_puts(&b, "\r\n");
	if (body)
		sba_buf_puts(&b, body);
	client_send(fd, b.data, b.len);
	sba_buf_fini(&b);
}

/* One more piece of what arrives; false at the end of the connection. */
static inline bool client_read_some(int fd, struct reply *r)
{
	char buf[65536];
	ssize_t n = read(fd, buf, sizeof(buf));
	if (n > 0)
		sba_buf_put(&r->raw, buf, (size_t)n);
	return n > 0;
}

static inline void reply_unchunk(struct reply *r, const char *p)
{
	for (;;) {
		char *end;
		unsigned long n = strtoul(p, &end, 16);
		size_t left = (size_t)(r->raw.data + r->raw.len - end);
		if (end == p || left < n + 4)
			return;
		r->whole = n == 0;
		if (n == 0)
			return;
		sba_buf_put(&r->body, end + 2, n);
		p = end + 2 + n + 2;
	}
}

static inline void reply_parse(struct reply *r)
{
	const char *head_end = r->raw.data ? strstr(r->raw.data, "\r\n\r\n") : NULL;
	if (!head_end)
		return;
	const char *body = head_end + 4;
	const char *length = strcasestr(r->raw.data, "\r\nContent-Length: ");
	size_t left = (size_t)(r->raw.data + r->raw.len - body);
	r->status = (int)strtol(r->raw.data + strlen("HTTP/1.1 "), NULL, 10);
	if (!length || length > head_end) {
		reply_unchunk(r, body);
		return;
	}
	sba_buf_put(&r->body, body, left);
	r->whole = strtoul(length + strlen("\r\nContent-Length: "), NULL, 10) == left;
}

/* Reads until the server closes (ask for "Connection: close"). */
static inline struct reply client_read_reply(int fd)
{
	struct reply r = { .raw = SBA_BUF_INIT(512 << 20), .body = SBA_BUF_INIT(512 << 20) };
	while (client_read_some(fd, &r))
		;
	close(fd);
	reply_parse(&r);
	sba_buf_puts(&r.body, "");
	return r;
}

static inline struct reply client_call(uint16_t port, const char *line, const char *headers,
				       const char *body)
{
	struct sba_buf h = SBA_BUF_INIT(65536);
	sba_buf_printf(&h, "Connection: close\r\n%s", headers);
	int fd = client_connect(port);
	client_request(fd, line, h.data, body);
	sba_buf_fini(&h);
	return client_read_reply(fd);
}

static inline void reply_fini(struct reply *r)
{
	sba_buf_fini(&r->raw);
	sba_buf_fini(&r->body);
}

#endif
