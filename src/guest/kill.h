/* SPDX-License-Identifier: MIT */
/*
 * How `guest kill` knows a supervisor, and the last resort.
 */
#ifndef SBA_GUEST_KILL_H
#define SBA_GUEST_KILL_H

#include <stdbool.h>
#include <stddef.h>

/* True for /proc/PID/cmdline of `guest run ID`; id NULL means any. */
bool sba_guest_is_supervisor(const char *cmdline, size_t len, const char *id);

/*
 * Ends the sandbox by its main process, if we may: for what cannot be ended
 * otherwise. Elsewhere than in a sandbox there is no such process.
 */
void sba_guest_kill_sandbox(void);

#endif
