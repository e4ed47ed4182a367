/* SPDX-License-Identifier: MIT */
/*
 * Retention: days go as a whole, once nothing in them was written to for so long,
 * and never one that a turn holds.
 */
#include "audit/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	DAY_MS = 24 * 60 * 60 * 1000,
	DEPTH = 3, /* day, session, and a folder that somebody put into one */
};

static DIR *open_walk(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		sba_cleanup_close(&fd);
	return dir;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int64_t activity(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000;
}

/* Of the files beneath. Folders change with renames and removals, too; theirs counts
 * where there is nothing in them. */
static int64_t newest(int dir_fd, const char *name, int depth)
{
	struct stat st;
	int64_t last = 0;
	DIR *dir = open_walk(dir_fd, name);
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (is_dots(e->d_name) ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		int64_t at = S_ISDIR(st.st_mode) && depth > 1
				     ? newest(dirfd(dir), e->d_name, depth - 1)
				     : activity(&st);
		last = at > last ? at : last;
	}
	if (last == 0 && fstat(dirfd(dir), &st) == 0)
		last = activity(&st);
	closedir(dir);
	return last;
}

static int remove_tree(int dir_fd, const char *name, int depth)
{
	DIR *dir = depth ? open_walk(dir_fd, name) : NULL;
	if (!dir)
		return -1;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (is_dots(e->d_name) || unlinkat(dirfd(dir), e->d_name, 0) == 0)
			continue;
		if (errno == EISDIR || errno == EPERM)
			(void)remove_tree(dirfd(dir), e->d_name, depth - 1);
	}
	closedir(dir);
	return unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* Held alone, nobody writes there, and whoever comes finds it gone. */
static int remove_day(int root_fd, const char *day, struct sba_error *err)
{
	SBA_CLOSE int fd = openat(root_fd, day, OPEN_DIR);
	char gone[32], random[9];
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	int rc = sba_random_hex(random, 4, err);
	if (rc < 0)
		return rc;
	snprintf(gone, sizeof(gone), ".%s-%s", day, random);
	if (renameat(root_fd, day, root_fd, gone) < 0 || remove_tree(root_fd, gone, DEPTH) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "remove the audit of %s", day);
	return 1;
}

/* A day's name is as old as its oldest turn: only an old one need be looked into. */
static bool is_over(int root_fd, const char *day, int64_t before_ms)
{
	char oldest[SBA_AUDIT_DAY];
	sba_audit_day_of(before_ms, oldest);
	if (strcmp(day, oldest) >= 0)
		return false;
	return newest(root_fd, day, DEPTH) < before_ms;
}

int sba_audit_prune(const char *root, int64_t retention_days, int *ret_removed,
		    struct sba_error *err)
{
	SBA_CLOSE int fd = -1;
	SBA_STRV struct sba_strv days = { 0 };
	int removed = 0;
	if (ret_removed)
		*ret_removed = 0;
	if (retention_days <= 0)
		return 0;
	int rc = sba_audit_root_open(root, false, &fd, err);
	if (rc == 0)
		rc = sba_audit_days(fd, &days, err);
	else if (rc == SBA_ENOTFOUND)
		return 0;
	const int64_t before_ms = sba_unix_ms() - retention_days * DAY_MS;
	for (size_t i = 0; rc >= 0 && i < days.n; i++) {
		rc = is_over(fd, days.v[i], before_ms) ? remove_day(fd, days.v[i], err) : 0;
		removed += rc > 0;
	}
	if (ret_removed)
		*ret_removed = removed;
	return rc < 0 ? rc : 0;
}
