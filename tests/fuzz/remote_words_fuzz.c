/* SPDX-License-Identifier: MIT */
/* The body of an error: what is told of it is fit for a terminal and has no secret in it. */
#include "remote/remote.h"

#include <assert.h>
#include <string.h>

#define SECRET "secret-key-0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t max)
{
	assert(strlen(text) < max);
	assert(!strstr(text, SECRET));
	for (const char *c = text; *c; c++)
		assert((unsigned char)*c >= 0x20 && *c != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const secrets[2] = { SECRET, NULL };
	struct sba_remote_words words;
	struct sba_exit how;
	char text[65];
	sba_remote_words((const char *)data, size, secrets, &words);
	check(words.code, sizeof(words.code));
	check(words.text, sizeof(words.text));
	snprintf(text, sizeof(text), "%.*s", size < 64 ? (int)size : 64, (const char *)data);
	(void)sba_remote_status(text, &how);
	(void)sba_remote_time(text);
	return 0;
}
