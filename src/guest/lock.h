/* SPDX-License-Identifier: MIT */
/*
 * A name that one command of the sandbox at a time can hold. It is the name of
 * an abstract socket: nothing lies in the file system, and whatever ends its
 * holder frees it.
 */
#ifndef SBA_GUEST_LOCK_H
#define SBA_GUEST_LOCK_H

/* A descriptor that holds the name, or -1: EADDRINUSE if another has it. */
int sba_guest_lock_take(const char *name);

/* A descriptor that hangs up when the holder lets go; -1 if there is none now, or too
 * many wait. */
int sba_guest_lock_watch(const char *name);

#endif
