/* SPDX-License-Identifier: MIT */
/* Which frames of a guest are counted, which are free, which are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/private.h"

#include <string.h>
#include <unistd.h>

struct shape {
	uint32_t len;
	unsigned char type, flags;
	uint32_t stream;
	uint32_t word; /* the payload begins with it */
};

static size_t build(const struct shape *f, unsigned char *to)
{
	memset(to, 0, 9 + f->len);
	to[0] = (unsigned char)(f->len >> 16);
	to[1] = (unsigned char)(f->len >> 8);
	to[2] = (unsigned char)f->len;
	to[3] = f->type;
	to[4] = f->flags;
	for (int i = 0; i < 4; i++) {
		to[5 + i] = (unsigned char)(f->stream >> (24 - 8 * i));
		if (f->len >= 4)
			to[9 + i] = (unsigned char)(f->word >> (24 - 8 * i));
	}
	return 9 + f->len;
}

/* So many of them, each fed in two parts cut at every place in turn. */
static int feed(struct sba_flood *s, const struct shape *f, size_t count, int64_t now)
{
	unsigned char data[256];
	size_t len = build(f, data);
	int rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++) {
		size_t cut = i % (len + 1);
		rc = sba_flood_feed(s, data, cut, now, NULL);
		if (rc == 0)
			rc = sba_flood_feed(s, data + cut, len - cut, now, NULL);
	}
	return rc;
}

static void frames_that_do_no_work_are_counted(void **state)
{
	static const struct shape counted[] = {
		{ 0, NGHTTP2_SETTINGS, 0, 0, 0 },
		{ 0, NGHTTP2_SETTINGS, 1, 0, 0 },
		{ 8, NGHTTP2_PING, 0, 0, 0 },
		{ 8, NGHTTP2_PING, 1, 0, 0 },
		{ 4, NGHTTP2_RST_STREAM, 0, 1, 8 },
		{ 5, NGHTTP2_PRIORITY, 0, 1, 0 },
		{ 0, NGHTTP2_DATA, 0, 1, 0 },
		{ 4, NGHTTP2_WINDOW_UPDATE, 0, 0, 1 },
		{ 4, NGHTTP2_WINDOW_UPDATE, 0, 1, 0 },
		{ 10, NGHTTP2_CONTINUATION, 0, 1, 0 },
		{ 100, 0xbe, 0, 1, 0 },
		{ 0, NGHTTP2_GOAWAY, 0, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(counted); i++) {
		struct sba_flood s = { 0 };
		assert_int_equal(feed(&s, &counted[i], SBA_CHANNEL_CONTROL_MAX, 5000), 0);
		assert_int_equal(feed(&s, &counted[i], 1, 5000), SBA_EPROTO);
	}
}

static void frames_that_work_are_free(void **state)
{
	static const struct shape free_ones[] = {
		{ 10, NGHTTP2_HEADERS, 4, 1, 0 },
		{ 1, NGHTTP2_DATA, 0, 1, 0 },
		{ 200, NGHTTP2_DATA, 0, 1, 0 },
		{ 0, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, 0 },
		{ 4, NGHTTP2_WINDOW_UPDATE, 0, 0, 1024 },
	};
	struct sba_flood s = { 0 };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(free_ones); i++)
		assert_int_equal(feed(&s, &free_ones[i], 5000, 0), 0);
}

static void the_count_begins_anew_after_its_time(void **state)
{
	const struct shape ping = { 8, NGHTTP2_PING, 0, 0, 0 };
	struct sba_flood s = { 0 };
	(void)state;
	for (int64_t round = 0; round < 4; round++)
		assert_int_equal(
			feed(&s, &ping, SBA_CHANNEL_CONTROL_MAX, round * SBA_CHANNEL_CONTROL_MS),
			0);
}

static void what_a_server_may_not_send_is_refused(void **state)
{
	static const struct shape bad[] = {
		{ 10, NGHTTP2_PUSH_PROMISE, 4, 1, 2 },
		{ 10, NGHTTP2_HEADERS, 4, 2, 0 },
		{ 10, NGHTTP2_HEADERS, 4, 0, 0 },
	};
	unsigned char large[9] = { 0, 0x80, 1, NGHTTP2_DATA, 0, 0, 0, 0, 1 };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct sba_flood s = { 0 };
		assert_int_equal(feed(&s, &bad[i], 1, 0), SBA_EPROTO);
	}
	struct sba_flood s = { 0 };
	assert_int_equal(sba_flood_feed(&s, large, sizeof(large), 0, NULL), SBA_EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_do_no_work_are_counted),
		cmocka_unit_test(frames_that_work_are_free),
		cmocka_unit_test(the_count_begins_anew_after_its_time),
		cmocka_unit_test(what_a_server_may_not_send_is_refused),
	};
	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
