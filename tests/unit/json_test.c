/* SPDX-License-Identifier: MIT */
/* JSON: what is no document, and short ways into one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
	json_t *j = NULL;
	struct sba_error err = { 0 };
	if (sba_json_parse(text, strlen(text), "it", &j, &err) < 0)
		fail_msg("%s", err.text);
	return j;
}

static void what_is_no_json_is_told_with_its_place(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"{",
		"{} x",
		"{\"a\":1,\"a\":2}",
		"[1,]",
		"\"\xff\"",
		"\"\\ud800\"",
		"NaN",
		"\xEF\xBB\xBF{}",
		"{'a':1}",
		"{\"a\\u0000b\":1}",
		"\"a\\u0000b\"",
		"99999999999999999999",
		"truex",
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct sba_error err = { 0 };
		json_t *j = NULL;
		if (sba_json_parse(bad[i], strlen(bad[i]), "it", &j, &err) == 0)
			fail_msg("'%s' is taken", bad[i]);
		assert_null(j);
		assert_int_equal(err.code, SBA_EPROTO);
		assert_non_null(strstr(err.text, "it: not JSON: line 1"));
	}
}

static void a_document_may_be_any_value_and_have_no_end_of_its_own(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	json_t *j = NULL;
	assert_int_equal(sba_json_parse("12 garbage", 2, "it", &j, &err), 0);
	assert_int_equal(json_integer_value(j), 12);
	json_decref(j);
	SBA_JSON json_t *text = parse("\"\xE2\x80\xA8\"");
	assert_true(json_is_string(text));
	char deep[5000];
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(sba_json_parse(deep, strlen(deep), "it", &j, &err), SBA_EPROTO);
}

static void paths_lead_through_objects_and_arrays(void **state)
{
	(void)state;
	SBA_JSON json_t *j =
		parse("{\"a\":{\"b\":[{\"c\":\"x\"},{\"c\":7,\"t\":true}]},\"n\":null}");
	assert_string_equal(sba_json_str(j, "a.b.#0.c"), "x");
	assert_int_equal(sba_json_int(j, "a.b.#1.c", -1), 7);
	assert_true(sba_json_bool(j, "a.b.#1.t", false));
	assert_true(json_is_null(sba_json_get(j, "n")));
}

static void what_is_missing_or_of_another_type_is_not_there(void **state)
{
	(void)state;
	SBA_JSON json_t *j = parse("{\"a\":{\"b\":[1]},\"s\":\"x\",\"f\":1.5,\"\":{\"\":2}}");
	static const char *const missing[] = { "b",     "a.c", "a.b.#1", "a.b.#9999999999999999999",
					       "a.b.c", "s.x", "a..b",   "#0" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(missing); i++) {
		assert_null(sba_json_get(j, missing[i]));
		assert_null(sba_json_str(j, missing[i]));
		assert_int_equal(sba_json_int(j, missing[i], 5), 5);
		assert_true(sba_json_bool(j, missing[i], true));
	}
	assert_null(sba_json_str(j, "a"));
	assert_int_equal(sba_json_int(j, "s", 5), 5);
	assert_int_equal(sba_json_int(j, "f", 5), 5);
	assert_int_equal(sba_json_int(j, ".", 5), 2);
	assert_null(sba_json_get(NULL, "a"));
}

static void any_bytes_become_a_string(void **state)
{
	(void)state;
	SBA_JSON json_t *valid = sba_json_text("a\0b", 3), *bad = sba_json_text("\xff!", 2),
			*none = sba_json_text("", 0);
	assert_int_equal(json_string_length(valid), 3);
	assert_string_equal(json_string_value(bad), "\xEF\xBF\xBD!");
	assert_string_equal(json_string_value(none), "");
}

static void a_dump_is_compact_and_reads_back(void **state)
{
	(void)state;
	SBA_JSON json_t *j = parse(" { \"a\" : [ 1 , \"\\n\" ] } "), *word = parse("\"x\"");
	SBA_FREE char *text = sba_json_dump(j), *bare = sba_json_dump(word);
	assert_string_equal(text, "{\"a\":[1,\"\\n\"]}");
	assert_string_equal(bare, "\"x\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_json_is_told_with_its_place),
		cmocka_unit_test(a_document_may_be_any_value_and_have_no_end_of_its_own),
		cmocka_unit_test(paths_lead_through_objects_and_arrays),
		cmocka_unit_test(what_is_missing_or_of_another_type_is_not_there),
		cmocka_unit_test(any_bytes_become_a_string),
		cmocka_unit_test(a_dump_is_compact_and_reads_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
