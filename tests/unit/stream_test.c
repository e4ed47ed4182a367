/* SPDX-License-Identifier: MIT */
/* What no line can do to a stream, whatever the CLI; and names of events. */
#include "play.h"

#include "base/limits.h"

#define INIT   "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}"
#define RESULT "{\"type\":\"result\",\"is_error\":false,\"result\":\"end\"}"

static void text_line(struct sba_buf *b, const char *text, size_t len)
{
	sba_buf_reset(b);
	sba_buf_puts(b, "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\","
			"\"text\":\"");
	sba_buf_put(b, text, len);
	sba_buf_puts(b, "\"}]}}");
}

/* What is said when this stands between the quotes. */
static void said_of(const char *text, size_t len, const char *expected)
{
	struct play p;
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(1 << 20);
	text_line(&line, text, len);
	play_begin(&p, "claude");
	play_bytes(&p, line.data, line.len);
	assert_string_equal(play_str(&p.said), expected);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 0);
	play_end(&p);
}

#define SAID(text, expected) said_of("" text, sizeof(text) - 1, expected)

static void bad_utf8_is_replaced_and_the_raw_line_kept(void **state)
{
	(void)state;
	SAID("a\xff"
	     "b",
	     "a\xEF\xBF\xBD"
	     "b");
	SAID("cut \xE4\xBD", "cut \xEF\xBF\xBD");
	SAID("\xED\xA0\x80", "\xEF\xBF\xBD");
}

static void escapes_that_only_javascript_allows_are_replaced(void **state)
{
	(void)state;
	SAID("a\\u0000b", "a\xEF\xBF\xBD"
			  "b");
	SAID("half \\ud83d!", "half \xEF\xBF\xBD!");
	SAID("half \\uDE00!", "half \xEF\xBF\xBD!");
	SAID("twice \\ud83d\\ud83d\\ude00", "twice \xEF\xBF\xBD\xF0\x9F\x98\x80");
	SAID("whole \\ud83d\\ude00", "whole \xF0\x9F\x98\x80");
	SAID("\\\\u0000 is text", "\\u0000 is text");
	SAID("\\\\\\u0000", "\\\xEF\xBF\xBD");
	SAID("\\ud83d", "\xEF\xBF\xBD");
}

static void a_number_beyond_int64_does_not_lose_its_line(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	play_line(&p, INIT);
	play_line(&p, "{\"type\":\"result\",\"is_error\":false,\"result\":\"end\",\"usage\":{"
		      "\"input_tokens\":18446744073709552000,\"output_tokens\":3}}");
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_int_equal(o.usage.input, INT64_MAX);
	assert_int_equal(o.usage.output, 3);
	assert_int_equal(o.unknown_lines, 0);
	play_end(&p);
}

static void a_number_beyond_double_costs_its_line_only(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	play_line(&p, INIT);
	play_line(&p, "{\"type\":\"assistant\",\"n\":1e400}");
	play_line(&p, RESULT);
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_string_equal(o.text, "end");
	assert_int_equal(o.unknown_lines, 1);
	play_end(&p);
}

static void sums_of_usage_saturate_and_ignore_what_is_negative(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "opencode");
	for (int i = 0; i < 3; i++)
		play_line(&p, "{\"type\":\"step_finish\",\"part\":{\"reason\":\"stop\",\"cost\":-1,"
			      "\"tokens\":{\"input\":9223372036854775807,\"output\":-5,"
			      "\"cache\":{\"read\":1}}}}");
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.usage.input, INT64_MAX);
	assert_int_equal(o.usage.output, 0);
	assert_int_equal(o.usage.cached_input, 3);
	assert_true(fabs(o.usage.cost_usd) < 1e-12);
	play_end(&p);
}

static void what_is_no_json_object_is_noted(void **state)
{
	static const char *const lines[] = {
		"Segmentation fault", "[1,2]", "\"text\"", "17", "null", "{\"type\"", "{}{}"
	};
	struct play p;
	(void)state;
	play_begin(&p, "opencode");
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++)
		play_line(&p, lines[i]);
	play_bytes(&p, "{\"type\":\0}", 10);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], SBA_ARRAY_LEN(lines) + 1);
	assert_int_equal(play_finish(&p, 0, "").unknown_lines, SBA_ARRAY_LEN(lines) + 1);
	play_end(&p);
}

static void blank_lines_are_nothing(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	play_line(&p, "");
	play_line(&p, "\r");
	play_line(&p, " \t ");
	assert_int_equal(play_finish(&p, 0, "").unknown_lines, 0);
	play_end(&p);
}

static void a_line_may_end_in_cr(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	play_line(&p, INIT "\r");
	play_line(&p, RESULT "\r");
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_string_equal(o.text, "end");
	assert_int_equal(o.unknown_lines, 0);
	play_end(&p);
}

/* C-13: lines are read off the command itself; the engine's log, which cuts them, is not
 * used. */
static void a_line_of_5_MB_is_a_line(void **state)
{
	enum { LEN = 5 << 20 };
	struct play p;
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(LEN + 1024);
	SBA_FREE char *text = malloc(LEN);
	(void)state;
	assert_non_null(text);
	memset(text, 'y', LEN);
	text_line(&line, text, LEN);
	play_begin(&p, "claude");
	play_bytes(&p, line.data, line.len);
	play_line(&p, RESULT);
	assert_int_equal(p.said.len, LEN);
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_OK);
	play_end(&p);
}

static void a_line_beyond_the_limit_is_noted_unread(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	char *line = malloc((size_t)SBA_LINE_MAX + 1);
	assert_non_null(line);
	memset(line, '[', (size_t)SBA_LINE_MAX + 1);
	play_bytes(&p, line, (size_t)SBA_LINE_MAX + 1);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 1);
	free(line);
	play_end(&p);
}

static void deep_nesting_is_noted(void **state)
{
	enum { DEPTH = 100000 };
	struct play p;
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(2 * DEPTH);
	(void)state;
	sba_buf_puts(&line, "{\"type\":");
	for (int i = 0; i < DEPTH; i++)
		sba_buf_putc(&line, '[');
	play_begin(&p, "claude");
	play_bytes(&p, line.data, line.len);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 1);
	play_end(&p);
}

static void the_first_session_stays_and_is_told_once(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	assert_null(sba_stream_session(p.stream));
	play_line(&p, INIT);
	play_line(&p, INIT);
	play_line(&p, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-2\"}");
	assert_string_equal(sba_stream_session(p.stream), "s-1");
	assert_int_equal(p.n[SBA_EVENT_SESSION], 1);
	play_end(&p);
}

static void a_session_id_that_could_be_an_option_or_a_path_is_none(void **state)
{
	static const char *const ids[] = { "-x", "a/b", "a b", "", "a\\n", "$(id)", "\\u00e4" };
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	for (size_t i = 0; i < SBA_ARRAY_LEN(ids); i++) {
		SBA_BUF struct sba_buf line = SBA_BUF_INIT(4096);
		sba_buf_printf(&line,
			       "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"%s\"}",
			       ids[i]);
		play_bytes(&p, line.data, line.len);
	}
	assert_null(sba_stream_session(p.stream));
	assert_int_equal(p.n[SBA_EVENT_SESSION], 0);
	play_end(&p);
}

static int break_off(void *user, const struct sba_event *event)
{
	(void)event;
	return ++*(int *)user == 2 ? 77 : 0;
}

static void what_the_sink_returns_breaks_off_the_line(void **state)
{
	static const char line[] =
		"{\"type\":\"assistant\",\"session_id\":\"s\",\"message\":{\"content\":[{\"type\":"
		"\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}}";
	struct sba_stream *s;
	struct sba_error err;
	int seen = 0;
	(void)state;
	const struct sba_stream_options options = { .driver = sba_driver_find("claude"),
						    .fn = break_off,
						    .user = &seen };
	assert_int_equal(sba_stream_new(&options, &s, &err), 0);
	assert_int_equal(sba_stream_line(s, line, strlen(line)), 77);
	assert_int_equal(seen, 2);
	sba_stream_free(s);
}

static void a_result_without_its_call_and_a_call_without_a_result_are_kept(void **state)
{
	struct play p;
	char tools[64];
	(void)state;
	play_begin(&p, "claude");
	play_line(&p, "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\","
		      "\"tool_use_id\":\"none\",\"content\":[{\"type\":\"image\"}]}]}}");
	play_line(&p, "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\","
		      "\"id\":\"c\",\"name\":\"mcp__a__b__c\",\"input\":{}}]}}");
	assert_int_equal(p.n[SBA_EVENT_TOOL_RESULT], 1);
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "mcp:a.b__c=open");
	play_end(&p);
}

static void a_long_or_manylined_argument_gives_a_short_summary(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(1 << 20);
	sba_buf_puts(&line, "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":"
			    "\"tool_use\",\"name\":\"Bash\",\"input\":{\"command\":\" \\n");
	for (int i = 0; i < 1000; i++)
		sba_buf_puts(&line, "\xE4\xBD\xA0");
	sba_buf_puts(&line, "\\nrm\"}}]}}");
	play_bytes(&p, line.data, line.len);
	assert_in_range(p.summaries.len, 200, SBA_SUMMARY_MAX + 8);
	assert_null(strstr(p.summaries.data, "rm"));
	play_end(&p);
}

static void an_answer_that_grows_without_end_stays_bounded(void **state)
{
	enum { LEN = 1 << 20 };
	struct play p;
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(LEN + 1024);
	SBA_FREE char *text = malloc(LEN);
	(void)state;
	assert_non_null(text);
	memset(text, 'z', LEN);
	text_line(&line, text, LEN);
	play_begin(&p, "claude");
	for (int i = 0; i < 20; i++)
		play_bytes(&p, line.data, line.len);
	assert_int_equal(p.n[SBA_EVENT_TEXT], 20);
	assert_in_range(strlen(play_finish(&p, 1, "").text), LEN, SBA_ANSWER_MAX);
	play_end(&p);
}

static void stderr_becomes_a_message_without_its_colours(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "opencode");
	struct sba_outcome o = play_finish(&p, 1, "\n \x1b[91m\x1b[1mError: \x1b[0mgone\xff \n\n");
	assert_string_equal(o.error, "opencode ended with exit status 1: Error: gone\xEF\xBF\xBD");
	play_end(&p);
	play_begin(&p, "opencode");
	o = play_finish(&p, 1, "\x1b[\x1b");
	assert_string_equal(o.error, "opencode ended with exit status 1");
	play_end(&p);
}

static void only_the_end_of_a_long_stderr_is_told(void **state)
{
	struct play p;
	SBA_FREE char *tail = malloc(100001);
	(void)state;
	assert_non_null(tail);
	for (int i = 0; i < 100000; i++)
		tail[i] = "\xE4\xBD\xA0"[i % 3];
	tail[100000] = '\0';
	play_begin(&p, "claude");
	struct sba_outcome o = play_finish(&p, 1, tail);
	assert_in_range(strlen(o.error), 1500, 2200);
	play_end(&p);
}

static void every_kind_and_verdict_has_its_own_name(void **state)
{
	(void)state;
	for (int i = 0; i <= SBA_EVENT_DONE; i++) {
		for (int k = 0; k < i; k++)
			assert_string_not_equal(sba_event_kind_name((enum sba_event_kind)i),
						sba_event_kind_name((enum sba_event_kind)k));
	}
	for (int i = 0; i <= SBA_VERDICT_ENGINE_LOST; i++) {
		for (int k = 0; k < i; k++)
			assert_string_not_equal(sba_verdict_name((enum sba_verdict)i),
						sba_verdict_name((enum sba_verdict)k));
		assert_int_equal(sba_verdict_code((enum sba_verdict)i) == SBA_OK,
				 i == SBA_VERDICT_OK);
	}
	assert_string_equal(sba_event_kind_name((enum sba_event_kind)99), "unknown");
	assert_string_equal(sba_verdict_name((enum sba_verdict)99), "unknown");
}

static void every_driver_is_whole_and_found_by_its_name(void **state)
{
	(void)state;
	for (const struct sba_driver *const *d = sba_driver_all(); *d; d++) {
		assert_ptr_equal(sba_driver_find((*d)->name), *d);
		bool any_program = strcmp((*d)->name, "command") == 0;
		assert_int_equal((*d)->size, sizeof(**d));
		assert_int_equal((*d)->binary == NULL, any_program);
		assert_int_equal((*d)->install == NULL, any_program);
		assert_non_null((*d)->command);
		assert_non_null((*d)->line);
	}
	assert_null(sba_driver_find("nobody"));
	assert_null(sba_driver_find(NULL));
	sba_stream_free(NULL);
	sba_command_fini(NULL);
}

#define T(name) cmocka_unit_test_setup(name, play_limit)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(bad_utf8_is_replaced_and_the_raw_line_kept),
		T(escapes_that_only_javascript_allows_are_replaced),
		T(a_number_beyond_int64_does_not_lose_its_line),
		T(a_number_beyond_double_costs_its_line_only),
		T(sums_of_usage_saturate_and_ignore_what_is_negative),
		T(what_is_no_json_object_is_noted),
		T(blank_lines_are_nothing),
		T(a_line_may_end_in_cr),
		T(a_line_of_5_MB_is_a_line),
		T(a_line_beyond_the_limit_is_noted_unread),
		T(deep_nesting_is_noted),
		T(the_first_session_stays_and_is_told_once),
		T(a_session_id_that_could_be_an_option_or_a_path_is_none),
		T(what_the_sink_returns_breaks_off_the_line),
		T(a_result_without_its_call_and_a_call_without_a_result_are_kept),
		T(a_long_or_manylined_argument_gives_a_short_summary),
		T(an_answer_that_grows_without_end_stays_bounded),
		T(stderr_becomes_a_message_without_its_colours),
		T(only_the_end_of_a_long_stderr_is_told),
		T(every_kind_and_verdict_has_its_own_name),
		T(every_driver_is_whole_and_found_by_its_name),
	};
	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
