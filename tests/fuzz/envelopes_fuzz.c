/* SPDX-License-Identifier: MIT */
/* A stream of Connect's envelopes; the first byte says how it is cut, which must not matter. */
#include "remote/remote.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL_MAX = 1 << 22 };

static void read_all(const char *data, size_t size, size_t cut, struct sba_buf *ret)
{
	struct sba_envelopes e;
	int n = 0;
	sba_envelopes_init(&e);
	for (size_t at = 0; n >= 0 && at < size; at += cut) {
		const char *piece = data + at, *message;
		size_t len = size - at < cut ? size - at : cut, message_len;
		int flags;
		while ((n = sba_envelopes_next(&e, &piece, &len, &flags, &message, &message_len)) >
		       0) {
			sba_buf_printf(ret, "%d:%zu:", flags, message_len);
			sba_buf_put(ret, message, message_len);
		}
		assert(n < 0 || len == 0);
	}
	sba_buf_printf(ret, "%d", n);
	sba_envelopes_fini(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf whole = SBA_BUF_INIT(ALL_MAX), pieces = SBA_BUF_INIT(ALL_MAX);
	if (size < 2)
		return 0;
	read_all((const char *)data + 1, size - 1, size, &whole);
	read_all((const char *)data + 1, size - 1, data[0] ? data[0] : 1, &pieces);
	assert(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
	return 0;
}
