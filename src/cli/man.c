/* SPDX-License-Identifier: MIT */
/*
 * Manual pages as roff: what they are made of, and those of section 1, which say what
 * --help says, from the same tables.
 */
#include "cli.h"

#include <string.h>

/* ---- what pages are made of ---- */

static void put_char(FILE *to, char c)
{
	if (c == '-')
		fputs("\\-", to);
	else if (c == '\\')
		fputs("\\e", to);
	else
		fputc(c, to);
}

void cli_man_word(FILE *to, const char *word)
{
	while (*word)
		put_char(to, *word++);
}

void cli_man_line(FILE *to, const char *s)
{
	bool bold = false, first = true;
	for (; *s; s++) {
		/* roff takes such a line for a request. */
		if (first && (*s == '.' || *s == '\''))
			fputs("\\&", to);
		first = *s == '\n';
		if (*s == '`') {
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", to);
		} else {
			put_char(to, *s);
		}
	}
	fputc('\n', to);
}

void cli_man_title(FILE *to, const char *title, int section)
{
	fputs(".TH \"", to);
	for (; *title; title++)
		put_char(to, *title >= 'a' && *title <= 'z' ? (char)(*title - 'a' + 'A') : *title);
	fprintf(to, "\" %d \"\" \"sandbox\\-agent %s\"\n", section, sba_version());
}

void cli_man_heading(FILE *to, const char *text)
{
	fputs(".SH ", to);
	for (; *text; text++)
		fputc(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text, to);
	fputc('\n', to);
}

/* ---- section 1 ---- */

static void put_option(FILE *to, const struct cli_option *o)
{
	fputs(".TP\n", to);
	if (o->letter)
		fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", to);
	cli_man_word(to, o->name);
	fputs("\\fR", to);
	if (o->arg) {
		fputs(" \\fI", to);
		cli_man_word(to, o->arg);
		fputs("\\fR", to);
	}
	fputc('\n', to);
	cli_man_line(to, o->help);
}

static void put_options(FILE *to, const struct cli_option *o)
{
	for (; o && o->name; o++)
		put_option(to, o);
}

/* "sandbox-agent-image-build": the page of "image build". */
static void page_name(const struct cli_command *c, char *buf, size_t size)
{
	snprintf(buf, size, "sandbox-agent-%s", c->name);
	for (char *space = buf; (space = strchr(space, ' '));)
		*space = '-';
}

static void put_name(FILE *to, const char *name, const char *help)
{
	cli_man_title(to, name, 1);
	cli_man_heading(to, "NAME");
	cli_man_word(to, name);
	fputs(" \\- ", to);
	cli_man_line(to, help);
	cli_man_heading(to, "SYNOPSIS");
}

static void put_example(FILE *to, const struct cli_command *c)
{
	cli_man_heading(to, "EXAMPLE");
	fputs(".nf\n", to);
	cli_man_line(to, c->example);
	fputs(".fi\n", to);
}

void cli_man_command(FILE *to, const struct cli_command *c)
{
	char name[64];
	page_name(c, name, sizeof(name));
	put_name(to, name, c->help);
	fputs("\\fBsandbox\\-agent ", to);
	cli_man_word(to, c->name);
	fprintf(to, "\\fR%s ", c->tables[0] ? " [\\fIOPTIONS\\fR]" : "");
	cli_man_line(to, c->args);
	cli_man_heading(to, "DESCRIPTION");
	cli_man_line(to, c->more ? c->more : c->help);
	cli_man_heading(to, "OPTIONS");
	for (size_t i = 0; i < CLI_TABLES_MAX; i++)
		put_options(to, c->tables[i]);
	fputs(".PP\nThose of every command:\n", to);
	put_options(to, cli_global_options);
	put_example(to, c);
	cli_man_heading(to, "SEE ALSO");
	fputs("\\fBsandbox\\-agent\\fR(1), \\fBsandbox\\-agent\\-config\\fR(5)\n", to);
}

static const char exit_status[] =
	"0 done; 1 what was asked for failed; 2 usage or configuration; 3 engine, image or\n"
	"registry; 4 the sandbox broke; 5 a budget is spent; 124 timeout; 129, 130, 143 hung up,\n"
	"interrupted, terminated, with nothing left running. `exec` and `shell` exit as their\n"
	"command does; troubles of their own are 125, a command that cannot be run is 126, one\n"
	"that is not there 127.";

void cli_man_all(FILE *to)
{
	put_name(to, "sandbox-agent", "agent CLIs in disposable containers");
	fputs("\\fBsandbox\\-agent\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n", to);
	cli_man_heading(to, "DESCRIPTION");
	cli_man_line(to, "Puts an LLM agent CLI into a disposable container, talks with it, and\n"
			 "brings its work home. Each command has a page of its own.");
	cli_man_heading(to, "COMMANDS");
	for (size_t i = 0; cli_commands[i]; i++) {
		char name[64];
		page_name(cli_commands[i], name, sizeof(name));
		fputs(".TP\n\\fB", to);
		cli_man_word(to, name);
		fputs("\\fR(1)\n", to);
		cli_man_line(to, cli_commands[i]->help);
	}
	cli_man_heading(to, "OPTIONS");
	put_options(to, cli_global_options);
	cli_man_heading(to, "EXIT STATUS");
	cli_man_line(to, exit_status);
	put_example(to, &cli_command_run);
	cli_man_heading(to, "SEE ALSO");
	fputs("\\fBsandbox\\-agent\\-config\\fR(5), \\fBsandbox\\-agent\\fR(3)\n", to);
}
