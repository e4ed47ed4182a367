/* SPDX-License-Identifier: MIT */
/*
 * Where a path leads and on which mount it lies: what the engine puts beneath a
 * mount nobody sees, and what is mounted the engine does not read.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOUNTINFO_MAX = 4 * 1024 * 1024 };

/* ---- mountinfo(5) ---- */

static bool is_escape(const char *text)
{
	return text[0] == '\\' && strspn(text + 1, "01234567") >= 3;
}

/* The fifth field, with its octal escapes undone, in place. */
static char *mount_point(char *line)
{
	char *at = line, *to;

	for (int i = 0; i < 4 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	to = at;
	for (char *from = at; *from && *from != ' '; from++) {
		if (is_escape(from)) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return at;
}

static bool is_beneath(const char *path, const char *above)
{
	size_t len = strlen(above);

	if (len == 1)
		return true;
	return strncmp(path, above, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_directory(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode);
}

uint8_t sba_file_judge_mounts(char *mounts, const char *path)
{
	uint8_t flags = 0;

	for (char *line = mounts, *next; line && *line; line = next) {
		char *point;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		point = mount_point(line);
		if (!point || strcmp(point, "/") == 0)
			continue;
		if (is_beneath(path, point))
			flags |= SBA_PLACE_OTHER_MOUNT;
		else if (is_beneath(point, path) && is_directory(point))
			flags |= SBA_PLACE_MOUNTS_BELOW;
	}
	return flags;
}

uint8_t sba_file_mounts(const char *path)
{
	struct sba_file_bytes mounts = { 0 };
	uint8_t flags =
		SBA_PLACE_OTHER_MOUNT; /* unknown: the guest's own way is right everywhere */
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return flags;
	if (!sba_file_read_rest(fd, MOUNTINFO_MAX, &mounts) && !sba_file_grow(&mounts, 1)) {
		mounts.data[mounts.len] = '\0';
		flags = sba_file_judge_mounts((char *)mounts.data, path);
	}
	free(mounts.data);
	close(fd);
	return flags;
}

/* ---- the request ---- */

/* The real path of everything but the last component. */
static int resolve(const char *path, char real[PATH_MAX])
{
	char parent[SBA_CHANNEL_FILE_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	size_t len;

	if (!slash || !slash[1])
		return realpath(path, real) ? 0 : errno;
	len = (size_t)(slash - path);
	memcpy(parent, path, len);
	parent[len] = '\0';
	if (strcmp(slash, "/.") == 0 || strcmp(slash, "/..") == 0)
		return realpath(path, real) ? 0 : errno;
	if (!realpath(len ? parent : "/", real))
		return errno;
	len = strlen(real);
	if (len + strlen(slash) >= PATH_MAX)
		return ENAMETOOLONG;
	memcpy(real + (len > 1 ? len : 0), slash, strlen(slash) + 1);
	return 0;
}

int sba_file_serve_place(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	char real[PATH_MAX];
	struct stat stat = { 0 };
	uint8_t flags = 0, *to;
	size_t len;
	int error = resolve(request->path, real);

	if (!error && lstat(real, &stat) < 0)
		error = errno;
	if (error && error != EACCES)
		return error;
	if (error) {
		flags = SBA_PLACE_UNSEEN;
		memcpy(real, request->path, strlen(request->path) + 1);
	}
	len = strlen(real);
	if (sba_file_grow(ret, SBA_CHANNEL_FILE_PLACE + len))
		return ENOMEM;
	to = sba_file_put_stat(ret->data, &stat);
	*to++ = flags | sba_file_mounts(real);
	memcpy(to, real, len);
	ret->len = SBA_CHANNEL_FILE_PLACE + len;
	return 0;
}
