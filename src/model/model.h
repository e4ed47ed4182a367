/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox's model calls reach on this host: the scripted model (its
 * public header says all), and the relay to a real one, which puts the key in,
 * so that the key never enters a sandbox. It knows wire formats and HTTP, and
 * nothing of agents or sandboxes.
 */
#ifndef SBA_MODEL_H
#define SBA_MODEL_H

#include <sandbox-agent/event.h>
#include <sandbox-agent/model.h>

#include "base/base.h"
#include "base/limits.h"

struct sba_relay;

/* How the key is sent. */
enum sba_key_style {
	SBA_KEY_BEARER,    /* Authorization: Bearer KEY */
	SBA_KEY_X_API_KEY, /* x-api-key: KEY */
	SBA_KEY_HEADER,    /* the header named in key_header, bare */
};

/* Strings are copied; the key is wiped on close. Zero means the default. */
struct sba_relay_options {
	const char *upstream; /* base URL without "/v1": "https://api.anthropic.com"; required */
	const char *key;      /* NULL: none is sent */
	enum sba_key_style key_style;
	const char *key_header;
	const char *token;    /* asked of every request, constant-time; required */
	const char *ca_file;  /* PEM bundle for upstream; NULL: the system's */
	int64_t max_tokens;   /* input + output over the relay's life; 0: none */
	int64_t max_requests; /* in one turn; 0: none */
};

struct sba_relay_stats {
	uint64_t requests;      /* sent upstream */
	uint64_t refused;       /* here: over budget, wrong token, bad path, irregular */
	uint64_t alarms;        /* of these: what looks like one of our tokens, and is another's */
	struct sba_usage usage; /* as the answers said */
	uint64_t estimated;     /* answers whose tokens had to be guessed from their size */
	bool tokens_spent, requests_spent; /* which budget is used up: the next is refused */
	bool key_refused;                  /* by upstream (401), the last time */
	/* Since when in this turn every answer has been a refusal that asking again cannot
	 * change: of the key, or for lack of budget. sba_now_ms(); 0: it is not so. */
	int64_t in_vain_ms;
	/* Answers of this turn that were failures, or did not come; and why the last answer was
	 * one: "HTTP 429". "": it was none. Since when: sba_now_ms(). */
	uint64_t failures;
	char failure[SBA_RELAY_FAILURE_MAX];
	int64_t failed_ms;
};

/*
 * Listens on 127.0.0.1 and speaks to upstream alone, whatever a request says.
 * Takes POST /v1/messages, /v1/messages/count_tokens, /v1/chat/completions and
 * /v1/responses with a Content-Length, and GET /v1/models; answers HEAD
 * /api/hello itself, without a token. Everything else, and everything over
 * budget, is refused in the provider's shape with a status that no client
 * tries again. The body of a request goes out byte for byte, of its headers
 * what relay_headers.c lists; answers come back as they arrive, the key starred
 * out of them as far as docs/relay.md says. Requests under way when a budget runs out are finished.
 * SBA_EINVAL: a bad URL, token, key or header. SBA_EIO: cannot listen.
 */
int sba_relay_open(const struct sba_relay_options *options, struct sba_relay **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
uint16_t sba_relay_port(const struct sba_relay *r);
/* The key, for finding it in what others say; lent. One that is none without a key. */
const struct sba_redact *sba_relay_secret(const struct sba_relay *r);
/* Starts a new count of requests (a turn); tokens go on. Any thread. */
void sba_relay_new_turn(struct sba_relay *r);
void sba_relay_stats_get(struct sba_relay *r, struct sba_relay_stats *ret); /* any thread */
/* Breaks off what is under way. NULL is allowed. */
void sba_relay_close(struct sba_relay *r);

#endif
