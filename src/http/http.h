/* SPDX-License-Identifier: MIT */
/*
 * The one HTTP server that the models (and later the gateways) share, and the
 * one HTTP client: libmicrohttpd with a thread per connection and libcurl,
 * behind a door that shows none of them. It knows requests and bodies, not
 * what they mean.
 */
#ifndef SBA_HTTP_H
#define SBA_HTTP_H

#include "base/base.h"

/* ---- server (server.c, strict.c) ---- */

struct sba_http_connection;

/* A request, whole; lent for the call of the handler. */
struct sba_http_request {
	const char *method;
	const char *path;   /* decoded, without the query */
	const char *target; /* as it was sent, with the query */
	const char *body;   /* NUL-ended after body_len bytes; none yet for a judge */
	size_t body_len;
	/* Why no careful client sends such a head, or NULL: two lengths, a
	 * length beside a transfer coding, folded lines, lines that end in a
	 * bare LF, control characters. */
	const char *irregular;
	int stop_fd; /* readable when the server stops or the client has gone; -1 for a judge */
	const struct sba_http_connection *internal;
};
/* A header's value or NULL; names compare without case. */
const char *sba_http_request_header(const struct sba_http_request *r, const char *name);
/* All of them as "Name: value"; the caller frees. */
int sba_http_request_headers(const struct sba_http_request *r, struct sba_strv *ret,
			     struct sba_error *err) SBA_MUST_CHECK;

/* Yields a piece of a streamed answer into buf. It may wait, but only with
 * stop_fd as its cancel descriptor: it is readable when the server stops or
 * the client has gone (half a close counts as gone). > 0 bytes; 0: the end;
 * negative: break the connection off in the middle, so that the client sees a
 * cut stream. */
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

/* Looks at a request's head before its body is kept. True: answer is filled
 * and the body, if any, is thrown away; after an irregular head the connection
 * ends. Same thread as the handler; must not wait, and answers with a body. */
typedef bool sba_http_judge_fn(void *user, const struct sba_http_request *head,
			       struct sba_http_answer *answer);

struct sba_http_server_options {
	const char *address;      /* IPv4 literal; NULL: 127.0.0.1 */
	uint16_t port;            /* 0: any free one */
	unsigned max_connections; /* 0: 256 */
	sba_http_judge_fn *judge; /* NULL: every head is fine */
	sba_http_handler_fn *handler;
	void *user;
};

struct sba_http_server;
/* Bodies are limited to SBA_HTTP_REQUEST_MAX (413). Listening begins before
 * it returns. SBA_EIO: the address cannot be bound; SBA_EUNSUPPORTED:
 * libmicrohttpd is not installed. */
int sba_http_server_open(const struct sba_http_server_options *options,
			 struct sba_http_server **ret, struct sba_error *err) SBA_MUST_CHECK;
uint16_t sba_http_server_port(const struct sba_http_server *s);
/* Ends open streams too; waits for the connection threads. */
void sba_http_server_close(struct sba_http_server *s);

/* ---- client (client.c, client_answer.c) ---- */

/* Speaks HTTP/1.1 over TCP or TLS. Certificates are always verified,
 * redirects never followed, nothing is tried twice once a byte of the body has
 * left, no proxy and no other setting is taken from the environment.
 * Connections are kept for the next call. Any thread; each response belongs to
 * one thread at a time. */
struct sba_http_client;
struct sba_http_response;

struct sba_http_client_options {
	const char *ca_file; /* PEM bundle; NULL: the system's */
};
int sba_http_client_open(const struct sba_http_client_options *options,
			 struct sba_http_client **ret, struct sba_error *err) SBA_MUST_CHECK;
/* After every response of it was closed. NULL is allowed. */
void sba_http_client_close(struct sba_http_client *c);

/* SBA_EINVAL unless it is http:// or https:// with a host, without user,
 * query or fragment. */
int sba_http_url_check(const char *url, struct sba_error *err) SBA_MUST_CHECK;

/* Everything is lent for the call; the body until the response is closed. */
struct sba_http_call {
	const char *method; /* "GET", "HEAD", "POST", "PUT", "PATCH" or "DELETE" */
	const char *url;
	const struct sba_strv *headers; /* "Name: value"; may be NULL */
	const char *secret_header;      /* one more; its copies here are wiped */
	const void *body;               /* not of GET, HEAD and DELETE */
	size_t body_len;
	/* Instead of `body`: its next bytes, > 0, until body_len were given. It must not wait
	 * for long; negative: give up, which breaks the connection off (SBA_EIO). */
	ssize_t (*body_read)(void *body_user, char *buf, size_t size);
	void *body_user;
};

/* Sends and waits for the head of the answer, whatever its status.
 * SBA_ECONNECT: no connection, or its certificate is not trusted (sys_errno is
 * EKEYREJECTED then, and the hint says what to do). SBA_ELOST:
 * it broke before a whole head. SBA_EPROTO, SBA_ELIMIT: not HTTP, too large a
 * head. SBA_ETIMEOUT, SBA_ECANCELED as `until` says (with a libcurl
 * before 7.87 an address that is being looked up is waited for). */
int sba_http_client_send(struct sba_http_client *c, const struct sba_http_call *call,
			 struct sba_until until, struct sba_http_response **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
int sba_http_response_status(const struct sba_http_response *r);
/* "Name: value" each, as they came; lent until close. */
const struct sba_strv *sba_http_response_headers(const struct sba_http_response *r);
/* A header's value or NULL; names compare without case. Lent until close. */
const char *sba_http_response_header(const struct sba_http_response *r, const char *name);
/* What has arrived, as soon as anything has: > 0 bytes; 0: the body is whole;
 * SBA_ELOST: it was cut. */
ssize_t sba_http_response_read(struct sba_http_response *r, char *buf, size_t size,
			       struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* Before the end of the body it closes the connection. NULL is allowed. */
void sba_http_response_close(struct sba_http_response *r);

/* ---- server-sent events (client_sse.c) ---- */

/* Splits a stream into events whatever pieces it comes in. An event whose
 * data is over SBA_SSE_EVENT_MAX is left out and counted. */
struct sba_sse {
	struct sba_buf line; /* begun, its end not seen */
	struct sba_buf data; /* of the event under way */
	bool has_data;
	bool too_large; /* skip to the end of this event */
	bool given;     /* data was lent by the last call */
	uint64_t dropped;
};
void sba_sse_init(struct sba_sse *s);
void sba_sse_fini(struct sba_sse *s);
/* Consumes from *data until an event is whole: true, and ret_event/ret_len
 * are its data, lent until the next call. False: *len is 0. */
bool sba_sse_next(struct sba_sse *s, const char **data, size_t *len, const char **ret_event,
		  size_t *ret_len);

#endif
