/* SPDX-License-Identifier: MIT */
/* What the parts of the audit share. */
#ifndef SBA_AUDIT_PRIVATE_H
#define SBA_AUDIT_PRIVATE_H

#include "audit/audit.h"

#include "base/limits.h"
#include "drivers/drivers.h"
#include "sandbox/sandbox.h"

#define SBA_AUDIT_RAW    "session.jsonl"
#define SBA_AUDIT_EVENTS "events.jsonl"
#define SBA_AUDIT_STATUS "status.json"

enum { SBA_AUDIT_DAY = 9, SBA_AUDIT_TIME = 32 };

/* Whose record it is; strings are owned, never NULL. */
struct sba_audit_who {
	char *sandbox, *sandbox_id, *agent, *image, *user, *network, *allow, *provider;
	char *digest;  /* of the image; "" until it was asked for */
	char *version; /* of the CLI, by the image's tag; "" where that does not say */
};

struct sba_audit {
	char *root;
	int64_t retention_days;
	struct sba_redact *secrets[SBA_AUDIT_SECRETS_MAX];
	size_t secrets_n;
	struct sba_audit_who who;
	struct sba_sandbox *sandbox; /* NULL in tests */
	struct sba_observer observer;
	struct sba_audit_connections *connections;
	bool asked, pruned;
	pthread_mutex_t lock;        /* of all below; connections come on other threads */
	struct sba_audit_turn *turn; /* under way; NULL: none */
};

/* Without a sandbox; takes what is in who, on failure too. */
int sba_audit_new(const struct sba_audit_options *o, struct sba_audit_who *take_who,
		  struct sba_audit **ret, struct sba_error *err) SBA_MUST_CHECK;

/* The image's digest and what may be secret of the sandbox's environment, from the
 * engine, once. */
void sba_audit_ask(struct sba_audit *a);
/* The values of "K=V" whose names say that they are secret. */
void sba_audit_hide_env(struct sba_audit *a, const json_t *env);

/* What a thread noticed at some time, told later. */
int sba_audit_record_at(struct sba_audit *a, const char *kind, const char *payload, int64_t time_ms,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- connections.c ---- */

struct sba_audit_connections;
int sba_audit_connections_open(struct sba_audit *a, struct sba_audit_connections **ret,
			       struct sba_error *err) SBA_MUST_CHECK;
/* Of an observer, whose user they are: never waits for what is written. */
void sba_audit_connections_tell(void *connections, const struct sba_connection *told);
/* Waits until those that were told are written, without a's lock; NULL is allowed. */
void sba_audit_connections_settle(struct sba_audit_connections *c);
/* After the last one was told; writes what is left. NULL is allowed. */
void sba_audit_connections_close(struct sba_audit_connections *c);

/* ---- root.c: the root and its days ---- */

/* make: it and what is above it, where they are missing. SBA_ENOTFOUND without. */
int sba_audit_root_open(const char *path, bool make, int *ret_fd,
			struct sba_error *err) SBA_MUST_CHECK;
/* Eight digits that are a day of the calendar. */
bool sba_audit_is_day(const char *name);
void sba_audit_day_of(int64_t unix_ms, char ret[SBA_AUDIT_DAY]);
/* Opened and held against retention until the descriptor is closed. SBA_ENOTFOUND. */
int sba_audit_day_open(int root_fd, const char *day, bool make, int *ret_fd,
		       struct sba_error *err) SBA_MUST_CHECK;
/* Names of what is in a folder: days only, newest first, or sessions. */
int sba_audit_days(int root_fd, struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_audit_names(int day_fd, struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;
/* "2026-11-29T22:30:43.123Z", and back (0: it is none). */
void sba_audit_time(int64_t unix_ms, char ret[SBA_AUDIT_TIME]);
int64_t sba_audit_time_parse(const char *text);

/* ---- folder.c: a session's folder ---- */

struct sba_audit_folder {
	char day[SBA_AUDIT_DAY];
	char name[SBA_AUDIT_NAME_MAX + 1];
	int root_fd, day_fd, fd; /* -1: not open */
	int raw_fd;              /* of a turn: session.jsonl, whose lock says whose turn it is */
	bool pending;            /* no session's id yet */
};
#define SBA_AUDIT_FOLDER_INIT                                                                      \
	{                                                                                          \
		.root_fd = -1, .day_fd = -1, .fd = -1, .raw_fd = -1                                \
	}
void sba_audit_folder_close(struct sba_audit_folder *f);
/* For a turn: the one of its session, else one that was begun for the sandbox before
 * its first turn, else a new one; nobody else writes into it then. */
int sba_audit_folder_for_turn(struct sba_audit *a, const char *session, bool aside,
			      struct sba_audit_folder *ret, json_t **ret_status,
			      struct sba_error *err) SBA_MUST_CHECK;
/* Whether a turn is being written there. */
bool sba_audit_folder_held(int folder_fd);
/* For what is done outside of turns: the sandbox's present one, or a new one. */
int sba_audit_folder_for_sandbox(struct sba_audit *a, struct sba_audit_folder *ret,
				 struct sba_error *err) SBA_MUST_CHECK;
/* The id came: the folder is called so, or ID+2 where that is taken. */
int sba_audit_folder_rename(struct sba_audit *a, struct sba_audit_folder *f, const char *session,
			    struct sba_error *err) SBA_MUST_CHECK;

/* ---- status.c ---- */

/* A fresh one, without turns. */
json_t *sba_audit_status_new(const struct sba_audit *a);
/* SBA_ENOTFOUND, SBA_EPROTO. */
int sba_audit_status_load(int folder_fd, json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Whole or not at all. */
int sba_audit_status_save(int folder_fd, json_t *status, struct sba_error *err) SBA_MUST_CHECK;
bool sba_audit_status_is_of(const json_t *status, const char *sandbox_id);
bool sba_audit_status_has(const json_t *status, const char *session);
int sba_audit_status_add_session(json_t *status, const char *session);

/* ---- hide.c ---- */

/* Secrets starred out of a whole text, in place. */
void sba_audit_hide_in(const struct sba_audit *a, char *text, size_t len);
/* How much of it may be shown before what follows is known. */
size_t sba_audit_hide_part(const struct sba_audit *a, char *text, size_t len);
/* A JSON string of bytes, at most max of them, without secrets. */
json_t *sba_audit_text(const struct sba_audit *a, const void *data, size_t len, size_t max);

/* ---- compact.c ---- */

/* Certainly JSON, on one line. */
bool sba_audit_is_compact(const char *text);

/* ---- line.c: an event as a line ---- */

/* How many bytes stand in a string of JSON as they are. */
size_t sba_audit_plain_length(const char *s, size_t len);

struct sba_audit_place {
	int64_t line, offset; /* line 0: none */
	int64_t turn;         /* 0: none */
	int64_t time_ms;
};
/* Appends the whole line with its newline. */
void sba_audit_line_event(struct sba_buf *b, const struct sba_audit_place *at,
			  const struct sba_event *e);
/* payload is an object's JSON text without newlines. */
void sba_audit_line_other(struct sba_buf *b, const struct sba_audit_place *at, const char *kind,
			  const char *payload);

/* ---- turn.c ---- */

/* One event of ours into the turn under way; any thread, with a's lock held. */
void sba_audit_turn_other(struct sba_audit_turn *t, const char *kind, const char *payload,
			  int64_t time_ms);
/* Opens events.jsonl to append; a line that a full disk has cut is ended. */
int sba_audit_events_open(int folder_fd, struct sba_error *err) SBA_MUST_CHECK;

/* ---- read.c ---- */

/* One line as a row that lends from *ret_json; false: it is none. */
bool sba_audit_row_parse(const char *text, size_t len, json_t **ret_json, char **ret_payload,
			 struct sba_audit_row *ret);

#endif
