/* SPDX-License-Identifier: MIT */
/* From the words on the command line to a command and its exit status. */
#include "cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* An error before --json was reached is still told the way that was asked for. */
static bool wants_json(char *const *argv)
{
	for (; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (!strcmp(*argv, "--json"))
			return true;
	}
	return false;
}

/* The first word may be a group's, mistyped. */
static const char *nearest(char *const *words, const char *asked)
{
	char both[128];
	snprintf(both, sizeof(both), "%s %s", words[0], words[1] ? words[1] : "");
	const char *near = words[1] ? cli_command_nearest(both) : NULL;
	return near ? near : cli_command_nearest(asked);
}

static int unknown_command(struct cli *cli, char *const *words)
{
	char both[128], hint[160];
	bool group = cli_command_group(words[0]);
	snprintf(both, sizeof(both), "%s%s%s", words[0], group && words[1] ? " " : "",
		 group && words[1] ? words[1] : "");
	const char *near = nearest(words, both), *habit = cli_command_habit(words[0]);
	if (habit)
		snprintf(hint, sizeof(hint), "%s", habit);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	else if (group)
		snprintf(hint, sizeof(hint), "sandbox-agent help %s lists them", words[0]);
	else
		snprintf(hint, sizeof(hint), "sandbox-agent help lists them");
	if (group && !words[1])
		return cli_usage(cli, hint, "'%s' needs to know what to do", words[0]);
	return cli_usage(cli, hint, "no command '%s'", both);
}

static int check_count(const struct cli_command *c, const struct cli_args *args,
		       struct sba_error *err)
{
	bool few = args->n < c->min_args;
	if (!few && (c->max_args < 0 || args->n <= c->max_args))
		return 0;
	char hint[SBA_ERROR_HINT_MAX];
	if (c->args[0])
		snprintf(hint, sizeof(hint), "sandbox-agent %s %s\nas in:  %s", c->name, c->args,
			 c->example);
	else
		snprintf(hint, sizeof(hint), "as in:  %s", c->example);
	if (few)
		return cli_fail(err, SBA_EINVAL, hint, "%s: something is missing", c->name);
	return cli_fail(err, SBA_EINVAL, hint, "%s: '%.64s' is one word too many", c->name,
			args->v[c->max_args]);
}

/* "*" is the library's word for all of them. */
static int check_prefix(const char *prefix, struct sba_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	if (!prefix || !strcmp(prefix, "*"))
		return 0;
	if (prefix[0] && !strchr("_.-", prefix[0]) && !prefix[strspn(prefix, allowed)])
		return 0;
	return cli_fail(err, SBA_EINVAL, "letters and digits; _ . - between them",
			"--prefix: '%s' is not a word that names can begin with", prefix);
}

/* What was not given; a command about an agent has its name first. */
static int configure(struct cli *cli, void *options, const struct cli_args *args,
		     struct sba_error *err)
{
	const struct cli_command *c = cli->command;
	bool about_agent = !strncmp(c->args, "AGENT", 5);
	int rc = cli_config(cli, err);
	if (rc < 0)
		return rc;
	if (!cli->color)
		cli_look_init(&cli->look, sba_config_text(cli->config, "color", NULL));
	if (!cli->prefix)
		cli->prefix = sba_config_text(cli->config, "prefix", NULL);
	const struct sba_config_scope scope = { .agent = about_agent && args->v ? args->v[0]
										: NULL };
	return cli_settings_apply(cli, c, args, options, &scope, err);
}

/* -q, -v and --color are known only now: they may come after the command. */
static int run_command(struct cli *cli, void *options, const struct cli_args *args)
{
	const struct cli_command *c = cli->command;
	struct sba_error err;
	cli_look_init(&cli->look, cli->color);
	if (cli->look.err_tty && !cli->quiet && !cli->json)
		cli->status = (struct cli_status){ .to = stderr, .columns = cli->look.columns };
	if (cli->help) {
		cli_help_command(stdout, c);
		return 0;
	}
	if (check_count(c, args, &err) < 0 || check_prefix(cli->prefix, &err) < 0)
		return cli_report(cli, &err);
	if (!c->no_config && configure(cli, options, args, &err) < 0)
		return cli_report(cli, &err);
	return c->run(cli, options, args);
}

static int parse_and_run(struct cli *cli, char **words)
{
	const struct cli_command *c = cli->command;
	void *options = calloc(1, c->options_size + 1);
	struct cli_scope scopes[CLI_TABLES_MAX + 1] = {
		{ c->tables[0], options }, { c->tables[1], options },   { c->tables[2], options },
		{ c->tables[3], options }, { cli_global_options, cli },
	};
	struct cli_args args = { 0 };
	struct sba_error err;
	int rc = options ? cli_parse(scopes, CLI_LEN(scopes), words,
				     c->verbatim_after ? c->verbatim_after : INT_MAX, &args, &err)
			 : cli_fail_nomem(&err);
	if (rc < 0) {
		cli->json = cli->json || wants_json(words);
		rc = cli_report(cli, &err);
	} else {
		rc = run_command(cli, options, &args);
	}
	cli_args_free(&args);
	if (options)
		cli_scopes_free(scopes, CLI_LEN(scopes));
	free(options);
	return rc;
}

static bool asks_help(const char *word)
{
	return word && (!strcmp(word, "--help") || !strcmp(word, "-h"));
}

static int dispatch(struct cli *cli, char **words)
{
	static char version[] = "version";
	static char *version_words[] = { version, NULL };
	if (cli->version && !words[0])
		words = version_words;
	if (!words[0]) {
		cli_help_all(cli->help ? stdout : stderr);
		return cli->help ? 0 : CLI_EXIT_USAGE;
	}
	int n;
	cli->command = cli_command_find(words, &n);
	if (cli->command)
		return parse_and_run(cli, words + n);
	if (cli_command_group(words[0]) && (cli->help || asks_help(words[1]))) {
		cli_help_group(stdout, words[0]);
		return 0;
	}
	cli->json = cli->json || wants_json(words);
	return unknown_command(cli, words);
}

int main(int argc, char **argv)
{
	struct cli cli = { 0 };
	struct cli_scope global = { cli_global_options, &cli };
	struct cli_args words = { 0 };
	struct sba_error err;
	cli_stdio_open();
	cli_look_init(&cli.look, NULL);
	int rc = cli_parse(&global, 1, argv + (argc > 0), 0, &words, &err);
	if (rc < 0)
		rc = cli_report(&cli, &err);
	else
		rc = dispatch(&cli, words.v);
	cli_args_free(&words);
	rc = cli_stdio_close(&cli, rc);
	cli_close(&cli);
	return rc;
}
