/* SPDX-License-Identifier: MIT */
/* A stream of events; the first byte says how it is cut: the cut must not matter. */
#include "http/http.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL_MAX = 1 << 22 };

static void read_events(const char *data, size_t size, size_t cut, struct sba_buf *ret)
{
	struct sba_sse s;
	sba_sse_init(&s);
	for (size_t at = 0; at < size; at += cut) {
		const char *piece = data + at, *event;
		size_t len = size - at < cut ? size - at : cut, event_len;
		while (sba_sse_next(&s, &piece, &len, &event, &event_len)) {
			sba_buf_put(ret, event, event_len);
			sba_buf_putc(ret, '\0');
		}
		assert(len == 0);
	}
	sba_buf_printf(ret, "%llu", (unsigned long long)s.dropped);
	sba_sse_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf whole = SBA_BUF_INIT(ALL_MAX), pieces = SBA_BUF_INIT(ALL_MAX);
	if (size < 2)
		return 0;
	read_events((const char *)data + 1, size - 1, size, &whole);
	read_events((const char *)data + 1, size - 1, data[0] ? data[0] : 1, &pieces);
	assert(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
	return 0;
}
