/* SPDX-License-Identifier: MIT */
/* The program's commands about sandboxes: what they print, and their statuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One for all tests here, called "calm-fox". */
static struct sba_sandbox *box;

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	struct sba_sandbox_options o = { .name = "calm-fox",
					 .prefix = live.prefix,
					 .image = live.image,
					 .tag = "tests",
					 .keepalive_ms = 10 * 60 * 1000 };
	struct sba_error err = { 0 };
	int rc = sba_sandbox_create(live.engine, &o, &box, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	return rc;
}

/* ---- exec ---- */

static void exec_hands_streams_and_status_through(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "exec", "calm-fox", "--", "sh", "-c", "echo out; echo err >&2; exit 42");
	assert_int_equal(c.status, 42);
	assert_string_equal(c.out.data, "out\n");
	assert_string_equal(c.err.data, "err\n");
}

static void exec_tells_our_failures_apart(void **state)
{
	(void)state;
	LIVE_CHILD none, missing, cannot, late, usage, own;
	RUN(&none, "exec", "clam-fox", "--", "true");
	live_assert_says(&none, 125, "calm-fox");
	RUN(&missing, "exec", "calm-fox", "--", "no-such-command");
	live_assert_says(&missing, 127, "no-such-command");
	RUN(&cannot, "exec", "calm-fox", "--", "/etc/passwd");
	live_assert_says(&cannot, 126, "/etc/passwd");
	RUN(&late, "exec", "--timeout", "1s", "calm-fox", "--", "sleep", "7001");
	live_assert_says(&late, 124, "did not end within");
	RUN(&usage, "exec", "calm-fox");
	assert_int_equal(usage.status, 125);
	RUN(&own, "exec", "calm-fox", "--", "sh", "-c", "exit 125");
	assert_int_equal(own.status, 125);
	assert_int_equal(own.err.len, 0);
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 7001"));
}

static void exec_warns_of_what_died_under_a_command_that_went_on(void **state)
{
	(void)state;
	static const char hog[] = "sh -c 'a=0123456789abcdef; while :; do a=$a$a; done'; echo on";
	static const char crowd[] = "(for i in $(seq 30); do sleep 1 & done) 2>/dev/null; echo on";
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){
		.name = "narrow", .memory = 32 * 1024 * 1024, .pids = 20 });
	LIVE_CHILD memory, json, pids;
	RUN(&memory, "exec", "narrow", "--", "sh", "-c", hog);
	live_assert_says(&memory, 0,
			 "warning: something in it was killed: out of memory, limit 32m");
	assert_string_equal(memory.out.data, "on\n");
	RUN(&json, "--json", "exec", "narrow", "--", "sh", "-c", hog);
	live_assert_says(&json, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_int_equal(sba_json_int(live_json_line(lines, "exit"), "oom_kills", -1), 1);
	assert_int_equal(sba_json_int(live_json_line(lines, "exit"), "pids_refused", 0), 0);
	RUN(&pids, "exec", "narrow", "--", "sh", "-c", crowd);
	live_assert_says(&pids, 0,
			 "warning: something in it could not start: out of processes, limit 20");
	live_remove(s);
}

static void exec_gives_stdin_only_when_asked(void **state)
{
	(void)state;
	LIVE_CHILD with, without;
	const char *const yes[] = { "exec", "-i", "calm-fox", "--", "wc", "-c", NULL };
	const char *const no[] = { "exec", "calm-fox", "--", "wc", "-c", NULL };
	live_start(&with, &(struct live_start){ .argv = yes, .input = "12345" });
	live_child_end(&with, 60000);
	assert_string_equal(with.out.data, "5\n");
	live_start(&without, &(struct live_start){ .argv = no, .input = "12345" });
	live_child_end(&without, 60000);
	assert_string_equal(without.out.data, "0\n");
}

/* C-101: a stdin that stays open, and that the command does not read. */
static void exec_is_not_held_up_by_a_stdin_that_stays_open(void **state)
{
	(void)state;
	static const char *const ways[][9] = {
		{ "exec", "calm-fox", "--", "echo", "hi", NULL },
		{ "exec", "-i", "calm-fox", "--", "echo", "hi", NULL },
		{ "exec", "-i", "--timeout", "1s", "calm-fox", "--", "sleep", "7041", NULL },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){ .argv = ways[i], .open_stdin = true });
		live_child_end(&c, 30000);
		assert_int_equal(c.status, i < 2 ? 0 : 124);
		if (i < 2)
			assert_string_equal(c.out.data, "hi\n");
	}
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 7041"));
}

static void exec_passes_environment_user_and_folder(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "exec",      "-e",
				     "A=1",       "-e",
				     "FROM_HERE", "-u",
				     "1234:5678", "-w",
				     "/usr",      "calm-fox",
				     "--",        "sh",
				     "-c",        "echo $A $FROM_HERE $(id -u) $PWD",
				     NULL };
	const char *const env[] = { "FROM_HERE=two", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&c, 60000);
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "1 two 1234 /usr\n");
}

static void exec_in_json_is_lines_and_bytes_in_base64(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "exec", "calm-fox", "--", "sh", "-c", "printf 'a\\377b'; exit 3");
	assert_int_equal(c.status, 3);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *output = live_json_line(lines, "output");
	assert_string_equal(sba_json_str(output, "stream"), "stdout");
	assert_string_equal(sba_json_str(output, "base64"), "Yf9i");
	assert_int_equal(sba_json_int(live_json_line(lines, "exit"), "status", -1), 3);
}

/* The status in the line is the one that the program ends with. */
static void exec_in_json_tells_its_own_failure_as_such(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "exec", "-w", "/no/such", "calm-fox", "--", "true");
	live_assert_says(&c, 125, "cannot enter the folder '/no/such'");
	SBA_JSON json_t *lines = live_json_lines(&c);
	assert_int_equal(sba_json_int(live_json_line(lines, "exit"), "status", -1), 125);
}

static void exec_of_fifty_megabytes_into_a_pipe_is_whole(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "exec", "calm-fox", "--", "head", "-c", "50000000", "/dev/zero");
	live_assert_says(&c, 0, NULL);
	assert_int_equal(c.out.len, 50000000);
}

static void exec_ends_its_command_when_interrupted(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = {
		"exec", "calm-fox", "--",
		"sh",   "-c",       "trap '' TERM INT; echo on; while :; do sleep 7011; done",
		NULL
	};
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "on", 60000);
	kill(c.pid, SIGINT);
	live_child_end(&c, 20000);
	live_assert_says(&c, 130, "the sandbox lives on");
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 7011"));
}

static void exec_detached_returns_and_stop_ends_it(void **state)
{
	(void)state;
	LIVE_CHILD start, stop, again;
	RUN(&start, "exec", "-d", "calm-fox", "--", "sleep", "7021");
	live_assert_says(&start, 0, NULL);
	live_await_inside(sba_sandbox_container(box), "sleep 7021", true, 10000);
	RUN(&stop, "stop", "calm-fox");
	live_assert_says(&stop, 0, "were ended");
	assert_false(live_runs_inside(sba_sandbox_container(box), "sleep 7021"));
	RUN(&again, "stop", "calm-fox");
	live_assert_says(&again, 0, "nothing ran");
}

static void a_reader_who_goes_away_ends_exec(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "exec", "calm-fox", "--", "yes", "yes-7031", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .close_stdout = true });
	live_child_end(&c, 20000);
	assert_int_not_equal(c.status, 0);
	live_await_inside(sba_sandbox_container(box), "yes-7031", false, 10000);
}

/* ---- files ---- */

static void cp_goes_both_ways(void **state)
{
	(void)state;
	LIVE_CHILD in, out, none;
	char there[64] = "calm-fox:/tmp/cp-file";
	live_write_file(live_path("cp-in"), "through cp", 10, 0640);
	RUN(&in, "cp", live_path("cp-in"), there);
	live_assert_says(&in, 0, NULL);
	RUN(&out, "cp", there, live_path("cp-out"));
	live_assert_says(&out, 0, NULL);
	SBA_FREE char *text = live_read_file(live_path("cp-out"), NULL);
	assert_string_equal(text, "through cp");
	RUN(&none, "cp", "calm-fox:/no/such", live_path("cp-none"));
	live_assert_says(&none, 1, "/no/such");
}

/* ---- what there is ---- */

static void ps_lists_in_words_names_and_json(void **state)
{
	(void)state;
	LIVE_CHILD words, names, json, other;
	RUN(&words, "ps");
	live_assert_says(&words, 0, NULL);
	assert_true(sba_starts_with(words.out.data, "NAME"));
	assert_non_null(strstr(words.out.data, "\ncalm-fox "));
	RUN(&names, "-q", "ps", "--filter", "tag=tests");
	assert_string_equal(names.out.data, "calm-fox\n");
	RUN(&json, "--json", "ps");
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_string_equal(sba_json_str(json_array_get(lines, 0), "name"), "calm-fox");
	RUN(&other, "-q", "ps", "--filter", "tag=other");
	live_assert_says(&other, 0, NULL);
	assert_int_equal(other.out.len, 0);
}

/* C-103: what there is stands in labels. */
static void a_broken_state_inside_hides_no_sandbox(void **state)
{
	(void)state;
	LIVE_CHILD spoil, ps, exec, mend;
	RUN(&spoil, "exec", "-u", "0", "calm-fox", "--", "sh", "-c",
	    "mkdir -p /var/lib/sandbox-agent && echo '{broken' >/var/lib/sandbox-agent/state.json");
	live_assert_says(&spoil, 0, NULL);
	RUN(&ps, "-q", "ps");
	assert_string_equal(ps.out.data, "calm-fox\n");
	RUN(&exec, "exec", "calm-fox", "--", "true");
	live_assert_says(&exec, 0, NULL);
	RUN(&mend, "exec", "-u", "0", "calm-fox", "--", "rm", "/var/lib/sandbox-agent/state.json");
	live_assert_says(&mend, 0, NULL);
}

static void inspect_is_json_without_values_of_the_environment(void **state)
{
	(void)state;
	LIVE_CHILD c, none;
	RUN(&c, "inspect", "calm-fox");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *j = json_loads(c.out.data, 0, NULL);
	assert_non_null(j);
	assert_null(strstr(c.out.data, "PATH=/usr"));
	assert_true(sba_json_int(j, "memory", 0) > 0);
	assert_true(sba_json_int(j, "pids", 0) > 0);
	assert_true(json_is_real(json_object_get(j, "cpus")));
	RUN(&none, "inspect", "nobody");
	live_assert_says(&none, 1, "nobody");
}

static void rm_and_gc_say_what_they_did(void **state)
{
	(void)state;
	LIVE_CHILD rm, gone, gc, json;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "brief" });
	sba_sandbox_close(s);
	RUN(&rm, "rm", "brief", "never-was");
	live_assert_says(&rm, 1, "never-was");
	assert_string_equal(rm.out.data, "brief\n");
	RUN(&gone, "rm", "brief");
	live_assert_says(&gone, 1, "brief");
	RUN(&gc, "gc");
	live_assert_says(&gc, 0, "nothing was left over");
	RUN(&json, "--json", "gc");
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_int_equal(sba_json_int(json_array_get(lines, 0), "removed", -1), 0);
}

static void rm_all_takes_all_of_the_prefix_and_nothing_else(void **state)
{
	LIVE_CHILD rm, ps, nothing;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "second" });
	sba_sandbox_close(s);
	RUN(&rm, "rm", "--all");
	live_assert_says(&rm, 0, NULL);
	RUN(&ps, "-q", "ps");
	assert_int_equal(ps.out.len, 0);
	RUN(&nothing, "rm", "--all");
	live_assert_says(&nothing, 0, "nothing to remove");
	sba_sandbox_close(box);
	live_nothing_is_left(state);
}

static void doctor_has_a_line_for_each_thing(void **state)
{
	(void)state;
	static const char *const checks[] = { "engine", "machine",   "sidecar", "landlock",
					      "limits", "sandboxes", "runc",    "keys" };
	LIVE_CHILD c;
	RUN(&c, "--json", "doctor");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	for (size_t k = 0; k < SBA_ARRAY_LEN(checks); k++) {
		size_t i, found = 0;
		json_t *line;
		json_array_foreach(lines, i, line)
		{
			found += strcmp(sba_json_str(line, "check"), checks[k]) == 0;
			if (strcmp(sba_json_str(line, "check"), "sidecar") == 0)
				assert_non_null(strstr(sba_json_str(line, "text"), "starts"));
		}
		if (found != 1)
			fail_msg("%zu lines of %s", found, checks[k]);
	}
}

static void doctor_names_the_engine(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "doctor");
	const struct sba_engine_info *info;
	assert_int_equal(sba_engine_info(live.engine, &info, NULL), 0);
	assert_non_null(strstr(c.out.data, info->host));
	live_assert_says(&c, c.status, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(exec_hands_streams_and_status_through),
		LIVE_STEP(exec_tells_our_failures_apart),
		LIVE_STEP(exec_gives_stdin_only_when_asked),
		LIVE_STEP(exec_is_not_held_up_by_a_stdin_that_stays_open),
		LIVE_STEP(exec_warns_of_what_died_under_a_command_that_went_on),
		LIVE_STEP(exec_passes_environment_user_and_folder),
		LIVE_STEP(exec_in_json_is_lines_and_bytes_in_base64),
		LIVE_STEP(exec_in_json_tells_its_own_failure_as_such),
		LIVE_STEP(exec_of_fifty_megabytes_into_a_pipe_is_whole),
		LIVE_STEP(exec_ends_its_command_when_interrupted),
		LIVE_STEP(exec_detached_returns_and_stop_ends_it),
		LIVE_STEP(a_reader_who_goes_away_ends_exec),
		LIVE_STEP(cp_goes_both_ways),
		LIVE_STEP(ps_lists_in_words_names_and_json),
		LIVE_STEP(a_broken_state_inside_hides_no_sandbox),
		LIVE_STEP(inspect_is_json_without_values_of_the_environment),
		LIVE_STEP(rm_and_gc_say_what_they_did),
		LIVE_STEP(doctor_names_the_engine),
		LIVE_STEP(doctor_has_a_line_for_each_thing),
		LIVE_STEP(rm_all_takes_all_of_the_prefix_and_nothing_else),
	};
	return live_run(tests, begin, live_end);
}
