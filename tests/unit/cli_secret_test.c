/* SPDX-License-Identifier: MIT */
/* A key that the program has read is in nothing that it says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY "sk-real/key-0123456789"

/* What is said on stderr meanwhile. */
static char *said(void (*talk)(struct cli *cli), bool json)
{
	struct cli cli = { .json = json };
	struct sba_error err;
	FILE *to = tmpfile();
	int before = dup(STDERR_FILENO);
	assert_non_null(to);
	assert_int_equal(cli_keep_secret(&cli, KEY, &err), 0);
	fflush(stderr);
	assert_true(dup2(fileno(to), STDERR_FILENO) >= 0);
	talk(&cli);
	fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	cli_forget_secret(&cli);
	char *text = calloc(1, 8192);
	rewind(to);
	assert_true(fread(text, 1, 8191, to) > 0);
	fclose(to);
	return text;
}

static void report(struct cli *cli)
{
	struct sba_error err;
	cli_fail(&err, SBA_EMODEL, "is " KEY " right?", "upstream says: no %s, nor %s", KEY,
		 "sk-real%2Fkey-0123456789");
	assert_true(cli_report(cli, &err) != 0);
}

static void note(struct cli *cli)
{
	cli_note(cli, "the key %s is old", KEY);
}

static void assert_hidden(char *text)
{
	assert_null(strstr(text, "key-0123"));
	assert_non_null(strstr(text, "**********"));
	free(text);
}

static void errors_do_not_show_it(void **state)
{
	(void)state;
	assert_hidden(said(report, false));
}

static void errors_as_json_do_not_show_it(void **state)
{
	(void)state;
	assert_hidden(said(report, true));
}

static void remarks_do_not_show_it(void **state)
{
	(void)state;
	assert_hidden(said(note, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_do_not_show_it),
		cmocka_unit_test(errors_as_json_do_not_show_it),
		cmocka_unit_test(remarks_do_not_show_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
