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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_at_every_place_reads_back),
		cmocka_unit_test(what_is_beyond_ascii_stays_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
