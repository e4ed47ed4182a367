/* SPDX-License-Identifier: MIT */
/*
 * Credentials in docker's config.json and in what a helper prints: anybody's bytes. What
 * is found can be put into a header that decodes again, and an error tells no secret.
 */
#include "registry/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void header(struct sba_credentials *c)
{
	struct sba_error err = { 0 };
	SBA_FREE char *text = NULL;
	if (sba_credentials_header(c, "h:1", &text, &err) == 0) {
		SBA_BUF struct sba_buf plain = SBA_BUF_INIT(1 << 20);
		assert(strlen(text) % 4 == 0 && !strpbrk(text, "+/\r\n"));
		assert(sba_base64_decode(text, strlen(text), true, &plain) == 0);
	}
	sba_credentials_fini(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_credentials c = { 0 };
	struct sba_error err = { 0 };
	char *helper = NULL;
	int rc = sba_credentials_parse((const char *)data, size, "h:1", &c, &helper, &err);
	assert(rc == 0 || (rc == SBA_ECONFIG && err.text[0]));
	if (helper)
		assert(sba_is_word(helper, "_.-", 64) && !strchr(helper, '/'));
	free(helper);
	if (rc == 0)
		header(&c);
	rc = sba_credentials_parse_answer((const char *)data, size, &c, &err);
	assert(rc == 0 || (rc == SBA_ECONFIG && err.text[0]));
	if (rc == 0)
		header(&c);
	return 0;
}
