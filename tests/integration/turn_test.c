/* SPDX-License-Identifier: MIT */
/*
 * Turns of a CLI that misbehaves in every way a real one was seen to: a fake
 * claude (support/live_image.c), driven through the program.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE "claude", "--offline", "--image", live_fake_image()

static void assert_no_escapes(const struct live_child *c)
{
	assert_null(strchr(c->out.data ? c->out.data : "", '\033'));
	assert_null(strchr(c->err.data ? c->err.data : "", '\033'));
}

/* ---- what it prints ---- */

static void a_turn_is_told_in_words(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", FAKE, "good morning");
	live_assert_says(&c, 0, "ok");
	assert_string_equal(c.out.data, "heard good morning\n");
	assert_no_escapes(&c);
}

static void quiet_prints_the_answer_alone(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "-q", "run", FAKE, "hi");
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "heard hi\n");
	assert_int_equal(c.err.len, 0);
}

static void json_is_a_line_for_each_event_and_says_its_version_first(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "run", FAKE, "hi");
	live_assert_says(&c, 0, NULL);
	assert_int_equal(c.err.len, 0);
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_string_equal(sba_json_str(json_array_get(lines, 0), "agent"), "claude");
	assert_string_equal(sba_json_str(live_json_line(lines, "text"), "text"), "heard hi");
	const json_t *result = live_json_line(lines, "result");
	assert_ptr_equal(result, json_array_get(lines, json_array_size(lines) - 1));
	assert_string_equal(sba_json_str(result, "verdict"), "ok");
	assert_string_equal(sba_json_str(result, "text"), "heard hi");
	assert_int_equal(sba_json_int(result, "usage.output", 0), 3);
	assert_int_equal(sba_json_int(result, "exit_status", -1), 0);
}

static void a_death_for_lack_of_memory_is_noticed_though_the_cli_goes_on(void **state)
{
	(void)state;
	LIVE_CHILD json, words;
	RUN(&json, "--json", "run", FAKE, "--memory", "32m", "hog");
	live_assert_says(&json, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_non_null(
		strstr(sba_json_str(live_json_line(lines, "notice"), "text"), "out of memory"));
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"), "ok");
	RUN(&words, "run", FAKE, "--memory", "32m", "hog");
	live_assert_says(&words, 0, "something in the sandbox was killed: out of memory");
}

static void invalid_utf8_is_shown_replaced(void **state)
{
	(void)state;
	LIVE_CHILD words, json;
	RUN(&words, "run", FAKE, "utf8");
	live_assert_says(&words, 0, NULL);
	assert_true(sba_utf8_valid(words.out.data, words.out.len));
	assert_true(sba_utf8_valid(words.err.data, words.err.len));
	assert_non_null(strstr(words.out.data, "a\xEF\xBF\xBD"
					       "b"));
	RUN(&json, "--json", "run", FAKE, "utf8");
	live_assert_says(&json, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"), "ok");
}

static void a_line_of_five_megabytes_is_shown_whole(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", FAKE, "long");
	live_assert_says(&c, 0, NULL);
	assert_int_equal(c.out.len, 5 * 1024 * 1024 + 1);
}

static void five_megabytes_of_junk_in_a_line_harm_nothing(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "run", FAKE, "junk");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *result = live_json_line(lines, "result");
	assert_string_equal(sba_json_str(result, "text"), "done");
	assert_int_equal(sba_json_int(result, "unknown_lines", 0), 1);
}

static void escapes_of_a_tool_are_shown_escaped(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "-v", "run", FAKE, "escape");
	live_assert_says(&c, 0, "\\x1b]0;owned\\x07");
	assert_null(strchr(c.err.data, '\033'));
	assert_null(strstr(c.err.data, "\xE2\x80\xAE"));
	/* Into a pipe the answer goes as it is. */
	assert_string_equal(c.out.data, "red \033[31m text\n");
}

static void escapes_of_an_answer_are_shown_escaped_on_a_terminal(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "-v", "--color", "never", "run", FAKE, "escape", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .terminal = true });
	live_child_end(&c, 60000);
	assert_int_equal(c.status, 0);
	assert_non_null(strstr(c.out.data, "red \\x1b[31m text"));
	assert_non_null(strstr(c.out.data, "\\x1b]0;owned\\x07"));
	assert_null(strstr(c.out.data, "\033]0;"));
	assert_null(strstr(c.out.data, "\033[31m"));
	assert_null(strstr(c.out.data, "\033[2Kall"));
}

static void no_color_and_color_always_mean_what_they_say(void **state)
{
	(void)state;
	LIVE_CHILD always, never;
	RUN(&always, "--color", "always", "run", FAKE, "hi");
	live_assert_says(&always, 0, "\033[");
	RUN(&never, "--color", "never", "run", FAKE, "hi");
	live_assert_says(&never, 0, NULL);
	assert_no_escapes(&never);
}

/* ---- how it ends ---- */

static void a_cli_that_stays_after_its_last_word_is_ended_and_its_answer_kept(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "run", FAKE, "linger");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *result = live_json_line(lines, "result");
	assert_string_equal(sba_json_str(result, "verdict"), "ok");
	assert_string_equal(sba_json_str(result, "text"), "kept");
	assert_true(c.took_ms < 30000);
}

static void a_cli_that_goes_on_after_its_last_word_is_let(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "-q", "run", FAKE, "again");
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "two\n");
}

static void a_silent_cli_runs_into_the_idle_timeout(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", FAKE, "--idle-timeout", "2s", "silent");
	live_assert_says(&c, 124, "nothing came from it for 2");
	assert_true(c.took_ms < 20000);
}

static void a_cli_that_computes_in_silence_is_not_idle(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "-q", "run", FAKE, "--idle-timeout", "3s", "compute");
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "heard compute\n");
}

static void every_end_is_one_verdict_and_its_status(void **state)
{
	static const struct {
		const char *prompt, *verdict;
		int status, http;
		bool retry;
	} rows[] = {
		{ "hello", "ok", 0, 0, false },
		{ "crash", "agent_failed", 1, 0, false },
		{ "mute", "no_answer", 1, 0, false },
		{ "refused 401", "model_error", 1, 401, false },
		{ "refused 529", "model_error", 1, 529, true },
		{ "stubborn", "timeout", 124, 0, false },
		{ "silent", "idle_timeout", 124, 0, false },
	};
	LIVE_CHILD up, rm;
	(void)state;
	RUN(&up, "up", FAKE, "--name", "judged");
	live_assert_says(&up, 0, NULL);
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		LIVE_CHILD c;
		bool late = strcmp(rows[i].verdict, "timeout") == 0;
		RUN(&c, "--json", "chat", "judged", "--timeout", late ? "2s" : "60s",
		    "--idle-timeout", late ? "60s" : "2s", rows[i].prompt);
		SBA_JSON json_t *lines = live_json_lines(&c);
		const json_t *result = live_json_line(lines, "result");
		assert_string_equal(sba_json_str(result, "verdict"), rows[i].verdict);
		assert_int_equal(c.status, rows[i].status);
		assert_int_equal(sba_json_int(result, "http_status", 0), rows[i].http);
		assert_int_equal(sba_json_bool(result, "retry", false), rows[i].retry);
	}
	RUN(&rm, "rm", "judged");
	live_assert_says(&rm, 0, NULL);
}

/* Begins a turn that hangs, and does `harm` to it; its last object. */
static void assert_harmed(void (*harm)(struct live_child *), const char *verdict, int status)
{
	LIVE_CHILD c;
	const char *const argv[] = { "--json", "run", FAKE, "--name", "harmed", "hang", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 30000);
	harm(&c);
	live_child_end(&c, 30000);
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"), verdict);
	assert_int_equal(c.status, status);
	live_await_no_containers(20000);
}

static void by_signal(struct live_child *c)
{
	kill(c->pid, SIGINT);
}

static void by_death(struct live_child *c)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	(void)c;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "harmed", &s, &err), 0);
	live_kill_container(sba_sandbox_container(s));
	sba_sandbox_close(s);
}

static void an_end_from_outside_is_one_verdict_too(void **state)
{
	(void)state;
	assert_harmed(by_signal, "canceled", 130);
	assert_harmed(by_death, "sandbox_broken", 4);
}

static void an_engine_that_goes_away_is_a_verdict_of_its_own(void **state)
{
	LIVE_CHILD c;
	(void)state;
	struct live_proxy *proxy = live_proxy_start();
	const char *const argv[] = { "-H", live_proxy_host(proxy), "--json", "run",
				     FAKE, "--keepalive",          "2s",     "hang",
				     NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	live_proxy_cut(proxy);
	live_child_end(&c, 60000);
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"),
			    "engine_lost");
	assert_int_equal(c.status, 3);
	live_proxy_stop(proxy);
	live_await_no_containers(60000);
}

static void a_stubborn_cli_is_ended_at_the_timeout_with_its_children(void **state)
{
	(void)state;
	LIVE_CHILD up, c, rm;
	RUN(&up, "up", FAKE, "--name", "stubborn");
	live_assert_says(&up, 0, NULL);
	RUN(&c, "chat", "stubborn", "--timeout", "2s", "stubborn");
	live_assert_says(&c, 124, "its time was over");
	assert_string_equal(c.out.data, "working\n");
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "stubborn", &s, &err), 0);
	assert_false(live_runs_inside(sba_sandbox_container(s), "sleep 4244"));
	/* The sandbox is as usable as before. */
	LIVE_CHILD again;
	RUN(&again, "chat", "stubborn", "hi");
	live_assert_says(&again, 0, NULL);
	sba_sandbox_close(s);
	RUN(&rm, "rm", "stubborn");
	live_assert_says(&rm, 0, NULL);
}

static void a_cli_that_crashes_is_told_with_its_words(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", FAKE, "crash");
	live_assert_says(&c, 1, "the fake broke");
}

static void a_cli_that_says_nothing_is_no_success(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "run", FAKE, "mute");
	live_assert_says(&c, 1, "agent_failed");
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"), "no_answer");
}

/* ---- signals ---- */

static void signal_in_run(int number, int status, const char *how)
{
	LIVE_CHILD c;
	const char *const argv[] = { "run", FAKE, "stubborn", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	kill(c.pid, number);
	live_child_end(&c, 20000);
	live_assert_says(&c, status, how);
	assert_non_null(strstr(c.err.data, "nothing is left running"));
	assert_int_equal(live_container_count(), 0);
}

static void interrupt_ends_the_run_and_says_so(void **state)
{
	(void)state;
	signal_in_run(SIGINT, 130, "interrupted");
}

static void terminate_ends_the_run_and_says_so(void **state)
{
	(void)state;
	signal_in_run(SIGTERM, 143, "terminated");
}

static void hangup_ends_the_run_and_says_so(void **state)
{
	(void)state;
	signal_in_run(SIGHUP, 129, "hung up");
}

struct birth {
	struct live_child *child;
	size_t containers;
};

static bool born(void *user)
{
	return live_container_count() >= ((struct birth *)user)->containers;
}

static void interrupt_while_it_is_made_leaves_nothing(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 2; n++) {
		LIVE_CHILD c;
		const char *const argv[] = { "run", FAKE, "stubborn", NULL };
		live_start(&c, &(struct live_start){ .argv = argv });
		struct birth b = { &c, n };
		live_await(born, &b, 30000);
		kill(c.pid, SIGINT);
		live_child_end(&c, 30000);
		/* Before its handler was there, the signal's own way. */
		live_assert_says(&c, 130, NULL);
		assert_int_equal(live_container_count(), 0);
	}
}

static void interrupt_in_a_chat_leaves_the_sandbox_and_no_command(void **state)
{
	(void)state;
	LIVE_CHILD up, c, rm;
	RUN(&up, "up", FAKE, "--name", "patient");
	live_assert_says(&up, 0, NULL);
	const char *const argv[] = { "chat", "patient", "stubborn", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	kill(c.pid, SIGINT);
	live_child_end(&c, 20000);
	live_assert_says(&c, 130, "the sandbox lives on");
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "patient", &s, &err), 0);
	assert_false(live_runs_inside(sba_sandbox_container(s), "sleep 4244"));
	sba_sandbox_close(s);
	RUN(&rm, "rm", "patient");
	live_assert_says(&rm, 0, NULL);
}

static void a_killed_client_leaves_nothing_after_the_keepalive(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "run", FAKE, "--keepalive", "2s", "stubborn", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	kill(c.pid, SIGKILL);
	live_child_end(&c, 10000);
	assert_int_equal(c.status, 137);
	live_await_no_containers(20000);
}

static void a_reader_who_goes_away_ends_the_turn(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "run", FAKE, "long", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .close_stdout = true });
	live_child_end(&c, 30000);
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, NULL);
	assert_int_equal(live_container_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_turn_is_told_in_words),
		LIVE_TEST(quiet_prints_the_answer_alone),
		LIVE_TEST(json_is_a_line_for_each_event_and_says_its_version_first),
		LIVE_TEST(invalid_utf8_is_shown_replaced),
		LIVE_TEST(a_death_for_lack_of_memory_is_noticed_though_the_cli_goes_on),
		LIVE_TEST(a_line_of_five_megabytes_is_shown_whole),
		LIVE_TEST(five_megabytes_of_junk_in_a_line_harm_nothing),
		LIVE_TEST(escapes_of_a_tool_are_shown_escaped),
		LIVE_TEST(escapes_of_an_answer_are_shown_escaped_on_a_terminal),
		LIVE_TEST(no_color_and_color_always_mean_what_they_say),
		LIVE_TEST(a_cli_that_stays_after_its_last_word_is_ended_and_its_answer_kept),
		LIVE_TEST(a_cli_that_goes_on_after_its_last_word_is_let),
		LIVE_TEST(a_silent_cli_runs_into_the_idle_timeout),
		LIVE_TEST(a_cli_that_computes_in_silence_is_not_idle),
		LIVE_TEST(every_end_is_one_verdict_and_its_status),
		LIVE_TEST(an_end_from_outside_is_one_verdict_too),
		LIVE_TEST(an_engine_that_goes_away_is_a_verdict_of_its_own),
		LIVE_TEST(a_stubborn_cli_is_ended_at_the_timeout_with_its_children),
		LIVE_TEST(a_cli_that_crashes_is_told_with_its_words),
		LIVE_TEST(a_cli_that_says_nothing_is_no_success),
		LIVE_TEST(interrupt_ends_the_run_and_says_so),
		LIVE_TEST(terminate_ends_the_run_and_says_so),
		LIVE_TEST(hangup_ends_the_run_and_says_so),
		LIVE_TEST(interrupt_while_it_is_made_leaves_nothing),
		LIVE_TEST(interrupt_in_a_chat_leaves_the_sandbox_and_no_command),
		LIVE_TEST(a_killed_client_leaves_nothing_after_the_keepalive),
		LIVE_TEST(a_reader_who_goes_away_ends_the_turn),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
