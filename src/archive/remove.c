/* SPDX-License-Identifier: MIT */
/*
 * Removes a tree by descriptors. Directories found inside are moved up into
 * its top, where they wait their turn: three descriptors and no recursion do
 * for any depth, also for one that somebody else made.
 */
#include "archive/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* One for each level of depth, and an end when somebody keeps adding. */
enum { PASSES_MAX = 2 * SBA_LAND_DEPTH_MAX };

struct removal {
	int top_fd;
	unsigned moved;
};

/* Takes the bits that a mode from an archive may lack. Needs no race guard:
 * the C library does it by a descriptor that is no link. */
static void make_passable(int dir_fd, const char *name)
{
	int failed = fchmodat(dir_fd, name, 0700, AT_SYMLINK_NOFOLLOW);
	(void)failed; /* what comes next fails then, and tells */
}

static int open_directory(int dir_fd, const char *name)
{
	make_passable(dir_fd, name);
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool move_up(struct removal *r, int dir_fd, const char *name)
{
	char up[32];
	make_passable(dir_fd, name);
	do {
		snprintf(up, sizeof(up), "%u", r->moved++);
		if (renameat2(dir_fd, name, r->top_fd, up, RENAME_NOREPLACE) == 0)
			return true;
		/* Not every file system knows the flag; onto a directory that is
		 * not empty a plain rename fails too. */
		if (errno == EINVAL || errno == ENOSYS)
			return renameat(dir_fd, name, r->top_fd, up) == 0;
	} while (errno == EEXIST);
	return false;
}

/* Opens the names of a directory; own descriptor, own position. */
static DIR *open_names(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		sba_cleanup_close(&fd);
	return dir;
}

static bool is_self(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Unlinks the files in a directory and moves its directories up. */
static void flatten(struct removal *r, int dir_fd)
{
	DIR *dir = open_names(dir_fd);
	const struct dirent *d;
	while (dir && (d = readdir(dir))) {
		if (!is_self(d->d_name) && unlinkat(dir_fd, d->d_name, 0) < 0)
			move_up(r, dir_fd, d->d_name);
	}
	if (dir)
		closedir(dir);
}

/* One entry of the top; false if it is still there. */
static bool remove_entry(struct removal *r, const char *name)
{
	if (unlinkat(r->top_fd, name, 0) == 0)
		return true;
	int fd = open_directory(r->top_fd, name);
	if (fd < 0)
		return false;
	flatten(r, fd);
	close(fd);
	return unlinkat(r->top_fd, name, AT_REMOVEDIR) == 0;
}

/* Goes through the top once; false if nothing was there or would go. */
static bool pass(struct removal *r)
{
	bool removed = false;
	DIR *dir = open_names(r->top_fd);
	const struct dirent *d;
	while (dir && (d = readdir(dir))) {
		if (!is_self(d->d_name) && remove_entry(r, d->d_name))
			removed = true;
	}
	if (dir)
		closedir(dir);
	return removed;
}

void sba_remove_tree(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0)
		return;
	struct removal r = { .top_fd = open_directory(dir_fd, name) };
	if (r.top_fd < 0)
		return;
	for (int i = 0; i < PASSES_MAX && pass(&r); i++)
		;
	close(r.top_fd);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
}
