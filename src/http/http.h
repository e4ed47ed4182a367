/* SPDX-License-Identifier: MIT */
/*
 * The one HTTP server that the scripted model (and later the gateways) share:
 * libmicrohttpd with a thread per connection behind a door that shows none of
 * it. It knows routes and bodies, not what they mean.
 */
#ifndef SBA_HTTP_H
#define SBA_HTTP_H

#include "base/base.h"

/* A request, whole; lent for the call of the handler. */
struct sba_http_request {
	const char *method;
	const char *path; /* decoded, without the query */
	const char *body; /* NUL-ended after body_len bytes */
	size_t body_len;
	void *internal;
};
/* A header's value or NULL; names compare without case. */
const char *sba_http_request_header(const struct sba_http_request *r, const char *name);

/* Yields a piece of a streamed answer into buf. It may wait, but only with
 * sba_wait_fd(-1, 0, {deadline, stop_fd}): stop_fd is readable when the server
 * stops. > 0 bytes; 0: the end; negative: break the connection off in the
 * middle, so that the client sees a cut stream. */
typedef ssize_t sba_http_stream_fn(void *stream_user, char *buf, size_t size, int stop_fd);

/* The answer: a fixed body, or a stream if `stream` is set. */
struct sba_http_answer {
	int status;
	const char *content_type; /* a literal */
	struct sba_strv headers;  /* "Name: value", more of them */
	struct sba_buf body;      /* taken over by the server */
	sba_http_stream_fn *stream;
	void *stream_user; /* taken over */
	void (*stream_free)(void *stream_user);
	bool hang_up; /* close without any answer */
};

/* Runs on the connection's own thread. Fills the answer (zeroed before). */
typedef void sba_http_handler_fn(void *user, const struct sba_http_request *request,
				 struct sba_http_answer *answer);

struct sba_http_server_options {
	const char *address;      /* IPv4 literal; NULL: 127.0.0.1 */
	uint16_t port;            /* 0: any free one */
	unsigned max_connections; /* 0: 256 */
	sba_http_handler_fn *handler;
	void *user;
};

struct sba_http_server;
/* Bodies are limited to SBA_HTTP_REQUEST_MAX (413). Listening begins before
 * it returns. SBA_EIO: the address cannot be bound. */
int sba_http_server_open(const struct sba_http_server_options *options,
			 struct sba_http_server **ret, struct sba_error *err) SBA_MUST_CHECK;
uint16_t sba_http_server_port(const struct sba_http_server *s);
/* Ends open streams too; waits for the connection threads. */
void sba_http_server_close(struct sba_http_server *s);

#endif
