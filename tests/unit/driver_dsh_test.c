/* SPDX-License-Identifier: MIT */
/*
 * dsh's driver: every recording of its stream against what was measured, and
 * what no recording has. Run in the project's folder.
 */
#include "play.h"

/* clang-format off */
static struct recording rows[] = {
	{ .name = "badkey", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-3fc8f437-0e15-4775-9a87-1835e6aa714a", .error = "Incorrect API key provided", .http_status = 401, .stderr_file = "tests/fixtures/dsh/badkey.stderr" },
	{ .name = "dash3", .verdict = SBA_VERDICT_OK, .session = "session-7633bad6-52a2-45e4-b313-52f84bef6a7a", .text = "PONG", .usage = { 1140, 100, 7, 3, 0 } },
	{ .name = "e400", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-022d3f41-8cf2-4cd4-95f6-10ca8d79f21b", .error = "bad request thing", .http_status = 400, .stderr_file = "tests/fixtures/dsh/e400.stderr" },
	{ .name = "e401", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-a6d72c03-bb26-4aea-a045-f31dfc193683", .error = "Incorrect API key provided", .http_status = 401, .stderr_file = "tests/fixtures/dsh/e401.stderr" },
	{ .name = "e429", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-62d9f344-d33b-4b3c-b4be-95259b5529bd", .error = "Rate limit reached", .http_status = 429, .retryable = true, .notices = 5, .stderr_file = "tests/fixtures/dsh/e429.stderr" },
	{ .name = "e500", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-ce38dfd0-07f6-4e78-947f-fbe94f058644", .error = "boom", .http_status = 500, .retryable = true, .notices = 5, .stderr_file = "tests/fixtures/dsh/e500.stderr" },
	{ .name = "length", .exit_status = 1, .verdict = SBA_VERDICT_OK, .session = "session-5ce05b68-0ab1-496c-b09c-0ff294557a5d", .text = "truncated", .usage = { 1132, 100, 7, 3, 0 }, .notices = 1 },
	{ .name = "model404", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-2405e3e4-5d06-4a4d-bb6b-87f2f346b64b", .error = "The model does not exist", .http_status = 404, .stderr_file = "tests/fixtures/dsh/model404.stderr" },
	{ .name = "nokey", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "session-1051aeb9-1933-4e4e-8af6-43e2f403e0ba", .error = "llm-deepseek: no API key for provider route \"deepseek-official\"; store DEEPSEEK_API_KEY through the credentials service ", .stderr_file = "tests/fixtures/dsh/nokey.stderr" },
	{ .name = "openstdin", .verdict = SBA_VERDICT_OK, .session = "session-87e0e016-d4d8-442f-8ea2-3732ccceac66", .text = "PONG", .usage = { 1134, 100, 7, 3, 0 } },
	{ .name = "plain", .verdict = SBA_VERDICT_OK, .session = "session-4c03c318-9af5-4af4-a993-eed030065e92", .text = "PONG", .usage = { 1098, 100, 7, 3, 0 } },
	{ .name = "plugin_create", .verdict = SBA_VERDICT_OK, .session = "session-mine-1", .text = "PONG", .usage = { 1149, 100, 7, 3, 0 } },
	{ .name = "plugin_resume", .verdict = SBA_VERDICT_OK, .session = "session-mine-1", .text = "msgs=5", .usage = { 1151, 100, 7, 3, 0 } },
	{ .name = "sigint_slow", .exit_status = 130, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "session-293bf92e-02d1-4269-9697-0dba8d778f8b", .text = "one two ", .error = "dsh was ended by signal 2" },
	{ .name = "sigkill_tool", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "session-34f24582-43ab-4a90-9d8e-c37f730ab272", .tools = "bash=open", .usage = { 1147, 100, 7, 3, 0 }, .error = "dsh was ended by signal 9" },
	{ .name = "sigterm_tool", .verdict = SBA_VERDICT_AGENT_FAILED, .session = "session-2a3b190f-8db4-49ec-a16d-09c3a979d8f5", .tools = "bash=open", .usage = { 1145, 100, 7, 3, 0 }, .error = "dsh ended in the middle of its turn" },
	{ .name = "think", .verdict = SBA_VERDICT_OK, .session = "session-b00d3bce-a152-414a-8e51-2d362533c10a", .text = "The answer is four.", .usage = { 1100, 100, 7, 3, 0 }, .thought = "Let me think. Two plus two is four." },
	{ .name = "tool", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "session-c3a1c7c7-2d54-41fb-a462-a34ed32b3f29", .text = "Done: wrote out.txt", .said = "I will write a file.Done: wrote out.txt", .tools = "bash=0", .usage = { 2206, 200, 14, 6, 0 } },
	{ .name = "tool_full", .verdict = SBA_VERDICT_OK, .session = "session-ee863188-992f-4f5c-baf2-006fbc200cd5", .text = "Done: wrote out.txt", .said = "I will write a file.Done: wrote out.txt", .tools = "bash=0", .usage = { 2212, 200, 14, 6, 0 } },
	{ .name = "toolfail", .verdict = SBA_VERDICT_OK, .session = "session-ebc4e78c-d724-496b-ad04-a80d2eed23fc", .text = "It failed with 3", .tools = "bash=3", .usage = { 2218, 200, 14, 6, 0 } },
	{ .name = "unreachable", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "session-3381d30f-ec57-4aed-9e58-f5bc9bfff220", .error = "DeepSeek API request to http://127.0.0.1:1 failed", .retryable = true, .notices = 5, .stderr_file = "tests/fixtures/dsh/unreachable.stderr" },
	{ .name = "write", .verdict = SBA_VERDICT_OK, .session = "session-0d111bf0-70f6-4476-8bd7-10d625a95b15", .text = "wrote w.txt", .tools = "write=ok", .usage = { 2224, 200, 14, 6, 0 }, .files = "? w.txt;" },
};
/* clang-format on */

static void check(void **state)
{
	recording_check("dsh", *state);
}

static void cut(void **state)
{
	recording_cut("dsh", *state);
}

static void every_recording_is_a_row(void **state)
{
	(void)state;
	recording_all_are_rows("dsh", rows, SBA_ARRAY_LEN(rows));
}

static struct sba_buf recorded(const char *name, const char *end)
{
	char path[128];
	struct sba_buf text;
	snprintf(path, sizeof(path), "tests/fixtures/dsh/%s.%s", name, end);
	play_read(path, &text);
	return text;
}

/* dsh's own headless mode prints no more than that. */
static void the_answer_is_what_dsh_itself_prints(void **state)
{
	size_t seen = 0;
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		char path[128];
		snprintf(path, sizeof(path), "tests/fixtures/dsh/%s.stdout", rows[i].name);
		if (access(path, R_OK) < 0)
			continue;
		struct sba_buf printed = recorded(rows[i].name, "stdout");
		/* What was killed had no time to. */
		char answer[128] = "";
		if (rows[i].exit_status != 137)
			snprintf(answer, sizeof(answer), "%s\n", or_empty(rows[i].text));
		assert_string_equal(play_str(&printed), answer);
		sba_buf_fini(&printed);
		seen++;
	}
	assert_int_equal(seen, 19);
}

/* Of these there is no session: dsh printed its answer, or why there is none. */
static void output_that_is_no_stream_is_never_an_answer(void **state)
{
	static const struct {
		const char *name;
		int exit_status;
		const char *error;
		unsigned lines;
	} cases[] = {
		{ "badtool", 0, "dsh ended in the middle of its turn", 1 },
		{ "cut", 1, "dsh: STREAM_CLOSED: SSE stream ended without [DONE]", 0 },
		{ "dash", 1, "error: unknown option '-x dash [[plain]]'", 0 },
		{ "dash2", 1, "error: unknown option '-x dash [[plain]]'", 0 },
		{ "stdin", 1, "error: a task is required", 0 },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct play p;
		struct sba_buf text = recorded(cases[i].name, "stdout"), tail = { 0 };
		if (cases[i].exit_status)
			tail = recorded(cases[i].name, "stderr");
		play_begin(&p, "dsh");
		play_each(&text, &p, play_bytes);
		struct sba_outcome o = play_finish(&p, cases[i].exit_status, play_str(&tail));
		assert_int_equal(o.verdict, SBA_VERDICT_AGENT_FAILED);
		assert_non_null(strstr(o.error, cases[i].error));
		assert_string_equal(o.text, "");
		assert_int_equal(o.unknown_lines, cases[i].lines);
		play_end(&p);
		sba_buf_fini(&text);
		sba_buf_fini(&tail);
	}
}

/* Begins and feeds a NULL-terminated list. */
static void play(struct play *p, const char *const *lines)
{
	play_begin(p, "dsh");
	for (; *lines; lines++)
		play_line(p, *lines);
}

#define EVENT(type, data) "{\"type\":\"" type "\",\"data\":{" data "}}"
#define END(reason)       EVENT("turn/end", "\"reason\":{" reason "}")

static void text_that_came_in_deltas_is_not_said_again(void **state)
{
	struct play p;
	(void)state;
	play(&p,
	     (const char *[]){
		     EVENT("assistant/chunk", "\"chunk\":{\"type\":\"block-start\",\"blockType\":"
					      "\"text\"}"),
		     EVENT("assistant/chunk", "\"chunk\":{\"type\":\"text-delta\",\"text\":\"a\"}"),
		     EVENT("assistant/message", "\"message\":{\"content\":[{\"type\":\"text\","
						"\"text\":\"a\"}]}"),
		     EVENT("assistant/message", "\"message\":{\"content\":[{\"type\":\"reasoning\","
						"\"text\":\"hm\"},{\"type\":\"text\",\"text\":"
						"\"b\"}]}"),
		     END("\"kind\":\"completed\""), NULL });
	assert_string_equal(play_str(&p.said), "ab");
	assert_string_equal(play_str(&p.thought), "hm");
	assert_true(sba_stream_done(p.stream));
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_OK);
	play_end(&p);
}

#define CALL(name, args)                                                                           \
	EVENT("tool/call", "\"callId\":\"c\",\"name\":\"" name "\",\"arguments\":\"" args "\"")
#define RESULT(text, error)                                                                        \
	EVENT("tool/result", "\"message\":{\"content\":[{\"toolCallId\":\"c\",\"content\":[{"      \
			     "\"type\":\"text\",\"text\":\"" text "\"}],\"isError\":" error "}]}")

static void an_exit_status_is_taken_off_the_output(void **state)
{
	static const struct {
		const char *line, *end;
	} cases[] = {
		{ RESULT("oops\\n[exit code: 3]", "false"), "bash=3" },
		{ RESULT("[exit code: 127]", "false"), "bash=127" },
		{ RESULT("fine", "false"), "bash=0" },
		{ RESULT("", "false"), "bash=0" },
		{ RESULT("x [exit code: 3]", "false"), "bash=0" },
		{ RESULT("[exit code: 3x]", "false"), "bash=0" },
		{ RESULT("[exit code: ]", "false"), "bash=0" },
		{ RESULT("refused", "true"), "bash=failed" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct play p;
		char tools[64];
		play(&p, (const char *[]){ CALL("bash", "{\\\"command\\\":\\\"ls\\\"}"),
					   cases[i].line, NULL });
		assert_string_equal(play_tools(&p, tools, sizeof(tools)), cases[i].end);
		assert_string_equal(play_str(&p.summaries), "ls;");
		play_end(&p);
	}
}

static void changes_are_told_when_they_went_well(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){
			 CALL("write", "{\\\"file_path\\\":\\\"/w/a\\\"}"), RESULT("ok", "false"),
			 CALL("str_replace_editor", "{\\\"path\\\":\\\"/w/b\\\"}"),
			 RESULT("ok", "false"), CALL("edit", "{\\\"file_path\\\":\\\"/w/c\\\"}"),
			 RESULT("no", "true"), NULL });
	assert_string_equal(play_str(&p.files), "? /w/a;modified /w/b;");
	play_end(&p);
}

static void arguments_that_are_no_json_cost_only_themselves(void **state)
{
	struct play p;
	char tools[64];
	(void)state;
	play(&p, (const char *[]){ CALL("subagent", "{broken"), RESULT("x", "false"), NULL });
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "task=ok");
	play_end(&p);
}

/* SIGTERM makes it exit with 0. */
static void a_turn_without_its_end_is_no_success(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ EVENT("turn/start", ""), NULL });
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_AGENT_FAILED);
	play_end(&p);
}

static void a_turn_that_was_broken_off_fails(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ END("\"kind\":\"interrupted\""), NULL });
	struct sba_outcome o = play_finish(&p, 1, "");
	assert_int_equal(o.verdict, SBA_VERDICT_AGENT_FAILED);
	assert_string_equal(o.error, "interrupted");
	play_end(&p);
}

static void a_stream_that_was_cut_may_be_asked_again(void **state)
{
	struct play p;
	(void)state;
	play(&p,
	     (const char *[]){ END("\"kind\":\"error\",\"error\":{\"message\":\"SSE stream ended "
				   "without [DONE]\",\"code\":\"STREAM_CLOSED\"}"),
			       NULL });
	struct sba_outcome o = play_finish(&p, 1, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_true(o.retryable);
	play_end(&p);
}

static void unknown_lines_are_noted_and_counted(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ EVENT("tomorrow", ""), "{}", EVENT("step/start", ""),
				   EVENT("assistant/chunk", ""), EVENT("tool/call", ""), NULL });
	assert_int_equal(play_finish(&p, 0, "").unknown_lines, 4);
	play_end(&p);
}

static bool holds(const struct sba_strv *v, const char *text)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->v[i], text) == 0)
			return true;
	}
	return false;
}

static void a_command_has_address_and_key_in_its_environment_only(void **state)
{
	const struct sba_driver *d = sba_driver_find("dsh");
	const struct sba_turn_spec spec = { .base_url = "http://h:1",
					    .token = "secret",
					    .session = "session-1",
					    .new_session = "u-1" };
	struct sba_command c;
	(void)state;
	assert_int_equal(sba_command_make(d, &spec, &c, NULL), 0);
	assert_true(holds(&c.env, "DEEPSEEK_BASE_URL=http://h:1/v1"));
	assert_true(holds(&c.env, "DEEPSEEK_API_KEY=secret"));
	assert_true(holds(&c.env, "SANDBOX_AGENT_RESUME=session-1"));
	for (size_t i = 0; i < c.argv.n; i++)
		assert_true(!strstr(c.argv.v[i], "secret") && !strstr(c.argv.v[i], "http"));
	/* The patch names the runner by the path that it is placed at. */
	assert_non_null(strstr(d->files[0].content, d->files[1].path));
	assert_true(holds(&c.argv, d->files[0].path));
	sba_command_fini(&c);
}

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_setup(every_recording_is_a_row, play_limit),
		cmocka_unit_test_setup(the_answer_is_what_dsh_itself_prints, play_limit),
		cmocka_unit_test_setup(output_that_is_no_stream_is_never_an_answer, play_limit),
		cmocka_unit_test_setup(text_that_came_in_deltas_is_not_said_again, play_limit),
		cmocka_unit_test_setup(an_exit_status_is_taken_off_the_output, play_limit),
		cmocka_unit_test_setup(changes_are_told_when_they_went_well, play_limit),
		cmocka_unit_test_setup(arguments_that_are_no_json_cost_only_themselves, play_limit),
		cmocka_unit_test_setup(a_turn_without_its_end_is_no_success, play_limit),
		cmocka_unit_test_setup(a_turn_that_was_broken_off_fails, play_limit),
		cmocka_unit_test_setup(a_stream_that_was_cut_may_be_asked_again, play_limit),
		cmocka_unit_test_setup(unknown_lines_are_noted_and_counted, play_limit),
		cmocka_unit_test_setup(a_command_has_address_and_key_in_its_environment_only,
				       play_limit),
	};
	struct CMUnitTest tests[2 * SBA_ARRAY_LEN(rows) + SBA_ARRAY_LEN(others)];
	size_t n = recording_tests(tests, rows, SBA_ARRAY_LEN(rows), check, cut);
	memcpy(tests + n, others, sizeof(others));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
