/* SPDX-License-Identifier: MIT */
/* What a registry sends as WWW-Authenticate, and references of images. */
#include "registry/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void reference(const char *text)
{
	struct sba_reference r;
	struct sba_error err = { 0 };
	if (sba_reference_parse(text, &r, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	assert(r.repository[0] && (r.tag[0] || r.digest[0]));
	assert(!strstr(r.repository, "..") || !strstr(r.repository, "/../"));
	assert(!strpbrk(r.repository, "?#% \r\n:@") && !strpbrk(r.tag, "/?#% \r\n:@"));
	assert(!r.digest[0] || sba_is_digest(r.digest));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_challenge c;
	struct sba_error err = { 0 };
	char *text = malloc(size + 1);
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (sba_challenge_parse(text, &c, &err) == 0)
		assert(c.scheme[0] && !strpbrk(c.realm, "\r\n") && !strpbrk(c.service, "\r\n"));
	reference(text);
	free(text);
	return 0;
}
