/* SPDX-License-Identifier: MIT */
/*
 * Builds tars byte by byte, above all those that no honest packer makes, and
 * feeds them to whatever reads tars. Entries that do not fit are the test's
 * fault and end it.
 */
#ifndef TESTS_TAR_BUILDER_H
#define TESTS_TAR_BUILDER_H

#include "archive/archive.h"

struct tar_entry {
	char type; /* 0: '0' */
	const char *name;
	const char *link;
	unsigned mode; /* 0: 0644, for directories 0755 */
	long long mtime;
	const char *data; /* content, `size` bytes; NULL: no block follows the header */
	unsigned long long size;
};

void tar_add(struct sba_buf *tar, const struct tar_entry *e);
void tar_file(struct sba_buf *tar, const char *name, const char *content);
void tar_dir(struct sba_buf *tar, const char *name);
/* A pax header with one record, for the entry that follows. */
void tar_pax(struct sba_buf *tar, const char *key, const char *value);
/* A sparse file (GNU 1.0 by pax): `apparent` bytes, of which only `data` at
 * `offset` is stored. */
void tar_sparse(struct sba_buf *tar, const char *name, unsigned long long apparent,
		unsigned long long offset, const char *data);
void tar_end(struct sba_buf *tar);

/* A transport: hands out pieces of at most `piece` bytes (0: all at once), and
 * fails at `fail_at` (0: never) with SBA_ELOST. */
struct tar_feed {
	const char *data;
	size_t len;
	size_t at;
	size_t piece;
	size_t fail_at;
};
struct tar_feed tar_feed_of(const struct sba_buf *tar);
ssize_t tar_feed_read(void *feed, void *buf, size_t size, struct sba_error *err);

#endif
