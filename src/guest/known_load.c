/* SPDX-License-Identifier: MIT */
/* Lists read into the table; see known.h. They stay mapped until the child ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/known.h"

enum { LISTS_MAX = 65536, NAME_SIZE = 40 };

struct list {
	uint32_t number;
	char name[NAME_SIZE];
	const uint8_t *data;
	size_t len;
	size_t count; /* of its records */
};

struct lists {
	struct list *v;
	size_t count, size;
};

/* "NUMBER-TURN" and a letter; what else lies there is no list. */
static bool parse_name(const char *name, uint32_t *ret)
{
	unsigned int number, turn;
	char letter, again[NAME_SIZE];

	if (sscanf(name, "%9u-%9u%c", &number, &turn, &letter) != 3)
		return false;
	snprintf(again, sizeof(again), "%u-%u%c", number, turn, letter);
	*ret = number;
	return (letter == SBA_KEPT_BEGIN || letter == SBA_KEPT_END) && strcmp(again, name) == 0;
}

static int add_list(void *user, int dir_fd, const char *leaf)
{
	struct lists *lists = user;
	struct list list = { .number = 0 };

	(void)dir_fd;
	if (!parse_name(leaf, &list.number))
		return 0;
	if (lists->count == LISTS_MAX)
		return E2BIG;
	if (lists->count == lists->size) {
		size_t size = lists->size ? 2 * lists->size : 64;
		struct list *grown = realloc(lists->v, size * sizeof(*grown));

		if (!grown)
			return ENOMEM;
		lists->v = grown;
		lists->size = size;
	}
	snprintf(list.name, sizeof(list.name), "%s", leaf);
	lists->v[lists->count++] = list;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct list *)a)->number, y = ((const struct list *)b)->number;

	return (x > y) - (x < y);
}

static int map_list(int dir_fd, const char *name, struct list *list)
{
	struct stat stat;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int error = 0;
	void *data;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return errno;
	if (!S_ISREG(stat.st_mode))
		error = EBADMSG;
	if (!error && stat.st_size > 0) {
		data = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
			    0);
		error = data == MAP_FAILED ? errno : 0;
		list->data = error ? NULL : data;
		list->len = error ? 0 : (size_t)stat.st_size;
	}
	close(fd);
	return error;
}

/* EBADMSG: it is cut; list->count says how much of it is whole. */
static int count_records(struct list *list)
{
	for (size_t at = 0; at < list->len;) {
		size_t size = sba_known_record_size(list->data + at, list->len - at);

		if (size == 0)
			return EBADMSG;
		list->count++;
		at += size;
	}
	return 0;
}

static void fold(struct sba_known *known, const struct list *list, bool hashed_only)
{
	const uint8_t *at = list->data, *end = list->data + list->len;

	for (size_t i = 0; i < list->count; i++) {
		sba_known_add(known, at, hashed_only);
		at += sba_known_record_size(at, (size_t)(end - at));
	}
}

/* Those that count, by number, mapped. */
static int map_kept(const struct sba_known_source *source, struct lists *lists)
{
	int error = 0;

	if (source->dir_fd < 0 || source->last == 0)
		return 0;
	error = sba_file_each(source->dir_fd, add_list, lists);
	if (error || lists->count == 0)
		return error;
	qsort(lists->v, lists->count, sizeof(*lists->v), by_number);
	while (lists->count > 0 && lists->v[lists->count - 1].number > source->last)
		lists->count--;
	for (size_t i = 0; !error && i < lists->count; i++) {
		error = map_list(source->dir_fd, lists->v[i].name, &lists->v[i]);
		if (!error)
			error = count_records(&lists->v[i]);
	}
	return error;
}

/* Without them more is read, and that is all. */
static void map_hashes(const struct sba_known_source *source, struct list *list)
{
	if (source->given) {
		list->data = source->given;
		list->len = source->given_len;
		(void)count_records(list);
		return;
	}
	if (source->hashes_fd >= 0 && map_list(source->hashes_fd, source->name, list) == 0)
		(void)count_records(list);
}

int sba_known_load(struct sba_known *known, const struct sba_known_source *source)
{
	struct lists lists = { .count = 0 };
	struct list hashes = { .count = 0 };
	size_t count = 0;
	int error = map_kept(source, &lists);

	*known = (struct sba_known){ .dir_fd = source->dir_fd };
	map_hashes(source, &hashes);
	for (size_t i = 0; i < lists.count; i++)
		count += lists.v[i].count;
	count += hashes.count;
	if (!error && count > 0)
		error = sba_known_make_room(known, count);
	for (size_t i = 0; !error && i < lists.count; i++)
		fold(known, &lists.v[i], false);
	if (!error)
		fold(known, &hashes, true);
	if (!error && count > 0 && source->folders)
		error = sba_known_note_folders(known);
	free(lists.v);
	return error;
}
