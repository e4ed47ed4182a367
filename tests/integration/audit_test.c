/* SPDX-License-Identifier: MIT */
/*
 * The record of what is said and done, through the program: a fake claude
 * (support/live_image.c) in real sandboxes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE "claude", "--offline", "--image", live_fake_image()
/* The id that it always says. */
#define ID "6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001"

/* A root for each test. */
static int test_begin(void **state)
{
	static unsigned n;
	char root[96];
	snprintf(root, sizeof(root), "%s/audit-%u", live.dir, ++n);
	setenv("SANDBOX_AGENT_AUDIT_ROOT", root, 1);
	return live_test_begin(state);
}

/* A file of a session's folder; the caller frees. */
static char *file_of(const char *id, const char *name)
{
	LIVE_CHILD c;
	char path[512];
	RUN(&c, "audit", "path", id);
	live_assert_says(&c, 0, NULL);
	snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(c.out.data, "\n"), c.out.data, name);
	char *text = live_read_file(path, NULL);
	assert_non_null(text);
	return text;
}

static json_t *status_of(const char *id)
{
	SBA_FREE char *text = file_of(id, "status.json");
	json_t *j = json_loads(text, 0, NULL);
	assert_non_null(j);
	return j;
}

static void a_run_is_recorded_and_says_where(void **state)
{
	(void)state;
	LIVE_CHILD run, show, report;
	struct stat st;
	RUN(&run, "--json", "run", FAKE, "good morning");
	live_assert_says(&run, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&run);
	const char *path = sba_json_str(live_json_line(lines, "result"), "audit");
	assert_true(path && sba_starts_with(path, getenv("SANDBOX_AGENT_AUDIT_ROOT")));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	SBA_FREE char *raw = file_of(ID, "session.jsonl");
	assert_true(sba_starts_with(raw, "{\"type\":\"system\",\"subtype\":\"init\""));
	assert_non_null(strstr(raw, "heard good morning"));
	SBA_JSON json_t *status = status_of(ID);
	assert_string_equal(sba_json_str(status, "turns.#0.verdict"), "ok");
	assert_string_equal(sba_json_str(status, "turns.#0.prompt"), "good morning");
	assert_string_equal(sba_json_str(status, "image"), live_fake_image());
	assert_true(sba_starts_with(sba_json_str(status, "image_digest"), "sha256:"));
	RUN(&show, "audit", "show", ID);
	live_assert_says(&show, 0, NULL);
	assert_non_null(strstr(show.out.data, "> good morning\n"));
	assert_non_null(strstr(show.out.data, "heard good morning\n"));
	assert_int_equal(show.err.len, 0);
	RUN(&report, "audit", "report", "6b0d7a46");
	live_assert_says(&report, 0, NULL);
	assert_non_null(strstr(report.out.data, "good morning"));
}

static void bytes_that_are_no_text_are_there_as_they_came(void **state)
{
	(void)state;
	LIVE_CHILD run;
	RUN(&run, "run", FAKE, "utf8");
	live_assert_says(&run, 0, NULL);
	SBA_FREE char *raw = file_of(ID, "session.jsonl");
	assert_non_null(strstr(raw, "\n\xff\xfe no line of ours \x80\n"));
	SBA_FREE char *events = file_of(ID, "events.jsonl");
	assert_true(sba_utf8_valid(events, strlen(events)));
}

static void escapes_in_a_record_are_shown_escaped(void **state)
{
	(void)state;
	LIVE_CHILD run, show, report;
	RUN(&run, "run", FAKE, "escape");
	live_assert_says(&run, 0, NULL);
	const char *const show_argv[] = { "--color", "never", "audit", "show", ID, "-v", NULL };
	live_start(&show, &(struct live_start){ .argv = show_argv, .terminal = true });
	live_child_end(&show, 20000);
	assert_null(strchr(show.out.data, '\033'));
	assert_non_null(strstr(show.out.data, "\\x1b]0;owned"));
	RUN(&report, "audit", "report", ID);
	live_assert_says(&report, 0, NULL);
	assert_null(strchr(report.out.data, '\033'));
}

static void a_failed_turn_is_recorded_with_its_verdict(void **state)
{
	(void)state;
	LIVE_CHILD run, ls;
	RUN(&run, "run", FAKE, "crash");
	live_assert_says(&run, 1, NULL);
	SBA_JSON json_t *status = status_of(ID);
	assert_string_equal(sba_json_str(status, "turns.#0.verdict"), "agent_failed");
	assert_int_equal(sba_json_int(status, "turns.#0.exit_status", 0), 3);
	assert_non_null(strstr(sba_json_str(status, "turns.#0.error"), "the fake broke"));
	RUN(&ls, "audit", "ls", "--verdict", "ok", "-q");
	live_assert_says(&ls, 0, NULL);
	assert_int_equal(ls.out.len, 0);
}

static void all_that_is_done_in_a_sandbox_is_in_the_folder_of_its_session(void **state)
{
	(void)state;
	LIVE_CHILD up, in, first, second, exec, out, rm, logs, ls;
	live_write_file(live_path("file"), "hello", 5, 0644);
	RUN(&up, "up", FAKE, "--name", "kept");
	live_assert_says(&up, 0, NULL);
	RUN(&in, "cp", live_path("file"), "kept:/workspace/file");
	live_assert_says(&in, 0, NULL);
	RUN(&first, "chat", "kept", "one");
	live_assert_says(&first, 0, NULL);
	RUN(&exec, "exec", "kept", "--", "sh", "-c", "ln -s /etc /workspace/link; exit 7");
	live_assert_says(&exec, 7, NULL);
	RUN(&second, "chat", "kept", "two");
	live_assert_says(&second, 0, NULL);
	RUN(&out, "cp", "kept:/workspace", live_path("back"));
	live_assert_says(&out, 0, NULL);
	RUN(&rm, "rm", "kept");
	live_assert_says(&rm, 0, NULL);
	RUN(&ls, "audit", "ls", "-q");
	live_assert_says(&ls, 0, NULL);
	assert_string_equal(ls.out.data, ID "\n");
	SBA_JSON json_t *status = status_of(ID);
	assert_int_equal(json_array_size(json_object_get(status, "turns")), 2);
	RUN(&logs, "--json", "logs", "kept");
	live_assert_says(&logs, 0, NULL);
	static const char *const expected[] = {
		"\"kind\":\"transfer\",\"payload\":{\"direction\":\"in\"",
		"\"kind\":\"prompt\",\"payload\":{\"text\":\"one\"",
		"\"exit_status\":7",
		"\"kind\":\"prompt\",\"payload\":{\"text\":\"two\"",
		"link\",\"why\":",
	};
	const char *at = logs.out.data;
	for (size_t i = 0; i < SBA_ARRAY_LEN(expected); i++) {
		at = strstr(at, expected[i]);
		if (!at)
			fail_msg("no %s in its place: %s", expected[i], logs.out.data);
	}
}

static void a_refused_connection_is_recorded_by_host(void **state)
{
	(void)state;
	LIVE_CHILD up, exec, report, rm;
	RUN(&up, "up", FAKE, "--name", "sealed", "--allow", "good.example:443");
	live_assert_says(&up, 0, NULL);
	RUN(&exec, "exec", "sealed", "--", "bash", "-c",
	    "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/${p%/}; "
	    "printf 'CONNECT evil.example:443 HTTP/1.1\\r\\nHost: evil.example:443\\r\\n\\r\\n' "
	    ">&3; "
	    "head -n 1 <&3");
	live_assert_says(&exec, 0, NULL);
	assert_non_null(strstr(exec.out.data, "403"));
	RUN(&rm, "rm", "sealed");
	RUN(&report, "--json", "audit", "report", "pending");
	live_assert_says(&report, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&report);
	const json_t *host = json_object_get(json_object_get(json_array_get(lines, 0), "hosts"),
					     "evil.example:443");
	assert_int_equal(sba_json_int(host, "refused", 0), 1);
	assert_int_equal(sba_json_int(host, "reached", -1), 0);
}

static void follow_shows_what_is_written_and_ends_with_the_run(void **state)
{
	(void)state;
	LIVE_CHILD run, follow;
	const char *const run_argv[] = { "run", FAKE, "again", NULL };
	live_start(&run, &(struct live_start){ .argv = run_argv });
	live_child_await(&run, "one", 60000);
	const char *const argv[] = { "audit", "show", ID, "--follow", NULL };
	live_start(&follow, &(struct live_start){ .argv = argv });
	live_child_await(&follow, "one", 10000);
	live_child_end(&run, 60000);
	live_child_end(&follow, 10000);
	assert_int_equal(follow.status, 0);
	assert_non_null(strstr(follow.out.data, "two"));
}

static void a_killed_client_leaves_a_turn_that_is_told_unfinished(void **state)
{
	(void)state;
	LIVE_CHILD run, ls;
	const char *const argv[] = { "run", FAKE, "--keepalive", "3s", "hang", NULL };
	live_start(&run, &(struct live_start){ .argv = argv });
	live_child_await(&run, "working", 60000);
	RUN(&ls, "audit", "ls", "--verdict", "running", "-q");
	assert_string_equal(ls.out.data, ID "\n");
	kill(run.pid, SIGKILL);
	live_child_end(&run, 10000);
	live_child_fini(&ls);
	RUN(&ls, "audit", "ls", "--verdict", "unfinished", "-q");
	live_assert_says(&ls, 0, NULL);
	assert_string_equal(ls.out.data, ID "\n");
	live_await_no_containers(30000);
}

static void without_a_root_of_its_own_a_turn_goes_on_and_warns(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *root = getenv("SANDBOX_AGENT_AUDIT_ROOT");
	assert_int_equal(mkdir(root, 0755), 0);
	RUN(&c, "run", FAKE, "hi");
	live_assert_says(&c, 0, "audit: ");
	assert_string_equal(c.out.data, "heard hi\n");
	assert_non_null(strstr(c.err.data, "open to others"));
	const char *again = strstr(strstr(c.err.data, "open to others") + 1, "open to others");
	assert_null(again);
}

static void no_audit_leaves_no_trace(void **state)
{
	(void)state;
	LIVE_CHILD c, off;
	RUN(&c, "run", FAKE, "--no-audit", "hi");
	live_assert_says(&c, 0, NULL);
	const char *const argv[] = { "run", FAKE, "hi", NULL };
	const char *const env[] = { "SANDBOX_AGENT_AUDIT=false", NULL };
	live_start(&off, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&off, 60000);
	assert_int_equal(off.status, 0);
	assert_int_equal(access(getenv("SANDBOX_AGENT_AUDIT_ROOT"), F_OK), -1);
}

static void forks_are_recorded_in_the_parents_folder(void **state)
{
	(void)state;
	LIVE_CHILD up, in, fork, rm, logs;
	RUN(&up, "up", FAKE, "--name", "parent");
	live_assert_says(&up, 0, NULL);
	live_write_file(live_path("notes"), "x", 1, 0644);
	RUN(&in, "cp", live_path("notes"), "parent:/workspace/notes");
	live_assert_says(&in, 0, NULL);
	RUN(&fork, "fork", "parent", "--name", "child");
	live_assert_says(&fork, 0, NULL);
	RUN(&rm, "rm", "parent", "child");
	live_assert_says(&rm, 0, NULL);
	RUN(&logs, "--json", "logs", "parent");
	live_assert_says(&logs, 0, NULL);
	assert_non_null(strstr(logs.out.data, "\"kind\":\"fork\""));
	assert_non_null(strstr(logs.out.data, "\"children\":[\"child\"]"));
}

#define AUDIT_TEST(f) cmocka_unit_test_setup_teardown(f, test_begin, live_test_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AUDIT_TEST(a_run_is_recorded_and_says_where),
		AUDIT_TEST(bytes_that_are_no_text_are_there_as_they_came),
		AUDIT_TEST(escapes_in_a_record_are_shown_escaped),
		AUDIT_TEST(a_failed_turn_is_recorded_with_its_verdict),
		AUDIT_TEST(all_that_is_done_in_a_sandbox_is_in_the_folder_of_its_session),
		AUDIT_TEST(a_refused_connection_is_recorded_by_host),
		AUDIT_TEST(follow_shows_what_is_written_and_ends_with_the_run),
		AUDIT_TEST(a_killed_client_leaves_a_turn_that_is_told_unfinished),
		AUDIT_TEST(without_a_root_of_its_own_a_turn_goes_on_and_warns),
		AUDIT_TEST(no_audit_leaves_no_trace),
		AUDIT_TEST(forks_are_recorded_in_the_parents_folder),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
