/* SPDX-License-Identifier: MIT */
/* What the files of a process share: its state, its beginning, its end. */
#ifndef SBA_SANDBOX_PROCESS_H
#define SBA_SANDBOX_PROCESS_H

#include "sandbox/link.h"
#include "sandbox/private.h"
#include "sandbox/record.h"

enum {
	SBA_PROCESS_END_GRACE_MS = 22 * 1000, /* the guest's own time to end a tree, and more */
	SBA_PROCESS_LOOK_MS = 1000,           /* how long a silent stream is trusted */
};

/* Two kinds of commands behind one table, which says of each what process.h says of
 * sba_process_…(): those of the guest, and those of a backend that has descriptors. */
struct sba_process_ops {
	ssize_t (*read)(struct sba_process *p, int64_t wait_ms, enum sba_output *which,
			const char **data, struct sba_error *err);
	ssize_t (*write)(struct sba_process *p, const void *data, size_t len,
			 struct sba_error *err);
	int (*close_stdin)(struct sba_process *p, struct sba_error *err);
	int (*resize)(struct sba_process *p, unsigned short rows, unsigned short columns,
		      struct sba_error *err);
	int (*send_signal)(struct sba_process *p, int signal_number, struct sba_error *err);
	int (*fd)(const struct sba_process *p);
	short (*events)(const struct sba_process *p);
	int (*wait)(struct sba_process *p, int64_t wait_ms, struct sba_exit *ret,
		    struct sba_error *err);
	uint64_t (*dropped)(const struct sba_process *p);
	bool (*output_held)(const struct sba_process *p);
	void (*losses)(const struct sba_process *p, struct sba_channel_pressure *ret);
	void (*cancel)(struct sba_process *p);
	void (*free)(struct sba_process *p);
};

struct sba_process {
	const struct sba_process_ops *ops;
};

struct sba_output_limit {
	int64_t left; /* of max_output; negative: no limit */
	uint64_t dropped;
	bool told; /* the reader knows of what is dropped, or does not care */
};

struct sba_guest_process {
	struct sba_process process; /* first */
	struct sba_sandbox *sandbox;
	struct sba_link *link;
	struct sba_buf staging;         /* frames on their way */
	struct sba_record_scan scan[2]; /* stdout, stderr */
	bool stream_ended[2];
	bool begun;
	struct sba_buf preamble; /* what came instead of the guest's first word */
	enum sba_output which;   /* of the piece under way */
	const char *piece;
	size_t piece_len;
	int cancel_fd; /* eventfd: sba_process_cancel() */
	int watch_fd;  /* epoll over it and the engine's cancel token */
	bool cancel_sent, stdin_closed, detach;
	bool locks; /* it may wait for a lock before it begins */
	struct sba_output_limit limit;
	bool held;                /* others hold its output open */
	bool lost;                /* its stream broke, but it may still run */
	bool refused;             /* a write found the queue full: its caller waits for room */
	int64_t looked_ms;        /* when it was last known to live */
	int64_t give_up_ms;       /* past its deadline even the guest's word is overdue */
	bool over;                /* its exit, or its failure, is known */
	struct sba_exit exit;     /* its counts come before its end */
	struct sba_error failure; /* code != 0: no exit will come */
};

/* ---- process_table.c: what both kinds do alike ---- */

/* Cuts *n bytes of output down to what is left; false: the reader has to be told, and
 * counts as told from here. */
bool sba_output_limit_cut(struct sba_output_limit *l, ssize_t *n);
/* Of a call that may wait so long; negative: for ever. */
int64_t sba_process_deadline(int64_t wait_ms);

/* ---- process.c ---- */

extern const struct sba_process_ops sba_guest_process_ops;

/* Queues one frame; a failure shows in sba_process_flush(). */
void sba_process_frame(struct sba_guest_process *p, char type, const void *data, size_t len);
void sba_process_frame_text(struct sba_guest_process *p, char type, const char *text);
/* Sends what goes without waiting. */
int sba_process_flush(struct sba_guest_process *p, struct sba_error *err) SBA_MUST_CHECK;

/* Waits until the command is started, or will not be: what it says meanwhile is
 * dropped. */
int sba_process_await_begin(struct sba_guest_process *p, struct sba_error *err) SBA_MUST_CHECK;

/* ---- process_end.c: how it ended, or why that will not be known ---- */

void sba_process_take_record(struct sba_guest_process *p, int stream, const struct sba_record *r);
/* The stream ended without the guest's word. `lost` is what the link said, code 0
 * where it just ended. 0: its exit is known all the same. */
int sba_process_explain_loss(struct sba_guest_process *p, const struct sba_error *lost,
			     struct sba_error *err) SBA_MUST_CHECK;
/* After its stream was lost: watches until the engine says that it has ended, or
 * the deadline. Never 0. */
int sba_process_watch(struct sba_guest_process *p, int64_t deadline_ms,
		      struct sba_error *err) SBA_MUST_CHECK;
/* A guest that goes on sending is not to be believed for ever either. */
int sba_process_check_overdue(struct sba_guest_process *p, struct sba_error *err) SBA_MUST_CHECK;
/* Asks the engine, now and then, where the link does not tell of a death. */
int sba_process_still_there(struct sba_guest_process *p, struct sba_error *err) SBA_MUST_CHECK;

#endif
