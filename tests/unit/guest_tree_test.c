/* SPDX-License-Identifier: MIT */
/*
 * `guest run` ends a whole tree: deadlines, cancels, clients that go, bombs;
 * and leaves alone what may live on.
 */
#include "guest/confine.h"
#include "unit/guest_driver.h"

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
	/* Of this run: the limit counts what all processes of a user have. */
	bomber_uid = 61000 + getpid() % 1000;
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

/* ---- signal scopes ---- */

/* As the guest does; in a child, for it is for good. */
static bool kernel_has_scopes(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(sba_guest_scope_enter() ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void need_scopes(void)
{
	if (kernel_has_scopes())
		return;
	print_message("SKIPPED: this kernel has no signal scopes\n");
	skip();
}

static pid_t start_bystander(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static int end_bystander(pid_t pid)
{
	int status;

	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WTERMSIG(status);
}

static void command_cannot_signal_what_is_not_its_own(void **state)
{
	struct guest guest;
	char script[128];
	pid_t pid;

	(void)state;
	need_scopes();
	pid = start_bystander();
	snprintf(script, sizeof(script),
		 "kill -9 %d 2>/dev/null || echo kept; kill -9 $PPID 2>/dev/null || echo kept;"
		 "sleep 60 & kill $! && echo mine; wait",
		 (int)pid);
	open_shell(&guest, script);
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "kept\nkept\nmine\n");
	close_guest(&guest);
	assert_int_equal(end_bystander(pid), SIGTERM);
	assert_nothing_left();
}

static void command_that_may_signals_others(void **state)
{
	struct guest guest;
	char script[64];
	pid_t pid = start_bystander();

	(void)state;
	snprintf(script, sizeof(script), "kill -9 %d && echo killed", (int)pid);
	open_guest(&guest);
	/* Where there are no scopes it may in any case. */
	if (!old_kernel)
		say(&guest, SBA_RUN_OTHERS, "");
	say_shell(&guest, script);
	collect(&guest, SBA_END_EXIT, 0);
	assert_string_equal(output(&guest), "killed\n");
	close_guest(&guest);
	assert_int_equal(end_bystander(pid), SIGKILL);
	assert_nothing_left();
}

/* Who is not of the tree is not hit when the tree is struck at once. */
static void end_of_a_tree_harms_no_bystander(void **state)
{
	struct guest guest;
	pid_t pid = start_bystander();

	(void)state;
	open_guest(&guest);
	say(&guest, SBA_RUN_DEADLINE, "100");
	say_shell(&guest, "trap '' TERM; setsid sleep 60 & sleep 60 & wait; wait");
	collect(&guest, SBA_END_DEADLINE, 100);
	close_guest(&guest);
	assert_int_equal(end_bystander(pid), SIGTERM);
	assert_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(deadline_ends_what_ignores_term_and_hides_in_sessions),
		RUN_TEST(deadline_does_not_wait_for_the_obedient),
		RUN_TEST(cancel_ends_the_tree_even_if_it_is_stopped),
		RUN_TEST(canceled_command_may_clean_up),
		RUN_TEST(term_to_the_supervisor_ends_the_tree),
		RUN_TEST(death_of_the_supervisor_takes_the_command_along),
		RUN_TEST(death_of_the_client_ends_the_tree),
		RUN_TEST(detached_command_outlives_its_client),
		RUN_TEST(background_process_outlives_the_command),
		RUN_TEST(deadline_ends_a_terminal_whose_output_flows),
		RUN_TEST(deadline_ends_a_fork_bomb),
		RUN_TEST(deadline_ends_a_bomb_that_spreads_over_sessions),
		RUN_TEST_OLD(deadline_ends_what_ignores_term_and_hides_in_sessions),
		RUN_TEST_OLD(cancel_ends_the_tree_even_if_it_is_stopped),
		RUN_TEST_OLD(death_of_the_supervisor_takes_the_command_along),
		RUN_TEST_OLD(deadline_ends_a_fork_bomb),
		RUN_TEST_OLD(deadline_ends_a_bomb_that_spreads_over_sessions),
		RUN_TEST(command_cannot_signal_what_is_not_its_own),
		RUN_TEST(command_that_may_signals_others),
		RUN_TEST_OLD(command_that_may_signals_others),
		RUN_TEST(end_of_a_tree_harms_no_bystander),
		RUN_TEST_OLD(end_of_a_tree_harms_no_bystander),
	};

	if (!prepare_driver())
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
