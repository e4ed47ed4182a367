/* SPDX-License-Identifier: MIT */
/*
 * One request for a file, in a child of its own: nothing that a path leads to
 * can hold the session up, and the ids are those of the sandbox's user.
 */
#include "guest/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, MODE_MASK = 07777, NAME_ROOM = 16 };

struct request {
	uint8_t op;
	uint32_t mode;
	uint64_t size;
	char path[SBA_CHANNEL_FILE_PATH_MAX + 1];
};

struct bytes {
	uint8_t *data;
	size_t len;
	size_t size;
};

/* ---- numbers on the wire ---- */

static uint64_t get_number(const uint8_t *from, size_t len)
{
	uint64_t number = 0;

	for (size_t i = 0; i < len; i++)
		number = number << 8 | from[i];
	return number;
}

static uint8_t *put_number(uint8_t *to, uint64_t number, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(number >> 8 * (len - 1 - i));
	return to + len;
}

/* ---- whole reads and writes ---- */

static bool read_whole(int fd, void *to, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t got = read(fd, (uint8_t *)to + have, len - have);

		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		have += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static bool write_whole(int fd, const void *from, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t put = write(fd, (const uint8_t *)from + done, len - done);

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

static int grow(struct bytes *bytes, size_t more)
{
	size_t size = bytes->size ? bytes->size : READ_STEP;
	uint8_t *bigger;

	while (size < bytes->len + more)
		size *= 2;
	if (size == bytes->size)
		return 0;
	bigger = realloc(bytes->data, size);
	if (!bigger)
		return ENOMEM;
	bytes->data = bigger;
	bytes->size = size;
	return 0;
}

/* ---- opening ---- */

/* /proc/self/fd/N and the like lead to files that the path does not name. */
static int open_plain(const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* ---- read ---- */

static int read_content(int fd, uint64_t max, struct bytes *ret)
{
	for (;;) {
		ssize_t got;
		int error = grow(ret, READ_STEP);

		if (error)
			return error;
		got = read(fd, ret->data + ret->len, READ_STEP);
		if (got < 0)
			return errno;
		if (got == 0)
			return 0;
		ret->len += (size_t)got;
		if (ret->len > max)
			return EFBIG;
	}
}

static int serve_read(const struct request *request, struct bytes *ret)
{
	int fd = open_plain(request->path, O_RDONLY);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return errno;
	if (!S_ISREG(stat.st_mode))
		return S_ISDIR(stat.st_mode) ? EISDIR : EOPNOTSUPP;
	if (stat.st_size > 0 && (uint64_t)stat.st_size > request->size)
		return EFBIG;
	return read_content(fd, request->size, ret);
}

/* ---- stat ---- */

static int serve_stat(const struct request *request, struct bytes *ret)
{
	int flags = request->op == SBA_FILE_LSTAT ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat stat;
	uint8_t *to;

	if (fstatat(AT_FDCWD, request->path, &stat, flags | AT_NO_AUTOMOUNT) < 0)
		return errno;
	if (grow(ret, SBA_CHANNEL_FILE_STAT))
		return ENOMEM;
	to = put_number(ret->data, stat.st_mode, 4);
	to = put_number(to, stat.st_uid, 4);
	to = put_number(to, stat.st_gid, 4);
	to = put_number(to, (uint64_t)stat.st_size, 8);
	put_number(to, (uint64_t)(stat.st_mtim.tv_sec * 1000000000LL + stat.st_mtim.tv_nsec), 8);
	ret->len = SBA_CHANNEL_FILE_STAT;
	return 0;
}

/* ---- list ---- */

static int add_name(const char *name, uint64_t max, struct bytes *ret)
{
	size_t len = strlen(name) + 1;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (ret->len + len > max)
		return EFBIG;
	if (grow(ret, len))
		return ENOMEM;
	memcpy(ret->data + ret->len, name, len);
	ret->len += len;
	return 0;
}

static int serve_list(const struct request *request, struct bytes *ret)
{
	int fd = open_plain(request->path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int error = 0;

	if (!dir)
		return errno;
	do {
		errno = 0;
		entry = readdir(dir);
		error = entry ? add_name(entry->d_name, request->size, ret) : errno;
	} while (entry && !error);
	return error;
}

/* ---- write ---- */

static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0755);
		*slash = '/';
		if (rc < 0 && errno != EEXIST)
			return errno;
	}
	return 0;
}

static int copy_content(int fd, uint64_t size)
{
	static uint8_t data[READ_STEP];

	while (size > 0) {
		size_t want = size < sizeof(data) ? (size_t)size : sizeof(data);
		ssize_t got = read(STDIN_FILENO, data, want);

		if (got < 0 && errno == EINTR)
			continue;
		/* A client that died half-way changes nothing. */
		if (got <= 0)
			return ECANCELED;
		if (!write_whole(fd, data, (size_t)got))
			return errno;
		size -= (size_t)got;
	}
	return 0;
}

/* The new file looks like the one that it replaces. */
static int dress(int fd, const struct request *request, const struct stat *old)
{
	mode_t mode = old ? old->st_mode & MODE_MASK : 0644;

	if (request->mode != SBA_CHANNEL_FILE_NO_MODE)
		mode = request->mode & MODE_MASK;
	if (old && (old->st_uid != geteuid() || old->st_gid != getegid()) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0)
		return errno;
	return fchmod(fd, mode) < 0 ? errno : 0;
}

static int open_temporary(const char *path, char *name, size_t size)
{
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash - path + 1) : 0;

	for (unsigned int i = 0; i < 100; i++) {
		int fd;

		snprintf(name, size, "%.*s.sba-%d-%u", directory, path, (int)getpid(), i);
		fd = open_plain(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	errno = EEXIST;
	return -1;
}

static int replace(const struct request *request, const struct stat *old)
{
	char name[SBA_CHANNEL_FILE_PATH_MAX + 2 * NAME_ROOM + 1];
	int fd = open_temporary(request->path, name, sizeof(name));
	int error;

	if (fd < 0)
		return errno;
	error = copy_content(fd, request->size);
	if (!error)
		error = dress(fd, request, old);
	if (close(fd) < 0 && !error)
		error = errno;
	if (!error && rename(name, request->path) < 0)
		error = errno;
	if (error)
		unlink(name);
	return error;
}

/* A symbolic link is followed: what it leads to is replaced, not the link. */
static int follow(struct request *request)
{
	char real[PATH_MAX];

	if (!realpath(request->path, real))
		return errno == ENOENT ? 0 : errno;
	if (strlen(real) >= sizeof(request->path))
		return ENAMETOOLONG;
	memcpy(request->path, real, strlen(real) + 1);
	return 0;
}

static int serve_write(struct request *request)
{
	struct stat stat;
	int error = make_parents(request->path);

	if (!error)
		error = follow(request);
	if (error)
		return error;
	if (lstat(request->path, &stat) < 0)
		return errno == ENOENT ? replace(request, NULL) : errno;
	if (!S_ISREG(stat.st_mode))
		return S_ISDIR(stat.st_mode) ? EISDIR : EOPNOTSUPP;
	return replace(request, &stat);
}

/* ---- the request ---- */

static bool read_request(struct request *ret)
{
	uint8_t head[SBA_CHANNEL_FILE_HEAD];
	size_t len;

	if (!read_whole(STDIN_FILENO, head, sizeof(head)))
		return false;
	ret->op = head[0];
	ret->mode = (uint32_t)get_number(head + 1, 4);
	ret->size = get_number(head + 5, 8);
	len = (size_t)get_number(head + 13, 4);
	if (len == 0 || len > SBA_CHANNEL_FILE_PATH_MAX ||
	    !read_whole(STDIN_FILENO, ret->path, len) || memchr(ret->path, 0, len))
		return false;
	ret->path[len] = '\0';
	return true;
}

static int serve(struct request *request, struct bytes *ret)
{
	switch (request->op) {
	case SBA_FILE_READ:
		return serve_read(request, ret);
	case SBA_FILE_WRITE:
		return serve_write(request);
	case SBA_FILE_STAT:
	case SBA_FILE_LSTAT:
		return serve_stat(request, ret);
	case SBA_FILE_LIST:
		return serve_list(request, ret);
	default:
		return ENOSYS;
	}
}

int sba_session_file_serve(void)
{
	static struct request request;
	struct bytes content = { 0 };
	uint8_t head[SBA_CHANNEL_FILE_ANSWER];
	int error = EINVAL;

	if (read_request(&request))
		error = serve(&request, &content);
	if (error)
		content.len = 0;
	put_number(put_number(head, (uint64_t)error, 4), content.len, 8);
	return write_whole(STDOUT_FILENO, head, sizeof(head)) &&
			       write_whole(STDOUT_FILENO, content.data, content.len)
		       ? 0
		       : 1;
}
