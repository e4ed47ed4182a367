/* SPDX-License-Identifier: MIT */
/*
 * What happens in a turn, in one shape for every agent CLI. Values and words; any
 * thread.
 */
#ifndef SANDBOX_AGENT_EVENT_H
#define SANDBOX_AGENT_EVENT_H

#include <sandbox-agent/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which members of an event speak. More kinds may come: pass over what is not known. */
enum sba_event_kind {
	SBA_EVENT_SESSION,     /* the CLI's session is known: .session */
	SBA_EVENT_TEXT,        /* the answer: .text, whole or a delta */
	SBA_EVENT_THINKING,    /* reasoning: .text, whole or a delta */
	SBA_EVENT_TOOL_CALL,   /* a tool begins: .tool .call_id .input .summary */
	SBA_EVENT_TOOL_RESULT, /* it ended: .tool .call_id .output .failed .exit_code */
	SBA_EVENT_FILE_CHANGE, /* the CLI says that it changed .path */
	SBA_EVENT_USAGE,       /* tokens of the turn so far: .usage */
	SBA_EVENT_ERROR,       /* .text; .http_status where the model said it */
	SBA_EVENT_NOTICE,      /* .text: a retry, a refusal, an unknown line */
	SBA_EVENT_DONE,        /* the CLI says that the turn is over */
};

/* Tokens, with one meaning for all CLIs. */
struct sba_usage {
	int64_t input;        /* all input, cached included */
	int64_t cached_input; /* the part of input that came from the cache */
	int64_t output;       /* all output, reasoning included */
	int64_t reasoning;    /* the part of output that was reasoning */
	double cost_usd;      /* as the CLI says; 0 where it does not */
	uint64_t reserved[4];
};

/*
 * One event. Strings are valid UTF-8, NULL where there is nothing to say, and
 * lent until the next call on the turn. Text that comes in deltas is not
 * repeated as a whole.
 */
struct sba_event {
	enum sba_event_kind kind;
	int64_t time_ms;     /* UNIX time */
	const char *session; /* the CLI's session id, once known */
	const char *text;
	bool delta;              /* text is a continuation of the text before */
	const char *tool;        /* bash read write edit glob grep web_search web_fetch task skill
				  * todo, "mcp:SERVER.TOOL", else the native name */
	const char *tool_native; /* the CLI's own name of it */
	const char *call_id;     /* joins call and result */
	const char *input;       /* the arguments, as JSON text */
	const char *summary;     /* one line of it for people: the command, the path */
	const char *output;      /* what the tool answered */
	bool failed;             /* the tool failed */
	bool has_exit_code;
	int exit_code;
	const char *path;   /* file_change */
	const char *change; /* "created", "modified", "deleted" where told, else NULL; of
			     * `measured` also "renamed", "mode" */
	/* A file_change that we found by comparing the workspace before and after the turn,
	 * not one that the CLI told of. These come last, by path. */
	bool measured;
	const char *old_path;     /* of "renamed" */
	const char *diff;         /* unified, as git shows it */
	const char *without_diff; /* why there is none */
	struct sba_usage usage;
	int http_status;
	const char *raw; /* the CLI's line that this came from */
	size_t raw_len;
};

/* "tool_call"; lent for ever, never NULL. */
SBA_API const char *sba_event_kind_name(enum sba_event_kind kind);

/* How a turn ended, in exactly one way. */
enum sba_verdict {
	SBA_VERDICT_NONE, /* not over yet */
	SBA_VERDICT_OK,
	SBA_VERDICT_AGENT_FAILED,
	SBA_VERDICT_MODEL_ERROR,
	SBA_VERDICT_NO_ANSWER, /* exit 0 and nothing said */
	SBA_VERDICT_TIMEOUT,
	SBA_VERDICT_IDLE_TIMEOUT,
	SBA_VERDICT_BUDGET,
	SBA_VERDICT_CANCELED,
	SBA_VERDICT_SANDBOX_BROKEN,
	SBA_VERDICT_ENGINE_LOST,
};

/* "model_error"; lent for ever, never NULL. */
SBA_API const char *sba_verdict_name(enum sba_verdict verdict);
/* The enum sba_code that stands for it; SBA_OK for OK. */
SBA_API int sba_verdict_code(enum sba_verdict verdict);

#ifdef __cplusplus
}
#endif

#endif
