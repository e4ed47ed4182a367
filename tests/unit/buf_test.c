/* SPDX-License-Identifier: MIT */
/* The growing buffer: its ceiling, what sticks, and what is appended how. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void it_grows_to_its_ceiling_and_not_beyond(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1000);
	for (int i = 0; i < 1000; i++)
		sba_buf_putc(&b, (char)('a' + i % 26));
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.data[1000], '\0');
	assert_int_equal(b.failed, 0);
	sba_buf_putc(&b, 'x');
	assert_int_equal(b.failed, SBA_ELIMIT);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.data[999], 'a' + 999 % 26);
}

static void a_failure_sticks_until_a_reset(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4);
	struct sba_error err = { 0 };
	sba_buf_puts(&b, "12345");
	sba_buf_puts(&b, "1");
	sba_buf_printf(&b, "%d", 2);
	assert_null(sba_buf_reserve(&b, 0));
	assert_int_equal(b.len, 0);
	assert_int_equal(sba_buf_check(&b, "it", &err), SBA_ELIMIT);
	assert_string_equal(err.text, "it is larger than 4 bytes");
	assert_null(sba_buf_take(&b));
	sba_buf_reset(&b);
	sba_buf_puts(&b, "1234");
	assert_int_equal(sba_buf_check(&b, "it", &err), 0);
	assert_string_equal(b.data, "1234");
}

static void a_length_that_wraps_around_is_too_large(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SIZE_MAX);
	sba_buf_puts(&b, "some");
	assert_null(sba_buf_reserve(&b, SIZE_MAX - 2));
	assert_int_equal(b.failed, SBA_ELIMIT);
	sba_buf_reset(&b);
	assert_null(sba_buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.failed, SBA_ENOMEM);
}

static void nothing_is_a_string_when_it_is_taken(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(10);
	SBA_FREE char *empty = sba_buf_take(&b);
	assert_string_equal(empty, "");
	sba_buf_puts(&b, "once");
	SBA_FREE char *text = sba_buf_take(&b);
	assert_string_equal(text, "once");
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	sba_buf_puts(&b, "more");
	assert_string_equal(b.data, "more");
}

static void the_front_can_be_dropped(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(10);
	sba_buf_drop(&b, 3);
	sba_buf_puts(&b, "abcdef");
	sba_buf_drop(&b, 0);
	sba_buf_drop(&b, 2);
	assert_string_equal(b.data, "cdef");
	sba_buf_drop(&b, 99);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
}

static void reserved_room_is_written_by_the_caller(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(100);
	char *at = sba_buf_reserve(&b, 64);
	assert_non_null(at);
	assert_int_equal(b.len, 0);
	memcpy(at, "xyz", 4);
	b.len += 3;
	sba_buf_put(&b, NULL, 0);
	assert_string_equal(b.data, "xyz");
}

static void reserved_room_that_nobody_writes_to_leaves_a_string(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(100);
	char *at = sba_buf_reserve(&b, 64);
	assert_non_null(at);
	assert_string_equal(b.data, "");
}

static void a_long_format_fits_or_fails_whole(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(300);
	sba_buf_printf(&b, "%s%0250d", "n=", 7);
	assert_int_equal(b.len, 252);
	assert_int_equal(b.data[251], '7');
	sba_buf_printf(&b, "%049d", 1);
	assert_int_equal(b.failed, SBA_ELIMIT);
	assert_int_equal(b.len, 252);
}

static void all_but_unreserved_bytes_are_percent_encoded(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1000);
	sba_buf_put_url(&b, "aZ09-._~ +/%&?#\n\xC3\xBC\xFF");
	assert_string_equal(b.data, "aZ09-._~%20%2B%2F%25%26%3F%23%0A%C3%BC%FF");
}

static void bad_utf8_becomes_one_mark_for_each_sequence(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain \xE2\x82\xAC", "plain \xE2\x82\xAC" },
		{ "\xFF", "\xEF\xBF\xBD" },
		{ "a\xC3", "a\xEF\xBF\xBD" },
		{ "\xE2\x82z", "\xEF\xBF\xBDz" },
		{ "\xC0\x80"
		  "b",
		  "\xEF\xBF\xBD"
		  "b" },
		{ "\xED\xA0\x80", "\xEF\xBF\xBD" },
		{ "", "" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(100);
		sba_buf_puts(&b, "");
		sba_buf_put_utf8(&b, cases[i].in, strlen(cases[i].in));
		assert_string_equal(b.data, cases[i].out);
		assert_true(sba_utf8_valid(b.data, b.len));
	}
}

static void what_moves_a_cursor_or_turns_text_round_is_shown(void **state)
{
	(void)state;
	static const struct {
		const char *in, *lines, *line;
	} cases[] = {
		{ "a\tb\nc", "a\tb\nc", "a\\tb\\nc" },
		{ "\x1b[2J\r\x7f", "\\x1b[2J\\r\\x7f", "\\x1b[2J\\r\\x7f" },
		{ "\xC2\x9B"
		  "31m",
		  "\\x9b31m", "\\x9b31m" },
		{ "\xFFok", "\\xffok", "\\xffok" },
		{ "\xE2\x80\xAE"
		  "x\xE2\x81\xA6",
		  "\\u202ex\\u2066", "\\u202ex\\u2066" },
		{ "\xF0\x9F\xA6\x8A \xC3\xA4", "\xF0\x9F\xA6\x8A \xC3\xA4",
		  "\xF0\x9F\xA6\x8A \xC3\xA4" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].in);
		SBA_FREE char *lines = sba_visible(cases[i].in, len, false);
		SBA_FREE char *line = sba_visible(cases[i].in, len, true);
		assert_string_equal(lines, cases[i].lines);
		assert_string_equal(line, cases[i].line);
	}
	SBA_FREE char *nul = sba_visible("a\0b", 3, true);
	assert_string_equal(nul, "a\\x00b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows_to_its_ceiling_and_not_beyond),
		cmocka_unit_test(a_failure_sticks_until_a_reset),
		cmocka_unit_test(a_length_that_wraps_around_is_too_large),
		cmocka_unit_test(nothing_is_a_string_when_it_is_taken),
		cmocka_unit_test(the_front_can_be_dropped),
		cmocka_unit_test(reserved_room_is_written_by_the_caller),
		cmocka_unit_test(reserved_room_that_nobody_writes_to_leaves_a_string),
		cmocka_unit_test(a_long_format_fits_or_fails_whole),
		cmocka_unit_test(all_but_unreserved_bytes_are_percent_encoded),
		cmocka_unit_test(bad_utf8_becomes_one_mark_for_each_sequence),
		cmocka_unit_test(what_moves_a_cursor_or_turns_text_round_is_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
