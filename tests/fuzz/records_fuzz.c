/* SPDX-License-Identifier: MIT */
/* Any bytes as a guest's word about files: refused, or taken the same in other pieces. */
#include "sandbox/records.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(struct sba_records *r, const uint8_t *data, size_t size, size_t step)
{
	int rc = 0;
	sba_records_init(r);
	for (size_t at = 0; rc == 0 && at < size; at += step)
		rc = sba_records_feed(r, data + at, step < size - at ? step : size - at, NULL);
	return rc < 0 ? rc : sba_records_end(r, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_records whole, cut;
	int rc = take(&whole, data, size, size + 1), again = take(&cut, data, size, 3);
	if (rc != again || (rc == 0 && whole.n != cut.n))
		abort();
	for (size_t i = 0; rc == 0 && i < whole.n; i++) {
		const struct sba_record *one = &whole.v[i];
		bool left_out = one->kind == SBA_RECORD_LEFT_OUT;
		if (!left_out && !sba_record_path_ok(one->path, strlen(one->path)))
			abort();
	}
	sba_records_fini(&whole);
	sba_records_fini(&cut);
	return 0;
}
