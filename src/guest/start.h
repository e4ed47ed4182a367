/* SPDX-License-Identifier: MIT */
/*
 * What the host wants started: collects the frames up to SBA_RUN_GO and
 * refuses what makes no sense or is too much.
 */
#ifndef SBA_GUEST_START_H
#define SBA_GUEST_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "guest/frame.h"

enum {
	SBA_GUEST_START_MAX = 64 * 1024 * 1024, /* bytes of all frames before SBA_RUN_GO */
	SBA_GUEST_ARGS_MAX = 512 * 1024,        /* beyond what the kernel takes */
	SBA_GUEST_ENV_MAX = 8192,
};

/* Strings it owns; items is ended by NULL once there is one. */
struct sba_guest_list {
	char **items;
	size_t count;
	size_t room;
};

struct sba_guest_start {
	char nonce[SBA_RUN_NONCE_LEN + 1]; /* zeros until the host has said it */
	struct sba_guest_list args;
	struct sba_guest_list env;
	char *cwd;           /* NULL: stay where we are */
	int64_t deadline_ms; /* 0: none */
	bool tty;
	struct winsize size;
	bool detach;
	char lock[SBA_RUN_LOCK_MAX + 1]; /* "": none */
	char lock_key[SBA_LOCK_KEY_LEN + 1];
	int64_t lock_wait_ms;
	bool signal_others;
	/* the frame under way */
	char *payload;
	size_t have;
	size_t total;
};

enum sba_guest_step {
	SBA_STEP_BAD = -1, /* the piece's frame is not acceptable */
	SBA_STEP_MORE = 0,
	SBA_STEP_GO = 1,
};

void sba_guest_start_init(struct sba_guest_start *start);
void sba_guest_start_fini(struct sba_guest_start *start);
enum sba_guest_step sba_guest_start_feed(struct sba_guest_start *start,
					 const struct sba_guest_piece *piece);

#endif
