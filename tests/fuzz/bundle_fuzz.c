/* SPDX-License-Identifier: MIT */
/* Any bytes as a bundle that a sandbox sends: refused, or a name and a place in them. */
#include "sandbox/bundle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_bundle_head head;
	struct sba_error err = { 0 };
	int rc = sba_bundle_head((const char *)data, size, &head, &err);
	if (rc < 0) {
		if (err.code != SBA_EPROTO)
			abort();
		return 0;
	}
	if (!sba_object_name_ok(head.tip, strlen(head.tip)) || head.len > size ||
	    data[head.len - 1] != '\n' || data[head.len - 2] != '\n')
		abort();
	return 0;
}
