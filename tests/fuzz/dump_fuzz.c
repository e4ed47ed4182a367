/* SPDX-License-Identifier: MIT */
/* A dump of a session from anywhere: it is taken whole, or refused. */
#include "agent/dump.h"
#include "support/tar_builder.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tar_feed feed = { .data = (const char *)data, .len = size };
	struct sba_dump d;
	struct sba_error err = { 0 };
	int rc = sba_dump_read(tar_feed_read, &feed, NULL, &d, &err);
	if (rc < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	if (d.parts.n == 0 || d.parts.n != d.info.parts || !sba_session_id_valid(d.info.session))
		abort();
	sba_dump_fini(&d);
	return 0;
}
