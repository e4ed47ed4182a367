/* SPDX-License-Identifier: MIT */
/*
 * opencode's driver: every recording of its stream against what was measured,
 * and what no recording has. Run in the project's folder.
 */
#include "play.h"

/* clang-format off */
static struct recording rows[] = {
	{ .name = "badkey", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e6d0a9ffeClxy2RrUyIU4rS", .error = "Incorrect API key provided", .http_status = 401 },
	{ .name = "badsession", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "opencode ended with exit status 1: Error: Session not found", .stderr_file = "tests/fixtures/opencode/badsession.stderr" },
	{ .name = "badsession2", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "opencode ended with exit status 1: Error: Session not found", .stderr_file = "tests/fixtures/opencode/badsession2.stderr" },
	{ .name = "badtool", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e79f35ffeqahWr1XrcNrJwq", .text = "ok no tool", .tools = "nosuchtool=failed", .usage = { 2095, 200, 14, 6, 0.001943 } },
	{ .name = "bigstdin", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dce258ffezLi849lJ7R9Gjp", .text = "PONG", .usage = { 3403, 100, 7, 3, 0.003327 } },
	{ .name = "dash", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "opencode ended with exit status 1: ", .stderr_file = "tests/fixtures/opencode/dash.stderr" },
	{ .name = "dash2", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dcf015ffeWeaTc1BOsn2Sat", .text = "PONG", .usage = { 3401, 100, 7, 3, 0.003325 } },
	{ .name = "e400", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e660acffe4H43qtUzIZ8sc3", .error = "bad request thing", .http_status = 400 },
	{ .name = "e401", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e70344ffevdAE7qF6ugLrUu", .error = "Incorrect API key provided", .http_status = 401 },
	{ .name = "e429", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e71884ffezw2TFLCeIIprym", .error = "Rate limit reached", .http_status = 429, .retryable = true },
	{ .name = "e500", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e70b5bffeU73hE0pihM65xc", .error = "boom", .http_status = 500, .retryable = true },
	{ .name = "length", .verdict = SBA_VERDICT_OK, .session = "ses_dd7d06f83ffeAYJ8NTp0hfT8GT", .text = "truncated", .usage = { 3441, 100, 7, 3, 0.003365 }, .notices = 1 },
	{ .name = "model404", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e6bb32ffeZVrKQzDS4prlW8", .error = "The model does not exist", .http_status = 404 },
	{ .name = "modelunknown", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7e6ab69fferWndC9ApYN6prb", .error = "Unexpected server error" },
	{ .name = "multi_argv", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dd0b04ffe41NG0rN7FTQhCb", .text = "PONG", .usage = { 3399, 100, 7, 3, 0.003323 } },
	{ .name = "openstdin", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "opencode was ended by signal 9" },
	{ .name = "plain", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e8a53bffeE7Gziw6F0a2dbN", .text = "PONG", .usage = { 1020, 100, 7, 3, 0.000944 } },
	{ .name = "providerunknown", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7e6996dffeav2i2D2XnUGEbY", .error = "Unexpected server error" },
	/* The other form. */
	{ .name = "serve_events.sse", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "ses_dd7cf1b4cffe8z23DAF1Ht1tk9", .text = "one two three four five six seven eight nine ten ", .usage = { 3457, 100, 7, 3, 0.003381 } },
	{ .name = "session_fork", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dbaf71ffeZS3Djz436fgzJX", .text = "msgs=8", .usage = { 3408, 100, 7, 3, 0.003332 } },
	{ .name = "session_resume", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dbfda1ffeNzG2o6CUtt5lty", .text = "msgs=4", .usage = { 3406, 100, 7, 3, 0.00333 } },
	{ .name = "session_turn1", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dbfda1ffeNzG2o6CUtt5lty", .text = "PONG", .usage = { 3405, 100, 7, 3, 0.003329 } },
	{ .name = "sigint_slow", .exit_status = 130, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7d6aea7ffepyG9X2vr5sbGsQ", .error = "opencode was ended by signal 2" },
	{ .name = "sigkill_tool", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7d65eb1ffeoCaupSFde02IPS", .error = "opencode was ended by signal 9" },
	{ .name = "sigterm_pid1", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7d63ed9ffeju9YCBovqK9x1k", .error = "opencode was ended by signal 9" },
	{ .name = "sigterm_tool", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7d68617ffePrmWm3zmY05uyS", .error = "opencode was ended by signal 15" },
	{ .name = "slow_partial", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "ses_dd7d033cbffen6QFZ1wTY26V6e", .error = "opencode was ended by signal 9" },
	{ .name = "stdin_argv", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dd2c7cffetFOJ8pHkOdlPBG", .text = "PONG", .usage = { 3397, 100, 7, 3, 0.003321 } },
	{ .name = "stdin_prompt", .verdict = SBA_VERDICT_OK, .session = "ses_dd7dd5d18ffeMM0Sc9hvt8aQaN", .text = "PONG", .usage = { 3395, 100, 7, 3, 0.003319 } },
	{ .name = "think", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e895b0ffeXSIdRcuxNeelYF", .text = "The answer is four.", .usage = { 1023, 100, 7, 3, 0.000947 }, .thought = "Let me think. Two plus two is four." },
	{ .name = "think_nothinkflag", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e879d0ffeOj49u2mk3P0For", .text = "The answer is four.", .usage = { 1025, 100, 7, 3, 0.000949 } },
	{ .name = "tool", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "ses_dd7e85a58ffeQjjTjTg49w280u", .text = "Done: wrote out.txt", .said = "I will write a file.Done: wrote out.txt", .tools = "bash=0", .usage = { 2061, 200, 14, 6, 0.001909 } },
	{ .name = "tool_noauto", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e86c32ffeDMFvyBz2rEbgwL", .text = "Done: wrote out.txt", .said = "I will write a file.Done: wrote out.txt", .tools = "bash=0", .usage = { 2055, 200, 14, 6, 0.001903 } },
	{ .name = "toolfail", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e7ce60ffeEP3afOUfM6Nv3Y", .text = "It failed with 3", .tools = "bash=3", .usage = { 2083, 200, 14, 6, 0.001931 } },
	{ .name = "unreachable", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ses_dd7e71b2cffenfG57mHIfJr0x1", .error = "Cannot connect to API", .retryable = true },
	{ .name = "write", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e82de1ffeoA2z8v1SW5Bg86", .text = "wrote w.txt", .tools = "write=ok", .usage = { 2067, 200, 14, 6, 0.001915 }, .files = "created /ws/w.txt;" },
	{ .name = "writeabs", .verdict = SBA_VERDICT_OK, .session = "ses_dd7e7e294ffeUe56HZCdnyclCw", .text = "wrote abs", .tools = "write=ok", .usage = { 2077, 200, 14, 6, 0.001925 }, .files = "created /tmp/abs.txt;" },
	{ .name = "writeabs_noauto", .verdict = SBA_VERDICT_NO_ANSWER, .session = "ses_dd7e7fe2dffekpqZnaNs9y6Lju", .tools = "write=failed", .usage = { 1036, 100, 7, 3, 0.00096 }, .error = "The user rejected permission" },
};
/* clang-format on */

#define PART(type, part)                                                                           \
	"{\"type\":\"" type "\",\"timestamp\":1,\"sessionID\":\"ses_1\",\"part\":{" part "}}"
#define START      PART("step_start", "")
#define TEXT(text) PART("text", "\"text\":\"" text "\"")
#define FINISH(reason)                                                                             \
	PART("step_finish", "\"reason\":\"" reason "\",\"tokens\":{\"input\":1,\"output\":1}")
#define TOOL(name, state)                                                                          \
	PART("tool_use", "\"tool\":\"" name "\",\"callID\":\"c1\",\"state\":{" state "}")
#define ERROR(name, data)                                                                          \
	"{\"type\":\"error\",\"sessionID\":\"ses_1\",\"error\":{\"name\":\"" name                  \
	"\",\"data\":{" data "}}}"

static void check(void **state)
{
	recording_check("opencode", *state);
}

static void cut(void **state)
{
	recording_cut("opencode", *state);
}

static void every_recording_is_a_row(void **state)
{
	(void)state;
	recording_all_are_rows("opencode", rows, SBA_ARRAY_LEN(rows));
}

/* Begins and feeds a NULL-terminated list. */
static void play(struct play *p, const char *const *lines)
{
	play_begin(p, "opencode");
	for (; *lines; lines++)
		play_line(p, *lines);
}

static void a_loop_of_cut_streams_is_recognised(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ NULL });
	for (int i = 0; i < 5; i++) {
		assert_false(sba_stream_stuck(p.stream));
		play_line(&p, START);
		play_line(&p, FINISH("unknown"));
	}
	assert_true(sba_stream_stuck(p.stream));
	assert_false(sba_stream_done(p.stream));
	struct sba_outcome o = play_finish(&p, 137, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_true(o.retryable);
	assert_string_equal(o.error, "the model's stream was cut 5 times in a row");
	play_end(&p);
}

static void cut_streams_with_progress_between_them_are_no_loop(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ NULL });
	for (int i = 0; i < 12; i++)
		play_line(&p, i % 4 == 3 ? FINISH("tool-calls") : FINISH("unknown"));
	assert_false(sba_stream_stuck(p.stream));
	play_end(&p);
}

static void the_answer_is_the_text_of_the_last_step(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ START, TEXT("I will"),
				   TOOL("bash", "\"status\":\"completed\",\"input\":{\"command\":"
						"\"ls\\nid\"},\"output\":\"\",\"metadata\":{"
						"\"exit\":0}"),
				   TEXT("aside"), FINISH("tool-calls"), START, TEXT("a"), TEXT("b"),
				   FINISH("stop"), NULL });
	assert_true(sba_stream_done(p.stream));
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_string_equal(o.text, "a\nb");
	assert_string_equal(play_str(&p.summaries), "ls;");
	assert_int_equal(o.usage.input, 2);
	play_end(&p);
}

static void a_turn_that_stops_after_a_call_is_no_success(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ START,
				   TOOL("read", "\"status\":\"error\",\"input\":{},\"error\":"
						"\"not allowed\""),
				   FINISH("tool-calls"), NULL });
	assert_false(sba_stream_done(p.stream));
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_NO_ANSWER);
	assert_string_equal(
		o.error, "opencode stopped after its call of read without an answer: not allowed");
	play_end(&p);
}

static void a_final_error_ends_the_turn_though_the_process_stays(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ START, TEXT("half"),
				   ERROR("APIError", "\"message\":\"quota\",\"statusCode\":402,"
						     "\"isRetryable\":false"),
				   NULL });
	assert_true(sba_stream_done(p.stream));
	struct sba_outcome o = play_finish(&p, 137, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_int_equal(o.http_status, 402);
	assert_string_equal(o.error, "quota");
	assert_string_equal(o.text, "half");
	play_end(&p);
}

static void an_error_that_was_got_over_does_not_fail_the_turn(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ ERROR("APIError", "\"message\":\"once\",\"statusCode\":500"),
				   START, TEXT("fine"), FINISH("stop"), NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_int_equal(o.http_status, 0);
	play_end(&p);
}

static void a_change_of_a_file_that_was_there_is_a_modification(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ TOOL("write", "\"status\":\"completed\",\"input\":{\"filePath\":"
						 "\"a\"},\"metadata\":{\"filepath\":\"/w/a\","
						 "\"exists\":true}"),
				   TOOL("edit", "\"status\":\"completed\",\"input\":{\"filePath\":"
						"\"b\"},\"metadata\":{}"),
				   NULL });
	assert_string_equal(play_str(&p.files), "modified /w/a;? b;");
	assert_string_equal(play_str(&p.summaries), "a;b;");
	play_end(&p);
}

static void a_tool_of_an_mcp_server_keeps_its_name(void **state)
{
	struct play p;
	char tools[64];
	(void)state;
	play(&p,
	     (const char *[]){ TOOL("t_ping", "\"status\":\"completed\",\"input\":{},\"output\":"
					      "\"pong\""),
			       NULL });
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "t_ping=ok");
	play_end(&p);
}

static void unknown_lines_are_noted_and_counted(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ PART("tomorrow", ""), TOOL("bash", "\"status\":\"running\""),
				   PART("text", ""), "{}", NULL });
	assert_int_equal(play_finish(&p, 0, "").unknown_lines, 3);
	play_end(&p);
}

/* The value of a variable; NULL if it is not set. */
static const char *env_get(const struct sba_strv *v, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < v->n; i++) {
		if (strncmp(v->v[i], name, len) == 0 && v->v[i][len] == '=')
			return v->v[i] + len + 1;
	}
	return NULL;
}

static int command_of(struct sba_turn_spec spec, struct sba_command *ret)
{
	struct sba_error err;
	spec.base_url = spec.base_url ? spec.base_url : "http://h:1";
	spec.token = spec.token ? spec.token : "secret";
	return sba_command_make(sba_driver_find("opencode"), &spec, ret, &err);
}

static void a_command_carries_its_configuration_without_the_key(void **state)
{
	struct sba_command c;
	json_t *j = NULL;
	struct sba_error err;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .model = "vendor/m\"1" }, &c), 0);
	const char *config = env_get(&c.env, "OPENCODE_CONFIG_CONTENT");
	assert_int_equal(sba_json_parse(config, strlen(config), "config", &j, &err), 0);
	assert_null(strstr(config, "secret"));
	assert_string_equal(env_get(&c.env, "SANDBOX_AGENT_MODEL_KEY"), "secret");
	assert_string_equal(sba_json_str(j, "model"), "sandbox/vendor/m\"1");
	assert_string_equal(sba_json_str(j, "provider.sandbox.options.baseURL"), "http://h:1/v1");
	assert_string_equal(sba_json_str(j, "provider.sandbox.options.apiKey"),
			    "{env:SANDBOX_AGENT_MODEL_KEY}");
	assert_non_null(sba_json_get(j, "provider.sandbox.models.vendor/m\"1"));
	assert_true(sba_json_bool(j, "agent.title.disable", false));
	assert_false(sba_json_bool(j, "autoupdate", true));
	assert_string_equal(sba_json_str(j, "permission.external_directory"), "allow");
	for (size_t i = 0; i < c.argv.n; i++)
		assert_null(strstr(c.argv.v[i], "secret"));
	json_decref(j);
	sba_command_fini(&c);
}

static void other_providers_models_are_read_only_where_a_login_needs_them(void **state)
{
	const struct sba_driver *d = sba_driver_find("opencode");
	struct sba_command c;
	char path[256];
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .root = "/box" }, &c), 0);
	snprintf(path, sizeof(path), "/box%s", d->files[0].path);
	assert_string_equal(env_get(&c.env, "OPENCODE_MODELS_PATH"), path);
	assert_string_equal(d->files[0].content, "{}\n");
	sba_command_fini(&c);
	assert_int_equal(command_of((struct sba_turn_spec){ .login = true }, &c), 0);
	assert_null(env_get(&c.env, "OPENCODE_MODELS_PATH"));
	sba_command_fini(&c);
}

static void a_command_resumes_by_the_sessions_id(void **state)
{
	struct sba_command c;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "ses_1" }, &c), 0);
	assert_true(c.argv.n > 2);
	assert_string_equal(c.argv.v[c.argv.n - 2], "-s");
	assert_string_equal(c.argv.v[c.argv.n - 1], "ses_1");
	sba_command_fini(&c);
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "-c" }, &c), SBA_EINVAL);
}

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_setup(every_recording_is_a_row, play_limit),
		cmocka_unit_test_setup(a_loop_of_cut_streams_is_recognised, play_limit),
		cmocka_unit_test_setup(cut_streams_with_progress_between_them_are_no_loop,
				       play_limit),
		cmocka_unit_test_setup(the_answer_is_the_text_of_the_last_step, play_limit),
		cmocka_unit_test_setup(a_turn_that_stops_after_a_call_is_no_success, play_limit),
		cmocka_unit_test_setup(a_final_error_ends_the_turn_though_the_process_stays,
				       play_limit),
		cmocka_unit_test_setup(an_error_that_was_got_over_does_not_fail_the_turn,
				       play_limit),
		cmocka_unit_test_setup(a_change_of_a_file_that_was_there_is_a_modification,
				       play_limit),
		cmocka_unit_test_setup(a_tool_of_an_mcp_server_keeps_its_name, play_limit),
		cmocka_unit_test_setup(unknown_lines_are_noted_and_counted, play_limit),
		cmocka_unit_test_setup(a_command_carries_its_configuration_without_the_key,
				       play_limit),
		cmocka_unit_test_setup(a_command_resumes_by_the_sessions_id, play_limit),
		cmocka_unit_test_setup(
			other_providers_models_are_read_only_where_a_login_needs_them, play_limit),
	};
	struct CMUnitTest recordings[2 * SBA_ARRAY_LEN(rows)];
	recording_tests(recordings, rows, SBA_ARRAY_LEN(rows), check, cut);
	int failed = cmocka_run_group_tests_name("opencode: recordings", recordings, NULL, NULL);
	return failed + cmocka_run_group_tests_name("opencode", others, NULL, NULL);
}
