/* SPDX-License-Identifier: MIT */
/*
 * `guest run` as the host sees it: how a command starts, what passes through,
 * and what is told of its own end. The program is real, driven over pipes.
 */
#include "unit/guest_driver.h"

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

/* A link, as every Linux has it. */
static void working_directory_under_proc_is_refused_by_whatever_name(void **state)
{
	struct guest guest;

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_CWD, "/dev/fd");
	say_shell(&guest, "pwd");
	expect(&guest, SBA_END_CWD, EACCES);
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
	open_shell(&guest, "echo ready; exec sleep 60");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(exit_status_is_the_commands_own),
		RUN_TEST(death_by_signal_is_told_from_exit),
		RUN_TEST(output_stands_between_the_records),
		RUN_TEST(missing_program_is_told_from_status_127),
		RUN_TEST(program_that_cannot_run_says_why),
		RUN_TEST(working_directory_is_used_and_its_absence_told),
		RUN_TEST(working_directory_under_proc_is_refused_by_whatever_name),
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
		RUN_TEST(signal_of_the_host_reaches_the_whole_group),
		RUN_TEST(command_starts_with_clean_signals),
		RUN_TEST(command_inherits_no_descriptors),
		RUN_TEST(terminal_has_the_hosts_size),
		RUN_TEST(terminal_echoes_and_ends_its_input),
		RUN_TEST(terminal_is_read_to_its_last_byte),
		RUN_TEST(interrupt_key_of_the_terminal_works),
	};

	if (!prepare_driver())
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
