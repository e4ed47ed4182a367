/* SPDX-License-Identifier: MIT */
/*
 * The host's end of the session channel: HTTP/2 over the stdin and stdout of
 * one engine exec of `guest session`. Commands, small files and network
 * connections are streams on it. One thread of its own moves bytes and never
 * waits for a caller; callers block only in the functions below. The peer is
 * hostile: every frame, header, message and count has a limit.
 *
 * A channel may be shared between threads; a stream belongs to one at a time.
 */
#ifndef SBA_CHANNEL_H
#define SBA_CHANNEL_H

#include "base/base.h"
#include "engine/engine.h"

struct sba_channel;

/* What the guest says of itself; "" where it does not. */
struct sba_channel_hello {
	int64_t protocol;   /* 0: no hello came */
	char program[32];   /* version of the program that carries it */
	char guest[16];     /* hash of its content */
	int64_t landlock;   /* the kernel's ABI of it; 0: none, or not told */
	bool sidecar_first; /* PID 1 of its process namespace is the sidecar */
};
/* -1: that guest is older than ours, 1: newer; 0: of the same version, maybe of another
 * build. By protocol first, then by program. */
int sba_channel_hello_order(const struct sba_channel_hello *h);

/* Starts `guest session` in a container as `user` (NULL: the container's) and
 * waits for its hello, which *ret_hello (may be NULL) has even on failure, if one came.
 * SBA_EUNSUPPORTED: no guest there, or one that speaks another protocol version.
 * SBA_EBROKEN: the container does not run. */
int sba_channel_open(struct sba_engine *e, const char *container, const char *user,
		     struct sba_until until, struct sba_channel_hello *ret_hello,
		     struct sba_channel **ret, struct sba_error *err) SBA_MUST_CHECK;
/* The same over the stdin and stdout of the container's main process, which serves one
 * client, the first that attaches: for whoever knows that he is it. It costs the engine
 * no exec. */
int sba_channel_attach(struct sba_engine *e, const char *container, struct sba_until until,
		       struct sba_channel_hello *ret_hello, struct sba_channel **ret,
		       struct sba_error *err) SBA_MUST_CHECK;
/* The same with a guest that has the other end of a connected stream socket as its stdin
 * and stdout. The socket is taken, even on failure. */
int sba_channel_open_socket(int take_fd, struct sba_until until,
			    struct sba_channel_hello *ret_hello, struct sba_channel **ret,
			    struct sba_error *err) SBA_MUST_CHECK;
/* Says goodbye; the guest ends what it started (detached commands excepted).
 * Streams must be closed before. NULL is allowed. */
void sba_channel_close(struct sba_channel *c);
/* 0 while it lives, else the reason, as every later call fails. */
int sba_channel_check(struct sba_channel *c, struct sba_error *err) SBA_MUST_CHECK;
/* Ends it with a reason that the caller knows better (the container died). */
void sba_channel_fail(struct sba_channel *c, const struct sba_error *why);

/* What the limits of the sandbox have cost it since the channel was opened, as far as
 * the guest has told: at most a second late. */
struct sba_channel_pressure {
	uint64_t oom_kills;    /* processes that the OOM killer took */
	uint64_t pids_refused; /* forks that the limit of processes refused */
};
void sba_channel_pressure(struct sba_channel *c, struct sba_channel_pressure *ret);

/* ---- commands ---- */

/* A command's stream: run frames of protocol.h go in, the command's output
 * with the guest's records comes out, exactly as with an exec of `guest run`.
 * Closing it before the end record is the client's death for that command. */
struct sba_channel_run;
int sba_channel_run_open(struct sba_channel *c, struct sba_channel_run **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* As sba_exec_read(): > 0 and *stream (1 stdout, 2 stderr), *data lent until the next
 * call; 0 at the end; SBA_ETIMEOUT; SBA_ELOST, SBA_EPROTO when the channel is dead. */
ssize_t sba_channel_run_read(struct sba_channel_run *r, int *stream, const char **data,
			     struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* Takes up to len bytes without waiting; 0: its window is full. */
ssize_t sba_channel_run_write(struct sba_channel_run *r, const void *data, size_t len,
			      struct sba_error *err) SBA_MUST_CHECK;
/* Readable while there is output to take, room to write again, or an end. */
int sba_channel_run_fd(const struct sba_channel_run *r);
void sba_channel_run_close(struct sba_channel_run *r);

/* ---- small files, with the ids of the channel's user ---- */

struct sba_channel_stat {
	uint32_t mode; /* st_mode */
	uint32_t uid, gid;
	int64_t size;
	int64_t mtime_ns;
};

/* The content of a regular file of at most max bytes. Never blocks on a fifo or
 * device: SBA_EREFUSED. SBA_ENOTFOUND, SBA_ELIMIT, SBA_EPERM. */
int sba_channel_file_read(struct sba_channel *c, const char *path, size_t max,
			  struct sba_until until, struct sba_buf *ret,
			  struct sba_error *err) SBA_MUST_CHECK;
int sba_channel_file_stat(struct sba_channel *c, const char *path, bool follow,
			  struct sba_until until, struct sba_channel_stat *ret,
			  struct sba_error *err) SBA_MUST_CHECK;
/* Names in a directory, NUL-separated, sorted, at most max bytes. */
int sba_channel_file_list(struct sba_channel *c, const char *path, size_t max,
			  struct sba_until until, struct sba_buf *ret,
			  struct sba_error *err) SBA_MUST_CHECK;

/* ---- files and trees of any size (transfer.c) ---- */

/*
 * In constant memory, with the ids of the channel's user. Each waits no longer
 * than `until`, and no longer than SBA_TRANSFER_STALL_MS for something to move.
 * SBA_EUNSUPPORTED: the guest inside is older than these.
 */

/* Takes bytes that came; a negative return ends it. */
typedef int sba_channel_sink_fn(void *user, const void *data, size_t len, struct sba_error *err);
/* The next bytes to send, 0 at the end, negative on failure. */
typedef ssize_t sba_channel_source_fn(void *user, void *buf, size_t size, struct sba_error *err);

struct sba_channel_get {
	const char *path;
	uint64_t max; /* of bytes; 0: any */
	sba_channel_sink_fn *sink;
	void *user;
};
/* A regular file's content. The sink has had some of it when it fails midway, and none
 * when it is more than the most: SBA_ELIMIT. */
int sba_channel_file_get(struct sba_channel *c, const struct sba_channel_get *g,
			 struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

struct sba_channel_write {
	const char *path;
	bool set_mode, set_owner, set_mtime; /* else as the file that is there, or the user's */
	uint32_t mode, uid, gid;
	int64_t mtime_ns;
	sba_channel_source_fn *source;
	void *user;
};
/* Atomic: temporary name, then rename; makes parents; follows a link. *ret_asked:
 * whether the source has been asked for anything, true after most failures. */
int sba_channel_file_write(struct sba_channel *c, const struct sba_channel_write *w,
			   struct sba_until until, bool *ret_asked,
			   struct sba_error *err) SBA_MUST_CHECK;

struct sba_channel_place {
	struct sba_channel_stat stat; /* of the path itself, links not followed */
	bool unseen;                  /* the user may not look: no stat, path as given */
	bool other_mount;             /* not on the root's mount: the engine does not see it */
	bool mounts_below;            /* folders are mounted below it */
	char path[4096];              /* real, but for its last component */
};
/* SBA_ENOTFOUND: nothing is there. */
int sba_channel_place(struct sba_channel *c, const char *path, struct sba_until until,
		      struct sba_channel_place *ret, struct sba_error *err) SBA_MUST_CHECK;

struct sba_channel_census {
	uint64_t bytes, entries, sockets;
	uint64_t longest; /* bytes of a path from the last component of what was asked for on */
	uint64_t holes;   /* of the bytes */
	uint64_t locked;  /* entries that the user may not read */
};
/* How much lies below a path: begun, and asked for when it is wanted. _is_there: _end
 * would not wait. _end frees it; names (may be NULL) gets sockets, each ended by NUL, as far as
 * there is room. */
struct sba_channel_ask;
int sba_channel_census_begin(struct sba_channel *c, const char *path, size_t max_names,
			     struct sba_channel_ask **ret, struct sba_error *err) SBA_MUST_CHECK;
bool sba_channel_census_is_there(struct sba_channel_ask *a);
int sba_channel_census_end(struct sba_channel_ask *take_a, struct sba_until until,
			   struct sba_channel_census *ret, struct sba_buf *names,
			   struct sba_error *err) SBA_MUST_CHECK;

/* A tar of a path, named as its last component. `note` is told what was left out:
 * an enum sba_note of protocol.h. */
struct sba_channel_tar;
struct sba_channel_tar_options {
	const char *path;
	void (*note)(void *user, const char *name, int why);
	void *user;
};
int sba_channel_tar_open(struct sba_channel *c, const struct sba_channel_tar_options *o,
			 struct sba_until until, struct sba_channel_tar **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* > 0 bytes; 0: all of it has come; SBA_EBROKEN and others: why it has not. */
ssize_t sba_channel_tar_read(struct sba_channel_tar *t, void *buf, size_t size,
			     struct sba_error *err) SBA_MUST_CHECK;
void sba_channel_tar_close(struct sba_channel_tar *t); /* NULL is allowed */

/* Records of what changed below a folder, as protocol.h has them, whole or cut: they are
 * the caller's to check. Read and closed like a tar. */
struct sba_channel_changes {
	const char *folder;
	uint32_t flags; /* enum sba_changes_flag */
	uint32_t last;  /* the number of the last kept list that counts; 0: none */
	uint64_t content_max, contents_max; /* bytes of one that is sent, and of all */
	uint64_t hash_max;                  /* what is larger is not hashed */
	const struct sba_buf *given;        /* a list, with SBA_CHANGES_GIVEN */
};
int sba_channel_changes_open(struct sba_channel *c, const struct sba_channel_changes *q,
			     struct sba_until until, struct sba_channel_tar **ret,
			     struct sba_error *err) SBA_MUST_CHECK;

/*
 * Into a folder: what comes is staged in it and moved in place once it is whole.
 * Whoever opens one puts things into the staging folder, by the engine or by
 * _tar, and commits; closing it before takes everything back.
 */
struct sba_channel_put;
struct sba_channel_put_options {
	const char *folder;
	bool make;       /* it and those above it, where missing */
	bool replace;    /* files that are there */
	bool no_clobber; /* they stay, which is no error */
};
int sba_channel_put_open(struct sba_channel *c, const struct sba_channel_put_options *o,
			 struct sba_until until, struct sba_channel_put **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* The staging folder's path inside, lent. *ret_seen: the engine can reach it. */
const char *sba_channel_put_stage(const struct sba_channel_put *p, bool *ret_seen);
int sba_channel_put_tar(struct sba_channel_put *p, sba_channel_source_fn *source, void *user,
			struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* *ret_again: nothing is in the staging folder, whatever the engine has said; send
 * it by _tar and commit once more. SBA_EEXIST: what is there is in the way. */
int sba_channel_put_commit(struct sba_channel_put *p, struct sba_until until, bool *ret_again,
			   uint64_t *ret_kept, struct sba_error *err) SBA_MUST_CHECK;
void sba_channel_put_close(struct sba_channel_put *p); /* NULL is allowed */

/* ---- network connections ---- */

/* From now on 127.0.0.1:*ret_port inside leads to 127.0.0.1:host_port here, until the
 * channel is closed. `wish` is the port inside if it can be had; 0: any. */
int sba_channel_forward(struct sba_channel *c, uint16_t host_port, uint16_t wish,
			struct sba_until until, uint16_t *ret_port,
			struct sba_error *err) SBA_MUST_CHECK;
/* Ends that: connections to the port inside are reset from now on, so that whoever
 * has the port here next is not reached from inside. */
void sba_channel_unforward(struct sba_channel *c, uint16_t inside_port);
/* Joins a connected socket of this host (taken over, closed at the end) with
 * 127.0.0.1:port inside. */
int sba_channel_connect(struct sba_channel *c, uint16_t port, int take_fd, struct sba_until until,
			struct sba_error *err) SBA_MUST_CHECK;

#endif
