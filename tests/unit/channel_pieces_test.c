/* SPDX-License-Identifier: MIT */
/* Output of a command in pieces, cut at every byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/private.h"

#include <unistd.h>

/* Padding before, between and after. */
static const char stream[] = "\0\0\1\0\0\5hello\2\0\0\2\0\0\0\2\0\0\3err\1\0\0\1!\0";

static int decode(struct sba_pieces *p, const char *data, size_t len, size_t cut,
		  struct sba_buf out[3])
{
	for (size_t at = 0; at < len;) {
		const char *payload;
		size_t payload_len, n = len - at < cut ? len - at : cut;
		int kind = 0;
		struct sba_error err;
		ssize_t took =
			sba_pieces_feed(p, data + at, n, &kind, &payload, &payload_len, &err);
		if (took < 0)
			return (int)took;
		assert_in_range(took, 1, n);
		if (payload_len > 0) {
			assert_in_range(kind, 1, 2);
			sba_buf_put(&out[kind], payload, payload_len);
		}
		at += (size_t)took;
	}
	return 0;
}

static void any_cut_gives_the_same(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < sizeof(stream); cut++) {
		struct sba_buf out[3] = { { .max = 99 }, { .max = 99 }, { .max = 99 } };
		struct sba_pieces p = { 0 };
		assert_int_equal(decode(&p, stream, sizeof(stream) - 1, cut, out), 0);
		assert_true(sba_pieces_at_border(&p));
		assert_string_equal(out[1].data, "hello!");
		assert_int_equal(out[2].len, 5);
		assert_memory_equal(out[2].data, "\0\0err", 5);
		sba_buf_fini(&out[1]);
		sba_buf_fini(&out[2]);
	}
}

static void knows_where_it_may_end(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof(stream); len++) {
		struct sba_buf out[3] = { { .max = 99 }, { .max = 99 }, { .max = 99 } };
		struct sba_pieces p = { 0 };
		bool border = len <= 2 || len == 11 || len == 17 || len == 18 || len == 25 ||
			      len == 30 || len == 31;
		assert_int_equal(decode(&p, stream, len, 99, out), 0);
		assert_int_equal(sba_pieces_at_border(&p), border);
		sba_buf_fini(&out[1]);
		sba_buf_fini(&out[2]);
	}
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = { "\3\0\0\1x", "\xff\0\0\1x", "\1\0\0\0" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		for (size_t cut = 1; cut <= 4; cut++) {
			struct sba_buf out[3] = { { .max = 99 }, { .max = 99 }, { .max = 99 } };
			struct sba_pieces p = { 0 };
			assert_int_equal(decode(&p, bad[i], 4, cut, out), SBA_EPROTO);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_cut_gives_the_same),
		cmocka_unit_test(knows_where_it_may_end),
		cmocka_unit_test(nonsense_is_refused),
	};
	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
