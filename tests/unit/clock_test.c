/* SPDX-License-Identifier: MIT */
/* Deadlines that never overflow, and waits that end for the right reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void deadlines_do_not_overflow(void **state)
{
	(void)state;
	assert_true(sba_until_in(INT64_MAX).deadline_ms == SBA_NEVER);
	assert_int_equal(sba_until_left(sba_until_in(INT64_MAX)), -1);
	assert_int_equal(sba_until_left(sba_until_in(INT64_MAX / 2)), INT_MAX);
	assert_int_equal(sba_until_left(sba_until_in(0)), 0);
	assert_int_equal(sba_until_left(sba_until_in(-5)), 0);
	assert_int_equal(sba_until_left((struct sba_until){ INT64_MIN + 1, -1 }), 0);
}

static void the_sooner_of_two_counts_and_the_cancel_stays(void **state)
{
	(void)state;
	const struct sba_until far = { SBA_NEVER, 7 };
	struct sba_until near = sba_until_sooner(far, 60000);
	assert_int_equal(near.cancel_fd, 7);
	assert_true(near.deadline_ms <= sba_now_ms() + 60000);
	assert_true(sba_until_sooner(near, 120000).deadline_ms == near.deadline_ms);
}

static void a_wait_ends_with_what_came(void **state)
{
	(void)state;
	int ends[2];
	struct sba_error err = { 0 };
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(sba_wait_fd(ends[0], POLLIN, sba_until_in(0), &err), SBA_ETIMEOUT);
	assert_int_equal(err.code, SBA_ETIMEOUT);
	assert_int_equal(sba_wait_fd(ends[1], POLLOUT, sba_until_in(10000), NULL), POLLOUT);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(sba_wait_fd(ends[0], POLLIN, sba_until_in(10000), NULL), POLLIN);
	close(ends[1]);
	assert_true(sba_wait_fd(ends[0], POLLIN, sba_until_in(10000), NULL) & POLLHUP);
	close(ends[0]);
}

static void a_cancel_comes_before_what_is_ready_and_before_the_deadline(void **state)
{
	(void)state;
	int ends[2];
	struct sba_until until = { 0, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(sba_until_check(until, NULL), SBA_ETIMEOUT);
	sba_event_fire(until.cancel_fd);
	sba_event_fire(until.cancel_fd);
	assert_int_equal(sba_until_check(until, NULL), SBA_ECANCELED);
	assert_int_equal(sba_wait_fd(ends[1], POLLOUT, until, NULL), SBA_ECANCELED);
	assert_int_equal(sba_wait_fd(-1, 0, until, NULL), SBA_ECANCELED);
	close(ends[0]);
	close(ends[1]);
	close(until.cancel_fd);
}

static void time_left_is_no_reason_to_stop(void **state)
{
	(void)state;
	assert_int_equal(sba_until_check((struct sba_until){ SBA_NEVER, -1 }, NULL), 0);
	assert_int_equal(sba_until_check(sba_until_in(60000), NULL), 0);
	assert_int_equal(sba_wait_fd(-1, 0, sba_until_in(1), NULL), SBA_ETIMEOUT);
}

static void a_time_that_has_no_nanoseconds_becomes_the_nearest(void **state)
{
	(void)state;
	assert_int_equal(sba_time_ns(1, 5), 1000000005);
	assert_int_equal(sba_time_ns(-2, 5), -1999999995);
	assert_int_equal(sba_time_ns(INT64_MAX / 1000000000, 999999999), INT64_MAX);
	assert_int_equal(sba_time_ns(INT64_MAX, 0), INT64_MAX);
	assert_int_equal(sba_time_ns(INT64_MIN, 0), INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines_do_not_overflow),
		cmocka_unit_test(the_sooner_of_two_counts_and_the_cancel_stays),
		cmocka_unit_test(a_wait_ends_with_what_came),
		cmocka_unit_test(a_cancel_comes_before_what_is_ready_and_before_the_deadline),
		cmocka_unit_test(time_left_is_no_reason_to_stop),
		cmocka_unit_test(a_time_that_has_no_nanoseconds_becomes_the_nearest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
