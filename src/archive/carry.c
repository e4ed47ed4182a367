/* SPDX-License-Identifier: MIT */
/*
 * Entries of several tars made into one, in a file: what one sandbox holds, for
 * others. Owners, modes and links stay as they are; nothing of it is opened or
 * made on this host. A tar that turns out to be broken leaves no trace.
 */
#include "archive/private.h"

#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CARRY_HEADER_MAX = 16 * SBA_TAR_BLOCK + 4 * SBA_LAND_PATH_MAX };

struct sba_carry {
	int fd;       /* lent */
	uint64_t max; /* how long it may become */
	uint64_t end; /* of the entries that are whole */
	uint64_t at;
	struct sba_buf head;
	struct sba_carry_report report;
	sba_tar_owner_fn *owner; /* NULL: as the headers have it */
	void *owner_user;
};

int sba_carry_new(int fd, uint64_t max, struct sba_carry **ret, struct sba_error *err)
{
	struct sba_carry *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->fd = fd;
	c->max = max;
	sba_buf_init(&c->head, CARRY_HEADER_MAX);
	*ret = c;
	return 0;
}

void sba_carry_free(struct sba_carry *c)
{
	if (!c)
		return;
	sba_buf_fini(&c->head);
	free(c);
}

void sba_carry_report_get(const struct sba_carry *c, struct sba_carry_report *ret)
{
	*ret = c->report;
}

void sba_carry_set_owners(struct sba_carry *c, sba_tar_owner_fn *owner, void *user)
{
	c->owner = owner;
	c->owner_user = user;
}

static int put(struct sba_carry *c, const void *data, size_t len, struct sba_error *err)
{
	const char *from = data;
	char size[32];
	if (c->at > c->max || len > c->max - c->at)
		return sba_fail(err, SBA_ELIMIT, "it is more than %s",
				sba_format_size((int64_t)c->max, size, sizeof(size)));
	while (len > 0) {
		ssize_t n = pwrite(c->fd, from, len, (off_t)c->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "write the temporary file");
		from += n;
		len -= (size_t)n;
		c->at += (uint64_t)n;
	}
	return 0;
}

static int put_head(struct sba_carry *c, const struct sba_tar_entry *e, struct sba_error *err)
{
	sba_buf_reset(&c->head);
	sba_tar_put_header(&c->head, e);
	int rc = sba_buf_check(&c->head, "a tar header", err);
	return rc < 0 ? rc : put(c, c->head.data, c->head.len, err);
}

/* Holes are left out of the write, not out of the tar: the file has them too. */
static int put_content(struct sba_carry *c, struct sba_tar_in *in, uint64_t size,
		       struct sba_error *err)
{
	static const char zeros[SBA_TAR_BLOCK];
	uint64_t base = c->at;
	struct sba_tar_piece piece;
	int rc;
	while ((rc = sba_tar_in_data(in, size, &piece, err)) > 0) {
		c->at = base + piece.offset;
		rc = put(c, piece.data, piece.len, err);
		if (rc < 0)
			return rc;
	}
	c->at = base + size;
	return rc < 0 ? rc : put(c, zeros, sba_tar_padding(size), err);
}

/* prefix/name, or nothing where either leads out of the archive. */
static bool join(struct sba_buf *to, const char *prefix, const char *name)
{
	size_t len = strlen(name);
	while (len > 0 && name[len - 1] == '/')
		len--;
	sba_buf_reset(to);
	sba_buf_puts(to, prefix);
	if (*prefix)
		sba_buf_putc(to, '/');
	sba_buf_put(to, name, len);
	return !to->failed && to->data && sba_path_components(to->data) > 0;
}

static void count(struct sba_carry_report *r, const struct sba_tar_entry *e)
{
	r->files += e->type == '0' || e->type == '1';
	r->symlinks += e->type == '2';
	r->directories += e->type == '5';
	r->bytes += e->size;
}

static int carry_entry(struct sba_carry *c, struct sba_tar_in *in, struct archive_entry *from,
		       const char *prefix, struct sba_error *err)
{
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_LAND_PATH_MAX);
	SBA_BUF struct sba_buf link = SBA_BUF_INIT(SBA_LAND_PATH_MAX);
	char type = sba_tar_type(from);
	const char *path = archive_entry_pathname(from);
	const char *target = NULL;
	bool fits = type && path && join(&name, prefix, path);
	if (fits && type == '1') {
		fits = join(&link, prefix, archive_entry_hardlink(from));
		target = link.data;
	} else if (fits && type == '2') {
		target = archive_entry_symlink(from);
		fits = target != NULL;
	}
	if (!fits) {
		c->report.left_out++;
		return 0;
	}
	int64_t size = archive_entry_size(from);
	struct sba_tar_entry e = {
		.name = name.data,
		.link = target,
		.type = type,
		.mode = (uint32_t)archive_entry_perm(from),
		.uid = (uint32_t)archive_entry_uid(from),
		.gid = (uint32_t)archive_entry_gid(from),
		.size = type == '0' && size > 0 ? (uint64_t)size : 0,
		.mtime = archive_entry_mtime(from),
	};
	if (c->owner)
		c->owner(c->owner_user, e.name, &e.uid, &e.gid);
	int rc = put_head(c, &e, err);
	if (rc == 0 && type == '0')
		rc = put_content(c, in, e.size, err);
	if (rc == 0)
		count(&c->report, &e);
	return rc;
}

static int carry_all(struct sba_carry *c, const char *prefix, struct sba_tar_in *in,
		     struct sba_error *err)
{
	struct archive_entry *e;
	int rc;
	while ((rc = sba_tar_in_next(in, &e, err)) > 0) {
		rc = carry_entry(c, in, e, prefix, err);
		if (rc < 0)
			return rc;
	}
	return rc;
}

int sba_carry_tar(struct sba_carry *c, const char *prefix, sba_tar_read_fn *read, void *user,
		  struct sba_error *err)
{
	const struct sba_carry_report before = c->report;
	struct sba_tar_in *in = NULL;
	c->at = c->end;
	int rc = sba_tar_in_new(read, user, &in, err);
	if (rc == 0)
		rc = carry_all(c, prefix, in, err);
	sba_tar_in_free(in);
	if (rc < 0) {
		c->report = before;
		/* What was written of it must not be taken for a hole's zeros later. */
		if (ftruncate(c->fd, (off_t)c->end) < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "cut the temporary file");
		return rc;
	}
	c->end = c->at;
	return 0;
}

int sba_carry_dir(struct sba_carry *c, const struct sba_carry_directory *dir, struct sba_error *err)
{
	const struct sba_tar_entry e = {
		.name = dir->name,
		.type = '5',
		.mode = dir->mode,
		.uid = dir->uid,
		.gid = dir->gid,
		.mtime = dir->mtime,
	};
	if (sba_path_components(dir->name) == 0)
		return sba_fail(err, SBA_EINVAL, "'%s' is no name for an archive's entry",
				dir->name);
	c->at = c->end;
	int rc = put_head(c, &e, err);
	if (rc == 0)
		c->end = c->at;
	return rc;
}

int sba_carry_end(struct sba_carry *c, uint64_t *ret_size, struct sba_error *err)
{
	static const char trailer[2 * SBA_TAR_BLOCK];
	c->at = c->end;
	int rc = put(c, trailer, sizeof(trailer), err);
	if (rc == 0)
		*ret_size = c->at;
	return rc;
}

ssize_t sba_carry_read(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct sba_carry_reader *r = user;
	uint64_t left = r->size - r->at;
	ssize_t n;
	do {
		n = pread(r->fd, buf, left < size ? (size_t)left : size, (off_t)r->at);
	} while (n < 0 && errno == EINTR);
	if (n < 0 || (n == 0 && left > 0))
		return sba_fail_errno(err, SBA_EIO, n < 0 ? errno : EIO, "read the temporary file");
	r->at += (uint64_t)n;
	return n;
}
