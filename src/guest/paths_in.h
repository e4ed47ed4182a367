/* SPDX-License-Identifier: MIT */
/* Absolute paths on stdin, each ended by a NUL, for commands that do the same with each. */
#ifndef SBA_GUEST_PATHS_IN_H
#define SBA_GUEST_PATHS_IN_H

#include <stdbool.h>

/* False: the command fails in the end, but goes on. */
typedef bool sba_guest_path_fn(const char *path);
/* To the end of stdin; returns the exit code. The root itself and what is no absolute
 * path are passed over. */
int sba_guest_each_path(sba_guest_path_fn *each);

#endif
