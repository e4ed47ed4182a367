/* SPDX-License-Identifier: MIT */
/* Objects that a repository borrows from another one on this host. */
#ifndef SBA_SANDBOX_BORROWED_H
#define SBA_SANDBOX_BORROWED_H

#include "base/base.h"

enum { SBA_BORROWED_PATH = 64 };

/* The folder `common` is a repository's .git: `git clone --shared` or --reference made it. */
bool sba_git_borrows(const char *common);

/* Packs all that the repository of the work tree `dir` reaches, wherever it lies, into
 * the folder `pack` of a new one, which is the caller's to remove. What else is in the
 * other repository is none of its business, and stays there. */
int sba_borrowed_pack(const char *dir, struct sba_until until, char ret[SBA_BORROWED_PATH],
		      struct sba_error *err) SBA_MUST_CHECK;
void sba_borrowed_remove(const char *folder);

#endif
