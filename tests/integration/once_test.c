/* SPDX-License-Identifier: MIT */
/* What is said once for each engine: an old runc, at an engine that says what it has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fake_engine.h"
#include "support/folder.h"
#include "support/live.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[64], host[160];

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	test_folder(folder, sizeof(folder), "once");
	setenv("XDG_STATE_HOME", folder, 1);
	setenv("XDG_CONFIG_HOME", folder, 1);
	unsetenv("SANDBOX_AGENT_CONFIG");
	return 0;
}

static int tidy(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

/* `create` up to the image that is not there; `more`: of its options; runc NULL: nobody
 * asks for it. *ret_asked: how many
 * questions that took. */
static void create(struct live_child *c, const char *runc, const char *const *more,
		   size_t *ret_asked)
{
	char version[160], to_it[512];
	const char *argv[16] = { "-H", to_it, "create", "--image", "none:1" };
	snprintf(version, sizeof(version),
		 "{\"Version\":\"20.10\",\"Components\":[{\"Name\":\"runc\",\"Version\":\"%s\"}]}",
		 runc ? runc : "");
	SBA_FREE char *told = fake_json(version);
	SBA_FREE char *info = fake_json("{\"NCPU\":2}");
	struct fake_exchange script[] = {
		{ .method = "GET", .path = "/version ", .answer = told },
		{ .method = "GET", .path = "/info ", .answer = info },
		{ .answer = FAKE_ANSWER("404 Not Found", "{\"message\":\"no such image\"}"),
		  .forever = true,
		  .then = FAKE_CLOSE },
	};
	size_t from = runc ? 0 : 2;
	struct fake_engine *f =
		fake_engine_start("1.41", script + from, SBA_ARRAY_LEN(script) - from);
	/* One address for all of them: an engine is known by it. */
	unlink(host);
	assert_int_equal(symlink(fake_engine_host(f) + strlen("unix://"), host), 0);
	snprintf(to_it, sizeof(to_it), "unix://%s", host);
	for (size_t i = 0; more && more[i]; i++)
		argv[5 + i] = more[i];
	live_program(c, argv);
	assert_int_not_equal(c->status, 0);
	*ret_asked = fake_engine_requests(f);
	fake_engine_stop(f);
}

static bool warns(const char *runc, const char *const *more, size_t *ret_asked)
{
	LIVE_CHILD c;
	snprintf(host, sizeof(host), "%s/engine", folder);
	create(&c, runc, more, ret_asked);
	return strstr(c.err.data, "is older than 1.1.12") != NULL;
}

static void an_old_runc_is_told_once_for_each_version(void **state)
{
	(void)state;
	size_t asked;
	assert_true(warns("1.1.4", NULL, &asked));
	assert_false(warns("1.1.4", NULL, &asked));
	assert_true(warns("1.1.5+ds1", NULL, &asked));
	assert_false(warns("1.1.12", NULL, &asked));
	assert_true(warns("1.1.5+ds1", NULL, &asked));
}

static void who_wants_all_is_told_each_time(void **state)
{
	(void)state;
	static const char *const verbose[] = { "-v", NULL };
	size_t asked;
	assert_true(warns("1.1.4", NULL, &asked));
	assert_true(warns("1.1.4", verbose, &asked));
}

/* Nothing was shown then: it is still to be said. */
static void what_was_not_shown_counts_as_not_said(void **state)
{
	(void)state;
	static const char *const quiet[] = { "-q", NULL };
	size_t asked;
	assert_false(warns(NULL, quiet, &asked));
	assert_true(warns("1.1.4", NULL, &asked));
}

static void an_engine_that_was_asked_is_asked_no_more_where_nothing_else_needs_it(void **state)
{
	(void)state;
	static const char *const cpus[] = { "--cpus", "1", NULL };
	size_t asked, again;
	assert_true(warns("1.1.4", cpus, &asked));
	assert_false(warns(NULL, cpus, &again));
	assert_int_equal(again, asked - 2);
}

static void where_nothing_can_be_kept_it_is_no_error_and_said_again(void **state)
{
	(void)state;
	size_t asked;
	setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
	assert_true(warns("1.1.4", NULL, &asked));
	assert_true(warns("1.1.4", NULL, &asked));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, prepare, tidy)
	const struct CMUnitTest tests[] = {
		TEST(an_old_runc_is_told_once_for_each_version),
		TEST(who_wants_all_is_told_each_time),
		TEST(what_was_not_shown_counts_as_not_said),
		TEST(an_engine_that_was_asked_is_asked_no_more_where_nothing_else_needs_it),
		TEST(where_nothing_can_be_kept_it_is_no_error_and_said_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
