/* SPDX-License-Identifier: MIT */
/*
 * When a sandbox ends: the reaper's rules, fed with made-up scans and times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "channel/protocol.h"
#include "guest/verdict.h"

static const struct sba_guest_stat reaper_itself = { .pid = 1, .start = 1, .state = 'R' };
static const struct sba_guest_stat main_process = { .pid = 7, .start = 50, .state = 'S' };

/* Of a sandbox that its maker has used already. */
static struct sba_reaper new_reaper(int64_t keepalive, int64_t max_lifetime)
{
	struct sba_guest_limits limits = { keepalive, max_lifetime };
	struct sba_reaper reaper;

	sba_reaper_init(&reaper, &limits, (struct sba_reaper_time){ 1000, 1000 });
	reaper.used = true;
	return reaper;
}

static struct sba_reaper_time at(int64_t ms)
{
	return (struct sba_reaper_time){ 1000 + ms, 1000 + ms };
}

static int scan(struct sba_reaper *reaper, int64_t ms, const struct sba_guest_stat *seen, size_t n)
{
	sba_reaper_begin_scan(reaper);
	sba_reaper_see(&reaper_itself, reaper);
	for (size_t i = 0; i < n; i++)
		sba_reaper_see(&seen[i], reaper);
	return sba_reaper_judge(reaper, true, at(ms));
}

static int blind_scan(struct sba_reaper *reaper, int64_t ms)
{
	sba_reaper_begin_scan(reaper);
	return sba_reaper_judge(reaper, false, at(ms));
}

static int main_with(struct sba_reaper *reaper, int64_t ms, struct sba_guest_stat other)
{
	struct sba_guest_stat seen[] = { main_process, other };

	return scan(reaper, ms, seen, 2);
}

static struct sba_guest_stat command_in(char state)
{
	return (struct sba_guest_stat){ .pid = 9, .start = 60, .state = state };
}

static void unused_sandbox_ends_after_its_keepalive(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, 4999, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, 5000, &main_process, 1), SBA_REAPER_KEEPALIVE);
}

static void a_short_keepalive_waits_for_the_first_use(void **state)
{
	struct sba_reaper reaper = new_reaper(1, 0);
	struct sba_reaper used = reaper;

	(void)state;
	reaper.used = used.used = false;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, SBA_REAPER_FIRST_MS - 1, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, SBA_REAPER_FIRST_MS, &main_process, 1),
			 SBA_REAPER_KEEPALIVE);
	assert_int_equal(scan(&used, 0, &main_process, 1), 0);
	assert_int_equal(main_with(&used, 5000, command_in('S')), 0);
	assert_int_equal(scan(&used, 5999, &main_process, 1), 0);
	assert_int_equal(scan(&used, 6000, &main_process, 1), SBA_REAPER_KEEPALIVE);
}

static void command_in_progress_renews_the_keepalive(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	for (const char *s = "RSDI"; *s; s++) {
		reaper = new_reaper(5, 0);
		assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
		assert_int_equal(main_with(&reaper, 6000, command_in(*s)), 0);
		assert_int_equal(scan(&reaper, 10999, &main_process, 1), 0);
		assert_int_equal(scan(&reaper, 11000, &main_process, 1), SBA_REAPER_KEEPALIVE);
	}
}

static void stopped_traced_and_dead_renew_nothing(void **state)
{
	(void)state;
	for (const char *s = "TtZXx"; *s; s++) {
		struct sba_reaper reaper = new_reaper(5, 0);

		assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
		assert_int_equal(main_with(&reaper, 5000, command_in(*s)), SBA_REAPER_KEEPALIVE);
	}
}

static void processes_with_a_parent_inside_renew_nothing(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);
	struct sba_guest_stat inner = { .pid = 9, .ppid = 7, .start = 60, .state = 'R' };

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(main_with(&reaper, 5000, inner), SBA_REAPER_KEEPALIVE);
}

static void a_session_that_the_main_process_started_renews_the_keepalive(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);
	struct sba_guest_stat session = {
		.pid = 9, .ppid = main_process.pid, .pgrp = 9, .start = 60, .state = 'S'
	};
	struct sba_guest_stat waits = session, stopped = session, others = session;

	(void)state;
	waits.pgrp = main_process.pid;
	stopped.state = 'T';
	others.ppid++;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(main_with(&reaper, 5000, session), 0);
	assert_int_equal(main_with(&reaper, 10000, waits), SBA_REAPER_KEEPALIVE);
	assert_int_equal(main_with(&reaper, 10000, stopped), SBA_REAPER_KEEPALIVE);
	assert_int_equal(main_with(&reaper, 10000, others), SBA_REAPER_KEEPALIVE);
}

static void command_seen_by_the_second_look_wins(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, 5000, &main_process, 1), SBA_REAPER_KEEPALIVE);
	assert_int_equal(main_with(&reaper, 5001, command_in('R')), 0);
}

static void oldest_process_is_the_main_one(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);
	struct sba_guest_stat first_scan[] = {
		{ .pid = 3, .start = 90, .state = 'S' },
		{ .pid = 20, .start = 50, .state = 'S' },
		{ .pid = 9, .start = 50, .state = 'S' },
	};
	struct sba_guest_stat without_main[] = { first_scan[0], first_scan[1] };

	(void)state;
	assert_int_equal(scan(&reaper, 0, first_scan, 3), 0);
	assert_int_equal(scan(&reaper, 4000, first_scan, 3), 0);
	assert_int_equal(scan(&reaper, 8000, first_scan, 3), 0);
	assert_int_equal(scan(&reaper, 8001, without_main, 2), SBA_REAPER_MAIN_GONE);
}

static void end_of_the_main_process_ends_the_sandbox(void **state)
{
	struct sba_guest_stat zombie = main_process;
	struct sba_guest_stat reused_pid = main_process;
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	zombie.state = 'Z';
	reused_pid.start++;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, 1, NULL, 0), SBA_REAPER_MAIN_GONE);
	assert_int_equal(scan(&reaper, 1, &zombie, 1), SBA_REAPER_MAIN_GONE);
	assert_int_equal(scan(&reaper, 1, &reused_pid, 1), SBA_REAPER_MAIN_GONE);
}

static void stopped_main_process_is_still_there(void **state)
{
	struct sba_guest_stat stopped = main_process;
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	stopped.state = 'T';
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(scan(&reaper, 1, &stopped, 1), 0);
}

static void sandbox_that_never_begins_ends_after_a_minute(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	assert_int_equal(scan(&reaper, 59999, NULL, 0), 0);
	assert_int_equal(scan(&reaper, 60000, NULL, 0), SBA_REAPER_NEVER_BEGAN);
}

static void lifetime_ends_even_a_busy_or_blind_sandbox(void **state)
{
	struct sba_reaper reaper = new_reaper(0, 100);

	(void)state;
	assert_int_equal(main_with(&reaper, 99999, command_in('R')), 0);
	assert_int_equal(main_with(&reaper, 100000, command_in('R')), SBA_REAPER_LIFETIME);
	assert_int_equal(blind_scan(&reaper, 100000), SBA_REAPER_LIFETIME);
}

static void suspended_host_ages_the_sandbox_but_does_not_idle_it(void **state)
{
	struct sba_reaper reaper = new_reaper(10, 100);
	struct sba_reaper_time woken = { .monotonic = 1500, .boottime = 1000 + 99000 };

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	sba_reaper_begin_scan(&reaper);
	sba_reaper_see(&main_process, &reaper);
	assert_int_equal(sba_reaper_judge(&reaper, true, woken), 0);
	woken.boottime += 1000;
	assert_int_equal(sba_reaper_judge(&reaper, true, woken), SBA_REAPER_LIFETIME);
}

static void zero_means_never(void **state)
{
	struct sba_reaper reaper = new_reaper(0, 0);

	(void)state;
	assert_int_equal(scan(&reaper, INT64_C(1) << 50, &main_process, 1), 0);
}

static void failed_scan_is_neither_use_nor_rest(void **state)
{
	struct sba_reaper reaper = new_reaper(5, 0);

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(blind_scan(&reaper, 6000), 0);
	assert_int_equal(scan(&reaper, 6001, &main_process, 1), SBA_REAPER_KEEPALIVE);
}

static void ten_seconds_of_failed_scans_end_the_sandbox(void **state)
{
	struct sba_reaper reaper = new_reaper(0, 0);

	(void)state;
	assert_int_equal(scan(&reaper, 0, &main_process, 1), 0);
	assert_int_equal(blind_scan(&reaper, 100), 0);
	assert_int_equal(blind_scan(&reaper, 10099), 0);
	assert_int_equal(blind_scan(&reaper, 10100), SBA_REAPER_TAMPERED);
}

static void one_good_scan_ends_the_blindness(void **state)
{
	struct sba_reaper reaper = new_reaper(0, 0);

	(void)state;
	assert_int_equal(blind_scan(&reaper, 0), 0);
	assert_int_equal(scan(&reaper, 9000, &main_process, 1), 0);
	assert_int_equal(blind_scan(&reaper, 9500), 0);
	assert_int_equal(blind_scan(&reaper, 19000), 0);
	assert_int_equal(blind_scan(&reaper, 19500), SBA_REAPER_TAMPERED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unused_sandbox_ends_after_its_keepalive),
		cmocka_unit_test(a_short_keepalive_waits_for_the_first_use),
		cmocka_unit_test(command_in_progress_renews_the_keepalive),
		cmocka_unit_test(stopped_traced_and_dead_renew_nothing),
		cmocka_unit_test(processes_with_a_parent_inside_renew_nothing),
		cmocka_unit_test(a_session_that_the_main_process_started_renews_the_keepalive),
		cmocka_unit_test(command_seen_by_the_second_look_wins),
		cmocka_unit_test(oldest_process_is_the_main_one),
		cmocka_unit_test(end_of_the_main_process_ends_the_sandbox),
		cmocka_unit_test(stopped_main_process_is_still_there),
		cmocka_unit_test(sandbox_that_never_begins_ends_after_a_minute),
		cmocka_unit_test(lifetime_ends_even_a_busy_or_blind_sandbox),
		cmocka_unit_test(suspended_host_ages_the_sandbox_but_does_not_idle_it),
		cmocka_unit_test(zero_means_never),
		cmocka_unit_test(failed_scan_is_neither_use_nor_rest),
		cmocka_unit_test(ten_seconds_of_failed_scans_end_the_sandbox),
		cmocka_unit_test(one_good_scan_ends_the_blindness),
	};

	alarm(10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
