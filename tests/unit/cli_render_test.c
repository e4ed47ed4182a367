/* SPDX-License-Identifier: MIT */
/* How a turn looks: to a terminal, to a pipe, where there is little room. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct screen {
	struct cli_look look;
	struct cli_status status;
	struct cli_render r;
	char *out, *err;
	size_t out_len, err_len;
};

/* One terminal: both streams are the same. */
static void screen_open(struct screen *s, bool tty, int columns)
{
	memset(s, 0, sizeof(*s));
	s->look = (struct cli_look){ .utf8 = true, .out_tty = tty, .columns = columns };
	s->r = (struct cli_render){ .look = &s->look, .status = &s->status };
	s->r.out = open_memstream(&s->out, &s->out_len);
	assert_non_null(s->r.out);
	s->r.err = tty ? s->r.out : open_memstream(&s->err, &s->err_len);
	assert_non_null(s->r.err);
}

static void screen_close(struct screen *s)
{
	cli_render_fini(&s->r);
	if (s->r.err != s->r.out)
		fclose(s->r.err);
	fclose(s->r.out);
	free(s->out);
	free(s->err);
}

static void text(struct screen *s, const char *t, bool delta)
{
	struct sba_event e = { .kind = SBA_EVENT_TEXT, .text = t, .delta = delta };
	cli_render_event(&s->r, &e);
}

static void call(struct screen *s, const char *id, const char *tool, const char *summary)
{
	struct sba_event e = { .kind = SBA_EVENT_TOOL_CALL,
			       .time_ms = 1000,
			       .call_id = id,
			       .tool = tool,
			       .summary = summary };
	cli_render_event(&s->r, &e);
}

static void result(struct screen *s, const char *id, const char *output, int code)
{
	struct sba_event e = { .kind = SBA_EVENT_TOOL_RESULT,
			       .time_ms = 1200,
			       .call_id = id,
			       .output = output,
			       .has_exit_code = true,
			       .exit_code = code };
	cli_render_event(&s->r, &e);
}

/* Ends the turn and compares all that is on the screen. */
static void expect(struct screen *s, const char *out, const char *err)
{
	cli_render_end(&s->r);
	fflush(s->r.out);
	fflush(s->r.err);
	assert_string_equal(s->out, out);
	if (err)
		assert_string_equal(s->err, err);
	screen_close(s);
}

static void pieces_of_an_answer_are_one_line(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, true, 80);
	text(&s, "I'll ", false);
	text(&s, "write.", true);
	text(&s, "\n", true);
	text(&s, "\nThen run.\n", true);
	text(&s, "Done.", false);
	expect(&s, "● I'll write.\n\n  Then run.\n● Done.\n", NULL);
}

static void a_pipe_gets_the_answer_and_nothing_else(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	text(&s, "One\n", false);
	call(&s, "1", "bash", "true");
	result(&s, "1", "", 0);
	text(&s, "\n\nTwo\nthree\n\n", false);
	expect(&s, "One\nTwo\nthree\n",
	       "▸ bash    true                                               "
	       "exit 0         0.2s\n");
}

static void control_bytes_do_not_reach_a_terminal(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, true, 80);
	text(&s, "a\033[2Jb", false);
	call(&s, "1", "bash", "printf '\033]0;x\a'");
	result(&s, "1", "\033[31mred\rline\n", 0);
	cli_render_end(&s.r);
	fflush(s.r.out);
	assert_null(strchr(s.out, '\033'));
	assert_null(strchr(s.out, '\r'));
	screen_close(&s);
}

static void long_output_is_cut_after_ten_lines(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	call(&s, "1", "bash", "seq 12");
	result(&s, "1", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", 0);
	cli_render_end(&s.r);
	fflush(s.r.err);
	assert_non_null(strstr(s.err, "  │ 10\n  │ … 2 more lines\n"));
	assert_null(strstr(s.err, "│ 11"));
	screen_close(&s);
}

static void facts_go_before_the_meaning_where_room_is_short(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 32);
	call(&s, "1", "bash", "make check");
	result(&s, "1", "", 0);
	call(&s, "2", "bash", "make check-everything-twice");
	result(&s, "2", "", 2);
	expect(&s, "",
	       "▸ bash    make check\n"
	       "▸ bash    make check-ev…  exit 2\n");
}

static void without_utf8_the_marks_are_ascii(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, true, 80);
	s.look.utf8 = false;
	text(&s, "Hi", false);
	call(&s, "1", "bash", "false");
	result(&s, "1", "no\n", 1);
	cli_render_end(&s.r);
	struct sba_turn_result r = { .verdict = SBA_VERDICT_OK, .duration_ms = 1300 };
	cli_render_result(&s.r, &r);
	fflush(s.r.out);
	for (const char *c = s.out; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_non_null(strstr(s.out, "* Hi\n> bash"));
	assert_non_null(strstr(s.out, "  | no\nok  1.3s\n"));
	screen_close(&s);
}

static void thinking_is_folded_to_its_first_line(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	struct sba_event e = { .kind = SBA_EVENT_THINKING, .text = "First " };
	cli_render_event(&s.r, &e);
	e = (struct sba_event){ .kind = SBA_EVENT_THINKING,
				.text = "line.\nSecond",
				.delta = true };
	cli_render_event(&s.r, &e);
	e.text = " more";
	cli_render_event(&s.r, &e);
	text(&s, "Answer", false);
	expect(&s, "Answer\n", "  First line.…\n");
}

static void a_tool_without_an_answer_is_told(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	call(&s, "1", "bash", "sleep 99");
	cli_render_end(&s.r);
	fflush(s.r.err);
	assert_non_null(strstr(s.err, "sleep 99"));
	assert_non_null(strstr(s.err, "no result"));
	screen_close(&s);
}

static void answers_find_their_calls_in_any_order(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	call(&s, "a", "read", "one");
	call(&s, "b", "bash", "two");
	result(&s, "b", "", 0);
	result(&s, "a", "", 0);
	result(&s, "unknown", "", 0);
	cli_render_end(&s.r);
	fflush(s.r.err);
	const char *two = strstr(s.err, "two"), *one = strstr(s.err, "one");
	assert_non_null(two);
	assert_non_null(one);
	assert_true(two < one);
	assert_null(strstr(s.err, "no result"));
	screen_close(&s);
}

static void more_calls_than_are_remembered_do_no_harm(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	for (int i = 0; i < 40; i++) {
		char id[16];
		snprintf(id, sizeof(id), "%d", i);
		call(&s, id, "bash", "x");
	}
	for (int i = 0; i < 40; i++) {
		char id[16];
		snprintf(id, sizeof(id), "%d", i);
		result(&s, id, "", 0);
	}
	screen_close(&s);
}

static void the_result_names_tokens_and_time(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	struct sba_turn_result r = {
		.verdict = SBA_VERDICT_OK,
		.tools = 2,
		.usage = { .input = 1204, .cached_input = 980, .output = 86 },
		.duration_ms = 1300,
	};
	cli_render_result(&s.r, &r);
	assert_string_equal(s.err, "✓ ok  2 tools  1,204 in (980 cached)  86 out  1.3s\n");
	screen_close(&s);
	screen_open(&s, false, 80);
	r = (struct sba_turn_result){ .verdict = SBA_VERDICT_MODEL_ERROR, .duration_ms = 100 };
	cli_render_result(&s.r, &r);
	assert_string_equal(s.err, "✗ model error  0.1s\n");
	screen_close(&s);
}

static void quiet_shows_nothing_on_the_way(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	s.r.quiet = true;
	text(&s, "One", false);
	call(&s, "1", "bash", "true");
	result(&s, "1", "", 0);
	expect(&s, "", "");
}

static void fail_with(struct screen *s, const char *text)
{
	struct sba_event e = { .kind = SBA_EVENT_ERROR, .text = text };
	cli_render_event(&s->r, &e);
}

static void error_is_told_once(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	fail_with(&s, "busy");
	text(&s, "on it", false);
	fail_with(&s, "API Error: 400");
	cli_render_forget(&s.r, "claude: API Error: 400");
	expect(&s, "on it\n", "· busy\n");
	screen_open(&s, false, 80);
	fail_with(&s, "API Error: 400");
	cli_render_forget(&s.r, "its time was over");
	expect(&s, "", "· API Error: 400\n");
}

static void answer_alone_ends_in_one_newline_and_is_escaped_on_a_terminal(void **state)
{
	(void)state;
	struct screen s;
	screen_open(&s, false, 80);
	cli_render_answer(&s.r, "a\033b\n\n");
	expect(&s, "a\033b\n", "");
	screen_open(&s, true, 80);
	s.r.quiet = true;
	cli_render_answer(&s.r, "a\033b");
	expect(&s, "a\\x1bb\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_an_answer_are_one_line),
		cmocka_unit_test(a_pipe_gets_the_answer_and_nothing_else),
		cmocka_unit_test(control_bytes_do_not_reach_a_terminal),
		cmocka_unit_test(long_output_is_cut_after_ten_lines),
		cmocka_unit_test(facts_go_before_the_meaning_where_room_is_short),
		cmocka_unit_test(without_utf8_the_marks_are_ascii),
		cmocka_unit_test(thinking_is_folded_to_its_first_line),
		cmocka_unit_test(a_tool_without_an_answer_is_told),
		cmocka_unit_test(answers_find_their_calls_in_any_order),
		cmocka_unit_test(more_calls_than_are_remembered_do_no_harm),
		cmocka_unit_test(the_result_names_tokens_and_time),
		cmocka_unit_test(quiet_shows_nothing_on_the_way),
		cmocka_unit_test(error_is_told_once),
		cmocka_unit_test(answer_alone_ends_in_one_newline_and_is_escaped_on_a_terminal),
	};
	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
