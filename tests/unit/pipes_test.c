/* SPDX-License-Identifier: MIT */
/* A command that has descriptors: what the library does between them and its caller. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/backend.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"

/* The command is this test: the other ends of its descriptors, and what it was asked. */
struct command {
	int in, out, err, ended;
	bool over;
	struct sba_exit exit;
	unsigned signals, kills, frees;
	int last_signal;
	bool ends_by_signal; /* a signal is its end */
};

static void end_command(struct command *c, enum sba_exit_kind kind, int number)
{
	c->exit = (struct sba_exit){ .kind = kind, .number = number };
	c->over = true;
	if (c->ended >= 0)
		eventfd_write(c->ended, 1);
}

static int on_signal(void *user, int number, struct sba_error *err)
{
	struct command *c = user;
	(void)err;
	c->signals++;
	c->last_signal = number;
	if (c->ends_by_signal)
		end_command(c, SBA_SIGNALED, number);
	return 0;
}

static void on_kill(void *user)
{
	struct command *c = user;
	c->kills++;
	if (!c->over)
		end_command(c, SBA_SIGNALED, SIGKILL);
}

static int on_wait(void *user, int64_t wait_ms, struct sba_exit *ret, struct sba_error *err)
{
	struct command *c = user;
	assert_int_equal(wait_ms, 0); /* whoever waits does so by the descriptors */
	if (!c->over)
		return sba_fail(err, SBA_ETIMEOUT, "it runs");
	*ret = c->exit;
	return 0;
}

static void on_free(void *user)
{
	((struct command *)user)->frees++;
}

static const struct sba_pipes_ops with_signals = {
	.send_signal = on_signal, .kill = on_kill, .wait = on_wait, .free = on_free
};
static const struct sba_pipes_ops without_signals = { .kill = on_kill,
						      .wait = on_wait,
						      .free = on_free };

static void open_pipe(int *reads, int *writes)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	*reads = p[0];
	*writes = p[1];
}

static struct sba_process *start(struct command *c, const struct sba_pipes_ops *ops,
				 const struct sba_exec_options *o)
{
	struct sba_pipes p = { .ops = ops, .command = c };
	struct sba_process *process = NULL;
	alarm(60);
	open_pipe(&c->in, &p.in);
	open_pipe(&p.out, &c->out);
	open_pipe(&p.err, &c->err);
	c->ended = eventfd(0, EFD_CLOEXEC);
	p.ended = fcntl(c->ended, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(sba_process_of_pipes(&p, o, &process, NULL), 0);
	return process;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void stop(struct command *c, struct sba_process *p)
{
	sba_process_free(p);
	assert_int_equal(c->frees, 1);
	close_fd(&c->in);
	close_fd(&c->out);
	close_fd(&c->err);
	close_fd(&c->ended);
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void assert_reads(struct sba_process *p, enum sba_output stream, const char *text)
{
	enum sba_output which;
	const char *data;
	ssize_t n = sba_process_read(p, -1, &which, &data, NULL);
	assert_int_equal(n, strlen(text));
	assert_memory_equal(data, text, strlen(text));
	assert_int_equal(which, stream);
}

static void output_comes_from_its_stream_and_ends_with_both(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { 0 };
	struct sba_exit how;
	enum sba_output which;
	const char *data;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	say(c.out, "one");
	assert_reads(p, SBA_STDOUT, "one");
	say(c.err, "two");
	assert_reads(p, SBA_STDERR, "two");
	assert_int_equal(sba_process_read(p, 0, &which, &data, NULL), SBA_ETIMEOUT);
	close_fd(&c.out);
	close_fd(&c.err);
	assert_int_equal(sba_process_read(p, -1, &which, &data, NULL), 0);
	end_command(&c, SBA_EXITED, 7);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.number, 7);
	stop(&c, p);
	assert_int_equal(c.kills, 0);
}

static void without_input_its_stdin_is_at_its_end(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { 0 };
	char byte;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	assert_int_equal(read(c.in, &byte, 1), 0);
	assert_int_equal(sba_process_write(p, "x", 1, NULL), 1);
	stop(&c, p);
	assert_int_equal(c.kills, 1);
}

static void input_is_queued_to_a_limit_and_then_asked_for_again(void **state)
{
	enum { SIZE = 1 << 20 };
	struct command c = { 0 };
	struct sba_exec_options o = { .has_stdin = true };
	enum sba_output which;
	const char *data;
	static char bytes[SIZE], got[SIZE];
	size_t sent = 0, received = 0;
	ssize_t n;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	memset(bytes, 'x', SIZE);
	while ((n = sba_process_write(p, bytes + sent, SIZE - sent, NULL)) > 0)
		sent += (size_t)n;
	assert_int_equal(n, 0);
	assert_in_range(sent, 64 << 10, SIZE - 1);
	assert_int_equal(fcntl(c.in, F_SETFL, O_NONBLOCK), 0);
	while (received < sent) {
		struct pollfd wait = { sba_process_fd(p), sba_process_events(p), 0 };
		n = read(c.in, got, SIZE);
		received += n > 0 ? (size_t)n : 0;
		(void)poll(&wait, 1, 10);
		assert_int_equal(sba_process_read(p, 0, &which, &data, NULL), SBA_ETIMEOUT);
	}
	assert_true(sba_process_write(p, bytes, 10, NULL) == 10);
	assert_int_equal(sba_process_close_stdin(p, NULL), 0);
	assert_int_equal(read(c.in, got, SIZE), 10);
	assert_int_equal(read(c.in, got, SIZE), 0);
	stop(&c, p);
}

static void a_reader_that_has_gone_takes_no_program_with_it(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { .has_stdin = true };
	sigset_t pending;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	close_fd(&c.in);
	assert_int_equal(sba_process_write(p, "for nobody", 10, NULL), 10);
	assert_int_equal(sba_process_write(p, "again", 5, NULL), 5);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	stop(&c, p);
}

static void output_beyond_the_limit_is_counted_and_told_of_once(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { .max_output = 4 };
	enum sba_output which;
	const char *data;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	say(c.out, "123456");
	assert_reads(p, SBA_STDOUT, "1234");
	say(c.out, "789");
	assert_int_equal(sba_process_read(p, -1, &which, &data, NULL), SBA_ETIMEOUT);
	close_fd(&c.out);
	close_fd(&c.err);
	assert_int_equal(sba_process_read(p, -1, &which, &data, NULL), 0);
	assert_int_equal(sba_process_dropped(p), 5);
	stop(&c, p);
}

static void a_deadline_asks_first_and_its_end_is_of_the_deadline(void **state)
{
	struct command c = { .ends_by_signal = true };
	struct sba_exec_options o = { .timeout_ms = 50 };
	struct sba_exit how;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	say(c.out, "kept");
	assert_reads(p, SBA_STDOUT, "kept");
	close_fd(&c.out);
	close_fd(&c.err);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_TIMED_OUT);
	assert_int_equal(c.signals, 1);
	assert_int_equal(c.last_signal, SIGTERM);
	/* What it left behind goes with it. */
	assert_int_equal(c.kills, 1);
	stop(&c, p);
}

static void who_does_not_listen_is_killed_after_a_grace(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { 0 };
	struct sba_exit how;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	sba_process_cancel(p);
	close_fd(&c.out);
	close_fd(&c.err);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_WAS_CANCELED);
	assert_int_equal(c.signals, 1);
	assert_true(c.kills >= 1);
	stop(&c, p);
}

static void without_signals_its_end_is_the_only_one(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { 0 };
	struct sba_error err = { 0 };
	struct sba_exit how;
	(void)state;
	struct sba_process *p = start(&c, &without_signals, &o);
	assert_int_equal(sba_process_signal(p, SIGINT, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'signal'"));
	assert_int_equal(sba_process_resize(p, 1, 1, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'tty'"));
	assert_int_equal(c.kills, 0);
	assert_int_equal(sba_process_signal(p, SIGKILL, &err), 0);
	assert_int_equal(c.kills, 1);
	close_fd(&c.out);
	close_fd(&c.err);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_SIGNALED);
	stop(&c, p);
}

static void output_that_others_hold_is_not_waited_for_for_ever(void **state)
{
	struct command c = { 0 };
	struct sba_exec_options o = { 0 };
	struct sba_exit how;
	(void)state;
	struct sba_process *p = start(&c, &with_signals, &o);
	end_command(&c, SBA_EXITED, 0); /* and c.out stays open */
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.number, 0);
	assert_true(sba_process_output_held(p));
	stop(&c, p);
}

static void where_nothing_tells_of_its_end_it_is_asked(void **state)
{
	struct command c = { .in = -1, .err = -1, .ended = -1 };
	struct sba_exec_options o = { 0 };
	struct sba_pipes pipes = { -1, -1, -1, -1, &with_signals, &c, { 0 } };
	struct sba_process *p = NULL;
	struct sba_exit how;
	(void)state;
	alarm(60);
	open_pipe(&pipes.out, &c.out);
	assert_int_equal(sba_process_of_pipes(&pipes, &o, &p, NULL), 0);
	close_fd(&c.out);
	assert_int_equal(sba_process_wait(p, 50, &how, NULL), SBA_ETIMEOUT);
	end_command(&c, SBA_EXITED, 3);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.number, 3);
	stop(&c, p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_comes_from_its_stream_and_ends_with_both),
		cmocka_unit_test(without_input_its_stdin_is_at_its_end),
		cmocka_unit_test(input_is_queued_to_a_limit_and_then_asked_for_again),
		cmocka_unit_test(a_reader_that_has_gone_takes_no_program_with_it),
		cmocka_unit_test(output_beyond_the_limit_is_counted_and_told_of_once),
		cmocka_unit_test(a_deadline_asks_first_and_its_end_is_of_the_deadline),
		cmocka_unit_test(who_does_not_listen_is_killed_after_a_grace),
		cmocka_unit_test(without_signals_its_end_is_the_only_one),
		cmocka_unit_test(output_that_others_hold_is_not_waited_for_for_ever),
		cmocka_unit_test(where_nothing_tells_of_its_end_it_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
