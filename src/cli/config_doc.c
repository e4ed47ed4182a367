/* SPDX-License-Identifier: MIT */
/*
 * `config doc`: what there is to know of the settings, as Markdown for docs/ and as
 * a man page. Both are made of the table and of one text.
 */
#include "cli.h"

#include <string.h>

/* A line that begins with "# " is a heading, one that begins with a tab is code. */
static const char *const before[] = {
	"Settings are the defaults of options. Each comes from the first of these places that has "
	"it: an option on the command line, a variable of the environment, the file, what is built "
	"in. Within the file a section beats what stands at the top.",
	"`sandbox-agent config show` prints the effective value of every setting and where it "
	"comes "
	"from; with `-v` every command says what it takes from elsewhere than its options.",
	"# The file",
	"`--config FILE`, else what `SANDBOX_AGENT_CONFIG` names, else "
	"`sandbox-agent/config.json` in `XDG_CONFIG_HOME` or `~/.config`. The last may be missing.",
	"	{",
	"	  \"memory\": \"1.5g\",",
	"	  \"keepalive_seconds\": \"2h\",",
	"	  \"allow\": [\"pypi.org\", \"*.pythonhosted.org\"],",
	"	  \"agents\": {",
	"	    \"claude\": {\"model\": \"claude-opus-5\", \"env\": {\"TZ\": \"UTC\", "
	"\"LANG\": null}}",
	"	  },",
	"	  \"providers\": {",
	"	    \"anthropic\": {\"key_command\": [\"pass\", \"show\", \"anthropic\"]}",
	"	  },",
	"	  \"pool\": {",
	"	    \"claude\": {\"agent\": \"claude\", \"count\": 2}",
	"	  }",
	"	}",
	"An unknown or repeated key, a wrong type or a bad value is an error (exit status 2) that "
	"names the file and the key's path, or the line of what is no JSON, and the nearest key "
	"that "
	"there is. The same holds for variables; one that is set to nothing counts as not set.",
	"`sandbox-agent config schema` prints a JSON Schema, which is also installed as "
	"`share/sandbox-agent/config.schema.json`; a key `$schema` that leads an editor to it is "
	"allowed.",
	"# Values",
	"A size is a number of bytes or a text with a unit of 1024 (`\"512m\"`, `\"1.5g\"`), a "
	"time a "
	"number of seconds or a text with a unit (`\"250ms\"`, `\"90s\"`, `\"30m\"`, `\"2h\"`, "
	"`\"1d\"`); a time of 0 is none, or never. A list is an array of texts in the file; in a "
	"variable its items stand between commas or blanks, paths between colons. Paths in the "
	"file "
	"are relative to it, and `~/` is the home folder. A variable for a yes or no is `true` or "
	"`false`. A command is a list of words, or one text that is split at blanks; quotes and "
	"backslashes group as they do for a shell, but none takes part and nothing is expanded.",
	"# Settings",
	NULL,
};

static const char *const after[] = {
	"# Sections",
	"`agents.NAME` holds for one agent, `providers.NAME` for whoever talks to that provider. "
	"`pool.NAME` describes sandboxes that are to stand ready: an `agent` or an `image`, a "
	"`count`, and settings of the sandboxes. What counts is the nearest: the pool's, the "
	"agent's, the provider's, the top. The variables in `env` and `env_file` add up instead, "
	"and a later one replaces an earlier one of its name: the top's files, the top's `env`, "
	"the "
	"agent's, `--env-file`, `-e`.",
	"What a sandbox was made for (provider, base URL, the variable of the key, model, budgets) "
	"stays so: for `chat` it beats the configuration, and options beat both.",
	"# Keys",
	"No key stands in the configuration. `api_key_env` names the variable that holds it, "
	"`api_key_file` a file whose first line it is, `key_command` a program whose first line of "
	"output it is; one place may have one of them. The program runs on this host, for at most "
	"30 s, when a turn needs the key; what it prints is never shown, nor is the key ever part "
	"of a command line, an environment or the sandbox.",
	NULL,
};

/* ---- what the table says ---- */

static void put_where(FILE *to, const struct sba_setting *s)
{
	static const struct {
		unsigned level;
		const char *name;
	} places[] = {
		{ SBA_SETTING_TOP, "top" },
		{ SBA_SETTING_AGENT, "agents" },
		{ SBA_SETTING_PROVIDER, "providers" },
		{ SBA_SETTING_POOL, "pool" },
	};
	const char *between = "";
	for (size_t i = 0; i < CLI_LEN(places); i++) {
		if (!(s->levels & places[i].level))
			continue;
		fprintf(to, "%s%s", between, places[i].name);
		between = ", ";
	}
}

static const char *type_name(const struct sba_setting *s)
{
	static const char *const names[] = {
		[SBA_SETTING_TEXT] = "text",       [SBA_SETTING_WORD] = "word",
		[SBA_SETTING_VARIABLE] = "name",   [SBA_SETTING_CHOICE] = "",
		[SBA_SETTING_URL] = "URL",         [SBA_SETTING_PATH] = "path",
		[SBA_SETTING_BOOL] = "true/false", [SBA_SETTING_COUNT] = "number",
		[SBA_SETTING_NUMBER] = "number",   [SBA_SETTING_SIZE] = "size",
		[SBA_SETTING_TIME] = "time",       [SBA_SETTING_LIST] = "list",
		[SBA_SETTING_PATHS] = "paths",     [SBA_SETTING_COMMAND] = "command",
		[SBA_SETTING_ENV] = "object",
	};
	return names[s->type];
}

static const char *usual(const struct sba_setting *s)
{
	return s->fallback ? s->fallback : s->fallback_text ? s->fallback_text : "none";
}

/* ---- Markdown ---- */

static void put_md_choices(FILE *to, const char *choices)
{
	for (const char *c = choices; *c; c++)
		fputs(*c == '|' ? ", " : (char[2]){ *c, '\0' }, to);
}

static void md_row(FILE *to, const struct sba_setting *s)
{
	fprintf(to, "| `%s`%s%s%s | %s", s->key, s->alias ? " (`" : "", s->alias ? s->alias : "",
		s->alias ? "`)" : "", type_name(s));
	if (s->choices)
		put_md_choices(to, s->choices);
	fprintf(to, " | %s | ", usual(s));
	put_where(to, s);
	fprintf(to, " | %s%s%s | %s%s%s%s%s%s | %s |\n", s->variable ? "`" : "",
		s->variable ? s->variable : "-", s->variable ? "`" : "", s->option ? "`" : "",
		s->option ? "--" : "-", s->option ? s->option : "", s->option ? "`" : "",
		s->commands ? " of " : "", s->commands ? s->commands : "", s->help);
}

static void md_text(FILE *to, const char *const *lines)
{
	for (size_t i = 0; lines[i]; i++) {
		const char *line = lines[i];
		bool code = line[0] == '\t', was = i && lines[i - 1][0] == '\t';
		bool goes_on = lines[i + 1] && lines[i + 1][0] == '\t';
		if (code)
			fprintf(to, "%s%s\n%s", was ? "" : "```json\n", line + 1,
				goes_on ? "" : "```\n\n");
		else
			fprintf(to, "%s%s\n\n", line[0] == '#' ? "#" : "", line);
	}
}

static void markdown(FILE *to)
{
	const struct sba_setting *s;
	fputs("# Configuration\n\n<!-- Made by `sandbox-agent config doc markdown` from the table "
	      "of "
	      "settings. -->\n\n",
	      to);
	md_text(to, before);
	fputs("| key | value | built in | stands in | variable | option | what it is |\n"
	      "|---|---|---|---|---|---|---|\n",
	      to);
	for (size_t i = 0; (s = sba_setting_at(i)); i++)
		md_row(to, s);
	fputc('\n', to);
	md_text(to, after);
}

/* ---- the man page ---- */

static void man_text(FILE *to, const char *const *lines)
{
	for (size_t i = 0; lines[i]; i++) {
		const char *line = lines[i];
		bool code = line[0] == '\t', was = i && lines[i - 1][0] == '\t';
		if (line[0] == '#') {
			cli_man_heading(to, line + 2);
			continue;
		}
		if (code != was)
			fputs(code ? ".PP\n.nf\n" : ".fi\n", to);
		if (!code)
			fputs(".PP\n", to);
		cli_man_line(to, code ? line + 1 : line);
	}
}

static void man_setting(FILE *to, const struct sba_setting *s)
{
	fprintf(to, ".TP\n\\fB%s\\fR%s%s%s (%s%s; ", s->key, s->alias ? ", \\fB" : "",
		s->alias ? s->alias : "", s->alias ? "\\fR" : "", type_name(s),
		s->choices ? s->choices : "");
	put_where(to, s);
	fputs(")\n", to);
	cli_man_line(to, s->help);
	fputs(".br\nBuilt in: ", to);
	cli_man_line(to, usual(s));
	if (s->variable)
		fprintf(to, ".br\n\\fB%s\\fR\n", s->variable);
	if (s->option) {
		fputs(".br\n", to);
		fputs("\\fB\\-\\-", to);
		cli_man_word(to, s->option);
		fprintf(to, "\\fR%s%s\n", s->commands ? " of " : "",
			s->commands ? s->commands : "");
	}
}

static void man(FILE *to)
{
	const struct sba_setting *s;
	cli_man_title(to, "sandbox-agent-config", 5);
	fputs(".SH NAME\nsandbox\\-agent\\-config \\- the settings of sandbox\\-agent\n.SH "
	      "DESCRIPTION\n",
	      to);
	man_text(to, before);
	for (size_t i = 0; (s = sba_setting_at(i)); i++)
		man_setting(to, s);
	man_text(to, after);
}

/* ---- the command ---- */

bool cli_config_doc(FILE *to, const char *format)
{
	if (!strcmp(format, "markdown"))
		markdown(to);
	else if (!strcmp(format, "man"))
		man(to);
	else
		return false;
	return true;
}

static int doc(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	if (cli_config_doc(stdout, args->v[0]))
		return 0;
	return cli_usage(cli, "markdown or man", "no documentation as '%s'", args->v[0]);
}

const struct cli_command cli_command_config_doc = {
	.name = "config doc",
	.no_config = true,
	.args = "markdown|man",
	.help = "what all settings mean",
	.example = "sandbox-agent config doc man | man -l -",
	.min_args = 1,
	.max_args = 1,
	.run = doc,
};
