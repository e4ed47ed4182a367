/* SPDX-License-Identifier: MIT */
/*
 * Any key in any bytes cut into any pieces: no key comes out, nothing else
 * changes, and no byte is lost. The first two bytes are the key's length and
 * that of the pieces; the key follows.
 */
#include "model/relay_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the relay does it: what is held back stands before the next piece. */
static size_t pass(const char *text, size_t len, size_t piece, const char *key, size_t key_len,
		   char *out)
{
	size_t done = 0, have = 0;
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		memcpy(out + have, text + at, n);
		have += n;
		size_t safe = sba_relay_redact(out + done, have - done, key, key_len);
		assert(safe <= have - done && have - done - safe < key_len);
		done += safe;
	}
	return have;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t key_len = size > 2 ? 1 + data[0] % 12 : 0;
	if (size < 2 + key_len || !key_len)
		return 0;
	const char *key = (const char *)data + 2, *text = key + key_len;
	size_t len = size - 2 - key_len;
	char *whole = malloc(len + 1), *pieces = malloc(len + 1);
	if (whole && pieces) {
		assert(pass(text, len, len + 1, key, key_len, whole) == len);
		assert(pass(text, len, 1 + data[1] % 16, key, key_len, pieces) == len);
		assert(memcmp(whole, pieces, len) == 0);
		/* stars may make a key of stars; any other is gone */
		assert(memchr(key, '*', key_len) || !memmem(whole, len, key, key_len));
		for (size_t i = 0; i < len; i++)
			assert(whole[i] == text[i] || whole[i] == '*');
	}
	free(whole);
	free(pieces);
	return 0;
}
