/* SPDX-License-Identifier: MIT */
/*
 * A name that one command of the sandbox at a time can hold, in a file whose key only the
 * host knows (SBA_LOCK_DIR); where there is none, as an abstract socket. Either way
 * whatever ends its holder frees it.
 */
#ifndef SBA_GUEST_LOCK_H
#define SBA_GUEST_LOCK_H

/* A descriptor that holds the name, or -1: EADDRINUSE if another has it. */
int sba_guest_lock_take(const char *name, const char *key);

/* A descriptor that hangs up when the holder lets go; -1 if there is none now, too
 * many wait, or it cannot be watched. */
int sba_guest_lock_watch(const char *name, const char *key);

#endif
