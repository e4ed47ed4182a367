/* SPDX-License-Identifier: MIT */
/*
 * A command that runs in a sandbox. One thread at a time; only
 * sba_process_cancel() may be called from anywhere.
 */
#ifndef SANDBOX_AGENT_PROCESS_H
#define SANDBOX_AGENT_PROCESS_H

#include <sandbox-agent/error.h>

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_sandbox;
struct sba_process;

/* Zero means the default everywhere. All of it is copied before the call returns. */
struct sba_exec_options {
	const char *const *argv; /* NULL-ended; argv[0] is looked up in the PATH inside */
	const char *const *env;  /* "K=V", NULL-ended, on top of the image's; any value */
	const char *workdir;     /* NULL: the image's */
	const char *user;        /* name, uid or uid:gid; NULL: the sandbox's */
	int64_t timeout_ms;      /* then the whole tree is ended; 0: none */
	bool has_stdin;          /* sba_process_write() will be used; else stdin is at its end */
	bool tty;                /* a terminal: stdout and stderr arrive together as stdout */
	unsigned short rows, columns; /* of the terminal; 0: 24 x 80 */
	int64_t max_output; /* bytes of both streams together that are passed on; 0: all */
	/* Not while another command of the sandbox holds this name (letters, digits, '.', '_',
	 * '-', which does not come first; 64 at most), whoever started it; NULL: none. SBA_LOCKED
	 * after the wait. */
	const char *lock;
	int64_t lock_wait_ms; /* 0: not at all */
	bool detach;          /* goes on after the handle is closed or the client has died */
	/* May signal and trace processes that other commands started. Without it a
	 * command reaches its own alone (Linux 6.12; older kernels know no such limit),
	 * and its end is certain: one stroke of the kernel hits its whole tree. */
	bool signal_others;
	uint64_t reserved[16];
};

/* Starts a command. SBA_EBROKEN: the sandbox does not run. What is wrong with
 * the command itself (not found, no such directory) comes from sba_process_wait().
 * SBA_EINVAL: no argv, or an option that makes no sense. The caller frees with
 * sba_process_free(). */
SBA_API int sba_sandbox_exec(struct sba_sandbox *s, const struct sba_exec_options *options,
			     struct sba_process **ret, struct sba_error *err);

/* Which of its streams a piece of output came from. */
enum sba_output { SBA_STDOUT = 1, SBA_STDERR = 2 };

/* The next piece of output, waiting wait_ms at most (-1: for ever): its length,
 * *which and *data (lent until the next call). 0: both streams have ended.
 * SBA_ETIMEOUT: nothing yet; it comes early where a write took nothing before and
 * now would, and once when output beyond max_output begins to be dropped.
 * SBA_EBROKEN: no more will come. SBA_ELOST: the same, but the command may still
 * run; sba_process_wait() watches it to its end.
 * Sends queued input while it waits. */
SBA_API ssize_t sba_process_read(struct sba_process *p, int64_t wait_ms, enum sba_output *which,
				 const char **data, struct sba_error *err);
/* Queues input; returns how much was taken, 0 when the queue is full: read
 * before writing more. Input for a command that no longer reads is dropped. */
SBA_API ssize_t sba_process_write(struct sba_process *p, const void *data, size_t len,
				  struct sba_error *err);
/* The end of its stdin, behind what is queued. Idempotent. */
SBA_API int sba_process_close_stdin(struct sba_process *p, struct sba_error *err);
/* A new terminal size; without a terminal nothing happens. */
SBA_API int sba_process_resize(struct sba_process *p, unsigned short rows, unsigned short columns,
			       struct sba_error *err);
/* A signal to the command's process group. No error once that has ended. */
SBA_API int sba_process_signal(struct sba_process *p, int signal_number, struct sba_error *err);
/* A descriptor for poll(); readable when sba_process_read() may have something.
 * Read until SBA_ETIMEOUT before polling. */
SBA_API int sba_process_fd(const struct sba_process *p);
/* What to poll() it for: POLLIN, and POLLOUT while input waits to be sent or there
 * is room again after a write that took nothing: write again when it tells. */
SBA_API short sba_process_events(const struct sba_process *p);

/* How a command ended. */
enum sba_exit_kind {
	SBA_EXITED,        /* number: exit status */
	SBA_SIGNALED,      /* number: signal */
	SBA_OUT_OF_MEMORY, /* the kernel's OOM killer ended it */
	SBA_TIMED_OUT,     /* its deadline passed; its tree was ended */
	SBA_WAS_CANCELED,
	SBA_NOT_FOUND,  /* no such program */
	SBA_CANNOT_RUN, /* not executable and the like; number: errno */
	SBA_NO_WORKDIR, /* number: errno */
	SBA_NO_PROCESS, /* the sandbox's process limit is full */
	SBA_DETACHED,   /* it runs on */
	SBA_LOCKED,     /* another command holds its lock: it was not started */
};

/* Filled by sba_process_wait(). */
struct sba_exit {
	enum sba_exit_kind kind;
	int number;
	/* What the sandbox's limits took while the command ran, from this command or from
	 * others beside it: whatever its own end was, something in it may have died or
	 * never begun. */
	int64_t oom_kills;    /* processes that the OOM killer took */
	int64_t pids_refused; /* processes that the limit of processes refused */
	uint64_t reserved[4];
};

/* The exit status a shell would show: 124 timeout, 126 cannot run, 127 not
 * found, 128+n signal, 137 out of memory, 130 cancelled. */
SBA_API int sba_exit_status(const struct sba_exit *e);

/* Discards output that was not read and waits for the end (-1: for ever).
 * SBA_ETIMEOUT: still running. SBA_EBROKEN: the sandbox died under it.
 * SBA_ELOST: the engine went away, or what carried the command broke: it has ended
 * or is being ended, how is not known. */
SBA_API int sba_process_wait(struct sba_process *p, int64_t wait_ms, struct sba_exit *ret,
			     struct sba_error *err);
/* How many bytes beyond max_output were dropped so far. */
SBA_API uint64_t sba_process_dropped(const struct sba_process *p);
/* After its end: true if processes that it left behind hold its output open. They
 * were waited for half a second; what they write from then on is dropped. */
SBA_API bool sba_process_output_held(const struct sba_process *p);
/* Ends the command with everything it started: TERM, a grace of two seconds,
 * KILL. Returns at once; read or wait to see it end. Async-signal-safe. */
SBA_API void sba_process_cancel(struct sba_process *p);
/* Closes the handle; a command that still runs and is not detached is ended. */
SBA_API void sba_process_free(struct sba_process *p); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
