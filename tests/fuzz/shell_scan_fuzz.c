/* SPDX-License-Identifier: MIT */
/*
 * Output with a record in it; the first byte says how it is cut. The cut must not matter,
 * and what passes on is what came, less its records.
 */
#include "remote/remote.h"

#include <assert.h>
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int pass(void *user, const char *data, size_t len)
{
	sba_buf_put(user, data, len);
	return 0;
}

static void scan(const char *data, size_t size, size_t cut, struct sba_buf *ret)
{
	struct sba_shell_scan s = { .id = ID };
	struct sba_exit how;
	for (size_t at = 0; at < size; at += cut)
		assert(sba_shell_scan(&s, data + at, size - at < cut ? size - at : cut, pass,
				      ret) == 0);
	assert(sba_shell_scan(&s, NULL, 0, pass, ret) == 0);
	assert(s.found || ret->len == size);
	if (s.found)
		(void)sba_shell_exit(s.word, &how);
	sba_buf_printf(ret, "|%s", s.found ? s.word : "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf whole = SBA_BUF_INIT(1 << 22), pieces = SBA_BUF_INIT(1 << 22);
	if (size < 2)
		return 0;
	scan((const char *)data + 1, size - 1, size, &whole);
	scan((const char *)data + 1, size - 1, data[0] ? data[0] : 1, &pieces);
	assert(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
	return 0;
}
