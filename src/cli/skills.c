/* SPDX-License-Identifier: MIT */
/* `skills` and `rules`: instructions, where the CLI in a sandbox looks for them. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* ---- skills ---- */

static int add(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_skills_add(a.agent, (const char *const *)args->v + 1, &err);
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:i}", "added", args->n - 1));
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_skills_add = {
	.name = "skills add",
	.args = "NAME DIR...",
	.help = "installs folders with a SKILL.md, all or none",
	.more = "One of the same name is replaced. The agent knows them from its next turn on.",
	.example = "sandbox-agent skills add calm-fox ./release-notes",
	.min_args = 2,
	.max_args = -1,
	.run = add,
};

static void list_json(const struct sba_skill_list *l)
{
	json_t *array = json_array();
	for (size_t i = 0; i < sba_skills_count(l); i++) {
		const struct sba_skill_info *s = sba_skills_at(l, i);
		CLI_FREE char *folder = sba_visible(s->folder, strlen(s->folder), true);
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:s}", "folder", folder ? folder : "",
						"name", s->name, "description", s->description));
	}
	cli_json_first(json_pack("{s:o}", "skills", array));
}

static void list_text(const struct sba_skill_list *l)
{
	static const char *const head[] = { "SKILL", "NAME", "DESCRIPTION" };
	struct cli_table t = { .columns = CLI_LEN(head) };
	cli_table_add(&t, head);
	for (size_t i = 0; i < sba_skills_count(l); i++) {
		const struct sba_skill_info *s = sba_skills_at(l, i);
		const char *const cells[] = { s->folder, *s->name ? s->name : "-",
					      *s->description ? s->description
							      : "its SKILL.md is broken" };
		cli_table_add(&t, cells);
	}
	cli_table_print(&t, stdout, cli_columns_of(stdout));
	cli_table_fini(&t);
}

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a;
	struct sba_skill_list *l = NULL;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_skills_list(a.agent, &l, &err);
	if (rc == 0 && cli->json)
		list_json(l);
	else if (rc == 0)
		list_text(l);
	sba_skills_free(l);
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_skills_ls = {
	.name = "skills ls",
	.args = "NAME",
	.help = "the skills that were installed",
	.example = "sandbox-agent skills ls calm-fox",
	.min_args = 1,
	.max_args = 1,
	.run = ls,
};

static int rm(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_skills_remove(a.agent, (const char *const *)args->v + 1, &err);
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:i}", "removed", args->n - 1));
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_skills_rm = {
	.name = "skills rm",
	.args = "NAME SKILL...",
	.help = "removes skills, all or none",
	.example = "sandbox-agent skills rm calm-fox release-notes",
	.min_args = 2,
	.max_args = -1,
	.run = rm,
};

/* ---- rules ---- */

static int set(struct cli *cli, const void *options, const struct cli_args *args)
{
	CLI_FREE char *text = NULL;
	struct cli_agent a = { 0 };
	struct sba_error err;
	size_t len = 0;
	bool in = !strcmp(args->v[1], "-");
	(void)options;
	int rc = in ? cli_read_text("-", CLI_RULES_MAX, &text, &len, &err)
		    : cli_read_file(args->v[1], CLI_RULES_MAX, &text, &len, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_rules_set(a.agent, text, len, &err);
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:I}", "bytes", (json_int_t)len));
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_rules_set = {
	.name = "rules set",
	.args = "NAME FILE",
	.help = "instructions that the agent reads for every turn",
	.more = "FILE may be - for stdin; an empty one removes them.",
	.example = "sandbox-agent rules set calm-fox AGENTS.md",
	.min_args = 2,
	.max_args = 2,
	.run = set,
};

static int show(struct cli *cli, const void *options, const struct cli_args *args)
{
	CLI_FREE char *text = NULL;
	struct cli_agent a;
	struct sba_error err;
	size_t len = 0;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_rules_get(a.agent, &text, &len, &err);
	if (rc == 0 && cli->json) {
		json_t *j = json_object();
		cli_json_bytes(j, text, len);
		cli_json_first(j);
	} else if (rc == 0) {
		cli_write(1, text, len);
	}
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_rules_show = {
	.name = "rules show",
	.args = "NAME",
	.help = "prints the instructions that were set",
	.example = "sandbox-agent rules show calm-fox",
	.min_args = 1,
	.max_args = 1,
	.run = show,
};
