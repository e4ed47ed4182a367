/* SPDX-License-Identifier: MIT */
/*
 * What the files of the relay share. A request goes one way: relay.c judges
 * it, relay_headers.c says what of it may pass, relay_answer.c brings the answer
 * back through relay_redact.c and relay_count.c.
 */
#ifndef SBA_MODEL_RELAY_PRIVATE_H
#define SBA_MODEL_RELAY_PRIVATE_H

#include "base/limits.h"
#include "http/http.h"
#include "model/model.h"
#include "model/private.h"

#include <pthread.h>

struct sba_relay {
	struct sba_http_server *server;
	struct sba_http_client *client;
	char *upstream; /* without a slash at its end */
	char *token;
	char *secret_header;       /* wiped on close; NULL: no key */
	struct sba_redact *secret; /* the key, which must not come back */
	int64_t max_tokens, max_requests;
	pthread_mutex_t lock; /* of what follows */
	struct sba_relay_stats stats;
	int64_t turn_requests;
};

/* ---- headers (relay_headers.c) ---- */

/* Of "Name: value" lines, those that may pass. */
int sba_relay_request_headers(const struct sba_strv *from, struct sba_strv *ret,
			      struct sba_error *err) SBA_MUST_CHECK;
/* The same of an answer, with the key starred out. */
int sba_relay_answer_headers(const struct sba_relay *r, const struct sba_strv *from,
			     struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;
/* The header that carries the key, checked. */
int sba_relay_secret_header(const struct sba_relay_options *o, char **ret,
			    struct sba_error *err) SBA_MUST_CHECK;

/* ---- redaction (relay_redact.c) ---- */

struct sba_relay_held;
struct sba_relay_piece;

/* One text of the answer that ends as the key begins. */
struct sba_relay_lane {
	uint64_t id;
	struct sba_buf tail; /* that end; empty: the lane is free */
	struct sba_relay_piece *pieces;
};

/* One answer on its way. */
struct sba_relay_redact {
	const struct sba_redact *secret;
	bool sse;
	size_t shown;        /* bytes of a key's beginning that need not wait */
	struct sba_buf part; /* an event that is not whole yet, or what may begin a key */
	bool in_line;        /* the line under way has bytes */
	bool oversized;      /* the event under way is too large to be looked into */
	struct sba_relay_held *first, *last;
	size_t held_bytes;
	struct sba_relay_lane lanes[SBA_RELAY_LANES_MAX];
	size_t n_lanes; /* in use */
	struct sba_buf out;
};
/* The secret is lent. */
void sba_relay_redact_init(struct sba_relay_redact *d, const struct sba_redact *secret, bool sse);
void sba_relay_redact_fini(struct sba_relay_redact *d);
/* Adds to d->out what may pass; data is written to. SBA_ENOMEM, SBA_ELIMIT. */
int sba_relay_redact_feed(struct sba_relay_redact *d, char *data, size_t len) SBA_MUST_CHECK;
/* Nothing follows. */
int sba_relay_redact_end(struct sba_relay_redact *d) SBA_MUST_CHECK;

/* ---- tokens (relay_count.c) ---- */

enum sba_relay_wire {
	SBA_RELAY_CHAT,
	SBA_RELAY_MESSAGES,
	SBA_RELAY_RESPONSES,
};

/* Reads the tokens off one answer while it passes. */
struct sba_relay_count {
	enum sba_relay_wire wire;
	bool sse;
	struct sba_sse split;
	struct sba_buf whole; /* an answer that is no stream */
	uint64_t request_bytes, bytes, events;
	int64_t input, cache_written, cached, output, reasoning;
	bool has_input, complete;
	bool estimated;
};
void sba_relay_count_init(struct sba_relay_count *c, enum sba_relay_wire wire, bool sse,
			  size_t request_bytes);
void sba_relay_count_fini(struct sba_relay_count *c);
void sba_relay_count_feed(struct sba_relay_count *c, const char *data, size_t len);
/* The answer is over, whole or not: what it did not say is estimated. */
void sba_relay_count_end(struct sba_relay_count *c);
struct sba_usage sba_relay_count_usage(const struct sba_relay_count *c);

/* ---- answers (relay_answer.c) ---- */

/* One kind of request that passes. */
struct sba_relay_route {
	const char *method, *path;
	const struct sba_model_wire *wire; /* for the shape of errors */
	enum sba_relay_wire counted_as;
	bool generates; /* its answer says tokens */
};

/* Makes the client's answer of upstream's, which it takes over. */
int sba_relay_answer(struct sba_relay *r, const struct sba_relay_route *route, size_t request_bytes,
		     struct sba_http_response *take_up, struct sba_http_answer *answer,
		     struct sba_error *err) SBA_MUST_CHECK;
/* What upstream, or we ourselves, answered: whether asking on makes sense. */
void sba_relay_note(struct sba_relay *r, int status, bool ours);
/* Upstream gave no answer. */
void sba_relay_note_silence(struct sba_relay *r, const char *why);
/* Adds what an answer cost beyond what it was known to have cost before. */
void sba_relay_spend(struct sba_relay *r, const struct sba_usage *before,
		     const struct sba_usage *now, bool estimated);

#endif
