/* SPDX-License-Identifier: MIT */
/* Finding and reading what was recorded, also while it is written, and by whomever. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/audit_root.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE "11111111-5f3f-4a4e-9a55-0d9c1f1f0001"
#define TWO "11112222-5f3f-4a4e-9a55-0d9c1f1f0001"

static struct sba_audit_list *list(const struct sba_audit_filter *f)
{
	struct sba_audit_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_audit_list(audit_root, f, &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static size_t count(const struct sba_audit_filter *f)
{
	struct sba_audit_list *l = list(f);
	size_t n = sba_audit_list_count(l);
	sba_audit_list_free(l);
	return n;
}

static void two_sessions(void)
{
	struct sba_audit *a = audit_open("box", NULL), *b = audit_open("other", NULL);
	audit_whole_turn(a, NULL, ONE, "one");
	audit_whole_turn(b, NULL, TWO, "two");
	audit_whole_turn(b, TWO, TWO, "more");
	sba_audit_close(a);
	sba_audit_close(b);
}

static void filters_leave_what_they_name(void **state)
{
	(void)state;
	char day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	two_sessions();
	assert_int_equal(count(NULL), 2);
	assert_int_equal(count(&(struct sba_audit_filter){ .agent = "claude" }), 2);
	assert_int_equal(count(&(struct sba_audit_filter){ .agent = "codex" }), 0);
	assert_int_equal(count(&(struct sba_audit_filter){ .sandbox = "box" }), 1);
	assert_int_equal(count(&(struct sba_audit_filter){ .verdict = "timeout" }), 0);
	assert_int_equal(count(&(struct sba_audit_filter){ .verdict = "ok", .day = day }), 2);
	assert_int_equal(count(&(struct sba_audit_filter){ .day = "20200101" }), 0);
}

static void a_list_tells_of_all_turns_newest_first(void **state)
{
	(void)state;
	two_sessions();
	struct sba_audit_list *l = list(NULL);
	const struct sba_audit_session *s = sba_audit_list_at(l, 0);
	assert_string_equal(s->session, TWO);
	char day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	for (size_t i = 0; i < sba_audit_list_count(l); i++)
		assert_string_equal(sba_audit_list_at(l, i)->day, day);
	assert_string_equal(s->sandbox, "other");
	assert_int_equal(s->turns, 2);
	assert_int_equal(s->usage.input, 20);
	assert_string_equal(s->prompt, "do it");
	assert_true(s->updated_ms >= s->created_ms);
	assert_null(sba_audit_list_at(l, 2));
	sba_audit_list_free(l);
}

static void a_session_is_found_by_its_id_or_a_beginning_of_its_own(void **state)
{
	(void)state;
	two_sessions();
	struct sba_audit_list *l = list(NULL);
	const struct sba_audit_session *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_audit_list_find(l, ONE, &s, &err), 0);
	assert_string_equal(s->session, ONE);
	assert_int_equal(sba_audit_list_find(l, "11112", &s, &err), 0);
	assert_string_equal(s->session, TWO);
	assert_int_equal(sba_audit_list_find(l, "1111", &s, &err), SBA_EINVAL);
	assert_int_equal(sba_audit_list_find(l, "111", &s, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_audit_list_find(l, "zzzz", &s, &err), SBA_ENOTFOUND);
	sba_audit_list_free(l);
}

static void a_turn_is_running_while_its_writer_lives_and_unfinished_after(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ONE);
	assert_int_equal(count(&(struct sba_audit_filter){ .verdict = "running" }), 1);
	SBA_JSON json_t *running = audit_status(ONE);
	audit_end(t);
	/* As a kill would have left it. */
	char path[256], day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(path, sizeof(path), "%s/%s/" ONE "/status.json", audit_root, day);
	assert_int_equal(json_dump_file(running, path, 0), 0);
	assert_int_equal(count(&(struct sba_audit_filter){ .verdict = "unfinished" }), 1);
	sba_audit_close(a);
}

static struct sba_audit_reader *reader(void)
{
	struct sba_audit_list *l = list(NULL);
	struct sba_audit_reader *r = NULL;
	struct sba_error err = { 0 };
	assert_true(sba_audit_list_count(l) > 0);
	if (sba_audit_reader_open(sba_audit_list_at(l, 0), &r, &err) < 0)
		fail_msg("%s", err.text);
	sba_audit_list_free(l);
	return r;
}

static void an_event_comes_back_as_it_was(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ONE);
	const struct sba_event e = {
		.kind = SBA_EVENT_TOOL_RESULT,
		.time_ms = 1764455443123,
		.session = ONE,
		.tool = "bash",
		.tool_native = "Bash",
		.call_id = "c1",
		.summary = "ls \"x\"",
		.input = "{\"command\":\"ls\"}",
		.output = "a\nb\x1b[0m",
		.failed = true,
		.has_exit_code = true,
		.exit_code = -3,
		.path = "/w/x",
		.change = "created",
		.http_status = 429,
		.raw = "x",
	};
	sba_audit_turn_raw(t, "x\n", 2);
	sba_audit_turn_event(t, &e);
	audit_end(t);
	struct sba_audit_reader *r = reader();
	const struct sba_audit_row *row = NULL;
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_string_equal(row->kind, "prompt");
	assert_false(row->is_event);
	assert_int_equal(row->line, 0);
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_true(row->is_event);
	assert_int_equal(row->line, 1);
	assert_int_equal(row->turn, 1);
	assert_int_equal(row->event.kind, e.kind);
	assert_int_equal(row->event.time_ms, e.time_ms);
	assert_string_equal(row->event.tool, e.tool);
	assert_string_equal(row->event.tool_native, e.tool_native);
	assert_string_equal(row->event.call_id, e.call_id);
	assert_string_equal(row->event.summary, e.summary);
	assert_string_equal(row->event.input, e.input);
	assert_string_equal(row->event.output, e.output);
	assert_true(row->event.failed && row->event.has_exit_code);
	assert_int_equal(row->event.exit_code, e.exit_code);
	assert_string_equal(row->event.path, e.path);
	assert_string_equal(row->event.change, e.change);
	assert_int_equal(row->event.http_status, e.http_status);
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_string_equal(row->kind, "result");
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 0);
	sba_audit_reader_close(r);
	sba_audit_close(a);
}

static void a_reader_sees_what_is_written_while_it_looks(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	struct sba_audit_reader *r = reader();
	const struct sba_audit_row *row = NULL;
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 0);
	assert_true(sba_audit_reader_busy(r));
	audit_say(t, "x\n", SBA_EVENT_TEXT, "live");
	sba_audit_turn_settle(t);
	struct pollfd p = { .fd = sba_audit_reader_fd(r), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(sba_audit_reader_next(r, 5000, &row, NULL), 1);
	assert_string_equal(row->event.text, "live");
	/* A new name of the folder is no matter. */
	audit_say_session(t, ONE);
	audit_end(t);
	assert_int_equal(sba_audit_reader_next(r, 5000, &row, NULL), 1);
	assert_string_equal(row->event.session, ONE);
	assert_false(sba_audit_reader_busy(r));
	sba_audit_reader_close(r);
	sba_audit_close(a);
}

static void rewrite(const char *file, const char *text)
{
	char path[256], day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(path, sizeof(path), "%s/%s/" ONE "/%s", audit_root, day, file);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void lines_that_are_no_events_are_passed_over_and_counted(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ONE, "x");
	rewrite("events.jsonl",
		"\n{}\n[1]\n{\"kind\":\"text\"}\n{\"kind\":1,\"payload\":{}}\n\xff\n"
		"{\"line\":\"x\",\"offset\":1e99,\"time\":7,\"turn\":null,\"kind\":\"text\","
		"\"payload\":{\"text\":5,\"exit_code\":99999999999,\"input\":[[]]}}\n"
		"{\"kind\":\"text\",\"payload\":{\"text\":\"whole\"}}\n"
		"{\"kind\":\"text\",\"payload\":{\"text\":\"cut");
	struct sba_audit_reader *r = reader();
	const struct sba_audit_row *row = NULL;
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_null(row->event.text);
	assert_int_equal(row->event.exit_code, INT32_MAX);
	assert_string_equal(row->event.input, "[[]]");
	assert_int_equal(row->time_ms, 0);
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 1);
	assert_string_equal(row->event.text, "whole");
	assert_int_equal(sba_audit_reader_next(r, 0, &row, NULL), 0);
	assert_int_equal(sba_audit_reader_bad(r), 6);
	sba_audit_reader_close(r);
	sba_audit_close(a);
}

static void a_status_that_is_none_of_ours_is_passed_over(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "{", "[]", "{\"v\":2,\"turns\":[]}", "{\"v\":1,\"turns\":{}}",
	};
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ONE, "x");
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		rewrite("status.json", bad[i]);
		assert_int_equal(count(NULL), 0);
	}
	rewrite("status.json", "{\"v\":1,\"turns\":[1,{\"usage\":[]},{\"usage\":{\"input\":-5}}],"
			       "\"sandbox\":7,\"sessions\":{},\"created\":\"x\"}");
	assert_int_equal(count(NULL), 1);
	/* Nor does it keep the next turn from being recorded. */
	rewrite("status.json", "{");
	audit_whole_turn(a, ONE, ONE, "y");
	assert_int_equal(count(NULL), 1);
	sba_audit_close(a);
}

static void times_come_back_as_they_were(void **state)
{
	(void)state;
	static const int64_t times[] = { 1, 999, 1764455443123, 4102444800000 };
	char text[SBA_AUDIT_TIME];
	for (size_t i = 0; i < SBA_ARRAY_LEN(times); i++) {
		sba_audit_time(times[i], text);
		assert_int_equal(sba_audit_time_parse(text), times[i]);
	}
	static const char *const bad[] = { "", "2026-11-29", "2026-11-29T22:30:43Z",
					   "2026-11-29T22:30:43.12Z", "2026-11-29T22:30:43.123" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_int_equal(sba_audit_time_parse(bad[i]), 0);
	assert_int_equal(sba_audit_time_parse(NULL), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, audit_root_begin, audit_root_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(filters_leave_what_they_name),
		T(a_list_tells_of_all_turns_newest_first),
		T(a_session_is_found_by_its_id_or_a_beginning_of_its_own),
		T(a_turn_is_running_while_its_writer_lives_and_unfinished_after),
		T(an_event_comes_back_as_it_was),
		T(a_reader_sees_what_is_written_while_it_looks),
		T(lines_that_are_no_events_are_passed_over_and_counted),
		T(a_status_that_is_none_of_ours_is_passed_over),
		T(times_come_back_as_they_were),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
