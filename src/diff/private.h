/* SPDX-License-Identifier: MIT */
/* What the files of this module share: texts as numbered lines, and which of them changed. */
#ifndef SBA_DIFF_PRIVATE_H
#define SBA_DIFF_PRIVATE_H

#include "diff/diff.h"

struct sba_diff_line {
	const char *data; /* with its newline, if it has one */
	size_t len;
};

struct sba_diff_lines {
	struct sba_diff_line *v;
	uint32_t *id;  /* equal lines of both sides have the same */
	bool *changed; /* one more than there are lines, false */
	size_t n;
};

/* Both sides cut into lines. */
int sba_diff_lines_of(const struct sba_diff_text *old, const struct sba_diff_text *fresh,
		      struct sba_diff_lines *a, struct sba_diff_lines *b,
		      struct sba_error *err) SBA_MUST_CHECK;
void sba_diff_lines_fini(struct sba_diff_lines *l);
/* Marks the lines that are not common to both. */
int sba_diff_compare(struct sba_diff_lines *a, struct sba_diff_lines *b,
		     struct sba_error *err) SBA_MUST_CHECK;

#endif
