/* SPDX-License-Identifier: MIT */
/*
 * A driver: what knows one agent CLI. One struct of functions says how to start
 * it and what its output means; the drivers of the library are made of the same
 * one. A driver of your own is given to sba_agent_open() and is known nowhere
 * else (examples/own_driver.c).
 *
 * A driver does no I/O. Its functions are called by the thread that uses the
 * turn, one at a time for each turn; the struct, its strings and its functions
 * must last until the agent is closed.
 */
#ifndef SANDBOX_AGENT_DRIVER_H
#define SANDBOX_AGENT_DRIVER_H

#include <sandbox-agent/error.h>
#include <sandbox-agent/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a turn's command ---- */

/* What the CLI speaks to its model. The base URL in a turn ends before "/v1". */
enum sba_model_api {
	SBA_API_CHAT_COMPLETIONS, /* POST {base}/v1/chat/completions */
	SBA_API_ANTHROPIC,        /* POST {base}/v1/messages */
	SBA_API_RESPONSES,        /* POST {base}/v1/responses */
	SBA_API_ANY,              /* whatever the program likes, or no model at all */
};

/* What the agent may do to the sandbox. */
enum sba_permissions {
	SBA_PERMISSIONS_FULL,
	SBA_PERMISSIONS_EDIT,      /* changes files of the workspace, runs no commands outside
				    * of a sandbox of the CLI's own */
	SBA_PERMISSIONS_READ_ONLY, /* changes nothing */
};

/* What a command is made from; lent for the call. */
struct sba_turn_spec {
	const char *base_url;    /* of the model as the sandbox sees it: "http://h:p"; NULL: none */
	const char *token;       /* good for that model only: to the environment, never to argv,
				  * never to a file */
	const char *model;       /* NULL: the CLI's own default */
	const char *session;     /* resume this one; NULL: a new one */
	const char *new_session; /* a fresh UUID for a new one, for CLIs that take one */
	/* A side branch: the answer comes from what `session` knows, and afterwards the CLI
	 * keeps nothing of it. `scratch`: a folder for the turn alone, where the CLI has no
	 * such way of its own and a copy of what it keeps is needed; else NULL. */
	bool aside;
	const char *scratch;
	const char *const *program;       /* NULL-ended: of the sandbox (info->program), or NULL */
	enum sba_permissions permissions; /* one that the driver says it can keep */
	bool screen;     /* the CLI's own screen: it is on a terminal, there is no prompt */
	const char *mcp; /* names of MCP servers, between blanks: they are in mcp_path;
			  * NULL: none */
	bool login;      /* with a login of its own, which is in the sandbox: base_url and token
			  * are NULL, the CLI reaches its provider by itself */
	/* What lies in front of mcp_path and the paths of `files` in this sandbox: "" or NULL in
	 * a container, a folder of the sandbox's user elsewhere. */
	const char *root;
};

/* The command line and environment under construction. argv[0] is the CLI's
 * binary. The prompt goes to its stdin, which is then closed. Failures (memory)
 * stick and fail the turn. Strings are copied; a NULL is taken for memory that ran
 * out. */
struct sba_command;
/* One more argument. */
SBA_API void sba_command_arg(struct sba_command *c, const char *arg);
/* One more variable of its environment. */
SBA_API void sba_command_env(struct sba_command *c, const char *name, const char *value);

/* How the CLI wants to read of MCP servers. */
enum sba_mcp_form {
	SBA_MCP_SERVERS,  /* {"mcpServers": {...}}, as the user wrote it */
	SBA_MCP_CODEX,    /* codex's TOML */
	SBA_MCP_OPENCODE, /* opencode's configuration */
	SBA_MCP_DSH,      /* a patch of dsh's */
};

/* A file that must be in the sandbox before the first turn: the same for every
 * turn and every client, without an address or a key in it. Root's; its folders
 * are made. Lists are made of it: it never grows. */
struct sba_driver_file {
	const char *path; /* absolute; NULL ends a list */
	unsigned mode;    /* 0644, 0755 */
	const char *content;
};

/* The file in which the CLI keeps a login of its own (not a key that it was given). */
struct sba_login {
	const char *path;     /* beneath the home of its user, here as in a sandbox */
	const char *variable; /* of the CLI's: where it is set, the file is here at */
	const char *beneath;  /* … $variable/beneath */
	const char *how;      /* what makes it, for people: "claude, then /login" */
	uint64_t reserved[8];
};

/* ---- the CLI's output ---- */

/* What a driver tells of a line. Text that is not UTF-8 is mended. Every function
 * that tells returns what the one who listens returned; a driver passes a nonzero
 * straight up. */
struct sba_stream;

/* The first valid id counts: letters, digits, '_', '-' and '.', no '-' first. */
SBA_API int sba_tell_session(struct sba_stream *s, const char *id);
/* The answer; with `delta` it goes on where the text before ended. */
SBA_API int sba_tell_text(struct sba_stream *s, const char *text, bool delta);
/* Its reasoning, likewise. */
SBA_API int sba_tell_thinking(struct sba_stream *s, const char *text, bool delta);

/* A call of a tool. Strings are lent for the call and may be NULL. */
struct sba_tell_tool {
	const char *name;    /* one of event.h's; NULL: the native one */
	const char *native;  /* the CLI's; a result may leave both out */
	const char *call_id; /* joins the two */
	const char *input;   /* of a call: JSON text, or NULL */
	const char *output;  /* of a result */
	bool failed;
	bool has_exit_code;
	int exit_code;
	uint64_t reserved[8];
};
/* When it begins. */
SBA_API int sba_tell_call(struct sba_stream *s, const struct sba_tell_tool *tool);
/* When it has ended. */
SBA_API int sba_tell_result(struct sba_stream *s, const struct sba_tell_tool *tool);
/* change: "created", "modified", "deleted" or NULL. */
SBA_API int sba_tell_file_change(struct sba_stream *s, const char *path, const char *change);
/* Adds to the turn's tokens. */
SBA_API int sba_tell_usage(struct sba_stream *s, const struct sba_usage *more);
/* A line for people: a retry, a warning. */
SBA_API int sba_tell_notice(struct sba_stream *s, const char *text);
/* What cannot be understood: a notice, and counted. */
SBA_API int sba_tell_unknown(struct sba_stream *s, const char *text);
/* Why the turn fails; the last one counts. from_model: MODEL_ERROR instead of
 * AGENT_FAILED, with its HTTP status or 0. */
SBA_API int sba_tell_error(struct sba_stream *s, const char *text, bool from_model,
			   int http_status);
/* The CLI's last word: a process that stays after it is ended. */
SBA_API int sba_tell_done(struct sba_stream *s);
/* The CLI will not come out of a loop of failing calls: it is ended. */
SBA_API void sba_tell_stuck(struct sba_stream *s);

/* A little that the next turn of the same session finds again (at most 1 KiB,
 * UTF-8); NULL: nothing was kept. */
SBA_API const char *sba_stream_kept(const struct sba_stream *s);
/* Keeps it, copied, for the next turn; what is too long is not kept. */
SBA_API void sba_stream_keep(struct sba_stream *s, const char *text);
/* The session that the turn was to resume; NULL: a new one. */
SBA_API const char *sba_stream_resumes(const struct sba_stream *s);

/* The end of a turn, as it is worked out from what was told and the exit status. */
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
/* For a driver's finish: another verdict, with its words. */
SBA_API void sba_outcome_set(struct sba_stream *s, struct sba_outcome *o, enum sba_verdict verdict,
			     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- the table ---- */

struct sba_store; /* how the library's own drivers get at the CLI's sessions */

/* It grows at its end: `size` says how much of it the program knows. */
struct sba_driver {
	size_t size;         /* sizeof(struct sba_driver) */
	const char *name;    /* "claude"; letters, digits, '-' and '_' */
	const char *binary;  /* what must be in the image; NULL: the program of the sandbox */
	const char *install; /* how to get it, for the hint of a missing CLI; may be NULL */
	enum sba_model_api api;
	const char *provider;                /* where its model calls go; NULL: by its api */
	const char *default_model;           /* NULL: the CLI's own, or (needs_model) none */
	const char *offline_model;           /* what the scripted one is called; NULL: as above */
	bool needs_model;                    /* the user must name one */
	const struct sba_driver_file *files; /* NULL: none */
	/* Makes the command of a new or resumed turn. 0 or a negative code. */
	int (*command)(const struct sba_turn_spec *turn, struct sba_command *ret,
		       struct sba_error *err);
	/* State of the parser, zeroed, one for each turn. */
	size_t state_size;
	void (*state_fini)(void *state); /* may be NULL */
	/* One line of stdout without its newline: any bytes, of any length up to
	 * 64 MiB, lent, not NUL-ended. No line is an error. */
	int (*line)(struct sba_stream *s, void *state, const char *line, size_t len);
	/* May refine the outcome. exit_status: 128 + signal for a signal; 0 for a
	 * process that had to be ended after its last word. May be NULL. */
	void (*finish)(struct sba_stream *s, void *state, int exit_status,
		       struct sba_outcome *outcome);
	/* Where the CLI looks for instructions, beneath the home of the sandbox's user:
	 * a file, and a folder with one folder for each skill. NULL: nowhere. */
	const char *rules;
	const char *skills;
	int interrupt;                 /* the signal that stops a turn; 0: SIGINT */
	const struct sba_store *store; /* NULL: its sessions cannot be got at */
	/* What `command` can do besides a headless turn with full permissions. */
	bool keeps_read_only, keeps_edit;
	bool has_screen;
	/* A JSON file beneath the user's home into which this is merged before a screen. */
	const struct sba_driver_file *screen_settings; /* one; NULL: none */
	const char *mcp_path; /* where it looks for MCP servers; NULL: it knows none */
	enum sba_mcp_form mcp_form;
	const struct sba_login *login; /* one; NULL: it has none */
};

#ifdef __cplusplus
}
#endif

#endif
