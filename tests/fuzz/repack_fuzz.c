/* SPDX-License-Identifier: MIT */
/*
 * Repacks arbitrary bytes and lands the outcome: what our own packer writes
 * lands whole, but for links, and its names never lead out. The first byte says
 * how large the pieces are.
 */
#include "base/limits.h"
#include "support/tar_builder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* No header of the outcome has a name that leads out, or a special type. */
static void check_header(const char *h)
{
	must(memchr("0125x", h[156], 5) != NULL);
	must(h[156] == 'x' || h[0] != '/');
	must(strncmp(h, "../", 3) != 0);
}

static void check(const struct sba_buf *tar)
{
	must(tar->len % 512 == 0);
	for (size_t at = 0; at + 512 <= tar->len && tar->data[at];) {
		const char *h = tar->data + at;
		char digits[13] = "";
		memcpy(digits, h + 124, 12);
		check_header(h);
		at += 512 + (strtoull(digits, NULL, 8) + 511) / 512 * 512;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { OUT_MAX = 1 << 20 };
	if (size == 0)
		return 0;
	struct tar_feed feed = { .data = (const char *)data + 1, .len = size - 1 };
	feed.piece = (size_t)data[0] * 16;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(OUT_MAX);
	const struct sba_pack_options o = { .uid = 1000, .gid = 1000, .fixed_mtime = -1 };
	struct sba_repack *r;
	struct sba_error err;
	char buf[4096];
	ssize_t n;
	must(sba_repack_new(&o, tar_feed_read, &feed, &r, &err) == 0);
	while ((n = sba_repack_read(r, buf, sizeof(buf), &err)) > 0 && !out.failed)
		sba_buf_put(&out, buf, (size_t)n);
	sba_repack_free(r);
	if (n == 0 && !out.failed)
		check(&out);
	return 0;
}
