/* SPDX-License-Identifier: MIT */
/*
 * Writes and copies the content of landed files, so that what is sparse stays
 * sparse: engines send holes as zeros.
 */
#include "archive/private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	HOLE_BLOCK = 4096,
	COPY_CHUNK = 64 * SBA_KIB,
	COPY_AT_ONCE = 1024 * SBA_MIB,
};

/* How many of the bytes, in whole blocks of the file, are zero, or are not. */
static size_t run(const char *s, size_t len, uint64_t offset, bool zero)
{
	size_t n = 0;
	while (n < len) {
		size_t block = HOLE_BLOCK - (size_t)((offset + n) % HOLE_BLOCK);
		if (block > len - n)
			block = len - n;
		if (sba_is_zero(s + n, block) != zero)
			break;
		n += block;
	}
	return n;
}

static int write_at(int fd, const char *s, size_t len, uint64_t offset, struct sba_error *err)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, s, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "write");
		s += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int sba_content_write(int fd, const struct sba_tar_piece *piece, uint64_t *ret_end,
		      struct sba_error *err)
{
	const char *s = piece->data;
	size_t at = 0;
	while (at < piece->len) {
		at += run(s + at, piece->len - at, piece->offset + at, true);
		size_t n = run(s + at, piece->len - at, piece->offset + at, false);
		int rc = write_at(fd, s + at, n, piece->offset + at, err);
		if (rc < 0)
			return rc;
		at += n;
		if (n > 0)
			*ret_end = piece->offset + at;
	}
	return 0;
}

static int copy_by_hand(int from, int to, uint64_t at, uint64_t end, struct sba_error *err)
{
	char chunk[COPY_CHUNK];
	while (at < end) {
		size_t want = end - at < sizeof(chunk) ? (size_t)(end - at) : sizeof(chunk);
		ssize_t n = pread(from, chunk, want, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return sba_fail_errno(err, SBA_EIO, n < 0 ? errno : EIO, "read");
		int rc = write_at(to, chunk, (size_t)n, at, err);
		if (rc < 0)
			return rc;
		at += (uint64_t)n;
	}
	return 0;
}

static int copy_extent(int from, int to, uint64_t at, uint64_t end, struct sba_error *err)
{
	while (at < end) {
		off_t in = (off_t)at, out = (off_t)at;
		size_t want = end - at < COPY_AT_ONCE ? (size_t)(end - at) : COPY_AT_ONCE;
		ssize_t n = copy_file_range(from, &in, to, &out, want, 0);
		/* Whatever it dislikes (kernel, file system), reading and writing can. */
		if (n <= 0)
			return copy_by_hand(from, to, at, end, err);
		at += (uint64_t)n;
	}
	return 0;
}

int sba_content_copy(int from, int to, uint64_t size, struct sba_error *err)
{
	uint64_t at = 0;
	while (at < size) {
		off_t data = lseek(from, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		uint64_t start = data < 0 ? at : (uint64_t)data;
		uint64_t end = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
		int rc = start < end ? copy_extent(from, to, start, end, err) : 0;
		if (rc < 0)
			return rc;
		at = end;
	}
	if (ftruncate(to, (off_t)size) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "set the size");
	return 0;
}
