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
extern const struct sba_driver sba_driver_opencode;

int sba_claude_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err);

/* ---- commands (drivers.c) ---- */

/* What every driver needs of a spec: an address, a token, and neither a model
 * nor a session that the CLI would take for an option. */
int sba_turn_check(const struct sba_turn_spec *spec, struct sba_error *err) SBA_MUST_CHECK;
/* The length of base_url without the slashes at its end; for "%.*s". */
int sba_turn_base_len(const struct sba_turn_spec *spec);
/* Adds each of a NULL-terminated list. */
int sba_strv_add_all(struct sba_strv *v, const char *const *list,
		     struct sba_error *err) SBA_MUST_CHECK;

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

/* ---- tools (tools.c) ---- */

struct sba_tool_name {
	const char *native;
	const char *name; /* of event.h */
};
/* The common name; `native` itself where the table has none. */
const char *sba_tool_name(const struct sba_tool_name *table, size_t n, const char *native);
/* Appends one line about a call's arguments: the command's first line, the
 * path, the pattern… Nothing where there is no such argument. */
void sba_tool_summary(struct sba_buf *b, const json_t *input);

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
int sba_stream_file_change(struct sba_stream *s, const char *path, const char *change);

/* Saturating; what is negative is left out. */
void sba_usage_add(struct sba_usage *sum, const struct sba_usage *more);
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
/* A notice about a line that is not understood; counted. */
int sba_stream_unknown(struct sba_stream *s, const char *fmt, ...) SBA_PRINTF(2, 3);

/* The CLI said its last word; or, with false, it goes on after all. */
void sba_stream_set_done(struct sba_stream *s, bool done);
void sba_stream_set_stuck(struct sba_stream *s);

/* ---- the outcome (outcome.c) ---- */

/* For a driver's finish. */
void sba_outcome_set(struct sba_stream *s, struct sba_outcome *o, enum sba_verdict verdict,
		     const char *fmt, ...) SBA_PRINTF(4, 5);
/* By the failure that was remembered last. */
void sba_outcome_failure(struct sba_stream *s, struct sba_outcome *o);

#endif
