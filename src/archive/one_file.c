/* SPDX-License-Identifier: MIT */
/* Takes the one small file out of a tar, into memory. */
#include "archive/private.h"

#include <archive_entry.h>
#include <string.h>

static int check(struct archive_entry *entry, size_t max, struct sba_error *err)
{
	if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) != AE_IFREG)
		return sba_fail(err, SBA_EREFUSED, "it is no regular file");
	la_int64_t size = archive_entry_size(entry);
	if (size < 0 || (uint64_t)size > max)
		return sba_fail(err, SBA_ELIMIT, "the file is larger than %zu bytes", max);
	return 0;
}

static int put_zeros(struct sba_buf *b, size_t len, struct sba_error *err)
{
	char *at = sba_buf_reserve(b, len);
	if (at) {
		memset(at, 0, len);
		b->len += len;
	}
	return sba_buf_check(b, "the file", err);
}

static int put_content(struct sba_tar_in *in, size_t size, struct sba_buf *ret,
		       struct sba_error *err)
{
	struct sba_tar_piece piece;
	size_t start = ret->len;
	int rc;
	while ((rc = sba_tar_in_data(in, size, &piece, err)) > 0) {
		size_t len = ret->len - start;
		rc = piece.offset > len ? put_zeros(ret, (size_t)piece.offset - len, err) : 0;
		if (rc < 0)
			return rc;
		sba_buf_put(ret, piece.data, piece.len);
	}
	return rc < 0 ? rc : put_zeros(ret, size - (ret->len - start), err);
}

static int read_one(struct sba_tar_in *in, size_t max, struct sba_buf *ret, struct sba_error *err)
{
	struct archive_entry *entry;
	int rc = sba_tar_in_next(in, &entry, err);
	if (rc == 0)
		return sba_fail(err, SBA_ENOTFOUND, "the tar is empty");
	if (rc > 0)
		rc = check(entry, max, err);
	if (rc == 0)
		rc = put_content(in, (size_t)archive_entry_size(entry), ret, err);
	if (rc == 0)
		rc = sba_tar_in_next(in, &entry, err);
	return rc > 0 ? sba_fail(err, SBA_EREFUSED, "it is more than one file") : rc;
}

int sba_tar_one_file(sba_tar_read_fn *read, void *user, size_t max, struct sba_buf *ret,
		     struct sba_error *err)
{
	struct sba_tar_in *in;
	size_t before = ret->len;
	int rc = sba_tar_in_new(read, user, &in, err);
	if (rc < 0)
		return rc;
	rc = read_one(in, max, ret, err);
	sba_tar_in_free(in);
	if (rc < 0 && ret->data) {
		ret->len = before;
		ret->data[before] = '\0';
	}
	return rc;
}
