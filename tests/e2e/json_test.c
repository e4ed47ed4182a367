/* SPDX-License-Identifier: MIT */
/* What --json prints of a real CLI's turns and sessions is what docs/json.md says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/json_doc.h"
#include "support/live.h"

#include <string.h>
#include <unistd.h>

/* The first of AGENTS, where the tests of some are wanted. */
static const char *agent(void)
{
	static char name[32];
	const char *list = getenv("AGENTS");
	size_t len = list ? strcspn(list, " ,") : 0;
	snprintf(name, sizeof(name), "%.*s", (int)len, list ? list : "");
	return len ? name : "claude";
}

static int slow_begin(void **state)
{
	enum { LIMIT_S = 480 };
	int rc = live_test_begin(state);
	alarm(LIMIT_S);
	return rc;
}
#define SLOW_TEST(f) cmocka_unit_test_setup_teardown(f, slow_begin, live_test_end)

/* The id of the main session of j; the caller frees. */
static char *session(void)
{
	LIVE_CHILD c;
	RUN(&c, "--json", "sessions", "ls", "j");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *j = json_loadb(c.out.data, c.out.len, 0, NULL);
	const json_t *first = json_array_get(json_object_get(j, "sessions"), 0);
	const char *id = json_string_value(json_object_get(first, "id"));
	assert_non_null(id);
	return strdup(id);
}

static void turns_and_sessions(void **state)
{
	static const char turn[] = "start event result";
	(void)state;
	PRINTS("sandbox", "up", agent(), "--offline", "-m", "scripted", "--name", "j");
	PRINTS_AND_EXITS(0, NULL, turn, "chat", "j", "run: echo hello >/workspace/x; cat x");
	PRINTS_AND_EXITS(0, NULL, turn, "ask", "j", "what was it?");
	PRINTS("sessions ls", "sessions", "ls", "j");
	SBA_FREE char *id = session();
	PRINTS("sessions use", "sessions", "fork", "j", id);
	PRINTS("sessions use", "sessions", "use", "j", id);
	PRINTS("sessions dump", "sessions", "dump", "j", live_path("dump"), "--workspace");
	PRINTS("sessions load", "sessions", "load", "j", live_path("dump"));
	PRINTS("gc", "sessions", "rm", "j", id);
	PRINTS("rm", "rm", "j");
}

static void commits(void **state)
{
	const char *dir = live_path("repo");
	LIVE_CHILD inside;
	(void)state;
	test_folder_must_sh(live.dir,
			    "git init -q -b main repo; cd repo; git config user.name Ann; "
			    "git config user.email ann@example.org; echo 1 > one; git add .; "
			    "git commit -qm first");
	PRINTS("sandbox", "create", "--name", "j", "-w", dir);
	PRINTS("commits", "apply", "j", dir, "--commits");
	RUN(&inside, "exec", "j", "--", "sh", "-c",
	    "cd /workspace && echo 2 > one && git commit -qam second");
	live_assert_says(&inside, 0, NULL);
	PRINTS("commits", "apply", "j", dir, "--commits", "--check");
	PRINTS("commits", "apply", "j", dir, "--commits");
	PRINTS("rm", "rm", "j");
}

static void images_that_are_there(void **state)
{
	(void)state;
	PRINTS("image ls", "image", "ls");
	PRINTS("done", "image", "check", "base");
	LIVE_CHILD c;
	RUN(&c, "--json", "image", "build", "base");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	json_doc_check("progress", live_json_line(lines, "progress"));
	json_doc_check("done", live_json_line(lines, "result"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOW_TEST(turns_and_sessions),
		SLOW_TEST(commits),
		SLOW_TEST(images_that_are_there),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
