/* SPDX-License-Identifier: MIT */
/*
 * What the files of the scripted model share. A request goes one way:
 * request.c and a wire_*.c read it, plan.c chooses a step of the script and
 * makes an answer of it, stream.c and the same wire_*.c say it.
 */
#ifndef SBA_MODEL_PRIVATE_H
#define SBA_MODEL_PRIVATE_H

#include "base/base.h"

/* ---- script (script.c, builtin.c) ---- */

/* Parses and checks a script; run time relies on its shape afterwards.
 * SBA_ECONFIG names the path of what is wrong. */
int sba_model_script_parse(const char *text, json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
extern const char sba_model_builtin_script[];

/* ---- request (request.c) ---- */

/* A tool that the request offers; lent from the request's document. */
struct sba_model_tool {
	const char *name;
	const json_t *schema; /* of its arguments; may be NULL */
	bool custom;          /* Responses: takes one free text instead of JSON */
};

struct sba_model_request {
	const struct sba_model_wire *wire;
	json_t *doc;
	size_t body_len;
	bool stream;
	bool with_usage; /* Chat Completions: a usage chunk is asked for */
	bool title;      /* only asks for a title of the session */
	const char *model;
	struct sba_buf prompt;      /* text of the last user message */
	struct sba_buf user_texts;  /* all of them, joined by " | " */
	struct sba_buf tool_output; /* the last tool result since that message */
	size_t users;               /* user messages with text of the user's own */
	size_t step;                /* answers given since the last of them */
	struct sba_model_tool *tools;
	size_t n_tools;
};

/* SBA_EPROTO: not a request of this wire. The result is freed with
 * sba_model_request_fini, also after a failure. */
int sba_model_request_parse(struct sba_model_request *r, const struct sba_model_wire *wire,
			    const char *body, size_t len, struct sba_error *err) SBA_MUST_CHECK;
void sba_model_request_fini(struct sba_model_request *r);

/* For the wires, message by message. Content is a string or an array of
 * blocks of which those with text count. */
void sba_model_see_system(struct sba_model_request *r, const json_t *content);
void sba_model_see_user(struct sba_model_request *r, const json_t *content);
void sba_model_see_assistant(struct sba_model_request *r);
void sba_model_see_tool_output(struct sba_model_request *r, const json_t *content);
int sba_model_see_tool(struct sba_model_request *r, const struct sba_model_tool *tool,
		       struct sba_error *err) SBA_MUST_CHECK;

/* ---- answer (plan.c) ---- */

enum sba_model_part_kind {
	SBA_MODEL_THINKING,
	SBA_MODEL_TEXT,
	SBA_MODEL_TOOL,
};

struct sba_model_part {
	enum sba_model_part_kind kind;
	char *text; /* a tool's arguments as JSON, or its free text if custom */
	size_t len;
	char *name; /* of the tool */
	bool custom;
	char id[28];
};

struct sba_model_answer {
	char *model;
	char id[28];
	json_int_t created; /* Unix seconds */
	bool with_usage;

	struct sba_model_part *parts;
	size_t n_parts;
	bool cut_short; /* stopped by the token limit */
	json_int_t input_tokens, output_tokens, cached_tokens, thinking_tokens;

	int status; /* 200, or that of an error */
	char *message;
	int64_t retry_after; /* seconds; 0: not said */

	size_t chunk;     /* bytes per delta; 0: chosen by length */
	int64_t delay_ms; /* before each delta */
	int64_t stall_ms; /* before the first byte */
	size_t cut_after; /* break off after so many bytes; 0: never */
};

/* Chooses what to answer. Freed with sba_model_answer_fini, also after a
 * failure. */
int sba_model_plan(const json_t *script, const struct sba_model_request *r,
		   struct sba_model_answer *a, struct sba_error *err) SBA_MUST_CHECK;
void sba_model_answer_fini(struct sba_model_answer *a);
bool sba_model_answer_has_tools(const struct sba_model_answer *a);

/* ---- templates (template.c) ---- */

struct sba_model_vars {
	const struct sba_model_request *request;
	const char *rest; /* the prompt after the matched prefix */
};
/* Replaces {{name}} in a script's text; values are not expanded again. */
int sba_model_expand(const char *text, const struct sba_model_vars *vars, struct sba_buf *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* The same in every string of a JSON value. */
int sba_model_expand_json(const json_t *value, const struct sba_model_vars *vars, json_t **ret,
			  struct sba_error *err) SBA_MUST_CHECK;
/* A number, or a text that expands to one; `otherwise` if it does not. */
int64_t sba_model_number(const json_t *value, const struct sba_model_vars *vars, int64_t otherwise);
/* SBA_ECONFIG: it uses a name that does not exist. */
int sba_model_template_check(const char *text, struct sba_error *err) SBA_MUST_CHECK;

/* ---- tools (tools.c) ---- */

/* Says the abstract call {"kind": …} or {"name", "input"} of a script (already
 * expanded) with a tool that the request offers. If none fits, `ret` becomes
 * a text that says so. */
int sba_model_map_tool(const struct sba_model_request *r, const json_t *call,
		       struct sba_model_part *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- wires (wire_chat.c, wire_messages.c, wire_responses.c) ---- */

struct sba_model_stream;

/* One of the three formats. Only `read` fails by error; the others build JSON
 * whose failure sticks in the stream's buffer, or return NULL. */
struct sba_model_wire {
	const char *path;
	int (*read)(struct sba_model_request *r, struct sba_error *err);
	json_t *(*error)(int status, const char *message);
	json_t *(*whole)(const struct sba_model_answer *a);
	/* The stream: begin, then per part begin, delta…, end; then end. */
	void (*begin)(struct sba_model_stream *s);
	void (*part_begin)(struct sba_model_stream *s, const struct sba_model_part *p);
	void (*part_delta)(struct sba_model_stream *s, const struct sba_model_part *p,
			   const char *text, size_t len);
	void (*part_end)(struct sba_model_stream *s, const struct sba_model_part *p);
	void (*end)(struct sba_model_stream *s);
};
extern const struct sba_model_wire sba_model_wire_chat;
extern const struct sba_model_wire sba_model_wire_messages;
extern const struct sba_model_wire sba_model_wire_responses;
/* {"error": {…}} of both OpenAI wires. */
json_t *sba_model_openai_error(int status, const char *message);

/* ---- stream (stream.c) ---- */

enum sba_model_phase {
	SBA_MODEL_PHASE_BEGIN,
	SBA_MODEL_PHASE_PART_BEGIN,
	SBA_MODEL_PHASE_PART_DELTA,
	SBA_MODEL_PHASE_OVER,
};

/* An answer on its way out, for one reader. */
struct sba_model_stream {
	const struct sba_model_wire *wire;
	struct sba_model_answer answer;
	struct sba_buf out; /* said, and not yet fetched but for its first bytes */
	size_t fetched;     /* of out */
	size_t sent;        /* in all */
	enum sba_model_phase phase;
	size_t part;   /* index of the part in turn */
	size_t offset; /* within its text */
	size_t tool;   /* Chat Completions: index of the tool call in turn */
	int64_t seq;   /* Responses: sequence_number */
	bool stalled;  /* the pause before the first byte is over */
};

/* Takes the answer over; `a` is empty afterwards. NULL: out of memory. */
struct sba_model_stream *sba_model_stream_new(const struct sba_model_wire *wire,
					      struct sba_model_answer *a);
/* The same pacing for a body that is already whole. */
struct sba_model_stream *sba_model_stream_new_whole(struct sba_model_answer *a, const json_t *body);
void sba_model_stream_free(void *stream);
/* A sba_http_stream_fn. */
ssize_t sba_model_stream_read(void *stream, char *buf, size_t size, int stop_fd);
/* Appends one server-sent event; takes `data` over. `event` may be NULL. */
void sba_model_stream_emit(struct sba_model_stream *s, const char *event, json_t *take_data);

#endif
