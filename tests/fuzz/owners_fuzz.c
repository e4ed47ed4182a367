/* SPDX-License-Identifier: MIT */
/* What a sandbox's guest says of owners: the first byte tells how much of it root has said. */
#include "sandbox/image_changes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_owners owners;
	if (size == 0)
		return 0;
	const char *said = (const char *)data + 1;
	size_t len = size - 1, of_root = data[0] < len ? data[0] : len;
	if (sba_owners_parse(said, len, of_root, &owners, NULL) < 0)
		return 0;
	for (size_t i = 0; i < owners.n; i++) {
		const struct sba_owner *o = &owners.v[i];
		uint32_t uid = UINT32_MAX, gid = UINT32_MAX;
		sba_owners_tell(&owners, o->path + 1, &uid, &gid);
		/* The empty name is nobody's. */
		if (o->path[1] && (uid == UINT32_MAX || gid == UINT32_MAX))
			abort();
		if (i > 0 && strcmp(owners.v[i - 1].path, o->path) > 0)
			abort();
		if (o->path >= owners.said.data + of_root && (o->uid == 0 || o->gid == 0))
			abort();
	}
	sba_owners_fini(&owners);
	return 0;
}
