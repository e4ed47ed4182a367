/* SPDX-License-Identifier: MIT */
/* The first byte says how the rest is cut: the cut must not matter. */
#include "engine/engine.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	int rc;
	bool done;
	size_t used;
	struct sba_buf out;
};

static void decode(const char *data, size_t size, size_t piece, struct outcome *o)
{
	struct sba_chunked c = { 0 };
	sba_buf_init(&o->out, SIZE_MAX / 2);
	while (o->used < size && !o->done) {
		const char *payload;
		size_t len, n = size - o->used < piece ? size - o->used : piece;
		struct sba_error err;
		ssize_t took =
			sba_chunked_feed(&c, data + o->used, n, &payload, &len, &o->done, &err);
		if (took < 0) {
			o->rc = (int)took;
			return;
		}
		assert((size_t)took <= n && (took > 0 || o->done));
		assert(payload >= data + o->used && payload + len <= data + o->used + n);
		sba_buf_put(&o->out, payload, len);
		o->used += (size_t)took;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = { 0 }, cut = { 0 };
	if (size < 1)
		return 0;
	decode((const char *)data + 1, size - 1, SIZE_MAX, &whole);
	decode((const char *)data + 1, size - 1, (size_t)data[0] + 1, &cut);
	assert(whole.rc == cut.rc && whole.done == cut.done);
	assert(whole.out.len == cut.out.len);
	assert(!whole.out.len || memcmp(whole.out.data, cut.out.data, whole.out.len) == 0);
	sba_buf_fini(&whole.out);
	sba_buf_fini(&cut.out);
	return 0;
}
