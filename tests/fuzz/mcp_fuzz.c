/* SPDX-License-Identifier: MIT */
/*
 * A user's MCP servers for every CLI: whatever the text is, it is refused or becomes a
 * file, and its names stand between blanks.
 */
#include "drivers/drivers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGE = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (const struct sba_driver *const *d = sba_driver_all(); *d; d++) {
		SBA_BUF struct sba_buf file = SBA_BUF_INIT(LARGE), names = SBA_BUF_INIT(LARGE);
		struct sba_error err = { 0 };
		int rc = sba_mcp_translate(*d, (const char *)data, size, &file, &names, &err);
		if (rc < 0 ? !err.text[0] : !file.len || !names.len || strchr(names.data, '\n'))
			abort();
	}
	return 0;
}
