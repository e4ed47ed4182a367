/* SPDX-License-Identifier: MIT */
/*
 * Frames that cost the peer nothing and us time: they are counted off the raw
 * bytes, before HTTP/2 looks at them, so that none goes uncounted. Frames of
 * an honest guest that are bound by its work (HEADERS, DATA with bytes in it,
 * windows worth their frame) are free.
 */
#include "channel/private.h"

#include <string.h>

enum { HEAD = 9, SMALL_WINDOW = 1024 };

static bool is_free(const struct sba_flood *f, uint32_t len)
{
	switch (f->head[3]) {
	case NGHTTP2_DATA:
		return len > 0 || f->head[4] & NGHTTP2_FLAG_END_STREAM;
	case NGHTTP2_HEADERS:
		return true;
	case NGHTTP2_WINDOW_UPDATE:
		return sba_be_get(f->head + HEAD, 4) >= SMALL_WINDOW;
	default:
		return false;
	}
}

static int judge(struct sba_flood *f, uint32_t len, int64_t now_ms, struct sba_error *err)
{
	if (f->head[3] == NGHTTP2_PUSH_PROMISE)
		return sba_fail(err, SBA_EPROTO, "the guest pushes a stream");
	if (f->head[3] == NGHTTP2_HEADERS && !(sba_be_get(f->head + 5, 4) & 1))
		return sba_fail(err, SBA_EPROTO, "the guest opens a stream");
	if (is_free(f, len))
		return 0;
	if (now_ms - f->since >= SBA_CHANNEL_CONTROL_MS) {
		f->since = now_ms;
		f->count = 0;
	}
	if (++f->count > SBA_CHANNEL_CONTROL_MAX)
		return sba_fail(err, SBA_EPROTO, "more than %d control frames in %d s",
				SBA_CHANNEL_CONTROL_MAX, SBA_CHANNEL_CONTROL_MS / 1000);
	return 0;
}

/* Fills the head up to `want` bytes. */
static size_t collect(struct sba_flood *f, size_t want, const unsigned char *data, size_t len)
{
	size_t n = want - f->have < len ? want - f->have : len;
	memcpy(f->head + f->have, data, n);
	f->have += n;
	return n;
}

/* One step through data; *ret_used says how far. */
static int step(struct sba_flood *f, const unsigned char *data, size_t len, int64_t now_ms,
		size_t *ret_used, struct sba_error *err)
{
	size_t used = f->have < HEAD ? collect(f, HEAD, data, len) : 0;
	*ret_used = used;
	if (f->have < HEAD)
		return 0;
	uint32_t length = (uint32_t)sba_be_get(f->head, 3);
	if (length > SBA_CHANNEL_FRAME_MAX)
		return sba_fail(err, SBA_EPROTO, "a frame of %u bytes", length);
	if (!f->whole) {
		size_t want = HEAD + (length < 4 ? length : 4);
		*ret_used += collect(f, want, data + used, len - used);
		if (f->have < want)
			return 0;
		f->whole = true;
		f->left = length - (uint32_t)(want - HEAD);
		int rc = judge(f, length, now_ms, err);
		if (rc < 0)
			return rc;
	}
	size_t skip = len - *ret_used < f->left ? len - *ret_used : f->left;
	*ret_used += skip;
	f->left -= (uint32_t)skip;
	if (f->left > 0)
		return 0;
	f->whole = false;
	f->have = 0;
	return 0;
}

int sba_flood_feed(struct sba_flood *f, const void *data, size_t len, int64_t now_ms,
		   struct sba_error *err)
{
	const unsigned char *at = data;
	while (len > 0) {
		size_t used;
		int rc = step(f, at, len, now_ms, &used, err);
		if (rc < 0)
			return rc;
		at += used;
		len -= used;
	}
	return 0;
}
