/* SPDX-License-Identifier: MIT */
/* The texts of --help, made from the tables. */
#include "cli.h"

#include <string.h>

enum { LEFT_COLUMN = 26 };

/* "  left", and what it means in a column of its own. */
static void print_pair(FILE *to, const char *left, const char *help)
{
	enum { INDENT = LEFT_COLUMN + 4 };
	int columns = cli_columns_of(to);
	if (strlen(left) > LEFT_COLUMN)
		fprintf(to, "  %s\n%*s", left, INDENT, "");
	else
		fprintf(to, "  %-*s  ", LEFT_COLUMN, left);
	cli_wrap(to, help, INDENT, INDENT, columns);
}

static void print_option(FILE *to, const struct cli_option *o)
{
	char left[96];
	char letter[8] = "    ";
	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
		 o->arg ? o->arg : "");
	print_pair(to, left, o->help);
}

static void print_command(FILE *to, const struct cli_command *c)
{
	char left[96];
	snprintf(left, sizeof(left), "%s%s%s", c->name, c->args[0] ? " " : "", c->args);
	print_pair(to, left, c->help);
}

static void print_options(FILE *to, const struct cli_option *o)
{
	for (; o && o->name; o++)
		print_option(to, o);
}

void cli_help_command(FILE *to, const struct cli_command *c)
{
	int columns = cli_columns_of(to);
	int at = fprintf(to, "sandbox-agent %s%s%s%s: ", c->name, c->tables[0] ? " [OPTIONS]" : "",
			 c->args[0] ? " " : "", c->args);
	cli_wrap(to, c->help, at, 2, columns);
	if (c->more)
		cli_wrap(to, c->more, 0, 0, columns);
	if (c->tables[0])
		fprintf(to, "\noptions:\n");
	for (size_t i = 0; i < CLI_TABLES_MAX; i++)
		print_options(to, c->tables[i]);
	fprintf(to, "\nevery command:\n");
	print_options(to, cli_global_options);
	fprintf(to, "\nexample:\n  %s\n", c->example);
}

void cli_help_all(FILE *to)
{
	fprintf(to, "sandbox-agent: agent CLIs in disposable containers\n\n"
		    "usage: sandbox-agent [OPTIONS] COMMAND ...\n\n");
	for (size_t i = 0; cli_commands[i]; i++)
		print_command(to, cli_commands[i]);
	fprintf(to, "\nevery command:\n");
	print_options(to, cli_global_options);
	fprintf(to, "\nexample:\n  %s\n\nmore: sandbox-agent COMMAND --help\n",
		cli_command_run.example);
}

void cli_help_group(FILE *to, const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; cli_commands[i]; i++) {
		const struct cli_command *c = cli_commands[i];
		if (strncmp(c->name, word, len) != 0 || c->name[len] != ' ')
			continue;
		print_command(to, c);
	}
	fprintf(to, "\nmore: sandbox-agent %s COMMAND --help\n", word);
}

struct help_options {
	bool man;
};

static const struct cli_option help_options[] = {
	{ "man", 0, CLI_FLAG, NULL, "as a manual page", offsetof(struct help_options, man), 0 },
	{ 0 },
};

static void help_all(const struct cli *cli, const struct help_options *o)
{
	if (o->man) {
		cli_man_all(stdout);
		return;
	}
	if (!cli->quiet) {
		cli_help_all(stdout);
		return;
	}
	for (size_t i = 0; cli_commands[i]; i++)
		printf("%s\n", cli_commands[i]->name);
}

/* `help run`, `help image build`, `help image`. */
static int help(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct help_options *o = options;
	if (args->n == 0) {
		help_all(cli, o);
		return 0;
	}
	int words;
	const struct cli_command *c = cli_command_find(args->v, &words);
	if (c && words == args->n) {
		(o->man ? cli_man_command : cli_help_command)(stdout, c);
		return 0;
	}
	if (args->n == 1 && !o->man && cli_command_group(args->v[0])) {
		cli_help_group(stdout, args->v[0]);
		return 0;
	}
	const char *second = args->n > 1 ? args->v[1] : "";
	return cli_usage(cli, "sandbox-agent help lists them", "no command '%s%s%s'", args->v[0],
			 second[0] ? " " : "", second);
}

const struct cli_command cli_command_help = {
	.name = "help",
	.no_config = true,
	.args = "[COMMAND]",
	.help = "what there is, and how it is used",
	.more = "With -q the commands' names, one a line.",
	.example = "sandbox-agent help run",
	.tables = { help_options },
	.options_size = sizeof(struct help_options),
	.max_args = 2,
	.run = help,
};
