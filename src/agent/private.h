/* SPDX-License-Identifier: MIT */
/* What the files of this module share: the agent, its state inside, its queues. */
#ifndef SBA_AGENT_PRIVATE_H
#define SBA_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/dump.h"
#include "audit/audit.h"
#include "base/limits.h"
#include "drivers/drivers.h"
#include "model/model.h"
#include "sandbox/sandbox.h"

enum { SBA_TOKEN_BYTES = 16 };

/* What is starred out of all that is said. */
struct sba_secrets {
	struct sba_redact *own[SBA_LOGIN_SECRETS_MAX]; /* of a login */
	size_t own_n;
	const struct sba_redact *key; /* the relay's; lent; NULL: none */
};

/* A writing of the state that is under way, or was. */
struct sba_early_save {
	struct sba_sandbox *sandbox;
	pthread_t thread;
	bool running;
	char *text; /* NULL: none */
	int rc;     /* once it does not run */
};

struct sba_agent {
	struct sba_sandbox *sandbox;
	const struct sba_driver *driver;
	struct sba_driver own;   /* what driver points to, if it is the user's */
	json_t *program;         /* of the sandbox, for drivers that run one; NULL: none */
	struct sba_model *model; /* the scripted one, while offline */
	struct sba_relay *relay; /* the way to a real one, else */
	struct sba_audit *audit; /* NULL: none is kept */
	bool audit_told;         /* that it cannot be kept */
	uint16_t host_port;      /* where the model is here, on loopback */
	char token[2 * SBA_TOKEN_BYTES + 1];
	char *model_name;   /* NULL: the driver's default */
	int64_t max_tokens; /* 0: no limit */
	bool budget_told;   /* that most of it is spent */
	bool login;         /* no relay: the CLI's own login is in the sandbox */
	struct sba_secrets secrets;
	enum sba_permissions permissions;
	bool one_turn, no_turns;
	bool workdir_known;                   /* it is there */
	bool state_known;                     /* the fields below were read or set */
	char session[SBA_SESSION_ID_MAX + 1]; /* the main line; "" before the first turn */
	int64_t turns;
	char files[SBA_FILES_MARK]; /* which of the driver's files are in the sandbox */
	char *home;                 /* of the sandbox's user; NULL: not asked yet */
	json_t *memory;             /* of sessions, by id, the last used one last; NULL: none */
	struct sba_early_save early;
	struct sba_lock *screen_lock; /* while a screen is open */
	bool screen_model;            /* its way to the model is open */
};

/* ---- state.c: what changes about an agent, kept inside its sandbox ---- */

/* Takes what the file says; a fuzz target's door too. */
int sba_agent_parse_state(struct sba_agent *a, const char *text, size_t len,
			  struct sba_error *err) SBA_MUST_CHECK;
int sba_agent_load_state(struct sba_agent *a, struct sba_error *err) SBA_MUST_CHECK;
/* A turn has begun in that session. kept: by the driver, of a new one; NULL: nothing. */
int sba_agent_save_state(struct sba_agent *a, const char *session, const char *kept,
			 struct sba_error *err) SBA_MUST_CHECK;
/* The main session is another now; "": the next turn begins anew. m: what is
 * remembered of it from now on; NULL: what is. */
int sba_agent_set_session(struct sba_agent *a, const char *session, const struct sba_memory *m,
			  struct sba_error *err) SBA_MUST_CHECK;
/* A turn of the main session has ended, with these tokens. kept: by the driver, for
 * the next one; NULL: nothing. */
int sba_agent_save_turn(struct sba_agent *a, const char *kept, const struct sba_usage *usage,
			struct sba_error *err) SBA_MUST_CHECK;
/* Begins to write what that would, after so many turns. Whatever changes the state, and
 * sba_early_save_end(), waits for it; the same again is then no work. */
void sba_agent_save_early(struct sba_agent *a, int64_t turns, const char *kept,
			  const struct sba_usage *usage);
/* All zero for a session that nothing is remembered of; the caller frees .kept. */
int sba_agent_recall(const struct sba_agent *a, const char *session, struct sba_memory *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Of a session that is not the main one; NULL: forgets it. */
int sba_agent_remember(struct sba_agent *a, const char *session, const struct sba_memory *m,
		       struct sba_error *err) SBA_MUST_CHECK;

int sba_agent_write_state(struct sba_sandbox *s, const char *text,
			  struct sba_error *err) SBA_MUST_CHECK;

/* ---- early_save.c ---- */

void sba_early_save_begin(struct sba_early_save *h, struct sba_sandbox *s, char *take_text);
/* Waits for what is under way, and forgets it. Whether that text was written. */
bool sba_early_save_has(struct sba_early_save *h, const char *text);
void sba_early_save_end(struct sba_early_save *h);

/* ---- command.c ---- */

/* The CLI's command: of `wish` session, new_session, aside, scratch and screen count. The
 * way to the model is open from then on, until sba_sandbox_unforward(), if *ret_open says
 * so, also after a failure. */
int sba_agent_command(struct sba_agent *a, const struct sba_turn_spec *wish, bool *ret_open,
		      struct sba_command *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- lodging.c ---- */

enum { SBA_PLACE_MAX = 320 };
/* "image 'x'", "local sandbox 'y'": where a program is missing. Returns ret. */
const char *sba_agent_place(const struct sba_sandbox *s, char ret[SBA_PLACE_MAX]);

/* SBA_ENOCLI: the driver's binary is not in "image 'x'"; says how to get it. */
int sba_agent_no_cli(const struct sba_driver *d, const char *binary, const char *place,
		     struct sba_error *err);

/* ---- login.c ---- */

/* Whether turns go without the relay; what is secret in the login is hidden in any case. */
int sba_agent_read_login(struct sba_agent *a, const struct sba_agent_options *o,
			 struct sba_error *err) SBA_MUST_CHECK;
void sba_secrets_fini(struct sba_secrets *s);
bool sba_secrets_none(const struct sba_secrets *s); /* NULL is none */
/* Stars them out in place; scan as of sba_redact(). Returns how much is safe to show. */
size_t sba_secrets_hide(const struct sba_secrets *s, char *text, size_t len, bool last);

/* ---- audit.c ---- */

/* What is done to the agent outside of turns, where a record is kept. */
void sba_agent_record(struct sba_agent *a, const char *kind, json_t *take_payload);
/* action: "use", "copy", "remove", "dump", "load"; new_id may be NULL. */
void sba_agent_record_session(struct sba_agent *a, const char *action, const char *id,
			      const char *new_id);

/* ---- files.c: what the driver needs inside ---- */

/* The agent's working directory is there: an image that is not ours need not have it. */
int sba_agent_workdir(struct sba_agent *a, struct sba_error *err) SBA_MUST_CHECK;

int sba_agent_place_files(struct sba_agent *a, struct sba_error *err) SBA_MUST_CHECK;

/* ---- inside.c: the sandbox as a store sees it ---- */

/* Lends from the agent. */
int sba_agent_inside(struct sba_agent *a, struct sba_inside *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* A folder for one turn, and its end. */
int sba_agent_scratch(const struct sba_inside *in, char ret[SBA_SCRATCH_MAX],
		      struct sba_error *err) SBA_MUST_CHECK;
void sba_agent_scratch_drop(const struct sba_inside *in, const char *scratch);

/* ---- lock.c: one turn at a time, whoever begins it ---- */

/* SBA_EBUSY: a turn is under way, and was for all of wait_ms (-1: for ever). What
 * is known of the state is read anew after it. */
int sba_agent_lock(struct sba_agent *a, int64_t wait_ms, struct sba_lock **ret,
		   struct sba_error *err) SBA_MUST_CHECK;

/* ---- queue.c: events that a line gave, until the caller has taken them ---- */

/* The end of a text that comes in deltas, where it may be the beginning of a secret. */
struct sba_text_hold {
	struct sba_buf text;
	enum sba_event_kind kind;
	bool delta; /* what is held goes on with a block that was begun */
	char session[SBA_SESSION_ID_MAX + 1];
};

struct sba_event_queue {
	struct sba_text_hold hold;
	struct sba_queued *first, *last;
	struct sba_queued *lent;           /* what the caller looks at */
	const struct sba_secrets *secrets; /* starred out of every string; lent, may be NULL */
	/* Looks at each as it comes in, with its raw line; may be NULL. */
	void (*tap)(void *user, const struct sba_event *event);
	void *tap_user;
};
/* An sba_event_fn; user is the queue. Copies all but raw. With secrets, the end of a
 * delta may wait for the next one, or for what is no part of its text. */
int sba_event_queue_put(void *user, const struct sba_event *event);
/* Nothing more comes of the text that waits. */
int sba_event_queue_flush(struct sba_event_queue *q);
/* The next one, lent until the following call; NULL if there is none. */
const struct sba_event *sba_event_queue_take(struct sba_event_queue *q);
bool sba_event_queue_empty(const struct sba_event_queue *q);
void sba_event_queue_fini(struct sba_event_queue *q);

/* ---- notices.c: what a turn has to say that its CLI does not ---- */

struct sba_notices {
	pthread_mutex_t lock;
	struct sba_strv lines; /* said so far, each once */
	size_t taken;
	uint64_t failures_told;
	int fd; /* readable when there are new ones */
	struct sba_observer observer;
	struct sba_sandbox *sandbox; /* NULL: not open */
};
int sba_notices_open(struct sba_notices *n, struct sba_sandbox *s,
		     struct sba_error *err) SBA_MUST_CHECK;
void sba_notices_close(struct sba_notices *n);
void sba_notices_say(struct sba_notices *n, const char *line); /* any thread */
/* What the relay knows: once that most of the agent's budget is spent; and that the model
 * failed, where the CLI, last heard of at heard_ms, says nothing of it. */
void sba_notices_relay(struct sba_notices *n, struct sba_agent *a, int64_t heard_ms);
void sba_notices_seen(struct sba_notices *n); /* makes fd unreadable */
/* Puts the new ones into the queue. */
int sba_notices_take(struct sba_notices *n, struct sba_event_queue *to) SBA_MUST_CHECK;

/* ---- lines.c: a byte stream cut anywhere, into lines ---- */

struct sba_lines {
	struct sba_buf partial;
	bool too_long; /* the line under way is dropped */
	uint64_t dropped;
};
void sba_lines_init(struct sba_lines *l, size_t max);
void sba_lines_fini(struct sba_lines *l);
/* Consumes up to the first newline of data: returns how much. A whole line, if
 * one is there, is in *line (without newline), lent until the next call. */
size_t sba_lines_feed(struct sba_lines *l, const char *data, size_t len, const char **line,
		      size_t *line_len);
/* At the end of the stream: the last line, if it had no newline. */
bool sba_lines_rest(struct sba_lines *l, const char **line, size_t *line_len);

#endif
