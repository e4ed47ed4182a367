/* SPDX-License-Identifier: MIT */
/* Records as the guest sends them, for tests. */
#ifndef SBA_TEST_RECORD_BUILDER_H
#define SBA_TEST_RECORD_BUILDER_H

#include "sandbox/records.h"

#include <string.h>
#include <sys/stat.h>

static inline void record_number(struct sba_buf *b, uint64_t n, size_t len)
{
	for (size_t i = len; i-- > 0;)
		sba_buf_putc(b, (char)(unsigned char)(n >> 8 * i));
}

static inline void record_head(struct sba_buf *b, char kind, const char *path)
{
	sba_buf_putc(b, kind);
	record_number(b, strlen(path), 2);
	sba_buf_puts(b, path);
}

/* A side: an entry and its content, or a link's target. */
struct record_side {
	uint32_t mode; /* 0: a file, 0644 */
	const char *content, *link;
	int why; /* of enum sba_content */
	bool wrong_hash;
};

static inline void record_entry(struct sba_buf *b, const struct record_side *side)
{
	unsigned char sha[SBA_SHA256_SIZE] = { 0 };
	size_t len = strlen(side->link ? side->link : side->content);
	if (side->content && sba_sha256(side->content, len, sha) < 0)
		return;
	sha[0] = (unsigned char)(sha[0] + side->wrong_hash);
	record_number(b, side->mode ? side->mode : side->link ? S_IFLNK | 0777 : S_IFREG | 0644, 4);
	record_number(b, len, 8);
	record_number(b, 0, 8);
	record_number(b, 0, 8);
	record_number(b, 1, 8);
	record_number(b, side->content ? SBA_ENTRY_HASHED : 0, 1);
	sba_buf_put(b, sha, sizeof(sha));
	record_number(b, 0, 4);
	record_number(b, 0, 8);
	record_number(b, side->link ? len : 0, 2);
	if (side->link)
		sba_buf_puts(b, side->link);
}

static inline void record_side(struct sba_buf *b, const struct record_side *side)
{
	int why = side->link ? SBA_CONTENT_LINK : side->why;
	record_entry(b, side);
	record_number(b, (uint64_t)why, 1);
	record_number(b, strlen(side->link ? side->link : side->content), 8);
	if (why == SBA_CONTENT_SENT)
		sba_buf_puts(b, side->content);
}

static inline void record_added(struct sba_buf *b, const char *path, const char *content)
{
	record_head(b, SBA_RECORD_ADDED, path);
	record_side(b, &(const struct record_side){ .content = content });
}

static inline void record_deleted(struct sba_buf *b, const char *path, const char *content)
{
	record_head(b, SBA_RECORD_DELETED, path);
	record_side(b, &(const struct record_side){ .content = content });
}

static inline void record_modified(struct sba_buf *b, const char *path, const char *old,
				   const char *fresh)
{
	record_head(b, SBA_RECORD_MODIFIED, path);
	record_side(b, &(const struct record_side){ .content = old });
	record_side(b, &(const struct record_side){ .content = fresh });
}

#endif
