/* SPDX-License-Identifier: MIT */
/*
 * A sandbox: a container where commands run and files live, with a sidecar
 * beside it that ends it when nobody uses it. A handle may be shared between
 * threads.
 */
#ifndef SANDBOX_AGENT_SANDBOX_H
#define SANDBOX_AGENT_SANDBOX_H

#include <sandbox-agent/engine.h>
#include <sandbox-agent/files.h>
#include <sandbox-agent/image.h>
#include <sandbox-agent/process.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SBA_DEFAULT_PREFIX "sandbox-agent"

/* Zero means the default everywhere; -1 means "none" where that makes sense. */
struct sba_sandbox_options {
	const char *name;           /* unique per prefix; NULL: made up */
	const char *prefix;         /* NULL: SBA_DEFAULT_PREFIX */
	const char *tag;            /* a word for filtering; NULL: none */
	const char *image;          /* reference; required, must be on the engine */
	const char *image_id;       /* the very image that is meant by it; NULL: it says enough */
	const char *user;           /* NULL: the image's */
	const char *agent;          /* name of the driver that will live here; NULL: none */
	const char *const *program; /* what the driver `command` runs; NULL-ended; NULL: none */
	const char *provider;       /* where model calls go: "scripted"; NULL: none */
	const char *base_url;       /* of the provider, where it is not the usual one; NULL: none */
	const char *key_env;        /* name of the variable that holds the key here; NULL: none */
	const char *model;          /* its name, for turns that say none; NULL: the driver's */
	const char *permissions;    /* of the agent: "read-only", "edit", "full"; NULL: full */
	const char *mcp;    /* names of the agent's MCP servers, between blanks; NULL: none */
	const char *login;  /* of the agent (sba_agent_login()->path): will be in it; NULL: none */
	int64_t max_tokens; /* budgets for turns that say none; 0: the agent's defaults */
	int64_t max_requests;
	const char *const *env;  /* "K=V", NULL-ended: shown by the engine's inspect */
	int64_t keepalive_ms;    /* idle time until it ends itself; default 1 h; -1: never */
	int64_t max_lifetime_ms; /* default 24 h; -1: none */
	int64_t memory;          /* bytes; default 2 GiB */
	double cpus;             /* default min(2, the engine's) */
	int64_t pids;            /* default 512 */
	int64_t max_sandboxes;   /* of this prefix, this one included; default 20; -1: any number */
	const char *network; /* "open" (default): the engine's bridge; "sealed": loopback only */
	const char *const
		*allow; /* HOST[:PORT], *.suffix, CIDR: what a sealed one reaches; NULL-ended */
	/* "HOST:PATH" or "HOST:PATH:ro": a file or folder of the engine's machine that is
	 * there at PATH as well; NULL-ended. SBA_EREFUSED: an engine's socket, and what
	 * leads to one. */
	const char *const *mounts;
	const char *runtime; /* NULL: the engine's */
	const char *ca_file; /* PEM bundle that programs inside shall trust, or NULL */
	bool pool; /* claims one that is ready, where there is one; see sba_pool_claim() */
	uint64_t reserved[32];
};

/* Makes and starts one. SBA_EIMAGE: image not there. SBA_EEXIST: name taken.
 * On failure nothing is left. The caller closes the handle, or removes it. */
SBA_API int sba_sandbox_create(struct sba_engine *e, const struct sba_sandbox_options *options,
			       struct sba_sandbox **ret, struct sba_error *err);
/* Finds one of ours by name (prefix NULL: the default) or by full id.
 * SBA_ENOTFOUND names the nearest. SBA_EREFUSED: not ours. */
SBA_API int sba_sandbox_open(struct sba_engine *e, const char *prefix, const char *name,
			     struct sba_sandbox **ret, struct sba_error *err);
/* Borrows a container that is not ours, by its name or id; e is lent and outlives the
 * handle. Commands go by the engine's own exec, files by commands inside (sh, cat, tar).
 * Capabilities: stdin, tty, signal, user, trees; a deadline, a cancel, a signal need a
 * shell inside, and reach what has kept the command's environment. There is no lease: what
 * runs goes on when this program dies. It is never removed: SBA_EREFUSED. SBA_ENOTFOUND.
 * SBA_EBROKEN: it does not run. SBA_EREFUSED: a container of a sandbox. */
SBA_API int sba_sandbox_open_container(struct sba_engine *e, const char *name,
				       struct sba_sandbox **ret, struct sba_error *err);
/* Lets go of the handle; the sandbox lives on. Its processes, turns, agents and
 * ports must have been freed before; what they started is ended, detached commands
 * excepted. */
SBA_API void sba_sandbox_close(struct sba_sandbox *s); /* NULL is allowed */
/* Ends it and removes all that belonged to it. Idempotent; goes on although
 * the engine's cancel token was fired. The handle must still be closed. */
SBA_API int sba_sandbox_remove(struct sba_sandbox *s, struct sba_error *err);
/* Ends the commands that run in it; *ret_ended (may be NULL): whether there were any. */
SBA_API int sba_sandbox_stop(struct sba_sandbox *s, bool *ret_ended, struct sba_error *err);

/* What is known of a sandbox; of an agent that moved in later only after
 * sba_sandbox_find_agent(). Strings are lent with the handle or list, never NULL. */
struct sba_sandbox_info {
	const char *name, *id, *prefix, *tag, *agent, *provider, *image, *user, *version, *network,
		*allow, *base_url, *key_env, *model, *permissions, *mcp, *login;
	const char *program;     /* its argv as a JSON array; "" if there is none */
	const char *mounts;      /* likewise, with links followed; "" if there is none */
	const char *pool;        /* of what came from the pool: a hash of what it was made for */
	const char *state;       /* "idle", "working", "ready" (in the pool), "created", "paused",
				  * "changing", "gone", "broken" */
	const char *reason;      /* of "gone": "keepalive", "removed", …; else "" */
	int64_t created;         /* UNIX seconds */
	int64_t keepalive_ms;    /* 0: never ends for idleness */
	int64_t max_lifetime_ms; /* 0: none */
	int64_t max_tokens;      /* 0: not said */
	int64_t max_requests;    /* 0: not said */
	int commands;            /* in progress */
	bool foreign_schema;     /* made by a newer version: shown, never touched */
};
/* Lent with the handle: as it was when that was opened. */
SBA_API const struct sba_sandbox_info *sba_sandbox_info(const struct sba_sandbox *s);
/* Looks inside for an agent that moved into a sandbox which was made without one
 * (sba_agent_move_in()), and adds what it is to the info. 0 where there is none.
 * Several threads may do so at once; one that only reads the info may see what it was
 * before. */
SBA_API int sba_sandbox_find_agent(struct sba_sandbox *s, struct sba_error *err);

/* Zero means the default everywhere. */
struct sba_list_options {
	const char *prefix; /* NULL: the default; "*": every prefix */
	bool all;      /* also what is ready in the pool, half-made, or went within the last hour */
	bool ready;    /* only what is ready in the pool */
	bool moved_in; /* looks into those without an agent for one that moved in */
	bool brief;    /* one question for all: what works is told as "idle" */
	const char *tag, *agent, *name; /* only these */
	uint64_t reserved[8];
};
struct sba_sandbox_list;
/* What the engine has of ours, newest first; the caller frees. An engine that does
 * not tell of the past makes a list without it, not an error. */
SBA_API int sba_sandbox_list(struct sba_engine *e, const struct sba_list_options *options,
			     struct sba_sandbox_list **ret, struct sba_error *err);
SBA_API size_t sba_sandbox_list_count(const struct sba_sandbox_list *l);
/* Lent with the list; NULL behind its end. */
SBA_API const struct sba_sandbox_info *sba_sandbox_list_at(const struct sba_sandbox_list *l,
							   size_t n);
SBA_API void sba_sandbox_list_free(struct sba_sandbox_list *l); /* NULL is allowed */

/* ---- the pool: sandboxes that are ready before anybody wants them ---- */

/* More are never held ready for one kind. */
enum { SBA_POOL_MAX = 1000 };

/* Makes as many as are missing until `count` (1 to SBA_POOL_MAX) are ready for a claim
 * with the same options, in whatever process. Several that fill at once do not
 * make more. options->name and max_sandboxes do not count; an env is refused, as
 * anybody may claim. Each ends as every other sandbox does: after its keepalive,
 * which begins anew once it is used. *ret_made (may be NULL): how many it made,
 * told on failure too. SBA_EUNSUPPORTED: on Podman. */
SBA_API int sba_pool_fill(struct sba_engine *e, const struct sba_sandbox_options *options,
			  size_t count, size_t *ret_made, struct sba_error *err);
/* Takes one that was made with the same options and gives it its name; from then
 * on it is a sandbox as any other, and counts as one, but for its hostname and its
 * age. Of several that claim, in whatever process, each has its own. SBA_ENOTFOUND:
 * none is ready, or the options have an env. Else as sba_sandbox_create(). */
SBA_API int sba_pool_claim(struct sba_engine *e, const struct sba_sandbox_options *options,
			   struct sba_sandbox **ret, struct sba_error *err);
/* Removes what is ready and nobody has claimed, all or those of an agent.
 * *ret_removed may be NULL. */
SBA_API int sba_pool_drain(struct sba_engine *e, const char *prefix, const char *agent,
			   int *ret_removed, struct sba_error *err);

/* Everything about one as JSON text: our view, and the engine's inspect of both
 * containers with the values of environment variables left out. The caller
 * frees with free(). */
SBA_API int sba_sandbox_describe(struct sba_sandbox *s, char **ret_json, struct sba_error *err);

/* The names of the variables that it was given (options.env), NULL-ended; the caller
 * frees with sba_env_names_free(). SBA_ENOTFOUND: its container is gone. */
SBA_API int sba_sandbox_env_names(struct sba_sandbox *s, char ***ret, struct sba_error *err);
SBA_API void sba_env_names_free(char **names); /* NULL is allowed */

/* What a sandbox may use, as the engine keeps it; 0: no limit. */
struct sba_sandbox_limits {
	int64_t memory; /* bytes */
	int64_t pids;
	double cpus;
	uint64_t reserved[8];
};
/* SBA_ENOTFOUND: its container is gone. */
SBA_API int sba_sandbox_limits(struct sba_sandbox *s, struct sba_sandbox_limits *ret,
			       struct sba_error *err);

/* Removes what died half-made: a sandbox without its sidecar or the reverse,
 * what was created and never started, what was claimed and never named; and the images of
 * sidecars of other versions, older than a day and in use by no container. Only ours.
 * *ret_removed (may be NULL) counts sandboxes. */
SBA_API int sba_gc(struct sba_engine *e, const char *prefix, int *ret_removed,
		   struct sba_error *err);

/* What it saw. */
struct sba_probe {
	int landlock;    /* the kernel's Landlock ABI, as the inside sees it; 0: none */
	int64_t took_ms; /* to make one and to end it */
	uint64_t reserved[8];
};
/* Whether sandboxes work on this engine: makes one of nothing but our own guest, looks at
 * it from inside, and removes it. Needs no image, and counts to no limit. */
SBA_API int sba_sandbox_probe(struct sba_engine *e, const char *prefix, struct sba_probe *ret,
			      struct sba_error *err);

/* ---- forks ---- */

/* Zero means the default everywhere. */
struct sba_fork_options {
	size_t count; /* default 1, at most 64 */
	/* One child is called exactly that, several NAME-1, NAME-2…; NULL: the
	 * parent's name and the first numbers that are free. */
	const char *name;
	const char *const *env; /* "K=V", NULL-ended: the parent's own is not inherited */
	int64_t max_sandboxes;  /* as for sba_sandbox_create() */
	int64_t timeout_ms;     /* default 5 min */
	uint64_t reserved[8];
};

/* What came along to each child. */
struct sba_fork_report {
	uint64_t files, bytes; /* that had changed in the parent and came along */
	uint64_t deleted;      /* paths of the image that are gone in the parent */
	uint64_t left_out;     /* sockets, devices, what went or changed while it was read */
	uint64_t reserved[8];
};

/* Makes `count` sandboxes of the same image and settings as `parent`, each with
 * every file as it is there now; tag and environment are not inherited, nor is
 * anything that runs. SBA_ELIMIT: more than 64 GiB have changed. Fills ret[0..count) with handles
 * that the caller closes, or, on failure, nothing: no child is left. *ret_report may be NULL. */
SBA_API int sba_sandbox_fork(struct sba_sandbox *parent, const struct sba_fork_options *options,
			     struct sba_sandbox **ret, struct sba_fork_report *ret_report,
			     struct sba_error *err);

/* ---- what goes through the rules of a sealed sandbox ---- */

/* One connection that --allow let through, at its end, or one that was refused.
 * Strings are lent for the call; host is "" where the request said none. */
struct sba_connection {
	const char *host; /* as it was asked for, in visible characters */
	uint16_t port;
	bool allowed;
	const char *why;         /* it was refused or failed; NULL: all went well */
	const char *rule;        /* what would have allowed it, where something would */
	uint64_t sent, received; /* bytes, to the server and back */
};

/* The caller's memory; `connection` runs on a thread of the sandbox's, one call at
 * a time. It must not wait for long, nor call anything of the sandbox. */
struct sba_observer {
	void (*connection)(void *user, const struct sba_connection *c);
	void *user;
	struct sba_observer *next; /* the sandbox's */
	uint64_t reserved[4];
};
/* Tells of every connection from now on, those of this handle's commands; any
 * number of observers. It may stay until the handle is closed. */
SBA_API void sba_sandbox_observe(struct sba_sandbox *s, struct sba_observer *o);
/* No call is under way, and none comes, once it has returned. */
SBA_API void sba_sandbox_unobserve(struct sba_sandbox *s, struct sba_observer *o);
/* One line about a refusal, with what would allow it; false if it was none. */
SBA_API bool sba_connection_refusal(const struct sba_connection *c, char *ret, size_t size);

/* ---- ports ---- */

struct sba_port;

/* Zero means the default everywhere. */
struct sba_port_options {
	uint16_t port;            /* on the sandbox's loopback; required */
	const char *host_address; /* IPv4 literal here; NULL: 127.0.0.1 */
	uint16_t host_port;       /* here; 0: any free one */
	uint64_t reserved[8];
};

/* While it is open, a port here leads to one on the sandbox's loopback, on every
 * network. The sandbox is lent. SBA_EIO: the port here is taken. SBA_EUNSUPPORTED:
 * there is no channel to carry it. */
SBA_API int sba_port_open(struct sba_sandbox *s, const struct sba_port_options *options,
			  struct sba_port **ret, struct sba_error *err);
/* The port here. */
SBA_API uint16_t sba_port_here(const struct sba_port *p);
/* Connections under way go on until the sandbox's handle is closed. NULL is allowed. */
SBA_API void sba_port_close(struct sba_port *p);
/* What code inside uses to reach a port on this host's loopback: opened for this
 * sandbox only, on every network, while the handle is open. */
SBA_API int sba_sandbox_host_url(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
				 struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
