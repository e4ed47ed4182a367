/* SPDX-License-Identifier: MIT */
/* The record of a turn: what its beginning, its middle and its end share. */
#ifndef SBA_AUDIT_TURN_H
#define SBA_AUDIT_TURN_H

#include "audit/private.h"

#include <stdatomic.h>

struct sba_audit_turn {
	struct sba_audit *audit;
	struct sba_audit_folder folder;
	json_t *status, *entry;      /* the entry is in the status */
	struct sba_audit_feed *feed; /* NULL once it is over */
	int events_fd;
	struct sba_buf events;
	int64_t number;
	struct sba_audit_place at; /* of the CLI's line under way */
	int64_t bytes;             /* of session.jsonl, as far as it was told */
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
	pthread_mutex_t trouble_lock;
	struct sba_error trouble; /* the first */
	char *path;
};

/* ---- feed.c: the thread that writes; between its beginning and its end all but the
 * feed is that thread's ---- */

struct sba_audit_feed;
int sba_audit_feed_open(struct sba_audit_turn *t, struct sba_error *err) SBA_MUST_CHECK;
/* All that was said is written then; NULL is allowed. */
void sba_audit_feed_close(struct sba_audit_turn *t);
/* Waits until all that was said is written; for tests. */
void sba_audit_turn_settle(struct sba_audit_turn *t);

/* ---- turn.c ---- */

/* Bytes of the CLI go to the file; then they are told piece by piece, each at most one
 * line's, with the events between them. */
void sba_audit_turn_write_raw(struct sba_audit_turn *t, const char *data, size_t len);
void sba_audit_turn_take_piece(struct sba_audit_turn *t, const char *data, size_t len);
void sba_audit_turn_take_event(struct sba_audit_turn *t, const struct sba_event *e);
/* What was taken of events goes to the file. */
void sba_audit_turn_write(struct sba_audit_turn *t);

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
