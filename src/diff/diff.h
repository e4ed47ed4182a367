/* SPDX-License-Identifier: MIT */
/*
 * What differs between two contents, told as git tells it: hunks of a unified diff, and
 * patches that `git apply` takes, binary ones included. Pure: bytes in, text out.
 */
#ifndef SBA_DIFF_H
#define SBA_DIFF_H

#include "base/base.h"

struct sba_diff_text {
	const char *data; /* any bytes */
	size_t len;
};

/* As git decides: a NUL among the first 8000 bytes is none. */
bool sba_diff_is_text(const char *data, size_t len);

struct sba_diff_count {
	uint64_t added, removed; /* lines */
};
/* Appends the hunks, of three lines of context; out may be NULL, where only the lines are
 * counted. The shortest script where that is found in reasonable time, a longer one
 * where not. SBA_ELIMIT: more than SBA_DIFF_LINES_MAX lines. */
int sba_diff_hunks(const struct sba_diff_text *old, const struct sba_diff_text *fresh,
		   struct sba_buf *out, struct sba_diff_count *ret,
		   struct sba_error *err) SBA_MUST_CHECK;

/* One side of a file's change. */
struct sba_diff_file {
	const char *path; /* bytes, from the top; NULL: it is not there */
	uint32_t mode;    /* st_mode; a link's content is its target */
	struct sba_diff_text content;
};
/* Appends a file's change: "diff --git", its modes and names, hunks or a binary patch.
 * Nothing where nothing differs that git knows of. Two paths are a renaming. */
int sba_diff_patch(const struct sba_diff_file *old, const struct sba_diff_file *fresh,
		   struct sba_buf *out, struct sba_error *err) SBA_MUST_CHECK;

/* Appends bytes as a literal of a binary patch: deflated, base 85. */
int sba_diff_literal(const struct sba_diff_text *content, struct sba_buf *out,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Appends a name, within quotes and escaped where git does so. */
void sba_diff_put_name(struct sba_buf *out, const char *prefix, const char *path);

#endif
