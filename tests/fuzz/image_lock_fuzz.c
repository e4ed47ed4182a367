/* SPDX-License-Identifier: MIT */
/* Lock files of images, which are committed and edited by people: what is taken is written
 * again as the same. */
#include <sandbox-agent/image.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_image_lock *l = NULL, *again = NULL;
	struct sba_error err = { 0 };
	char *text = malloc(size + 1);
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	int rc = sba_image_lock_open(text, "lock", &l, &err);
	assert(rc == 0 || (rc == SBA_ECONFIG && err.text[0]));
	if (rc == 0) {
		char *first = sba_image_lock_text(l);
		assert(first && sba_image_lock_open(first, "again", &again, &err) == 0);
		char *second = sba_image_lock_text(again);
		assert(second && strcmp(first, second) == 0);
		free(first);
		free(second);
	}
	sba_image_lock_close(l);
	sba_image_lock_close(again);
	free(text);
	return 0;
}
