/* SPDX-License-Identifier: MIT */
/* Numbers, times, sizes and names as people write them; near misses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <string.h>

static void a_word_is_of_letters_digits_and_what_else_is_allowed(void **state)
{
	(void)state;
	assert_true(sba_is_word("a", "", 1));
	assert_true(sba_is_word("Az09_.-", "_.-", 7));
	assert_true(sba_is_word(".a", ".", 2));
	assert_false(sba_is_word("a.b", "_-", 10));
	assert_false(sba_is_word("a b", "_.-", 10));
	assert_false(sba_is_word("a/b", "_.-", 10));
	assert_false(sba_is_word("a\nb", "_.-", 10));
	assert_false(sba_is_word("\xc3\xa4", "_.-", 10));
}

static void nothing_too_much_and_options_are_no_words(void **state)
{
	(void)state;
	assert_false(sba_is_word(NULL, "", 10));
	assert_false(sba_is_word("", "", 10));
	assert_true(sba_is_word("abc", "", 3));
	assert_false(sba_is_word("abcd", "", 3));
	assert_false(sba_is_word("-a", "-", 10));
	assert_true(sba_is_word("a-", "-", 10));
}

static void a_whole_number_is_strict_and_within_its_bounds(void **state)
{
	(void)state;
	static const char *const none[] = { "",    "-",   "+1",
					    " 1",  "1 ",  "0x1",
					    "1.0", "--1", "99999999999999999999" };
	int64_t n = 7;
	assert_int_equal(sba_parse_int("-12", -20, 20, &n), 0);
	assert_int_equal(n, -12);
	assert_int_equal(sba_parse_int("21", -20, 20, &n), SBA_EINVAL);
	assert_int_equal(sba_parse_int("-21", -20, 20, &n), SBA_EINVAL);
	for (size_t i = 0; i < SBA_ARRAY_LEN(none); i++)
		assert_int_equal(sba_parse_int(none[i], INT64_MIN, INT64_MAX, &n), SBA_EINVAL);
	assert_int_equal(n, -12);
}

static void times_and_sizes_have_units(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ms, bytes; /* -1: none */
	} cases[] = {
		{ "90", 90000, 90 },
		{ "0", 0, 0 },
		{ "1.5h", 5400000, -1 },
		{ "250ms", 250, -1 },
		{ "2D", 172800000, -1 },
		{ "1.5g", -1, 3LL << 29 },
		{ "2GiB", -1, 2LL << 30 },
		{ "64k", -1, 65536 },
		{ "0.1m", 6000, 104858 },
		{ "1.", -1, -1 },
		{ ".5s", -1, -1 },
		{ "1,5h", -1, -1 },
		{ "-1s", -1, -1 },
		{ "1e3", -1, -1 },
		{ "0x10", -1, -1 },
		{ "1 h", -1, -1 },
		{ "", -1, -1 },
		{ "86400", 86400000, 86400 },       /* C-44: no limit of ours below it */
		{ "99999999999999999999", -1, -1 }, /* C-44: refused, not wrapped */
		{ "0.0000000000000000000000001s", -1, -1 },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		int64_t ms = -1, bytes = -1;
		int rc = sba_parse_duration(cases[i].text, &ms);
		assert_int_equal(rc, cases[i].ms < 0 ? SBA_EINVAL : 0);
		assert_int_equal(ms, cases[i].ms);
		rc = sba_parse_size(cases[i].text, &bytes);
		assert_int_equal(rc, cases[i].bytes < 0 ? SBA_EINVAL : 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void a_decimal_ends_where_its_digits_do(void **state)
{
	(void)state;
	double d = 0;
	assert_string_equal(sba_parse_decimal("0.5h", &d), "h");
	assert_true(d == 0.5);
	assert_string_equal(sba_parse_decimal("12", &d), "");
	assert_true(d == 12);
	assert_string_equal(sba_parse_decimal("1,5", &d), ",5");
	assert_null(sba_parse_decimal("", &d));
	assert_null(sba_parse_decimal("1.", &d));
	assert_null(sba_parse_decimal(".5", &d));
	assert_null(sba_parse_decimal("nan", &d));
}

static void what_is_shown_is_short(void **state)
{
	(void)state;
	char b[32];
	assert_string_equal(sba_format_duration(900, b, sizeof(b)), "0.9s");
	assert_string_equal(sba_format_duration(59999, b, sizeof(b)), "59s");
	assert_string_equal(sba_format_duration(65000, b, sizeof(b)), "1m 5s");
	assert_string_equal(sba_format_duration(3900000, b, sizeof(b)), "1h 5m");
	assert_string_equal(sba_format_duration(90000000, b, sizeof(b)), "1d 1h");
	assert_string_equal(sba_format_size(412, b, sizeof(b)), "412 B");
	assert_string_equal(sba_format_size(1234567, b, sizeof(b)), "1.2 MB");
	assert_string_equal(sba_format_size(999999, b, sizeof(b)), "1.0 MB");
}

static void a_typo_is_near_and_another_word_is_not(void **state)
{
	(void)state;
	static const char *const words[] = { "claude", "codex", "pi", "opencode" };
	assert_int_equal(sba_nearest("cluade", words, 4), 0);
	assert_int_equal(sba_nearest("open-code", words, 4), 3);
	assert_int_equal(sba_nearest("pj", words, 4), 2);
	assert_int_equal(sba_nearest("docker", words, 4), -1);
	char huge[200];
	memset(huge, 'c', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(sba_nearest(huge, words, 4), -1);
}

static void only_utf8_of_the_standard_is_valid(void **state)
{
	(void)state;
	static const char *const good[] = {
		"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"
	};
	static const char *const bad[] = { "\x80",         "\xc0\xaf",     "\xc3",
					   "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
					   "\xff",         "a\xe2\x82" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(good); i++)
		assert_true(sba_utf8_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_false(sba_utf8_valid(bad[i], strlen(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_number_is_strict_and_within_its_bounds),
		cmocka_unit_test(times_and_sizes_have_units),
		cmocka_unit_test(a_decimal_ends_where_its_digits_do),
		cmocka_unit_test(what_is_shown_is_short),
		cmocka_unit_test(a_typo_is_near_and_another_word_is_not),
		cmocka_unit_test(only_utf8_of_the_standard_is_valid),
		cmocka_unit_test(a_word_is_of_letters_digits_and_what_else_is_allowed),
		cmocka_unit_test(nothing_too_much_and_options_are_no_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
