/* SPDX-License-Identifier: MIT */
/*
 * The audit: what was said and done in a session, kept on this host.
 *
 *   ROOT/YYYYMMDD/SESSION/session.jsonl  the CLI's stdout, byte for byte
 *                         events.jsonl   one event a line, secrets starred out
 *                         status.json    who and what, one entry for each turn
 *
 * Agents write it by themselves where sba_agent_options.audit says so. It never
 * fails a turn: what goes wrong is told once, as a notice among the turn's events.
 * Each handle here is for one thread at a time.
 */
#ifndef SANDBOX_AGENT_AUDIT_H
#define SANDBOX_AGENT_AUDIT_H

#include <sandbox-agent/error.h>
#include <sandbox-agent/event.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_sandbox;

/* Strings are copied. */
struct sba_audit_options {
	const char *root;       /* absolute; made where it is missing; required */
	int64_t retention_days; /* 0: nothing is ever removed */
	/* Starred out of events and status besides the agent's key and token; each of 8
	 * bytes or more; NULL-ended, or NULL. */
	const char *const *secrets;
	uint64_t reserved[8];
};

/* ---- what the caller does himself ---- */

struct sba_audit;
/* The record of what is done in `s` (lent, outlives it), connections through its rules
 * included. Nothing is written before there is something to say. The caller
 * closes it before s. */
SBA_API int sba_audit_open(const struct sba_audit_options *options, struct sba_sandbox *s,
			   struct sba_audit **ret, struct sba_error *err);
/* One event with `line` null, in the folder of the sandbox's session: kind is a word
 * ("command", "transfer"), payload an object's JSON text. SBA_EREFUSED: the root is a
 * link, another's, or open to others. */
SBA_API int sba_audit_record(struct sba_audit *a, const char *kind, const char *payload,
			     struct sba_error *err);
SBA_API void sba_audit_close(struct sba_audit *a); /* NULL is allowed */

/* ---- finding ---- */

/* One folder. Strings are lent with the list, never NULL. */
struct sba_audit_session {
	const char *name; /* of the folder: the session's id, "ID+2" or "pending-…" */
	const char *path;
	const char *day;     /* "20261129", of its first turn */
	const char *session; /* the CLI's id; "" if it never came */
	const char *agent, *sandbox, *sandbox_id, *image;
	const char *prompt;  /* of the first turn; may be cut */
	const char *verdict; /* of the last turn; "running", "unfinished" (its writer died), "" */
	const char *status;  /* status.json as it is */
	int64_t created_ms, updated_ms; /* UNIX time */
	uint64_t turns;
	struct sba_usage usage; /* of all turns */
};

/* Zero means all. */
struct sba_audit_filter {
	const char *agent, *verdict, *day, *sandbox; /* day as in the folder's name */
	uint64_t reserved[8];
};
struct sba_audit_list;
/* Newest activity first; of no root at all: none. SBA_EREFUSED as above. The caller
 * frees. */
SBA_API int sba_audit_list(const char *root, const struct sba_audit_filter *filter,
			   struct sba_audit_list **ret, struct sba_error *err);
SBA_API size_t sba_audit_list_count(const struct sba_audit_list *l);
/* Lent with the list; NULL behind its end. */
SBA_API const struct sba_audit_session *sba_audit_list_at(const struct sba_audit_list *l, size_t n);
/* By a folder's name, a session's id, or a beginning of one that only one has; lent with
 * the list. SBA_ENOTFOUND: none. SBA_EINVAL: several begin so. */
SBA_API int sba_audit_list_find(const struct sba_audit_list *l, const char *id,
				const struct sba_audit_session **ret, struct sba_error *err);
SBA_API void sba_audit_list_free(struct sba_audit_list *l); /* NULL is allowed */

/* ---- reading ---- */

/* One line of events.jsonl. Strings are lent until the next call, NULL where there is
 * nothing to say. */
struct sba_audit_row {
	int64_t line, offset; /* into session.jsonl; line 0: it is not from there */
	int64_t turn;         /* 0: outside of any */
	int64_t time_ms;      /* UNIX time */
	const char *kind;
	const char *payload; /* JSON text */
	const char *text;    /* the line as it is, without its newline */
	size_t len;
	bool is_event;          /* kind is one of the CLI's, told in `event` */
	struct sba_event event; /* raw is NULL; the last member, so that it may grow */
};

struct sba_audit_reader;
/* Opens events.jsonl of s, which need not outlive it. SBA_ENOTFOUND: it is gone by now.
 * The caller closes. */
SBA_API int sba_audit_reader_open(const struct sba_audit_session *s, struct sba_audit_reader **ret,
				  struct sba_error *err);
/* 1 and *ret; 0: no more is there now. Waits at most wait_ms for more (-1: for ever);
 * a line that is no event is passed over and counted. */
SBA_API int sba_audit_reader_next(struct sba_audit_reader *r, int64_t wait_ms,
				  const struct sba_audit_row **ret, struct sba_error *err);
/* A descriptor that poll() says is readable when more may be there. */
SBA_API int sba_audit_reader_fd(const struct sba_audit_reader *r);
/* How many lines were passed over so far. */
SBA_API uint64_t sba_audit_reader_bad(const struct sba_audit_reader *r);
/* Whether a turn is being written there. */
SBA_API bool sba_audit_reader_busy(const struct sba_audit_reader *r);
SBA_API void sba_audit_reader_close(struct sba_audit_reader *r); /* NULL is allowed */

/* ---- retention ---- */

/* Removes each day whose newest activity is older than so many days, but none with a
 * turn under way, nor anything else in the root. 0 days: none. *ret_removed may be
 * NULL. SBA_EREFUSED as above. */
SBA_API int sba_audit_prune(const char *root, int64_t retention_days, int *ret_removed,
			    struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
