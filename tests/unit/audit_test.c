/* SPDX-License-Identifier: MIT */
/* The record of turns: where it is, what is in it, and what becomes of ids. */
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

#define ID "6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001"

static json_t *find(json_t *events, const char *kind)
{
	size_t i;
	json_t *e;
	json_array_foreach(events, i, e)
	{
		if (!strcmp(sba_json_str(e, "kind"), kind))
			return e;
	}
	fail_msg("no %s among the events", kind);
	return NULL;
}

/* ---- layout ---- */

static void a_turn_has_its_three_files_and_nobody_else_may_read_them(void **state)
{
	(void)state;
	struct stat st;
	char path[256], day[SBA_AUDIT_DAY];
	struct sba_audit *a = audit_open("box", NULL);
	mode_t before = umask(0);
	audit_whole_turn(a, NULL, ID, "hello");
	umask(before);
	sba_audit_day_of(sba_unix_ms(), day);
	static const struct {
		const char *name;
		mode_t mode;
	} expected[] = { { "", 0700 },
			 { "/session.jsonl", 0600 },
			 { "/events.jsonl", 0600 },
			 { "/status.json", 0600 } };
	for (size_t i = 0; i < SBA_ARRAY_LEN(expected); i++) {
		snprintf(path, sizeof(path), "%s/%s/" ID "%s", audit_root, day, expected[i].name);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, expected[i].mode);
	}
	snprintf(path, sizeof(path), "%s/%s", audit_root, day);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(audit_root, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	sba_audit_close(a);
}

static void session_jsonl_is_the_stream_byte_for_byte(void **state)
{
	(void)state;
	static const char bytes[] = "one\r\ntwo\rstill\n\xff\xfe\0x\nno newline";
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	for (const char *at = bytes, *end = bytes + sizeof(bytes) - 1; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl ? (size_t)(nl + 1 - at) : (size_t)(end - at);
		sba_audit_turn_raw(t, at, len);
		at += len;
	}
	audit_end(t);
	char path[256], day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(path, sizeof(path), "%s/%s/" ID "/session.jsonl", audit_root, day);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4096);
	assert_int_equal(sba_read_file(path, 4096, &b, NULL), 0);
	assert_int_equal(b.len, sizeof(bytes) - 1);
	assert_memory_equal(b.data, bytes, b.len);
	sba_audit_close(a);
}

/* The line that events name is the line at that number and offset. */
static void assert_lines_are_right(const char *folder)
{
	char path[300];
	size_t i;
	json_t *e;
	snprintf(path, sizeof(path), "DAY/%s/session.jsonl", folder);
	SBA_FREE char *raw = audit_read(path);
	SBA_JSON json_t *events = audit_events(folder);
	json_array_foreach(events, i, e)
	{
		const char *text = sba_json_str(e, "payload.text");
		if (!json_is_integer(json_object_get(e, "line")) || !text)
			continue;
		const char *at = raw + sba_json_int(e, "offset", 0);
		int64_t line = 1;
		for (const char *c = raw; c < at; c++)
			line += *c == '\n';
		assert_int_equal(sba_json_int(e, "line", 0), line);
		SBA_FREE char *said = strndup(at, strcspn(at, "\n"));
		assert_non_null(strstr(said, text));
	}
}

static void events_name_the_line_and_the_offset_that_they_came_from(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "first");
	audit_whole_turn(a, ID, ID, "second");
	assert_lines_are_right(ID);
	SBA_JSON json_t *events = audit_events(ID);
	const json_t *prompt = find(events, "prompt");
	assert_true(json_is_null(json_object_get(prompt, "line")));
	assert_string_equal(sba_json_str(prompt, "payload.text"), "do it");
	assert_int_equal(sba_json_int(prompt, "turn", 0), 1);
	const json_t *last = json_array_get(events, json_array_size(events) - 1);
	assert_string_equal(sba_json_str(last, "kind"), "result");
	assert_int_equal(sba_json_int(last, "turn", 0), 2);
	sba_audit_close(a);
}

static void lines_are_right_after_a_turn_that_ended_within_a_line(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	audit_say(t, "one\n", SBA_EVENT_TEXT, "one");
	sba_audit_turn_raw(t, "cut ", 4);
	audit_end(t);
	t = audit_turn(a, ID);
	audit_say(t, "two\n", SBA_EVENT_TEXT, "two");
	audit_say(t, "three\n", SBA_EVENT_TEXT, "three");
	audit_end(t);
	assert_lines_are_right(ID);
	sba_audit_close(a);
}

static void lines_are_right_after_a_writer_that_was_killed(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	audit_say(t, "one\n", SBA_EVENT_TEXT, "one");
	sba_audit_turn_settle(t);
	/* What a kill leaves: an entry that never ended, and no lock. */
	SBA_JSON json_t *killed = audit_status(ID);
	audit_end(t);
	char path[256], day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(path, sizeof(path), "%s/%s/" ID "/status.json", audit_root, day);
	assert_int_equal(json_dump_file(killed, path, 0), 0);
	t = audit_turn(a, ID);
	audit_say(t, "two\n", SBA_EVENT_TEXT, "two");
	audit_end(t);
	assert_lines_are_right(ID);
	SBA_JSON json_t *status = audit_status(ID);
	assert_int_equal(json_array_size(json_object_get(status, "turns")), 2);
	sba_audit_close(a);
}

static void what_was_said_can_be_read_while_the_turn_goes_on(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	audit_say(t, "so far\n", SBA_EVENT_TEXT, "so far");
	sba_audit_turn_settle(t);
	char path[300];
	snprintf(path, sizeof(path), "DAY/%s/events.jsonl", audit_folder("pending-"));
	SBA_FREE char *events = audit_read(path);
	assert_non_null(strstr(events, "\"so far\""));
	snprintf(path, sizeof(path), "DAY/%s/session.jsonl", audit_folder("pending-"));
	SBA_FREE char *raw = audit_read(path);
	assert_string_equal(raw, "so far\n");
	SBA_JSON json_t *status = audit_status(audit_folder("pending-"));
	assert_string_equal(sba_json_str(status, "turns.#0.verdict"), "running");
	audit_end(t);
	sba_audit_close(a);
}

/* One who waits for more of the CLI asks when to come again, and comes. */
static void what_was_said_is_written_though_nothing_follows(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	assert_int_equal(sba_audit_turn_flush_late(t), -1);
	for (int i = 0; i < 3; i++) {
		audit_say(t, "more\n", SBA_EVENT_TEXT, "more");
		for (int64_t ms; (ms = sba_audit_turn_flush_late(t)) >= 0;)
			assert_int_equal(poll(NULL, 0, (int)ms), 0);
	}
	char path[300];
	snprintf(path, sizeof(path), "DAY/%s/session.jsonl", audit_folder("pending-"));
	for (SBA_FREE char *raw = audit_read(path); strcmp(raw, "more\nmore\nmore\n") != 0;) {
		free(raw);
		raw = audit_read(path);
	}
	audit_end(t);
	sba_audit_close(a);
}

static void the_status_says_who_what_and_how_it_ended(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "hello");
	SBA_JSON json_t *s = audit_status(ID);
	assert_string_equal(sba_json_str(s, "session"), ID);
	assert_string_equal(sba_json_str(s, "agent"), "claude");
	assert_string_equal(sba_json_str(s, "sandbox.name"), "box");
	assert_string_equal(sba_json_str(s, "turns.#0.verdict"), "ok");
	assert_string_equal(sba_json_str(s, "turns.#0.prompt"), "do it");
	assert_int_equal(sba_json_int(s, "turns.#0.exit_status", -1), 0);
	assert_int_equal(sba_json_int(s, "turns.#0.usage.input", 0), 10);
	assert_true(sba_audit_time_parse(sba_json_str(s, "turns.#0.started")) > 0);
	assert_true(sba_audit_time_parse(sba_json_str(s, "turns.#0.ended")) > 0);
	sba_audit_close(a);
}

static void hostile_texts_stay_one_line_of_json_each(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"a\nb",   "\"}\n{\"kind\":\"result\"}",   "\x1b]0;x\x07\x7f", "\\",
		"\t\r\b", "\xe2\x80\xae \xf0\x9f\x98\x80"
	};
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	for (size_t i = 0; i < SBA_ARRAY_LEN(texts); i++)
		audit_say(t, "x\n", SBA_EVENT_TEXT, texts[i]);
	audit_end(t);
	SBA_JSON json_t *events = audit_events(ID);
	assert_int_equal(json_array_size(events), SBA_ARRAY_LEN(texts) + 2);
	for (size_t i = 0; i < SBA_ARRAY_LEN(texts); i++)
		assert_string_equal(sba_json_str(json_array_get(events, i + 1), "payload.text"),
				    texts[i]);
	sba_audit_close(a);
}

static void arguments_that_are_json_stay_so(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	struct sba_event e = { .kind = SBA_EVENT_TOOL_CALL,
			       .tool = "bash",
			       .input = "{\"command\":\n \"ls\"}",
			       .raw = "" };
	sba_audit_turn_event(t, &e);
	e.input = "{ broken \n";
	sba_audit_turn_event(t, &e);
	audit_end(t);
	SBA_JSON json_t *events = audit_events(ID);
	assert_string_equal(sba_json_str(json_array_get(events, 1), "payload.input.command"), "ls");
	assert_string_equal(sba_json_str(json_array_get(events, 2), "payload.input"),
			    "{ broken \n");
	sba_audit_close(a);
}

/* ---- ids ---- */

static void all_turns_of_a_session_are_in_its_one_folder(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "one");
	sba_audit_close(a);
	/* Another process, later. */
	a = audit_open("box", NULL);
	audit_whole_turn(a, ID, ID, "two");
	audit_whole_turn(a, ID, NULL, "three");
	assert_int_equal(audit_folders(), 1);
	SBA_JSON json_t *s = audit_status(ID);
	assert_int_equal(json_array_size(json_object_get(s, "turns")), 3);
	sba_audit_close(a);
}

static void a_session_of_another_day_is_found_again(void **state)
{
	(void)state;
	char today[128], other[128], day[SBA_AUDIT_DAY];
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "one");
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(today, sizeof(today), "%s/%s", audit_root, day);
	snprintf(other, sizeof(other), "%s/20200229", audit_root);
	assert_int_equal(rename(today, other), 0);
	audit_whole_turn(a, ID, ID, "two");
	assert_false(audit_exists("DAY"));
	SBA_FREE char *raw = audit_read("/20200229/" ID "/session.jsonl");
	assert_non_null(strstr(raw, "one"));
	assert_non_null(strstr(raw, "two"));
	sba_audit_close(a);
}

static void a_late_id_renames_the_folder_and_loses_nothing(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	audit_say(t, "early\n", SBA_EVENT_TEXT, "early");
	audit_folder("pending-");
	audit_say_session(t, ID);
	assert_string_equal(audit_folder(""), ID);
	audit_say(t, "later\n", SBA_EVENT_TEXT, "later");
	assert_true(sba_ends_with(sba_audit_turn_path(t), ID));
	audit_end(t);
	SBA_FREE char *raw = audit_read("DAY/" ID "/session.jsonl");
	assert_string_equal(raw, "early\n{\"init\":1}\nlater\n");
	assert_lines_are_right(ID);
	sba_audit_close(a);
}

static void an_id_at_the_very_end_is_late_enough(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	audit_say(t, "early\n", SBA_EVENT_TEXT, "early");
	sba_audit_turn_end(t, &(struct sba_audit_end){ .session = ID, .verdict = "ok" });
	sba_audit_turn_free(t);
	assert_string_equal(audit_folder(""), ID);
	sba_audit_close(a);
}

static void a_turn_whose_id_never_comes_stays_pending_and_whole(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, NULL, "one");
	audit_whole_turn(a, NULL, NULL, "two");
	assert_int_equal(audit_folders(), 2);
	SBA_JSON json_t *s = NULL;
	SBA_STRV struct sba_strv days = { 0 };
	struct sba_audit_list *l = NULL;
	assert_int_equal(sba_audit_list(audit_root, NULL, &l, NULL), 0);
	assert_int_equal(sba_audit_list_count(l), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct sba_audit_session *one = sba_audit_list_at(l, i);
		assert_true(sba_starts_with(one->name, "pending-"));
		assert_string_equal(one->session, "");
		assert_string_equal(one->verdict, "ok");
		assert_int_equal(one->turns, 1);
	}
	sba_audit_list_free(l);
	sba_audit_close(a);
}

static void an_id_that_comes_twice_is_one(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	audit_say_session(t, ID);
	audit_say_session(t, ID);
	audit_say_session(t, "another");
	audit_say(t, "text\n", SBA_EVENT_TEXT, "text");
	audit_end(t);
	assert_string_equal(audit_folder(""), ID);
	sba_audit_close(a);
}

static void the_same_id_of_two_sandboxes_is_two_folders(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL), *b = audit_open("other", NULL);
	audit_whole_turn(a, NULL, ID, "of a");
	audit_whole_turn(b, NULL, ID, "of b");
	audit_whole_turn(b, ID, ID, "of b again");
	assert_int_equal(audit_folders(), 2);
	SBA_FREE char *of_a = audit_read("DAY/" ID "/session.jsonl");
	SBA_FREE char *of_b = audit_read("DAY/" ID "+2/session.jsonl");
	assert_null(strstr(of_a, "of b"));
	assert_null(strstr(of_b, "of a"));
	assert_non_null(strstr(of_b, "of b again"));
	sba_audit_close(a);
	sba_audit_close(b);
}

static void an_id_that_changes_is_a_further_name_of_the_same_folder(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	const struct sba_audit_session *found;
	struct sba_audit_list *l = NULL;
	audit_whole_turn(a, NULL, ID, "one");
	audit_whole_turn(a, ID, "second-name", "two");
	audit_whole_turn(a, "second-name", "second-name", "three");
	assert_int_equal(audit_folders(), 1);
	SBA_JSON json_t *s = audit_status(ID);
	assert_int_equal(json_array_size(json_object_get(s, "turns")), 3);
	assert_int_equal(sba_audit_list(audit_root, NULL, &l, NULL), 0);
	assert_int_equal(sba_audit_list_find(l, "second-name", &found, NULL), 0);
	assert_string_equal(found->name, ID);
	sba_audit_list_free(l);
	sba_audit_close(a);
}

static void a_turn_aside_is_in_the_folder_of_the_session_it_knows(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "one");
	struct sba_audit_turn *t = NULL;
	const struct sba_audit_begin b = {
		.session = ID, .aside = true, .prompt = "why", .prompt_len = 3
	};
	assert_int_equal(sba_audit_turn_begin(a, &b, &t, NULL), 0);
	audit_say_session(t, "gone-afterwards");
	audit_end(t);
	audit_whole_turn(a, ID, ID, "two");
	assert_int_equal(audit_folders(), 1);
	SBA_JSON json_t *s = audit_status(ID);
	assert_true(sba_json_bool(s, "turns.#1.aside", false));
	assert_int_equal(json_array_size(json_object_get(s, "sessions")), 1);
	sba_audit_close(a);
}

static void ids_that_are_no_names_stay_within_the_day(void **state)
{
	(void)state;
	static const char *const ids[] = { "..", ".", ".hidden", "pending-x" };
	struct sba_audit *a = audit_open("box", NULL);
	for (size_t i = 0; i < SBA_ARRAY_LEN(ids); i++) {
		audit_whole_turn(a, NULL, ids[i], "one");
		audit_whole_turn(a, ids[i], ids[i], "two");
	}
	assert_int_equal(audit_folders(), SBA_ARRAY_LEN(ids));
	assert_true(audit_exists("DAY/_../session.jsonl"));
	assert_true(audit_exists("DAY/_pending-x/session.jsonl"));
	/* What is no id at all is none. */
	audit_whole_turn(a, NULL, "../../etc", "three");
	audit_folder("pending-");
	sba_audit_close(a);
}

/* ---- two at once ---- */

static void two_writers_of_one_session_do_not_mix(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL), *b = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "before");
	struct sba_audit_turn *x = audit_turn(a, ID), *y = audit_turn(b, ID);
	for (int i = 0; i < 50; i++) {
		audit_say(x, "of x\n", SBA_EVENT_TEXT, "of x");
		sba_audit_turn_settle(x);
		audit_say(y, "of y\n", SBA_EVENT_TEXT, "of y");
		sba_audit_turn_settle(y);
	}
	audit_end(x);
	audit_end(y);
	SBA_FREE char *first = audit_read("DAY/" ID "/session.jsonl");
	SBA_FREE char *second = audit_read("DAY/" ID "+2/session.jsonl");
	assert_null(strstr(first, "of y"));
	assert_null(strstr(second, "of x"));
	assert_int_equal(strlen(second), 50 * 5);
	assert_lines_are_right(ID);
	assert_lines_are_right(ID "+2");
	sba_audit_close(a);
	sba_audit_close(b);
}

static void the_next_turn_need_not_wait_until_the_last_is_freed(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	sba_audit_turn_end(t, &(struct sba_audit_end){ .session = ID, .verdict = "ok" });
	audit_whole_turn(a, ID, ID, "next");
	sba_audit_turn_free(t);
	assert_int_equal(audit_folders(), 1);
	sba_audit_close(a);
}

/* ---- what we do ourselves ---- */

static void what_is_done_before_the_first_turn_is_in_its_folder(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	assert_int_equal(sba_audit_record(a, "transfer", "{\"files\": 3,\n\"to\": \"/w\"}", NULL),
			 0);
	audit_folder("pending-");
	audit_whole_turn(a, NULL, ID, "one");
	assert_int_equal(sba_audit_record(a, "command", "{\"argv\":[\"ls\"],\"exit\":0}", NULL), 0);
	assert_int_equal(audit_folders(), 1);
	SBA_JSON json_t *events = audit_events(ID);
	const json_t *first = json_array_get(events, 0);
	assert_string_equal(sba_json_str(first, "kind"), "transfer");
	assert_true(json_is_null(json_object_get(first, "line")));
	assert_true(json_is_null(json_object_get(first, "turn")));
	assert_int_equal(sba_json_int(find(events, "command"), "payload.exit", -1), 0);
	sba_audit_close(a);
}

static void what_is_done_during_a_turn_is_of_that_turn(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL), *other = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	assert_int_equal(sba_audit_record(a, "connection", "{\"host\":\"x\"}", NULL), 0);
	audit_say_session(t, ID);
	/* Of another process, which finds the renamed folder. */
	assert_int_equal(sba_audit_record(other, "command", "{}", NULL), 0);
	audit_end(t);
	assert_int_equal(audit_folders(), 1);
	SBA_JSON json_t *events = audit_events(ID);
	assert_int_equal(sba_json_int(find(events, "connection"), "turn", 0), 1);
	assert_true(json_is_null(json_object_get(find(events, "command"), "turn")));
	sba_audit_close(a);
	sba_audit_close(other);
}

/* The caller's own is gone by the time that the record is written. */
static void every_text_of_an_event_is_the_records_own(void **state)
{
	(void)state;
	static const char *const names[] = {
		"path",        "change",  "old_path", "diff",   "without_diff", "tool",
		"tool_native", "call_id", "summary",  "output", "text",
	};
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, NULL);
	char *texts[SBA_ARRAY_LEN(names)];
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		assert_int_not_equal(asprintf(&texts[i], "the %s of it", names[i]), -1);
	const struct sba_event e = {
		.kind = SBA_EVENT_FILE_CHANGE,
		.time_ms = sba_unix_ms(),
		.measured = true,
		.path = texts[0],
		.change = texts[1],
		.old_path = texts[2],
		.diff = texts[3],
		.without_diff = texts[4],
		.tool = texts[5],
		.tool_native = texts[6],
		.call_id = texts[7],
		.summary = texts[8],
		.output = texts[9],
		.text = texts[10],
	};
	sba_audit_turn_event(t, &e);
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		memset(texts[i], '#', strlen(texts[i]));
		free(texts[i]);
	}
	audit_say_session(t, ID);
	audit_end(t);
	SBA_JSON json_t *events = audit_events(ID);
	const json_t *payload = json_object_get(find(events, "file_change"), "payload");
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		char expected[64];
		snprintf(expected, sizeof(expected), "the %s of it", names[i]);
		assert_string_equal(sba_json_str(payload, names[i]), expected);
	}
	sba_audit_close(a);
}

static void a_payload_that_is_no_object_is_refused(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	assert_int_equal(sba_audit_record(a, "command", "[1]", NULL), SBA_EINVAL);
	assert_int_equal(sba_audit_record(a, "command", "{", NULL), SBA_EPROTO);
	assert_false(audit_exists(""));
	sba_audit_close(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, audit_root_begin, audit_root_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_turn_has_its_three_files_and_nobody_else_may_read_them),
		T(session_jsonl_is_the_stream_byte_for_byte),
		T(events_name_the_line_and_the_offset_that_they_came_from),
		T(lines_are_right_after_a_turn_that_ended_within_a_line),
		T(lines_are_right_after_a_writer_that_was_killed),
		T(what_was_said_can_be_read_while_the_turn_goes_on),
		T(what_was_said_is_written_though_nothing_follows),
		T(the_status_says_who_what_and_how_it_ended),
		T(hostile_texts_stay_one_line_of_json_each),
		T(arguments_that_are_json_stay_so),
		T(all_turns_of_a_session_are_in_its_one_folder),
		T(a_session_of_another_day_is_found_again),
		T(a_late_id_renames_the_folder_and_loses_nothing),
		T(an_id_at_the_very_end_is_late_enough),
		T(a_turn_whose_id_never_comes_stays_pending_and_whole),
		T(an_id_that_comes_twice_is_one),
		T(the_same_id_of_two_sandboxes_is_two_folders),
		T(an_id_that_changes_is_a_further_name_of_the_same_folder),
		T(a_turn_aside_is_in_the_folder_of_the_session_it_knows),
		T(ids_that_are_no_names_stay_within_the_day),
		T(two_writers_of_one_session_do_not_mix),
		T(the_next_turn_need_not_wait_until_the_last_is_freed),
		T(what_is_done_before_the_first_turn_is_in_its_folder),
		T(what_is_done_during_a_turn_is_of_that_turn),
		T(every_text_of_an_event_is_the_records_own),
		T(a_payload_that_is_no_object_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
