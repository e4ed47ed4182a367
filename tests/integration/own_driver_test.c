/* SPDX-License-Identifier: MIT */
/*
 * Agents that the library does not know: the example's driver of its own, and any
 * program by the agent `command`.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int own_driver_main(int argc, char **argv);
#define main own_driver_main
#include "../../examples/own_driver.c"
#undef main

static void the_example_talks_twice_in_one_session(void **state)
{
	(void)state;
	char *argv[] = { (char *)"own_driver", (char *)(uintptr_t)live.image, (char *)"hello you",
			 NULL };
	setenv("SANDBOX_AGENT_PREFIX", live.prefix, 1);
	fflush(stdout);
	SBA_CLOSE int kept = dup(STDOUT_FILENO);
	SBA_CLOSE int file = open(live_path("said"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(kept >= 0 && file >= 0);
	dup2(file, STDOUT_FILENO);
	int status = own_driver_main(3, argv);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	assert_int_equal(status, 0);
	SBA_FREE char *said = live_read_file(live_path("said"), NULL);
	static const char first[] =
		"thinking: what was said?\nbash: ls /workspace\ntext: hello you\n"
		"ok, session parrot-";
	assert_true(sba_starts_with(said, first));
	/* The second half is the first again, by the same session. */
	size_t half = strlen(said) / 2;
	assert_memory_equal(said, said + half, half);
	assert_int_equal(live_container_count(), 0);
}

static void any_program_is_an_agent(void **state)
{
	LIVE_CHILD c, failed;
	(void)state;
	RUN(&c, "run", "command", "--image", live.image, "hello", "--", "sed", "s/l/L/g");
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "heLLo\n");
	RUN(&failed, "--json", "run", "command", "--image", live.image, "hello", "--", "sh", "-c",
	    "echo half; echo why >&2; exit 7");
	live_assert_says(&failed, 1, "agent_failed");
	assert_non_null(strstr(failed.out.data, "exit status 7: why"));
	assert_int_equal(live_container_count(), 0);
}

static void a_program_has_a_model_only_where_one_is_asked_for(void **state)
{
	LIVE_CHILD with, without;
	(void)state;
	RUN(&with, "run", "command", "--offline", "--image", live.image, "x", "--", "sh", "-c",
	    "echo ${OPENAI_BASE_URL%:*} ${#OPENAI_API_KEY}");
	live_assert_says(&with, 0, NULL);
	assert_string_equal(with.out.data, "http://127.0.0.1 32\n");
	RUN(&without, "run", "command", "--image", live.image, "x", "--", "sh", "-c",
	    "echo none${OPENAI_BASE_URL}${OPENAI_API_KEY}");
	live_assert_says(&without, 0, NULL);
	assert_string_equal(without.out.data, "none\n");
}

static void the_program_of_a_sandbox_is_run_by_each_chat(void **state)
{
	LIVE_CHILD up, first, second, fork, child, gone;
	(void)state;
	RUN(&up, "up", "command", "--image", live.image, "--name", "prog", "--", "sh", "-c",
	    "cat; echo \" $SANDBOX_AGENT_SESSION$SANDBOX_AGENT_RESUME\"");
	live_assert_says(&up, 0, NULL);
	RUN(&first, "-q", "chat", "prog", "one");
	RUN(&second, "-q", "chat", "prog", "two");
	live_assert_says(&first, 0, NULL);
	live_assert_says(&second, 0, NULL);
	assert_true(sba_starts_with(first.out.data, "one "));
	assert_true(sba_starts_with(second.out.data, "two "));
	assert_string_equal(first.out.data + 4, second.out.data + 4);
	/* What it keeps of its session nobody knows: a child begins anew. */
	RUN(&fork, "fork", "prog", "--name", "kid");
	live_assert_says(&fork, 0, NULL);
	RUN(&child, "-q", "chat", "kid", "three");
	live_assert_says(&child, 0, NULL);
	assert_true(sba_starts_with(child.out.data, "three "));
	assert_string_not_equal(child.out.data + 6, second.out.data + 4);
	RUN(&gone, "rm", "prog", "kid");
	live_assert_says(&gone, 0, NULL);
}

static void what_is_no_program_is_said_so(void **state)
{
	LIVE_CHILD none, missing, extra;
	(void)state;
	RUN(&none, "run", "command", "--image", live.image, "hello");
	live_assert_says(&none, 2, "-- PROGRAM");
	RUN(&missing, "run", "command", "--image", live.image, "hello", "--", "no-such-program");
	live_assert_says(&missing, 1, "no-such-program");
	RUN(&extra, "run", "claude", "--offline", "two", "words");
	live_assert_says(&extra, 2, "quote it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(the_example_talks_twice_in_one_session),
		LIVE_TEST(any_program_is_an_agent),
		LIVE_TEST(a_program_has_a_model_only_where_one_is_asked_for),
		LIVE_TEST(the_program_of_a_sandbox_is_run_by_each_chat),
		LIVE_TEST(what_is_no_program_is_said_so),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
