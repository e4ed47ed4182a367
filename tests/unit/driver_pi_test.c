/* SPDX-License-Identifier: MIT */
/*
 * pi's driver: every recording of its stream against what was measured, and
 * what no recording has. Run in the project's folder.
 */
#include "play.h"

/* clang-format off */
static struct recording rows[] = {
	{ .name = "badkey", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22825-52a9-701b-acad-bd305493f975", .error = "Incorrect API key provided", .http_status = 401 },
	{ .name = "badtool", .verdict = SBA_VERDICT_OK, .session = "01a22824-9a0c-772e-a316-56fd561f6dc4", .text = "ok no tool", .tools = "nosuchtool=failed", .usage = { 2053, 200, 14, 6, 0.001901 } },
	{ .name = "e400", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22825-4613-770b-9b1b-941a8e2d6751", .error = "bad request thing", .http_status = 400 },
	{ .name = "e401", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22825-4212-70db-9e02-0db7af7f062e", .error = "Incorrect API key provided", .http_status = 401 },
	{ .name = "e429", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22826-c28d-73da-887d-ad64e1842d2e", .error = "Rate limit reached", .http_status = 429, .retryable = true, .notices = 3 },
	{ .name = "e429ra", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22826-895e-74b6-9439-ffc57b83842f", .error = "Rate limit reached", .http_status = 429, .retryable = true, .notices = 3 },
	{ .name = "length", .verdict = SBA_VERDICT_OK, .session = "01a22825-4d6a-7605-95f7-dfb04e63d6fc", .text = "truncated", .usage = { 1035, 100, 7, 3, 0.000959 }, .notices = 1 },
	{ .name = "model404", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22825-579d-7171-bfae-06037dcc5b0a", .error = "The model does not exist", .http_status = 404 },
	{ .name = "modelunknown", .verdict = SBA_VERDICT_OK, .session = "01a22825-5c1d-7024-bd4d-45ace1466fa7", .text = "PONG", .usage = { 1038, 100, 7, 3, 0.000962 }, .stderr_file = "tests/fixtures/pi/modelunknown.stderr" },
	{ .name = "plain", .verdict = SBA_VERDICT_OK, .session = "01a22824-743a-71b3-ab74-f531b7dbf557", .text = "PONG", .usage = { 1016, 100, 7, 3, 0.00094 } },
	{ .name = "providerunknown", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "pi ended with exit status 1", .stderr_file = "tests/fixtures/pi/providerunknown.stderr" },
	{ .name = "session_fork", .verdict = SBA_VERDICT_OK, .session = "01a22825-a106-75fd-972f-ead83f47b7e5", .text = "msgs=8", .usage = { 1048, 100, 7, 3, 0.000972 } },
	{ .name = "session_resume", .resumes = "01a22825-9b6f-70ed-ac33-822dd7d9ef71", .verdict = SBA_VERDICT_OK, .session = "01a22825-9b6f-70ed-ac33-822dd7d9ef71", .text = "msgs=4", .usage = { 1046, 100, 7, 3, 0.00097 } },
	{ .name = "sigint_slow", .exit_status = 130, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22828-2983-7520-9456-3705cd9e972e", .text = "one two ", .error = "pi was ended by signal 2" },
	{ .name = "sigkill_tool", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22828-456c-7795-9b60-d059a5d6fdbd", .tools = "bash=open", .usage = { 1083, 100, 7, 3, 0.0010069999999999999 }, .error = "pi was ended by signal 9" },
	{ .name = "sigterm_tool", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22828-377e-7053-9f18-1c315c2a6354", .tools = "bash=open", .usage = { 1081, 100, 7, 3, 0.0010049999999999998 }, .error = "pi was ended by signal 15" },
	{ .name = "think", .verdict = SBA_VERDICT_OK, .session = "01a22824-7aef-7692-97e6-6afb3f659fde", .text = "The answer is four.", .usage = { 1017, 100, 7, 3, 0.000941 }, .thought = "Let me think. Two plus two is four." },
	{ .name = "tool", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "01a22824-7fd9-72f9-ab4a-6b823d2d281f", .text = "Done: wrote out.txt", .said = "I will write a file.Done: wrote out.txt", .tools = "bash=0", .usage = { 2037, 200, 14, 6, 0.001885 } },
	{ .name = "toolfail", .verdict = SBA_VERDICT_OK, .session = "01a22824-87df-7072-8a42-6128abcf1b5e", .text = "It failed with 3", .tools = "bash=3", .usage = { 2041, 200, 14, 6, 0.001889 } },
	{ .name = "unreachable", .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22827-14e1-70e0-9be8-2f641e914086", .error = "Connection error.: bad port", .retryable = true, .notices = 3 },
	{ .name = "write", .verdict = SBA_VERDICT_OK, .session = "01a22824-8cd0-75fc-8261-970626f3fb64", .text = "wrote w.txt", .tools = "write=ok", .usage = { 2045, 200, 14, 6, 0.0018930000000000002 }, .files = "? w.txt;" },
};
/* clang-format on */

static void check(void **state)
{
	recording_check("pi", *state);
}

static void cut(void **state)
{
	recording_cut("pi", *state);
}

static void every_recording_is_a_row(void **state)
{
	(void)state;
	recording_all_are_rows("pi", rows, SBA_ARRAY_LEN(rows));
}

/* Begins and feeds a NULL-terminated list. */
static void play(struct play *p, const char *const *lines)
{
	play_begin(p, "pi");
	for (; *lines; lines++)
		play_line(p, *lines);
}

#define MSG(m)    "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\"," m "}}"
#define UPDATE(e) "{\"type\":\"message_update\",\"assistantMessageEvent\":{" e "}}"
#define SETTLED   "{\"type\":\"agent_settled\",\"aborted\":false}"

static void text_that_came_in_deltas_is_not_said_again(void **state)
{
	struct play p;
	(void)state;
	play(&p,
	     (const char *[]){ UPDATE("\"type\":\"thinking_start\""),
			       UPDATE("\"type\":\"thinking_delta\",\"delta\":\"hm\""),
			       UPDATE("\"type\":\"text_start\""),
			       UPDATE("\"type\":\"text_delta\",\"delta\":\"a\""),
			       UPDATE("\"type\":\"text_delta\",\"delta\":\"b\""),
			       MSG("\"stopReason\":\"stop\",\"content\":[{\"type\":\"thinking\","
				   "\"thinking\":\"hm\"},{\"type\":\"text\",\"text\":\"ab\"}]"),
			       SETTLED, NULL });
	assert_string_equal(play_str(&p.said), "ab");
	assert_string_equal(play_str(&p.thought), "hm");
	assert_true(sba_stream_done(p.stream));
	assert_string_equal(play_finish(&p, 0, "").text, "ab");
	play_end(&p);
}

static void text_without_deltas_is_said_whole(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ MSG("\"stopReason\":\"stop\",\"content\":[{\"type\":\"text\","
				       "\"text\":\"whole\"}]"),
				   SETTLED, NULL });
	assert_string_equal(play_str(&p.said), "whole");
	assert_string_equal(play_finish(&p, 0, "").text, "whole");
	play_end(&p);
}

static void a_request_that_was_asked_again_with_success_is_no_failure(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ MSG("\"stopReason\":\"error\",\"errorMessage\":\"500: boom\""),
				   "{\"type\":\"agent_end\",\"willRetry\":true}",
				   "{\"type\":\"auto_retry_start\",\"attempt\":1,\"maxAttempts\":3,"
				   "\"errorMessage\":\"500: boom\"}",
				   MSG("\"stopReason\":\"stop\",\"content\":[{\"type\":\"text\","
				       "\"text\":\"ok\"}]"),
				   SETTLED, NULL });
	assert_int_equal(p.n[SBA_EVENT_ERROR], 0);
	assert_string_equal(play_str(&p.notices),
			    "the model's request failed (500: boom): retry 1 of 3;");
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_OK);
	play_end(&p);
}

static void a_retry_is_told_in_the_providers_words(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){
			 "{\"type\":\"auto_retry_start\",\"attempt\":2,\"maxAttempts\":3,"
			 "\"errorMessage\":\"429: {\\\"message\\\":\\\"slow down\\\"}\"}",
			 "{\"type\":\"auto_retry_start\",\"attempt\":3,\"maxAttempts\":3}", NULL });
	assert_string_equal(play_str(&p.notices),
			    "the model's request failed (HTTP 429, slow down): retry 2 of 3;"
			    "the model's request failed (no answer): retry 3 of 3;");
	play_end(&p);
}

static void an_exit_of_0_after_a_failure_is_no_success(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ UPDATE("\"type\":\"text_delta\",\"delta\":\"half\""),
				   MSG("\"stopReason\":\"error\",\"errorMessage\":\"Stream ended "
				       "without finish_reason\""),
				   SETTLED, NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_true(o.retryable);
	assert_string_equal(o.text, "half");
	play_end(&p);
}

static void begin_resumed(struct play *p, const char *kept, const char *timestamp)
{
	char line[128];
	play_begin_with(p, &(struct sba_stream_options){ .driver = sba_driver_find("pi"),
							 .resumes = "s-1",
							 .kept = kept });
	snprintf(line, sizeof(line), "{\"type\":\"session\",\"id\":\"s-1\",\"timestamp\":\"%s\"}",
		 timestamp);
	play_line(p, line);
}

static void a_session_that_was_begun_anew_is_told(void **state)
{
	struct play p;
	(void)state;
	begin_resumed(&p, "2026-11-30T08:08:01.716Z", "2026-11-30T08:44:20.100Z");
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 1);
	assert_string_equal(sba_stream_kept(p.stream), "2026-11-30T08:44:20.100Z");
	play_end(&p);
}

/* Its system message comes again where rules or skills have changed. */
static void a_session_that_goes_on_is_not_told(void **state)
{
	static const char *const kept[] = { NULL, "2026-11-30T08:08:01.716Z" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++) {
		struct play p;
		begin_resumed(&p, kept[i], "2026-11-30T08:08:01.716Z");
		play_line(&p, "{\"type\":\"message_start\",\"message\":{\"role\":\"system\"}}");
		assert_int_equal(p.n[SBA_EVENT_NOTICE], 0);
		assert_string_equal(sba_stream_kept(p.stream), "2026-11-30T08:08:01.716Z");
		play_end(&p);
	}
}

/* As when a session of another folder is asked for: it exits with 0 at once. */
static void a_turn_that_never_was_is_no_success(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ "{\"type\":\"session\",\"id\":\"s-1\"}", NULL });
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_AGENT_FAILED);
	play_end(&p);
}

static void calls_that_run_at_once_keep_apart(void **state)
{
	struct play p;
	char tools[128];
	(void)state;
	play(&p, (const char *[]){
			 "{\"type\":\"tool_execution_start\",\"toolCallId\":\"a\",\"toolName\":"
			 "\"bash\","
			 "\"args\":{\"command\":\"x\"}}",
			 "{\"type\":\"tool_execution_start\",\"toolCallId\":\"b\",\"toolName\":"
			 "\"edit\","
			 "\"args\":{\"path\":\"/w/f\"}}",
			 "{\"type\":\"tool_execution_end\",\"toolCallId\":\"b\",\"result\":{"
			 "\"content\":["
			 "]},\"isError\":false}",
			 "{\"type\":\"tool_execution_end\",\"toolCallId\":\"a\",\"result\":{"
			 "\"content\":["
			 "],\"structuredContent\":{\"exit_code\":2}},\"isError\":true}",
			 "{\"type\":\"tool_execution_start\",\"toolCallId\":\"c\",\"toolName\":"
			 "\"mcp__t__ping\",\"args\":{}}",
			 "{\"type\":\"tool_execution_start\",\"toolCallId\":\"d\",\"toolName\":"
			 "\"find\","
			 "\"args\":{\"pattern\":\"*.c\"}}",
			 NULL });
	assert_string_equal(play_tools(&p, tools, sizeof(tools)),
			    "bash=2 edit=ok mcp:t.ping=open glob=open");
	assert_string_equal(play_str(&p.files), "modified /w/f;");
	assert_string_equal(play_str(&p.summaries), "x;/w/f;;*.c;");
	play_end(&p);
}

static void unknown_lines_are_noted_and_counted(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ "{\"type\":\"tomorrow\"}", "{}", UPDATE("\"x\":1"),
				   "{\"type\":\"tool_execution_start\"}", NULL });
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
	const struct sba_driver *d = sba_driver_find("pi");
	const struct sba_turn_spec spec = {
		.base_url = "http://h:1", .token = "secret", .model = "m-1", .new_session = "u-1"
	};
	struct sba_command c;
	(void)state;
	assert_int_equal(sba_command_make(d, &spec, &c, NULL), 0);
	assert_true(holds(&c.argv, "sandbox/m-1"));
	assert_string_equal(c.argv.v[c.argv.n - 1], "u-1");
	assert_true(holds(&c.env, "SANDBOX_AGENT_MODEL_URL=http://h:1/v1"));
	assert_true(holds(&c.env, "SANDBOX_AGENT_MODEL_KEY=secret"));
	for (size_t i = 0; i < c.argv.n; i++)
		assert_true(!strstr(c.argv.v[i], "secret") && !strstr(c.argv.v[i], "http"));
	sba_command_fini(&c);
	assert_non_null(d->files[0].content);
	assert_non_null(strstr(d->files[0].content, "registerProvider"));
}

static int keep_output(void *user, const struct sba_event *e)
{
	if (e->kind == SBA_EVENT_TOOL_RESULT)
		sba_buf_puts(user, e->output);
	return 0;
}

static void assert_output(const char *result, const char *output)
{
	struct sba_buf line = SBA_BUF_INIT(4096), got = SBA_BUF_INIT(4096);
	struct sba_stream *s = NULL;
	const struct sba_stream_options o = { .driver = sba_driver_find("pi"),
					      .fn = keep_output,
					      .user = &got };
	assert_int_equal(sba_stream_new(&o, &s, NULL), 0);
	sba_buf_printf(&line,
		       "{\"type\":\"tool_execution_end\",\"toolCallId\":\"1\",\"toolName\":"
		       "\"bash\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"oops\\n\\n"
		       "Command exited with code 3\"}]%s},\"isError\":true}",
		       result);
	assert_int_equal(sba_stream_line(s, line.data, line.len), 0);
	assert_string_equal(play_str(&got), output);
	sba_stream_free(s);
	sba_buf_fini(&line);
	sba_buf_fini(&got);
}

static void a_commands_output_is_what_it_printed(void **state)
{
	(void)state;
	assert_output(",\"structuredContent\":{\"output\":\"oops\\n\",\"truncated\":false,"
		      "\"exit_code\":3}",
		      "oops\n");
	assert_output(",\"structuredContent\":{\"output\":\"\",\"truncated\":false}", "");
	/* Where something is missing, pi says where it is. */
	assert_output(",\"structuredContent\":{\"output\":\"oop\",\"truncated\":true}",
		      "oops\n\nCommand exited with code 3");
	assert_output("", "oops\n\nCommand exited with code 3");
}

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_setup(every_recording_is_a_row, play_limit),
		cmocka_unit_test_setup(a_commands_output_is_what_it_printed, play_limit),
		cmocka_unit_test_setup(text_that_came_in_deltas_is_not_said_again, play_limit),
		cmocka_unit_test_setup(text_without_deltas_is_said_whole, play_limit),
		cmocka_unit_test_setup(a_request_that_was_asked_again_with_success_is_no_failure,
				       play_limit),
		cmocka_unit_test_setup(a_retry_is_told_in_the_providers_words, play_limit),
		cmocka_unit_test_setup(an_exit_of_0_after_a_failure_is_no_success, play_limit),
		cmocka_unit_test_setup(a_session_that_was_begun_anew_is_told, play_limit),
		cmocka_unit_test_setup(a_session_that_goes_on_is_not_told, play_limit),
		cmocka_unit_test_setup(a_turn_that_never_was_is_no_success, play_limit),
		cmocka_unit_test_setup(calls_that_run_at_once_keep_apart, play_limit),
		cmocka_unit_test_setup(unknown_lines_are_noted_and_counted, play_limit),
		cmocka_unit_test_setup(a_command_has_address_and_key_in_its_environment_only,
				       play_limit),
	};
	struct CMUnitTest tests[2 * SBA_ARRAY_LEN(rows) + SBA_ARRAY_LEN(others)];
	size_t n = recording_tests(tests, rows, SBA_ARRAY_LEN(rows), check, cut);
	memcpy(tests + n, others, sizeof(others));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
