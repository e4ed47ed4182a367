/* SPDX-License-Identifier: MIT */
/*
 * What the .gitignore files of a tree name, as gitignore(5) says: the last line that
 * matches counts, those of the nearest folder first. Read only once it is made.
 */
#ifndef SBA_GUEST_IGNORE_H
#define SBA_GUEST_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct sba_ignore;

/* The lines of a folder's .gitignore on top of those above it; `above` itself where
 * there are none, or none can be read. base: the folder's path, "" for the top; above is
 * lent. */
const struct sba_ignore *sba_ignore_folder(const struct sba_ignore *above, int dir_fd,
					   const char *base);
/* The same of a text, which is copied. NULL: out of memory. */
const struct sba_ignore *sba_ignore_text(const struct sba_ignore *above, const char *base,
					 const char *text, size_t len);
void sba_ignore_free(const struct sba_ignore *ignore); /* not those above; NULL is allowed */
/* path: from the top. Folders above it are the caller's to ask for. */
bool sba_ignore_names(const struct sba_ignore *ignore, const char *path, bool is_folder);

#endif
