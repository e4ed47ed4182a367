/* SPDX-License-Identifier: MIT */
/*
 * Arbitrary bytes with other owners: what goes through is as long as what came, as far
 * as it was understood, and is understood once more, to the same owners. The first byte
 * says how large the pieces are.
 */
#include "support/tar_builder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void give(void *user, const char *name, uint32_t *uid, uint32_t *gid)
{
	must(strlen(name) < 1 << 20);
	*uid = *(const uint32_t *)user;
	*gid = 5;
}

static void check(void *user, const char *name, uint32_t *uid, uint32_t *gid)
{
	(void)name;
	must(*uid == *(const uint32_t *)user && *gid == 5);
}

static ssize_t reown(struct tar_feed *feed, sba_tar_owner_fn *owner, uint32_t *uid,
		     struct sba_buf *ret)
{
	struct sba_reown *r = NULL;
	char buf[4096];
	ssize_t n;
	must(sba_reown_new(tar_feed_read, feed, owner, uid, &r, NULL) == 0);
	while ((n = sba_reown_read(r, buf, sizeof(buf), NULL)) > 0)
		sba_buf_put(ret, buf, (size_t)n);
	sba_reown_free(r);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { OUT_MAX = 1 << 20 };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(OUT_MAX), again = SBA_BUF_INIT(OUT_MAX);
	if (size == 0)
		return 0;
	uint32_t uid = data[0] & 1 ? 3000000000 : 7;
	struct tar_feed feed = { .data = (const char *)data + 1, .len = size - 1 };
	feed.piece = (size_t)data[0] * 16;
	ssize_t n = reown(&feed, give, &uid, &out);
	must(out.len <= size - 1);
	if (n < 0 || out.failed)
		return 0;
	must(out.len == size - 1);
	feed = tar_feed_of(&out);
	must(reown(&feed, check, &uid, &again) == 0 && again.len == out.len);
	must(out.len == 0 || memcmp(again.data, out.data, out.len) == 0);
	return 0;
}
