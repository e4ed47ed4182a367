/* SPDX-License-Identifier: MIT */
/* What a SKILL.md must begin with, and what its folder may be called. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/skill.h"

#include <string.h>

static void assert_head_(const char *text, const char *name, const char *description, int line)
{
	struct sba_skill_head h = { 0 };
	struct sba_error err = { 0 };
	if (sba_skill_head_parse(text, strlen(text), &h, &err) < 0)
		fail_msg("line %d: %s", line, err.text);
	if (strcmp(h.name, name) != 0 || strcmp(h.description, description) != 0)
		fail_msg("line %d: '%s' '%s'", line, h.name, h.description);
	sba_skill_head_fini(&h);
}
#define assert_head(text, name, description) assert_head_(text, name, description, __LINE__)

static void name_and_description_are_found(void **state)
{
	(void)state;
	assert_head("---\nname: a\ndescription: what it is\n---\nbody\n", "a", "what it is");
	assert_head("---\r\nname: a\r\ndescription: b\r\n---\r\n", "a", "b");
	assert_head("\xef\xbb\xbf---\nname: a\ndescription: b\n---", "a", "b");
	assert_head("---\nlicense: x\ndescription: b: c # d\nname:   a  \n---\n", "a", "b: c # d");
	assert_head("---\nname: \"a b\"\ndescription: 'it''s'\n---\n", "a b", "it''s");
	assert_head("---\nname: a\ndescription: >-\n  two\n  lines\nother: x\n---\n", "a",
		    "two lines");
	assert_head("---\nname: a\ndescription:\n  below\n---\nname: not this\n", "a", "below");
	assert_head("---\nmetadata:\n  name: not this\nname: a\ndescription: b\n---\n", "a", "b");
}

static void what_is_missing_is_told(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{ "", "front matter" },
		{ "name: a\ndescription: b\n", "front matter" },
		{ "---\nname: a\ndescription: b\n", "front matter" },
		{ "# Title\n---\nname: a\ndescription: b\n---\n", "front matter" },
		{ "---\nname: a\n---\ndescription: b\n", "no description" },
		{ "---\ndescription: b\n---\n", "no name" },
		{ "---\nname:\ndescription: b\n---\n", "no name" },
		{ "---\nname: ''\ndescription: b\n---\n", "no name" },
		{ "---\nname: a\ndescription: |\n---\n", "no description" },
		{ "---\nnames: a\ndescription: b\n---\n", "no name" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct sba_skill_head h = { 0 };
		struct sba_error err = { 0 };
		int rc = sba_skill_head_parse(bad[i][0], strlen(bad[i][0]), &h, &err);
		if (rc != SBA_EINVAL || !strstr(err.text, bad[i][1]))
			fail_msg("%zu: %d %s", i, rc, err.text);
		assert_null(h.name);
	}
}

static void bytes_that_are_no_text_are_mended(void **state)
{
	(void)state;
	assert_head("---\nname: a\xff\ndescription: b\n---\n", "a\xef\xbf\xbd", "b");
	struct sba_skill_head h = { 0 };
	static const char nul[] = "---\nname: a\ndescription: \0\n---\n";
	assert_int_equal(sba_skill_head_parse(nul, sizeof(nul) - 1, &h, NULL), SBA_EINVAL);
}

static void a_folder_may_be_called_anything_that_is_a_name(void **state)
{
	(void)state;
	char many[SBA_SKILL_NAME_MAX + 2];
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_true(sba_skill_name_valid("release notes"));
	assert_true(sba_skill_name_valid("-rf"));
	assert_true(sba_skill_name_valid("größe $(id) 'x'"));
	assert_false(sba_skill_name_valid(""));
	assert_false(sba_skill_name_valid("."));
	assert_false(sba_skill_name_valid(".."));
	assert_false(sba_skill_name_valid(".hidden"));
	assert_false(sba_skill_name_valid("a/b"));
	assert_false(sba_skill_name_valid("a\nb"));
	assert_false(sba_skill_name_valid("a\xff"));
	assert_false(sba_skill_name_valid(many));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_and_description_are_found),
		cmocka_unit_test(what_is_missing_is_told),
		cmocka_unit_test(bytes_that_are_no_text_are_mended),
		cmocka_unit_test(a_folder_may_be_called_anything_that_is_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
