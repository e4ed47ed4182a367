/* SPDX-License-Identifier: MIT */
/* The record of a turn: what its beginning, its middle and its end share. */
#ifndef SBA_AUDIT_TURN_H
#define SBA_AUDIT_TURN_H

#include "audit/private.h"

#include <stdatomic.h>

struct sba_audit_turn {
	struct sba_audit *audit;
	struct sba_audit_folder folder;
	json_t *status, *entry; /* the entry is in the status */
	int events_fd;
	struct sba_buf raw, events;
	int64_t number;
	struct sba_audit_place at; /* of the CLI's line under way */
	int64_t bytes;             /* of session.jsonl, with what is still gathered */
	bool line_ended;
	uint64_t events_n;
	/* The end of a delta that may be the beginning of a secret, until the next. */
	struct sba_buf held;
	struct sba_audit_place held_at;
	enum sba_event_kind held_kind;
	char session[SBA_SESSION_ID_MAX + 1]; /* that the CLI said in this turn */
	bool aside, over;
	atomic_bool dead; /* nothing more is written; trouble says why */
	bool told;
	struct sba_error trouble;
	char *path;
};

/* ---- turn.c ---- */

/* The record ends here, for that reason. */
void sba_audit_turn_give_up(struct sba_audit_turn *t, const struct sba_error *why);
void sba_audit_turn_set_path(struct sba_audit_turn *t);
/* An event of ours, with its secrets starred out. */
void sba_audit_turn_put(struct sba_audit_turn *t, const char *kind, const json_t *payload);
/* What was held back turned out to be followed by something else. */
void sba_audit_turn_let_go(struct sba_audit_turn *t);
/* The CLI has said its session's id. */
void sba_audit_turn_session(struct sba_audit_turn *t, const char *session);
void sba_audit_turn_save(struct sba_audit_turn *t);

/* ---- turn_begin.c ---- */

int sba_audit_turn_start(struct sba_audit_turn *t, const struct sba_audit_begin *b,
			 struct sba_error *err) SBA_MUST_CHECK;

#endif
