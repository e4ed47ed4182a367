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
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool say(const char *path)
{
	size_t len = strlen(path) + 1;

	for (size_t at = 0; at < len;) {
		ssize_t put = write(STDOUT_FILENO, path + at, len - at);

		if (put < 0 && errno != EINTR)
			return false;
		at += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* Takes the whole paths from the front of buf; returns how much of it they were. */
static size_t take_paths(char *buf, size_t len, bool *ok)
{
	size_t at = 0;

	for (char *end; (end = memchr(buf + at, '\0', len - at)) != NULL;) {
		const char *path = buf + at;

		if (path[0] == '/' && path[1] != '\0' && !remove_at(AT_FDCWD, path, 0))
			*ok = say(path) && *ok;
		at = (size_t)(end - buf) + 1;
	}
	return at;
}

int sba_guest_remove(int argc, char **argv)
{
	static char buf[16 * PATH_MAX];
	size_t have = 0;
	bool ok = true;

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	while (have < sizeof(buf)) {
		ssize_t got = read(STDIN_FILENO, buf + have, sizeof(buf) - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 && have == 0 && ok ? SBA_GUEST_OK : SBA_GUEST_FAILED;
		have += (size_t)got;
		size_t used = take_paths(buf, have, &ok);
		have -= used;
		memmove(buf, buf + used, have);
	}
	return SBA_GUEST_FAILED; /* no path is that long */
}
