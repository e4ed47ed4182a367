/* SPDX-License-Identifier: MIT */
/*
 * The real CLIs in the real images, against the scripted model: everything that a user
 * of `run`, `up` and `chat` counts on. The checks of an agent share one sealed sandbox.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Containers of the sandbox that is there all the time. */
static size_t standing;

static int begin(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "up", agent.name, "--offline", "--network", "sealed", "--name", "talk",
		  "--keepalive", "15m");
	live_assert_says(&c, 0, NULL);
	standing = live_container_count();
	return 0;
}

static int end(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "rm", "talk");
	return c.status;
}

static struct sba_sandbox *open_box(const char *name)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, name, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static bool only_the_standing(void *user)
{
	(void)user;
	return live_container_count() == standing;
}

/* The next turn begins anew: it has little to send, and no failure of before. */
static void forget(void)
{
	LIVE_CHILD ls;
	size_t i;
	json_t *one;
	AGENT_RUN(&ls, "--json", "sessions", "ls", "talk");
	live_assert_says(&ls, 0, NULL);
	SBA_JSON json_t *j = json_loads(ls.out.data, 0, NULL);
	json_array_foreach(json_object_get(j, "sessions"), i, one)
	{
		if (!sba_json_bool(one, "main", false))
			continue;
		LIVE_CHILD rm;
		AGENT_RUN(&rm, "sessions", "rm", "talk", sba_json_str(one, "id"));
		live_assert_says(&rm, 0, NULL);
	}
}

/* ---- the main job ---- */

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
	LIVE_CHILD c;
	char get[300];
	(void)state;
	snprintf(get, sizeof(get), "/workspace/qs.py:%s", live_path("qs.py"));
	AGENT_RUN(&c, "--json", "run", agent.name, "--offline", "--network", "sealed",
		  "write a quicksort in Python to /workspace/qs.py and run it", "--get", get);
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	/* What codex writes with takes patches, which the script has none of. */
	bool shell_only = agent_is("codex");
	assert_tool_worked(lines, "write", shell_only ? 0 : 1, false);
	assert_tool_worked(lines, "bash", shell_only ? 2 : 1, true);
	const json_t *result = live_json_line(lines, "result");
	assert_string_equal(sba_json_str(result, "verdict"), "ok");
	assert_true(sba_json_int(result, "usage.input", 0) > 0);
	assert_true(sba_json_int(result, "usage.output", 0) > 0);
	assert_int_equal(sba_json_int(result, "tools", 0), 2);
	assert_non_null(strstr(sba_json_str(result, "text"), "/workspace/qs.py"));
	assert_true(*sba_json_str(result, "session") != '\0');
	SBA_FREE char *qs = live_read_file(live_path("qs.py"), NULL);
	assert_non_null(qs);
	assert_true(sba_starts_with(qs, "def quicksort(items):\n"));
	live_await(only_the_standing, NULL, 10000);
}

static void files_go_in_are_worked_on_and_come_home(void **state)
{
	static const char bytes[] = "binary \0 and \377 text\n";
	LIVE_CHILD in, turn, out, rm;
	char to[300];
	size_t len;
	struct stat st;
	(void)state;
	assert_true(mkdir(live_path("in"), 0755) == 0);
	live_write_file(live_path("in/data"), bytes, sizeof(bytes), 0640);
	AGENT_RUN(&in, "cp", live_path("in"), "talk:/workspace");
	live_assert_says(&in, 0, NULL);
	AGENT_RUN(&turn, "-q", "chat", "talk",
		  "run: cd /workspace/in && cat data data > twice && chmod 700 twice && rm data");
	live_assert_says(&turn, 0, NULL);
	snprintf(to, sizeof(to), "%s", live_path("home"));
	AGENT_RUN(&out, "cp", "talk:/workspace/in", to);
	live_assert_says(&out, 0, NULL);
	SBA_FREE char *twice = live_read_file(live_path("home/twice"), &len);
	assert_non_null(twice);
	assert_int_equal(len, 2 * sizeof(bytes));
	assert_memory_equal(twice, bytes, sizeof(bytes));
	assert_memory_equal(twice + sizeof(bytes), bytes, sizeof(bytes));
	assert_int_equal(stat(live_path("home/twice"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(live_path("home/data"), &st), -1);
	/* The names are the next agent's, too. */
	AGENT_RUN(&rm, "exec", "talk", "rm", "-r", "/workspace/in");
	live_assert_says(&rm, 0, NULL);
	assert_int_equal(unlink(live_path("in/data")), 0);
	assert_int_equal(rmdir(live_path("in")), 0);
	assert_int_equal(unlink(live_path("home/twice")), 0);
	assert_int_equal(rmdir(live_path("home")), 0);
}

static void a_tool_is_told_when_it_begins_and_how_it_ends(void **state)
{
	LIVE_CHILD c;
	const json_t *one;
	size_t i, call = 0, result = 0;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "talk", "run: echo from-inside; exit 3");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	json_array_foreach(lines, i, one)
	{
		const char *kind = sba_json_str(one, "kind");
		call = kind && strcmp(kind, "tool_call") == 0 ? i : call;
		result = kind && strcmp(kind, "tool_result") == 0 ? i : result;
	}
	assert_true(call > 0 && result > call);
	one = json_array_get(lines, call);
	assert_string_equal(sba_json_str(one, "tool"), "bash");
	assert_true(*sba_json_str(one, "tool_native") != '\0');
	assert_non_null(strstr(sba_json_str(one, "summary"), "echo from-inside"));
	one = json_array_get(lines, result);
	assert_string_equal(sba_json_str(one, "call_id"),
			    sba_json_str(json_array_get(lines, call), "call_id"));
	assert_int_equal(sba_json_int(one, "exit_code", 0), 3);
	assert_true(sba_json_bool(one, "failed", false));
	assert_non_null(strstr(sba_json_str(one, "output"), "from-inside"));
}

static void a_turn_is_readable_in_words(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "chat", "talk", "run: echo from-inside; exit 3");
	live_assert_says(&c, 0, "exit 3");
	assert_non_null(strstr(c.err.data, "echo from-inside"));
	assert_non_null(strstr(c.out.data, "from-inside"));
	assert_null(strchr(c.err.data, '\033'));
}

/* ---- conversation ---- */

static void chat_goes_on_with_the_conversation(void **state)
{
	LIVE_CHILD first, second;
	(void)state;
	forget();
	AGENT_RUN(&first, "-q", "chat", "talk", "my colour is blue");
	live_assert_says(&first, 0, NULL);
	assert_non_null(strstr(first.out.data, "(message 1)"));
	AGENT_RUN(&second, "-q", "chat", "talk", "and now?");
	live_assert_says(&second, 0, NULL);
	assert_non_null(strstr(second.out.data, "(message 2)"));
}

static void an_answer_of_200_kilobytes_arrives_whole(void **state)
{
	enum { BIG = 200 * 1000 };
	LIVE_CHILD c;
	size_t words = 0;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "talk", "big 200000");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const char *text = sba_json_str(live_json_line(lines, "result"), "text");
	for (const char *at = text; (at = strstr(at, "0123456789abcde")); at++)
		words++;
	assert_int_equal(words, BIG / strlen("0123456789abcde "));
}

static void a_prompt_of_a_megabyte_arrives(void **state)
{
	static const char head[] = "--x \"it's\"\nand ";
	size_t len = 1024 * 1024;
	LIVE_CHILD c;
	SBA_FREE char *prompt = malloc(len + 1);
	(void)state;
	assert_non_null(prompt);
	memset(prompt, 'w', len);
	memcpy(prompt, head, strlen(head));
	memcpy(prompt + len - 10, "the-end-42", 11);
	for (size_t i = 100; i < len - 10; i += 100)
		prompt[i] = ' ';
	const char *const argv[] = { "chat", "talk", "-", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .input = prompt });
	live_child_await(&c, "the-end-42 (message ", 280000);
	/* It would go on to compact what fills its context, again and again. */
	if (agent_is("opencode"))
		kill(c.pid, SIGINT);
	live_child_end(&c, 60000);
	live_assert_says(&c, agent_is("opencode") ? 130 : 0, NULL);
	assert_true(c.out.len > len);
	assert_non_null(strstr(c.out.data, head));
	forget();
}

/* ---- the model's failures ---- */

static json_t *assert_model_error(const struct live_child *c)
{
	json_t *lines = live_json_lines(c);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"),
			    "model_error");
	return lines;
}

/* How long it takes is how often it is asked: the waits between are the CLI's, of a
 * second or two (codex) at most; the relay ends what asks on. */
static void a_wrong_key_is_a_model_error_after_a_few_requests(void **state)
{
	enum { REQUESTS_MAX = 6 };
	static const char *const env[] = { "WRONG_KEY=this-key-is-not-the-one", NULL };
	const char *provider = sba_agent_provider(agent.name);
	char url[64];
	LIVE_CHILD c;
	struct sba_model *m = NULL;
	struct sba_error err = { 0 };
	const struct sba_model_options o = {
		.script = "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{\"error\":"
			  "{\"status\":401,\"message\":\"no such key\"}}]}]}",
	};
	(void)state;
	if (sba_model_open(&o, &m, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)sba_model_port(m));
	const char *const argv[] = { "--json",    "chat",       "talk",       "--provider",
				     provider,    "--base-url", url,          "--api-key-env",
				     "WRONG_KEY", "-m",         "some-model", "hello",
				     NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&c, 280000);
	live_assert_says(&c, 1, "the key is that of WRONG_KEY");
	live_assert_says(&c, 1, "\"retry\":false");
	SBA_JSON json_t *lines = assert_model_error(&c);
	const json_t *result = live_json_line(lines, "result");
	assert_string_equal(sba_json_str(live_json_line(lines, "start"), "provider"), provider);
	assert_int_equal(sba_json_int(result, "http_status", 0), 401);
	assert_false(sba_json_bool(result, "retry", true));
	assert_in_range(sba_model_requests(m), 1, REQUESTS_MAX);
	sba_model_close(m);
}

static void an_unknown_model_is_a_model_error(void **state)
{
	LIVE_CHILD c, other;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "talk", "-m", "no-such-model", "error 404");
	live_assert_says(&c, 1, "another model:  -m MODEL");
	SBA_JSON json_t *lines = assert_model_error(&c);
	assert_int_equal(sba_json_int(live_json_line(lines, "result"), "http_status", 0), 404);
	/* A name that only the provider knows is no CLI's business. */
	AGENT_RUN(&other, "-q", "chat", "talk", "-m", "no-such-model", "hi");
	live_assert_says(&other, 0, NULL);
	assert_non_null(strstr(other.out.data, "You said: hi"));
}

static void too_many_requests_are_retried_but_not_for_ever(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "talk", "--timeout", "20s", "error 429 1");
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, "\"error\"");
}

static void a_cut_stream_ends_the_turn(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "talk", "cut");
	live_assert_says(&c, 1, "model_error");
	SBA_JSON json_t *lines = assert_model_error(&c);
	assert_true(sba_json_bool(live_json_line(lines, "result"), "retry", false));
}

static void a_stalled_stream_runs_into_the_idle_timeout(void **state)
{
	static const char script[] =
		"{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{\"text\":"
		"\"one two three\",\"chunk\":4,\"delay_ms\":300000}]}]}";
	LIVE_CHILD c;
	(void)state;
	live_write_file(live_path("stall.json"), script, strlen(script), 0644);
	AGENT_RUN(&c, "--json", "chat", "talk", "--script", live_path("stall.json"),
		  "--idle-timeout", "5s", "hello");
	live_assert_says(&c, 124, "nothing came from it for");
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"),
			    "idle_timeout");
}

static void after_all_failures_the_session_goes_on(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "-q", "chat", "talk", "still there?");
	live_assert_says(&c, 0, NULL);
	assert_non_null(strstr(c.out.data, "You said: still there?"));
}

/* ---- the end from outside ---- */

static void interrupt_ends_all(void **state)
{
	LIVE_CHILD c;
	(void)state;
	const char *const argv[] = { "--color",   "never",  "run",    agent.name,
				     "--offline", "--name", "doomed", "run: echo on; sleep 8001",
				     NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .terminal = true });
	live_child_await(&c, "sandbox doomed", 60000);
	struct sba_sandbox *s = open_box("doomed");
	/* opencode tells of a tool only when it has ended. */
	live_await_inside(sba_sandbox_container(s), "sleep 8001", true, 240000);
	sba_sandbox_close(s);
	kill(c.pid, SIGINT);
	live_child_end(&c, 30000);
	assert_int_equal(c.status, 130);
	assert_non_null(strstr(c.out.data, "nothing is left running"));
	live_await(only_the_standing, NULL, 10000);
}

static void a_killed_client_leaves_nothing_after_the_keepalive(void **state)
{
	LIVE_CHILD c;
	(void)state;
	const char *const argv[] = { "run",         agent.name, "--offline", "--name", "orphan",
				     "--keepalive", "2s",       "slow",      NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "sandbox orphan", 60000);
	struct sba_sandbox *s = open_box("orphan");
	live_await_inside(sba_sandbox_container(s), agent.name, true, 120000);
	kill(c.pid, SIGKILL);
	live_child_end(&c, 10000);
	live_await(only_the_standing, NULL, 30000);
	sba_sandbox_close(s);
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

static bool events_hold(struct sba_sandbox *s, const char *text)
{
	const struct sba_sandbox_info *info = sba_sandbox_info(s);
	char label[80];
	SBA_JSON json_t *events = NULL;
	struct sba_error err = { 0 };
	/* The engine keeps the last 256 events of all: one of this sandbox's is among them. */
	assert_true(live_runs_inside(sba_sandbox_container(s), "sleep"));
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
	LIVE_CHILD c;
	char token[64], url[64], script[512];
	(void)state;
	const char *const argv[] = { "chat", "talk", "run: echo on; sleep 8011", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	struct sba_sandbox *s = open_box("talk");
	live_await_inside(sba_sandbox_container(s), "sleep 8011", true, 240000);
	of_cli(s, "_KEY=", strlen("_KEY=") + 32, token);
	memmove(token, token + strlen("_KEY="), 33);
	of_cli(s, "http://127.0.0.1:", strlen("http://127.0.0.1:") + 5, url);
	snprintf(script, sizeof(script),
		 "grep -rlsF -e %s -e %s / --exclude-dir=proc --exclude-dir=sys "
		 "--exclude-dir=dev; true",
		 token, url);
	SBA_FREE char *files = live_sh_out(s, script);
	assert_string_equal(files, "");
	SBA_JSON json_t *inspect = live_inspect(sba_sandbox_container(s));
	SBA_FREE char *dump = sba_json_dump(inspect);
	assert_null(strstr(dump, token));
	assert_false(events_hold(s, token));
	assert_false(events_hold(s, "http://"));
	kill(c.pid, SIGTERM);
	live_child_end(&c, 30000);
	sba_sandbox_close(s);
}

int main(void)
{
	/* One sandbox, one conversation after another. */
	const struct CMUnitTest tests[] = {
		CHECK(the_demo_writes_runs_and_brings_home_a_quicksort),
		CHECK(files_go_in_are_worked_on_and_come_home),
		CHECK(a_tool_is_told_when_it_begins_and_how_it_ends),
		CHECK(a_turn_is_readable_in_words),
		CHECK(chat_goes_on_with_the_conversation),
		CHECK(an_answer_of_200_kilobytes_arrives_whole),
		CHECK(a_prompt_of_a_megabyte_arrives),
		CHECK(a_wrong_key_is_a_model_error_after_a_few_requests),
		CHECK(an_unknown_model_is_a_model_error),
		CHECK(too_many_requests_are_retried_but_not_for_ever),
		CHECK(a_cut_stream_ends_the_turn),
		CHECK(a_stalled_stream_runs_into_the_idle_timeout),
		CHECK(after_all_failures_the_session_goes_on),
		CHECK(interrupt_ends_all),
		CHECK(a_killed_client_leaves_nothing_after_the_keepalive),
		CHECK(the_token_is_in_no_file_inspect_or_event),
	};
	return agents_run(tests, begin, end);
}
