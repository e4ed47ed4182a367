/* SPDX-License-Identifier: MIT */
/* Takes the one file out of a tar: into memory, or to whom it may concern. */
#include "archive/private.h"

#include <archive_entry.h>
#include <string.h>

static int check(struct archive_entry *entry, uint64_t max, struct sba_error *err)
{
	if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) != AE_IFREG)
		return sba_fail(err, SBA_EREFUSED, "it is no regular file");
	la_int64_t size = archive_entry_size(entry);
	if (size < 0 || (uint64_t)size > max)
		return sba_fail(err, SBA_ELIMIT, "the file is larger than %llu bytes",
				(unsigned long long)max);
	return 0;
}

static int put_zeros(sba_tar_sink_fn *sink, void *user, uint64_t len, struct sba_error *err)
{
	static const char zeros[64 * SBA_KIB];
	int rc = 0;
	while (rc == 0 && len > 0) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);
		rc = sink(user, zeros, n, err);
		len -= n;
	}
	return rc;
}

int sba_tar_in_content(struct sba_tar_in *in, uint64_t size, sba_tar_sink_fn *sink, void *user,
		       struct sba_error *err)
{
	struct sba_tar_piece piece;
	uint64_t at = 0;
	int rc;
	while ((rc = sba_tar_in_data(in, size, &piece, err)) > 0) {
		rc = piece.offset > at ? put_zeros(sink, user, piece.offset - at, err) : 0;
		if (rc == 0)
			rc = sink(user, piece.data, piece.len, err);
		if (rc < 0)
			return rc;
		at = piece.offset + piece.len;
	}
	return rc < 0 ? rc : put_zeros(sink, user, size - at, err);
}

static int read_one(struct sba_tar_in *in, uint64_t max, sba_tar_sink_fn *sink, void *user,
		    struct sba_error *err)
{
	struct archive_entry *entry;
	int rc = sba_tar_in_next(in, &entry, err);
	if (rc == 0)
		return sba_fail(err, SBA_ENOTFOUND, "the tar is empty");
	if (rc > 0)
		rc = check(entry, max, err);
	if (rc == 0)
		rc = sba_tar_in_content(in, (uint64_t)archive_entry_size(entry), sink, user, err);
	if (rc == 0)
		rc = sba_tar_in_next(in, &entry, err);
	return rc > 0 ? sba_fail(err, SBA_EREFUSED, "it is more than one file") : rc;
}

int sba_tar_one_stream(sba_tar_read_fn *read, void *user, sba_tar_sink_fn *sink, void *sink_user,
		       struct sba_error *err)
{
	struct sba_tar_in *in;
	int rc = sba_tar_in_new(read, user, &in, err);
	if (rc < 0)
		return rc;
	rc = read_one(in, INT64_MAX, sink, sink_user, err);
	sba_tar_in_free(in);
	return rc;
}

static int to_buf(void *user, const void *data, size_t len, struct sba_error *err)
{
	sba_buf_put(user, data, len);
	return sba_buf_check(user, "the file", err);
}

int sba_tar_one_file(sba_tar_read_fn *read, void *user, size_t max, struct sba_buf *ret,
		     struct sba_error *err)
{
	struct sba_tar_in *in;
	size_t before = ret->len;
	int rc = sba_tar_in_new(read, user, &in, err);
	if (rc < 0)
		return rc;
	rc = read_one(in, max, to_buf, ret, err);
	sba_tar_in_free(in);
	if (rc < 0 && ret->data) {
		ret->len = before;
		ret->data[before] = '\0';
	}
	return rc;
}
