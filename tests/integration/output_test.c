/* SPDX-License-Identifier: MIT */
/* What becomes of output that comes late, that is too much, and of a terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <utmp.h>
#include <unistd.h>

#define BOX "loud-owl"

static struct sba_sandbox *box;

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	box = live_sandbox(
		(struct sba_sandbox_options){ .name = BOX, .keepalive_ms = 10 * 60 * 1000 });
	return 0;
}

/* ---- processes that are left behind ---- */

static void late_output_of_a_process_left_behind_is_kept(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "exec", BOX, "--", "sh", "-c", "(sleep 0.2; echo late) & echo early");
	assert_int_equal(c.status, 0);
	assert_string_equal(c.out.data, "early\nlate\n");
	assert_int_equal(c.err.len, 0);
}

static void who_holds_the_output_is_told_once_and_waited_for_no_longer(void **state)
{
	(void)state;
	LIVE_CHILD c, json;
	RUN(&c, "exec", BOX, "--", "sh", "-c", "sleep 60 & echo hi; exit 3");
	live_assert_says(&c, 3, "hold its output");
	assert_string_equal(c.out.data, "hi\n");
	assert_true(c.took_ms < 20 * 1000);
	RUN(&json, "--json", "exec", BOX, "--", "sh", "-c", "sleep 60 & echo hi");
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_true(json_is_true(json_object_get(live_json_line(lines, "exit"), "output_held")));
}

static void a_daemon_that_let_go_of_the_output_is_not_mentioned(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "exec", BOX, "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo hi");
	assert_int_equal(c.status, 0);
	assert_int_equal(c.err.len, 0);
}

/* ---- too much ---- */

static void output_beyond_the_limit_is_dropped_and_told(void **state)
{
	(void)state;
	LIVE_CHILD c, json, late;
	RUN(&c, "exec", "--max-output", "1000", BOX, "--", "sh", "-c",
	    "head -c 5000000 /dev/zero; exit 124");
	live_assert_says(&c, 124, "truncated after 1000 bytes");
	assert_int_equal(c.out.len, 1000);
	RUN(&json, "--json", "exec", "--max-output", "8", BOX, "--", "printf", "%s", "0123456789");
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_int_equal(sba_json_int(live_json_line(lines, "truncated"), "limit", 0), 8);
	assert_int_equal(sba_json_int(live_json_line(lines, "exit"), "dropped", 0), 2);
	RUN(&late, "exec", "--max-output", "10", "--timeout", "1s", BOX, "--", "yes");
	live_assert_says(&late, 124, "did not end within");
	assert_string_equal(late.out.data, "y\ny\ny\ny\ny\n");
}

static void a_full_disk_behind_our_stdout_is_told(void **state)
{
	(void)state;
	static const char *const ways[][7] = { { "exec", BOX, "--", "yes", NULL },
					       { "--json", "exec", BOX, "--", "yes", NULL } };
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){ .argv = ways[i], .stdout_to = "/dev/full" });
		live_child_end(&c, 30000);
		live_assert_says(&c, 125, "No space left on device");
	}
}

static void what_is_printed_and_does_not_arrive_is_no_success(void **state)
{
	(void)state;
	static const char *const ways[][5] = {
		{ "help", NULL }, { "completion", "bash", NULL }, { "config", "show", NULL },
		{ "ps", NULL },   { "--json", "ps", NULL },       { "inspect", BOX, NULL },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){ .argv = ways[i], .stdout_to = "/dev/full" });
		live_child_end(&c, 30000);
		live_assert_says(&c, 1, "write to stdout: ");
	}
}

/* Starts it with what the shell calls that. */
static void redirected(struct live_child *c, const char *how, const char *args)
{
	char path[4096];
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(8192);
	live_program_path(path, sizeof(path));
	sba_buf_printf(&line, "exec \"$0\" %s %s", args, how);
	assert_int_equal(sba_buf_check(&line, "a command line", NULL), 0);
	const char *const argv[] = { "-c", line.data, path, NULL };
	live_start(c, &(struct live_start){ .program = "sh", .argv = argv });
	live_child_end(c, 30000);
}

/* Else a connection takes its number, and gets what is written to it. */
static void a_stream_that_was_closed_is_not_something_else(void **state)
{
	(void)state;
	static const struct {
		const char *how, *args;
		int status;
		const char *says;
	} cases[] = {
		{ "<&-", "write " BOX " /tmp/w", 1, "read stdin: Bad file descriptor" },
		{ "<&-", "exec -i " BOX " -- cat", 0, "" },
		{ ">&-", "ps", 1, "write to stdout: Bad file descriptor" },
		{ ">&-", "read " BOX " /etc/passwd", 1, "write to stdout: Bad file descriptor" },
		{ ">&-", "exec " BOX " -- echo hi", 125, "Bad file descriptor" },
		{ ">&-", "exec " BOX " -- true", 0, "" },
		{ "2>&-", "exec " BOX " -- sh -c 'echo lost >&2; exit 7'", 7, "" },
		{ "<&- >&- 2>&-", "exec " BOX " -- sh -c 'exit 7'", 7, "" },
		{ "</", "exec -i " BOX " -- cat", 125, "read stdin for 'cat': Is a directory" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		LIVE_CHILD c;
		redirected(&c, cases[i].how, cases[i].args);
		live_assert_says(&c, cases[i].status, cases[i].says);
	}
}

/* C-14 */
static void output_without_end_needs_no_memory(void **state)
{
	(void)state;
	static const char *const env[] = { "ASAN_OPTIONS=quarantine_size_mb=1", NULL };
	static const char *const ways[][10] = {
		{ "exec", BOX, "--", "head", "-c", "200000000", "/dev/zero", NULL },
		{ "exec", "--max-output", "1m", "--timeout", "3s", BOX, "--", "yes", NULL },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){ .argv = ways[i], .env = env });
		size_t most = live_child_watch_memory(&c, 100 * 1000);
		live_child_end(&c, 60000);
		assert_int_equal(c.status, i == 0 ? 0 : 124);
		assert_true(most > 0 && most < (size_t)100 << 20);
	}
}

static void the_library_counts_what_it_dropped(void **state)
{
	(void)state;
	const char *const argv[] = { "head", "-c", "3000000", "/dev/zero", NULL };
	const struct sba_exec_options o = { .argv = argv, .max_output = 1000000 };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	struct sba_exit end;
	enum sba_output which;
	const char *data;
	size_t got = 0;
	int told = 0;
	assert_int_equal(sba_sandbox_exec(box, &o, &p, &err), 0);
	for (ssize_t n = 1; n != 0;) {
		n = sba_process_read(p, -1, &which, &data, &err);
		told += n == SBA_ETIMEOUT;
		assert_true(n >= 0 || n == SBA_ETIMEOUT);
		got += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(sba_process_wait(p, -1, &end, &err), 0);
	assert_int_equal(sba_exit_status(&end), 0);
	assert_int_equal(got, 1000000);
	assert_int_equal(sba_process_dropped(p), 2000000);
	assert_int_equal(told, 1);
	sba_process_free(p);
}

static void a_character_between_two_pieces_stays_text(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "exec", BOX, "--", "sh", "-c",
	    "printf 'a\\303'; sleep 0.2; printf '\\244b'; sleep 0.2; printf '\\377'");
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *last = live_json_line(lines, "output");
	assert_string_equal(sba_json_str(last, "base64"), "/w==");
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(100);
	for (size_t i = 0; i < json_array_size(lines); i++) {
		const char *piece = sba_json_str(json_array_get(lines, i), "text");
		sba_buf_puts(&text, piece ? piece : "");
	}
	assert_string_equal(text.data, "aäb");
}

/* ---- a terminal ---- */

struct terminal {
	int master, slave;
	struct termios before;
	pid_t pid;
	int status;
};

static void open_terminal_with(struct terminal *t, const char *host, const char *const *argv)
{
	const struct winsize size = { .ws_row = 33, .ws_col = 99 };
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/sandbox-agent");
	assert_int_equal(openpty(&t->master, &t->slave, NULL, NULL, &size), 0);
	assert_int_equal(tcgetattr(t->slave, &t->before), 0);
	/* What is nobody's default must come back too. */
	t->before.c_lflag |= ECHOCTL;
	t->before.c_cc[VERASE] = '#';
	assert_int_equal(tcsetattr(t->slave, TCSANOW, &t->before), 0);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0) {
		if (host)
			setenv("DOCKER_HOST", host, 1);
		close(t->master);
		login_tty(t->slave);
		execv(path, (char **)(uintptr_t)argv);
		_exit(98);
	}
}

static void open_terminal(struct terminal *t, const char *host)
{
	open_terminal_with(t, host,
			   (const char *const[]){ "sandbox-agent", "exec", "-it", BOX, "--", "sh",
						  "-c",
						  "trap 'stty size' WINCH; echo rea''dy; "
						  "while :; do stty size; sleep 0.1; done",
						  NULL });
}

static void await_words(const struct terminal *t, const char *text)
{
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1024 * 1024);
	char piece[4096];
	while (!said.data || !strstr(said.data, text)) {
		if (sba_wait_fd(t->master, POLLIN, sba_until_in(60000), NULL) <= 0)
			fail_msg("no '%s' but: %s", text, said.data ? said.data : "");
		ssize_t n = read(t->master, piece, sizeof(piece));
		assert_true(n > 0);
		sba_buf_put(&said, piece, (size_t)n);
	}
}

static bool is_raw(const struct terminal *t)
{
	struct termios now;
	assert_int_equal(tcgetattr(t->slave, &now), 0);
	return !(now.c_lflag & (ICANON | ECHO | ISIG));
}

/* The terminal is read meanwhile: a last word would else wait for ever. */
static bool has_ended(void *user)
{
	struct terminal *t = user;
	char piece[4096];
	while (sba_wait_fd(t->master, POLLIN, sba_until_in(0), NULL) > 0 &&
	       read(t->master, piece, sizeof(piece)) > 0)
		;
	return waitpid(t->pid, &t->status, WNOHANG) == t->pid;
}

static void close_terminal(struct terminal *t)
{
	struct termios now;
	live_await(has_ended, t, 30000);
	assert_int_equal(tcgetattr(t->slave, &now), 0);
	assert_int_equal(now.c_iflag, t->before.c_iflag);
	assert_int_equal(now.c_oflag, t->before.c_oflag);
	assert_int_equal(now.c_cflag, t->before.c_cflag);
	assert_int_equal(now.c_lflag, t->before.c_lflag);
	assert_memory_equal(now.c_cc, t->before.c_cc, sizeof(now.c_cc));
	close(t->master);
	close(t->slave);
}

static void the_size_of_the_window_and_its_changes_reach_the_command(void **state)
{
	(void)state;
	const struct winsize size = { .ws_row = 11, .ws_col = 77 };
	struct terminal t;
	open_terminal(&t, NULL);
	await_words(&t, "33 99");
	assert_true(is_raw(&t));
	assert_int_equal(ioctl(t.master, TIOCSWINSZ, &size), 0);
	await_words(&t, "11 77");
	assert_int_equal(sba_write_all(t.master, "\003", 1, NULL), 0);
	close_terminal(&t);
	assert_true(WIFEXITED(t.status));
	assert_int_equal(WEXITSTATUS(t.status), 130);
}

static bool ends_a_program(int number)
{
	static const int others[] = { SIGCHLD, SIGCONT, SIGURG,  SIGWINCH, SIGSTOP,
				      SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE };
#ifdef __SANITIZE_ADDRESS__
	/* The sanitizer's own. */
	if (number == SIGSEGV || number == SIGBUS || number == SIGFPE)
		return false;
#endif
	for (size_t i = 0; i < SBA_ARRAY_LEN(others); i++) {
		if (number == others[i])
			return false;
	}
	return true;
}

static void every_signal_that_ends_us_leaves_the_terminal_as_it_was(void **state)
{
	(void)state;
	for (int number = 1; number <= SIGSYS; number++) {
		struct terminal t;
		if (number == SIGKILL || !ends_a_program(number))
			continue;
		open_terminal(&t, NULL);
		await_words(&t, "ready");
		assert_true(is_raw(&t));
		kill(t.pid, number);
		close_terminal(&t);
		assert_true(WIFSIGNALED(t.status) ? WTERMSIG(t.status) == number
						  : WEXITSTATUS(t.status) == 128 + number);
	}
}

static bool is_cooked(void *user)
{
	return !is_raw(user);
}

static bool is_raw_again(void *user)
{
	return is_raw(user);
}

static void who_stops_us_gets_the_terminal_as_it_was(void **state)
{
	(void)state;
	struct terminal t;
	open_terminal(&t, NULL);
	await_words(&t, "ready");
	kill(t.pid, SIGTSTP);
	live_await(is_cooked, &t, 10000);
	kill(t.pid, SIGCONT);
	live_await(is_raw_again, &t, 10000);
	kill(t.pid, SIGTERM);
	close_terminal(&t);
}

static void every_end_of_a_command_leaves_the_terminal_as_it_was(void **state)
{
	(void)state;
	static const struct {
		const char *timeout, *script, *key;
		int status;
	} ends[] = {
		{ "1m", "echo rea''dy; stty -echo; read x; exit 7", "\n", 7 },
		{ "1m", "echo rea''dy; exec cat", "\004", 0 },
		{ "1m", "echo rea''dy; exec sleep 60", "\003", 130 },
		{ "1m", "echo rea''dy; exec sleep 60", "\034", 131 },
		{ "1m", "echo rea''dy; stty raw; read x; kill -9 $$", "x\n", 137 },
		{ "1s", "echo rea''dy; exec sleep 60", "", 124 },
		{ "1m", "echo rea''dy; exec /no/such/program", "", 127 },
		/* Who has closed the terminal is not hung up on. */
		{ "1m", "echo rea''dy; exec <&- >&- 2>&-; sleep 0.5; exit 9", "", 9 },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(ends); i++) {
		struct terminal t;
		open_terminal_with(&t, NULL,
				   (const char *const[]){ "sandbox-agent", "exec", "-it",
							  "--timeout", ends[i].timeout, BOX, "--",
							  "sh", "-c", ends[i].script, NULL });
		await_words(&t, "ready");
		assert_int_equal(sba_write_all(t.master, ends[i].key, strlen(ends[i].key), NULL),
				 0);
		close_terminal(&t);
		if (!WIFEXITED(t.status) || WEXITSTATUS(t.status) != ends[i].status)
			fail_msg("%s: %d instead of %d", ends[i].script, t.status, ends[i].status);
	}
}

static void a_sandbox_that_is_removed_leaves_the_terminal_as_it_was(void **state)
{
	(void)state;
	struct sba_sandbox *other = live_sandbox((struct sba_sandbox_options){ .name = "going" });
	struct terminal t;
	open_terminal_with(&t, NULL,
			   (const char *const[]){ "sandbox-agent", "exec", "-it", "going", "--",
						  "sh", "-c", "echo rea''dy; exec sleep 60",
						  NULL });
	await_words(&t, "ready");
	assert_true(is_raw(&t));
	live_remove(other);
	close_terminal(&t);
	assert_int_equal(WEXITSTATUS(t.status), 125);
}

static void an_engine_that_goes_away_leaves_the_terminal_as_it_was(void **state)
{
	(void)state;
	struct live_proxy *proxy = live_proxy_start();
	struct terminal t;
	open_terminal(&t, live_proxy_host(proxy));
	await_words(&t, "ready");
	assert_true(is_raw(&t));
	live_proxy_cut(proxy);
	close_terminal(&t);
	assert_int_equal(WEXITSTATUS(t.status), 125);
	live_proxy_stop(proxy);
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
		LIVE_STEP(late_output_of_a_process_left_behind_is_kept),
		LIVE_STEP(who_holds_the_output_is_told_once_and_waited_for_no_longer),
		LIVE_STEP(a_daemon_that_let_go_of_the_output_is_not_mentioned),
		LIVE_STEP(output_beyond_the_limit_is_dropped_and_told),
		LIVE_STEP(a_full_disk_behind_our_stdout_is_told),
		LIVE_STEP(what_is_printed_and_does_not_arrive_is_no_success),
		LIVE_STEP(a_stream_that_was_closed_is_not_something_else),
		LIVE_STEP(output_without_end_needs_no_memory),
		LIVE_STEP(the_library_counts_what_it_dropped),
		LIVE_STEP(a_character_between_two_pieces_stays_text),
		LIVE_STEP(the_size_of_the_window_and_its_changes_reach_the_command),
		LIVE_STEP(every_signal_that_ends_us_leaves_the_terminal_as_it_was),
		LIVE_STEP(who_stops_us_gets_the_terminal_as_it_was),
		LIVE_STEP(every_end_of_a_command_leaves_the_terminal_as_it_was),
		LIVE_STEP(a_sandbox_that_is_removed_leaves_the_terminal_as_it_was),
		LIVE_STEP(an_engine_that_goes_away_leaves_the_terminal_as_it_was),
		LIVE_STEP(only_the_shared_sandbox_is_left_and_then_nothing),
	};
	return live_run(tests, begin, live_end);
}
