/* SPDX-License-Identifier: MIT */
/* `audit ls`, `path`, `prune`: which sessions are recorded, where, how long. */
#include "cli.h"

#include <string.h>
#include <time.h>

#define FIELD(name) offsetof(struct ls_options, name)

struct ls_options {
	const char *agent, *verdict, *day, *sandbox;
};

static const struct cli_option ls_options[] = {
	{ "agent", 0, CLI_STRING, "NAME", "only of this agent", FIELD(agent), 0 },
	{ "verdict", 0, CLI_STRING, "WORD", "only what ended so: ok, timeout, running ...",
	  FIELD(verdict), 0 },
	{ "day", 0, CLI_STRING, "DAY", "only of that day: 2026-11-29, today, yesterday", FIELD(day),
	  0 },
	{ "sandbox", 0, CLI_STRING, "NAME", "only of this sandbox", FIELD(sandbox), 0 },
	{ 0 },
};

static void day_before(int days, char ret[16])
{
	time_t at = time(NULL);
	struct tm tm;
	localtime_r(&at, &tm);
	tm.tm_mday -= days;
	tm.tm_hour = 12;
	mktime(&tm);
	strftime(ret, 16, "%Y%m%d", &tm);
}

static int parse_day(const char *text, char ret[16], struct sba_error *err)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	if (!strcmp(text, "today") || !strcmp(text, "yesterday")) {
		day_before(text[0] == 'y', ret);
		return 0;
	}
	if (!end || *end)
		end = strptime(text, "%Y%m%d", &tm);
	if (!end || *end)
		return cli_fail(err, SBA_EINVAL, "as in:  --day 2026-11-29, --day today",
				"--day '%s' is no day", text);
	strftime(ret, 16, "%Y%m%d", &tm);
	return 0;
}

static const struct sba_audit_session *at(const struct sba_audit_list *l, size_t n)
{
	return sba_audit_list_at(l, n);
}

static void print_table(struct cli *cli, const struct sba_audit_list *l)
{
	static const char *const head[] = { "SESSION", "AGENT", "VERDICT", "TURNS",
					    "TOKENS",  "AGE",   "SANDBOX", "TASK" };
	struct cli_table t = { .columns = CLI_LEN(head) };
	cli_table_add(&t, head);
	for (size_t n = 0; n < sba_audit_list_count(l); n++) {
		const struct sba_audit_session *s = at(l, n);
		char turns[32], tokens[32], age[32];
		int64_t old = (int64_t)time(NULL) * 1000 - s->updated_ms;
		cli_thousands(s->turns, turns);
		cli_thousands((uint64_t)(s->usage.input + s->usage.output), tokens);
		cli_time(old > 0 ? old / 1000 * 1000 : 0, age, sizeof(age));
		CLI_FREE char *task = cli_line(&cli->look, s->prompt, 40);
		const char *cells[] = { s->name,
					s->agent[0] ? s->agent : "-",
					s->verdict[0] ? s->verdict : "-",
					turns,
					tokens,
					age,
					s->sandbox,
					task };
		cli_table_add(&t, cells);
	}
	cli_table_print(&t, stdout, cli->look.out_tty ? cli->look.columns : 0);
	cli_table_fini(&t);
}

static json_t *session_json(const struct sba_audit_session *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}",
			 "name", s->name, "session", s->session, "path", s->path, "day", s->day,
			 "agent", s->agent, "sandbox", s->sandbox, "image", s->image, "verdict",
			 s->verdict, "prompt", s->prompt, "turns", (json_int_t)s->turns, "input",
			 (json_int_t)s->usage.input, "output", (json_int_t)s->usage.output,
			 "created_ms", (json_int_t)s->created_ms, "updated_ms",
			 (json_int_t)s->updated_ms);
}

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)args;
	const struct ls_options *o = options;
	char day[16] = "";
	struct sba_audit_filter f = { .agent = o->agent,
				      .verdict = o->verdict,
				      .sandbox = o->sandbox };
	struct sba_audit_list *l = NULL;
	struct sba_error err;
	const char *root;
	int rc = o->day ? parse_day(o->day, day, &err) : 0;
	f.day = day[0] ? day : NULL;
	if (rc == 0)
		rc = cli_audit_root(cli, &root, &err);
	if (rc == 0)
		rc = sba_audit_list(root, &f, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	for (size_t n = 0; cli->json && n < sba_audit_list_count(l); n++)
		(n == 0 ? cli_json_first : cli_json_line)(session_json(at(l, n)));
	for (size_t n = 0; cli->quiet && !cli->json && n < sba_audit_list_count(l); n++)
		printf("%s\n", at(l, n)->name);
	if (!cli->json && !cli->quiet)
		print_table(cli, l);
	sba_audit_list_free(l);
	return 0;
}

const struct cli_command cli_command_audit_ls = {
	.name = "audit ls",
	.args = "",
	.help = "the recorded sessions, newest first",
	.example = "sandbox-agent audit ls --agent claude --day today",
	.tables = { ls_options },
	.options_size = sizeof(struct ls_options),
	.run = ls,
};

/* ---- path ---- */

int cli_audit_find(struct cli *cli, const char *id, struct sba_audit_list **ret_list,
		   const struct sba_audit_session **ret, struct sba_error *err)
{
	struct sba_audit_list *l = NULL;
	const char *root;
	int rc = cli_audit_root(cli, &root, err);
	if (rc == 0)
		rc = sba_audit_list(root, NULL, &l, err);
	if (rc == 0)
		rc = sba_audit_list_find(l, id, ret, err);
	if (rc < 0) {
		sba_audit_list_free(l);
		return rc;
	}
	*ret_list = l;
	return 0;
}

static int path(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_audit_list *l = NULL;
	const struct sba_audit_session *s = NULL;
	struct sba_error err;
	const char *shown = NULL;
	int rc = args->n ? cli_audit_find(cli, args->v[0], &l, &s, &err)
			 : cli_audit_root(cli, &shown, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	if (s)
		shown = s->path;
	if (cli->json)
		cli_json_first(json_pack("{s:s}", "path", shown));
	else
		printf("%s\n", shown);
	sba_audit_list_free(l);
	return 0;
}

const struct cli_command cli_command_audit_path = {
	.name = "audit path",
	.args = "[ID]",
	.help = "the folder of a recorded session, or of all",
	.example = "tail -f \"$(sandbox-agent audit path 6b0d7a46)/events.jsonl\"",
	.max_args = 1,
	.run = path,
};

/* ---- prune ---- */

struct prune_options {
	int64_t days;
};

static const struct cli_option prune_options[] = {
	{ "days", 0, CLI_INT, "N", "what is older (retention_days: 7)",
	  offsetof(struct prune_options, days), 1 },
	{ 0 },
};

static int prune(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct prune_options *o = options;
	struct sba_error err;
	const char *root;
	int removed = 0;
	int rc = cli_audit_root(cli, &root, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	int64_t days = cli_given(args, "days")
			       ? o->days
			       : sba_config_number(cli->config, "retention_days", NULL);
	rc = sba_audit_prune(root, days, &removed, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	if (cli->json)
		cli_json_first(json_pack("{s:i}", "removed_days", removed));
	else if (days == 0)
		cli_note(cli, "retention_days is 0: nothing is ever removed (--days N does)");
	else
		cli_note(cli, "%d day%s removed", removed, removed == 1 ? "" : "s");
	return 0;
}

const struct cli_command cli_command_audit_prune = {
	.name = "audit prune",
	.args = "",
	.help = "removes days that nothing was written to for so long",
	.more = "The same happens by itself after a turn. A day goes as a whole, and never one "
		"with "
		"a\nturn under way.",
	.example = "sandbox-agent audit prune --days 30",
	.tables = { prune_options },
	.options_size = sizeof(struct prune_options),
	.run = prune,
};
