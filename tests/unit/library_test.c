/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded when they are needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

struct table {
	double (*cos)(double x);
	double (*sin)(double x);
};

static const struct sba_library_function functions[] = {
	{ "cos", offsetof(struct table, cos) },
	{ "sin", offsetof(struct table, sin) },
};

static void functions_are_found_by_name(void **state)
{
	(void)state;
	const struct sba_library l = { "libm.so.6", "-", functions, SBA_ARRAY_LEN(functions) };
	struct table t = { NULL, NULL };
	struct sba_error err;
	assert_int_equal(sba_library_load(&l, &t, &err), 0);
	assert_true(t.cos(0) > 0.5);
	assert_true(t.sin(0) < 0.5);
}

static void a_library_that_is_not_there_is_named_with_its_remedy(void **state)
{
	(void)state;
	const struct sba_library l = { "libnotthere.so.9", "install notthere", functions,
				       SBA_ARRAY_LEN(functions) };
	struct table t = { NULL, NULL };
	struct sba_error err = { 0 };
	assert_int_equal(sba_library_load(&l, &t, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "libnotthere.so.9"));
	assert_string_equal(err.hint, "install notthere");
}

static void a_library_without_a_function_is_as_good_as_none(void **state)
{
	(void)state;
	static const struct sba_library_function wanted[] = { { "no_such_function", 0 } };
	const struct sba_library l = { "libm.so.6", "update it", wanted, 1 };
	struct table t = { NULL, NULL };
	struct sba_error err = { 0 };
	assert_int_equal(sba_library_load(&l, &t, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "no_such_function"));
	assert_string_equal(err.hint, "update it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_name),
		cmocka_unit_test(a_library_that_is_not_there_is_named_with_its_remedy),
		cmocka_unit_test(a_library_without_a_function_is_as_good_as_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
