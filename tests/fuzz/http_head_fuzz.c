/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of an answer. */
#include "base/limits.h"
#include "engine/engine.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_http_head h;
	struct sba_error err;
	ssize_t n = sba_http_head_parse((const char *)data, size, &h, &err);
	if (n < 0) {
		assert(n == SBA_EPROTO);
		return 0;
	}
	assert((size_t)n <= size);
	if (n == 0)
		return 0;
	assert(n <= SBA_HTTP_HEAD_MAX && h.status >= 100 && h.status < 600);
	for (size_t i = 0; i < h.n_headers; i++)
		assert(sba_http_head_get(&h, h.headers[i].name) &&
		       !strpbrk(h.headers[i].value, "\r\n"));
	sba_http_head_fini(&h);
	return 0;
}
