/* SPDX-License-Identifier: MIT */
/* The engine's stream frames, fed in pieces of every size. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "engine/engine.h"

#include <unistd.h>

static const char stream[] = "\1\0\0\0\0\0\0\5hello\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\3err"
			     "\1\0\0\0\0\0\0\1!";

/* Payload of stream i goes to out[i]. */
static int decode(struct sba_frames *f, const char *data, size_t len, size_t piece,
		  struct sba_buf *out)
{
	for (size_t at = 0; at < len;) {
		const char *payload;
		size_t payload_len, n = len - at < piece ? len - at : piece;
		int type;
		struct sba_error err;
		ssize_t took =
			sba_frames_feed(f, data + at, n, &type, &payload, &payload_len, &err);
		if (took < 0)
			return (int)took;
		assert_in_range(took, 1, n);
		assert_in_range(type, 0, 3);
		sba_buf_put(&out[type], payload, payload_len);
		at += (size_t)took;
	}
	return 0;
}

static void any_cut_gives_the_same(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(stream); piece++) {
		struct sba_buf out[4] = {
			{ .max = 99 }, { .max = 99 }, { .max = 99 }, { .max = 99 }
		};
		struct sba_frames f = { 0 };
		assert_int_equal(decode(&f, stream, sizeof(stream) - 1, piece, out), 0);
		assert_true(sba_frames_at_border(&f));
		assert_string_equal(out[1].data, "hello!");
		assert_string_equal(out[2].data, "err");
		for (int i = 0; i < 4; i++)
			sba_buf_fini(&out[i]);
	}
}

/* The borders of `stream`, where alone it may end. */
static void knows_where_it_may_end(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof(stream); len++) {
		struct sba_buf out[4] = {
			{ .max = 99 }, { .max = 99 }, { .max = 99 }, { .max = 99 }
		};
		struct sba_frames f = { 0 };
		assert_int_equal(decode(&f, stream, len, 100, out), 0);
		bool border = len == 0 || len == 13 || len == 21 || len == 32 || len == 41;
		assert_int_equal(sba_frames_at_border(&f), border);
		for (int i = 0; i < 4; i++)
			sba_buf_fini(&out[i]);
	}
}

static void refuse(const char head[8])
{
	struct sba_frames f = { 0 };
	const char *payload;
	size_t payload_len;
	int type;
	struct sba_error err;
	assert_int_equal(sba_frames_feed(&f, head, 8, &type, &payload, &payload_len, &err),
			 SBA_EPROTO);
}

static void refuses_what_is_no_frame(void **state)
{
	(void)state;
	refuse("\4\0\0\0\0\0\0\1");
	refuse("\1\1\0\0\0\0\0\1");
	refuse("\1\0\0\1\0\0\0\1");
	refuse("HTTP/1.1");
	refuse("\1\0\0\0\xff\xff\xff\xff");
	refuse("\1\0\0\0\1\0\0\1"); /* one byte more than SBA_FRAME_MAX */
}

static int limit_time(void **state)
{
	(void)state;
	alarm(10);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_cut_gives_the_same),
		cmocka_unit_test(knows_where_it_may_end),
		cmocka_unit_test(refuses_what_is_no_frame),
	};
	return cmocka_run_group_tests(tests, limit_time, NULL);
}
