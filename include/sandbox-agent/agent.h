/* SPDX-License-Identifier: MIT */
/*
 * An agent CLI in a sandbox, and turns of conversation with it. One thread at
 * a time; only sba_turn_cancel() may be called from anywhere.
 */
#ifndef SANDBOX_AGENT_AGENT_H
#define SANDBOX_AGENT_AGENT_H

#include <sandbox-agent/audit.h>
#include <sandbox-agent/driver.h>
#include <sandbox-agent/event.h>
#include <sandbox-agent/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The agents known here, NULL-ended; lent for ever. */
SBA_API const char *const *sba_agent_names(void);

/* The providers known here, NULL-ended; lent for ever. */
SBA_API const char *const *sba_provider_list(void);
/* The one that the agent's CLI talks to if nothing else is said, lent for ever; NULL: no
 * such agent. */
SBA_API const char *sba_agent_provider(const char *agent);
/* The variable that usually holds the key: of a provider, or (NULL) of the one
 * that the agent's CLI talks to. Lent for ever; NULL if there is no such agent or
 * provider. */
SBA_API const char *sba_provider_key_env(const char *agent, const char *provider);
/* Whether that agent (`command`) is any program: the sandbox's options name it, and
 * it has no model unless one is asked for. */
SBA_API bool sba_agent_takes_program(const char *agent);

/* Whether the agent's CLI can be held to "read-only", "edit" or "full" (NULL: full).
 * SBA_EINVAL: no such word. SBA_EUNSUPPORTED: it cannot. */
SBA_API int sba_agent_check_permissions(const char *agent, const char *permissions,
					struct sba_error *err);
/* MCP servers for the agent, as JSON: {"mcpServers": {"NAME": {"command", "args", "env"}
 * or {"url", "headers"}, …}}. Checks it; *ret_names (heap, for free()) are the names, for
 * the sandbox's options. SBA_ECONFIG: what is wrong. SBA_EUNSUPPORTED: it takes none. */
SBA_API int sba_agent_check_mcp(const char *agent, const char *text, size_t len, char **ret_names,
				struct sba_error *err);
/* Puts them where the agent's CLI looks for them in s, readable by all inside. Errors as
 * of the check, and of sba_sandbox_write(). */
SBA_API int sba_agent_place_mcp(struct sba_sandbox *s, const char *agent, const char *text,
				size_t len, struct sba_error *err);

/* The login that the agent's CLI keeps for itself, lent for ever; NULL: no such agent, or
 * it keeps none. A sandbox whose options name its path has it as long as it lives: turns
 * then go without the relay, unless they name a provider, and no budget can be kept. What
 * is secret in it is starred out of events and records; the file is in no child and no
 * dump. */
SBA_API const struct sba_login *sba_agent_login(const char *agent);
/* Whether that is a login: a JSON object with something secret in it. SBA_ECONFIG. */
SBA_API int sba_agent_check_login(const char *agent, const char *text, size_t len,
				  struct sba_error *err);
/* Puts it where the CLI looks for it in s, readable by the sandbox's user alone. SBA_EINVAL:
 * s was not made for it. SBA_EREFUSED: the user's home is in the workspace, which dumps and
 * copies take along. */
SBA_API int sba_agent_place_login(struct sba_sandbox *s, const char *agent, const char *text,
				  size_t len, struct sba_error *err);

/* Moves an agent into a sandbox that was made without one, for good. Of the options
 * agent, program, permissions, mcp and provider ("scripted", or NULL: what each turn
 * says) count. SBA_EEXIST: one lives there. SBA_ENOCLI: its CLI is not there. */
SBA_API int sba_agent_move_in(struct sba_sandbox *s, const struct sba_sandbox_options *options,
			      struct sba_error *err);

struct sba_agent;

/* Zero means the default everywhere. Strings are copied. */
struct sba_agent_options {
	const char *agent; /* "claude"; NULL: what the sandbox was made for */
	/* A driver of your own, instead: lent until the handle is closed. */
	const struct sba_driver *driver;
	bool one_turn;      /* the sandbox ends with the turn: no state is kept for later */
	bool no_turns;      /* only its sessions, skills and rules: no model, no key */
	const char *model;  /* its name; NULL: the driver's default */
	bool offline;       /* the scripted model, started with the agent's handle */
	const char *script; /* its script (JSON text); NULL: the built-in one */
	/* Without `offline`, the relay to a real one. The key stays in this process;
	 * the sandbox gets a token that is good for this relay only. */
	const char *provider;                  /* sba_provider_list(); NULL: the driver's own */
	const char *base_url;                  /* without "/v1"; NULL: the provider's */
	const char *key;                       /* NULL: none is sent */
	const char *ca_file;                   /* PEM bundle for the provider; NULL: the system's */
	int64_t max_tokens;                    /* of all turns of the handle; 0: no limit */
	int64_t max_requests;                  /* of a turn; default 500; -1: no limit */
	const struct sba_audit_options *audit; /* a record of all turns; NULL: none */
	uint64_t reserved[16];
};

/* The agent that lives in `s`, which is lent and must outlive the handle.
 * SBA_EINVAL: the sandbox has no agent, or a model is missing, or there is no
 * such agent or provider. SBA_ECONFIG: the script is broken. SBA_EIO: the scripted model or the
 * relay cannot listen. */
SBA_API int sba_agent_open(struct sba_sandbox *s, const struct sba_agent_options *options,
			   struct sba_agent **ret, struct sba_error *err);
/* Its turns, screen and lists must have been freed before. NULL is allowed. */
SBA_API void sba_agent_close(struct sba_agent *a);
/* The agent's name; lent with the handle. */
SBA_API const char *sba_agent_name(const struct sba_agent *a);

struct sba_turn;

/* Zero means the default everywhere. */
struct sba_turn_options {
	const char *prompt;      /* UTF-8 or not, any size; required and not empty */
	size_t prompt_len;       /* 0: strlen */
	int64_t timeout_ms;      /* of the turn; default 30 min; -1: none */
	int64_t idle_timeout_ms; /* no event, no byte, no CPU used; default 10 min; -1: none */
	const char *workdir;     /* NULL: /workspace */
	int64_t wait_ms; /* for a turn under way, of whatever client; 0: not at all, -1: for ever */
	/* A side branch: answers with what the main session knows and leaves it, byte for
	 * byte, as it was. What its tools do to files stays. SBA_EUNSUPPORTED: not with
	 * this driver. */
	bool aside;
	uint64_t reserved[16];
};

/* Begins a turn on the agent's main session (which this starts or resumes).
 * SBA_EBUSY: another turn of it is under way. SBA_ENOCLI: the CLI is not there; the hint
 * says how to get it. SBA_EINVAL: no prompt. SBA_EBROKEN: the sandbox does not run. The
 * caller frees with sba_turn_free(). */
SBA_API int sba_turn_begin(struct sba_agent *a, const struct sba_turn_options *options,
			   struct sba_turn **ret, struct sba_error *err);
/* The next event, waiting wait_ms at most (-1: for ever): 1 and *ret (lent
 * until the next call), 0 when the turn is over, SBA_ETIMEOUT when nothing
 * came. Failures of the turn are its verdict, not errors of this call. */
SBA_API int sba_turn_next(struct sba_turn *t, int64_t wait_ms, const struct sba_event **ret,
			  struct sba_error *err);

/* Strings are lent until the turn is freed, never NULL. */
struct sba_turn_result {
	enum sba_verdict verdict;
	const char *session;
	const char *text;       /* the final answer */
	struct sba_error error; /* why it is not OK; code 0 if it is */
	int http_status;
	bool retryable;
	struct sba_usage usage;
	uint64_t tools;
	uint64_t unknown_lines;
	int exit_status; /* of the CLI; -1 if it never ended */
	int64_t duration_ms;
	const char *audit; /* the folder of its record; "" if there is none */
	uint64_t reserved[16];
};
/* Valid once sba_turn_next() has returned 0; drains what is left otherwise. */
SBA_API void sba_turn_result(struct sba_turn *t, struct sba_turn_result *ret);
/* Stops the turn by the CLI's own means, and harder after five seconds; what was
 * said until then is the result's text. Goes on while sba_turn_next() or
 * sba_turn_result() is called. Async-signal-safe, idempotent. */
SBA_API void sba_turn_cancel(struct sba_turn *t);
/* The same without the five seconds. Async-signal-safe, idempotent. */
SBA_API void sba_turn_kill(struct sba_turn *t);
/* A turn that is not over is ended first, as by sba_turn_kill(). NULL is allowed. */
SBA_API void sba_turn_free(struct sba_turn *t);

/* ---- the CLI's own screen ---- */

/* Zero means the default everywhere. */
struct sba_screen_options {
	unsigned short rows, columns; /* of the terminal; 0: 24 x 80 */
	const char *const *env;       /* "K=V", NULL-ended: TERM and the like */
	int64_t wait_ms; /* for a turn that is under way; 0: not at all; -1: for ever */
	uint64_t reserved[8];
};
/* Starts the agent's CLI on a terminal, in its main session if it has one, with the
 * model reached as in a turn. *ret is an interactive process, which the caller pumps
 * (sba_process_read(), _write(), _resize()) and frees before the screen is closed. No
 * turn of the agent begins meanwhile. SBA_EUNSUPPORTED: this CLI has no screen. */
SBA_API int sba_agent_screen_open(struct sba_agent *a, const struct sba_screen_options *options,
				  struct sba_process **ret, struct sba_error *err);
/* After the process: what was begun on the screen is the main session, if there was
 * none. Idempotent. */
SBA_API void sba_agent_screen_close(struct sba_agent *a);

/* ---- a recorded stream, for debugging and for writing drivers ---- */

struct sba_recording;
/* For lines that this agent's CLI once wrote. SBA_ENOTFOUND: no such agent. The caller
 * closes. */
SBA_API int sba_recording_open(const char *agent, struct sba_recording **ret,
			       struct sba_error *err);
/* The same by a driver of your own, lent until it is closed. */
SBA_API int sba_recording_open_driver(const struct sba_driver *driver, struct sba_recording **ret,
				      struct sba_error *err);
/* Feeds one line, without its newline. SBA_ENOMEM. */
SBA_API int sba_recording_line(struct sba_recording *r, const char *line, size_t len,
			       struct sba_error *err);
/* The next event of the lines so far, lent until the next call; NULL: no more. */
SBA_API const struct sba_event *sba_recording_next(struct sba_recording *r);
/* The verdict at the end, for that exit status of the CLI. */
SBA_API void sba_recording_result(struct sba_recording *r, int exit_status,
				  struct sba_turn_result *ret);
SBA_API void sba_recording_close(struct sba_recording *r); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
