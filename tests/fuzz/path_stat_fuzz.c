/* SPDX-License-Identifier: MIT */
/* The header by which an engine tells what a path is: base64 of JSON, whoever made it. */
#include "engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const char *header)
{
	struct sba_path_stat st;
	struct sba_error err = { 0 };
	memset(&st, 0xee, sizeof(st));
	int rc = sba_path_stat_parse(header, &st, &err);
	assert(rc == 0 || (rc == err.code && err.text[0] && st.name[0] == (char)0xee));
	if (rc == 0)
		assert(memchr(st.name, '\0', sizeof(st.name)) && (st.mode >> 12) != 0);
}

/* As it is, and as what is behind the base64. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(1 << 20), coded = SBA_BUF_INIT(1 << 20);
	sba_buf_put(&text, data, size);
	sba_base64_put(&coded, data, size, false);
	parse(text.data ? text.data : "");
	parse(coded.data ? coded.data : "");
	return 0;
}
