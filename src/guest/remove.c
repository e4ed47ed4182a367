/* SPDX-License-Identifier: MIT */
/*
 * `guest remove`: removes the absolute paths that come on stdin, each ended by
 * a NUL, with all that is in them, following no link at their ends. What stays
 * is said on stdout in the same form.
 */
#include "guest/guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/paths_in.h"

enum { DEPTH_MAX = 256 };

static bool remove_at(int dir_fd, const char *name, int depth);

static bool remove_within(int dir_fd, const char *name, int depth)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool done = dir != NULL && depth < DEPTH_MAX;
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (depth < DEPTH_MAX && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			done = remove_at(dirfd(dir), entry->d_name, depth + 1) && done;
	}
	closedir(dir);
	return done;
}

static bool remove_at(int dir_fd, const char *name, int depth)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return true;
	if (errno != EISDIR && errno != EPERM && errno != EACCES)
		return false;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return true;
	return remove_within(dir_fd, name, depth) && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0;
}

/* What stays is told by its own path. */
static bool remove_path(const char *path)
{
	return remove_at(AT_FDCWD, path, 0) ||
	       sba_file_write_whole(STDOUT_FILENO, path, strlen(path) + 1);
}

int sba_guest_remove(int argc, char **argv)
{
	(void)argv;
	return argc == 1 ? sba_guest_each_path(remove_path) : SBA_GUEST_USAGE;
}
