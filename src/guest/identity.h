/* SPDX-License-Identifier: MIT */
/*
 * Who this guest is, and whose namespace it is in: what the hello says
 * (channel/protocol.h).
 */
#ifndef SBA_GUEST_IDENTITY_H
#define SBA_GUEST_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

enum { SBA_GUEST_HELLO_MAX = 160 };

/* The first digits of the SHA-256 of this program, as it was before they were put into
 * it; "@guest-hash@" in a program that is not the guest's own. */
const char *sba_guest_own_hash(void);

/* Whether PID 1 of our process namespace is the sidecar, which ends all that is in it. */
bool sba_guest_sidecar_is_first(void);

/* The same from that process's command line. */
bool sba_guest_is_sidecar(const char *cmdline, size_t len);

/* The text of the hello: its length. */
size_t sba_guest_hello(char ret[SBA_GUEST_HELLO_MAX]);

#endif
