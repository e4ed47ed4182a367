/* SPDX-License-Identifier: MIT */
/*
 * Where a landing takes place: the temporary top beside the final name, what
 * is created beneath it, the modes and times that wait for the end. It asks no
 * questions about the archive: that is land.c's; the final name is publish.c's.
 */
#include "archive/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* The mode, until the end, of a directory that only its children have
	 * named so far. Explicit ones have 0700; the top of all is 0700 always. */
	IMPLIED_MODE = 0701,
	IMPLIED_FINAL_MODE = 0755,
};

struct sba_later {
	char *path;
	size_t depth, order;
	struct sba_attributes attributes;
};

/* ---- names ---- */

static int split(struct sba_place *p, const char *dest, char **ret_dir, struct sba_error *err)
{
	size_t len = strlen(dest);
	while (len > 1 && dest[len - 1] == '/')
		len--;
	size_t start = len;
	while (start > 0 && dest[start - 1] != '/')
		start--;
	if (len - start >= sizeof(p->name))
		return sba_fail(err, SBA_EINVAL, "'%s': the name is too long", dest);
	memcpy(p->name, dest + start, len - start);
	if (sba_path_components(p->name) != 1)
		return sba_fail(err, SBA_EINVAL, "'%s' names no file or directory", dest);
	*ret_dir = start > 0 ? strndup(dest, start) : strdup(".");
	return *ret_dir ? 0 : sba_fail_nomem(err);
}

/* A tree that is to be merged lands within the directory that receives it: that
 * is the one place where a rename is sure to do. */
static int open_directory(struct sba_place *p, const char *dest, const char *dir,
			  struct sba_error *err)
{
	if (p->merge) {
		p->dir_fd = open(dest, O_PATH | O_DIRECTORY | O_CLOEXEC);
		p->into = p->dir_fd >= 0;
		if (p->into)
			return 0;
	}
	p->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno,
				      "open the directory '%s'", dir);
	return 0;
}

int sba_place_open(struct sba_place *p, const char *dest, bool merge, struct sba_error *err)
{
	SBA_FREE char *dir = NULL;
	*p = (struct sba_place){ .dir_fd = -1, .root_fd = -1, .file_fd = -1, .merge = merge };
	sba_beneath_init(&p->beneath, -1, false);
	int rc = split(p, dest, &dir, err);
	if (rc == 0)
		rc = sba_temp_name(p->name, p->tmp, err);
	if (rc == 0)
		rc = open_directory(p, dest, dir, err);
	if (rc == 0)
		sba_temp_sweep(p->dir_fd);
	return rc;
}

static void forget_later(struct sba_place *p)
{
	for (size_t i = 0; i < p->later_n; i++)
		free(p->later[i].path);
	free(p->later);
	p->later = NULL;
	p->later_n = p->later_cap = p->later_bytes = 0;
}

void sba_place_close(struct sba_place *p)
{
	forget_later(p);
	sba_beneath_fini(&p->beneath);
	sba_cleanup_close(&p->root_fd);
	sba_cleanup_close(&p->file_fd);
	if (p->top != SBA_TOP_NONE)
		sba_remove_tree(p->dir_fd, p->tmp);
	p->top = SBA_TOP_NONE;
	sba_cleanup_close(&p->dir_fd);
}

/* ---- what has to wait ---- */

static int apply(int fd, const struct sba_attributes *a)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, a->mtime };
	if (fchmod(fd, a->mode) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static int later_grow(struct sba_place *p)
{
	if (p->later_n < p->later_cap)
		return 0;
	size_t cap = p->later_cap ? 2 * p->later_cap : 64;
	struct sba_later *grown = realloc(p->later, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->later = grown;
	p->later_cap = cap;
	return 0;
}

static int later_add(struct sba_place *p, const char *rel, const struct sba_attributes *a)
{
	p->later_bytes += sizeof(struct sba_later) + strlen(rel);
	if (p->later_bytes > SBA_LAND_LATER_MAX)
		return -E2BIG;
	int rc = later_grow(p);
	if (rc < 0)
		return rc;
	struct sba_later *l = &p->later[p->later_n];
	*l = (struct sba_later){
		.path = strdup(rel),
		.depth = (size_t)sba_path_components(rel),
		.order = p->later_n,
		.attributes = *a,
	};
	if (!l->path)
		return -ENOMEM;
	p->later_n++;
	return 0;
}

/* Deepest first: a parent's mode may lock its children away. What was named
 * twice (by a child, then by itself) keeps the last word. */
static int compare_later(const void *a, const void *b)
{
	const struct sba_later *x = a, *y = b;
	if (x->depth != y->depth)
		return x->depth > y->depth ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

int sba_place_settle(struct sba_place *p, struct sba_error *err)
{
	if (p->later_n > 0)
		qsort(p->later, p->later_n, sizeof(*p->later), compare_later);
	for (size_t i = 0; i < p->later_n; i++) {
		const struct sba_later *l = &p->later[i];
		SBA_CLOSE int fd = sba_beneath_open(&p->beneath, l->path, O_RDONLY | O_NONBLOCK);
		int rc = fd < 0 ? fd : apply(fd, &l->attributes);
		if (rc < 0)
			return sba_fail_errno(err, SBA_EIO, -rc, "set mode and time of '%s'",
					      l->path);
	}
	return 0;
}

/* ---- creating ---- */

static int make_top(struct sba_place *p, bool implied)
{
	p->root_fd = sba_temp_directory(p->dir_fd, p->tmp);
	if (p->root_fd < 0)
		return p->root_fd;
	p->top = SBA_TOP_TREE;
	p->top_implied = implied;
	sba_beneath_init(&p->beneath, p->root_fd, p->no_openat2);
	return 0;
}

static const struct sba_attributes implied_attributes = {
	.mode = IMPLIED_FINAL_MODE,
	.mtime = { .tv_nsec = UTIME_OMIT },
};

static int imply_top(struct sba_place *p)
{
	if (p->top == SBA_TOP_FILE)
		return -ENOTDIR;
	if (p->top == SBA_TOP_TREE)
		return 0;
	int rc = make_top(p, true);
	return rc < 0 ? rc : later_add(p, "", &implied_attributes);
}

static int set_mode(struct sba_place *p, const char *rel, mode_t mode)
{
	SBA_CLOSE int fd = sba_beneath_open(&p->beneath, rel, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int imply_directory(struct sba_place *p, const char *rel)
{
	const char *leaf;
	int dir_fd = sba_beneath_parent(&p->beneath, rel, &leaf);
	if (dir_fd < 0)
		return dir_fd;
	if (mkdirat(dir_fd, leaf, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	int rc = set_mode(p, rel, IMPLIED_MODE);
	return rc < 0 ? rc : later_add(p, rel, &implied_attributes);
}

static int imply_parents(struct sba_place *p, const char *rel)
{
	char prefix[SBA_LAND_PATH_MAX];
	for (const char *s = strchr(rel, '/'); s; s = strchr(s + 1, '/')) {
		snprintf(prefix, sizeof(prefix), "%.*s", (int)(s - rel), rel);
		int rc = imply_directory(p, prefix);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Lends the directory in which rel is to be created. */
static int parent_of(struct sba_place *p, const char *rel, const char **leaf)
{
	int rc = imply_top(p);
	if (rc < 0)
		return rc;
	int dir_fd = sba_beneath_parent(&p->beneath, rel, leaf);
	if (dir_fd != -ENOENT)
		return dir_fd;
	rc = imply_parents(p, rel);
	return rc < 0 ? rc : sba_beneath_parent(&p->beneath, rel, leaf);
}

static int make_file(int dir_fd, const char *leaf)
{
	int fd = openat(dir_fd, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Without a name, where the file system can: a client that is killed leaves
 * nothing then. The name is given through /proc, so that must be there. */
static int make_unnamed(struct sba_place *p)
{
	if (p->no_renameat2 || access("/proc/self/fd", X_OK) < 0)
		return -EOPNOTSUPP;
	SBA_CLOSE int fd = openat(p->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	p->file_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return p->file_fd < 0 ? -errno : sba_move_fd(&fd);
}

static int make_top_file(struct sba_place *p)
{
	if (p->top != SBA_TOP_NONE)
		return -EEXIST;
	/* What is merged into is a directory, and never gives way to a file. */
	if (p->into)
		return -ENOTDIR;
	SBA_CLOSE int fd = make_unnamed(p);
	if (fd < 0)
		fd = make_file(p->dir_fd, p->tmp);
	if (fd < 0)
		return fd;
	p->top = SBA_TOP_FILE;
	int rc = sba_temp_lock(fd);
	return rc < 0 ? rc : sba_move_fd(&fd);
}

int sba_place_file(struct sba_place *p, const char *rel)
{
	const char *leaf;
	if (rel[0] == '\0')
		return make_top_file(p);
	int dir_fd = parent_of(p, rel, &leaf);
	return dir_fd < 0 ? dir_fd : make_file(dir_fd, leaf);
}

int sba_place_file_done(struct sba_place *p, const char *rel, int fd,
			const struct sba_attributes *a, struct sba_error *err)
{
	/* A hard link may still want to read what its owner may not. */
	bool waits = p->top == SBA_TOP_TREE && !(a->mode & S_IRUSR);
	int rc = waits ? later_add(p, rel, a) : apply(fd, a);
	return rc < 0 ? sba_fail_errno(err, SBA_EIO, -rc, "set mode and time of '%s'", rel) : 0;
}

/* An entry names a directory that is there: fine if it was only implied. */
static int claim(struct sba_place *p, const char *rel)
{
	struct stat st;
	if (rel[0] == '\0') {
		bool implied = p->top_implied;
		p->top_implied = false;
		return implied ? 0 : -EEXIST;
	}
	SBA_CLOSE int fd = sba_beneath_open(&p->beneath, rel, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0777) != IMPLIED_MODE)
		return -EEXIST;
	return fchmod(fd, 0700) < 0 ? -errno : 0;
}

static int make_directory(struct sba_place *p, const char *rel)
{
	const char *leaf;
	if (rel[0] == '\0' && p->top == SBA_TOP_NONE)
		return make_top(p, false);
	if (rel[0] == '\0')
		return claim(p, rel);
	int dir_fd = parent_of(p, rel, &leaf);
	if (dir_fd < 0)
		return dir_fd;
	if (mkdirat(dir_fd, leaf, 0700) == 0)
		return 0;
	return errno == EEXIST ? claim(p, rel) : -errno;
}

int sba_place_directory(struct sba_place *p, const char *rel, const struct sba_attributes *a)
{
	int rc = make_directory(p, rel);
	return rc < 0 ? rc : later_add(p, rel, a);
}

int sba_place_reopen(struct sba_place *p, const char *rel, struct stat *ret_st)
{
	if (p->top != SBA_TOP_TREE)
		return -ENOENT;
	SBA_CLOSE int fd = sba_beneath_open(&p->beneath, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	return S_ISREG(ret_st->st_mode) ? sba_move_fd(&fd) : -EISDIR;
}
