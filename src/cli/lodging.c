/* SPDX-License-Identifier: MIT */
/* What `run` and `up` give an agent in its sandbox: permissions, MCP servers, skills,
 * rules, and a login where there is no key. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct cli_spawn, name)

enum { MCP_MAX = 1 << 20, LOGIN_MAX = 1 << 20 };

const struct cli_option cli_lodging_options[] = {
	{ "permissions", 0, CLI_STRING, "read-only|edit|full", "what the agent may do (full)",
	  FIELD(permissions), 0 },
	{ "mcp", 0, CLI_STRING, "FILE", "MCP servers for the agent (JSON, as claude has it)",
	  FIELD(mcp), 0 },
	{ "skill", 0, CLI_LIST, "DIR", "a folder with a SKILL.md that the agent shall know",
	  FIELD(skill), 0 },
	{ "rules", 0, CLI_STRING, "FILE", "instructions that the agent reads (- is stdin)",
	  FIELD(rules), 0 },
	{ "login-files", 0, CLI_FLAG, NULL,
	  "copies the CLI's own login in: all that runs inside can read it", FIELD(way.login), 0 },
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

/* ---- a login ---- */

/* Where the CLI here would look for it. */
static char *login_here(const struct sba_login *l)
{
	const char *root = getenv(l->variable), *home = getenv("HOME");
	char *path = NULL;
	bool moved = root && *root;
	if (asprintf(&path, "%s/%s",
		     moved  ? root
		     : home ? home
			    : "",
		     moved ? l->beneath : l->path) < 0)
		return NULL;
	return path;
}

/* Sealed and without a rule, its provider would never be reached. */
static int check_network(const struct cli_spawn *o, struct sba_error *err)
{
	if (!o->network || strcmp(o->network, "sealed") != 0 || o->allow.n)
		return 0;
	return cli_fail(err, SBA_EINVAL, "open them one by one:  --allow HOST",
			"--login-files: the CLI reaches its provider by itself, and a sealed "
			"sandbox reaches nobody");
}

static int read_login(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	const struct sba_login *l = sba_agent_login(agent);
	struct sba_error why;
	int rc = check_network(o, err);
	if (rc < 0 || !l)
		return rc;
	o->login_path = login_here(l);
	if (!o->login_path)
		return cli_fail_nomem(err);
	rc = cli_read_option_file("login-files", o->login_path, LOGIN_MAX, &o->login_text,
				  &o->login_len, err);
	if (rc < 0) {
		snprintf(err->hint, sizeof(err->hint), "log in here first:  %s", l->how);
		return rc;
	}
	rc = sba_agent_check_login(agent, o->login_text, o->login_len, &why);
	return rc < 0 ? cli_fail(err, rc, why.hint, "--login-files: %s: %.900s", o->login_path,
				 why.text)
		      : 0;
}

/* Also where it is to be quiet. */
static void warn_of_login(struct cli *cli, const struct cli_spawn *o, struct sba_sandbox *s)
{
	cli_warn(cli,
		 "%s is copied into sandbox '%s': everything that runs inside can read that "
		 "login, use it and send it elsewhere; log out to make it worthless",
		 o->login_path, sba_sandbox_info(s)->name);
}

int cli_lodging_read(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	int rc = check_permissions(o, agent, err);
	for (size_t i = 0; rc == 0 && i < o->skill.n; i++)
		rc = check_skill(o->skill.v[i], err);
	if (rc == 0 && o->mcp)
		rc = read_servers(o, agent, err);
	if (rc == 0 && o->way.login)
		rc = read_login(o, agent, err);
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

static int place_login(struct cli *cli, const struct cli_spawn *o, const char *agent,
		       struct sba_sandbox *s, struct sba_error *err)
{
	warn_of_login(cli, o, s);
	return sba_agent_place_login(s, agent, o->login_text, o->login_len, err);
}

int cli_lodging_place(struct cli *cli, struct cli_spawn *o, const char *agent,
		      struct sba_sandbox *s, struct sba_error *err)
{
	int rc = o->mcp_text ? sba_agent_place_mcp(s, agent, o->mcp_text, o->mcp_len, err) : 0;
	if (rc == 0 && o->login_text)
		rc = place_login(cli, o, agent, s, err);
	return rc == 0 ? place_instructions(o, agent, s, err) : rc;
}

int cli_lodging_move_in(struct cli *cli, struct cli_spawn *o, const char *agent,
			struct sba_sandbox *s, struct sba_error *err)
{
	const struct sba_sandbox_options so = {
		.agent = agent,
		.program = o->program,
		.permissions = o->permissions,
		.mcp = o->mcp_names,
		.provider = o->way.offline ? "scripted" : NULL,
	};
	int rc = sba_agent_move_in(s, &so, err);
	return rc == 0 ? cli_lodging_place(cli, o, agent, s, err) : rc;
}

void cli_lodging_forget(struct cli_spawn *o)
{
	if (o->login_text)
		explicit_bzero(o->login_text, o->login_len);
	free(o->login_text);
	free(o->login_path);
	o->login_text = o->login_path = NULL;
	free(o->mcp_text);
	free(o->mcp_names);
	free(o->rules_text);
	o->mcp_text = o->mcp_names = o->rules_text = NULL;
}
