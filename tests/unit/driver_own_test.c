/* SPDX-License-Identifier: MIT */
/* A driver of the user's own: what is taken in, and what it may tell. */
#include "play.h"

static int no_command(const struct sba_turn_spec *turn, struct sba_command *ret,
		      struct sba_error *err)
{
	(void)turn, (void)ret, (void)err;
	return 0;
}

static int a_command(const struct sba_turn_spec *turn, struct sba_command *ret,
		     struct sba_error *err)
{
	(void)err;
	sba_command_arg(ret, "own");
	sba_command_env(ret, "KEY", turn->token);
	return 0;
}

/* The first byte of a line says what is told, with what follows. */
static int on_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	char rest[64];
	(void)state;
	snprintf(rest, sizeof(rest), "%.*s", len > 1 ? (int)len - 1 : 0, line + 1);
	const struct sba_tell_tool call = { .native = "Own", .call_id = "1", .input = rest };
	const struct sba_tell_tool end = {
		.call_id = "1", .output = rest, .has_exit_code = true, .exit_code = 2
	};
	switch (len ? line[0] : 0) {
	case 'i':
		return sba_tell_session(s, rest);
	case 't':
		return sba_tell_text(s, rest, false);
	case '+':
		return sba_tell_text(s, rest, true);
	case 'c':
		return sba_tell_call(s, &call);
	case 'r':
		return sba_tell_result(s, &end);
	case 'e':
		return sba_tell_error(s, rest, true, 429);
	case 'k':
		sba_stream_keep(s, rest);
		return 0;
	case 'd':
		return sba_tell_done(s);
	default:
		return sba_tell_unknown(s, rest);
	}
}

static const struct sba_driver own = {
	.size = sizeof(struct sba_driver),
	.name = "own",
	.binary = "own",
	.api = SBA_API_CHAT_COMPLETIONS,
	.command = a_command,
	.line = on_line,
};

static void play(struct play *p, const struct sba_driver *d, const char *const *lines)
{
	play_begin_with(p, &(struct sba_stream_options){ .driver = d });
	for (; *lines; lines++)
		play_line(p, *lines);
}

static void what_it_tells_is_what_comes_out(void **state)
{
	struct play p;
	char tools[64];
	(void)state;
	play(&p, &own,
	     (const char *[]){ "iabc", "c{\"command\":\"ls -l\"}", "rout", "tone", "+two", "kmine",
			       "?", "d", NULL });
	assert_true(sba_stream_done(p.stream));
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "Own=2");
	assert_string_equal(play_str(&p.summaries), "ls -l;");
	assert_string_equal(sba_stream_kept(p.stream), "mine");
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_string_equal(o.text, "onetwo");
	assert_string_equal(o.session, "abc");
	assert_int_equal(o.unknown_lines, 1);
	play_end(&p);
}

static void bytes_that_are_no_text_are_mended(void **state)
{
	struct play p;
	(void)state;
	play(&p, &own,
	     (const char *[]){ "ta\xFF"
			       "b",
			       "c{\"x\":\"\xFF\"}", "r\xFE", "e\xFD", "?\xFC", NULL });
	assert_string_equal(play_str(&p.said), "a\xEF\xBF\xBD"
					       "b");
	play_finish(&p, 1, "");
	play_end(&p);
}

static void an_error_of_the_model_is_the_verdict(void **state)
{
	struct play p;
	(void)state;
	play(&p, &own, (const char *[]){ "etoo many", NULL });
	struct sba_outcome o = play_finish(&p, 1, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_int_equal(o.http_status, 429);
	assert_true(o.retryable);
	play_end(&p);
}

/* One that was compiled against a shorter struct. */
static void an_older_driver_is_taken_in(void **state)
{
	struct sba_driver older = own, d;
	(void)state;
	older.size = offsetof(struct sba_driver, finish);
	memset(&older.finish, 0xFF, sizeof(older.finish));
	assert_int_equal(sba_driver_adopt(&older, &d, NULL), 0);
	assert_null(d.finish);
	assert_ptr_equal(d.line, own.line);
}

static void assert_refused(struct sba_driver d, const char *why)
{
	struct sba_driver ret;
	struct sba_error err;
	assert_int_equal(sba_driver_adopt(&d, &ret, &err), SBA_EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
}

static void a_driver_that_is_not_whole_is_refused(void **state)
{
	static const struct sba_driver_file no_path[] = { { "relative", 0644, "x" }, { 0 } };
	static const struct sba_driver_file climbs[] = { { "/a/../b", 0644, "x" }, { 0 } };
	struct sba_driver d = own;
	(void)state;
	d.size = 0;
	assert_refused(d, "without its size");
	d = own;
	d.name = "a b";
	assert_refused(d, "'a b'");
	d.name = NULL;
	assert_refused(d, "''");
	d = own;
	d.line = NULL;
	assert_refused(d, "no line");
	d = own;
	d.files = no_path;
	assert_refused(d, "relative");
	d.files = climbs;
	assert_refused(d, "/a/../b");
}

static void a_turn_is_checked_before_the_driver_sees_it(void **state)
{
	struct sba_command c = { 0 };
	struct sba_error err;
	struct sba_driver empty = own;
	(void)state;
	const struct sba_turn_spec good = { .base_url = "http://h:1", .token = "t" };
	assert_int_equal(sba_command_make(&own, &good, &c, &err), 0);
	assert_string_equal(c.env.v[0], "KEY=t");
	sba_command_fini(&c);
	const struct sba_turn_spec bad[] = {
		{ .token = "t" },
		{ .base_url = "http://h:1" },
		{ .base_url = "http://h:1", .token = "t", .model = "-x" },
		{ .base_url = "http://h:1", .token = "t", .model = "a b" },
		{ .base_url = "http://h:1", .token = "t", .session = "-x" },
		{ .base_url = "http://h:1", .token = "t", .session = "a/b" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_int_equal(sba_command_make(&own, &bad[i], &c, &err), SBA_EINVAL);
	empty.command = no_command;
	assert_int_equal(sba_command_make(&empty, &good, &c, &err), SBA_EINVAL);
}

static void files_of_another_version_have_another_mark(void **state)
{
	static const struct sba_driver_file one[] = { { "/a", 0644, "x" }, { 0 } };
	static const struct sba_driver_file two[] = { { "/a", 0644, "y" }, { 0 } };
	static const struct sba_driver_file three[] = { { "/a", 0755, "x" }, { 0 } };
	const struct sba_driver_file *all[] = { NULL, one, two, three };
	char marks[SBA_ARRAY_LEN(all)][SBA_FILES_MARK];
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(all); i++) {
		struct sba_driver d = own;
		d.files = all[i];
		sba_driver_files_mark(&d, marks[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(marks[i], marks[j]);
	}
	assert_string_equal(marks[0], "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_it_tells_is_what_comes_out, play_limit),
		cmocka_unit_test_setup(bytes_that_are_no_text_are_mended, play_limit),
		cmocka_unit_test_setup(an_error_of_the_model_is_the_verdict, play_limit),
		cmocka_unit_test_setup(an_older_driver_is_taken_in, play_limit),
		cmocka_unit_test_setup(a_driver_that_is_not_whole_is_refused, play_limit),
		cmocka_unit_test_setup(a_turn_is_checked_before_the_driver_sees_it, play_limit),
		cmocka_unit_test_setup(files_of_another_version_have_another_mark, play_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
