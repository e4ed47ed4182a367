/* SPDX-License-Identifier: MIT */
/* An event as a line: whatever the text is, it reads back as it was. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "audit/private.h"

enum { LONG = 26 };

static void reads_back(const char *text)
{
	const struct sba_audit_place at = { .line = 1, .time_ms = 1 };
	const struct sba_event e = { .kind = SBA_EVENT_TEXT, .text = text };
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4096);
	sba_audit_line_event(&b, &at, &e);
	assert_int_equal(b.failed, 0);
	assert_ptr_equal(strchr(b.data, '\n'), b.data + b.len - 1);
	SBA_JSON json_t *j = json_loadb(b.data, b.len, 0, NULL);
	assert_non_null(j);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "payload"), "text")), text);
}

static void every_byte_at_every_place_reads_back(void **state)
{
	(void)state;
	for (int c = 1; c < 0x80; c++) {
		for (int i = 0; i < LONG; i++) {
			char text[LONG + 1];
			memset(text, 'a', LONG);
			text[LONG] = '\0';
			text[i] = (char)c;
			reads_back(text);
			reads_back(text + i);
			text[i + 1] = '\0';
			reads_back(text);
		}
	}
}

static void what_is_beyond_ascii_stays_as_it_is(void **state)
{
	(void)state;
	reads_back("");
	reads_back("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xc2\x80\xc2\xa2\xdf\xbf");
	reads_back("a\xc3\xa4\"\xe2\x82\xac\\\xf0\x9f\x98\x80\n");
}

static void assert_no_better_than_the_parser(const char *text)
{
	SBA_JSON json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);
	if (sba_audit_is_compact(text) && (!j || strpbrk(text, "\r\n")))
		fail_msg("taken for JSON on one line: %s", text);
}

static void what_is_taken_for_json_on_one_line_is_that(void **state)
{
	(void)state;
	static const char *const compact[] = {
		"{\"command\":\"ls -l \\\"a b\\\" \\\\ \\n \\u001b \\u20ac\",\"n\":-12.50}",
		"[[],{},[1,0,-7,true,false,null],{\"a\":{\"b\":[\"\"]}}]",
		"\"text\"",
	};
	static const char bytes[] = "\"\\{}[]:,tfn0123u\n\t\x01\x7f -.eE";
	for (size_t i = 0; i < SBA_ARRAY_LEN(compact); i++) {
		assert_true(sba_audit_is_compact(compact[i]));
		size_t len = strlen(compact[i]);
		for (size_t at = 0; at < len; at++) {
			char text[128];
			memcpy(text, compact[i], len + 1);
			for (const char *c = bytes; *c; c++) {
				text[at] = *c;
				assert_no_better_than_the_parser(text);
			}
			text[at] = '\0';
			assert_no_better_than_the_parser(text);
			assert_no_better_than_the_parser(compact[i] + at);
		}
	}
}

static void what_only_the_parser_can_tell_is_left_to_it(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"{ }",
		"1e400",
		"01",
		"\"\\ud800\"",
		"\"\\u0000\"",
		"{\"a\"}",
		"18446744073709552000",
		"\"\n\"",
		"[1,]",
		"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(texts); i++)
		assert_false(sba_audit_is_compact(texts[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_at_every_place_reads_back),
		cmocka_unit_test(what_is_beyond_ascii_stays_as_it_is),
		cmocka_unit_test(what_is_taken_for_json_on_one_line_is_that),
		cmocka_unit_test(what_only_the_parser_can_tell_is_left_to_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
