/* SPDX-License-Identifier: MIT */
/* Errors: filled once, wrapped from outside, never longer than they are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <errno.h>
#include <string.h>

static void an_error_says_what_and_why(void **state)
{
	(void)state;
	struct sba_error err = { .http_status = 404, .hint = "old" };
	assert_int_equal(sba_fail(&err, SBA_EREFUSED, "'%s': %d", "x", 3), SBA_EREFUSED);
	assert_int_equal(err.code, SBA_EREFUSED);
	assert_int_equal(err.http_status, 0);
	assert_string_equal(err.text, "'x': 3");
	assert_string_equal(err.hint, "");
	assert_int_equal(sba_fail_errno(&err, SBA_EIO, ENOENT, "open '%s'", "y"), SBA_EIO);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.text, "open 'y': No such file or directory");
}

static void what_is_wrapped_stands_behind(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	sba_fail(&err, SBA_EIO, "inner");
	sba_hint(&err, SBA_EIO, "do %s", "this");
	assert_int_equal(sba_wrap(&err, SBA_EIO, "outer %d", 1), SBA_EIO);
	assert_string_equal(err.text, "outer 1: inner");
	assert_string_equal(err.hint, "do this");
	assert_int_equal(err.code, SBA_EIO);
}

static void nobody_has_to_listen(void **state)
{
	(void)state;
	assert_int_equal(sba_fail(NULL, SBA_EIO, "x"), SBA_EIO);
	assert_int_equal(sba_fail_errno(NULL, SBA_EIO, EPERM, "x"), SBA_EIO);
	assert_int_equal(sba_fail_nomem(NULL), SBA_ENOMEM);
	assert_int_equal(sba_wrap(NULL, -3, "x"), -3);
	assert_int_equal(sba_hint(NULL, -3, "x"), -3);
}

static void long_texts_are_cut_and_ended(void **state)
{
	(void)state;
	struct sba_error err;
	char text[2 * SBA_ERROR_TEXT_MAX];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	sba_fail_errno(&err, SBA_EIO, ENOENT, "%s", text);
	assert_int_equal(strlen(err.text), SBA_ERROR_TEXT_MAX - 1);
	for (int i = 0; i < 10; i++)
		sba_wrap(&err, SBA_EIO, "%s", text);
	assert_int_equal(strlen(err.text), SBA_ERROR_TEXT_MAX - 1);
	sba_hint(&err, SBA_EIO, "%s", text);
	assert_int_equal(strlen(err.hint), SBA_ERROR_HINT_MAX - 1);
}

static void every_code_has_a_name_of_its_own_and_an_exit_status(void **state)
{
	(void)state;
	for (int a = SBA_EBUSY; a <= SBA_OK; a++) {
		const struct sba_code_info *info = sba_code_info(a);
		assert_int_equal(info->code, a);
		assert_int_equal(info->exit_status == 0, a == SBA_OK);
		for (int b = SBA_EBUSY; b < a; b++)
			assert_string_not_equal(info->name, sba_code_info(b)->name);
	}
	assert_int_equal(sba_code_info(-9999)->code, SBA_EIO);
	assert_int_equal(sba_code_info(1)->code, SBA_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_says_what_and_why),
		cmocka_unit_test(what_is_wrapped_stands_behind),
		cmocka_unit_test(nobody_has_to_listen),
		cmocka_unit_test(long_texts_are_cut_and_ended),
		cmocka_unit_test(every_code_has_a_name_of_its_own_and_an_exit_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
