/* SPDX-License-Identifier: MIT */
/* What `run` and `up` give an agent in its sandbox: permissions, MCP servers, skills,
 * rules. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct cli_spawn, name)

enum { MCP_MAX = 1 << 20 };

const struct cli_option cli_lodging_options[] = {
	{ "permissions", 0, CLI_STRING, "read-only|edit|full", "what the agent may do (full)",
	  FIELD(permissions), 0 },
	{ "mcp", 0, CLI_STRING, "FILE", "MCP servers for the agent (JSON, as claude has it)",
	  FIELD(mcp), 0 },
	{ "skill", 0, CLI_LIST, "DIR", "a folder with a SKILL.md that the agent shall know",
	  FIELD(skill), 0 },
	{ "rules", 0, CLI_STRING, "FILE", "instructions that the agent reads (- is stdin)",
	  FIELD(rules), 0 },
	{ 0 },
};

static int check_permissions(const struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	struct sba_error why;
	int rc = sba_agent_check_permissions(agent, o->permissions, &why);
	return rc < 0 ? cli_fail(err, SBA_EINVAL, why.hint, "--permissions: %.900s", why.text) : 0;
}

static int read_servers(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	struct sba_error why;
	int rc = cli_read_option_file("mcp", o->mcp, MCP_MAX, &o->mcp_text, &o->mcp_len, err);
	if (rc < 0)
		return rc;
	rc = sba_agent_check_mcp(agent, o->mcp_text, o->mcp_len, &o->mcp_names, &why);
	return rc < 0 ? cli_fail(err, rc, why.hint, "--mcp: %s: %.900s", o->mcp, why.text) : 0;
}

/* As far as it can be seen before there is a sandbox. */
static int check_skill(const char *dir, struct sba_error *err)
{
	CLI_FREE char *path = NULL;
	int rc = cli_check_option_path("skill", dir, true, err);
	if (rc == 0 && asprintf(&path, "%s/SKILL.md", dir) < 0) {
		path = NULL;
		return cli_fail_nomem(err);
	}
	return rc == 0 ? cli_check_option_path("skill", path, false, err) : rc;
}

static int read_rules(struct cli_spawn *o, struct sba_error *err)
{
	if (!strcmp(o->rules, "-"))
		return cli_read_text("-", CLI_RULES_MAX, &o->rules_text, &o->rules_len, err);
	return cli_read_option_file("rules", o->rules, CLI_RULES_MAX, &o->rules_text, &o->rules_len,
				    err);
}

int cli_lodging_read(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	int rc = check_permissions(o, agent, err);
	for (size_t i = 0; rc == 0 && i < o->skill.n; i++)
		rc = check_skill(o->skill.v[i], err);
	if (rc == 0 && o->mcp)
		rc = read_servers(o, agent, err);
	return rc == 0 && o->rules ? read_rules(o, err) : rc;
}

static int place_instructions(const struct cli_spawn *o, const char *agent, struct sba_sandbox *s,
			      struct sba_error *err)
{
	const struct sba_agent_options ao = { .agent = agent, .no_turns = true };
	struct sba_agent *a = NULL;
	if (!o->skill.n && !o->rules_text)
		return 0;
	int rc = sba_agent_open(s, &ao, &a, err);
	if (rc == 0 && o->skill.n)
		rc = sba_skills_add(a, o->skill.v, err);
	if (rc == 0 && o->rules_text)
		rc = sba_rules_set(a, o->rules_text, o->rules_len, err);
	sba_agent_close(a);
	return rc;
}

int cli_lodging_place(struct cli_spawn *o, const char *agent, struct sba_sandbox *s,
		      struct sba_error *err)
{
	int rc = o->mcp_text ? sba_agent_place_mcp(s, agent, o->mcp_text, o->mcp_len, err) : 0;
	return rc == 0 ? place_instructions(o, agent, s, err) : rc;
}

void cli_lodging_forget(struct cli_spawn *o)
{
	free(o->mcp_text);
	free(o->mcp_names);
	free(o->rules_text);
	o->mcp_text = o->mcp_names = o->rules_text = NULL;
}
