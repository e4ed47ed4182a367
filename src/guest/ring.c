/* SPDX-License-Identifier: MIT */
/*
 * The byte queue; see ring.h.
 */
#include "guest/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The free bytes that follow each other in memory. */
static uint8_t *gap(struct sba_guest_ring *ring, size_t *ret_len)
{
	size_t end = (ring->start + ring->len) % SBA_GUEST_RING_SIZE;

	*ret_len = smaller(sba_guest_ring_room(ring), SBA_GUEST_RING_SIZE - end);
	return ring->data + end;
}

void sba_guest_ring_put(struct sba_guest_ring *ring, const void *data, size_t len)
{
	const uint8_t *from = data;

	assert(len <= sba_guest_ring_room(ring));
	while (len > 0) {
		size_t space;
		uint8_t *to = gap(ring, &space);
		size_t n = smaller(space, len);

		memcpy(to, from, n);
		ring->len += n;
		from += n;
		len -= n;
	}
}

ssize_t sba_guest_ring_read(struct sba_guest_ring *ring, int fd)
{
	size_t space;
	uint8_t *to = gap(ring, &space);
	ssize_t got = read(fd, to, space);

	if (got < 0)
		return -errno;
	ring->len += (size_t)got;
	return got;
}

ssize_t sba_guest_ring_write(struct sba_guest_ring *ring, int fd)
{
	size_t n = smaller(ring->len, SBA_GUEST_RING_SIZE - ring->start);
	ssize_t put = write(fd, ring->data + ring->start, n);

	if (put < 0)
		return -errno;
	ring->len -= (size_t)put;
	ring->start = ring->len > 0 ? (ring->start + (size_t)put) % SBA_GUEST_RING_SIZE : 0;
	return put;
}
