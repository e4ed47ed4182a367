/* SPDX-License-Identifier: MIT */
/*
 * What is kept of the files below a folder (SBA_KEPT_DIR in channel/protocol.h): the
 * lists, folded into one table, and the contents in the packs. Once loaded it is read
 * only, and from several threads at once.
 */
#ifndef SBA_GUEST_KNOWN_H
#define SBA_GUEST_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel/protocol.h"
#include "guest/sha256.h"

struct sba_entry {
	uint32_t mode; /* st_mode */
	uint64_t size, inode;
	int64_t mtime_ns, ctime_ns;
	uint8_t flags; /* enum sba_entry_flag */
	uint8_t sha[SBA_GUEST_SHA256_SIZE];
	uint32_t pack;
	uint64_t offset;
	uint16_t link_len;
	const char *link; /* not ended by a NUL */
};

/* SBA_ENTRY_SIZE bytes and the target. Returns where it ends. */
uint8_t *sba_entry_put(uint8_t *to, const struct sba_entry *entry);
/* How many bytes it took; 0: it is cut. */
size_t sba_entry_get(const uint8_t *from, size_t len, struct sba_entry *ret);

struct sba_known_file {
	const uint8_t *record;
	bool gone;
	bool hashed_only; /* of SBA_HASHES_DIR: it is part of no state that is kept */
	atomic_bool seen; /* the caller's */
};

struct sba_known_slot {
	uint32_t hash;
	uint32_t file; /* its number, from 1; 0: none */
};

struct sba_known {
	int dir_fd;                   /* of the packs; -1: nothing is kept */
	struct sba_known_file *files; /* as they came, one next to the other */
	size_t count;
	struct sba_known_slot *slots; /* a table of them; size is a power of two, or 0 */
	size_t size;
	uint64_t *folders; /* hashes of the folders that files are in; likewise */
	size_t folders_size;
	uint64_t seed;
};

struct sba_known_source {
	int dir_fd;           /* of the lists; -1: none */
	uint32_t last;        /* those up to that number */
	int hashes_fd;        /* of SBA_HASHES_DIR; -1: none */
	const char *name;     /* of the list there */
	const uint8_t *given; /* a list that counts instead of that; NULL: none */
	size_t given_len;
	bool folders; /* sba_known_has_folder() will be asked */
};

/* 0 or an errno. A list of hashes that is cut counts as far as it is whole. */
int sba_known_load(struct sba_known *known, const struct sba_known_source *source);
/* What is mapped stays so until the child ends. */
void sba_known_free(struct sba_known *known);
struct sba_known_file *sba_known_find(const struct sba_known *known, const char *path, size_t len);
/* Whether files in that folder, or below it, are kept. */
bool sba_known_has_folder(const struct sba_known *known, const char *path, size_t len);
/* Of a file that is there: its path, lent, its entry, and its record as it lies there. */
const char *sba_known_path(const struct sba_known_file *file, size_t *ret_len);
struct sba_entry sba_known_entry(const struct sba_known_file *file);
size_t sba_known_record_len(const struct sba_known_file *file);
/* The content that is kept of an entry, entry->size bytes. */
bool sba_known_content(const struct sba_known *known, const struct sba_entry *entry, uint8_t *ret);

/* ---- for known_load.c ---- */

/* The length of the record at the beginning; 0: it is none, or cut. */
size_t sba_known_record_size(const uint8_t *data, size_t len);
/* For so many records; 0 or an errno. */
int sba_known_make_room(struct sba_known *known, size_t count);
/* What a record says takes the place of what was said of its path. */
void sba_known_add(struct sba_known *known, const uint8_t *record, bool hashed_only);
int sba_known_note_folders(struct sba_known *known);

#endif
