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
	int64_t max_requests; /* 0: none */
};

struct sba_relay_stats {
	uint64_t requests, refused;        /* refused: over budget, wrong token, bad path */
	uint64_t alarms;                   /* a token that is not ours */
	struct sba_usage usage;            /* as the answers said */
	bool tokens_spent, requests_spent; /* which budget has run out */
};

/* Listens on 127.0.0.1 and speaks to upstream alone, whatever a request says.
 * SBA_EINVAL: a bad URL or header. SBA_EIO: cannot listen. */
int sba_relay_open(const struct sba_relay_options *options, struct sba_relay **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
uint16_t sba_relay_port(const struct sba_relay *r);
/* Starts a new count of requests (a turn); tokens go on. */
void sba_relay_new_turn(struct sba_relay *r);
void sba_relay_stats_get(struct sba_relay *r, struct sba_relay_stats *ret);
/* Breaks off what is under way. NULL is allowed. */
void sba_relay_close(struct sba_relay *r);

#endif
