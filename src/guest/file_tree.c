/* SPDX-License-Identifier: MIT */
/* Walking, measuring and removing trees inside: by descriptors, no link followed. */
#include "guest/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int sba_file_name_push(struct sba_file_name *name, const char *leaf, size_t *ret_before)
{
	size_t len = strlen(leaf);

	*ret_before = name->len;
	if (name->len + len + 2 > sizeof(name->text))
		return ENAMETOOLONG;
	if (name->len > 0)
		name->text[name->len++] = '/';
	memcpy(name->text + name->len, leaf, len + 1);
	name->len += len;
	return 0;
}

void sba_file_name_pop(struct sba_file_name *name, size_t before)
{
	name->len = before;
	name->text[before] = '\0';
}

int sba_file_open_dir(int dir_fd, const char *leaf)
{
	return openat(dir_fd, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int sba_file_each(int dir_fd, sba_file_leaf *each, void *user)
{
	int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	struct dirent *entry;
	int error = 0;

	if (!dir)
		return errno;
	do {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			error = errno;
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = each(user, dir_fd, entry->d_name);
	} while (entry && !error);
	closedir(dir);
	return error;
}

/* ---- removing ---- */

static int remove_leaf(void *user, int dir_fd, const char *leaf)
{
	int fd;

	(void)user;
	if (unlinkat(dir_fd, leaf, 0) == 0)
		return 0;
	(void)!fchmodat(dir_fd, leaf, 0700, AT_SYMLINK_NOFOLLOW);
	fd = sba_file_open_dir(dir_fd, leaf);
	if (fd >= 0) {
		sba_file_each(fd, remove_leaf, NULL);
		close(fd);
	}
	unlinkat(dir_fd, leaf, AT_REMOVEDIR);
	return 0;
}

void sba_file_remove(int dir_fd, const char *leaf)
{
	remove_leaf(NULL, dir_fd, leaf);
}

/* ---- measuring ---- */

struct census {
	uint64_t bytes, entries, sockets, longest, holes, locked;
	uint64_t max; /* of the names */
	int depth;
	struct sba_file_name name;
	struct sba_file_bytes *names;
};

static void add_socket(struct census *census)
{
	size_t len = census->name.len + 1;

	census->sockets++;
	if (census->names->len + len > census->max || sba_file_grow(census->names, len))
		return;
	memcpy(census->names->data + census->names->len, census->name.text, len);
	census->names->len += len;
}

static int count(void *user, int dir_fd, const char *leaf);

static void count_below(struct census *census, int dir_fd, const char *leaf)
{
	int fd = sba_file_open_dir(dir_fd, leaf);

	if (fd < 0) {
		census->locked++;
		return;
	}
	if (census->depth < SBA_FILE_DEPTH_MAX) {
		census->depth++;
		sba_file_each(fd, count, census);
		census->depth--;
	}
	close(fd);
}

static void count_file(struct census *census, int dir_fd, const char *leaf, const struct stat *stat)
{
	enum { BLOCK = 512, ANYBODY = 0444 };
	uint64_t size = (uint64_t)stat->st_size, there = (uint64_t)stat->st_blocks * BLOCK;

	census->bytes += size;
	if (size > there)
		census->holes += size - there;
	if ((stat->st_mode & ANYBODY) != ANYBODY && faccessat(dir_fd, leaf, R_OK, 0) < 0)
		census->locked++;
}

/* What cannot be looked at counts for nothing. */
static int count(void *user, int dir_fd, const char *leaf)
{
	struct census *census = user;
	struct stat stat;
	size_t before;

	if (fstatat(dir_fd, leaf, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
	    sba_file_name_push(&census->name, leaf, &before))
		return 0;
	census->entries++;
	if (census->name.len > census->longest)
		census->longest = census->name.len;
	if (S_ISREG(stat.st_mode))
		count_file(census, dir_fd, leaf, &stat);
	else if (S_ISSOCK(stat.st_mode))
		add_socket(census);
	else if (S_ISDIR(stat.st_mode))
		count_below(census, dir_fd, leaf);
	sba_file_name_pop(&census->name, before);
	return 0;
}

int sba_file_serve_census(const struct sba_file_request *request, struct sba_file_bytes *ret)
{
	static struct census census;
	const char *slash = strrchr(request->path, '/');
	uint8_t *to;
	int fd;

	if (!slash || sba_file_grow(ret, SBA_CHANNEL_FILE_CENSUS))
		return slash ? ENOMEM : EINVAL;
	ret->len = SBA_CHANNEL_FILE_CENSUS;
	census.names = ret;
	census.max = request->size;
	fd = open(request->path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	if (chdir("/") < 0)
		return errno;
	fd = AT_FDCWD;
	if (slash != request->path) {
		char parent[SBA_CHANNEL_FILE_PATH_MAX + 1];
		size_t len = (size_t)(slash - request->path);

		memcpy(parent, request->path, len);
		parent[len] = '\0';
		fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return errno;
	}
	count(&census, fd, slash + 1);
	to = sba_file_put(ret->data, census.bytes, 8);
	to = sba_file_put(sba_file_put(to, census.entries, 8), census.sockets, 8);
	to = sba_file_put(sba_file_put(to, census.longest, 8), census.holes, 8);
	sba_file_put(to, census.locked, 8);
	return 0;
}
