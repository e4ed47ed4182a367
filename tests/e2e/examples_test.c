/* SPDX-License-Identifier: MIT */
/* The example of many agents, here few: real CLIs, each in a sandbox of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <string.h>
#include <unistd.h>

int best_of_main(int argc, char **argv);
#define main best_of_main
#include "../../examples/best_of.c"
#undef main

/* The first of AGENTS, where the tests of one agent are wanted; not one that needs a key. */
static const char *agent(void)
{
	static char name[32];
	const char *list = getenv("AGENTS");
	size_t len = list ? strcspn(list, " ,") : 0;
	if (len == 0 || len >= sizeof(name))
		return "claude";
	memcpy(name, list, len);
	return name;
}

/* The example as its user has it, in a folder of its own; its exit status. */
static int best_of(const char *check)
{
	char *argv[] = { (char *)"best_of",
			 (char *)(uintptr_t)agent(),
			 (char *)"2",
			 (char *)"write a quicksort in Python to /workspace/qs.py and run it",
			 (char *)(uintptr_t)check,
			 (char *)"/workspace/qs.py",
			 NULL };
	const char *key = sba_provider_key_env(agent(), NULL);
	if (key)
		unsetenv(key);
	setenv("SANDBOX_AGENT_PREFIX", live.prefix, 1);
	char here[4096];
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(live.dir), 0);
	int status = best_of_main(6, argv);
	assert_int_equal(chdir(here), 0);
	return status;
}

static int slow_begin(void **state)
{
	enum { LIMIT_S = 300 };
	int rc = live_test_begin(state);
	alarm(LIMIT_S);
	return rc;
}
#define SLOW_TEST(f) cmocka_unit_test_setup_teardown(f, slow_begin, live_test_end)

static void the_work_of_the_best_comes_home(void **state)
{
	(void)state;
	assert_int_equal(best_of("python3 /workspace/qs.py"), 0);
	SBA_FREE char *file = live_read_file(live_path("qs.py"), NULL);
	assert_non_null(file);
	assert_non_null(strstr(file, "def quicksort"));
	assert_int_equal(live_container_count(), 0);
}

static void what_fails_the_check_does_not(void **state)
{
	(void)state;
	unlink(live_path("qs.py"));
	assert_int_equal(best_of("! python3 /workspace/qs.py"), 1);
	assert_int_equal(access(live_path("qs.py"), F_OK), -1);
	assert_int_equal(live_container_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOW_TEST(the_work_of_the_best_comes_home),
		SLOW_TEST(what_fails_the_check_does_not),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
