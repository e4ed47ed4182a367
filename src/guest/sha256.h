/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), by the processor's own instructions where it has them. */
#ifndef SBA_GUEST_SHA256_H
#define SBA_GUEST_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SBA_GUEST_SHA256_SIZE = 32, SBA_GUEST_SHA256_BLOCK = 64 };

struct sba_guest_sha256 {
	uint32_t state[8];
	uint64_t len;
	size_t have; /* bytes in rest */
	uint8_t rest[SBA_GUEST_SHA256_BLOCK];
};

void sba_guest_sha256_init(struct sba_guest_sha256 *sha);
void sba_guest_sha256_put(struct sba_guest_sha256 *sha, const void *data, size_t len);
void sba_guest_sha256_end(struct sba_guest_sha256 *sha, uint8_t ret[SBA_GUEST_SHA256_SIZE]);
/* For tests: in portable C from now on. */
void sba_guest_sha256_plain(void);

#endif
