/* SPDX-License-Identifier: MIT */
/* A turn under way: what its beginning, its middle and its end share. */
#ifndef SBA_AGENT_TURN_H
#define SBA_AGENT_TURN_H

#include "agent/private.h"

#include <stdatomic.h>

/* Why we ended the CLI ourselves; none if it ended by itself. */
enum ended_by { BY_ITSELF, BY_CALLER, BY_IDLENESS, BY_GRACE, BY_LOOP, BY_REFUSAL };

struct sba_turn {
	struct sba_agent *agent;
	struct sba_process *process;
	struct sba_lock *lock; /* NULL in a sandbox that ends with the turn */
	bool aside;
	char scratch[SBA_SCRATCH_MAX]; /* of a turn aside; "": none */
	int64_t interrupted_ms;        /* when the CLI was asked to stop; 0: it was not */
	bool model_open;               /* the way to it */
	char new_session[37];
	struct sba_stream *stream;
	struct sba_audit_turn *audit; /* NULL: none is kept */
	struct sba_watch *watch;      /* of the workspace; NULL: it cannot be watched */
	struct sba_event_queue events;
	struct sba_notices notices;
	struct sba_lines lines;
	struct sba_buf stderr_tail;
	const char *piece; /* of stdout, not yet cut into lines; the process lends it */
	size_t piece_len;
	char *prompt;
	size_t prompt_len, prompt_sent;
	bool stdin_closed;
	atomic_bool canceled, killed;
	enum ended_by ended_by;
	int64_t began_ms, last_use_ms, done_ms;
	int64_t idle_ms; /* SBA_NEVER: no limit */
	struct {
		int64_t at_ms, next_ms; /* the last look, and when the next one is due */
		int64_t used_ns;        /* by then, since the sandbox began */
	} cpu;
	bool over;
	bool session_kept;
	int64_t oom_kills, pids_refused; /* that the caller has been told of */
	int state_rc;
	struct sba_error state_error;
	struct sba_turn_result result;
	char *answer; /* result.text, where the key had to be looked for */
};

/* ---- turn_begin.c ---- */

/* Lock, state, files, process: all that a turn needs. What is there after a failure
 * is freed with the turn. */
int sba_turn_start(struct sba_turn *t, const struct sba_turn_options *o,
		   struct sba_error *err) SBA_MUST_CHECK;

/* ---- audit.c ---- */

void sba_turn_audit_begin(struct sba_turn *t);
/* Says once that the record broke off, or cannot be kept. */
void sba_turn_audit_look(struct sba_turn *t);
/* t->result is the outcome. */
void sba_turn_audit_end(struct sba_turn *t);
/* It could not begin. */
void sba_turn_audit_failed(struct sba_turn *t, const struct sba_error *why);

/* ---- turn_changes.c ---- */

/* The workspace as it is now. Where that fails, a notice says so. */
void sba_turn_changes_begin(struct sba_turn *t);
/* An event for each file that differs. */
void sba_turn_changes_end(struct sba_turn *t);

/* ---- idle.c ---- */

/* Whether it has been idle for too long: no byte, and no CPU used. *ret_next: when to
 * ask again. */
bool sba_turn_is_idle(struct sba_turn *t, int64_t now, int64_t *ret_next);

/* ---- turn_end.c ---- */

/* As soon as it is known, not at the end: whatever interrupts the turn, the next
 * one finds its conversation. */
void sba_turn_keep_session(struct sba_turn *t);
/* What will be kept at the end, as far as it is known now: at the beginning of a turn
 * whose CLI tells nothing, and once it has said its last word. */
void sba_turn_keep_early(struct sba_turn *t);
/* What the sandbox has lost to its limits, each told once. */
void sba_turn_tell_losses(struct sba_turn *t, int64_t oom_kills, int64_t pids_refused);
/* The verdict, once the process's output is over. */
void sba_turn_finish(struct sba_turn *t);
/* The folder of a turn aside, and the lock. */
void sba_turn_clear_up(struct sba_turn *t);

#endif
