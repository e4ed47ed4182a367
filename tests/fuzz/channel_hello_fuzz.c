/* SPDX-License-Identifier: MIT */
/* What a guest says of itself, and whether it is older than ours. */
#include "channel/private.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_channel_hello h = { .protocol = -1 };
	struct sba_error err = { 0 };
	int rc = sba_hello_parse((const char *)data, size, &h, &err);
	if (rc < 0) {
		assert(h.protocol == -1 && err.code == rc);
		return 0;
	}
	assert(h.protocol > 0);
	assert(strlen(h.program) < sizeof(h.program) && strlen(h.guest) < sizeof(h.guest));
	int order = sba_channel_hello_order(&h);
	assert(order >= -1 && order <= 1);
	return 0;
}
