/* SPDX-License-Identifier: MIT */
/*
 * How `guest kill` knows a supervisor.
 */
#ifndef SBA_GUEST_KILL_H
#define SBA_GUEST_KILL_H

#include <stdbool.h>
#include <stddef.h>

/* True for /proc/PID/cmdline of `guest run ID`; id NULL means any. */
bool sba_guest_is_supervisor(const char *cmdline, size_t len, const char *id);

#endif
