/* SPDX-License-Identifier: MIT */
/* What the guest says of itself, well and badly said, and which of two is older. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/private.h"

#include <string.h>

static int parse(const char *text, struct sba_channel_hello *h)
{
	struct sba_error err;
	return sba_hello_parse(text, strlen(text), h, &err);
}

static void all_that_is_said_is_kept(void **state)
{
	struct sba_channel_hello h;
	(void)state;
	assert_int_equal(parse("2\nprogram 1.20.3\nguest 0123456789ab\nfirst sidecar\n"
			       "landlock 7\n",
			       &h),
			 0);
	assert_int_equal(h.landlock, 7);
	assert_int_equal(h.protocol, 2);
	assert_string_equal(h.program, "1.20.3");
	assert_string_equal(h.guest, "0123456789ab");
	assert_true(h.sidecar_first);
}

static void what_is_not_said_is_empty(void **state)
{
	struct sba_channel_hello h;
	(void)state;
	assert_int_equal(parse("1\n", &h), 0);
	assert_string_equal(h.program, "");
	assert_string_equal(h.guest, "");
	assert_false(h.sidecar_first);
	assert_int_equal(h.landlock, 0);
	assert_int_equal(parse("7\nlandlock x\nfirst other\nfuture a b c\n\nguests x\n", &h), 0);
	assert_int_equal(h.protocol, 7);
	assert_false(h.sidecar_first);
	assert_string_equal(h.guest, "");
}

static void values_that_are_too_long_or_unprintable_are_dropped(void **state)
{
	struct sba_channel_hello h;
	(void)state;
	assert_int_equal(parse("2\nprogram 0123456789012345678901234567890123456789\n"
			       "guest \033[2Jx\nfirst sidecars\n",
			       &h),
			 0);
	assert_string_equal(h.program, "");
	assert_string_equal(h.guest, "");
	assert_false(h.sidecar_first);
}

static void nonsense_is_refused_and_writes_nothing(void **state)
{
	static const char *const bad[] = {
		"", "\n", "x\n", "2", "-1\n", "0\n", "2 \n", "99999999999999999999\n", "2\nguest",
	};
	struct sba_channel_hello h = { .protocol = 5 };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i], &h), SBA_EPROTO);
	assert_int_equal(sba_hello_parse("2\0\n", 3, &h, NULL), SBA_EPROTO);
	assert_int_equal(h.protocol, 5);
}

static int order(int64_t protocol, const char *program)
{
	struct sba_channel_hello h = { .protocol = protocol };
	snprintf(h.program, sizeof(h.program), "%s", program);
	return sba_channel_hello_order(&h);
}

static void protocol_counts_before_program(void **state)
{
	(void)state;
	assert_int_equal(order(SBA_PROTOCOL_VERSION, SBA_VERSION), 0);
	assert_int_equal(order(SBA_PROTOCOL_VERSION - 1, "99.0.0"), -1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION + 1, "0.0.1"), 1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION, "0.0.99"), -1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION, "99.0.0"), 1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION, ""), -1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION, "x.y"), -1);
}

/* Two clients that each replace what is older than theirs come to rest. */
static void numbers_are_compared_as_numbers(void **state)
{
	(void)state;
	assert_int_equal(order(SBA_PROTOCOL_VERSION, "0.1000.0"), 1);
	assert_int_equal(order(SBA_PROTOCOL_VERSION, "0.1.0.7"),
			 order(SBA_PROTOCOL_VERSION, "0.1"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_said_is_kept),
		cmocka_unit_test(what_is_not_said_is_empty),
		cmocka_unit_test(values_that_are_too_long_or_unprintable_are_dropped),
		cmocka_unit_test(nonsense_is_refused_and_writes_nothing),
		cmocka_unit_test(protocol_counts_before_program),
		cmocka_unit_test(numbers_are_compared_as_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
