/* SPDX-License-Identifier: MIT */
/* The files that the library carries, and what the guest among them is called. */
#include "image/image.h"

#include <string.h>

/* From build/…/embedded.S; the files end with a NULL name. */
extern const struct sba_embedded sba_embedded_files[];
extern const char sba_embedded_guest_hash[];

const struct sba_embedded *sba_embedded_find(const char *name)
{
	for (const struct sba_embedded *f = sba_embedded_files; f->name; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

const struct sba_embedded *sba_embedded_next(const struct sba_embedded *after)
{
	const struct sba_embedded *f = after ? after + 1 : sba_embedded_files;
	return f->name ? f : NULL;
}

const char *sba_guest_hash(void)
{
	return sba_embedded_guest_hash;
}

const char *sba_version(void)
{
	return SBA_VERSION;
}
