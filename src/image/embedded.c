/* SPDX-License-Identifier: MIT */
/* The files that the library carries, and what the guests among them are called. */
#include "image/image.h"

#include <string.h>

/* From build/…/embedded.S; the files end with a NULL name. */
extern const struct sba_embedded sba_embedded_files[];

#if defined(__aarch64__)
#define NATIVE "arm64"
#else
#define NATIVE "amd64"
#endif

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

int sba_guest_find(const char *arch, struct sba_guest *ret, struct sba_error *err)
{
	char name[64];
	arch = arch && *arch ? arch : NATIVE;
	snprintf(name, sizeof(name), "guest-%.32s", arch);
	const struct sba_embedded *guest = sba_embedded_find(name);
	snprintf(name, sizeof(name), "guest-%.32s.hash", arch);
	const struct sba_embedded *hash = sba_embedded_find(name);
	if (!guest || !hash)
		return sba_fail(err, SBA_EUNSUPPORTED, "no guest for the architecture %.32s", arch);
	*ret = (struct sba_guest){ guest->data, guest->len, hash->data };
	return 0;
}

const char *sba_guest_hash(void)
{
	struct sba_guest guest = { 0 };
	return sba_guest_find(NULL, &guest, NULL) == 0 ? guest.hash : "";
}

const char *sba_version(void)
{
	return SBA_VERSION;
}
