/* SPDX-License-Identifier: MIT */
/*
 * How a command ended, and the records that tell the host.
 */
#ifndef SBA_GUEST_END_H
#define SBA_GUEST_END_H

#include <stddef.h>
#include <stdint.h>

#include "channel/protocol.h"

struct sba_guest_end {
	enum sba_record_kind kind;
	uint64_t number;
};

/* The two kinds of record; both wait for as long as the host does not read. */
void sba_guest_held_write(const char *nonce);
void sba_guest_begun_write(const char *nonce);
void sba_guest_end_write(const char *nonce, struct sba_guest_end end);

/* How often the OOM killer has struck in this cgroup, or -1 if nobody says. */
int64_t sba_guest_oom_count(void);

/* The same from the text of memory.oom_control (v1) or memory.events (v2). */
int64_t sba_guest_oom_parse(const char *text, size_t len);

#endif
