/* SPDX-License-Identifier: MIT */
/*
 * The end of a landing: the top gets its final name, or what lies in it is
 * moved into the directory that is there already. By descriptors, beneath that
 * directory, following no link; and checked as a whole before anything moves.
 */
#include "archive/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- a new name ---- */

/* For file systems without RENAME_NOREPLACE. A link is as good for a file; a
 * directory can at worst replace an empty one that appears right now. */
static int rename_checked(int from_fd, const char *from, int to_fd, const char *to, bool is_file)
{
	struct stat st;
	if (is_file && linkat(from_fd, from, to_fd, to, 0) == 0)
		return unlinkat(from_fd, from, 0) < 0 ? -errno : 0;
	if (fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	if (errno != ENOENT)
		return -errno;
	return renameat(from_fd, from, to_fd, to) < 0 ? -errno : 0;
}

int sba_rename_new(bool no_renameat2, int from_fd, const char *from, int to_fd, const char *to,
		   bool is_file)
{
	if (no_renameat2)
		return rename_checked(from_fd, from, to_fd, to, is_file);
	if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	bool unknown = errno == EINVAL || errno == ENOSYS || errno == EPERM;
	return unknown ? rename_checked(from_fd, from, to_fd, to, is_file) : -errno;
}

/* A link replaces nothing: what is there needs a rename. */
static int name_file(const struct sba_place *p, bool replace)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->file_fd);
	if (linkat(AT_FDCWD, path, p->dir_fd, replace ? p->tmp : p->name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (!replace)
		return 0;
	if (renameat(p->dir_fd, p->tmp, p->dir_fd, p->name) == 0)
		return 0;
	int rc = -errno;
	unlinkat(p->dir_fd, p->tmp, 0);
	return rc;
}

static int rename_top(const struct sba_place *p, bool replace)
{
	if (p->file_fd >= 0)
		return name_file(p, replace);
	if (replace && p->top == SBA_TOP_FILE)
		return renameat(p->dir_fd, p->tmp, p->dir_fd, p->name) < 0 ? -errno : 0;
	return sba_rename_new(p->no_renameat2, p->dir_fd, p->tmp, p->dir_fd, p->name,
			      p->top == SBA_TOP_FILE);
}

/* ---- into a directory ---- */

struct merge {
	const struct sba_place *place;
	const struct sba_publish *options;
	struct sba_buf path; /* of the current entry, for errors */
	uint64_t kept;
};

/* An entry of the landed tree, and what bears its name in the directory. */
struct pair {
	int from_fd, to_fd;
	const char *name;
	struct stat from, to;
	bool there;
};

typedef int merge_fn(struct merge *m, const struct pair *p, struct sba_error *err);

static int check_pair(struct merge *m, const struct pair *p, struct sba_error *err)
{
	if (!p->there)
		return 0;
	if (S_ISDIR(p->from.st_mode) != S_ISDIR(p->to.st_mode))
		return sba_fail(err, SBA_EEXIST, "'%s' is %s there, and %s comes", m->path.data,
				S_ISDIR(p->to.st_mode) ? "a directory" : "no directory",
				S_ISDIR(p->from.st_mode) ? "one" : "a file");
	if (m->options->no_clobber)
		return 0;
	if (!m->options->replace || !S_ISREG(p->to.st_mode))
		return sba_fail_errno(err, SBA_EEXIST, EEXIST, "'%s'", m->path.data);
	return 0;
}

/* A directory that its owner may not write cannot be moved by him either. */
static int move_locked(const struct pair *p)
{
	SBA_CLOSE int fd =
		openat(p->from_fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, p->from.st_mode | S_IRWXU) < 0)
		return -EACCES;
	int rc = renameat2(p->from_fd, p->name, p->to_fd, p->name, RENAME_NOREPLACE) < 0 ? -errno
											 : 0;
	return fchmod(fd, p->from.st_mode & 07777) < 0 && rc == 0 ? -errno : rc;
}

static int move_pair(struct merge *m, const struct pair *p, struct sba_error *err)
{
	int rc;
	if (p->there && m->options->no_clobber) {
		m->kept++;
		return 0;
	}
	if (p->there)
		rc = renameat(p->from_fd, p->name, p->to_fd, p->name) < 0 ? -errno : 0;
	else
		rc = sba_rename_new(m->place->no_renameat2, p->from_fd, p->name, p->to_fd, p->name,
				    S_ISREG(p->from.st_mode));
	if (rc == -EACCES && S_ISDIR(p->from.st_mode))
		rc = move_locked(p);
	if (rc < 0)
		return sba_fail_errno(err, rc == -EEXIST ? SBA_EEXIST : SBA_EIO, -rc,
				      "put '%s' in place", m->path.data);
	return 0;
}

static int each_pair(struct merge *m, int from_fd, int to_fd, merge_fn *one, struct sba_error *err);

static int descend(struct merge *m, const struct pair *p, merge_fn *one, struct sba_error *err)
{
	SBA_CLOSE int from =
		openat(p->from_fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	SBA_CLOSE int to = openat(p->to_fd, p->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "open '%s'", m->path.data);
	return each_pair(m, from, to, one, err);
}

static int do_pair(struct merge *m, struct pair *p, merge_fn *one, struct sba_error *err)
{
	size_t before = m->path.len;
	if (fstatat(p->from_fd, p->name, &p->from, AT_SYMLINK_NOFOLLOW) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "'%s'", p->name);
	p->there = fstatat(p->to_fd, p->name, &p->to, AT_SYMLINK_NOFOLLOW) == 0;
	if (!p->there && errno != ENOENT)
		return sba_fail_errno(err, SBA_EIO, errno, "'%s'", p->name);
	if (before > 0)
		sba_buf_putc(&m->path, '/');
	sba_buf_puts(&m->path, p->name);
	int rc = sba_buf_check(&m->path, "path", err);
	bool both = p->there && S_ISDIR(p->from.st_mode) && S_ISDIR(p->to.st_mode);
	if (rc == 0)
		rc = both ? descend(m, p, one, err) : one(m, p, err);
	m->path.len = before;
	if (m->path.data)
		m->path.data[before] = '\0';
	return rc;
}

/* Takes nothing; an entry that is moved away while the names are read is fine. */
static int each_pair(struct merge *m, int from_fd, int to_fd, merge_fn *one, struct sba_error *err)
{
	int own = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *d;
	int rc = 0;
	if (!dir) {
		rc = sba_fail_errno(err, SBA_EIO, errno, "open what has landed");
		sba_cleanup_close(&own);
		return rc;
	}
	while (rc == 0 && (d = readdir(dir))) {
		struct pair p = { .from_fd = from_fd, .to_fd = to_fd, .name = d->d_name };
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			rc = do_pair(m, &p, one, err);
	}
	closedir(dir);
	return rc;
}

static int merge_tree(const struct sba_place *p, const struct sba_publish *o, uint64_t *ret_kept,
		      struct sba_error *err)
{
	struct merge m = { .place = p, .options = o, .path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX) };
	int rc = each_pair(&m, p->root_fd, p->dir_fd, check_pair, err);
	if (rc == 0)
		rc = each_pair(&m, p->root_fd, p->dir_fd, move_pair, err);
	sba_buf_fini(&m.path);
	*ret_kept = m.kept;
	return rc;
}

/* ---- the final name ---- */

int sba_place_publish(struct sba_place *p, const struct sba_publish *o, uint64_t *ret_kept,
		      struct sba_error *err)
{
	*ret_kept = 0;
	int rc = p->top == SBA_TOP_TREE ? sba_place_settle(p, err) : 0;
	if (rc < 0)
		return rc;
	/* What stays in the temporary top goes with it. */
	if (p->into)
		return merge_tree(p, o, ret_kept, err);
	rc = rename_top(p, o->replace && !o->no_clobber);
	if (rc == -EEXIST && o->no_clobber && p->top == SBA_TOP_FILE) {
		*ret_kept = 1;
		return 0;
	}
	if (rc == -EEXIST || rc == -EISDIR || rc == -ENOTEMPTY)
		return sba_fail_errno(err, SBA_EEXIST, -rc, "'%s'", p->name);
	if (rc < 0)
		return sba_fail_errno(err, SBA_EIO, -rc, "rename to '%s'", p->name);
	p->top = SBA_TOP_NONE;
	return 0;
}
