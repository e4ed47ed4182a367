/* SPDX-License-Identifier: MIT */
/*
 * A tar of a file or tree, for what the engine does not see: ustar, with a pax
 * header where something does not fit. Hard links go as files. What the user may
 * not read is left out and named.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCK = 512,
	NAME = 100,
	OCTAL_SIZE_MAX_BITS = 33, /* eleven octal digits */
	OCTAL_ID_MAX = 07777777,
	RECORD_ROOM = 64,
	OFFSET_MODE = 100,
	OFFSET_UID = 108,
	OFFSET_GID = 116,
	OFFSET_SIZE = 124,
	OFFSET_TIME = 136,
	OFFSET_SUM = 148,
	OFFSET_TYPE = 156,
	OFFSET_LINK = 157,
	OFFSET_MAGIC = 257,
};

struct entry {
	char type;
	const char *name, *link;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t size;
	int64_t time;
};

struct tar {
	struct sba_file_name name;
	char link[PATH_MAX];
	int depth;
	struct sba_file_out out;
};

/* ---- bytes out ---- */

static int put(struct tar *tar, const void *data, size_t len)
{
	return sba_file_out_put(&tar->out, data, len) ? 0 : ECANCELED;
}

static int put_zeros(struct tar *tar, size_t len)
{
	static const uint8_t zeros[2 * BLOCK];

	return put(tar, zeros, len);
}

static int put_padding(struct tar *tar, uint64_t size)
{
	return put_zeros(tar, (size_t)(-size % BLOCK));
}

/* ---- headers ---- */

static void octal(uint8_t *field, size_t digits, uint64_t number)
{
	for (size_t i = digits; i-- > 0; number >>= 3)
		field[i] = (uint8_t)('0' + (number & 7));
}

static int put_block(struct tar *tar, const struct entry *entry)
{
	uint8_t block[BLOCK] = { 0 };
	unsigned int sum = 0;
	size_t name = strnlen(entry->name, NAME);
	size_t link = entry->link ? strnlen(entry->link, NAME) : 0;

	memcpy(block, entry->name, name);
	octal(block + OFFSET_MODE, 7, entry->mode & 07777);
	octal(block + OFFSET_UID, 7, entry->uid > OCTAL_ID_MAX ? OCTAL_ID_MAX : entry->uid);
	octal(block + OFFSET_GID, 7, entry->gid > OCTAL_ID_MAX ? OCTAL_ID_MAX : entry->gid);
	octal(block + OFFSET_SIZE, 11,
	      entry->size >> OCTAL_SIZE_MAX_BITS ? 077777777777 : entry->size);
	octal(block + OFFSET_TIME, 11, entry->time < 0 ? 0 : (uint64_t)entry->time);
	memset(block + OFFSET_SUM, ' ', 8);
	block[OFFSET_TYPE] = (uint8_t)entry->type;
	if (link)
		memcpy(block + OFFSET_LINK, entry->link, link);
	memcpy(block + OFFSET_MAGIC, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += block[i];
	octal(block + OFFSET_SUM, 6, sum);
	block[OFFSET_SUM + 6] = '\0';
	return put(tar, block, BLOCK);
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts its own digits too. */
static size_t record(char *to, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest, digits;

	do {
		digits = (size_t)snprintf(NULL, 0, "%zu", len);
		if (rest + digits == len)
			break;
		len = rest + digits;
	} while (true);
	return (size_t)snprintf(to, len + 1, "%zu %s=%s\n", len, key, value);
}

static size_t number_record(char *to, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return record(to, key, text);
}

static int put_pax(struct tar *tar, const struct entry *entry)
{
	static char pax[SBA_FILE_NAME_MAX + PATH_MAX + 6 * RECORD_ROOM];
	struct entry header = { .type = 'x', .name = "PaxHeader", .mode = 0644 };
	size_t len = 0;
	int error;

	if (strlen(entry->name) > NAME)
		len += record(pax + len, "path", entry->name);
	if (entry->link && strlen(entry->link) > NAME)
		len += record(pax + len, "linkpath", entry->link);
	if (entry->size >> OCTAL_SIZE_MAX_BITS)
		len += number_record(pax + len, "size", entry->size);
	if (entry->uid > OCTAL_ID_MAX)
		len += number_record(pax + len, "uid", entry->uid);
	if (entry->gid > OCTAL_ID_MAX)
		len += number_record(pax + len, "gid", entry->gid);
	if (len == 0)
		return 0;
	header.size = len;
	error = put_block(tar, &header);
	if (!error)
		error = put(tar, pax, len);
	return error ? error : put_padding(tar, len);
}

static int put_header(struct tar *tar, const struct stat *stat, char type, uint64_t size)
{
	struct entry entry = {
		.type = type,
		.name = tar->name.text,
		.link = type == '2' ? tar->link : NULL,
		.mode = stat->st_mode,
		.uid = stat->st_uid,
		.gid = stat->st_gid,
		.size = size,
		.time = stat->st_mtim.tv_sec,
	};
	int error = put_pax(tar, &entry);

	return error ? error : put_block(tar, &entry);
}

/* ---- entries ---- */

/* Not an error: the entry is named and left out. */
static int note(struct tar *tar, enum sba_note why)
{
	static uint8_t text[1 + SBA_FILE_NAME_MAX];

	text[0] = (uint8_t)why;
	memcpy(text + 1, tar->name.text, tar->name.len);
	if (!sba_file_out_flush(&tar->out) ||
	    !sba_file_part_write(SBA_PART_NOTE, text, 1 + tar->name.len))
		return ECANCELED;
	return 0;
}

static int put_file(struct tar *tar, int fd, uint64_t size)
{
	struct sba_file_out *out = &tar->out;
	uint64_t left = size;

	while (left > 0) {
		size_t room = sizeof(out->part) - out->have;
		ssize_t got = read(fd, out->part + out->have, left < room ? (size_t)left : room);

		if (got < 0 && errno == EINTR)
			continue;
		/* The header has promised more, and a tar cannot take that back. */
		if (got <= 0)
			return got < 0 ? errno : EIO;
		out->have += (size_t)got;
		left -= (uint64_t)got;
		if (out->have == sizeof(out->part) && !sba_file_out_full(out))
			return ECANCELED;
	}
	return put_padding(tar, size);
}

/* Those of /proc do not know how long they are. */
static int put_synthetic(struct tar *tar, int fd, const struct stat *stat)
{
	struct sba_file_bytes bytes = { 0 };
	int error = sba_file_read_rest(fd, SBA_FILE_SYNTHETIC_MAX, &bytes);

	if (error) {
		free(bytes.data);
		return note(tar, SBA_NOTE_UNREADABLE);
	}
	error = put_header(tar, stat, '0', bytes.len);
	if (!error)
		error = put(tar, bytes.data, bytes.len);
	if (!error)
		error = put_padding(tar, bytes.len);
	free(bytes.data);
	return error;
}

static int leaf(void *user, int dir_fd, const char *name);

static int put_open(struct tar *tar, int fd, const struct stat *stat)
{
	int error;

	if (S_ISDIR(stat->st_mode)) {
		error = put_header(tar, stat, '5', 0);
		if (!error && tar->depth == SBA_FILE_DEPTH_MAX)
			error = ELOOP;
		tar->depth++;
		if (!error)
			error = sba_file_each(fd, leaf, tar);
		tar->depth--;
		return error;
	}
	if (stat->st_size == 0 && stat->st_blocks == 0)
		return put_synthetic(tar, fd, stat);
	error = put_header(tar, stat, '0', (uint64_t)stat->st_size);
	return error ? error : put_file(tar, fd, (uint64_t)stat->st_size);
}

static int put_other(struct tar *tar, int dir_fd, const char *name, const struct stat *stat)
{
	ssize_t got;

	if (S_ISSOCK(stat->st_mode))
		return note(tar, SBA_NOTE_SOCKET);
	if (S_ISFIFO(stat->st_mode))
		return put_header(tar, stat, '6', 0);
	if (!S_ISLNK(stat->st_mode))
		return put_header(tar, stat, S_ISCHR(stat->st_mode) ? '3' : '4', 0);
	got = readlinkat(dir_fd, name, tar->link, sizeof(tar->link) - 1);
	if (got < 0)
		return note(tar, SBA_NOTE_UNREADABLE);
	tar->link[got] = '\0';
	return put_header(tar, stat, '2', 0);
}

static int put_leaf(struct tar *tar, int dir_fd, const char *name)
{
	struct stat stat;
	int fd, error;

	if (fstatat(dir_fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : note(tar, SBA_NOTE_UNREADABLE);
	if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode))
		return put_other(tar, dir_fd, name, &stat);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : note(tar, SBA_NOTE_UNREADABLE);
	error = fstat(fd, &stat) < 0 ? errno : 0;
	if (!error && (S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)))
		error = put_open(tar, fd, &stat);
	close(fd);
	return error;
}

static int leaf(void *user, int dir_fd, const char *name)
{
	struct tar *tar = user;
	size_t before;
	int error = sba_file_name_push(&tar->name, name, &before);

	if (!error)
		error = put_leaf(tar, dir_fd, name);
	if (!error)
		sba_file_name_pop(&tar->name, before);
	return error;
}

int sba_file_serve_tar(const struct sba_file_request *request)
{
	static struct tar tar;
	char parent[SBA_CHANNEL_FILE_PATH_MAX + 1];
	const char *slash = strrchr(request->path, '/');
	size_t len = slash ? (size_t)(slash - request->path) : 0;
	int dir_fd, error;

	if (!slash || !slash[1])
		return sba_file_part_end(EINVAL, 0, "");
	memcpy(parent, request->path, len + 1);
	parent[len ? len : 1] = '\0';
	dir_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = dir_fd < 0 ? errno : leaf(&tar, dir_fd, slash + 1);
	if (!error)
		error = put_zeros(&tar, (size_t)2 * BLOCK);
	if (!error)
		error = sba_file_out_flush(&tar.out) ? 0 : ECANCELED;
	return sba_file_part_end(error, 0, error ? tar.name.text : "");
}
