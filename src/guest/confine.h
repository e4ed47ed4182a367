/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a command are kept from: signalling and tracing what
 * is not theirs, and the one capability that the session keeps for itself.
 */
#ifndef SBA_GUEST_CONFINE_H
#define SBA_GUEST_CONFINE_H

#include <stdbool.h>

/*
 * From here on the caller, and all that it will start, can signal and trace
 * only each other and what enters a further scope below this one. False, with
 * errno, where the kernel has no such scopes (before 6.12) or does not let us.
 */
bool sba_guest_scope_enter(void);

/*
 * Gives up CAP_SETPCAP for good: whoever has it cannot be traced by those who
 * lack it, not even between execve() and prctl(). Without it, does nothing.
 */
bool sba_guest_capability_shed(void);

/* The kernel's version of Landlock, 0 where there is none; signal scopes came with 6. */
int sba_guest_landlock_abi(void);

/* Gives up every capability for good. */
bool sba_guest_capabilities_drop(void);

#endif
