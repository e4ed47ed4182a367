/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox is: one table of functions. docker, local, opensandbox and e2b are
 * such tables, and one of your own is a sandbox like theirs: agents, sessions, records
 * and commands use nothing else (docs/backends.md, examples/own_sandbox.c).
 */
#ifndef SANDBOX_AGENT_BACKEND_H
#define SANDBOX_AGENT_BACKEND_H

#include <sandbox-agent/changes.h>
#include <sandbox-agent/code.h>
#include <sandbox-agent/files.h>
#include <sandbox-agent/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a sandbox can do beyond what each must ---- */

enum sba_capability {
	SBA_CAN_STDIN = 1 << 0,       /* a command reads input while it runs; else all of it is
				       * sent before the command begins */
	SBA_CAN_TTY = 1 << 1,         /* a terminal, which can be resized */
	SBA_CAN_SIGNAL = 1 << 2,      /* any signal; else only the end of a command */
	SBA_CAN_USER = 1 << 3,        /* a command as another user */
	SBA_CAN_DETACH = 1 << 4,      /* a command that outlives its client */
	SBA_CAN_LOCK = 1 << 5,        /* names that commands hold, whatever client started them */
	SBA_CAN_HOST_URL = 1 << 6,    /* ports of this host are reached from inside */
	SBA_CAN_PORT = 1 << 7,        /* ports inside are reached from this host */
	SBA_CAN_TREES = 1 << 8,       /* folders in and out */
	SBA_CAN_FORK = 1 << 9,        /* copies of it */
	SBA_CAN_INSPECT = 1 << 10,    /* limits, environment, CPU used, all that is known of it */
	SBA_CAN_RUN_CODE = 1 << 11,   /* source in a language: code.h */
	SBA_CAN_CODE_STATE = 1 << 12, /* contexts of it that keep their state */
};
/* "tty", "host_url", …: the word that errors use. Lent for ever. */
SBA_API const char *sba_capability_name(enum sba_capability one);
/* Whether the sandbox has all of them (values of enum sba_capability, joined by |). What
 * is asked of one that has not fails with SBA_EUNSUPPORTED, naming the capability. */
SBA_API bool sba_sandbox_can(const struct sba_sandbox *s, unsigned capabilities);
/* "docker", "local", …; lent with the handle. */
SBA_API const char *sba_sandbox_backend(const struct sba_sandbox *s);

/* ---- what every sandbox has, whatever its backend ---- */

/* The folder where an agent works, and commands begin that name no other; in a container
 * those begin in the image's. Absolute, lent with the handle. Does not block. */
SBA_API const char *sba_sandbox_workdir(const struct sba_sandbox *s);

/* Zero means the default everywhere. */
struct sba_run_options {
	const char *const *argv; /* as for sba_sandbox_exec() */
	const char *const *env;
	const char *workdir;
	const void *input; /* its stdin; NULL: at its end */
	size_t input_len;
	int64_t timeout_ms; /* then all that it started is ended; default: 60 s; -1: none */
	size_t max_output;  /* of stdout and stderr together; default 10 MiB */
	uint64_t reserved[8];
};
struct sba_run_result {
	char *out, *err; /* as far as it came, NUL-ended besides; never NULL */
	size_t out_len, err_len;
	uint64_t dropped;     /* bytes beyond max_output */
	struct sba_exit exit; /* SBA_TIMED_OUT: what it had printed by then is there */
	uint64_t reserved[8];
};
/* Runs a command to its end and keeps its output. How it ended is no error of the call;
 * SBA_EBROKEN and the like are. Blocks. The caller frees with sba_run_result_fini(). */
SBA_API int sba_sandbox_run(struct sba_sandbox *s, const struct sba_run_options *options,
			    struct sba_run_result *ret, struct sba_error *err);
SBA_API void sba_run_result_fini(struct sba_run_result *r); /* all zero is allowed */

/* Where the PATH inside has a program; SBA_ENOTFOUND. Blocks. The caller frees. */
SBA_API int sba_sandbox_which(struct sba_sandbox *s, const char *program, char **ret,
			      struct sba_error *err);
/* A new folder that only the sandbox's user may enter; gone with the sandbox. Blocks. The
 * caller frees the path. */
SBA_API int sba_sandbox_tempdir(struct sba_sandbox *s, char **ret, struct sba_error *err);

/* ---- the table ---- */

enum { SBA_BACKEND_VERSION = 2 };

/* Zero means the default everywhere. */
struct sba_tree_options {
	int64_t timeout_ms; /* in all; 0: none */
	bool no_clobber;    /* upload: regular files that are there stay */
	uint64_t reserved[8];
};

/* A tar on its way out. What it says is distrusted by the library. */
struct sba_tree {
	sba_read_fn *read;         /* its next bytes, 0 at its good end */
	void (*close)(void *user); /* the last call, also in the middle; may be NULL */
	void *user;
	uint64_t reserved[4];
};

/*
 * A backend. A member that may be NULL is made by the library, of `exec` and what most
 * images have (sh, cat, mkdir, tar), or its capability is missing. All may block, unless
 * it says otherwise, and may be called from several threads at a time for one sandbox;
 * `free` is the last call. Paths are absolute. Errors are as sba_sandbox_…() of the same
 * name tells; the library puts the sandbox's name in front.
 */
struct sba_backend {
	int version;      /* SBA_BACKEND_VERSION; of one that is older, what came later is NULL */
	const char *name; /* letters, digits, '-' and '_' */
	unsigned can;     /* enum sba_capability */

	/* The folder of sba_sandbox_workdir(). Does not block. NULL: "/workspace". */
	const char *(*workdir)(const struct sba_sandbox *s);
	/* Starts a command: a process of the library's, mostly by sba_process_of_pipes().
	 * What the options ask for is what `can` promises; timeout_ms and max_output are the
	 * library's to keep. workdir NULL: that of the sandbox. Not NULL. */
	int (*exec)(struct sba_sandbox *s, const struct sba_exec_options *options,
		    struct sba_process **ret, struct sba_error *err);
	int (*run)(struct sba_sandbox *s, const struct sba_run_options *options,
		   struct sba_run_result *ret, struct sba_error *err);
	/* A whole file, in pieces; links are followed as far as they stay in the sandbox. */
	int (*read)(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		    sba_write_fn *write, void *user, struct sba_error *err);
	/* A whole file or nothing of it; makes parents. */
	int (*write)(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		     const struct sba_write_options *options, struct sba_error *err);
	int (*stat)(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		    struct sba_error *err);
	int (*which)(struct sba_sandbox *s, const char *program, char **ret, struct sba_error *err);
	int (*tempdir)(struct sba_sandbox *s, char **ret, struct sba_error *err);
	/* What code inside uses to reach a port on this host's loopback. NULL: nothing does. */
	int (*host_url)(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
			struct sba_error *err);
	/* As sba_sandbox_fork(). NULL: without SBA_CAN_FORK. */
	int (*fork)(struct sba_sandbox *parent, const struct sba_fork_options *options,
		    struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		    struct sba_error *err);
	/* sba_sandbox_remove(): ends what runs in it, and it. Idempotent; what is called after
	 * it fails with SBA_EBROKEN, which the library sees to. Not NULL. */
	int (*close)(struct sba_sandbox *s, struct sba_error *err);
	/* sba_sandbox_close(): lets go of self, and leaves alone what may live on. Once, when
	 * nothing else is under way. NULL: there is nothing to let go of. */
	void (*free)(struct sba_sandbox *s);

	/* ---- since version 2 ---- */

	/* Tells of every file and link below options->folder (absolute; NULL: that of workdir),
	 * in any order and none twice; paths begin at the folder, and nothing called .git is
	 * among them. What options ask for and it cannot do fails with SBA_EUNSUPPORTED.
	 * Idempotent. NULL: by GNU's find, xargs and sha256sum inside. */
	int (*snapshot)(struct sba_sandbox *s, const struct sba_snapshot_options *options,
			sba_snapshot_fn *tell, void *user, struct sba_error *err);
	/* Unpacks a plain tar, read once, into a folder that is made where it is missing; what is
	 * there is merged into. Its names are safe; its files become the sandbox's user's. In
	 * place when it returns 0; as far as it can, nothing has changed when it fails. NULL: by
	 * the library's channel, else by tar inside. Both only with SBA_CAN_TREES. */
	int (*upload)(struct sba_sandbox *s, const char *folder, sba_read_fn *read, void *user,
		      const struct sba_tree_options *options, struct sba_error *err);
	/* Opens a tar of a file or folder; its names begin with the last component of path, with
	 * "./" where path ends in "/.". Each tree is read by one thread. NULL: as of upload. */
	int (*download)(struct sba_sandbox *s, const char *path,
			const struct sba_tree_options *options, struct sba_tree *ret,
			struct sba_error *err);
	/* As sba_sandbox_run_code(): tells what comes as it comes. Of the options the defaults are
	 * filled in, and max_output is the library's to keep.
	 * NULL: by python3, node, bash and sh inside. Both only with SBA_CAN_RUN_CODE. */
	int (*run_code)(struct sba_sandbox *s, const struct sba_code_options *options,
			sba_code_fn *tell, void *user, struct sba_exit *ret, struct sba_error *err);
	/* As sba_code_context_new() and _end(), which is idempotent; names are letters, digits, '-'
	 * and '_'. NULL: without SBA_CAN_CODE_STATE. */
	int (*context_new)(struct sba_sandbox *s, const char *language, char **ret,
			   struct sba_error *err);
	int (*context_end)(struct sba_sandbox *s, const char *context, struct sba_error *err);
	uint64_t reserved[10];
};

/* Makes a handle on a sandbox of your own. The table is lent and outlives it; self is what
 * sba_sandbox_self() returns, given up to `free` once this has succeeded. name: for people.
 * SBA_EINVAL: something is missing in the table, or it is of a later version. One of an earlier
 * version is taken as it was then: what came later is missing in it, whatever lies there. */
SBA_API int sba_sandbox_adopt(const struct sba_backend *backend, void *self, const char *name,
			      struct sba_sandbox **ret, struct sba_error *err);
/* The backend's own, as it was adopted with. */
SBA_API void *sba_sandbox_self(const struct sba_sandbox *s);

/* ---- local: a folder of this host, for code that is trusted ---- */

/* Zero means the default everywhere. */
struct sba_local_options {
	const char *name; /* for people; NULL: the folder's */
	/* What commands find in their environment, "K=V", NULL-ended: mostly the program's own.
	 * Credentials of model providers and the sockets of agents are left out, and what looks
	 * like a secret by its name or value (docs/backends.md). NULL: a PATH and no more. */
	const char *const *environment;
	bool keep_env;          /* what looks like a secret stays */
	const char *const *env; /* on top of that, as it is */
	/* Commands may write anywhere. Without it they write to the folder and to a temporary
	 * one alone, where the kernel has Landlock: sba_local_landlock(). */
	bool no_landlock;
	struct sba_cancel *cancel; /* ends every wait; lent, outlives the handle */
	uint64_t reserved[8];
};
/* Commands are processes of this host, of the program's user; they begin in `folder`, which
 * must be there and which file functions stay in. HOME and TMPDIR are a new folder. All that
 * runs ends with the handle, or with this program. Capabilities: stdin, tty, signal,
 * host_url, port, trees. SBA_EINVAL: no such folder. */
SBA_API int sba_local_open(const char *folder, const struct sba_local_options *options,
			   struct sba_sandbox **ret, struct sba_error *err);
/* The kernel's Landlock ABI; 0: it has none that could confine a local sandbox. */
SBA_API int sba_local_landlock(void);
/* Whether a variable is left out without keep_env. */
SBA_API bool sba_local_hides(const char *name, const char *value);

/* ---- a command that has descriptors ---- */

/* Of the caller's; the first argument is sba_pipes.command. One thread at a time, but
 * kill may come while another waits. */
struct sba_pipes_ops {
	/* To the command's process group. NULL: without SBA_CAN_SIGNAL. */
	int (*send_signal)(void *command, int signal_number, struct sba_error *err);
	/* Ends it and all that it started, at once. Idempotent; does not block. */
	void (*kill)(void *command);
	/* How it ended, waiting wait_ms at most (-1: for ever). SBA_ETIMEOUT: it still runs. */
	int (*wait)(void *command, int64_t wait_ms, struct sba_exit *ret, struct sba_error *err);
	/* A terminal's size: of a command, for it is a command that has a terminal; a sandbox has
	 * no size. NULL: without SBA_CAN_TTY. */
	int (*resize)(void *command, unsigned short rows, unsigned short columns,
		      struct sba_error *err);
	/* The last call; a command that still runs is to be ended. */
	void (*free)(void *command);
	uint64_t reserved[8];
};

struct sba_pipes {
	int in;    /* what is written here is its stdin; -1: it has none */
	int out;   /* its stdout; not -1 */
	int err;   /* its stderr; -1: it comes with stdout */
	int ended; /* readable once it has ended, as a pidfd is; -1: the end of its output tells */
	const struct sba_pipes_ops *ops;
	void *command;
	uint64_t reserved[8];
};
/* A process that the library pumps: it keeps timeout_ms and max_output of the options, and
 * ends the command for both, and when it is cancelled or freed. Descriptors and command are
 * taken, also on failure. */
SBA_API int sba_process_of_pipes(const struct sba_pipes *take_pipes,
				 const struct sba_exec_options *options, struct sba_process **ret,
				 struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
