/* SPDX-License-Identifier: MIT */
/* A name that one client at a time holds in a sandbox. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live_attack.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sba_sandbox *second_handle(struct sba_sandbox *s)
{
	struct sba_sandbox *other = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, sba_sandbox_info(s)->name, &other, &err) < 0)
		fail_msg("%s", err.text);
	return other;
}

static struct sba_lock *lock(struct sba_sandbox *s, const char *name, int64_t wait_ms)
{
	struct sba_lock *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_lock(s, name, wait_ms, &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static void a_name_is_held_by_one_client_at_a_time(void **state)
{
	(void)state;
	struct sba_lock *l = NULL;
	struct sba_error err = { 0 };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	struct sba_sandbox *other = second_handle(s);
	struct sba_lock *first = lock(s, "turn", 0);
	assert_int_equal(sba_sandbox_lock(other, "a turn", 0, &l, &err), SBA_EINVAL);
	assert_int_equal(sba_sandbox_lock(other, "turn", 0, &l, &err), SBA_EBUSY);
	struct sba_lock *elsewhere = lock(other, "another", 0);
	sba_lock_free(first);
	l = lock(other, "turn", 20000);
	sba_lock_free(l);
	sba_lock_free(elsewhere);
	sba_sandbox_close(other);
	live_remove(s);
}

/* Takes "turn" in the sandbox that is named to it, says so, and keeps it. */
static void hold(int name_fd, int ready_fd)
{
	char name[64] = "";
	struct sba_engine *e = NULL;
	struct sba_sandbox *mine = NULL;
	struct sba_lock *l = NULL;
	if (read(name_fd, name, sizeof(name) - 1) <= 0 || sba_engine_open(NULL, &e, NULL) < 0 ||
	    sba_sandbox_open(e, live.prefix, name, &mine, NULL) < 0 ||
	    sba_sandbox_lock(mine, "turn", 0, &l, NULL) < 0 || write(ready_fd, "x", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

static void a_waiter_gets_the_name_when_the_holder_is_killed(void **state)
{
	(void)state;
	int name[2], ready[2];
	char byte;
	assert_int_equal(pipe(name) | pipe(ready), 0);
	/* Before there is a thread that a child could miss. */
	pid_t pid = fork();
	if (pid == 0) {
		close(live.lifeline);
		hold(name[0], ready[1]);
	}
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	const char *called = sba_sandbox_info(s)->name;
	assert_int_equal(write(name[1], called, strlen(called)), strlen(called));
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct sba_error err = { 0 };
	struct sba_lock *l = NULL;
	int rc = sba_sandbox_lock(s, "turn", 300, &l, &err);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rc, SBA_EBUSY);
	l = lock(s, "turn", 30000);
	sba_lock_free(l);
	close(name[0]);
	close(name[1]);
	close(ready[0]);
	live_remove(s);
}

static void a_command_waits_with_its_input_and_is_canceled_at_once(void **state)
{
	(void)state;
	static const char *const argv[] = { "cat", NULL };
	static char input[200 * 1024];
	struct sba_error err = { 0 };
	struct sba_process *p = NULL;
	struct sba_exit end;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	struct sba_lock *l = lock(s, "turn", 0);
	const struct sba_exec_options o = {
		.argv = argv, .has_stdin = true, .lock = "turn", .lock_wait_ms = 60000
	};
	assert_int_equal(sba_sandbox_exec(s, &o, &p, &err), 0);
	for (size_t at = 0; at < sizeof(input);) {
		ssize_t n = sba_process_write(p, input + at, sizeof(input) - at, &err);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	int64_t began = sba_now_ms();
	sba_process_cancel(p);
	assert_int_equal(sba_process_wait(p, 10000, &end, &err), 0);
	assert_int_equal(end.kind, SBA_WAS_CANCELED);
	assert_true(sba_now_ms() - began < 10000);
	sba_process_free(p);
	sba_lock_free(l);
	live_remove(s);
}

static void a_command_runs_whole_after_it_has_waited(void **state)
{
	(void)state;
	static const char *const argv[] = { "cat", NULL };
	struct sba_error err = { 0 };
	struct sba_process *p = NULL;
	struct sba_exit end;
	struct sba_buf out = SBA_BUF_INIT(1 << 20);
	enum sba_output which;
	const char *data;
	ssize_t n;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	struct sba_lock *l = lock(s, "turn", 0);
	const struct sba_exec_options o = {
		.argv = argv, .has_stdin = true, .lock = "turn", .lock_wait_ms = 60000
	};
	assert_int_equal(sba_sandbox_exec(s, &o, &p, &err), 0);
	assert_int_equal(sba_process_write(p, "hello", 5, &err), 5);
	assert_int_equal(sba_process_close_stdin(p, &err), 0);
	assert_int_equal(sba_process_read(p, 200, &which, &data, &err), SBA_ETIMEOUT);
	sba_lock_free(l);
	while ((n = sba_process_read(p, 20000, &which, &data, &err)) > 0)
		sba_buf_put(&out, data, (size_t)n);
	assert_int_equal(sba_process_wait(p, 20000, &end, &err), 0);
	assert_int_equal(end.kind, SBA_EXITED);
	assert_string_equal(out.data, "hello");
	sba_buf_fini(&out);
	sba_process_free(p);
	live_remove(s);
}

/* While a turn holds its name, and when none does. */
static void what_runs_inside_holds_no_name_of_ours(void **state)
{
	(void)state;
	enum sba_output which;
	const char *data;
	struct sba_error err = { 0 };
	struct sba_lock *none = NULL;
	struct sba_sandbox *s =
		attacked_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	struct sba_sandbox *other = second_handle(s);
	const char *const argv[] = { ATTACKER, "name", "sandbox-agent/turn", "pause", NULL };
	struct sba_process *p = attack_start(s, argv);
	ssize_t n = sba_process_read(p, 20000, &which, &data, &err);
	assert_int_equal(n, strlen("name taken\n"));
	assert_memory_equal(data, "name taken\n", (size_t)n);
	struct sba_lock *l = lock(s, "turn", 0);
	assert_int_equal(sba_sandbox_lock(other, "turn", 200, &none, &err), SBA_EBUSY);
	/* Nor does anything tell where it is. */
	SBA_FREE char *seen = live_sh_out(
		s, "exec 2>/dev/null; stat -c '%u:%g %a' /.sandbox-agent/lock; "
		   "ls /.sandbox-agent/lock; touch /.sandbox-agent/lock/x; "
		   "mv /.sandbox-agent/lock /tmp/l; ls -l /proc/[0-9]*/fd | grep agent/lock; "
		   "grep -a 'agent/lock' /proc/[0-9]*/cmdline /proc/[0-9]*/environ "
		   "/proc/[0-9]*/maps | grep -v grep; true");
	assert_string_equal(seen, "0:0 711\n");
	sba_lock_free(l);
	l = lock(other, "turn", 20000);
	sba_lock_free(l);
	sba_process_free(p);
	sba_sandbox_close(other);
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_name_is_held_by_one_client_at_a_time),
		LIVE_TEST(a_waiter_gets_the_name_when_the_holder_is_killed),
		LIVE_TEST(a_command_waits_with_its_input_and_is_canceled_at_once),
		LIVE_TEST(a_command_runs_whole_after_it_has_waited),
		LIVE_TEST(what_runs_inside_holds_no_name_of_ours),
		cmocka_unit_test(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
