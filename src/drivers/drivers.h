/* SPDX-License-Identifier: MIT */
/*
 * What knows one agent CLI: its command line and environment, its stream, its
 * verdict. One table of functions per CLI; a driver does no I/O. Its heart is
 * a pure function, line in -> events out, that no line can make fail.
 */
#ifndef SBA_DRIVERS_H
#define SBA_DRIVERS_H

#include <sandbox-agent/event.h>

#include "base/base.h"

/* ---- a turn's command ---- */

enum sba_model_api {
	SBA_API_CHAT_COMPLETIONS, /* POST {base}/v1/chat/completions */
	SBA_API_ANTHROPIC,        /* POST {base}/v1/messages */
	SBA_API_RESPONSES,        /* POST {base}/v1/responses */
};

struct sba_turn_spec {
	const char *base_url; /* of the model as the sandbox sees it, without "/v1": "http://h:p" */
	const char *token;    /* good for that model only; goes by environment, never argv */
	const char *model;    /* NULL: the driver's default */
	const char *session;  /* resume this session; NULL: a new one */
	const char *new_session; /* a fresh UUID for a new session, for CLIs that take one */
};

/* argv[0] is the CLI's binary. The prompt goes to its stdin, which is then closed. */
struct sba_command {
	struct sba_strv argv;
	struct sba_strv env; /* "K=V" */
};
void sba_command_fini(struct sba_command *c);

/* Session ids come from inside a sandbox and go back as arguments: letters,
 * digits, '_', '-' and '.' only, no '-' first, at most SBA_SESSION_ID_MAX. */
bool sba_session_id_valid(const char *id);

/* ---- its stream ---- */

/* Receives one event; strings are lent for the call. Nonzero breaks off and
 * is returned by sba_stream_line(). */
typedef int sba_event_fn(void *user, const struct sba_event *event);

/* The parser's state over one turn. */
struct sba_stream;

/* What the end of a turn looks like. Strings are lent until the stream is freed. */
struct sba_outcome {
	enum sba_verdict verdict; /* OK, AGENT_FAILED, MODEL_ERROR or NO_ANSWER */
	const char *session;      /* NULL if it never came */
	const char *text;         /* the final answer; "" if none */
	const char *error;        /* why it is not OK; NULL if OK */
	int http_status;          /* the model's, 0 if none */
	bool retryable;
	struct sba_usage usage;
	uint64_t tools; /* calls */
	uint64_t unknown_lines;
};

struct sba_driver {
	const char *name;        /* "claude" */
	const char *binary;      /* "claude": what must be in the image */
	const char *install;     /* how to get it, for the hint of a missing CLI */
	const char *version_key; /* in versions.json: "claude_version" */
	enum sba_model_api api;
	const char *default_model;
	bool text_deltas; /* text comes as it is generated */
	/* Fills argv and env. Pure. */
	int (*command)(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err);
	/* Private parser state. */
	size_t state_size;
	void (*state_fini)(void *state);
	/* One parsed line (a JSON object). Emits through sba_stream_emit(). */
	int (*object)(struct sba_stream *s, void *state, const json_t *line);
	/* Refines the outcome that the shared part has prepared from what was
	 * emitted, with the exit status (128 + signal for a signal; 0 for a
	 * process that had to be ended after it said that all is well). */
	void (*finish)(struct sba_stream *s, void *state, int exit_status,
		       struct sba_outcome *outcome);
};

/* NULL if there is none of that name. */
const struct sba_driver *sba_driver_find(const char *name);
/* All, NULL-terminated. */
const struct sba_driver *const *sba_driver_all(void);

/* A parser for one turn; every event carries its line as .raw. */
int sba_stream_new(const struct sba_driver *driver, sba_event_fn *fn, void *user,
		   struct sba_stream **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_stream_free(struct sba_stream *s);
/* One line without its newline. What cannot be understood (no JSON, unknown
 * type) becomes a notice that carries the raw line, never an error; bad UTF-8
 * is replaced. 0, or what the sink returned. */
int sba_stream_line(struct sba_stream *s, const char *line, size_t len);
/* After the last line. stderr_tail may be "". Call once. */
int sba_stream_finish(struct sba_stream *s, int exit_status, const char *stderr_tail,
		      struct sba_outcome *ret);
/* The CLI has said that the turn is over (a process that does not exit may be
 * ended after a grace). */
bool sba_stream_done(const struct sba_stream *s);
/* The CLI has fallen into a loop of failing model calls and must be ended. */
bool sba_stream_stuck(const struct sba_stream *s);
/* The session id, NULL until known. */
const char *sba_stream_session(const struct sba_stream *s);

#endif
