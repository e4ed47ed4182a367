/* SPDX-License-Identifier: MIT */
/*
 * The completion script of bash: one function that walks the words so far, then
 * a case for every command.
 */
#include "cli.h"

#include <string.h>

/* Bash breaks words at ":" and "=" too, which is seen to before the rest. Files
 * go through mapfile and -o filenames, which know spaces and folders. */
static const char bash_begin[] =
	"\tesac\n}\n\n"
	"_sandbox_agent_files()\n{\n"
	"\tcompopt -o filenames\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
	"}\n\n"
	"# One side of a copy: NAME: goes on without a space.\n"
	"_sandbox_agent_sides()\n{\n"
	"\tlocal names w end\n"
	"\tmapfile -t names < <(compgen -S : -W \"$(_sandbox_agent_names)\" -- \"$1\")\n"
	"\t_sandbox_agent_files -f \"$1\"\n"
	"\t[[ ${#names[@]} -eq 0 ]] && return\n"
	"\tcompopt +o filenames -o nospace\n"
	"\tfor w in \"${!COMPREPLY[@]}\"; do\n"
	"\t\t[[ -d ${COMPREPLY[w]} ]] && end=/ || end=\n"
	"\t\tprintf -v \"COMPREPLY[$w]\" '%q%s' \"${COMPREPLY[w]}\" \"$end\"\n"
	"\tdone\n"
	"\tCOMPREPLY+=(\"${names[@]}\")\n"
	"}\n\n"
	"_sandbox_agent()\n{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal words='' options='' more='' command='' seen=() w i\n"
	"\tCOMPREPLY=()\n"
	"\t[[ $cur == : || $prev == : ]] && return\n"
	"\tif [[ $cur == = ]]; then\n\t\tcur=\n"
	"\telif [[ $prev == = ]]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tw=${COMP_WORDS[i]}\n"
	"\t\tcase $w in\n"
	"\t\t--) return ;;\n";

static const char bash_walk[] = ") [[ ${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i++)) ;;\n"
				"\t\t-*|=|:) ;;\n"
				"\t\t*)\n"
				"\t\t\tcase $command in\n"
				"\t\t\t\"\") command=$w ;;\n"
				"\t\t\thelp";

static const char bash_walked[] = ") command=\"$command $w\" ;;\n"
				  "\t\t\t*) seen+=(\"$w\") ;;\n"
				  "\t\t\tesac ;;\n"
				  "\t\tesac\n"
				  "\tdone\n"
				  "\tcase $command in\n";

static const char bash_end[] =
	"\tesac\n"
	"\tif [[ $cur == -* ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t[[ ${#seen[@]} -gt 0 && $more != again ]] && words=\n"
	"\tfor w in $words; do\n"
	"\t\t[[ $w == \"$cur\"* && \" ${seen[*]} \" != *\" $w \"* ]] && COMPREPLY+=(\"$w\")\n"
	"\tdone\n"
	"\t[[ $words || $more == again ]] && return\n"
	"\t[[ $more == sides ]] && _sandbox_agent_sides \"$cur\"\n"
	"\t[[ $more == files ]] && _sandbox_agent_files -f \"$cur\"\n"
	"}\n"
	"complete -F _sandbox_agent sandbox-agent\n";

static void bash_option(FILE *to, const struct cli_option *o)
{
	if (o->letter)
		fprintf(to, "-%c ", o->letter);
	fprintf(to, "--%s ", o->name);
}

/* Whether a table before the t-th of the i-th command has the same option. */
static bool told_before(const char *name, size_t command, size_t table)
{
	for (size_t i = 0; i <= command; i++) {
		for (size_t t = 0; t < CLI_TABLES_MAX && (i < command || t < table); t++) {
			const struct cli_option *o = cli_commands[i]->tables[t];
			for (; o && o->name; o++) {
				if (!strcmp(o->name, name))
					return true;
			}
		}
	}
	return false;
}

static void bash_valued(FILE *to, const struct cli_option *o)
{
	if (!o->arg)
		return;
	fprintf(to, "|--%s", o->name);
	if (o->letter)
		fprintf(to, "|-%c", o->letter);
}

/* A pattern of every option that takes a value. */
static void bash_all_valued(FILE *to)
{
	fputs("\t\t--", to);
	cli_complete_each_option(to, NULL, bash_valued);
	for (size_t i = 0; cli_commands[i]; i++) {
		for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
			const struct cli_option *o = cli_commands[i]->tables[t];
			for (; o && o->name; o++) {
				if (!told_before(o->name, i, t))
					bash_valued(to, o);
			}
		}
	}
}

/* A case of the word before: what its value may be. */
static void bash_value(FILE *to, const struct cli_option *o)
{
	if (!o->arg)
		return;
	fprintf(to, "\t\t--%s", o->name);
	if (o->letter)
		fprintf(to, "|-%c", o->letter);
	fputs(") ", to);
	if (strchr(o->arg, '|')) {
		fputs("COMPREPLY=($(compgen -W \"", to);
		cli_complete_put_choices(to, o->arg);
		fputs("\" -- \"$cur\"));", to);
	} else if (!strncmp(o->arg, "DIR", 3)) {
		fputs("_sandbox_agent_files -d \"$cur\";", to);
	} else if (cli_complete_is_file(o->arg)) {
		fputs("_sandbox_agent_files -f \"$cur\";", to);
	} else if (!strcmp(o->name, "filter")) {
		fputs("compopt -o nospace; COMPREPLY=($(compgen -W \"agent= name= tag=\""
		      " -- \"$cur\"));",
		      to);
	}
	fputs(" return ;;\n", to);
}

/* What follows KEY= of a filter. */
static void bash_filter(FILE *to)
{
	fputs("\t\tagent) COMPREPLY=($(compgen -W \"", to);
	cli_complete_put_agents(to);
	fputs("\" -- \"$cur\")); return ;;\n"
	      "\t\tname) COMPREPLY=($(compgen -W \"$(_sandbox_agent_names)\" -- \"$cur\"));"
	      " return ;;\n",
	      to);
}

static void bash_words(FILE *to, const struct cli_command *c)
{
	fputs("words=\"", to);
	if (cli_complete_takes(c, "AGENT"))
		cli_complete_put_agents(to);
	if (cli_complete_takes(c, "|all"))
		fputs(" all base", to);
	if (cli_complete_takes(c, "KEY"))
		cli_complete_put_keys(to);
	if (cli_complete_is_choice(c))
		cli_complete_put_choices(to, c->args);
	if (cli_complete_takes(c, "COMMAND]"))
		cli_complete_put_commands(to, "");
	if (cli_complete_takes(c, "NAME"))
		fputs("$(_sandbox_agent_names)", to);
	if (cli_complete_takes_record(c))
		fputs("$(sandbox-agent -q audit ls 2>/dev/null)", to);
	fputs("\"", to);
}

static void bash_command(FILE *to, const struct cli_command *c)
{
	fprintf(to, "\t\"%s\")\n\t\tcase $prev in\n", c->name);
	cli_complete_each_option(to, c, bash_value);
	if (!strcmp(c->name, "ps"))
		bash_filter(to);
	fputs("\t\tesac\n", to);
	if (c->verbatim_after)
		fputs("\t\t[[ ${#seen[@]} -gt 0 ]] && { _sandbox_agent_files -f \"$cur\"; return; "
		      "}\n",
		      to);
	fputs("\t\t", to);
	bash_words(to, c);
	fputs("\n\t\toptions=\"", to);
	cli_complete_each_option(to, c, bash_option);
	fprintf(to, "\" more=%s ;;\n",
		cli_complete_takes(c, "...|") || cli_complete_takes(c, "NAME...") ||
				cli_complete_takes(c, "KEY...")
			? "again"
		: cli_complete_takes(c, "SRC")  ? "sides"
		: cli_complete_takes(c, "FILE") ? "files"
						: "");
}

static void bash_groups(FILE *to)
{
	char group[32];
	for (size_t at = 0; cli_complete_group(&at, group);) {
		int len = (int)strlen(group) - 1;
		fprintf(to, "\t\"%.*s\"|\"help %.*s\") words=\"", len, group, len, group);
		cli_complete_put_commands(to, group);
		fputs("\" ;;\n", to);
	}
}

void cli_complete_bash(FILE *to)
{
	fputs("# bash completion for sandbox-agent\n"
	      "_sandbox_agent_names()\n{\n\tcase $cur in\n",
	      to);
	cli_complete_put_names(to, "cur");
	fputs(bash_begin, to);
	bash_all_valued(to);
	char group[32];
	fputs(bash_walk, to);
	for (size_t at = 0; cli_complete_group(&at, group);)
		fprintf(to, "|%.*s", (int)strlen(group) - 1, group);
	fputs(bash_walked, to);
	fputs("\t\"\")\n\t\tcase $prev in\n", to);
	cli_complete_each_option(to, NULL, bash_value);
	fputs("\t\tesac\n\t\twords=\"", to);
	cli_complete_put_commands(to, "");
	fputs("\"\n\t\toptions=\"", to);
	cli_complete_each_option(to, NULL, bash_option);
	fputs("\" ;;\n", to);
	bash_groups(to);
	for (size_t i = 0; cli_commands[i]; i++)
		bash_command(to, cli_commands[i]);
	fputs(bash_end, to);
}
