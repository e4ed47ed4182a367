/* SPDX-License-Identifier: MIT */
/*
 * Whether processes that a command left behind hold its output open: what they
 * still have to say is waited for a moment, and that there is more is told.
 */
#ifndef SBA_GUEST_HELD_H
#define SBA_GUEST_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/tree.h"

enum {
	SBA_GUEST_HELD_MS = 500,     /* how long the last output of others is waited for */
	SBA_GUEST_HELD_LOOK_MS = 20, /* between two looks */
};

struct sba_guest_held {
	int64_t until; /* 0: not asked yet */
	bool told;     /* past it, somebody still held it */
};

/* True while the end of a command has to wait: asked again and again once its
 * main process has ended, every SBA_GUEST_HELD_LOOK_MS. */
bool sba_guest_held_waits(struct sba_guest_held *held, const struct sba_guest_tree *tree);

#endif
