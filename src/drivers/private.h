/* SPDX-License-Identifier: MIT */
/*
 * What the drivers share among themselves: the table of their functions, and
 * how a driver tells the stream what a line means. Every function that may
 * emit returns what the sink returned, and a nonzero is passed straight up.
 */
#ifndef SBA_DRIVERS_PRIVATE_H
#define SBA_DRIVERS_PRIVATE_H

#include "drivers/drivers.h"

extern const struct sba_driver sba_driver_claude;
extern const struct sba_driver sba_driver_codex;
extern const struct sba_driver sba_driver_command;
extern const struct sba_driver sba_driver_dsh;
extern const struct sba_driver sba_driver_opencode;
extern const struct sba_driver sba_driver_pi;

int sba_claude_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err);
int sba_codex_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		      struct sba_error *err);
/* The script of a shell's command line; the line itself where it is none. */
void sba_codex_script(struct sba_buf *ret, const char *line);

/* Where files of ours are in a sandbox. */
#define SBA_DRIVER_DIR "/var/lib/sandbox-agent/driver"

/* Where what the user brought for the agent is; it comes along in a fork. */
#define SBA_LODGING_DIR "/etc/sandbox-agent"

/* ---- commands (command_line.c) ---- */

/* Each of a NULL-terminated list. */
void sba_command_args(struct sba_command *c, const char *const *list);
/* The words of a list between blanks, each behind the prefix; NULL: none. */
void sba_command_each(struct sba_command *c, const char *list, const char *prefix);
void sba_command_argf(struct sba_command *c, const char *fmt, ...) SBA_PRINTF(2, 3);
/* Each "K=V" of a NULL-terminated list. */
void sba_command_envs(struct sba_command *c, const char *const *list);
/* K={base URL}{suffix} */
/* A file of the driver's, where it lies in this sandbox. */
void sba_command_file(struct sba_command *c, const struct sba_turn_spec *spec, const char *path);
void sba_command_env_file(struct sba_command *c, const char *name, const struct sba_turn_spec *spec,
			  const char *path);
void sba_command_env_url(struct sba_command *c, const char *name, const struct sba_turn_spec *spec,
			 const char *suffix);
/* The length of base_url without the slashes at its end; for "%.*s". */
int sba_turn_base_len(const struct sba_turn_spec *spec);

/* ---- JSON of strangers (tools.c) ---- */

/* As sba_json_int, but a real is taken too (a number beyond int64 arrives as
 * one), and what does not fit becomes the nearest that does. */
int64_t sba_json_number(const json_t *j, const char *path, int64_t otherwise);
/* A count: as above, never negative. */
int64_t sba_json_count(const json_t *j, const char *path);
/* An exit status; 0 where there is none, the nearest int where it is none. */
int sba_json_exit_code(const json_t *j, const char *path);
/* How much of a text fits into max bytes, cut between characters. */
size_t sba_text_cut(const char *text, size_t max);
/* Copies what fits; NULL is "". */
void sba_text_keep(char *to, size_t size, const char *text);
/* Appends a tool's answer: a string, or blocks of which {"type":"text"} is
 * shown and the rest is named. */
void sba_content_put(struct sba_buf *b, const json_t *content);

/* ---- lines of JSON (stream.c) ---- */

/* One parsed line (a JSON object). Emits through sba_stream_emit(). */
typedef int sba_object_fn(struct sba_stream *s, void *state, const json_t *line);
/* For a driver's line: parses it as far as it can be; what cannot becomes a
 * notice, a blank line nothing. */
int sba_stream_object(struct sba_stream *s, void *state, const char *line, size_t len,
		      sba_object_fn *object);

/* A failure's HTTP status: what the CLI gave if it can be one, else what follows
 * `before` in its text, else 0. */
int sba_http_status(int64_t given, const char *text, const char *before);
/* Asking again may help. */
bool sba_http_retryable(int status);

/* ---- tools (tools.c) ---- */

struct sba_tool_name {
	const char *native;
	const char *name; /* of event.h */
};
/* The common name; `native` itself where the table has none. */
const char *sba_tool_name(const struct sba_tool_name *table, size_t n, const char *native);
/* As sba_tool_name(), and "mcp__SERVER__TOOL" becomes "mcp:SERVER.TOOL" (made in scratch). */
const char *sba_tool_name_mcp(const struct sba_tool_name *table, size_t n, const char *native,
			      struct sba_buf *scratch);
/* As sba_tool_name(), and SERVER_TOOL becomes "mcp:SERVER.TOOL" where the stream knows
 * a server of that name. */
const char *sba_tool_name_server(const struct sba_stream *s, const struct sba_tool_name *table,
				 size_t n, const char *native, struct sba_buf *scratch);
/* Appends one line about a call's arguments: the command's first line, the
 * path, the pattern… Nothing where there is no such argument. */
void sba_tool_summary(struct sba_buf *b, const json_t *input);

/* The path that a call is about; NULL if it has none. */
const char *sba_tool_path(const json_t *input);

/* A call or its result; strings are lent. */
struct sba_tool_use {
	const char *name;    /* common name */
	const char *native;  /* the CLI's */
	const char *call_id; /* NULL if there is none */
	const json_t *input; /* of a call */
	const char *output;  /* of a result */
	bool failed;
	bool has_exit_code;
	int exit_code;
	bool aside; /* a subagent's: it does not end the text before it */
};

/* ---- telling the stream (report.c) ---- */

/* Fills in time, session and raw line, and hands the event to the sink. */
int sba_stream_emit(struct sba_stream *s, struct sba_event event);
/* The first valid id is the stream's; later ones are ignored. */
int sba_stream_found_session(struct sba_stream *s, const char *id);

/* The session that the CLI was asked for; "" if none. For one that names none
 * itself: told with a line, or assumed at the end. */
const char *sba_stream_asked_session(const struct sba_stream *s);
void sba_stream_assume_session(struct sba_stream *s);

/* TEXT and THINKING. Deltas of one block are followed by the block as a whole
 * in some CLIs: what the deltas have shown is not emitted again. */
void sba_stream_block_begin(struct sba_stream *s);
int sba_stream_delta(struct sba_stream *s, enum sba_event_kind kind, const char *text);
int sba_stream_whole(struct sba_stream *s, enum sba_event_kind kind, const char *text);

/* The answer is the text since the last call, until the driver knows better. */
void sba_stream_answer_drop(struct sba_stream *s);
void sba_stream_answer_set(struct sba_stream *s, const char *text);

/* A call is remembered until its result; the result may then leave out the
 * names. */
int sba_stream_call(struct sba_stream *s, const struct sba_tool_use *use);
int sba_stream_result(struct sba_stream *s, const struct sba_tool_use *use);
/* The CLI's name of the tool of an open call; NULL if it is not known. */
const char *sba_stream_open_tool(const struct sba_stream *s, const char *call_id);
/* The path among the arguments of an open call; NULL if it has none. */
const char *sba_stream_open_path(const struct sba_stream *s, const char *call_id);
int sba_stream_file_change(struct sba_stream *s, const char *path, const char *change);

/* Adds to the turn's usage and emits the sum. */
int sba_stream_usage(struct sba_stream *s, const struct sba_usage *more);

/* Why a turn fails. */
struct sba_failure {
	const char *text;
	int http_status; /* 0: none */
	bool model;      /* it is the model's fault: MODEL_ERROR, else AGENT_FAILED */
	bool retryable;
};
/* Emits it and remembers the last one for the outcome. */
int sba_stream_error(struct sba_stream *s, const struct sba_failure *failure);
/* The turn has recovered. */
void sba_stream_error_forget(struct sba_stream *s);
bool sba_stream_failed(const struct sba_stream *s);

int sba_stream_notice(struct sba_stream *s, const char *fmt, ...) SBA_PRINTF(2, 3);
/* The notice that a CLI asks its model again. status: 0 for none; why may be NULL. */
int sba_stream_retry(struct sba_stream *s, int status, const char *why, int64_t attempt,
		     int64_t most);
/* A notice about a line that is not understood; counted. */
int sba_stream_unknown(struct sba_stream *s, const char *fmt, ...) SBA_PRINTF(2, 3);

/* The CLI said its last word; or, with false, it goes on after all. */
void sba_stream_set_done(struct sba_stream *s, bool done);
void sba_stream_set_stuck(struct sba_stream *s);

/* ---- the outcome (outcome.c) ---- */

/* By the failure that was remembered last. */
void sba_outcome_failure(struct sba_stream *s, struct sba_outcome *o);

#endif
