/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue of bytes between two descriptors, in the caller's memory.
 */
#ifndef SBA_GUEST_RING_H
#define SBA_GUEST_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SBA_GUEST_RING_SIZE = 256 * 1024 };

struct sba_guest_ring {
	size_t start;
	size_t len;
	uint8_t data[SBA_GUEST_RING_SIZE];
};

static inline size_t sba_guest_ring_room(const struct sba_guest_ring *ring)
{
	return SBA_GUEST_RING_SIZE - ring->len;
}

/* Appends len bytes; there must be room for them. */
void sba_guest_ring_put(struct sba_guest_ring *ring, const void *data, size_t len);

/* One read() into the ring, one write() out of it: what these return, or a
 * negative errno. The ring must have room, or content. */
ssize_t sba_guest_ring_read(struct sba_guest_ring *ring, int fd);
ssize_t sba_guest_ring_write(struct sba_guest_ring *ring, int fd);

#endif
