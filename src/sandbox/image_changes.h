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

/* ---- guest_paths.c ---- */

/* Runs `guest VERB` inside, as `user` (NULL: the sandbox's), with paths on its stdin, each
 * ended by a NUL; what it says on stdout is appended to ret_said. */
int sba_guest_paths(struct sba_sandbox *s, const char *verb, const char *user,
		    const struct sba_buf *paths, struct sba_buf *ret_said,
		    struct sba_error *err) SBA_MUST_CHECK;
/* Appends them in that form. */
int sba_guest_paths_put(struct sba_buf *to, const struct sba_strv *paths,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- owners.c ---- */

/* Who owns what below some paths, as the guest tells it. */
struct sba_owner {
	const char *path;
	uint32_t uid, gid;
};
struct sba_owners {
	struct sba_buf said; /* paths lie in it */
	struct sba_owner *v; /* sorted */
	size_t n;
};
void sba_owners_fini(struct sba_owners *o); /* zeros are allowed */
/* Asks once as root and once as the sandbox's user: neither has the other's rights. */
int sba_owners_ask(struct sba_sandbox *s, const struct sba_strv *paths, struct sba_owners *ret,
		   struct sba_error *err) SBA_MUST_CHECK;
/* From what `guest owners` has said, the first so many bytes of it to root. */
int sba_owners_parse(const char *said, size_t len, size_t of_root, struct sba_owners *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* An sba_tar_owner_fn of a struct sba_owners: a path that it does not name belongs to
 * whom the folder belongs to that it is in. */
void sba_owners_tell(void *owners, const char *name, uint32_t *uid, uint32_t *gid);

/* ---- image_changes_remove.c ---- */

/* Removes absolute paths with all that is in them: as the sandbox's user, and what
 * that one may not remove as root. */
int sba_image_changes_remove(struct sba_sandbox *s, const struct sba_strv *paths,
			     struct sba_error *err) SBA_MUST_CHECK;

#endif
