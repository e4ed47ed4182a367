/* SPDX-License-Identifier: MIT */
/* The driver of any program: lines are text, the exit status is the verdict. */
#include "play.h"

static void begin(struct play *p, const char *resumes)
{
	play_begin_with(p, &(struct sba_stream_options){ .driver = sba_driver_find("command"),
							 .resumes = resumes,
							 .new_session = "new-1" });
}

static void play(struct play *p, const char *const *lines)
{
	begin(p, NULL);
	for (; *lines; lines++)
		play_line(p, *lines);
}

static void what_is_printed_is_the_answer(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ "first", "", "  {\"type\":\"text\"}", "last\r", NULL });
	struct sba_outcome o = play_finish(&p, 0, "noise");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_string_equal(o.text, "first\n\n  {\"type\":\"text\"}\nlast");
	assert_string_equal(play_str(&p.said), o.text);
	assert_int_equal(o.unknown_lines, 0);
	play_end(&p);
}

static void an_empty_first_line_is_kept(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ "", "x", NULL });
	assert_string_equal(play_finish(&p, 0, "").text, "\nx");
	play_end(&p);
}

static void bytes_that_are_no_text_are_mended(void **state)
{
	struct play p;
	(void)state;
	begin(&p, NULL);
	play_bytes(&p, "a\0b\xFFz", 5);
	assert_string_equal(play_finish(&p, 0, "").text, "a\xEF\xBF\xBD"
							 "b\xEF\xBF\xBDz");
	play_end(&p);
}

static void a_program_that_fails_fails_the_turn_in_its_own_words(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ "half", NULL });
	struct sba_outcome o = play_finish(&p, 3, "no such model\n");
	assert_int_equal(o.verdict, SBA_VERDICT_AGENT_FAILED);
	assert_string_equal(o.error, "command ended with exit status 3: no such model");
	assert_string_equal(o.text, "half");
	play_end(&p);
}

static void silence_is_no_answer(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_NO_ANSWER);
	assert_string_equal(o.session, "new-1");
	play_end(&p);
}

static void the_session_is_the_one_that_was_asked_for(void **state)
{
	struct play p;
	(void)state;
	begin(&p, "old-1");
	play_line(&p, "x");
	assert_int_equal(p.n[SBA_EVENT_SESSION], 1);
	assert_string_equal(play_finish(&p, 0, "").session, "old-1");
	play_end(&p);
}

/* ---- command ---- */

static const char *env_get(const struct sba_command *c, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < c->env.n; i++) {
		if (strncmp(c->env.v[i], name, len) == 0 && c->env.v[i][len] == '=')
			return c->env.v[i] + len + 1;
	}
	return NULL;
}

static int command_of(const struct sba_turn_spec *spec, struct sba_command *ret,
		      struct sba_error *err)
{
	return sba_command_make(sba_driver_find("command"), spec, ret, err);
}

static const char *const program[] = { "my tool", "--flag", "$x", NULL };

static void the_program_is_run_as_it_was_named(void **state)
{
	struct sba_command c;
	struct sba_error err;
	(void)state;
	assert_int_equal(
		command_of(&(struct sba_turn_spec){ .program = program, .new_session = "n-1" }, &c,
			   &err),
		0);
	assert_int_equal(c.argv.n, 3);
	assert_string_equal(c.argv.v[0], "my tool");
	assert_string_equal(c.argv.v[2], "$x");
	assert_string_equal(env_get(&c, "SANDBOX_AGENT_SESSION"), "n-1");
	assert_null(env_get(&c, "OPENAI_API_KEY"));
	assert_null(env_get(&c, "SANDBOX_AGENT_RESUME"));
	sba_command_fini(&c);
}

static void a_model_is_offered_where_one_was_asked_for(void **state)
{
	struct sba_command c;
	struct sba_error err;
	(void)state;
	const struct sba_turn_spec spec = { .program = program,
					    .base_url = "http://h:1",
					    .token = "secret",
					    .model = "m-1",
					    .session = "s-1" };
	assert_int_equal(command_of(&spec, &c, &err), 0);
	assert_string_equal(env_get(&c, "OPENAI_BASE_URL"), "http://h:1/v1");
	assert_string_equal(env_get(&c, "OPENAI_API_KEY"), "secret");
	assert_string_equal(env_get(&c, "ANTHROPIC_BASE_URL"), "http://h:1");
	assert_string_equal(env_get(&c, "SANDBOX_AGENT_MODEL"), "m-1");
	assert_string_equal(env_get(&c, "SANDBOX_AGENT_RESUME"), "s-1");
	assert_null(env_get(&c, "SANDBOX_AGENT_SESSION"));
	sba_command_fini(&c);
}

static void a_sandbox_without_a_program_is_told_how_to_name_one(void **state)
{
	static const char *const none[] = { NULL };
	struct sba_command c;
	struct sba_error err;
	(void)state;
	assert_int_equal(command_of(&(struct sba_turn_spec){ .program = none }, &c, &err),
			 SBA_EINVAL);
	assert_non_null(strstr(err.hint, "-- PROGRAM"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_printed_is_the_answer, play_limit),
		cmocka_unit_test_setup(an_empty_first_line_is_kept, play_limit),
		cmocka_unit_test_setup(bytes_that_are_no_text_are_mended, play_limit),
		cmocka_unit_test_setup(a_program_that_fails_fails_the_turn_in_its_own_words,
				       play_limit),
		cmocka_unit_test_setup(silence_is_no_answer, play_limit),
		cmocka_unit_test_setup(the_session_is_the_one_that_was_asked_for, play_limit),
		cmocka_unit_test_setup(the_program_is_run_as_it_was_named, play_limit),
		cmocka_unit_test_setup(a_model_is_offered_where_one_was_asked_for, play_limit),
		cmocka_unit_test_setup(a_sandbox_without_a_program_is_told_how_to_name_one,
				       play_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
