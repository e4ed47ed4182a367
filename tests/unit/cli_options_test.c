/* SPDX-License-Identifier: MIT */
/* The command line: every way to write an option, and the tables themselves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "support/folder.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct values {
	bool flag, other;
	const char *word, *choice;
	int64_t time, size, count;
	double ratio;
	struct cli_list list;
};

static const struct cli_option table[] = {
	{ "flag", 'f', CLI_FLAG, NULL, "", offsetof(struct values, flag), 0 },
	{ "other", 'o', CLI_FLAG, NULL, "", offsetof(struct values, other), 0 },
	{ "word", 'w', CLI_STRING, "WORD", "", offsetof(struct values, word), 0 },
	{ "choice", 0, CLI_STRING, "one|two", "", offsetof(struct values, choice), 0 },
	{ "time", 0, CLI_DURATION, "TIME", "", offsetof(struct values, time), 0 },
	{ "size", 0, CLI_SIZE, "SIZE", "", offsetof(struct values, size), 1024 },
	{ "count", 'n', CLI_INT, "N", "", offsetof(struct values, count), 1 },
	{ "ratio", 0, CLI_DOUBLE, "N", "", offsetof(struct values, ratio), 0 },
	{ "list", 'e', CLI_LIST, "K=V", "", offsetof(struct values, list), 0 },
	{ 0 },
};

/* Parses words up to a NULL; the words that are no options are joined by '|'. */
static int parse(struct values *v, char joined[256], struct sba_error *err, int verbatim_after,
		 const char *const *words)
{
	struct cli_scope scope = { table, v };
	struct cli_args args = { 0 };
	memset(v, 0, sizeof(*v));
	joined[0] = '\0';
	int rc = cli_parse(&scope, 1, (char **)(uintptr_t)words, verbatim_after, &args, err);
	for (int i = 0; rc == 0 && i < args.n; i++) {
		strncat(joined, args.v[i], 255 - strlen(joined));
		strncat(joined, "|", 255 - strlen(joined));
	}
	cli_args_free(&args);
	return rc;
}

static void release(struct values *v)
{
	struct cli_scope scope = { table, v };
	cli_scopes_free(&scope, 1);
}

static void options_stand_before_and_after_words(void **state)
{
	(void)state;
	static const char *const words[] = { "a", "--flag", "b", "-w", "x", "c", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_string_equal(joined, "a|b|c|");
	assert_true(v.flag);
	assert_string_equal(v.word, "x");
}

static void values_are_glued_or_follow(void **state)
{
	(void)state;
	static const char *const words[] = { "--word=", "-fow-", "--time=1.5h", "--size",
					     "2k",      "-n5",   "--ratio=0.5", "--choice",
					     "two",     NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_true(v.flag && v.other);
	assert_string_equal(v.word, "-");
	assert_string_equal(v.choice, "two");
	assert_int_equal(v.time, 5400 * 1000);
	assert_int_equal(v.size, 2048);
	assert_int_equal(v.count, 5);
	assert_true(v.ratio > 0.49 && v.ratio < 0.51);
}

static void zero_time_means_none(void **state)
{
	(void)state;
	static const char *const words[] = { "--time", "0", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_int_equal(v.time, -1);
}

static void lists_keep_all_in_order(void **state)
{
	(void)state;
	static const char *const words[] = { "-eA=1", "x", "--list", "B=2", "-e", "C", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_int_equal(v.list.n, 3);
	assert_string_equal(v.list.v[0], "A=1");
	assert_string_equal(v.list.v[1], "B=2");
	assert_string_equal(v.list.v[2], "C");
	assert_null(v.list.v[3]);
	release(&v);
}

static void dash_before_a_space_begins_a_word(void **state)
{
	(void)state;
	static const char *const words[] = { "a", "- one\n- two", "-", "-f", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_string_equal(joined, "a|- one\n- two|-|");
	assert_true(v.flag);
}

static void all_after_two_dashes_is_taken_as_it_is(void **state)
{
	(void)state;
	static const char *const words[] = { "a", "--", "--flag", "--", "-x", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_string_equal(joined, "a|--flag|--|-x|");
	assert_false(v.flag);
}

static void the_command_to_run_keeps_its_options(void **state)
{
	(void)state;
	static const char *const words[] = {
		"-f", "NAME", "-w", "x", "ls", "-o", "--", "-f", NULL
	};
	static const char *const dashed[] = { "NAME", "-f", "--", "-o", "x", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, 1, words), 0);
	assert_string_equal(joined, "NAME|ls|-o|--|-f|");
	assert_true(v.flag && !v.other);
	assert_int_equal(parse(&v, joined, &err, 1, dashed), 0);
	assert_string_equal(joined, "NAME|-o|x|");
}

static void a_lone_dash_is_a_word(void **state)
{
	(void)state;
	static const char *const words[] = { "a", "-", "", NULL };
	struct values v;
	struct sba_error err;
	char joined[256];
	assert_int_equal(parse(&v, joined, &err, INT_MAX, words), 0);
	assert_string_equal(joined, "a|-||");
}

static void mistakes_are_told_with_what_to_type(void **state)
{
	(void)state;
	static const struct {
		const char *words[3];
		const char *text, *hint;
	} cases[] = {
		{ { "--flga" }, "unknown option --flga", "did you mean --flag?" },
		{ { "--get" }, "unknown option --get", "an option of: run" },
		{ { "--wholly-new" }, "unknown option --wholly-new", "-- \"--wholly-new\"" },
		{ { "-fx" }, "unknown option -x", "-- \"-fx\"" },
		{ { "--word" }, "--word needs a value: WORD", "" },
		{ { "-w" }, "--word needs a value: WORD", "" },
		{ { "--flag=1" }, "--flag takes no value", "" },
		{ { "--choice", "three" }, "--choice: 'three' is not one of one|two", "" },
		{ { "--choice", "on" }, "--choice: 'on' is not one of one|two", "" },
		{ { "--time", "soon" }, "--time: 'soon' is not a time (as in 90s", "" },
		{ { "--size", "lots" }, "--size: 'lots' is not a size (as in 512m, 2g)", "" },
		{ { "--size", "12" }, "--size: '12' is not enough: at least 1.0 kB", "" },
		{ { "-n", "0" }, "--count: '0' is not a whole number from 1 on", "" },
		{ { "-n", "3x" }, "--count: '3x' is not a whole number", "" },
		{ { "-n", "99999999999999999999" }, "is not a whole number", "" },
		{ { "--ratio", "-1" }, "--ratio: '-1' is not a number above 0", "" },
		{ { "--ratio", "nan" }, "--ratio: 'nan' is not a number above 0", "" },
	};
	for (size_t i = 0; i < CLI_LEN(cases); i++) {
		struct values v;
		struct sba_error err = { 0 };
		char joined[256];
		int rc = parse(&v, joined, &err, INT_MAX, cases[i].words);
		release(&v);
		assert_int_equal(rc, SBA_EINVAL);
		if (!strstr(err.text, cases[i].text) || !strstr(err.hint, cases[i].hint))
			fail_msg("case %zu: '%s' / '%s'", i, err.text, err.hint);
	}
}

/* ---- the tables of the program ---- */

static void check_letters(const struct cli_command *c)
{
	const struct cli_option *tables[] = { c->tables[0], c->tables[1], cli_global_options };
	const char *names[128];
	char letters[128];
	size_t n = 0;
	for (size_t t = 0; t < CLI_LEN(tables); t++) {
		for (const struct cli_option *o = tables[t]; o && o->name; o++) {
			for (size_t i = 0; i < n; i++) {
				if (!strcmp(names[i], o->name) ||
				    (o->letter && letters[i] == o->letter))
					fail_msg("%s: --%s is there twice", c->name, o->name);
			}
			assert_true((o->arg == NULL) == (o->type == CLI_FLAG));
			assert_true(o->help[0] != '\0');
			letters[n] = o->letter;
			names[n++] = o->name;
		}
	}
}

static void no_command_has_an_option_twice(void **state)
{
	(void)state;
	for (size_t i = 0; cli_commands[i]; i++)
		check_letters(cli_commands[i]);
}

static void every_command_has_an_example_of_itself(void **state)
{
	(void)state;
	for (size_t i = 0; cli_commands[i]; i++) {
		const struct cli_command *c = cli_commands[i];
		if (!strstr(c->example, "sandbox-agent ") || !strstr(c->example, c->name))
			fail_msg("%s: '%s'", c->name, c->example);
		assert_true(c->help[0] && c->run);
	}
}

static void commands_of_one_and_two_words_are_found(void **state)
{
	(void)state;
	static const char *const image[] = { "image", "build", "claude", NULL };
	static const char *const run[] = { "run", "x", NULL };
	static const char *const none[] = { "image", NULL };
	int n;
	assert_ptr_equal(cli_command_find((char *const *)(uintptr_t)image, &n),
			 &cli_command_image_build);
	assert_int_equal(n, 2);
	assert_ptr_equal(cli_command_find((char *const *)(uintptr_t)run, &n), &cli_command_run);
	assert_int_equal(n, 1);
	assert_null(cli_command_find((char *const *)(uintptr_t)none, &n));
	assert_true(cli_command_group("image"));
	assert_false(cli_command_group("imag"));
	assert_string_equal(cli_command_nearest("insepct"), "inspect");
	assert_null(cli_command_nearest("frobnicate"));
}

/* ---- completion ---- */

static char *script_of(const char *shell)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	assert_true(cli_completion_write(f, shell));
	fclose(f);
	return text;
}

static void completion_knows_every_option_of_every_command(void **state)
{
	(void)state;
	static const char *const shells[] = { "bash", "zsh", "fish" };
	for (size_t s = 0; s < CLI_LEN(shells); s++) {
		CLI_FREE char *script = script_of(shells[s]);
		for (size_t i = 0; cli_commands[i]; i++) {
			for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
				const struct cli_option *o = cli_commands[i]->tables[t];
				for (; o && o->name; o++) {
					char want[64];
					snprintf(want, sizeof(want), "%s%s%s",
						 s == 2 ? "-l " : "--", o->name, s == 1 ? "[" : "");
					if (!strstr(script, want))
						fail_msg("%s: no %s", shells[s], want);
				}
			}
		}
	}
	assert_false(cli_completion_write(stderr, "tcsh"));
}

/* A program of our name says how it was asked, and what is left of the names is shown. */
static void completion_in_bash_asks_a_service_for_its_own_names(void **state)
{
	(void)state;
	CLI_FREE char *script = script_of("bash");
	static const char ask[] = "sandbox-agent() { echo \"e2b/$#\"; }\n"
				  "COMP_WORDS=(sandbox-agent exec e2b/) COMP_CWORD=2\n"
				  "_sandbox_agent; echo ${COMPREPLY[*]}\n"
				  "COMP_WORDS=(sandbox-agent exec e); _sandbox_agent; echo "
				  "${COMPREPLY[*]}\n";
	char folder[64], path[80], line[64], said[128];
	test_folder(folder, sizeof(folder), "sba-completion");
	snprintf(path, sizeof(path), "%s/script", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	assert_int_equal(write(fd, ask, strlen(ask)), strlen(ask));
	close(fd);
	snprintf(said, sizeof(said), "bash %s", path);
	FILE *f = popen(said, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "e2b/4\n");
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "e2b/2\n");
	assert_int_equal(pclose(f), 0);
	test_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_before_and_after_words),
		cmocka_unit_test(values_are_glued_or_follow),
		cmocka_unit_test(zero_time_means_none),
		cmocka_unit_test(lists_keep_all_in_order),
		cmocka_unit_test(dash_before_a_space_begins_a_word),
		cmocka_unit_test(all_after_two_dashes_is_taken_as_it_is),
		cmocka_unit_test(the_command_to_run_keeps_its_options),
		cmocka_unit_test(a_lone_dash_is_a_word),
		cmocka_unit_test(mistakes_are_told_with_what_to_type),
		cmocka_unit_test(no_command_has_an_option_twice),
		cmocka_unit_test(every_command_has_an_example_of_itself),
		cmocka_unit_test(commands_of_one_and_two_words_are_found),
		cmocka_unit_test(completion_knows_every_option_of_every_command),
		cmocka_unit_test(completion_in_bash_asks_a_service_for_its_own_names),
	};
	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
