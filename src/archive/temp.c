/* SPDX-License-Identifier: MIT */
/*
 * Temporary names beside a final one. Whoever makes one holds a lock on it for
 * as long as it is his; one whose lock is free belonged to a client that was
 * killed, and the next transfer into that directory removes it.
 */
#include "archive/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MARK ".sandbox-agent-"

enum { NAME_KEEP = 200, RANDOM = 8, TRIES = 16 };

int sba_temp_name(const char *name, char ret[SBA_LAND_NAME_MAX + 1], struct sba_error *err)
{
	char random[2 * RANDOM + 1];
	int rc = sba_random_hex(random, RANDOM, err);
	if (rc == 0)
		snprintf(ret, SBA_LAND_NAME_MAX + 1, ".%.*s" MARK "%s", NAME_KEEP, name, random);
	return rc;
}

static bool is_temp(const char *name)
{
	size_t len = strlen(name), tail = strlen(MARK) + (size_t)2 * RANDOM;
	const char *at = len > tail ? name + len - tail : "";
	return name[0] == '.' && sba_starts_with(at, MARK) &&
	       strspn(at + strlen(MARK), "0123456789abcdef") == (size_t)2 * RANDOM;
}

int sba_temp_lock(int fd)
{
	/* A file system without locks has nothing that could be swept. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return -EAGAIN;
}

/* Whether the name still leads to what fd is: a sweep may have come between. */
static bool is_same(int dir_fd, const char *name, int fd)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int make_once(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0700) < 0)
		return -errno;
	SBA_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	int rc = sba_temp_lock(fd);
	if (rc == 0 && !is_same(dir_fd, name, fd))
		rc = -EAGAIN;
	return rc < 0 ? rc : sba_move_fd(&fd);
}

int sba_temp_directory(int dir_fd, const char *name)
{
	int fd = -EAGAIN;
	for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
		fd = make_once(dir_fd, name);
	return fd;
}

static void sweep_one(int dir_fd, const char *name)
{
	struct stat st;
	SBA_CLOSE int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(dir_fd, name, fd))
		sba_remove_tree(dir_fd, name);
}

void sba_temp_sweep(int dir_fd)
{
	int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *d;
	if (!dir) {
		sba_cleanup_close(&own);
		return;
	}
	for (size_t n = 0; n < SBA_TEMP_NAMES_MAX && (d = readdir(dir)); n++) {
		if (is_temp(d->d_name))
			sweep_one(dir_fd, d->d_name);
	}
	closedir(dir);
}
