/* SPDX-License-Identifier: MIT */
/* Programs of this host: how they are started, and waiting for their end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct sba_spawn s = {
		.argv = argv, .in = SBA_SPAWN_NULL, .out = SBA_SPAWN_OURS, .err = SBA_SPAWN_OURS
	};
	pid_t pid;
	alarm(30);
	assert_int_equal(sba_child_spawn(&s, &pid), 0);
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

/* ---- starting ---- */

static void spawn_and_read(struct sba_spawn s, const char *script, struct sba_buf *ret)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	int ends[2], status = -1;
	pid_t pid;
	char piece[4096];
	ssize_t n;
	alarm(30);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	if (!s.argv)
		s.argv = argv;
	s.out = ends[1];
	assert_int_equal(sba_child_spawn(&s, &pid), 0);
	close(ends[1]);
	while ((n = read(ends[0], piece, sizeof(piece))) > 0)
		sba_buf_put(ret, piece, (size_t)n);
	close(ends[0]);
	assert_int_equal(sba_child_wait(pid, sba_until_in(10000), &status, NULL), 0);
	assert_int_equal(status, 0);
	sba_buf_putc(ret, '\0');
}

static void streams_that_are_not_given_are_empty(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1 << 16);
	spawn_and_read((struct sba_spawn){ .in = SBA_SPAWN_NULL, .err = SBA_SPAWN_NULL },
		       "cat; echo lost >&2; echo done", &said);
	assert_string_equal(said.data, "done\n");
}

static void the_environment_is_the_one_that_is_given(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1 << 16);
	char path[4096], only[] = "ONLY=this";
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	char *const env[] = { only, path, NULL };
	spawn_and_read(
		(struct sba_spawn){ .env = env, .in = SBA_SPAWN_NULL, .err = SBA_SPAWN_OURS },
		"echo $ONLY${HOME-none}", &said);
	assert_string_equal(said.data, "thisnone\n");
}

static unsigned long mask_of(const struct sba_buf *status, const char *key)
{
	const char *at = strstr(status->data, key);
	assert_non_null(at);
	return strtoul(at + strlen(key), NULL, 16);
}

/* A program of ours that ignores SIGPIPE or blocks SIGTERM must not spread that. */
static void signals_are_at_their_defaults_but_those_that_are_kept_away(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1 << 16), kept = SBA_BUF_INIT(1 << 16);
	static const int interrupt[] = { SIGINT, 0 };
	/* Not by a shell: some take every signal. */
	static const char *const argv[] = { "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status",
					    NULL };
	struct sba_spawn s = { .argv = argv, .in = SBA_SPAWN_NULL, .err = SBA_SPAWN_OURS };
	sigset_t term, before;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	spawn_and_read(s, NULL, &said);
	s.blocked = interrupt;
	spawn_and_read(s, NULL, &kept);
	signal(SIGPIPE, old);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(mask_of(&said, "SigBlk:\t") & (1 << (SIGTERM - 1)), 0);
	assert_int_equal(mask_of(&said, "SigIgn:\t") & (1 << (SIGPIPE - 1)), 0);
	assert_int_equal(mask_of(&kept, "SigBlk:\t") & 0x7fffffff, 1 << (SIGINT - 1));
}

static void a_session_of_its_own_has_not_our_terminal(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf ours = SBA_BUF_INIT(1 << 16), own = SBA_BUF_INIT(1 << 16);
	static const char script[] = "cut -d ' ' -f 6 /proc/$$/stat";
	char here[32];
	struct sba_spawn s = { .in = SBA_SPAWN_NULL, .err = SBA_SPAWN_OURS };
	snprintf(here, sizeof(here), "%d\n", (int)getsid(0));
	spawn_and_read(s, script, &ours);
	assert_string_equal(ours.data, here);
	s.new_session = true;
	spawn_and_read(s, script, &own);
	assert_string_not_equal(own.data, here);
}

static void a_program_that_is_not_there_is_an_errno(void **state)
{
	(void)state;
	static const char *const argv[] = { "no-such-program-here", NULL };
	const struct sba_spawn s = {
		.argv = argv, .in = SBA_SPAWN_NULL, .out = SBA_SPAWN_NULL, .err = SBA_SPAWN_NULL
	};
	pid_t pid = -7;
	int status = 0, e = sba_child_spawn(&s, &pid);
	if (e == 0) { /* as valgrind has it: found out by the child */
		assert_int_equal(sba_child_wait(pid, sba_until_in(10000), &status, NULL), 0);
		assert_int_equal(WEXITSTATUS(status), 127);
		return;
	}
	assert_int_equal(e, ENOENT);
	assert_int_equal(pid, -7);
}

static void a_killed_child_is_gone(void **state)
{
	(void)state;
	pid_t pid = start("exec sleep 60");
	sba_child_kill(pid);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_child_is_told_with_its_status),
		cmocka_unit_test(a_child_that_lives_on_is_not_waited_for_beyond_the_deadline),
		cmocka_unit_test(a_wish_to_stop_ends_the_wait),
		cmocka_unit_test(what_is_no_child_of_ours_is_an_error),
		cmocka_unit_test(streams_that_are_not_given_are_empty),
		cmocka_unit_test(the_environment_is_the_one_that_is_given),
		cmocka_unit_test(signals_are_at_their_defaults_but_those_that_are_kept_away),
		cmocka_unit_test(a_session_of_its_own_has_not_our_terminal),
		cmocka_unit_test(a_program_that_is_not_there_is_an_errno),
		cmocka_unit_test(a_killed_child_is_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
