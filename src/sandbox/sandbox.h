/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes on a Docker engine: made with a sidecar that ends them, found
 * again by their labels, used through commands and files. It knows engine,
 * image, archive and the guest's protocol, and nothing of agents.
 */
#ifndef SBA_SANDBOX_H
#define SBA_SANDBOX_H

#include <sandbox-agent/backend.h>
#include <sandbox-agent/changes.h>

#include "base/base.h"

struct sba_engine *sba_sandbox_engine(const struct sba_sandbox *s);
/* The main container's full id. */
const char *sba_sandbox_container(const struct sba_sandbox *s);
/* A limit for work on this sandbox: at most ms, stopped by the engine's cancel. */
struct sba_until sba_sandbox_until(const struct sba_sandbox *s, int64_t ms);

/* Why it is gone, as words for an error ("ended after 30 s without use",
 * "removed by someone"), from the engine's events; "reason unknown" at worst. */
void sba_sandbox_post_mortem(const struct sba_sandbox *s, char *ret, size_t size);
/* SBA_EBROKEN with the post mortem in its text if the sandbox does not run any
 * more, else 0. `tried` says what was going on. */
int sba_sandbox_check_alive(struct sba_sandbox *s, const char *tried,
			    struct sba_error *err) SBA_MUST_CHECK;

/* What a running command's sandbox has lost to its limits since the command began, as far
 * as that is known before its end: both counts as in struct sba_exit. */
void sba_process_losses(const struct sba_process *p, int64_t *ret_oom_kills,
			int64_t *ret_pids_refused);

/* Takes output on its way; a negative return ends it. */
typedef int sba_output_fn(void *user, enum sba_output which, const char *data, size_t len,
			  struct sba_error *err);
/* Gives a command all of its stdin (data NULL: it has none) and takes what it says, to
 * the end of both streams. */
int sba_process_converse(struct sba_process *p, const void *data, size_t len, sba_output_fn *take,
			 void *user, struct sba_error *err) SBA_MUST_CHECK;

/* Keeps an agent inside, for sba_sandbox_find_agent(): agent, program, provider,
 * permissions and mcp of the options. */
int sba_sandbox_set_agent(struct sba_sandbox *s, const struct sba_sandbox_options *options,
			  struct sba_error *err) SBA_MUST_CHECK;

/* ---- a login of the agent's (login.c) ---- */

/* Adds the strings of a JSON text that are secret. SBA_ELIMIT: too many for a login. */
int sba_login_secrets(const json_t *j, struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;
/* The same of the login that the sandbox has, as it is now; nothing where it has none. */
int sba_sandbox_login_secrets(struct sba_sandbox *s, struct sba_strv *ret,
			      struct sba_error *err) SBA_MUST_CHECK;

/* CPU time that all in it has used since it began, in ns. */
int sba_sandbox_cpu(struct sba_sandbox *s, int64_t *ret_ns, struct sba_error *err) SBA_MUST_CHECK;

/* What lies in front of the paths of sba_sandbox_read_small() and its like, for those
 * inside who are told such a path: "" in a container. Lent with the handle. */
int sba_sandbox_root(struct sba_sandbox *s, const char **ret, struct sba_error *err) SBA_MUST_CHECK;
/* A folder of the sandbox's user, and those above it, where they are missing. */
int sba_sandbox_make_dir(struct sba_sandbox *s, const char *path,
			 struct sba_error *err) SBA_MUST_CHECK;
/* A small file, whole, by the engine's archive endpoint: works on state that
 * the sandbox's user may not touch. SBA_ENOTFOUND: not there. */
int sba_sandbox_read_small(struct sba_sandbox *s, const char *path, size_t max, struct sba_buf *ret,
			   struct sba_error *err) SBA_MUST_CHECK;
/* Places root-owned files, making their directories, by one request. */
struct sba_small_file {
	const char *path; /* absolute */
	const void *data;
	size_t len;
	uint32_t mode;
};
int sba_sandbox_write_files(struct sba_sandbox *s, const struct sba_small_file *files, size_t n,
			    struct sba_error *err) SBA_MUST_CHECK;
/* One of them. */
int sba_sandbox_write_small(struct sba_sandbox *s, const char *path, const void *data, size_t len,
			    uint32_t mode, struct sba_error *err) SBA_MUST_CHECK;

/* From now on, and while the handle is open, 127.0.0.1:*ret_port inside leads to
 * 127.0.0.1:host_port here, whatever the sandbox's network; after a lost channel
 * again, with the next one, under the same port unless somebody has it.
 * SBA_EUNSUPPORTED: there is no channel to carry it. */
int sba_sandbox_forward(struct sba_sandbox *s, uint16_t host_port, uint16_t *ret_port,
			struct sba_error *err) SBA_MUST_CHECK;

/* A name that one client at a time holds in a sandbox, whatever process or host it
 * is; it is let go when the handle is closed, or the client dies. */
struct sba_lock;
/* Waits at most wait_ms (-1: for ever). SBA_EBUSY: another holds it. */
int sba_sandbox_lock(struct sba_sandbox *s, const char *name, int64_t wait_ms,
		     struct sba_lock **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_lock_free(struct sba_lock *l); /* NULL is allowed */

/* ---- sandboxes that another module makes (given.c) ---- */

/* What says of one that it is ours, wherever it runs: name, prefix, tag, agent, times, each
 * a word of letters, digits, '.', '_' and '-'; `id` is made here. A name that is NULL is made
 * up. The caller frees. SBA_EINVAL: a name that is none. */
int sba_marks_make(const struct sba_sandbox_options *options, json_t **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Whether they are ours, and of that prefix and name (NULL: any). */
bool sba_marks_are(const json_t *marks, const char *prefix, const char *name);
const char *sba_marks_get(const json_t *marks, const char *name); /* "": there is none */
/* Adds what is known of it besides. */
int sba_marks_set(json_t *marks, const char *name, const char *value,
		  struct sba_error *err) SBA_MUST_CHECK;

/* sba_sandbox_read() by a command inside (commands.c). */
int sba_commands_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		      sba_write_fn *write, void *user, struct sba_error *err) SBA_MUST_CHECK;

/* The command (commands.c) that writes a file as sba_sandbox_write() does, whole or not at
 * all: of its stdin, or of `from`, a file inside which is removed. Lends its arguments; it
 * exits with SBA_COMMANDS_NO_FILE where something else than a file is in the place. */
enum { SBA_COMMANDS_NO_FILE = 45 };
struct sba_commands_write_argv {
	const char *v[9];
	char mode[16];
};
void sba_commands_write_argv(const char *path, const char *from, const struct sba_write_options *o,
			     struct sba_commands_write_argv *ret);

/* Members of tables for sandboxes that have a channel (process_start.c, port.c): a command
 * of the guest, and a port of this host inside. */
int sba_guest_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		   struct sba_process **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_guest_host_url(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
		       struct sba_error *err) SBA_MUST_CHECK;

struct sba_given {
	const struct sba_backend *backend; /* lent for ever */
	void *self;
	const json_t *marks;       /* what the info is made of */
	struct sba_cancel *cancel; /* may be NULL */
	bool carries;              /* a command of it may carry a channel: carried.c */
};
/* As sba_sandbox_adopt(). It is called "BACKEND/NAME". */
int sba_sandbox_give(const struct sba_given *g, struct sba_sandbox **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* A list of the marks of such, with "state" among them: those that options want, newest
 * first. */
int sba_sandbox_list_given(const char *backend, const json_t *all,
			   const struct sba_list_options *options, struct sba_sandbox_list **ret,
			   struct sba_error *err) SBA_MUST_CHECK;

/* What changes in the workspace while something is done in it (watch.c). */
struct sba_watch;
struct sba_watch_options {
	const char *folder; /* of the workspace, where none was copied in */
	int64_t turn;       /* its number, from 1 */
	bool aside;         /* none that is counted */
	bool last;          /* nobody will ask for it later: nothing is kept after it */
};
/* Looks at it, and keeps what has changed since somebody last did. SBA_EUNSUPPORTED:
 * there is no guest. */
int sba_watch_begin(struct sba_sandbox *s, const struct sba_watch_options *o,
		    struct sba_watch **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Looks again, and keeps that too. */
int sba_watch_end(struct sba_watch *w, struct sba_changes **ret,
		  struct sba_error *err) SBA_MUST_CHECK;
void sba_watch_free(struct sba_watch *w); /* NULL is allowed */

/* ---- pipe_ends.c: of a command that a thread of ours carries ---- */

/* Where our ends go; in NULL: no stdin; err NULL: stderr comes with stdout. ended_fd: an
 * eventfd that is fired when the end is known. */
struct sba_pipe_ends {
	int *in, *out, *err;
	int ended_fd;
};
/* p: -1 each before; the caller closes what was opened of both sides, also on failure. */
int sba_pipe_ends_open(const struct sba_pipe_ends *ours, struct sba_pipes *p,
		       struct sba_error *err) SBA_MUST_CHECK;
/* Negative wait_ms: as long as it takes. */
int sba_pipe_ends_await(int ended_fd, int64_t wait_ms, struct sba_error *err) SBA_MUST_CHECK;
void sba_pipe_ends_close(struct sba_pipes *p);

/* Takes one sba_sandbox_forward() back; the last one closes the way. */
void sba_sandbox_unforward(struct sba_sandbox *s, uint16_t host_port);

#endif
