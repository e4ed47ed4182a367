/* SPDX-License-Identifier: MIT */
/* What an ssh program prints: its last line is shown to people, on one line, without what
 * moves a cursor. */
#include "engine/private.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(8 * size + 64);
	sba_ssh_last_words((const char *)data, size, &words);
	assert(!words.failed);
	for (size_t i = 0; i < words.len; i++)
		assert((unsigned char)words.data[i] >= ' ' && words.data[i] != 0x7f);
	return 0;
}
