/* SPDX-License-Identifier: MIT */
/* The files that the library carries, and what the guest among them is called. */
#include "image/image.h"

#include <pthread.h>
#include <string.h>

/* From build/…/embedded.S; ends with a NULL name. */
extern const struct sba_embedded sba_embedded_files[];

const struct sba_embedded *sba_embedded_find(const char *name)
{
	for (const struct sba_embedded *f = sba_embedded_files; f->name; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

enum { GUEST_HASH_LEN = 12 };
static pthread_once_t hash_once = PTHREAD_ONCE_INIT;
static char guest_hash[GUEST_HASH_LEN + 1];

static void compute_hash(void)
{
	const struct sba_embedded *guest = sba_embedded_find("guest");
	char hex[SBA_SHA256_HEX];
	if (guest && sba_sha256_hex(guest->data, guest->len, hex) == 0)
		memcpy(guest_hash, hex, GUEST_HASH_LEN);
}

const char *sba_guest_hash(void)
{
	pthread_once(&hash_once, compute_hash);
	return guest_hash;
}

const char *sba_version(void)
{
	return SBA_VERSION;
}
