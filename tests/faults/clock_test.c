/* SPDX-License-Identifier: MIT */
/*
 * The wall clock is set while sandboxes live: neither their keepalive nor their lifetime
 * nor a deadline on this side may end early or late by it. It is this machine's clock, so
 * it is moved little and for some seconds, and a process of its own puts it back to where
 * it would be, however this one ends.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	JUMP_S = 60,
	KEEPALIVE_MS = 4000,
	LIFETIME_MS = 9000,
	TIMEOUT_MS = 1500,
	LATE_MS = 15 * 1000, /* what a busy engine may take for its part */
};

static int64_t nanoseconds(clockid_t clock)
{
	struct timespec t;
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int set_wall_clock(int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	return clock_settime(CLOCK_REALTIME, &t);
}

static struct {
	pid_t pid;
	int lifeline;
} keeper;

/* False: we may not set it. */
static bool jump(int seconds)
{
	int ends[2];
	char c;
	int64_t offset = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
	assert_int_equal(pipe(ends), 0);
	keeper.pid = fork();
	if (keeper.pid == 0) {
		close(ends[1]);
		while (read(ends[0], &c, 1) < 0 && errno == EINTR)
			;
		_exit(set_wall_clock(nanoseconds(CLOCK_MONOTONIC) + offset) < 0);
	}
	close(ends[0]);
	keeper.lifeline = ends[1];
	return set_wall_clock(nanoseconds(CLOCK_REALTIME) + seconds * 1000000000LL) == 0;
}

static int put_back(void **state)
{
	int status = 0;
	(void)state;
	if (keeper.pid > 0) {
		close(keeper.lifeline);
		waitpid(keeper.pid, &status, 0);
	}
	keeper.pid = 0;
	return live_test_end(state);
}

static bool one_is_left(void *user)
{
	(void)user;
	return live_container_count() == 2;
}

static void nothing_ends_early_or_late(int seconds)
{
	struct sba_sandbox *idle =
		live_sandbox((struct sba_sandbox_options){ .keepalive_ms = KEEPALIVE_MS });
	struct sba_sandbox *old =
		live_sandbox((struct sba_sandbox_options){ .max_lifetime_ms = LIFETIME_MS });
	struct sba_sandbox *busy = live_sandbox((struct sba_sandbox_options){ 0 });
	const char *const argv[] = { "sleep", "6101", NULL };
	LIVE_RESULT r;
	sba_sandbox_close(idle);
	int64_t began = sba_now_ms();
	if (!jump(seconds)) {
		print_message("the clock may not be set here: %s\n", strerror(errno));
		sba_sandbox_close(old);
		live_remove(busy);
		skip();
	}
	live_exec(busy, &(struct sba_exec_options){ .argv = argv, .timeout_ms = TIMEOUT_MS }, &r);
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	assert_in_range(sba_now_ms() - began, TIMEOUT_MS, TIMEOUT_MS + LATE_MS);
	if (sba_now_ms() - began < KEEPALIVE_MS - 500)
		assert_int_equal(live_container_count(), 6);
	live_await(one_is_left, NULL, LIFETIME_MS + LATE_MS);
	assert_true(sba_now_ms() - began >= KEEPALIVE_MS);
	sba_sandbox_close(old);
	live_remove(busy);
}

static void a_clock_set_forward_ends_nothing_early(void **state)
{
	(void)state;
	nothing_ends_early_or_late(JUMP_S);
}

static void a_clock_set_back_ends_nothing_late(void **state)
{
	(void)state;
	nothing_ends_early_or_late(-JUMP_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_clock_set_forward_ends_nothing_early,
						live_test_begin, put_back),
		cmocka_unit_test_setup_teardown(a_clock_set_back_ends_nothing_late, live_test_begin,
						put_back),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
