/* SPDX-License-Identifier: MIT */
/* Waiting for the end of a program that we started. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t start(const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	pid_t pid;
	alarm(30);
	assert_int_equal(posix_spawnp(&pid, "sh", NULL, NULL, (char **)(uintptr_t)argv, environ),
			 0);
	return pid;
}

static void end(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	assert_int_equal(sba_child_wait(pid, sba_until_in(10000), &status, NULL), 0);
	assert_true(WIFSIGNALED(status));
}

static void the_end_of_a_child_is_told_with_its_status(void **state)
{
	(void)state;
	int status = 0;
	assert_int_equal(sba_child_wait(start("exit 7"), sba_until_in(10000), &status, NULL), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_child_that_lives_on_is_not_waited_for_beyond_the_deadline(void **state)
{
	(void)state;
	int status = -1;
	pid_t pid = start("exec sleep 60");
	assert_int_equal(sba_child_wait(pid, sba_until_in(30), &status, NULL), SBA_ETIMEOUT);
	assert_int_equal(status, -1);
	end(pid);
}

static void a_wish_to_stop_ends_the_wait(void **state)
{
	(void)state;
	int status;
	struct sba_until until = { SBA_NEVER, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	pid_t pid = start("exec sleep 60");
	sba_event_fire(until.cancel_fd);
	assert_int_equal(sba_child_wait(pid, until, &status, NULL), SBA_ECANCELED);
	close(until.cancel_fd);
	end(pid);
}

static void what_is_no_child_of_ours_is_an_error(void **state)
{
	(void)state;
	int status;
	struct sba_error err = { 0 };
	assert_int_equal(sba_child_wait(1, sba_until_in(10000), &status, &err), SBA_EIO);
	assert_int_equal(err.code, SBA_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_child_is_told_with_its_status),
		cmocka_unit_test(a_child_that_lives_on_is_not_waited_for_beyond_the_deadline),
		cmocka_unit_test(a_wish_to_stop_ends_the_wait),
		cmocka_unit_test(what_is_no_child_of_ours_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
