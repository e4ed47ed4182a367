/* SPDX-License-Identifier: MIT */
/* mountinfo(5), in which who may mount writes names: the first line is the path asked about. */
#include "guest/file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	rest = strchr(text, '\n');
	if (rest && text[0] == '/') {
		*rest++ = '\0';
		if (sba_file_judge_mounts(rest, text) &
		    ~(SBA_PLACE_OTHER_MOUNT | SBA_PLACE_MOUNTS_BELOW))
			abort();
	}
	free(text);
	return 0;
}
