/* SPDX-License-Identifier: MIT */
/*
 * Starts the command: its standard streams or terminal, session, signals,
 * directory, environment, program.
 */
#ifndef SBA_GUEST_CHILD_H
#define SBA_GUEST_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "guest/end.h"
#include "guest/start.h"

struct sba_guest_child {
	pid_t pid;
	int input;    /* non-blocking; its stdin, or its terminal's master */
	int terminal; /* the master, same as input; -1 without a terminal */
};

/* Returns once the program runs. False: *ret_end says why it does not. scoped: in
 * a signal scope of its own, below the caller's. */
bool sba_guest_child_start(const struct sba_guest_start *start, bool scoped,
			   struct sba_guest_child *ret, struct sba_guest_end *ret_end);

#endif
