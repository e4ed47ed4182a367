/* SPDX-License-Identifier: MIT */
/* Lists and packs; see known.h. Once loaded they stay mapped until the child ends. */
#include "guest/known.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/file.h"

enum { LISTS_MAX = 65536, NAME_SIZE = 40 };

struct list {
	uint32_t number;
	char name[NAME_SIZE];
	const uint8_t *data;
	size_t len;
};

struct lists {
	struct list *v;
	size_t count, size;
};

/* ---- entries ---- */

uint8_t *sba_entry_put(uint8_t *to, const struct sba_entry *entry)
{
	to = sba_file_put(to, entry->mode, 4);
	to = sba_file_put(to, entry->size, 8);
	to = sba_file_put(to, (uint64_t)entry->mtime_ns, 8);
	to = sba_file_put(to, (uint64_t)entry->ctime_ns, 8);
	to = sba_file_put(to, entry->inode, 8);
	*to++ = entry->flags;
	memcpy(to, entry->sha, sizeof(entry->sha));
	to = sba_file_put(to + sizeof(entry->sha), entry->pack, 4);
	to = sba_file_put(to, entry->offset, 8);
	to = sba_file_put(to, entry->link_len, 2);
	if (entry->link_len > 0)
		memcpy(to, entry->link, entry->link_len);
	return to + entry->link_len;
}

size_t sba_entry_get(const uint8_t *from, size_t len, struct sba_entry *ret)
{
	size_t link_len;

	if (len < SBA_ENTRY_SIZE)
		return 0;
	link_len = (size_t)sba_file_get(from + SBA_ENTRY_SIZE - 2, 2);
	if (len - SBA_ENTRY_SIZE < link_len)
		return 0;
	*ret = (struct sba_entry){
		.mode = (uint32_t)sba_file_get(from, 4),
		.size = sba_file_get(from + 4, 8),
		.mtime_ns = (int64_t)sba_file_get(from + 12, 8),
		.ctime_ns = (int64_t)sba_file_get(from + 20, 8),
		.inode = sba_file_get(from + 28, 8),
		.flags = from[36],
		.pack = (uint32_t)sba_file_get(from + 69, 4),
		.offset = sba_file_get(from + 73, 8),
		.link_len = (uint16_t)link_len,
		.link = (const char *)from + SBA_ENTRY_SIZE,
	};
	memcpy(ret->sha, from + 37, sizeof(ret->sha));
	return SBA_ENTRY_SIZE + link_len;
}

/* ---- the table ---- */

static uint64_t hash_of(const struct sba_known *known, const char *path, size_t len)
{
	uint64_t hash = known->seed;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3ULL;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return hash ^ hash >> 32;
}

const char *sba_known_path(const struct sba_known_file *file, size_t *ret_len)
{
	*ret_len = (size_t)sba_file_get(file->record + 1, 2);
	return (const char *)file->record + SBA_RECORD_HEAD;
}

/* The record was found to be whole when it was loaded. */
struct sba_entry sba_known_entry(const struct sba_known_file *file)
{
	struct sba_entry entry = { .mode = 0 };
	size_t len = (size_t)sba_file_get(file->record + 1, 2);

	sba_entry_get(file->record + SBA_RECORD_HEAD + len, SIZE_MAX, &entry);
	return entry;
}

/* Its place, taken or not. */
static struct sba_known_file *place_of(const struct sba_known *known, const char *path, size_t len)
{
	uint32_t hash = (uint32_t)hash_of(known, path, len);

	for (size_t at = hash & (known->size - 1);; at = (at + 1) & (known->size - 1)) {
		struct sba_known_file *file = &known->files[at];
		const char *other;
		size_t other_len;

		if (!file->record) {
			file->hash = hash;
			return file;
		}
		if (file->hash != hash)
			continue;
		other = sba_known_path(file, &other_len);
		if (other_len == len && memcmp(other, path, len) == 0)
			return file;
	}
}

struct sba_known_file *sba_known_find(const struct sba_known *known, const char *path, size_t len)
{
	uint32_t hash = (uint32_t)hash_of(known, path, len);

	if (known->size == 0)
		return NULL;
	for (size_t at = hash & (known->size - 1);; at = (at + 1) & (known->size - 1)) {
		struct sba_known_file *file = &known->files[at];
		const char *other;
		size_t other_len;

		if (!file->record)
			return NULL;
		if (file->hash != hash)
			continue;
		other = sba_known_path(file, &other_len);
		if (other_len == len && memcmp(other, path, len) == 0)
			return file->gone ? NULL : file;
	}
}

/* False: it was there. */
static bool add_folder(struct sba_known *known, uint64_t hash)
{
	size_t mask = known->folders_size - 1, at = hash & mask;

	for (; known->folders[at]; at = (at + 1) & mask) {
		if (known->folders[at] == hash)
			return false;
	}
	known->folders[at] = hash;
	return true;
}

bool sba_known_has_folder(const struct sba_known *known, const char *path, size_t len)
{
	uint64_t hash = hash_of(known, path, len) | 1;
	size_t mask = known->folders_size - 1;

	if (known->folders_size == 0)
		return false;
	for (size_t at = hash & mask; known->folders[at]; at = (at + 1) & mask) {
		if (known->folders[at] == hash)
			return true;
	}
	return false;
}

static size_t depth_of(const char *path, size_t len)
{
	size_t depth = 0;

	for (size_t i = 0; i < len; i++)
		depth += path[i] == '/';
	return depth;
}

/* As many as there can be, all lists together. */
static size_t folders_of(const struct sba_known *known)
{
	size_t count = 0, len;

	for (size_t i = 0; i < known->size; i++) {
		if (!known->files[i].record || known->files[i].gone)
			continue;
		const char *path = sba_known_path(&known->files[i], &len);

		count += depth_of(path, len);
	}
	return count;
}

static size_t table_size(size_t count)
{
	size_t size = 16;

	while (size < 2 * count)
		size *= 2;
	return size;
}

static int note_folders(struct sba_known *known)
{
	known->folders_size = table_size(folders_of(known));
	known->folders = calloc(known->folders_size, sizeof(*known->folders));
	if (!known->folders)
		return ENOMEM;
	for (size_t i = 0; i < known->size; i++) {
		const struct sba_known_file *file = &known->files[i];
		const char *path;
		size_t len;

		if (!file->record || file->gone)
			continue;
		path = sba_known_path(file, &len);
		while (len > 0) {
			if (path[--len] == '/' && !add_folder(known, hash_of(known, path, len) | 1))
				break;
		}
	}
	return 0;
}

/* ---- lists ---- */

/* The length of the record at the beginning; 0: it is none. */
static size_t record_len(const uint8_t *data, size_t len)
{
	struct sba_entry entry;
	size_t head, rest;

	if (len < SBA_RECORD_HEAD)
		return 0;
	head = SBA_RECORD_HEAD + (size_t)sba_file_get(data + 1, 2);
	if (head == SBA_RECORD_HEAD || len < head)
		return 0;
	if (data[0] == SBA_RECORD_DELETED)
		return head;
	if (data[0] != SBA_RECORD_ADDED)
		return 0;
	rest = sba_entry_get(data + head, len - head, &entry);
	return rest ? head + rest : 0;
}

static int each_record(const struct list *list, void (*one)(void *user, const uint8_t *record),
		       void *user)
{
	for (size_t at = 0; at < list->len;) {
		size_t len = record_len(list->data + at, list->len - at);

		if (len == 0)
			return EBADMSG;
		one(user, list->data + at);
		at += len;
	}
	return 0;
}

static void count_record(void *user, const uint8_t *record)
{
	(void)record;
	++*(size_t *)user;
}

static void fold_record(void *user, const uint8_t *record)
{
	struct sba_known_file *file = place_of(user, (const char *)record + SBA_RECORD_HEAD,
					       (size_t)sba_file_get(record + 1, 2));

	file->record = record;
	file->gone = record[0] == SBA_RECORD_DELETED;
}

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

static int map_list(int dir_fd, struct list *list)
{
	struct stat stat;
	int fd = openat(dir_fd, list->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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

static int fold(struct sba_known *known, struct lists *lists, uint32_t last)
{
	size_t count = 0;
	int error = 0;

	qsort(lists->v, lists->count, sizeof(*lists->v), by_number);
	while (lists->count > 0 && lists->v[lists->count - 1].number > last)
		lists->count--;
	for (size_t i = 0; !error && i < lists->count; i++) {
		error = map_list(known->dir_fd, &lists->v[i]);
		if (!error)
			error = each_record(&lists->v[i], count_record, &count);
	}
	if (error || count == 0)
		return error;
	known->size = table_size(count);
	known->files = calloc(known->size, sizeof(*known->files));
	if (!known->files)
		return ENOMEM;
	for (size_t i = 0; !error && i < lists->count; i++)
		error = each_record(&lists->v[i], fold_record, known);
	return error ? error : note_folders(known);
}

int sba_known_load(struct sba_known *known, int dir_fd, uint32_t last)
{
	struct lists lists = { .count = 0 };
	int error;

	*known = (struct sba_known){ .dir_fd = dir_fd };
	if (dir_fd < 0 || last == 0)
		return 0;
	if (getrandom(&known->seed, sizeof(known->seed), 0) != sizeof(known->seed))
		return EIO;
	error = sba_file_each(dir_fd, add_list, &lists);
	if (!error && lists.count > 0)
		error = fold(known, &lists, last);
	free(lists.v);
	return error;
}

void sba_known_free(struct sba_known *known)
{
	free(known->files);
	free(known->folders);
	*known = (struct sba_known){ .dir_fd = -1 };
}

/* ---- packs ---- */

bool sba_known_content(const struct sba_known *known, const struct sba_entry *entry, uint8_t *ret)
{
	char name[NAME_SIZE];
	size_t have = 0;
	int fd;

	snprintf(name, sizeof(name), "%u.pack", entry->pack);
	fd = openat(known->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (have < entry->size) {
		ssize_t got = pread(fd, ret + have, (size_t)entry->size - have,
				    (off_t)(entry->offset + have));

		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		have += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	return have == entry->size;
}
