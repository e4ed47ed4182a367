/* SPDX-License-Identifier: MIT */
/*
 * libarchive as a parser of tar and nothing else: no filters, no other
 * formats, names as bytes, and no end that is not the end.
 */
#include "archive/private.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum {
	INPUT_CHUNK = 512 * SBA_KIB, /* large reads are worth a tenth of the time */
	TRAILER = 2 * SBA_TAR_BLOCK,
};

struct sba_tar_in {
	struct archive *archive;
	sba_tar_read_fn *read;
	void *user;
	struct sba_error *err; /* of the call that is under way */
	int failed;            /* what read() has failed with */
	bool ended;
	uint64_t total;
	size_t zeros; /* at the end of what has been read, up to TRAILER */
	locale_t bytes, before;
	char chunk[INPUT_CHUNK];
};

static void count(struct sba_tar_in *in, size_t len)
{
	size_t n = 0;
	while (n < len && n < TRAILER && in->chunk[len - 1 - n] == '\0')
		n++;
	in->total += len;
	in->zeros = n == len ? in->zeros + n : n;
	if (in->zeros > TRAILER)
		in->zeros = TRAILER;
}

static ssize_t read_chunk(struct sba_tar_in *in)
{
	if (in->ended || in->failed)
		return in->failed;
	ssize_t n = in->read(in->user, in->chunk, sizeof(in->chunk), in->err);
	if (n < 0)
		in->failed = (int)n;
	else if (n == 0)
		in->ended = true;
	else
		count(in, (size_t)n);
	return n;
}

static la_ssize_t on_read(struct archive *a, void *user, const void **ret)
{
	struct sba_tar_in *in = user;
	ssize_t n = read_chunk(in);
	*ret = in->chunk;
	if (n < 0)
		archive_set_error(a, EIO, "read failed");
	return n < 0 ? ARCHIVE_FATAL : n;
}

/* The error of read() is told as it is; anything else is the tar's fault. */
static int broken(const struct sba_tar_in *in, struct sba_error *err)
{
	if (in->failed)
		return in->failed;
	const char *why = archive_error_string(in->archive);
	return sba_fail(err, SBA_EPROTO, "broken tar: %s", why ? why : "no reason given");
}

int sba_tar_in_new(sba_tar_read_fn *read, void *user, struct sba_tar_in **ret,
		   struct sba_error *err)
{
	struct sba_tar_in *in = calloc(1, sizeof(*in));
	if (!in)
		return sba_fail_nomem(err);
	in->read = read;
	in->user = user;
	in->err = err;
	/* In any other locale libarchive 3.6 composes the accents of UTF-8 names
	 * or converts them; in this one it fails to, and leaves the bytes alone. */
	in->bytes = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
	if (in->bytes)
		in->before = uselocale(in->bytes);
	in->archive = archive_read_new();
	int rc = 0;
	if (!in->bytes || !in->archive || archive_read_support_format_tar(in->archive) < 0)
		rc = sba_fail_nomem(err);
	else if (archive_read_open2(in->archive, in, NULL, on_read, NULL, NULL) < ARCHIVE_WARN)
		rc = broken(in, err);
	if (rc < 0) {
		sba_tar_in_free(in);
		return rc;
	}
	*ret = in;
	return 0;
}

void sba_tar_in_free(struct sba_tar_in *in)
{
	if (!in)
		return;
	archive_read_free(in->archive);
	if (in->bytes) {
		uselocale(in->before);
		freelocale(in->bytes);
	}
	free(in);
}

/* libarchive takes a missing trailer for an end, and stops reading at one:
 * whether all has arrived only the bytes behind it and the transport know. */
static int check_end(struct sba_tar_in *in, struct sba_error *err)
{
	size_t trail = 0;
	while (!in->ended) {
		ssize_t n = read_chunk(in);
		if (n < 0)
			return (int)n;
		trail += (size_t)n;
		if (trail > SBA_LAND_TRAIL_MAX)
			return sba_fail(err, SBA_EPROTO, "broken tar: it goes on after its end");
	}
	if (in->zeros < TRAILER || in->total % SBA_TAR_BLOCK)
		return sba_fail(err, SBA_EPROTO, "broken tar: it was cut before its end");
	return 0;
}

int sba_tar_in_next(struct sba_tar_in *in, struct archive_entry **ret, struct sba_error *err)
{
	in->err = err;
	int rc = archive_read_next_header(in->archive, ret);
	if (rc == ARCHIVE_EOF)
		return check_end(in, err);
	/* ARCHIVE_WARN: a name is no text in this locale, an extension unknown. */
	return rc < ARCHIVE_WARN ? broken(in, err) : 1;
}

char sba_tar_type(struct archive_entry *e)
{
	if (archive_entry_hardlink(e))
		return '1';
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return '0';
	case AE_IFLNK:
		return '2';
	case AE_IFDIR:
		return '5';
	default:
		return '\0';
	}
}

int sba_tar_in_data(struct sba_tar_in *in, uint64_t size, struct sba_tar_piece *ret,
		    struct sba_error *err)
{
	struct sba_tar_piece piece;
	la_int64_t offset;
	in->err = err;
	int rc = archive_read_data_block(in->archive, &piece.data, &piece.len, &offset);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc < ARCHIVE_WARN)
		return broken(in, err);
	if (offset < 0 || (uint64_t)offset > size || piece.len > size - (uint64_t)offset)
		return sba_fail(err, SBA_EPROTO, "broken tar: content beyond the size of a file");
	piece.offset = (uint64_t)offset;
	*ret = piece;
	return 1;
}
