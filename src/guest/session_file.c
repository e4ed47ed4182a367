/* SPDX-License-Identifier: MIT */
/*
 * One request for a file, in a child of its own: nothing that a path leads to
 * can hold the session up, and the ids are those of the sandbox's user. Here
 * are the request, the small operations, and what the others (file_*.c) share.
 */
#include "guest/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/file.h"

/* ---- numbers on the wire ---- */

uint8_t *sba_file_put_stat(uint8_t *to, const struct stat *stat)
{
	int64_t time = stat->st_mtim.tv_sec * 1000000000LL + stat->st_mtim.tv_nsec;

	to = sba_file_put(to, stat->st_mode, 4);
	to = sba_file_put(to, stat->st_uid, 4);
	to = sba_file_put(to, stat->st_gid, 4);
	to = sba_file_put(to, (uint64_t)stat->st_size, 8);
	return sba_file_put(to, (uint64_t)time, 8);
}

/* ---- whole reads and writes ---- */

bool sba_file_read_whole(int fd, void *to, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t got = read(fd, (uint8_t *)to + have, len - have);

		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		have += got > 0 ? (size_t)got : 0;
	}
	return true;
}

bool sba_file_write_whole(int fd, const void *from, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t put = write(fd, (const uint8_t *)from + done, len - done);

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

int sba_file_grow(struct sba_file_bytes *bytes, size_t more)
{
	size_t size = bytes->size ? bytes->size : SBA_FILE_STEP;
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

int sba_file_read_rest(int fd, uint64_t max, struct sba_file_bytes *ret)
{
	for (;;) {
		ssize_t got;
		int error = sba_file_grow(ret, SBA_FILE_STEP);

		if (error)
			return error;
		got = read(fd, ret->data + ret->len, SBA_FILE_STEP);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : 0;
		ret->len += (size_t)got;
		if (ret->len > max)
			return EFBIG;
	}
}

/* ---- parts ---- */

bool sba_file_part_read(struct sba_file_part *ret)
{
	uint8_t head[SBA_CHANNEL_PART_HEAD];

	if (!sba_file_read_whole(STDIN_FILENO, head, sizeof(head)))
		return false;
	ret->kind = head[0];
	ret->len = (size_t)sba_file_get(head + 1, 3);
	return ret->len <= sizeof(ret->data) &&
	       sba_file_read_whole(STDIN_FILENO, ret->data, ret->len);
}

bool sba_file_part_write(uint8_t kind, const void *data, size_t len)
{
	static uint8_t part[SBA_CHANNEL_PART_HEAD + SBA_CHANNEL_PART_MAX];

	part[0] = kind;
	sba_file_put(part + 1, len, 3);
	memcpy(part + SBA_CHANNEL_PART_HEAD, data, len);
	return sba_file_write_whole(STDOUT_FILENO, part, SBA_CHANNEL_PART_HEAD + len);
}

bool sba_file_is_zero(const uint8_t *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

static bool out_zeros(struct sba_file_out *out)
{
	uint8_t count[SBA_CHANNEL_PART_ZEROS];
	bool none = out->zeros == 0;

	sba_file_put(count, out->zeros, sizeof(count));
	out->zeros = 0;
	return none || sba_file_part_write(SBA_PART_ZEROS, count, sizeof(count));
}

bool sba_file_out_flush(struct sba_file_out *out)
{
	bool sent = out_zeros(out);

	if (sent && out->have > 0)
		sent = sba_file_part_write(SBA_PART_DATA, out->part, out->have);
	out->have = 0;
	return sent;
}

bool sba_file_out_full(struct sba_file_out *out)
{
	if (!sba_file_is_zero(out->part, out->have))
		return sba_file_out_flush(out);
	out->zeros += out->have;
	out->have = 0;
	/* The host wants to see that something moves. */
	return out->zeros < SBA_FILE_ZEROS_MAX || out_zeros(out);
}

bool sba_file_out_put(struct sba_file_out *out, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len > 0) {
		size_t room = sizeof(out->part) - out->have;
		size_t step = len < room ? len : room;

		memcpy(out->part + out->have, from, step);
		out->have += step;
		from += step;
		len -= step;
		if (out->have == sizeof(out->part) && !sba_file_out_full(out))
			return false;
	}
	return true;
}

int sba_file_part_end(int error, uint64_t kept, const char *text)
{
	static uint8_t end[SBA_CHANNEL_PART_END + SBA_FILE_NAME_MAX];
	uint8_t *to = sba_file_put(sba_file_put(end, (uint64_t)error, 4), kept, 8);
	size_t len = strnlen(text, SBA_FILE_NAME_MAX);

	memcpy(to, text, len);
	return sba_file_part_write(SBA_PART_END, end, SBA_CHANNEL_PART_END + len) ? 0 : 1;
}

/* ---- paths ---- */

/* /proc/self/fd/N and the like lead to files that the path does not name. */
int sba_session_file_open(const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

int sba_file_make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0755);
		*slash = '/';
		/* Where it may not be made, what is there may still be used. */
		if (rc < 0 && errno != EEXIST && errno != EACCES && errno != EROFS &&
		    errno != EPERM)
			return errno;
	}
	return 0;
}

/* ---- read ---- */

/* Answers by itself: the content passes through, however large it is. */
static int send_content(int fd, uint64_t size)
{
	static uint8_t data[SBA_FILE_STEP];
	uint8_t head[SBA_CHANNEL_FILE_ANSWER];

	sba_file_put(sba_file_put(head, 0, 4), size, 8);
	if (!sba_file_write_whole(STDOUT_FILENO, head, sizeof(head)))
		return 1;
	while (size > 0) {
		size_t want = size < sizeof(data) ? (size_t)size : sizeof(data);
		ssize_t got = read(fd, data, want);

		if (got < 0 && errno == EINTR)
			continue;
		/* It became shorter: the answer is cut, and the host sees that. */
		if (got <= 0 || !sba_file_write_whole(STDOUT_FILENO, data, (size_t)got))
			return 1;
		size -= (uint64_t)got;
	}
	return 0;
}

static int serve_read(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	int fd = sba_session_file_open(request->path, O_RDONLY);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return errno;
	if (!S_ISREG(stat.st_mode))
		return S_ISDIR(stat.st_mode) ? EISDIR : EOPNOTSUPP;
	if (stat.st_size > 0 && (uint64_t)stat.st_size > request->size)
		return EFBIG;
	if (stat.st_size > 0)
		_exit(send_content(fd, (uint64_t)stat.st_size));
	/* Those of /proc do not know how long they are. */
	return sba_file_read_rest(
		fd, request->size < SBA_FILE_SYNTHETIC_MAX ? request->size : SBA_FILE_SYNTHETIC_MAX,
		ret);
}

/* ---- stat ---- */

static int serve_stat(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	int flags = request->op == SBA_FILE_LSTAT ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat stat;

	if (fstatat(AT_FDCWD, request->path, &stat, flags | AT_NO_AUTOMOUNT) < 0)
		return errno;
	if (sba_file_grow(ret, SBA_CHANNEL_FILE_STAT))
		return ENOMEM;
	sba_file_put_stat(ret->data, &stat);
	ret->len = SBA_CHANNEL_FILE_STAT;
	return 0;
}

/* ---- list ---- */

static int add_name(const char *name, uint64_t max, struct sba_file_bytes *ret)
{
	size_t len = strlen(name) + 1;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (ret->len + len > max)
		return EFBIG;
	if (sba_file_grow(ret, len))
		return ENOMEM;
	memcpy(ret->data + ret->len, name, len);
	ret->len += len;
	return 0;
}

static int serve_list(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	int fd = sba_session_file_open(request->path, O_RDONLY | O_DIRECTORY);
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

/* ---- the request ---- */

static bool read_request(struct sba_file_request *ret)
{
	uint8_t head[SBA_CHANNEL_FILE_HEAD];
	size_t len;

	if (!sba_file_read_whole(STDIN_FILENO, head, sizeof(head)))
		return false;
	ret->op = head[0];
	ret->mode = (uint32_t)sba_file_get(head + 1, 4);
	ret->size = sba_file_get(head + 5, 8);
	len = (size_t)sba_file_get(head + 13, 4);
	if (len == 0 || len > SBA_CHANNEL_FILE_PATH_MAX ||
	    !sba_file_read_whole(STDIN_FILENO, ret->path, len) || memchr(ret->path, 0, len))
		return false;
	ret->path[len] = '\0';
	return true;
}

static int serve(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	switch (request->op) {
	case SBA_FILE_READ:
		return serve_read(request, ret);
	case SBA_FILE_STAT:
	case SBA_FILE_LSTAT:
		return serve_stat(request, ret);
	case SBA_FILE_LIST:
		return serve_list(request, ret);
	case SBA_FILE_PLACE:
		return sba_file_serve_place(request, ret);
	case SBA_FILE_CENSUS:
		return sba_file_serve_census(request, ret);
	default:
		return ENOSYS;
	}
}

static int answer(const struct sba_file_request *request, int error)
{
	struct sba_file_bytes content = { 0 };
	uint8_t head[SBA_CHANNEL_FILE_ANSWER];

	if (!error)
		error = serve(request, &content);
	if (error)
		content.len = 0;
	sba_file_put(sba_file_put(head, (uint64_t)error, 4), content.len, 8);
	return sba_file_write_whole(STDOUT_FILENO, head, sizeof(head)) &&
			       sba_file_write_whole(STDOUT_FILENO, content.data, content.len)
		       ? 0
		       : 1;
}

int sba_session_file_serve(void)
{
	static struct sba_file_request request;

	/* What is half done has to be taken back when the host goes. */
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (!read_request(&request))
		return answer(&request, EINVAL);
	switch (request.op) {
	case SBA_FILE_WRITE:
		return sba_file_serve_write(&request);
	case SBA_FILE_TAR:
		return sba_file_serve_tar(&request);
	case SBA_FILE_PUT:
		return sba_file_serve_put(&request);
	case SBA_FILE_CHANGES:
		return sba_file_serve_changes(&request);
	default:
		return answer(&request, 0);
	}
}
