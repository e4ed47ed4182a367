/* SPDX-License-Identifier: MIT */
/*
 * Watches over one running command until it has ended: by itself, or because
 * its time, its client or the host's patience is over.
 */
#ifndef SBA_GUEST_SUPERVISE_H
#define SBA_GUEST_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/end.h"
#include "guest/held.h"
#include "guest/input.h"
#include "guest/start.h"
#include "guest/streams.h"
#include "guest/tree.h"

enum {
	SBA_GUEST_GRACE_MS = 2000,  /* between TERM and KILL */
	SBA_GUEST_KILL_MS = 5000,   /* for KILL to empty the tree */
	SBA_GUEST_FLUSH_MS = 1000,  /* for the host to take the output of a command it ended */
	SBA_GUEST_CONTROL_MAX = 16, /* payload of a frame of control */
};

struct sba_guest_command {
	const struct sba_guest_start *start;
	struct sba_guest_input input;
	struct sba_guest_streams streams;
	struct sba_guest_tree tree;
	struct sba_guest_held held;
	int lock;                         /* what holds the name; 0: nothing does */
	int sigfd;                        /* of SIGCHLD and SIGTERM, both blocked */
	int64_t deadline;                 /* ms of CLOCK_MONOTONIC; -1: none */
	struct sba_guest_pressure before; /* the start */
	bool killed_by_host;
	bool ending; /* the whole tree is to end, for the reason in end */
	struct sba_guest_end end;
	int64_t grace_end;
	char control[SBA_GUEST_CONTROL_MAX];
	size_t control_len;
};

/* Returns when the command has ended, or its tree has been ended. */
struct sba_guest_end sba_guest_supervise(struct sba_guest_command *command);

#endif
