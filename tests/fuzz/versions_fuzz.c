/* SPDX-License-Identifier: MIT */
/* Files of pinned versions, which a user may give: what is taken makes whole references. */
#include <sandbox-agent/image.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_images *i = NULL;
	struct sba_error err = { 0 };
	char *text = malloc(size + 1);
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	int rc = sba_images_open(text, "versions.json", &i, &err);
	assert(rc == 0 || (rc == err.code && err.text[0] && !i));
	if (rc == 0) {
		for (const char *const *name = sba_images_names(i); *name; name++) {
			const char *ref = sba_images_ref(i, *name);
			assert(ref && strchr(ref, ':') && !strpbrk(ref, " \t\r\n?#%&"));
		}
	}
	sba_images_close(i);
	free(text);
	return 0;
}
