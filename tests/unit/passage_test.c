/* SPDX-License-Identifier: MIT */
/* The room of a connection: as large as what passes, and small when little does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <string.h>

enum { MAX = 256 * 1024, SMALL = 16 * 1024 };

static void it_begins_small(void **state)
{
	(void)state;
	struct sba_passage p = { .max = MAX };
	sba_passage_fit(&p, 0);
	assert_int_equal(p.size, SMALL);
	sba_passage_fit(&p, 100);
	assert_int_equal(p.size, SMALL);
	sba_passage_fini(&p);
	assert_int_equal(p.size, 0);
}

static void it_grows_to_its_ceiling_and_keeps_what_is_in_it(void **state)
{
	(void)state;
	struct sba_passage p = { .max = MAX };
	sba_passage_fit(&p, 0);
	memset(p.data, 'x', p.size);
	for (int i = 0; i < 5; i++)
		sba_passage_fit(&p, p.size);
	assert_int_equal(p.size, MAX);
	for (size_t i = 0; i < SMALL; i++)
		assert_int_equal(p.data[i], 'x');
	sba_passage_fini(&p);
}

static void one_quiet_moment_does_not_shrink_it_but_a_while_does(void **state)
{
	(void)state;
	struct sba_passage p = { .max = MAX };
	for (int i = 0; i < 5; i++)
		sba_passage_fit(&p, p.size);
	for (int i = 0; i < 100; i++) {
		sba_passage_fit(&p, 0);
		sba_passage_fit(&p, SMALL);
	}
	assert_int_equal(p.size, MAX);
	memset(p.data, 'y', 100);
	for (int i = 0; i < 100; i++)
		sba_passage_fit(&p, 100);
	assert_int_equal(p.size, SMALL);
	assert_int_equal(p.data[99], 'y');
	sba_passage_fini(&p);
}

static void a_low_ceiling_holds_from_the_start(void **state)
{
	(void)state;
	struct sba_passage p = { .max = 1000 };
	sba_passage_fit(&p, 0);
	assert_int_equal(p.size, 1000);
	sba_passage_fit(&p, 1000);
	assert_int_equal(p.size, 1000);
	sba_passage_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_begins_small),
		cmocka_unit_test(it_grows_to_its_ceiling_and_keeps_what_is_in_it),
		cmocka_unit_test(one_quiet_moment_does_not_shrink_it_but_a_while_does),
		cmocka_unit_test(a_low_ceiling_holds_from_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
