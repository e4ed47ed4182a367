/* SPDX-License-Identifier: MIT */
/*
 * A command's stderr with the guest's records in it; the first byte says how it is cut:
 * the cut must not matter, and without the nonce there is no record.
 */
#include "base/base.h"
#include "sandbox/record.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL_MAX = 1 << 22 };
#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

static size_t scan(const char *nonce, const char *data, size_t size, size_t cut,
		   struct sba_buf *ret)
{
	struct sba_record_scan s;
	const char *out;
	size_t records = 0, n;
	sba_record_scan_init(&s, nonce);
	for (size_t at = 0; at < size; at += cut) {
		size_t end = size - at < cut ? size : at + cut;
		for (size_t i = at; i < end; i += n) {
			struct sba_record record;
			size_t out_len;
			n = sba_record_scan_step(&s, data + i, end - i, &out, &out_len, &record);
			assert(n <= end - i && (n > 0 || out_len > 0));
			sba_buf_put(ret, out, out_len);
			if (!record.kind)
				continue;
			records++;
			sba_buf_printf(ret, "<%c %lld>", record.kind, (long long)record.number);
		}
	}
	n = sba_record_scan_rest(&s, &out);
	sba_buf_put(ret, out, n);
	return records;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf whole = SBA_BUF_INIT(ALL_MAX), pieces = SBA_BUF_INIT(ALL_MAX),
			       other = SBA_BUF_INIT(ALL_MAX);
	if (size < 2)
		return 0;
	const char *text = (const char *)data + 1;
	size_t len = size - 1;
	scan(NONCE, text, len, len, &whole);
	scan(NONCE, text, len, data[0] ? data[0] : 1, &pieces);
	assert(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
	if (memmem(text, len, OTHER, strlen(OTHER)))
		return 0;
	assert(scan(OTHER, text, len, len, &other) == 0);
	assert(other.len == len && memcmp(other.data, text, len) == 0);
	return 0;
}
