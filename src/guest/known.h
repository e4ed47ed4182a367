/* SPDX-License-Identifier: MIT */
/*
 * What is kept of the files below a folder (SBA_KEPT_DIR in channel/protocol.h): the
 * lists, folded into one table, and the contents in the packs. It is read only, and
 * from several threads at once but for sba_known_load().
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
	const uint8_t *record; /* NULL: none */
	uint32_t hash;
	bool gone;
	atomic_bool seen; /* the caller's */
};

struct sba_known {
	int dir_fd;                   /* -1: nothing is kept */
	struct sba_known_file *files; /* a table; size is a power of two, or 0 */
	size_t size;
	uint64_t *folders; /* hashes of the folders that files are in; likewise */
	size_t folders_size;
	uint64_t seed;
};

/* The lists up to that number in the directory (-1: none). 0 or an errno. */
int sba_known_load(struct sba_known *known, int dir_fd, uint32_t last);
/* What is mapped stays so until the child ends. */
void sba_known_free(struct sba_known *known);
struct sba_known_file *sba_known_find(const struct sba_known *known, const char *path, size_t len);
/* Whether files in that folder, or below it, are known. */
bool sba_known_has_folder(const struct sba_known *known, const char *path, size_t len);
/* Of a file that is there: its path, lent, and its entry. */
const char *sba_known_path(const struct sba_known_file *file, size_t *ret_len);
struct sba_entry sba_known_entry(const struct sba_known_file *file);
/* The content that is kept of an entry, entry->size bytes. */
bool sba_known_content(const struct sba_known *known, const struct sba_entry *entry, uint8_t *ret);

#endif
