/* SPDX-License-Identifier: MIT */
/* The example that uploads a folder, runs a command and brings its result home. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int round_trip_main(int argc, char **argv);
#define main round_trip_main
#include "../../examples/round_trip.c"
#undef main

/* The example as its user has it, in a folder of its own; its exit status. */
static int round_trip(const char *command, const char *result)
{
	char *argv[] = { (char *)"round_trip",       (char *)(uintptr_t)live.image, (char *)"in",
			 (char *)(uintptr_t)command, (char *)(uintptr_t)result,     NULL };
	setenv("SANDBOX_AGENT_PREFIX", live.prefix, 1);
	char here[4096];
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(live.dir), 0);
	int status = round_trip_main(5, argv);
	assert_int_equal(chdir(here), 0);
	return status;
}

static void what_the_command_made_comes_home(void **state)
{
	(void)state;
	assert_int_equal(mkdir(live_path("in"), 0755), 0);
	live_write_file(live_path("in/words"), "b\na\n", 4, 0644);
	live_write_file(live_path("in/old.o"), "x", 1, 0644);
	assert_int_equal(round_trip("mkdir out; sort words > out/sorted; ls > out/seen", "out"), 0);
	SBA_FREE char *sorted = live_read_file(live_path("out/sorted"), NULL);
	SBA_FREE char *seen = live_read_file(live_path("out/seen"), NULL);
	assert_string_equal(sorted, "a\nb\n");
	assert_string_equal(seen, "out\nwords\n");
	assert_int_equal(live_container_count(), 0);
}

static void a_result_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(round_trip("true", "no-such"), 1);
	assert_int_equal(access(live_path("no-such"), F_OK), -1);
	assert_int_equal(live_container_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(what_the_command_made_comes_home),
		LIVE_TEST(a_result_that_is_not_there_is_an_error),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
