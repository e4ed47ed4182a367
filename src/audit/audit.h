/* SPDX-License-Identifier: MIT */
/*
 * The record of sessions on this host: folders by day and session, the CLI's
 * bytes, events, status, retention. It knows a sandbox's name and connections, and
 * what events are; it does not know agents.
 */
#ifndef SBA_AUDIT_H
#define SBA_AUDIT_H

#include <sandbox-agent/audit.h>

#include "base/base.h"

/* Starred out of what is written from now on. */
int sba_audit_hide(struct sba_audit *a, const char *secret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- one turn ---- */

/* Strings are lent for the call. */
struct sba_audit_begin {
	const char *session; /* that it goes on with; NULL: a new one */
	bool aside;
	bool one_turn; /* the sandbox ends with it */
	const char *prompt;
	size_t prompt_len;
	const char *model; /* may be NULL */
};
/* Nothing is written by a turn that could not begin, but what is needed to say so is
 * there: on failure err says why, once, and *ret is NULL, with which all below may
 * be called. */
struct sba_audit_turn;
int sba_audit_turn_begin(struct sba_audit *a, const struct sba_audit_begin *b,
			 struct sba_audit_turn **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Bytes of the CLI's stdout, at most one line's, before the events that they give. */
void sba_audit_turn_raw(struct sba_audit_turn *t, const char *data, size_t len);
/* An event; one with `raw` is of the line that ended last. user is the turn. */
void sba_audit_turn_event(void *user, const struct sba_event *event);
/* Puts what was said so far where others can read it. */
void sba_audit_turn_flush(struct sba_audit_turn *t);
/* The same for one who waits for more, if nothing was put there just now; else in how
 * many milliseconds to ask again. -1: nothing is left. */
int64_t sba_audit_turn_flush_late(struct sba_audit_turn *t);
/* True once if something went wrong: err says what. Nothing more is written then. */
bool sba_audit_turn_trouble(struct sba_audit_turn *t, struct sba_error *err);

struct sba_audit_end {
	const char *session; /* "" if it never came */
	const char *verdict, *error, *answer;
	struct sba_usage usage;
	int exit_status;
	int64_t duration_ms;
	uint64_t tools, unknown_lines;
};
void sba_audit_turn_end(struct sba_audit_turn *t, const struct sba_audit_end *end);
/* Where it is; "" where nothing was written. Lent. */
const char *sba_audit_turn_path(const struct sba_audit_turn *t);
void sba_audit_turn_free(struct sba_audit_turn *t);

#endif
