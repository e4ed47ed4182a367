/* SPDX-License-Identifier: MIT */
/* Widths, tables, JSON of bytes, variables for a sandbox. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void width_counts_columns(void **state)
{
	(void)state;
	assert_int_equal(cli_width(""), 0);
	assert_int_equal(cli_width("abc"), 3);
	assert_int_equal(cli_width("▸ ä…"), 4);
	assert_int_equal(cli_width("日本"), 4);
	assert_int_equal(cli_width("e\xcc\x81"), 1);
	assert_int_equal(cli_fit("日本語", 5), 6);
	assert_int_equal(cli_fit("abc", 0), 0);
	/* A cut sequence at the end is looked at no further than its bytes. */
	assert_int_equal(cli_width("a\xe6\x97"), 2);
}

static void lines_are_cut_with_a_mark(void **state)
{
	(void)state;
	struct cli_look look = { .utf8 = true };
	CLI_FREE char *cut = cli_line(&look, "hello world", 8);
	CLI_FREE char *whole = cli_line(&look, "a\nb", 0);
	CLI_FREE char *none = cli_line(&look, "hello", 1);
	assert_string_equal(cut, "hello w…");
	assert_string_equal(whole, "a\\nb");
	assert_string_equal(none, "…");
}

static char *printed(const struct cli_table *t, int width)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	cli_table_print(t, f, width);
	fclose(f);
	return text;
}

static void tables_align_and_drop_the_last_columns(void **state)
{
	(void)state;
	static const char *const rows[][3] = { { "NAME", "STATE", "IMAGE" },
					       { "日本", "idle", "x:1" },
					       { "a", "", "long-image-name" } };
	struct cli_table t = { .columns = 3 };
	for (size_t i = 0; i < CLI_LEN(rows); i++)
		cli_table_add(&t, rows[i]);
	CLI_FREE char *wide = printed(&t, 0);
	CLI_FREE char *narrow = printed(&t, 20);
	CLI_FREE char *tiny = printed(&t, 1);
	assert_string_equal(wide, "NAME  STATE  IMAGE\n"
				  "日本  idle   x:1\n"
				  "a            long-image-name\n");
	assert_string_equal(narrow, "NAME  STATE\n日本  idle\na\n");
	assert_string_equal(tiny, "NAME\n日本\na\n");
	cli_table_fini(&t);
}

static void bytes_are_text_or_base64(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		const char *key, *value;
	} cases[] = {
		{ "hi\n", 3, "text", "hi\n" },
		{ "\xff", 1, "base64", "/w==" },
		{ "\xff\xfe", 2, "base64", "//4=" },
		{ "\xff\xfe\xfd", 3, "base64", "//79" },
		{ "", 0, "text", "" },
	};
	for (size_t i = 0; i < CLI_LEN(cases); i++) {
		CLI_JSON json_t *j = json_object();
		cli_json_bytes(j, cases[i].bytes, cases[i].len);
		const char *got = json_string_value(json_object_get(j, cases[i].key));
		assert_non_null(got);
		assert_string_equal(got, cases[i].value);
	}
}

static void events_say_only_what_they_know(void **state)
{
	(void)state;
	struct sba_event e = { .kind = SBA_EVENT_TOOL_RESULT,
			       .time_ms = 5,
			       .tool = "bash",
			       .output = "x",
			       .has_exit_code = true };
	CLI_JSON json_t *j = cli_json_event(&e);
	CLI_FREE char *text = json_dumps(j, JSON_COMPACT);
	assert_string_equal(text, "{\"type\":\"event\",\"kind\":\"tool_result\",\"time_ms\":5,"
				  "\"tool\":\"bash\",\"output\":\"x\",\"failed\":false,"
				  "\"exit_code\":0}");
}

static void variables_come_from_files_then_options_then_us(void **state)
{
	(void)state;
	char dir[64], path[80];
	static const char file[] = "# comment\n\n  A=1 # kept\r\nB=\"quoted\"\nCLI_TEST_OURS\n"
				   "CLI_TEST_UNSET\nC=1 # kept\nE=";
	test_folder(dir, sizeof(dir), "cli-env");
	snprintf(path, sizeof(path), "%s/env", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, sizeof(file) - 1), sizeof(file) - 1);
	close(fd);
	setenv("CLI_TEST_OURS", "ours", 1);
	const char *files[] = { path, NULL }, *vars[] = { "A=2", "CLI_TEST_UNSET", NULL };
	struct cli_list file_list = { files, 1 }, var_list = { vars, 2 };
	struct cli_env env = { 0 };
	struct sba_error err;
	assert_int_equal(cli_env_collect(&env, &file_list, &var_list, &err), 0);
	test_folder_remove(dir);
	static const char *const want[] = { "A=2", "B=\"quoted\"", "CLI_TEST_OURS=ours",
					    "C=1 # kept", "E=" };
	assert_int_equal(env.n, CLI_LEN(want));
	for (size_t i = 0; i < CLI_LEN(want); i++)
		assert_string_equal(env.v[i], want[i]);
	assert_null(env.v[env.n]);
	assert_int_equal(cli_env_add(&env, "=x", &err), SBA_EINVAL);
	assert_int_equal(cli_env_add(&env, "a b=x", &err), SBA_EINVAL);
	cli_env_fini(&env);
}

static void prompts_that_say_nothing_are_refused(void **state)
{
	(void)state;
	char *prompt = NULL;
	size_t len;
	struct sba_error err;
	assert_int_equal(cli_turn_prompt(NULL, "x y z", &prompt, &len, &err), SBA_EINVAL);
	assert_non_null(strstr(err.text, "give a prompt"));
	assert_string_equal(err.hint, "as in:  x y z");
	assert_int_equal(cli_turn_prompt("", "x y z", &prompt, &len, &err), SBA_EINVAL);
	assert_int_equal(cli_turn_prompt(" \n\t", "x y z", &prompt, &len, &err), SBA_EINVAL);
	assert_int_equal(cli_turn_prompt("-x", "x y z", &prompt, &len, &err), 0);
	assert_string_equal(prompt, "-x");
	free(prompt);
}

static void the_version_is_read_off_the_tag(void **state)
{
	(void)state;
	char buf[32];
	cli_ref_version("repo:claude-2.1.332-20261129", "claude", buf, sizeof(buf));
	assert_string_equal(buf, "2.1.332");
	cli_ref_version("host:5000/repo:dsh-0.1.0-rc.8-20261129", "dsh", buf, sizeof(buf));
	assert_string_equal(buf, "0.1.0-rc.8");
	cli_ref_version("debian:stable-slim", "claude", buf, sizeof(buf));
	assert_string_equal(buf, "");
	cli_ref_version("claude", "claude", buf, sizeof(buf));
	assert_string_equal(buf, "");
}

static void check_wrapped(const char *text, int columns, const char *want)
{
	char *out = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&out, &size);
	assert_non_null(to);
	cli_wrap(to, text, 2, 2, columns);
	fclose(to);
	assert_string_equal(out, want);
	free(out);
}

static void text_is_broken_between_words(void **state)
{
	(void)state;
	check_wrapped("one two three four five", 0, "one two three four five\n");
	check_wrapped("one two three four five", 22, "one two three four\n  five\n");
	check_wrapped("averyveryverylongwordindeed x", 22, "averyveryverylongwordindeed\n  x\n");
	check_wrapped("one\ntwo", 80, "one\n  two\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(width_counts_columns),
		cmocka_unit_test(lines_are_cut_with_a_mark),
		cmocka_unit_test(tables_align_and_drop_the_last_columns),
		cmocka_unit_test(bytes_are_text_or_base64),
		cmocka_unit_test(events_say_only_what_they_know),
		cmocka_unit_test(variables_come_from_files_then_options_then_us),
		cmocka_unit_test(prompts_that_say_nothing_are_refused),
		cmocka_unit_test(text_is_broken_between_words),
		cmocka_unit_test(the_version_is_read_off_the_tag),
	};
	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
