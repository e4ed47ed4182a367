/* SPDX-License-Identifier: MIT */
/*
 * Unpacks what the host's packer makes: ustar with pax records for path,
 * linkpath and size. Every name is opened component by component beneath the
 * staging folder, following no link; owner is the sandbox's user.
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
	PREFIX = 155,
	OFFSET_MODE = 100,
	OFFSET_SIZE = 124,
	OFFSET_TIME = 136,
	OFFSET_TYPE = 156,
	OFFSET_LINK = 157,
	OFFSET_PREFIX = 345,
	PAX_MAX = 2 * SBA_FILE_NAME_MAX,
	LEAF_MAX = 255,
};

struct later {
	char *name;
	mode_t mode;
	int64_t time;
};

struct untar {
	int dir_fd;
	struct sba_file_part *part;
	size_t at;      /* of what has been taken of part */
	uint64_t zeros; /* instead of it, not yet taken */
	char name[SBA_FILE_NAME_MAX];
	char link[SBA_FILE_NAME_MAX];
	bool pax_name, pax_link, pax_size;
	uint64_t size;
	char pax[PAX_MAX + 1];
	struct later *later; /* directories: their modes may lock what comes after out */
	size_t count;
};

/* ---- bytes in ---- */

/* The part that has come. */
static int accept_part(struct untar *untar)
{
	const struct sba_file_part *part = untar->part;

	untar->at = 0;
	if (part->kind == SBA_PART_ZEROS && part->len == SBA_CHANNEL_PART_ZEROS) {
		untar->zeros = sba_file_get(part->data, part->len);
		untar->at = part->len;
		return 0;
	}
	if (part->kind == SBA_PART_END)
		return ENODATA;
	return part->kind == SBA_PART_DATA ? 0 : EPROTO;
}

/* At least one byte of the stream is there; ENODATA at its end. */
static int fill(struct untar *untar)
{
	while (untar->at == untar->part->len && untar->zeros == 0) {
		int error;

		if (untar->part->kind == SBA_PART_END)
			return ENODATA;
		if (!sba_file_part_read(untar->part))
			return ECANCELED;
		error = accept_part(untar);
		if (error)
			return error;
	}
	return 0;
}

/* Zeros are left out: the file is set to its size in the end. */
static bool write_sparse(int fd, const uint8_t *data, size_t len)
{
	enum { HOLE = 4096 };

	while (len > 0) {
		bool zero = sba_file_is_zero(data, len < HOLE ? len : HOLE);
		size_t n = 0;

		while (n < len &&
		       sba_file_is_zero(data + n, len - n < HOLE ? len - n : HOLE) == zero)
			n += len - n < HOLE ? len - n : HOLE;
		if (zero ? lseek(fd, (off_t)n, SEEK_CUR) < 0 : !sba_file_write_whole(fd, data, n))
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static int take_zeros(struct untar *untar, uint8_t *to, int fd, size_t len)
{
	if (to)
		memset(to, 0, len);
	else if (fd >= 0 && lseek(fd, (off_t)len, SEEK_CUR) < 0)
		return errno;
	untar->zeros -= len;
	return 0;
}

static int take_data(struct untar *untar, uint8_t *to, int fd, size_t len)
{
	const uint8_t *from = untar->part->data + untar->at;

	if (to)
		memcpy(to, from, len);
	else if (fd >= 0 && !write_sparse(fd, from, len))
		return errno;
	untar->at += len;
	return 0;
}

/* Exactly len bytes, to memory, to a file, or to nowhere. */
static int take(struct untar *untar, uint8_t *to, int fd, uint64_t len)
{
	while (len > 0) {
		int error = fill(untar);
		uint64_t have = untar->zeros ? untar->zeros : untar->part->len - untar->at;
		size_t step = (size_t)(len < have ? len : have);

		if (!error)
			error = untar->zeros ? take_zeros(untar, to, fd, step)
					     : take_data(untar, to, fd, step);
		if (error)
			return error;
		if (to)
			to += step;
		len -= step;
	}
	return 0;
}

static int take_content(struct untar *untar, int fd, uint64_t size)
{
	int error = take(untar, NULL, fd, size);

	return error ? error : take(untar, NULL, -1, -size % BLOCK);
}

/* ---- headers ---- */

static uint64_t octal(const uint8_t *field, size_t len)
{
	uint64_t number = 0;

	for (size_t i = 0; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		number = number << 3 | (uint64_t)(field[i] - '0');
	return number;
}

static int take_pax(struct untar *untar, uint64_t size)
{
	char *at = untar->pax, *end;
	int error;

	if (size > PAX_MAX)
		return ENAMETOOLONG;
	end = at + size;
	error = take(untar, (uint8_t *)untar->pax, -1, size);
	if (!error)
		error = take(untar, NULL, -1, -size % BLOCK);
	*end = '\0';
	while (!error && at < end) {
		char *value;
		unsigned long len = strtoul(at, &value, 10);

		if (len < 5 || len > (size_t)(end - at) || *value != ' ')
			return EPROTO;
		at[len - 1] = '\0';
		value++;
		if (strncmp(value, "path=", 5) == 0) {
			untar->pax_name = true;
			snprintf(untar->name, sizeof(untar->name), "%s", value + 5);
		} else if (strncmp(value, "linkpath=", 9) == 0) {
			untar->pax_link = true;
			snprintf(untar->link, sizeof(untar->link), "%s", value + 9);
		} else if (strncmp(value, "size=", 5) == 0) {
			untar->pax_size = true;
			untar->size = strtoull(value + 5, NULL, 10);
		}
		at += len;
	}
	return error;
}

static void take_names(struct untar *untar, const uint8_t *block)
{
	const char *prefix = (const char *)block + OFFSET_PREFIX;

	if (!untar->pax_name)
		snprintf(untar->name, sizeof(untar->name), "%.*s%s%.*s", PREFIX, prefix,
			 *prefix ? "/" : "", NAME, (const char *)block);
	if (!untar->pax_link)
		snprintf(untar->link, sizeof(untar->link), "%.*s", NAME,
			 (const char *)block + OFFSET_LINK);
	if (!untar->pax_size)
		untar->size = octal(block + OFFSET_SIZE, 12);
}

/* ---- places ---- */

/* One directory down; makes it where it is missing. */
static int enter(int dir_fd, const char *leaf, bool make)
{
	if (make && mkdirat(dir_fd, leaf, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(dir_fd, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_step(const char *name, size_t len)
{
	bool dots = (len == 1 && name[0] == '.') || (len == 2 && strncmp(name, "..", 2) == 0);

	return len > 0 && len <= LEAF_MAX && !dots;
}

/* The directory that a name's last component lies in; the caller closes. */
static int parent_of(const struct untar *untar, const char *name, bool make, const char **ret_leaf)
{
	int fd = fcntl(untar->dir_fd, F_DUPFD_CLOEXEC, 0);

	for (;;) {
		char leaf[LEAF_MAX + 1];
		size_t len = strcspn(name, "/");
		int next;

		if (!is_step(name, len)) {
			close(fd);
			errno = EINVAL;
			return -1;
		}
		*ret_leaf = name;
		if (!name[len] || fd < 0)
			return fd;
		memcpy(leaf, name, len);
		leaf[len] = '\0';
		next = enter(fd, leaf, make);
		close(fd);
		fd = next;
		name += len + 1;
	}
}

static int dress(int fd, mode_t mode, int64_t time)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time } };

	return fchmod(fd, mode & 0777) < 0 || futimens(fd, times) < 0 ? errno : 0;
}

static int put_file(struct untar *untar, int dir_fd, const char *leaf, mode_t mode, int64_t time)
{
	int fd = openat(dir_fd, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int error;

	if (fd < 0)
		return errno;
	error = take_content(untar, fd, untar->size);
	if (!error && ftruncate(fd, (off_t)untar->size) < 0)
		error = errno;
	if (!error)
		error = dress(fd, mode, time);
	if (close(fd) < 0 && !error)
		error = errno;
	return error;
}

static int put_directory(struct untar *untar, int dir_fd, const char *leaf, mode_t mode,
			 int64_t time)
{
	struct later *more;

	if (mkdirat(dir_fd, leaf, 0700) < 0 && errno != EEXIST)
		return errno;
	more = realloc(untar->later, (untar->count + 1) * sizeof(*more));
	if (!more)
		return ENOMEM;
	untar->later = more;
	more[untar->count] = (struct later){ strdup(untar->name), mode, time };
	return more[untar->count++].name ? 0 : ENOMEM;
}

static int put_hard_link(const struct untar *untar, int dir_fd, const char *leaf)
{
	const char *to;
	int from = parent_of(untar, untar->link, false, &to), error = 0;

	if (from < 0 || linkat(from, to, dir_fd, leaf, 0) < 0)
		error = errno;
	close(from);
	return error;
}

static int put_entry(struct untar *untar, const uint8_t *block)
{
	mode_t mode = (mode_t)octal(block + OFFSET_MODE, 8);
	int64_t time = (int64_t)octal(block + OFFSET_TIME, 12);
	size_t len = strlen(untar->name);
	const char *leaf;
	int dir_fd, error;

	if (len > 1 && untar->name[len - 1] == '/')
		untar->name[len - 1] = '\0';
	dir_fd = parent_of(untar, untar->name, true, &leaf);
	if (dir_fd < 0)
		return errno;
	switch (block[OFFSET_TYPE]) {
	case '0':
		error = put_file(untar, dir_fd, leaf, mode, time);
		break;
	case '1':
		error = put_hard_link(untar, dir_fd, leaf);
		break;
	case '2':
		error = symlinkat(untar->link, dir_fd, leaf) < 0 ? errno : 0;
		break;
	case '5':
		error = put_directory(untar, dir_fd, leaf, mode, time);
		break;
	default:
		error = EPROTO;
	}
	close(dir_fd);
	return error;
}

/* ---- the whole ---- */

/* The last named is the deepest: parents come before what is in them. */
static int settle(struct untar *untar)
{
	int error = 0;

	for (size_t i = untar->count; !error && i > 0;) {
		const struct later *later = &untar->later[--i];
		const char *leaf;
		int dir_fd = parent_of(untar, later->name, false, &leaf);
		int fd = dir_fd < 0 ? -1 : sba_file_open_dir(dir_fd, leaf);

		error = fd < 0 ? errno : dress(fd, later->mode, later->time);
		close(fd);
		close(dir_fd);
	}
	return error;
}

static int one(struct untar *untar, bool *ret_end)
{
	uint8_t block[BLOCK];
	int error = take(untar, block, -1, sizeof(block));

	if (error)
		return error == ENODATA ? EPROTO : error;
	*ret_end = sba_file_is_zero(block, BLOCK);
	if (*ret_end)
		return 0;
	if (block[OFFSET_TYPE] == 'x')
		return take_pax(untar, octal(block + OFFSET_SIZE, 12));
	take_names(untar, block);
	error = put_entry(untar, block);
	untar->pax_name = untar->pax_link = untar->pax_size = false;
	return error == ENODATA ? EPROTO : error;
}

static void forget(struct untar *untar)
{
	for (size_t i = 0; i < untar->count; i++)
		free(untar->later[i].name);
	free(untar->later);
}

int sba_file_unpack(int dir_fd, struct sba_file_part *part, const char **ret_name)
{
	static struct untar untar;
	bool end = false;
	int error;

	memset(&untar, 0, sizeof(untar));
	untar.dir_fd = dir_fd;
	untar.part = part;
	*ret_name = untar.name;
	error = accept_part(&untar);
	while (!error && !end)
		error = one(&untar, &end);
	/* The rest of the trailer, up to the host's word that this was all. */
	while (!error) {
		untar.at = untar.part->len;
		untar.zeros = 0;
		error = fill(&untar);
	}
	error = error == ENODATA ? settle(&untar) : error;
	forget(&untar);
	return error;
}
