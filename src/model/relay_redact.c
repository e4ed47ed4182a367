/* SPDX-License-Identifier: MIT */
/*
 * Takes a key out of what an upstream echoes, also where the key is cut by the
 * border of two pieces. Same length, so that no length elsewhere is a lie.
 */
#include "model/relay_private.h"

#include <string.h>

/* Where the key may begin whose end is not here yet; len: nowhere. */
static size_t find_beginning(const char *data, size_t from, size_t len, const char *key)
{
	while (from < len) {
		const char *p = memchr(data + from, key[0], len - from);
		if (!p)
			break;
		from = (size_t)(p - data);
		if (memcmp(p, key, len - from) == 0)
			return from;
		from++;
	}
	return len;
}

size_t sba_relay_redact(char *data, size_t len, const char *key, size_t key_len)
{
	char *at = data, *hit;
	if (!key_len)
		return len;
	while ((hit = memmem(at, len - (size_t)(at - data), key, key_len))) {
		memset(hit, '*', key_len);
		at = hit + key_len;
	}
	size_t from = (size_t)(at - data);
	if (len - from >= key_len)
		from = len - key_len + 1;
	return find_beginning(data, from, len, key);
}
