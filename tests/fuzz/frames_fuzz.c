/* SPDX-License-Identifier: MIT */
/* The first byte says how the rest is cut: the cut must not matter. */
#include "engine/engine.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	int rc;
	bool border;
	uint64_t sum; /* of position, type and byte */
};

static void decode(const char *data, size_t size, size_t piece, struct outcome *o)
{
	struct sba_frames f = { 0 };
	uint64_t position = 0;
	for (size_t at = 0; at < size;) {
		const char *payload;
		size_t len, n = size - at < piece ? size - at : piece;
		int type;
		struct sba_error err;
		ssize_t took = sba_frames_feed(&f, data + at, n, &type, &payload, &len, &err);
		if (took < 0) {
			o->rc = (int)took;
			return;
		}
		assert(took > 0 && (size_t)took <= n);
		assert(payload >= data + at && payload + len <= data + at + n);
		for (size_t i = 0; i < len; i++)
			o->sum += ++position * (uint64_t)(type + 1) *
				  (1U + (unsigned char)payload[i]);
		at += (size_t)took;
	}
	o->border = sba_frames_at_border(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = { 0 }, cut = { 0 };
	if (size < 1)
		return 0;
	decode((const char *)data + 1, size - 1, SIZE_MAX, &whole);
	decode((const char *)data + 1, size - 1, (size_t)data[0] + 1, &cut);
	assert(whole.rc == cut.rc && whole.border == cut.border && whole.sum == cut.sum);
	return 0;
}
