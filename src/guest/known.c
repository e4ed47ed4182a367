/* SPDX-License-Identifier: MIT */
/* Entries, the table of them, and packs; see known.h. */
#include "guest/known.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "guest/file.h"

enum { NAME_SIZE = 40 };

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

size_t sba_known_record_size(const uint8_t *data, size_t len)
{
	size_t head, size;

	if (len < SBA_RECORD_HEAD)
		return 0;
	head = SBA_RECORD_HEAD + (size_t)sba_file_get(data + 1, 2);
	if (head == SBA_RECORD_HEAD || len < head)
		return 0;
	if (data[0] == SBA_RECORD_DELETED)
		return head;
	if (data[0] != SBA_RECORD_ADDED || len - head < SBA_ENTRY_SIZE)
		return 0;
	size = head + SBA_ENTRY_SIZE + (size_t)sba_file_get(data + head + SBA_ENTRY_SIZE - 2, 2);
	return size <= len ? size : 0;
}

/* ---- the table ---- */

/* Seeded, as the names are anybody's. */
static uint64_t hash_of(const struct sba_known *known, const char *path, size_t len)
{
	uint64_t hash = known->seed ^ len, word;

	for (; len >= sizeof(word); path += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, path, sizeof(word));
		hash = (hash ^ word) * 0xd6e8feb86659fd93ULL;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, path, len);
	hash = (hash ^ word) * 0xd6e8feb86659fd93ULL;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return hash ^ hash >> 32;
}

static const char *path_of(const uint8_t *record, size_t *ret_len)
{
	*ret_len = (size_t)sba_file_get(record + 1, 2);
	return (const char *)record + SBA_RECORD_HEAD;
}

const char *sba_known_path(const struct sba_known_file *file, size_t *ret_len)
{
	return path_of(file->record, ret_len);
}

/* The record was found to be whole when it was loaded. */
struct sba_entry sba_known_entry(const struct sba_known_file *file)
{
	struct sba_entry entry = { .mode = 0 };
	size_t len;
	const char *path = sba_known_path(file, &len);

	sba_entry_get((const uint8_t *)path + len, SIZE_MAX, &entry);
	return entry;
}

size_t sba_known_record_len(const struct sba_known_file *file)
{
	return sba_known_record_size(file->record, SIZE_MAX);
}

/* Its slot, taken or not. */
static struct sba_known_slot *slot_of(const struct sba_known *known, const char *path, size_t len,
				      uint32_t hash)
{
	for (size_t at = hash & (known->size - 1);; at = (at + 1) & (known->size - 1)) {
		struct sba_known_slot *slot = &known->slots[at];
		const char *other;
		size_t other_len;

		if (slot->file == 0)
			return slot;
		if (slot->hash != hash)
			continue;
		other = sba_known_path(&known->files[slot->file - 1], &other_len);
		if (other_len == len && memcmp(other, path, len) == 0)
			return slot;
	}
}

struct sba_known_file *sba_known_find(const struct sba_known *known, const char *path, size_t len)
{
	const struct sba_known_slot *slot;

	if (known->size == 0)
		return NULL;
	slot = slot_of(known, path, len, (uint32_t)hash_of(known, path, len));
	return slot->file && !known->files[slot->file - 1].gone ? &known->files[slot->file - 1]
								: NULL;
}

void sba_known_add(struct sba_known *known, const uint8_t *record, bool hashed_only)
{
	size_t len;
	const char *path = path_of(record, &len);
	uint32_t hash = (uint32_t)hash_of(known, path, len);
	struct sba_known_slot *slot = slot_of(known, path, len, hash);
	struct sba_known_file *file;
	bool fresh = slot->file == 0;

	if (fresh)
		*slot = (struct sba_known_slot){ hash, (uint32_t)++known->count };
	file = &known->files[slot->file - 1];
	file->record = record;
	file->hashed_only = hashed_only && (fresh || file->gone || file->hashed_only);
	file->gone = record[0] == SBA_RECORD_DELETED;
}

static size_t table_size(size_t count)
{
	size_t size = 16;

	while (size < 2 * count)
		size *= 2;
	return size;
}

int sba_known_make_room(struct sba_known *known, size_t count)
{
	if (count > UINT32_MAX / 4)
		return E2BIG;
	if (getrandom(&known->seed, sizeof(known->seed), 0) != sizeof(known->seed))
		return EIO;
	known->size = table_size(count);
	known->slots = calloc(known->size, sizeof(*known->slots));
	known->files = calloc(count, sizeof(*known->files));
	return known->slots && known->files ? 0 : ENOMEM;
}

/* ---- folders ---- */

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

static bool is_kept(const struct sba_known_file *file)
{
	return !file->gone && !file->hashed_only;
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

	for (size_t i = 0; i < known->count; i++) {
		const char *path = sba_known_path(&known->files[i], &len);

		count += is_kept(&known->files[i]) ? depth_of(path, len) : 0;
	}
	return count;
}

int sba_known_note_folders(struct sba_known *known)
{
	known->folders_size = table_size(folders_of(known));
	known->folders = calloc(known->folders_size, sizeof(*known->folders));
	if (!known->folders)
		return ENOMEM;
	for (size_t i = 0; i < known->count; i++) {
		size_t len;
		const char *path = sba_known_path(&known->files[i], &len);

		while (is_kept(&known->files[i]) && len > 0) {
			if (path[--len] == '/' && !add_folder(known, hash_of(known, path, len) | 1))
				break;
		}
	}
	return 0;
}

void sba_known_free(struct sba_known *known)
{
	free(known->files);
	free(known->slots);
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
