/* SPDX-License-Identifier: MIT */
/*
 * How a command ended, and the records that tell the host.
 */
#ifndef SBA_GUEST_END_H
#define SBA_GUEST_END_H

#include <stdint.h>

#include "channel/protocol.h"
#include "guest/pressure.h"

struct sba_guest_end {
	enum sba_record_kind kind;
	uint64_t number;
};

/* Records; all wait for as long as the host does not read. In front of the end goes by
 * how much the counters rose meanwhile, where they did. */
void sba_guest_held_write(const char *nonce);
void sba_guest_begun_write(const char *nonce);
void sba_guest_end_write(const char *nonce, struct sba_guest_end end,
			 const struct sba_guest_pressure *rose);

#endif
