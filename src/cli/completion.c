/* SPDX-License-Identifier: MIT */
/*
 * Completion scripts, written out of the option tables: what may stand where,
 * and the scripts of zsh and fish. What is a sandbox's name is asked of `ps -q`
 * when it is needed; what is an agent is known here.
 */
#include "cli.h"

#include <string.h>

/* ---- what may stand where ---- */

bool cli_complete_takes(const struct cli_command *c, const char *what)
{
	return strstr(c->args, what) != NULL;
}

/* "bash|zsh|fish": one of these words, and nothing else. */
bool cli_complete_takes_record(const struct cli_command *c)
{
	return !strncmp(c->name, "audit ", 6) && cli_complete_takes(c, "ID");
}

bool cli_complete_is_choice(const struct cli_command *c)
{
	return strchr(c->args, '|') && !strpbrk(c->args, " []-.");
}

bool cli_complete_is_file(const char *arg)
{
	return !strncmp(arg, "FILE", 4) || !strncmp(arg, "DIR", 3);
}

void cli_complete_put_names(FILE *to, const char *word)
{
	fputc('\t', to);
	for (const char *const *n = sba_remote_names(); *n; n++)
		fprintf(to, "%s%s/*", n == sba_remote_names() ? "" : "|", *n);
	fprintf(to,
		") sandbox-agent -q ps --backend \"${%s%%%%/*}\" 2>/dev/null ;;\n"
		"\t*) sandbox-agent -q ps 2>/dev/null ;;\n",
		word);
}

void cli_complete_put_agents(FILE *to)
{
	for (const char *const *n = sba_agent_names(); *n; n++)
		fprintf(to, "%s%s", n == sba_agent_names() ? "" : " ", *n);
}

void cli_complete_put_keys(FILE *to)
{
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++)
		fprintf(to, "%s%s", i ? " " : "", s->key);
}

bool cli_complete_group(size_t *at, char group[32])
{
	for (; cli_commands[*at]; (*at)++) {
		const char *name = cli_commands[*at]->name, *space = strchr(name, ' ');
		const char *before = *at ? cli_commands[*at - 1]->name : "";
		size_t len = space ? (size_t)(space - name) + 1 : 0;
		if (!space || !strncmp(before, name, len))
			continue;
		snprintf(group, 32, "%.*s", (int)len, name);
		(*at)++;
		return true;
	}
	return false;
}

/* "a|b|c" as "a b c". */
void cli_complete_put_choices(FILE *to, const char *arg)
{
	for (; *arg; arg++)
		fputc(*arg == '|' ? ' ' : *arg, to);
}

/* Words that may stand first, or second after `group` with its space. */
void cli_complete_put_commands(FILE *to, const char *group)
{
	size_t len = strlen(group);
	char before[32] = "";
	for (size_t i = 0; cli_commands[i]; i++) {
		const char *name = cli_commands[i]->name;
		if (strncmp(name, group, len) != 0)
			continue;
		char word[32];
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(name + len, " "), name + len);
		if (strcmp(word, before) != 0)
			fprintf(to, "%s%s", before[0] ? " " : "", word);
		snprintf(before, sizeof(before), "%s", word);
	}
}

void cli_complete_each_option(FILE *to, const struct cli_command *c,
			      void (*one)(FILE *, const struct cli_option *))
{
	const struct cli_option *tables[CLI_TABLES_MAX + 1] = { cli_global_options };
	for (size_t i = 0; c && i < CLI_TABLES_MAX; i++)
		tables[i + 1] = c->tables[i];
	for (size_t i = 0; i < CLI_LEN(tables); i++) {
		for (const struct cli_option *o = tables[i]; o && o->name; o++)
			one(to, o);
	}
}

/* ---- zsh ---- */

/* Within the brackets of an _arguments spec, within single quotes. */
static void zsh_text(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\'", to);
		else if (strchr("[]:\\", *s))
			fputc('\\', to);
		fputc(*s, to);
	}
}

static void zsh_spec(FILE *to, const struct cli_option *o, const char *dashes, const char *name)
{
	fprintf(to, "\t\t\t'*%s%s[", dashes, name);
	zsh_text(to, o->help);
	fputc(']', to);
	if (o->arg) {
		fputc(':', to);
		zsh_text(to, o->arg);
		fputc(':', to);
		if (strchr(o->arg, '|')) {
			fputc('(', to);
			cli_complete_put_choices(to, o->arg);
			fputc(')', to);
		} else if (cli_complete_is_file(o->arg)) {
			fputs("_files", to);
		}
	}
	fputs("' \\\n", to);
}

static void zsh_option(FILE *to, const struct cli_option *o)
{
	char letter[2] = { o->letter, '\0' };
	zsh_spec(to, o, "--", o->name);
	if (o->letter)
		zsh_spec(to, o, "-", letter);
}

static void zsh_command(FILE *to, const struct cli_command *c)
{
	fprintf(to, "\t\t(%s)\n\t\t\t_arguments -s \\\n",
		strchr(c->name, ' ') ? strchr(c->name, ' ') + 1 : c->name);
	cli_complete_each_option(to, c, zsh_option);
	fputs("\t\t\t'*: :", to);
	if (cli_complete_takes(c, "SRC"))
		fputs("_sandbox_agent_sides'", to);
	else if (cli_complete_takes(c, "NAME"))
		fputs("_sandbox_agent_names'", to);
	else if (cli_complete_takes_record(c))
		fputs("{compadd -- $(sandbox-agent -q audit ls 2>/dev/null)}'", to);
	else if (cli_complete_takes(c, "AGENT")) {
		fputs("{compadd -- ", to);
		cli_complete_put_agents(to);
		fputs(cli_complete_takes(c, "|all")   ? " all base}'"
		      : cli_complete_takes(c, "FILE") ? "; _files}'"
						      : "}'",
		      to);
	} else if (cli_complete_is_choice(c)) {
		fputs("(", to);
		cli_complete_put_choices(to, c->args);
		fputs(")'", to);
	} else if (cli_complete_takes(c, "KEY")) {
		fputs("(", to);
		cli_complete_put_keys(to);
		fputs(")'", to);
	} else if (cli_complete_takes(c, "COMMAND]")) {
		fputs("(", to);
		cli_complete_put_commands(to, "");
		fputs(")'", to);
	} else {
		fputs("'", to);
	}
	fputs("\n\t\t\t;;\n", to);
}

static void zsh_cases(FILE *to, const char *group)
{
	size_t len = strlen(group);
	for (size_t i = 0; cli_commands[i]; i++) {
		const char *name = cli_commands[i]->name;
		if (!strncmp(name, group, len) && !strchr(name + len, ' '))
			zsh_command(to, cli_commands[i]);
	}
}

static void zsh(FILE *to)
{
	char group[32];
	fputs("#compdef sandbox-agent\n_sandbox_agent_ps() {\n\tcase $PREFIX in\n", to);
	cli_complete_put_names(to, "PREFIX");
	fputs("\tesac\n}\n"
	      "_sandbox_agent_names() { compadd -- ${(f)\"$(_sandbox_agent_ps)\"} }\n"
	      "_sandbox_agent_sides() {\n"
	      "\tcompadd -S '' -- ${^${(f)\"$(_sandbox_agent_ps)\"}}:\n\t_files\n}\n\n",
	      to);
	for (size_t at = 0; cli_complete_group(&at, group);) {
		int len = (int)strlen(group) - 1;
		fprintf(to, "_sandbox_agent_%.*s() {\n\tlocal state\n\t_arguments -C '1: :(", len,
			group);
		cli_complete_put_commands(to, group);
		fputs(")' '*:: :->rest'\n\t[[ $state == rest ]] || return\n\tcase $words[1] in\n",
		      to);
		zsh_cases(to, group);
		fputs("\tesac\n}\n\n", to);
	}
	fputs("_sandbox_agent() {\n\tlocal state\n\t_arguments -C \\\n", to);
	cli_complete_each_option(to, NULL, zsh_option);
	fputs("\t\t'1: :(", to);
	cli_complete_put_commands(to, "");
	fputs(")' '*:: :->rest'\n\t[[ $state == rest ]] || return\n\tcase $words[1] in\n", to);
	zsh_cases(to, "");
	for (size_t at = 0; cli_complete_group(&at, group);) {
		int len = (int)strlen(group) - 1;
		fprintf(to, "\t\t(%.*s) _sandbox_agent_%.*s ;;\n", len, group, len, group);
	}
	fputs("\tesac\n}\n\ncompdef _sandbox_agent sandbox-agent\n", to);
}

/* ---- fish ---- */

static void fish_text(FILE *to, const char *s)
{
	fputc('\'', to);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			fputc('\\', to);
		fputc(*s, to);
	}
	fputc('\'', to);
}

static void fish_when(FILE *to, const struct cli_command *c)
{
	const char *space = strchr(c->name, ' ');
	if (space)
		fprintf(to,
			"complete -c sandbox-agent -n '__fish_seen_subcommand_from %.*s; and "
			"__fish_seen_subcommand_from %s' ",
			(int)(space - c->name), c->name, space + 1);
	else
		fprintf(to, "complete -c sandbox-agent -n '__fish_seen_subcommand_from %s' ",
			c->name);
}

static void fish_rest(FILE *to, const struct cli_option *o)
{
	if (o->letter)
		fprintf(to, "-s %c ", o->letter);
	fprintf(to, "-l %s -d ", o->name);
	fish_text(to, o->help);
	if (o->arg && strchr(o->arg, '|')) {
		fputs(" -x -a '", to);
		cli_complete_put_choices(to, o->arg);
		fputc('\'', to);
	} else if (o->arg) {
		fputs(cli_complete_is_file(o->arg) ? " -r -F" : " -x", to);
	}
	fputc('\n', to);
}

static void fish_global(FILE *to, const struct cli_option *o)
{
	fputs("complete -c sandbox-agent ", to);
	fish_rest(to, o);
}

static void fish_words(FILE *to, const struct cli_command *c)
{
	if (cli_complete_takes(c, "NAME") || cli_complete_takes(c, "SRC")) {
		fish_when(to, c);
		fputs("-a '(__sandbox_agent_names)'\n", to);
	}
	if (cli_complete_takes_record(c)) {
		fish_when(to, c);
		fputs("-a '(sandbox-agent -q audit ls 2>/dev/null)'\n", to);
	}
	if (cli_complete_takes(c, "AGENT")) {
		fish_when(to, c);
		fputs("-a '", to);
		cli_complete_put_agents(to);
		fputs(cli_complete_takes(c, "|all") ? " all base'\n" : "'\n", to);
	}
	if (cli_complete_takes(c, "KEY")) {
		fish_when(to, c);
		fputs("-a '", to);
		cli_complete_put_keys(to);
		fputs("'\n", to);
	}
	if (cli_complete_is_choice(c)) {
		fish_when(to, c);
		fputs("-a '", to);
		cli_complete_put_choices(to, c->args);
		fputs("'\n", to);
	}
	if (cli_complete_takes(c, "COMMAND]")) {
		fish_when(to, c);
		fputs("-a '", to);
		cli_complete_put_commands(to, "");
		fputs("'\n", to);
	}
	if (cli_complete_takes(c, "FILE") || cli_complete_takes(c, "SRC")) {
		fish_when(to, c);
		fputs("-F\n", to);
	}
}

static void fish_command(FILE *to, const struct cli_command *c)
{
	const char *space = strchr(c->name, ' ');
	if (space)
		fprintf(to,
			"complete -c sandbox-agent -n '__fish_seen_subcommand_from %.*s' -a %s -d ",
			(int)(space - c->name), c->name, space + 1);
	else
		fprintf(to, "complete -c sandbox-agent -n __fish_use_subcommand -a %s -d ",
			c->name);
	fish_text(to, c->help);
	fputc('\n', to);
	for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
		for (const struct cli_option *o = c->tables[t]; o && o->name; o++) {
			fish_when(to, c);
			fish_rest(to, o);
		}
	}
	fish_words(to, c);
}

static void fish_names(FILE *to)
{
	fputs("function __sandbox_agent_names\n\tswitch (commandline -ct)\n\tcase", to);
	for (const char *const *n = sba_remote_names(); *n; n++)
		fprintf(to, " '%s/*'", *n);
	fputs("\n\t\tsandbox-agent -q ps --backend "
	      "(string split -m1 / -- (commandline -ct))[1] 2>/dev/null\n"
	      "\tcase '*'\n\t\tsandbox-agent -q ps 2>/dev/null\n\tend\nend\n",
	      to);
}

static void fish(FILE *to)
{
	char group[32];
	fputs("# fish completion for sandbox-agent\ncomplete -c sandbox-agent -f\n", to);
	fish_names(to);
	for (size_t at = 0; cli_complete_group(&at, group);)
		fprintf(to, "complete -c sandbox-agent -n __fish_use_subcommand -a %s\n", group);
	cli_complete_each_option(to, NULL, fish_global);
	for (size_t i = 0; cli_commands[i]; i++)
		fish_command(to, cli_commands[i]);
}

/* ---- the command ---- */

bool cli_completion_write(FILE *to, const char *shell)
{
	static const struct {
		const char *name;
		void (*write)(FILE *);
	} shells[] = { { "bash", cli_complete_bash }, { "zsh", zsh }, { "fish", fish } };
	for (size_t i = 0; i < CLI_LEN(shells); i++) {
		if (strcmp(shells[i].name, shell) != 0)
			continue;
		shells[i].write(to);
		return true;
	}
	return false;
}

static int completion(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	if (cli_completion_write(stdout, args->v[0]))
		return 0;
	return cli_usage(cli, "bash, zsh or fish", "no completion for '%s'", args->v[0]);
}

const struct cli_command cli_command_completion = {
	.name = "completion",
	.no_config = true,
	.args = "bash|zsh|fish",
	.help = "a script for your shell",
	.example = "source <(sandbox-agent completion bash)",
	.min_args = 1,
	.max_args = 1,
	.run = completion,
};
