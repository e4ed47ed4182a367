/* SPDX-License-Identifier: MIT */
/*
 * A fake engine on a unix socket in a temporary folder, driven by data: which
 * requests must come in, in which order, and what is said to each. One thread
 * per connection; the order holds over all of them.
 */
#ifndef SBA_TEST_FAKE_ENGINE_H
#define SBA_TEST_FAKE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

enum fake_then {
	FAKE_KEEP,    /* wait for the next request on this connection */
	FAKE_CLOSE,   /* close it */
	FAKE_SILENCE, /* say nothing more, close nothing */
	FAKE_ECHO,    /* send what comes back in frames, until it ends, then close */
	FAKE_SWALLOW, /* read until it ends, then send `after` and close */
};

struct fake_exchange {
	const char *method; /* "POST", or NULL: any */
	const char *path;   /* how the path begins after "/v1.41", or NULL: any */
	const char *body;   /* what the body must contain, or NULL */
	const char *answer; /* sent as it is; NULL: nothing */
	size_t answer_len;  /* 0: strlen(answer) */
	const char *after;
	size_t after_len;
	size_t first; /* the first piece has so many bytes, the next waits until it is read */
	bool bytes;   /* every byte is a piece of its own */
	bool early;   /* answer without reading the body */
	bool forever; /* serves every request from here on */
	enum fake_then then;
};

/* Answers that end with the connection: for FAKE_CLOSE. */
#define FAKE_ANSWER(status, body) "HTTP/1.1 " status "\r\n\r\n" body
#define FAKE_EMPTY                "HTTP/1.1 204 No Content\r\n\r\n"

struct fake_engine;

/* /_ping is answered with Api-Version `api` without using up an exchange,
 * unless the next one asks for it. `x` is lent. */
struct fake_engine *fake_engine_start(const char *api, const struct fake_exchange *x, size_t n);
const char *fake_engine_host(const struct fake_engine *f); /* "unix:///tmp/…" */
/* A 200 with a Content-Length, after which the connection can be kept; the
 * caller frees. */
char *fake_json(const char *body);

size_t fake_engine_connections(struct fake_engine *f); /* accepted so far */
size_t fake_engine_requests(struct fake_engine *f);    /* served so far, pings excepted */
/* Wait until so many requests have come, or connections have been closed. */
void fake_engine_await_requests(struct fake_engine *f, size_t n);
void fake_engine_await_closed(struct fake_engine *f, size_t n);
/* Head and body of the i-th request as it came (its first 64 KiB), lent. */
const char *fake_engine_seen(struct fake_engine *f, size_t i);
/* All raw bytes that came after upgrades. */
size_t fake_engine_swallowed(struct fake_engine *f);

/* Ends it; fails the test if a request was not the expected one. */
void fake_engine_stop(struct fake_engine *f);

#endif
