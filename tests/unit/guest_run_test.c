/* SPDX-License-Identifier: MIT */
/*
 * `guest run` as the host sees it: the real program, driven over pipes. After
 * every test nothing of its command may be left, so this process is a child
 * subreaper: whatever survives comes to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel/protocol.h"

#define NONCE "0123456789abcdef0123456789abcdef"

enum { TEXT_MAX = 40 * 1024 * 1024, TEST_SECONDS = 60 };

struct stream {
	int fd;
	bool ended; /* its end record has come, or it is closed */
	size_t len;
	char *text;
};

struct guest {
	pid_t pid;
	int in;
	struct stream out;
	struct stream err;
	/* still to be sent by collect() */
	const char *backlog;
	size_t backlog_len;
};

static int guest_file = -1;
static pid_t bomber_uid; /* 0: as we are */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void become_bomber(void)
{
	struct rlimit limit = { 200, 200 };

	if (setrlimit(RLIMIT_NPROC, &limit) < 0 || setgid((gid_t)bomber_uid) < 0 ||
	    setuid((uid_t)bomber_uid) < 0)
		_exit(99);
}

static void open_guest(struct guest *guest)
{
	char *args[] = { "guest", "run", "test", NULL };
	int in[2];
	int out[2];
	int err[2];

	*guest = (struct guest){ 0 };
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	guest->pid = fork();
	if (guest->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		if (bomber_uid != 0)
			become_bomber();
		fexecve(guest_file, args, environ);
		_exit(98);
	}
	assert_true(guest->pid > 0);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	guest->in = in[1];
	guest->out = (struct stream){ .fd = out[0], .text = malloc(TEXT_MAX) };
	guest->err = (struct stream){ .fd = err[0], .text = malloc(TEXT_MAX) };
	guest->out.text[0] = '\0';
	guest->err.text[0] = '\0';
}

static void send_all(struct guest *guest, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t put = write(guest->in, at, len);

		if (put < 0)
			return; /* it has ended: the record says how */
		at += put;
		len -= (size_t)put;
	}
}

static void put_head(char *head, char type, size_t len)
{
	head[0] = type;
	head[1] = (char)(len >> 24);
	head[2] = (char)(len >> 16);
	head[3] = (char)(len >> 8);
	head[4] = (char)len;
}

static void say_bytes(struct guest *guest, char type, const void *data, size_t len)
{
	char head[SBA_RUN_FRAME_HEAD];

	put_head(head, type, len);
	send_all(guest, head, sizeof(head));
	send_all(guest, data, len);
}

static void say(struct guest *guest, char type, const char *text)
{
	say_bytes(guest, type, text, strlen(text));
}

static void say_shell(struct guest *guest, const char *script)
{
	say(guest, SBA_RUN_NONCE, NONCE);
	say(guest, SBA_RUN_ARG, "sh");
	say(guest, SBA_RUN_ARG, "-c");
	say(guest, SBA_RUN_ARG, script);
	say(guest, SBA_RUN_GO, "");
}

static void open_shell(struct guest *guest, const char *script)
{
	open_guest(guest);
	say_shell(guest, script);
}

/* The record at the end of what came, or NULL. */
static char *end_record(const struct stream *stream)
{
	static const char head[] = "\0" SBA_RECORD_PREFIX NONCE ":";
	char *found = NULL;
	char *at = stream->text;

	if (stream->len > 200)
		at += stream->len - 200;
	while ((at = memmem(at, (size_t)(stream->text + stream->len - at), head,
			    sizeof(head) - 1))) {
		if (at[sizeof(head) - 1] != SBA_RECORD_BEGUN)
			found = at;
		at++;
	}
	return found;
}

static void read_stream(struct stream *stream)
{
	ssize_t got = read(stream->fd, stream->text + stream->len, TEXT_MAX - stream->len - 1);

	if (got > 0)
		stream->len += (size_t)got;
	stream->text[stream->len] = '\0';
	stream->ended = got <= 0 || end_record(stream) != NULL;
}

static void send_backlog(struct guest *guest)
{
	ssize_t put = write(guest->in, guest->backlog, guest->backlog_len);

	if (put < 0 && errno != EAGAIN)
		put = (ssize_t)guest->backlog_len;
	if (put > 0) {
		guest->backlog += put;
		guest->backlog_len -= (size_t)put;
	}
}

static void exchange(struct guest *guest)
{
	struct pollfd polls[] = {
		{ guest->out.ended ? -1 : guest->out.fd, POLLIN, 0 },
		{ guest->err.ended ? -1 : guest->err.fd, POLLIN, 0 },
		{ guest->backlog_len > 0 ? guest->in : -1, POLLOUT, 0 },
	};

	assert_true(poll(polls, 3, TEST_SECONDS * 1000) > 0);
	if (polls[0].revents)
		read_stream(&guest->out);
	if (polls[1].revents)
		read_stream(&guest->err);
	if (polls[2].revents)
		send_backlog(guest);
}

/* Reads until text has come out of the command. */
static void await_text(struct guest *guest, const char *text)
{
	while (!memmem(guest->out.text, guest->out.len, text, strlen(text))) {
		assert_false(guest->out.ended);
		exchange(guest);
	}
}

/* What came between the records, as text. */
static const char *output(struct guest *guest)
{
	static const char begun[] = "\0" SBA_RECORD_PREFIX NONCE ":b:1:\0";

	assert_true(guest->out.len >= sizeof(begun) - 1);
	assert_memory_equal(guest->out.text, begun, sizeof(begun) - 1);
	return guest->out.text + sizeof(begun) - 1;
}

static void close_guest(struct guest *guest)
{
	int status;

	if (guest->in >= 0)
		close(guest->in);
	close(guest->out.fd);
	close(guest->err.fd);
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	assert_int_equal(status, 0);
	free(guest->out.text);
	free(guest->err.text);
}

static void assert_nothing_left(void)
{
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
}

/* Takes all there is to come and holds the end against kind and number. */
static void collect(struct guest *guest, char kind, unsigned long number)
{
	char expected[128];
	int len = snprintf(expected, sizeof(expected), "%c" SBA_RECORD_PREFIX NONCE ":%c:%lu:%c", 0,
			   kind, number, 0);
	struct stream *streams[] = { &guest->out, &guest->err };

	while (!guest->out.ended || !guest->err.ended)
		exchange(guest);
	for (int i = 0; i < 2; i++) {
		char *record = end_record(streams[i]);

		assert_non_null(record);
		assert_string_equal(record + 1, expected + 1);
		assert_int_equal(record + len - streams[i]->text, streams[i]->len);
		*record = '\0';
	}
}

static void expect(struct guest *guest, char kind, unsigned long number)
{
	collect(guest, kind, number);
	close_guest(guest);
	assert_nothing_left();
}

static void exit_status_is_the_commands_own(void **state)
{
	static const unsigned long codes[] = { 0, 1, 124, 125, 126, 127, 130, 137, 255 };

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct guest guest;
		char script[32];

		snprintf(script, sizeof(script), "exit %lu", codes[i]);
		open_shell(&guest, script);
		expect(&guest, SBA_END_EXIT, codes[i]);
	}
}

static void death_by_signal_is_told_from_exit(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "kill -KILL $$");
	expect(&guest, SBA_END_SIGNAL, SIGKILL);
	open_shell(&guest, "kill -TERM $$");
	expect(&guest, SBA_END_SIGNAL, SIGTERM);
}

static void output_stands_between_the_records(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "printf out; printf err >&2");
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "out");
	assert_string_equal(guest.err.text, "err");
	close_guest(&guest);
}

static void missing_program_is_told_from_status_127(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_NONCE, NONCE);
	say(&guest, SBA_RUN_ARG, "no-such-program");
	say(&guest, SBA_RUN_GO, "");
	expect(&guest, SBA_END_NOTFOUND, ENOENT);
}

static void program_that_cannot_run_says_why(void **state)
{
	static char large[200 * 1024];
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_NONCE, NONCE);
	say(&guest, SBA_RUN_ARG, "/etc/passwd");
	say(&guest, SBA_RUN_GO, "");
	expect(&guest, SBA_END_CANNOT, EACCES);
	memset(large, 'x', sizeof(large));
	open_guest(&guest);
	say(&guest, SBA_RUN_NONCE, NONCE);
	say(&guest, SBA_RUN_ARG, "true");
	say_bytes(&guest, SBA_RUN_ARG, large, sizeof(large));
	say(&guest, SBA_RUN_GO, "");
	expect(&guest, SBA_END_CANNOT, E2BIG);
}

static void working_directory_is_used_and_its_absence_told(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_CWD, "/usr/lib");
	say_shell(&guest, "pwd");
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "/usr/lib\n");
	close_guest(&guest);
	open_guest(&guest);
	say(&guest, SBA_RUN_CWD, "/no/such/place");
	say_shell(&guest, "pwd");
	expect(&guest, SBA_END_CWD, ENOENT);
}

static void environment_of_the_host_wins(void **state)
{
	struct guest guest;

	(void)state;
	setenv("SBA_TEST_A", "of the exec", 1);
	setenv("SBA_TEST_B", "of the exec", 1);
	open_guest(&guest);
	say(&guest, SBA_RUN_ENV, "SBA_TEST_B=first");
	say(&guest, SBA_RUN_ENV, "SBA_TEST_B=two\nlines");
	say_shell(&guest, "echo \"$SBA_TEST_A,$SBA_TEST_B\"");
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "of the exec,two\nlines\n");
	close_guest(&guest);
}

static void program_is_looked_up_in_the_commands_path(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_ENV, "PATH=/nowhere");
	say_shell(&guest, "exit 0");
	expect(&guest, SBA_END_NOTFOUND, ENOENT);
}

static void nul_in_an_environment_value_is_nonsense(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_NONCE, NONCE);
	say_bytes(&guest, SBA_RUN_ENV, "A=b\0c", 5);
	expect(&guest, SBA_END_PROTOCOL, SBA_RUN_ENV);
}

static void unknown_and_misplaced_frames_are_nonsense(void **state)
{
	static const char types[] = { '?', SBA_RUN_ARG, SBA_RUN_GO };
	struct guest guest;

	(void)state;
	for (size_t i = 0; i < sizeof(types); i++) {
		open_shell(&guest, "sleep 60");
		say(&guest, types[i], "x");
		expect(&guest, SBA_END_PROTOCOL, (unsigned char)types[i]);
	}
	open_shell(&guest, "sleep 60");
	say(&guest, SBA_RUN_EOF, "");
	say(&guest, SBA_RUN_DATA, "after the end");
	expect(&guest, SBA_END_PROTOCOL, SBA_RUN_DATA);
}

static void frame_beyond_the_limit_is_nonsense(void **state)
{
	struct guest guest;
	char head[SBA_RUN_FRAME_HEAD];

	(void)state;
	open_shell(&guest, "sleep 60");
	put_head(head, SBA_RUN_DATA, SBA_RUN_FRAME_MAX + 1);
	send_all(&guest, head, sizeof(head));
	expect(&guest, SBA_END_PROTOCOL, SBA_RUN_DATA);
}

static void start_arrives_byte_by_byte(void **state)
{
	static const char start[] = "N\0\0\0\x20" NONCE "A\0\0\0\4echo"
				    "A\0\0\0\2hi"
				    "G\0\0\0\0";
	struct guest guest;

	(void)state;
	open_guest(&guest);
	for (size_t i = 0; i < sizeof(start) - 1; i++)
		send_all(&guest, start + i, 1);
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "hi\n");
	close_guest(&guest);
}

static void client_that_goes_before_the_start_leaves_nothing(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_NONCE, NONCE);
	say(&guest, SBA_RUN_ARG, "sh");
	close(guest.in);
	guest.in = -1;
	expect(&guest, SBA_END_CANCELED, 0);
}

/* 32 MiB in frames of 1 MB, and the end of stdin. */
static char *large_stdin(size_t *ret_len, size_t *ret_payload)
{
	enum { FRAMES = 32, SIZE = 1024 * 1024 };
	size_t total = FRAMES * (SBA_RUN_FRAME_HEAD + SIZE) + SBA_RUN_FRAME_HEAD;
	char *wire = malloc(total);
	char *at = wire;

	for (size_t i = 0; i < FRAMES; i++) {
		put_head(at, SBA_RUN_DATA, SIZE);
		at += SBA_RUN_FRAME_HEAD;
		for (size_t k = 0; k < SIZE; k++)
			*at++ = (char)(k * 7 + i);
	}
	put_head(at, SBA_RUN_EOF, 0);
	*ret_len = total;
	*ret_payload = (size_t)FRAMES * SIZE;
	return wire;
}

static void large_input_comes_back_whole(void **state)
{
	size_t total;
	size_t payload;
	char *wire = large_stdin(&total, &payload);
	struct guest guest;
	const char *got;
	bool same = true;

	(void)state;
	open_shell(&guest, "cat");
	fcntl(guest.in, F_SETFL, O_NONBLOCK);
	guest.backlog = wire;
	guest.backlog_len = total;
	collect(&guest, SBA_END_EXIT, 0);
	got = output(&guest);
	for (size_t i = 0; i < payload && same; i++)
		same = got[i] == (char)(i % (1024 * 1024) * 7 + i / (1024 * 1024));
	assert_true(same);
	assert_int_equal(got[payload], '\0');
	close_guest(&guest);
	free(wire);
}

static void command_that_reads_no_input_ends_all_the_same(void **state)
{
	size_t total;
	size_t payload;
	char *wire = large_stdin(&total, &payload);
	struct guest guest;

	(void)state;
	open_shell(&guest, "exec <&-; echo closed; sleep 0.1; exit 3");
	await_text(&guest, "closed");
	fcntl(guest.in, F_SETFL, O_NONBLOCK);
	guest.backlog = wire;
	guest.backlog_len = total;
	expect(&guest, SBA_END_EXIT, 3);
	free(wire);
}

static void control_is_heard_while_input_waits(void **state)
{
	static char data[200 * 1024];
	struct guest guest;

	(void)state;
	open_shell(&guest, "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done");
	await_text(&guest, "ready");
	say_bytes(&guest, SBA_RUN_DATA, data, sizeof(data));
	say(&guest, SBA_RUN_SIGNAL, "10");
	collect(&guest, SBA_END_EXIT, 7);
	close_guest(&guest);
}

static void end_of_input_reaches_the_command(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "wc -c");
	say(&guest, SBA_RUN_DATA, "12345");
	say(&guest, SBA_RUN_DATA, "");
	say(&guest, SBA_RUN_EOF, "");
	collect(&guest, SBA_END_EXIT, 0);
	assert_int_equal(strtol(output(&guest), NULL, 10), 5);
	close_guest(&guest);
}

static void deadline_ends_what_ignores_term_and_hides_in_sessions(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_DEADLINE, "300");
	say_shell(&guest, "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60' &"
			  "(setsid sleep 60 &) ; sleep 60 & sleep 60");
	expect(&guest, SBA_END_DEADLINE, 300);
}

static void deadline_does_not_wait_for_the_obedient(void **state)
{
	struct guest guest;
	int64_t began = now_ms();

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_DEADLINE, "50");
	say_shell(&guest, "setsid sleep 60 & sleep 60");
	expect(&guest, SBA_END_DEADLINE, 50);
	assert_true(now_ms() - began < 1500);
}

static void cancel_ends_the_tree_even_if_it_is_stopped(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "sleep 60 & echo ready; kill -STOP 0; sleep 60");
	await_text(&guest, "ready");
	say(&guest, SBA_RUN_CANCEL, "");
	expect(&guest, SBA_END_CANCELED, 0);
}

static void canceled_command_may_clean_up(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "trap 'echo bye; exit 0' TERM; echo ready;"
			   "while :; do sleep 0.05; done");
	await_text(&guest, "ready");
	say(&guest, SBA_RUN_CANCEL, "");
	collect(&guest, SBA_END_CANCELED, 0);
	assert_string_equal(output(&guest), "ready\nbye\n");
	close_guest(&guest);
}

static void term_to_the_supervisor_ends_the_tree(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "echo ready; sleep 60 & sleep 60");
	await_text(&guest, "ready");
	kill(guest.pid, SIGTERM);
	expect(&guest, SBA_END_CANCELED, 0);
}

static void death_of_the_supervisor_takes_the_command_along(void **state)
{
	struct guest guest;
	int status;

	(void)state;
	open_shell(&guest, "echo ready; exec sleep 60");
	await_text(&guest, "ready");
	kill(guest.pid, SIGKILL);
	assert_int_equal(waitpid(guest.pid, &status, 0), guest.pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_true(waitpid(-1, &status, 0) > 0);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_nothing_left();
	close(guest.in);
	close(guest.out.fd);
	close(guest.err.fd);
	free(guest.out.text);
	free(guest.err.text);
}

static void death_of_the_client_ends_the_tree(void **state)
{
	struct guest guest;

	(void)state;
	for (int with_eof = 0; with_eof < 2; with_eof++) {
		open_shell(&guest, "setsid sleep 60 & echo ready; sleep 60");
		await_text(&guest, "ready");
		if (with_eof)
			say(&guest, SBA_RUN_EOF, "");
		close(guest.in);
		guest.in = -1;
		expect(&guest, SBA_END_CANCELED, 0);
	}
}

static void detached_command_outlives_its_client(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_DETACH, "");
	say_shell(&guest, "cat; echo alive; exit 5");
	say(&guest, SBA_RUN_DATA, "input\n");
	close(guest.in);
	guest.in = -1;
	collect(&guest, SBA_END_EXIT, 5);
	assert_string_equal(output(&guest), "input\nalive\n");
	close_guest(&guest);
}

static void background_process_outlives_the_command(void **state)
{
	struct guest guest;
	int status;
	pid_t pid;

	(void)state;
	open_shell(&guest, "sleep 60 >/dev/null 2>&1 & echo $!");
	collect(&guest, SBA_END_EXIT, 0);
	pid = (pid_t)strtol(output(&guest), NULL, 10);
	close_guest(&guest);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_nothing_left();
}

static void signal_of_the_host_reaches_the_whole_group(void **state)
{
	struct guest guest;

	(void)state;
	open_shell(&guest, "sh -c 'trap \"echo inner; exit\" INT; echo one; while :; do sleep 0.05;"
			   "done' & trap 'wait; exit 9' INT; wait");
	await_text(&guest, "one");
	say(&guest, SBA_RUN_SIGNAL, "10x");
	expect(&guest, SBA_END_PROTOCOL, SBA_RUN_SIGNAL);
	open_shell(&guest,
		   "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done");
	await_text(&guest, "ready");
	say(&guest, SBA_RUN_SIGNAL, "2");
	collect(&guest, SBA_END_EXIT, 9);
	close_guest(&guest);
	open_shell(&guest, "echo ready; sleep 60");
	await_text(&guest, "ready");
	say(&guest, SBA_RUN_SIGNAL, "9");
	expect(&guest, SBA_END_SIGNAL, SIGKILL);
}

static void command_starts_with_clean_signals(void **state)
{
	struct guest guest;

	(void)state;
	signal(SIGINT, SIG_IGN);
	open_shell(&guest, "grep -E '^Sig(Blk|Ign)' /proc/self/status");
	signal(SIGINT, SIG_DFL);
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest),
			    "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	close_guest(&guest);
}

static void command_inherits_no_descriptors(void **state)
{
	struct guest guest;
	int leak = dup(guest_file); /* without close-on-exec */

	(void)state;
	open_shell(&guest, "ls /proc/self/fd");
	close(leak);
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "0\n1\n2\n3\n"); /* 3 is ls's own */
	close_guest(&guest);
}

static void open_terminal(struct guest *guest, const char *script)
{
	open_guest(guest);
	say(guest, SBA_RUN_TTY, "30x100");
	say_shell(guest, script);
}

static void terminal_has_the_hosts_size(void **state)
{
	struct guest guest;

	(void)state;
	open_terminal(&guest, "trap 'stty size; exit 4' WINCH; test -t 0 && test -t 2 && stty size;"
			      "echo ready; while :; do sleep 0.05; done");
	await_text(&guest, "ready");
	assert_non_null(strstr(output(&guest), "30 100\r\n"));
	say(&guest, SBA_RUN_RESIZE, "40x120");
	collect(&guest, SBA_END_EXIT, 4);
	assert_non_null(strstr(output(&guest), "40 120\r\n"));
	close_guest(&guest);
}

static void terminal_echoes_and_ends_its_input(void **state)
{
	struct guest guest;

	(void)state;
	open_terminal(&guest, "read line; echo \"got $line\"; cat; echo done");
	say(&guest, SBA_RUN_DATA, "hello\n");
	await_text(&guest, "got hello\r\n");
	assert_int_equal(strncmp(output(&guest), "hello\r\n", 7), 0);
	say(&guest, SBA_RUN_DATA, "no newline");
	say(&guest, SBA_RUN_EOF, "");
	collect(&guest, SBA_END_EXIT, 0);
	assert_non_null(strstr(output(&guest), "done\r\n"));
	close_guest(&guest);
}

static void terminal_is_read_to_its_last_byte(void **state)
{
	struct guest guest;
	size_t len;

	(void)state;
	for (int i = 0; i < 5; i++) {
		open_terminal(&guest, "sleep 60 & seq 20000; printf last");
		collect(&guest, SBA_END_EXIT, 0);
		len = strlen(output(&guest));
		assert_int_equal(len, 108894 + 20000 + 4);
		assert_string_equal(output(&guest) + len - 4, "last");
		close_guest(&guest);
		/* The terminal goes, and its background process with it. */
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

static void interrupt_key_of_the_terminal_works(void **state)
{
	struct guest guest;

	(void)state;
	open_terminal(&guest, "echo ready; exec sleep 60");
	await_text(&guest, "ready");
	say(&guest, SBA_RUN_DATA, "\x03");
	expect(&guest, SBA_END_SIGNAL, SIGINT);
}

static void deadline_ends_a_terminal_whose_output_flows(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_TTY, "24x80");
	say(&guest, SBA_RUN_DEADLINE, "200");
	say_shell(&guest, "trap '' TERM HUP; yes");
	expect(&guest, SBA_END_DEADLINE, 200);
}

/* The command itself must not need a fork: without one it would have ended. */
static void end_bomb(const char *bomb)
{
	struct guest guest;
	char script[256];

	if (getuid() != 0) {
		print_message("needs root: the bomb runs as a user of its own\n");
		skip();
	}
	snprintf(script, sizeof(script), "trap '' TERM; exec 2>/dev/null; (%s) & exec sleep 60",
		 bomb);
	bomber_uid = 61999;
	open_guest(&guest);
	bomber_uid = 0;
	say(&guest, SBA_RUN_DEADLINE, "500");
	say(&guest, SBA_RUN_ENV, "COMET=setsid sh -c \"$COMET\" & setsid sh -c \"$COMET\" &");
	say_shell(&guest, script);
	expect(&guest, SBA_END_DEADLINE, 500);
}

static void deadline_ends_a_fork_bomb(void **state)
{
	(void)state;
	end_bomb("f() { f | f & }; f; while :; do f; done");
}

static void deadline_ends_a_bomb_that_spreads_over_sessions(void **state)
{
	(void)state;
	end_bomb("eval \"$COMET\"");
}

static int begin_test(void **state)
{
	(void)state;
	alarm(TEST_SECONDS);
	return 0;
}

#define RUN_TEST(test) cmocka_unit_test_setup(test, begin_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(exit_status_is_the_commands_own),
		RUN_TEST(death_by_signal_is_told_from_exit),
		RUN_TEST(output_stands_between_the_records),
		RUN_TEST(missing_program_is_told_from_status_127),
		RUN_TEST(program_that_cannot_run_says_why),
		RUN_TEST(working_directory_is_used_and_its_absence_told),
		RUN_TEST(environment_of_the_host_wins),
		RUN_TEST(program_is_looked_up_in_the_commands_path),
		RUN_TEST(nul_in_an_environment_value_is_nonsense),
		RUN_TEST(unknown_and_misplaced_frames_are_nonsense),
		RUN_TEST(frame_beyond_the_limit_is_nonsense),
		RUN_TEST(start_arrives_byte_by_byte),
		RUN_TEST(client_that_goes_before_the_start_leaves_nothing),
		RUN_TEST(large_input_comes_back_whole),
		RUN_TEST(command_that_reads_no_input_ends_all_the_same),
		RUN_TEST(control_is_heard_while_input_waits),
		RUN_TEST(end_of_input_reaches_the_command),
		RUN_TEST(deadline_ends_what_ignores_term_and_hides_in_sessions),
		RUN_TEST(deadline_does_not_wait_for_the_obedient),
		RUN_TEST(cancel_ends_the_tree_even_if_it_is_stopped),
		RUN_TEST(canceled_command_may_clean_up),
		RUN_TEST(term_to_the_supervisor_ends_the_tree),
		RUN_TEST(death_of_the_supervisor_takes_the_command_along),
		RUN_TEST(death_of_the_client_ends_the_tree),
		RUN_TEST(detached_command_outlives_its_client),
		RUN_TEST(background_process_outlives_the_command),
		RUN_TEST(signal_of_the_host_reaches_the_whole_group),
		RUN_TEST(command_starts_with_clean_signals),
		RUN_TEST(command_inherits_no_descriptors),
		RUN_TEST(terminal_has_the_hosts_size),
		RUN_TEST(terminal_echoes_and_ends_its_input),
		RUN_TEST(terminal_is_read_to_its_last_byte),
		RUN_TEST(interrupt_key_of_the_terminal_works),
		RUN_TEST(deadline_ends_a_terminal_whose_output_flows),
		RUN_TEST(deadline_ends_a_fork_bomb),
		RUN_TEST(deadline_ends_a_bomb_that_spreads_over_sessions),
	};
	const char *path = getenv("SBA_GUEST");

	if (!path)
		path = "build/guest/guest";
	guest_file = open(path, O_RDONLY | O_CLOEXEC);
	if (guest_file < 0) {
		perror(path);
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
