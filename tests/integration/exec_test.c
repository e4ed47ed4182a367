/* SPDX-License-Identifier: MIT */
/* Commands in a real sandbox: streams, statuses, and how they end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One for all tests here that leave it as it was. */
static struct sba_sandbox *box;

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	struct sba_sandbox_options o = { .prefix = live.prefix,
					 .image = live.image,
					 .keepalive_ms = 10 * 60 * 1000 };
	struct sba_error err = { 0 };
	int rc = sba_sandbox_create(live.engine, &o, &box, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	return rc;
}

static void exec_argv(const char *const *argv, struct live_result *r)
{
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .timeout_ms = 60000 }, r);
}

#define EXEC(r, ...) exec_argv((const char *const[]){ __VA_ARGS__, NULL }, r)

static void stdout_and_stderr_come_apart(void **state)
{
	(void)state;
	LIVE_RESULT r;
	live_sh(box, "echo out; echo err >&2; exit 5", &r);
	live_assert_exit(&r, 5);
	assert_string_equal(r.out.data, "out\n");
	assert_string_equal(r.errout.data, "err\n");
}

static void every_byte_comes_through_on_both_streams(void **state)
{
	(void)state;
	LIVE_RESULT r;
	/* All of 0..255, the NUL and what resembles our records among them. */
	live_sh(box,
		"i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %03o $i)\"; i=$((i+1)); done "
		">/tmp/all; cat /tmp/all; cat /tmp/all >&2; printf '\\0sba-run:0000' ; "
		"printf '\\0sba-run:' >&2",
		&r);
	live_assert_exit(&r, 0);
	assert_int_equal(r.out.len, 256 + 13);
	assert_int_equal(r.errout.len, 256 + 9);
	for (size_t i = 0; i < 256; i++) {
		assert_int_equal((unsigned char)r.out.data[i], i);
		assert_int_equal((unsigned char)r.errout.data[i], i);
	}
	assert_memory_equal(r.out.data + 256, "\0sba-run:0000", 13);
}

/* ---- a lot of bytes ---- */

enum { LOT = 64 * 1024 * 1024 };

static unsigned char pattern(size_t i)
{
	return (unsigned char)(i * 2654435761U >> 13);
}

static size_t write_some(struct sba_process *p, size_t sent, const unsigned char *data)
{
	struct sba_error err = { 0 };
	while (sent < LOT) {
		ssize_t n = sba_process_write(p, data + sent, LOT - sent, &err);
		assert_string_equal(err.text, "");
		assert_true(n >= 0);
		if (n == 0)
			break;
		sent += (size_t)n;
	}
	return sent;
}

static void a_lot_goes_through_cat_both_ways_at_once(void **state)
{
	(void)state;
	const char *const argv[] = { "cat", NULL };
	struct sba_exec_options o = { .argv = argv, .has_stdin = true };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	unsigned char *data = malloc(LOT);
	assert_non_null(data);
	for (size_t i = 0; i < LOT; i++)
		data[i] = pattern(i);
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	size_t sent = 0, came = 0;
	bool closed = false;
	for (;;) {
		enum sba_output which;
		const char *piece;
		sent = write_some(p, sent, data);
		if (sent == LOT && !closed) {
			closed = true;
			assert_int_equal(sba_process_close_stdin(p, &err), 0);
		}
		ssize_t n = sba_process_read(p, closed ? -1 : 5, &which, &piece, &err);
		if (n == SBA_ETIMEOUT)
			continue;
		if (n < 0)
			fail_msg("%s", err.text);
		if (n == 0)
			break;
		assert_true(came + (size_t)n <= LOT);
		assert_memory_equal(piece, data + came, (size_t)n);
		came += (size_t)n;
	}
	assert_int_equal(came, LOT);
	struct sba_exit end;
	assert_int_equal(sba_process_wait(p, -1, &end, &err), 0);
	assert_int_equal(sba_exit_status(&end), 0);
	sba_process_free(p);
	free(data);
}

static int count_output(void *user, enum sba_output which, const char *data, size_t len,
			struct sba_error *err)
{
	size_t *counts = user;
	(void)data;
	(void)err;
	counts[which] += len;
	return 0;
}

/* What it says while it is still being told is not lost. */
static void a_conversation_is_whole_both_ways(void **state)
{
	(void)state;
	enum { LEN = 6 << 20 };
	static const char *const argv[] = { "tee", "/dev/stderr", NULL };
	const struct sba_exec_options o = { .argv = argv, .has_stdin = true, .timeout_ms = 60000 };
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	struct sba_error err = { 0 };
	size_t counts[3] = { 0 };
	SBA_FREE char *data = calloc(1, LEN);
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	assert_int_equal(sba_process_converse(p, data, LEN, count_output, counts, &err), 0);
	assert_int_equal(sba_process_wait(p, -1, &end, &err), 0);
	sba_process_free(p);
	assert_int_equal(sba_exit_status(&end), 0);
	assert_int_equal(counts[SBA_STDOUT], LEN);
	assert_int_equal(counts[SBA_STDERR], LEN);
}

/* C-05. */
static void input_for_a_command_that_does_not_read_is_no_failure(void **state)
{
	(void)state;
	const char *const argv[] = { "true", NULL };
	struct sba_exec_options o = { .argv = argv, .has_stdin = true };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	static const char zeros[65536];
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	for (int i = 0; i < 64; i++)
		assert_true(sba_process_write(p, zeros, sizeof(zeros), &err) >= 0);
	struct sba_exit end;
	assert_int_equal(sba_process_wait(p, 20000, &end, &err), 0);
	assert_int_equal(sba_exit_status(&end), 0);
	sba_process_free(p);
}

static void without_input_stdin_is_at_its_end(void **state)
{
	(void)state;
	LIVE_RESULT r;
	EXEC(&r, "cat");
	live_assert_exit(&r, 0);
	assert_int_equal(r.out.len, 0);
}

/* ---- statuses ---- */

static void statuses_of_the_command_are_its_own(void **state)
{
	(void)state;
	static const int codes[] = { 0, 1, 3, 124, 125, 126, 127, 130, 137, 255 };
	for (size_t i = 0; i < SBA_ARRAY_LEN(codes); i++) {
		LIVE_RESULT r;
		char script[32];
		snprintf(script, sizeof(script), "exit %d", codes[i]);
		live_sh(box, script, &r);
		assert_int_equal(r.rc, 0);
		assert_int_equal(r.exit.kind, SBA_EXITED);
		assert_int_equal(r.exit.number, codes[i]);
	}
}

static void a_signal_is_told_as_one(void **state)
{
	(void)state;
	LIVE_RESULT r;
	live_sh(box, "kill -9 $$", &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_SIGNALED);
	assert_int_equal(r.exit.number, 9);
	assert_int_equal(sba_exit_status(&r.exit), 137);
}

static void a_missing_command_is_not_found(void **state)
{
	(void)state;
	LIVE_RESULT r;
	EXEC(&r, "no-such-command-at-all", "x");
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_NOT_FOUND);
	assert_int_equal(r.out.len + r.errout.len, 0);
}

static void a_missing_path_is_not_found(void **state)
{
	(void)state;
	LIVE_RESULT r;
	EXEC(&r, "/no/such/path");
	assert_int_equal(r.exit.kind, SBA_NOT_FOUND);
}

static void what_is_not_executable_cannot_be_run(void **state)
{
	(void)state;
	LIVE_RESULT file, folder;
	EXEC(&file, "/etc/passwd");
	assert_int_equal(file.rc, 0);
	assert_int_equal(file.exit.kind, SBA_CANNOT_RUN);
	EXEC(&folder, "/etc");
	assert_int_equal(folder.exit.kind, SBA_CANNOT_RUN);
	assert_int_equal(folder.exit.number, EACCES);
}

static void a_missing_workdir_is_told_as_such(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "pwd", NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .workdir = "/no/such" }, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_NO_WORKDIR);
	assert_int_equal(r.exit.number, ENOENT);
}

static void a_workdir_under_proc_is_refused(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "pwd", NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .workdir = "/proc/self/fd" }, &r);
	assert_int_equal(r.rc, SBA_EREFUSED);
}

static void an_unknown_user_is_named(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "id", NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .user = "nobody-here" }, &r);
	assert_int_equal(r.rc, SBA_ENOTFOUND);
	assert_non_null(strstr(r.err.text, "nobody-here"));
}

static void a_user_by_number_needs_no_passwd_line(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "id", "-u", NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .user = "4711:4712" }, &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "4711\n");
}

/* C-95: the engine says "/", where he may not write. */
static void a_user_without_a_passwd_line_has_a_home_to_write_in(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "sh", "-c",
				     "echo x >\"$HOME/f\" && cat ~/f && stat -c %u:%a \"$HOME\"",
				     NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .user = "4713:4713" }, &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "x\n4713:700\n");
}

static void values_of_the_environment_may_be_anything(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = { "sh", "-c", "printf '%s|%s|%s' \"$A\" \"$B\" \"$PATH\"",
				     NULL };
	const char *const env[] = { "A=one\ntwo\n", "B==\"'\\ \xff", "A=three\nfour", NULL };
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .env = env }, &r);
	live_assert_exit(&r, 0);
	assert_true(sba_starts_with(r.out.data, "three\nfour|=\"'\\ \xff|/"));
}

static void an_argument_may_be_a_megabyte(void **state)
{
	(void)state;
	LIVE_RESULT r;
	/* The kernel's own limit for one string is 128 KiB: that is an error of
	 * the command's start, told as such. */
	char *big = malloc(1024 * 1024 + 1);
	assert_non_null(big);
	memset(big, 'x', 1024 * 1024);
	big[100 * 1024] = '\0';
	EXEC(&r, "printf", "%s", big);
	live_assert_exit(&r, 0);
	assert_int_equal(r.out.len, 100 * 1024);
	live_result_fini(&r);
	big[100 * 1024] = 'x';
	big[1024 * 1024] = '\0';
	EXEC(&r, "printf", "%s", big);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_CANNOT_RUN);
	assert_int_equal(r.exit.number, E2BIG);
	free(big);
}

/* ---- the end that we make ---- */

static void a_deadline_ends_the_whole_tree_and_keeps_the_output(void **state)
{
	(void)state;
	LIVE_RESULT r;
	const char *const argv[] = {
		"sh", "-c",
		"trap '' TERM; echo before; (trap '' TERM; setsid sleep 5151) & "
		"(setsid setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 5152; done') & "
		"while :; do sleep 5153; done",
		NULL
	};
	int64_t began = sba_now_ms();
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .timeout_ms = 1000 }, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	assert_string_equal(r.out.data, "before\n");
	assert_true(sba_now_ms() - began < 8000);
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 515"));
}

/* C-08 */
static void a_deadline_ends_a_command_that_has_input_too(void **state)
{
	(void)state;
	static const char *const argv[] = { "sleep", "5171", NULL };
	const struct sba_exec_options o = { .argv = argv, .has_stdin = true, .timeout_ms = 1000 };
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	assert_int_equal(sba_process_write(p, "hello", 5, &err), 5);
	assert_int_equal(sba_process_wait(p, 30000, &end, &err), 0);
	assert_int_equal(end.kind, SBA_TIMED_OUT);
	sba_process_free(p);
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 5171"));
}

/* C-07. */
static void a_background_child_does_not_hold_us(void **state)
{
	(void)state;
	LIVE_RESULT r;
	int64_t began = sba_now_ms();
	live_sh(box, "sleep 5161 & echo started", &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "started\n");
	assert_true(sba_now_ms() - began < 5000);
}

struct canceling {
	struct sba_process *process;
};

static void *cancel_it(void *user)
{
	struct canceling *c = user;
	sba_process_cancel(c->process);
	return NULL;
}

static void another_thread_may_cancel(void **state)
{
	(void)state;
	const char *const argv[] = { "sh", "-c", "echo on; exec sleep 5171", NULL };
	struct canceling c = { 0 };
	struct sba_error err = { 0 };
	struct sba_exit end;
	enum sba_output which;
	const char *data;
	pthread_t thread;
	assert_int_equal(
		sba_sandbox_exec(box, &(struct sba_exec_options){ .argv = argv }, &c.process, &err),
		0);
	assert_int_equal(sba_process_read(c.process, 20000, &which, &data, &err), 3);
	assert_int_equal(pthread_create(&thread, NULL, cancel_it, &c), 0);
	assert_int_equal(sba_process_wait(c.process, 20000, &end, &err), 0);
	pthread_join(thread, NULL);
	assert_int_equal(end.kind, SBA_WAS_CANCELED);
	sba_process_free(c.process);
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 5171"));
}

static void a_closed_handle_ends_its_command(void **state)
{
	(void)state;
	const char *const argv[] = { "sleep", "5181", NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	const char *id = sba_sandbox_container(box);
	assert_int_equal(
		sba_sandbox_exec(box, &(struct sba_exec_options){ .argv = argv }, &p, &err), 0);
	live_await_inside(id, "sleep 5181", true, 10000);
	sba_process_free(p);
	live_await_inside(id, "sleep 5181", false, 10000);
}

static void a_detached_command_outlives_its_handle_until_stop(void **state)
{
	(void)state;
	const char *const argv[] = { "sleep", "5191", NULL };
	const char *const missing[] = { "no-such-command", NULL };
	struct sba_exec_options o = { .argv = argv, .detach = true };
	struct sba_process *p = NULL;
	struct sba_exit end;
	struct sba_error err = { 0 };
	bool ended = false;
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	assert_int_equal(sba_process_wait(p, -1, &end, &err), 0);
	assert_int_equal(end.kind, SBA_DETACHED);
	sba_process_free(p);
	assert_true(live_runs_inside(sba_sandbox_container(box), "sleep 5191"));
	assert_int_equal(sba_sandbox_stop(box, &ended, &err), 0);
	assert_true(ended);
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 5191"));
	o.argv = missing;
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	assert_int_equal(sba_process_wait(p, -1, &end, &err), 0);
	assert_int_equal(end.kind, SBA_NOT_FOUND);
	sba_process_free(p);
}

static void signals_and_a_terminal_reach_the_command(void **state)
{
	(void)state;
	const char *const argv[] = { "sh", "-c",
				     "trap 'echo got; exit 9' USR1; stty size; "
				     "while :; do sleep 0.1; done",
				     NULL };
	struct sba_exec_options o = { .argv = argv, .tty = true, .rows = 33, .columns = 77 };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	struct sba_exit end;
	enum sba_output which;
	const char *data;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(4096);
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	while (!out.data || !strchr(out.data, '\n')) {
		ssize_t n = sba_process_read(p, 20000, &which, &data, &err);
		assert_true(n > 0);
		sba_buf_put(&out, data, (size_t)n);
	}
	assert_string_equal(out.data, "33 77\r\n");
	assert_int_equal(sba_process_signal(p, 10, &err), 0);
	assert_int_equal(sba_process_wait(p, 20000, &end, &err), 0);
	assert_int_equal(sba_exit_status(&end), 9);
	sba_process_free(p);
}

static void a_fork_bomb_ends_at_its_deadline(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .pids = 64 });
	LIVE_RESULT bomb;
	const char *const argv[] = { "sh", "-c", "b() { b | b & }; (b) & while :; do :; done",
				     NULL };
	int64_t began = sba_now_ms();
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .timeout_ms = 2000 }, &bomb);
	assert_true(sba_now_ms() - began < 25000);
	if (bomb.rc == 0)
		assert_int_equal(bomb.exit.kind, SBA_TIMED_OUT);
	else
		assert_int_equal(bomb.rc, SBA_EBROKEN);
	live_remove(s);
}

/* One more command that stays: how it went. */
static bool fits_one_more(struct sba_sandbox *s)
{
	const char *const argv[] = { "sleep", "5201", NULL };
	struct sba_exec_options o = { .argv = argv, .detach = true };
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	struct sba_error err = { 0 };
	int rc = sba_sandbox_exec(s, &o, &p, &err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, &err);
	sba_process_free(p);
	if (rc == 0 && end.kind == SBA_DETACHED)
		return true;
	if (rc == 0)
		assert_int_equal(end.kind, SBA_NO_PROCESS);
	else if (rc != SBA_EBROKEN)
		fail_msg("%s", err.text);
	return false;
}

static void a_full_process_limit_is_told_as_such(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .pids = 16 });
	int n = 0;
	while (n < 40 && fits_one_more(s))
		n++;
	assert_in_range(n, 1, 39);
	live_remove(s);
}

static void out_of_memory_is_told_as_such(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .memory = 32 * 1024 * 1024 });
	LIVE_RESULT r, after;
	live_sh(s, "a=0123456789abcdef; while :; do a=$a$a; done", &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_OUT_OF_MEMORY);
	assert_int_equal(sba_exit_status(&r.exit), 137);
	live_sh(s, "echo alive", &after);
	live_assert_exit(&after, 0);
	live_remove(s);
}

#define HOG "sh -c 'a=0123456789abcdef; while :; do a=$a$a; done'"

static void a_child_that_ran_out_of_memory_is_told_though_its_shell_lives(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .memory = 32 * 1024 * 1024 });
	LIVE_RESULT r, by_exec, after;
	live_sh(s, HOG "; echo went on", &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "went on\n");
	assert_int_equal(r.exit.kind, SBA_EXITED);
	assert_int_equal(r.exit.oom_kills, 1);
	/* By an exec of its own as well. */
	const char *const argv[] = { "sh", "-c", HOG "; exit 3", NULL };
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .user = "0" }, &by_exec);
	live_assert_exit(&by_exec, 3);
	assert_int_equal(by_exec.exit.oom_kills, 1);
	live_sh(s, "true", &after);
	assert_int_equal(after.exit.oom_kills, 0);
	struct sba_sandbox_limits limits;
	assert_int_equal(sba_sandbox_limits(s, &limits, NULL), 0);
	assert_int_equal(limits.memory, 32 * 1024 * 1024);
	live_remove(s);
}

static void a_child_that_found_no_room_is_told_though_its_shell_lives(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .pids = 16 });
	LIVE_RESULT r, after;
	live_sh(s,
		"(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 1 & done) "
		"2>/dev/null; exit 0",
		&r);
	live_assert_exit(&r, 0);
	assert_in_range(r.exit.pids_refused, 1, 1000);
	assert_int_equal(r.exit.oom_kills, 0);
	sba_sandbox_stop(s, NULL, NULL);
	live_sh(s, "true", &after);
	assert_int_equal(after.exit.pids_refused, 0);
	live_remove(s);
}

/* Before its end, and from another command on the same channel. */
static bool is_told(void *user)
{
	int64_t oom_kills, pids_refused;
	sba_process_losses(user, &oom_kills, &pids_refused);
	return oom_kills == 1 && pids_refused == 0;
}

static void a_running_command_hears_of_the_death_beside_it(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .memory = 32 * 1024 * 1024 });
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	const char *const argv[] = { "sleep", "6091", NULL };
	assert_int_equal(sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err),
			 0);
	assert_false(is_told(p));
	free(live_sh_out(s, HOG " 2>/dev/null; true"));
	live_await(is_told, p, 5000);
	sba_process_free(p);
	live_remove(s);
}

static void only_the_shared_sandbox_is_left_and_then_nothing(void **state)
{
	assert_int_equal(live_container_count(), 2);
	live_remove(box);
	live_nothing_is_left(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(stdout_and_stderr_come_apart),
		LIVE_STEP(every_byte_comes_through_on_both_streams),
		LIVE_STEP(a_lot_goes_through_cat_both_ways_at_once),
		LIVE_STEP(a_conversation_is_whole_both_ways),
		LIVE_STEP(input_for_a_command_that_does_not_read_is_no_failure),
		LIVE_STEP(without_input_stdin_is_at_its_end),
		LIVE_STEP(statuses_of_the_command_are_its_own),
		LIVE_STEP(a_signal_is_told_as_one),
		LIVE_STEP(a_missing_command_is_not_found),
		LIVE_STEP(a_missing_path_is_not_found),
		LIVE_STEP(what_is_not_executable_cannot_be_run),
		LIVE_STEP(a_missing_workdir_is_told_as_such),
		LIVE_STEP(a_workdir_under_proc_is_refused),
		LIVE_STEP(an_unknown_user_is_named),
		LIVE_STEP(a_user_by_number_needs_no_passwd_line),
		LIVE_STEP(a_user_without_a_passwd_line_has_a_home_to_write_in),
		LIVE_STEP(values_of_the_environment_may_be_anything),
		LIVE_STEP(an_argument_may_be_a_megabyte),
		LIVE_STEP(a_deadline_ends_the_whole_tree_and_keeps_the_output),
		LIVE_STEP(a_deadline_ends_a_command_that_has_input_too),
		LIVE_STEP(a_background_child_does_not_hold_us),
		LIVE_STEP(another_thread_may_cancel),
		LIVE_STEP(a_closed_handle_ends_its_command),
		LIVE_STEP(a_detached_command_outlives_its_handle_until_stop),
		LIVE_STEP(signals_and_a_terminal_reach_the_command),
		LIVE_STEP(a_fork_bomb_ends_at_its_deadline),
		LIVE_STEP(a_full_process_limit_is_told_as_such),
		LIVE_STEP(out_of_memory_is_told_as_such),
		LIVE_STEP(a_child_that_ran_out_of_memory_is_told_though_its_shell_lives),
		LIVE_STEP(a_child_that_found_no_room_is_told_though_its_shell_lives),
		LIVE_STEP(a_running_command_hears_of_the_death_beside_it),
		LIVE_STEP(only_the_shared_sandbox_is_left_and_then_nothing),
	};
	return live_run(tests, begin, live_end);
}
