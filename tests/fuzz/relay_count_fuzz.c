/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an answer whose tokens are counted, whole and in pieces: never
 * a negative number, and of a stream the same in whatever pieces. The first
 * byte chooses the wire, streamed or not, and the size of the pieces.
 */
#include "model/relay_private.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sba_usage count(uint8_t how, const char *data, size_t size, size_t piece)
{
	struct sba_relay_count c;
	sba_relay_count_init(&c, (enum sba_relay_wire)(how % 3), how & 4, size);
	for (size_t at = 0; at < size; at += piece)
		sba_relay_count_feed(&c, data + at, size - at < piece ? size - at : piece);
	sba_relay_count_end(&c);
	struct sba_usage u = sba_relay_count_usage(&c);
	sba_relay_count_fini(&c);
	return u;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const char *text = (const char *)data + 1;
	struct sba_usage whole = count(data[0], text, size - 1, size);
	struct sba_usage pieces = count(data[0], text, size - 1, 1 + (data[0] >> 3));
	assert(whole.input >= 0 && whole.output >= 0 && whole.cached_input >= 0);
	assert(memcmp(&whole, &pieces, sizeof(whole)) == 0);
	return 0;
}
