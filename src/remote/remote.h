/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes of services (OpenSandbox, E2B) behind the table of functions of a sandbox. It
 * knows HTTP and the sandbox's table, and nothing of engines or agents.
 */
#ifndef SBA_REMOTE_H
#define SBA_REMOTE_H

#include <sandbox-agent/remote.h>

#include "base/base.h"

#include <sandbox-agent/process.h>

/* ---- Connect's envelopes, which envd's streams are made of (envelope.c) ---- */

/* Splits a stream into messages whatever pieces it comes in. */
struct sba_envelopes {
	unsigned char head[5];
	size_t head_len;
	struct sba_buf message; /* under way */
	bool given;             /* it was lent by the last call */
};
enum { SBA_ENVELOPE_COMPRESSED = 1, SBA_ENVELOPE_END = 2 };
void sba_envelopes_init(struct sba_envelopes *e);
void sba_envelopes_fini(struct sba_envelopes *e);
/* Consumes from *data until a message is whole: 1, and its flags and bytes, lent until the
 * next call. 0: *len is 0. SBA_ELIMIT: one that is too large; SBA_ENOMEM. */
int sba_envelopes_next(struct sba_envelopes *e, const char **data, size_t *len, int *ret_flags,
		       const char **ret_message, size_t *ret_len);
void sba_envelope_put(struct sba_buf *b, const char *json, size_t len);

/* ---- what runs inside, as it is told to (shell.c) ---- */

enum { SBA_REMOTE_ID_LEN = 32 };
/* One word for a shell. */
void sba_shell_quote(struct sba_buf *b, const char *word);

/* Looks for the one record that our script writes among what a command prints: how it
 * ended, or why it did not begin. All else is passed on. */
struct sba_shell_scan {
	char id[SBA_REMOTE_ID_LEN + 1];
	char held[80]; /* what may be the beginning of it */
	size_t held_len;
	char word[16]; /* of the record, once it was there */
	bool found;
};
typedef int sba_shell_pass_fn(void *user, const char *data, size_t len);
/* A negative return of pass ends it. At the end of the stream: data NULL. */
int sba_shell_scan(struct sba_shell_scan *s, const char *data, size_t len, sba_shell_pass_fn *pass,
		   void *user);
/* What a record's word means; false: nothing. */
bool sba_shell_exit(const char *word, struct sba_exit *ret);

/* ---- what services say (words.c) ---- */

/* The code and the words of an error's body, whatever shape it has, fit for a terminal and
 * without the secrets (may be NULL); "" where there are none. */
struct sba_remote_words {
	char code[80];
	char text[400];
};
void sba_remote_words(const char *body, size_t len, const char *const secrets[2],
		      struct sba_remote_words *ret);
/* "signal: killed (core dumped)", "exit status 3": Go's words for how a command ended. */
bool sba_remote_status(const char *words, struct sba_exit *ret);
/* RFC 3339 as UNIX seconds; 0: it is none. */
int64_t sba_remote_time(const char *text);
/* The reverse. */
void sba_remote_time_put(int64_t unix_s, char ret[32]);

#endif
