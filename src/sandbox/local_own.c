/* SPDX-License-Identifier: MIT */
/*
 * The folder that one handle on a local sandbox has for itself: HOME, temporary files, what
 * agents keep. A lock on it says that its program lives.
 */
#include "archive/archive.h"
#include "sandbox/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARENT "/tmp"
#define PREFIX "sandbox-agent-local-"

static bool is_ours(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && S_ISDIR(st.st_mode);
}

/* Only what nobody holds, and is this user's. */
static void sweep_one(int parent, const char *name)
{
	SBA_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_ours(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0)
		sba_remove_tree(parent, name);
}

static void sweep(void)
{
	int parent = open(PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = parent < 0 ? NULL : fdopendir(parent);
	const struct dirent *entry;
	if (!dir) {
		sba_cleanup_close(&parent);
		return;
	}
	while ((entry = readdir(dir))) {
		if (sba_starts_with(entry->d_name, PREFIX))
			sweep_one(parent, entry->d_name);
	}
	closedir(dir);
}

/* Locked before it has its name: nobody sweeps it in between. */
static int make(char path[], int *ret_fd, struct sba_error *err)
{
	char random[17], unborn[128];
	int rc = sba_random_hex(random, 8, err);
	if (rc < 0)
		return rc;
	snprintf(unborn, sizeof(unborn), PARENT "/.sandbox-agent-%s", random);
	snprintf(path, sizeof(unborn), PARENT "/" PREFIX "%s", random);
	if (mkdir(unborn, 0700) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "make %s", unborn);
	SBA_CLOSE int fd = open(unborn, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || mkdirat(fd, "home", 0700) < 0 ||
	    mkdirat(fd, "tmp", 0700) < 0 || rename(unborn, path) < 0) {
		rc = sba_fail_errno(err, SBA_EIO, errno, "make %s", path);
		sba_local_own_close(unborn, sba_move_fd(&fd));
		return rc;
	}
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

int sba_local_own_open(char **ret_path, int *ret_fd, struct sba_error *err)
{
	char path[128];
	SBA_CLOSE int fd = -1;
	sweep();
	int rc = make(path, &fd, err);
	if (rc < 0)
		return rc;
	char *copy = strdup(path);
	if (!copy) {
		sba_local_own_close(path, sba_move_fd(&fd));
		return sba_fail_nomem(err);
	}
	*ret_path = copy;
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

void sba_local_own_close(const char *path, int take_fd)
{
	SBA_CLOSE int parent = open(PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent >= 0)
		sba_remove_tree(parent, strrchr(path, '/') + 1);
	sba_cleanup_close(&take_fd);
}
