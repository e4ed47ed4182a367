/* SPDX-License-Identifier: MIT */
/*
 * The real CLIs in the real images, against the scripted model: everything
 * that a user of `run`, `up` and `chat` counts on, for each of the five, or of
 * those in the variable AGENTS ("claude codex").
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const agents[] = { "claude", "codex", "dsh", "opencode", "pi" };
#define EACH_AGENT(a)                                                                              \
	for (size_t a = 0; a < SBA_ARRAY_LEN(agents); a++)                                         \
		if (wanted(agents[a]))

/* A word of AGENTS; all are where it is not set. */
static bool wanted(const char *agent)
{
	const char *list = getenv("AGENTS"), *at = list;
	size_t len = strlen(agent);
	while (at && *at) {
		at += strspn(at, " ,");
		size_t word = strcspn(at, " ,");
		if (word == len && strncmp(at, agent, len) == 0)
			return true;
		at += word;
	}
	return !list || !*list;
}

static bool is(size_t a, const char *agent)
{
	return strcmp(agents[a], agent) == 0;
}

static int begin(void **state)
{
	struct sba_images *images = NULL;
	if (live_begin(state) < 0 || sba_images_open(NULL, NULL, &images, NULL) < 0)
		return -1;
	int rc = 0;
	EACH_AGENT(a)
	{
		SBA_JSON json_t *there = NULL;
		const char *ref = sba_images_ref(images, agents[a]);
		if (sba_image_inspect(live.engine, ref, sba_until_in(30000), &there, NULL) == 0)
			continue;
		print_error("image '%s' is missing: make images\n", ref);
		rc = -1;
	}
	sba_images_close(images);
	return rc;
}

/* Five CLIs one after another, some of which take many seconds to start. */
static int turns_begin(void **state)
{
	enum { LIMIT_S = 480 };
	int rc = live_test_begin(state);
	alarm(LIMIT_S);
	return rc;
}

#define TURNS_TEST(f) cmocka_unit_test_setup_teardown(f, turns_begin, live_test_end)

static void up(const char *agent, const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "up", agent, "--offline", "--name", name, "--keepalive", "60s");
	live_assert_says(&c, 0, NULL);
}

static void down(const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "rm", name);
	live_assert_says(&c, 0, NULL);
}

static struct sba_sandbox *open_box(const char *name)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, name, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* ---- the demonstration ---- */

static void assert_tool_worked(json_t *lines, const char *tool, size_t times, bool exit_code)
{
	size_t i, calls = 0, results = 0;
	json_t *one;
	json_array_foreach(lines, i, one)
	{
		const char *kind = sba_json_str(one, "kind"), *t = sba_json_str(one, "tool");
		if (!kind || !t || strcmp(t, tool) != 0)
			continue;
		calls += strcmp(kind, "tool_call") == 0;
		if (strcmp(kind, "tool_result") != 0)
			continue;
		results++;
		assert_false(sba_json_bool(one, "failed", true));
		if (exit_code)
			assert_int_equal(sba_json_int(one, "exit_code", 0), 0);
	}
	assert_int_equal(calls, times);
	assert_int_equal(results, times);
}

static void the_demo_writes_runs_and_brings_home_a_quicksort(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		char get[300], file[64];
		snprintf(file, sizeof(file), "out/%s-qs.py", agents[a]);
		snprintf(get, sizeof(get), "/workspace/qs.py:%s", live_path(file));
		RUN(&c, "--json", "run", agents[a], "--offline", "--network", "sealed",
		    "write a quicksort in Python to /workspace/qs.py and run it", "--get", get);
		live_assert_says(&c, 0, NULL);
		SBA_JSON json_t *lines = live_json_lines(&c);
		/* What codex writes with takes patches, which the script has none of. */
		bool shell_only = is(a, "codex");
		assert_tool_worked(lines, "write", shell_only ? 0 : 1, false);
		assert_tool_worked(lines, "bash", shell_only ? 2 : 1, true);
		const json_t *result = live_json_line(lines, "result");
		assert_string_equal(sba_json_str(result, "verdict"), "ok");
		assert_true(sba_json_int(result, "usage.input", 0) > 0);
		assert_true(sba_json_int(result, "usage.output", 0) > 0);
		assert_int_equal(sba_json_int(result, "tools", 0), 2);
		assert_non_null(strstr(sba_json_str(result, "text"), "/workspace/qs.py"));
		assert_true(*sba_json_str(result, "session") != '\0');
		SBA_FREE char *qs = live_read_file(live_path(file), NULL);
		assert_non_null(qs);
		assert_true(sba_starts_with(qs, "def quicksort(items):\n"));
		assert_int_equal(live_container_count(), 0);
	}
}

static void a_run_is_readable_in_words(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		RUN(&c, "run", agents[a], "--offline", "run: echo from-inside; exit 3");
		live_assert_says(&c, 0, "exit 3");
		assert_non_null(strstr(c.err.data, "echo from-inside"));
		assert_non_null(strstr(c.out.data, "from-inside"));
		assert_null(strchr(c.err.data, '\033'));
	}
}

/* ---- conversation ---- */

static void a_second_turn_remembers_the_first(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD first, second;
		up(agents[a], "talk");
		RUN(&first, "-q", "chat", "talk", "my colour is blue");
		live_assert_says(&first, 0, NULL);
		assert_non_null(strstr(first.out.data, "(message 1)"));
		RUN(&second, "-q", "chat", "talk", "and now?");
		live_assert_says(&second, 0, NULL);
		assert_non_null(strstr(second.out.data, "(message 2)"));
		down("talk");
	}
}

static void a_prompt_of_a_megabyte_arrives(void **state)
{
	(void)state;
	size_t len = 1024 * 1024;
	SBA_FREE char *prompt = malloc(len + 1);
	assert_non_null(prompt);
	memset(prompt, 'w', len);
	memcpy(prompt + len - 10, "the-end-42", 11);
	for (size_t i = 100; i < len - 10; i += 100)
		prompt[i] = ' ';
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		/* opencode goes on to compact what fills its context, so that its last
		 * answer is another one. */
		const char *const argv[] = { "run", agents[a], "--offline", "--timeout",
					     "30s", "-",       NULL };
		live_start(&c, &(struct live_start){ .argv = argv, .input = prompt });
		live_child_end(&c, 60000);
		live_assert_says(&c, is(a, "opencode") ? c.status : 0, NULL);
		assert_non_null(c.out.data);
		assert_non_null(strstr(c.out.data, "the-end-42 (message 1)"));
		assert_true(c.out.len > len);
	}
}

/* ---- the model's failures ---- */

static void a_refused_key_is_the_models_error_and_soon(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		/* A turn that succeeds is the measure: a CLI's start alone takes many
		 * seconds on a machine that is busy. */
		LIVE_CHILD good, c;
		RUN(&good, "run", agents[a], "--offline", "hi");
		live_assert_says(&good, 0, NULL);
		RUN(&c, "--json", "run", agents[a], "--offline", "error 401");
		live_assert_says(&c, 1, "model_error");
		assert_true(c.took_ms < 2 * good.took_ms + 10000);
		SBA_JSON json_t *lines = live_json_lines(&c);
		const json_t *result = live_json_line(lines, "result");
		assert_string_equal(sba_json_str(result, "verdict"), "model_error");
		assert_int_equal(sba_json_int(result, "http_status", 0), 401);
	}
}

static void a_model_that_is_not_there_is_the_models_error(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c, other;
		RUN(&c, "--json", "run", agents[a], "--offline", "-m", "no-such-model",
		    "error 404");
		live_assert_says(&c, 1, "model_error");
		SBA_JSON json_t *lines = live_json_lines(&c);
		const json_t *result = live_json_line(lines, "result");
		assert_string_equal(sba_json_str(result, "verdict"), "model_error");
		/* A name that only the provider knows is no CLI's business. */
		RUN(&other, "-q", "run", agents[a], "--offline", "-m", "no-such-model", "hi");
		live_assert_says(&other, 0, NULL);
		assert_non_null(strstr(other.out.data, "You said: hi"));
	}
}

static void too_many_requests_are_retried_but_not_for_ever(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		RUN(&c, "--json", "run", agents[a], "--offline", "--timeout", "40s", "error 429 1");
		assert_int_not_equal(c.status, 0);
		live_assert_says(&c, c.status, "\"error\"");
		assert_true(c.took_ms < 50000);
	}
}

static void a_stream_that_breaks_off_ends_the_turn(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		RUN(&c, "--json", "run", agents[a], "--offline", "--timeout", "90s", "cut");
		live_assert_says(&c, 1, "model_error");
		SBA_JSON json_t *lines = live_json_lines(&c);
		const json_t *result = live_json_line(lines, "result");
		assert_string_equal(sba_json_str(result, "verdict"), "model_error");
		assert_true(sba_json_bool(result, "retry", false));
	}
}

/* ---- the end from outside ---- */

static void interrupt_ends_all(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		const char *const argv[] = { "--color",   "never",
					     "run",       agents[a],
					     "--offline", "--name",
					     "doomed",    "run: echo on; sleep 8001",
					     NULL };
		live_start(&c, &(struct live_start){ .argv = argv, .terminal = true });
		struct sba_sandbox *s = NULL;
		live_child_await(&c, "sandbox doomed", 60000);
		s = open_box("doomed");
		/* opencode tells of a tool only when it has ended. */
		live_await_inside(sba_sandbox_container(s), "sleep 8001", true, 60000);
		sba_sandbox_close(s);
		kill(c.pid, SIGINT);
		live_child_end(&c, 20000);
		assert_int_equal(c.status, 130);
		assert_non_null(strstr(c.out.data, "nothing is left running"));
		assert_int_equal(live_container_count(), 0);
	}
}

static void a_killed_client_leaves_nothing_after_the_keepalive(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c;
		const char *const argv[] = { "run",    agents[a], "--offline",
					     "--name", "orphan",  "--keepalive",
					     "2s",     "slow",    NULL };
		live_start(&c, &(struct live_start){ .argv = argv });
		live_child_await(&c, "sandbox orphan", 60000);
		struct sba_sandbox *s = open_box("orphan");
		live_await_inside(sba_sandbox_container(s), agents[a], true, 20000);
		kill(c.pid, SIGKILL);
		live_child_end(&c, 10000);
		live_await_no_containers(20000);
		sba_sandbox_close(s);
	}
}

/* ---- secrets ---- */

/* What begins with `what` in a file of process `pid`, up to its NUL. */
static void of_file(const char *pid, const char *file, const char *what, char *ret, size_t size)
{
	char path[300];
	size_t len = 0;
	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	SBA_FREE char *text = live_read_file(path, &len);
	const char *at = text ? memmem(text, len, what, strlen(what)) : NULL;
	if (at)
		snprintf(ret, size, "%s", at);
}

static bool is_of(const char *pid, const char *container)
{
	char path[300];
	snprintf(path, sizeof(path), "/proc/%s/cgroup", pid);
	SBA_FREE char *cgroup = live_read_file(path, NULL);
	return cgroup && strstr(cgroup, container);
}

/* What the running CLI was given: looked for from here, because no command inside
 * sees another's environment. */
static void of_cli(struct sba_sandbox *s, const char *what, size_t len, char *ret)
{
	char found[1024] = "";
	DIR *dir = opendir("/proc");
	assert_non_null(dir);
	for (struct dirent *e; !*found && (e = readdir(dir)) != NULL;) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    !is_of(e->d_name, sba_sandbox_container(s)))
			continue;
		of_file(e->d_name, "environ", what, found, sizeof(found));
		if (!*found)
			of_file(e->d_name, "cmdline", what, found, sizeof(found));
	}
	closedir(dir);
	if (strlen(found) < len)
		fail_msg("no process of the sandbox has '%s' (this test reads /proc as root)",
			 what);
	snprintf(ret, len + 1, "%s", found);
}

static bool events_hold(const struct sba_sandbox_info *info, const char *text)
{
	char label[80];
	SBA_JSON json_t *events = NULL;
	struct sba_error err = { 0 };
	snprintf(label, sizeof(label), "io.sandbox-agent.id=%s", info->id);
	if (sba_engine_past_events(live.engine, label, info->created - 1, sba_until_in(30000),
				   &events, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(json_array_size(events) > 0);
	SBA_FREE char *dump = sba_json_dump(events);
	return strstr(dump, text) != NULL;
}

static void the_token_is_in_no_file_inspect_or_event(void **state)
{
	(void)state;
	EACH_AGENT(a)
	{
		LIVE_CHILD c, first;
		char token[64], url[64], script[512];
		up(agents[a], "secret");
		RUN(&first, "chat", "secret", "write /workspace/a: b");
		live_assert_says(&first, 0, NULL);
		const char *const argv[] = { "chat", "secret", "run: echo on; sleep 8011", NULL };
		live_start(&c, &(struct live_start){ .argv = argv });
		struct sba_sandbox *s = open_box("secret");
		live_await_inside(sba_sandbox_container(s), "sleep 8011", true, 60000);
		of_cli(s, "_KEY=", strlen("_KEY=") + 32, token);
		memmove(token, token + strlen("_KEY="), 33);
		of_cli(s, "http://127.0.0.1:", strlen("http://127.0.0.1:") + 4, url);
		snprintf(script, sizeof(script),
			 "grep -rlsF -e %s -e %s / --exclude-dir=proc --exclude-dir=sys "
			 "--exclude-dir=dev; true",
			 token, url);
		SBA_FREE char *files = live_sh_out(s, script);
		assert_string_equal(files, "");
		SBA_JSON json_t *inspect = live_inspect(sba_sandbox_container(s));
		SBA_FREE char *dump = sba_json_dump(inspect);
		assert_null(strstr(dump, token));
		assert_false(events_hold(sba_sandbox_info(s), token));
		assert_false(events_hold(sba_sandbox_info(s), "http://"));
		kill(c.pid, SIGTERM);
		live_child_end(&c, 20000);
		sba_sandbox_close(s);
		down("secret");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURNS_TEST(the_demo_writes_runs_and_brings_home_a_quicksort),
		TURNS_TEST(a_run_is_readable_in_words),
		TURNS_TEST(a_second_turn_remembers_the_first),
		TURNS_TEST(a_prompt_of_a_megabyte_arrives),
		TURNS_TEST(a_refused_key_is_the_models_error_and_soon),
		TURNS_TEST(a_model_that_is_not_there_is_the_models_error),
		TURNS_TEST(too_many_requests_are_retried_but_not_for_ever),
		TURNS_TEST(a_stream_that_breaks_off_ends_the_turn),
		TURNS_TEST(interrupt_ends_all),
		TURNS_TEST(a_killed_client_leaves_nothing_after_the_keepalive),
		TURNS_TEST(the_token_is_in_no_file_inspect_or_event),
		TURNS_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
