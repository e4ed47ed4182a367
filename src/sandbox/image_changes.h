/* SPDX-License-Identifier: MIT */
/* What differs in a sandbox from its image, taken apart into what to fetch, what
 * to note and what to remove. */
#ifndef SBA_SANDBOX_IMAGE_CHANGES_H
#define SBA_SANDBOX_IMAGE_CHANGES_H

#include "sandbox/private.h"

/* Absolute paths, parents before children. */
struct sba_image_changes {
	struct sba_strv fetch;    /* new ones, with all that is in them, and files that changed */
	struct sba_strv folders;  /* of the image; something in them changed */
	struct sba_strv modified; /* of the image; file or folder is not known */
	struct sba_strv deleted;
};
void sba_image_changes_fini(struct sba_image_changes *c);

/* From the engine's list; what is the engine's own or ours is left out, and what is mounted
 * (paths, NULL-ended; NULL: nothing): folders that were made to hold a mount are noted
 * like those of the image. */
int sba_image_changes_parse(const json_t *list, const char *const *mounted,
			    struct sba_image_changes *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- image_changes_remove.c ---- */

/* Removes absolute paths with all that is in them: as the sandbox's user, and what
 * that one may not remove as root. */
int sba_image_changes_remove(struct sba_sandbox *s, const struct sba_strv *paths,
			     struct sba_error *err) SBA_MUST_CHECK;

#endif
