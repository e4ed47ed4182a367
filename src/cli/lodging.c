/* SPDX-License-Identifier: MIT */
/* What `run` and `up` give an agent in its sandbox: permissions, MCP servers. */
#include "cli.h"

#include <stdlib.h>

#define FIELD(name) offsetof(struct cli_spawn, name)

enum { MCP_MAX = 1 << 20 };

const struct cli_option cli_lodging_options[] = {
	{ "permissions", 0, CLI_STRING, "read-only|edit|full", "what the agent may do (full)",
	  FIELD(permissions), 0 },
	{ "mcp", 0, CLI_STRING, "FILE", "MCP servers for the agent (JSON, as claude has it)",
	  FIELD(mcp), 0 },
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

int cli_lodging_read(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	int rc = check_permissions(o, agent, err);
	return rc == 0 && o->mcp ? read_servers(o, agent, err) : rc;
}

int cli_lodging_place(struct cli_spawn *o, const char *agent, struct sba_sandbox *s,
		      struct sba_error *err)
{
	return o->mcp_text ? sba_agent_place_mcp(s, agent, o->mcp_text, o->mcp_len, err) : 0;
}

void cli_lodging_forget(struct cli_spawn *o)
{
	free(o->mcp_text);
	free(o->mcp_names);
	o->mcp_text = o->mcp_names = NULL;
}
