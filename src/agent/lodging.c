/* SPDX-License-Identifier: MIT */
/* What a user settles for an agent before its first turn: permissions, MCP servers,
 * and a sandbox that was there before it. */
#include "agent/private.h"

#include <string.h>

enum { MCP_MAX = 1 << 20, VERSION_MS = 60 * 1000 };

static int driver_of(const char *agent, const struct sba_driver **ret, struct sba_error *err)
{
	*ret = sba_driver_find(agent);
	return *ret ? 0 : sba_fail(err, SBA_EINVAL, "there is no agent '%s'", agent ? agent : "");
}

int sba_agent_check_permissions(const char *agent, const char *permissions, struct sba_error *err)
{
	const struct sba_driver *driver;
	enum sba_permissions p;
	int rc = driver_of(agent, &driver, err);
	if (rc == 0)
		rc = sba_permissions_parse(permissions, &p, err);
	return rc == 0 ? sba_driver_check_permissions(driver, p, err) : rc;
}

int sba_agent_check_mcp(const char *agent, const char *text, size_t len, char **ret_names,
			struct sba_error *err)
{
	SBA_BUF struct sba_buf file = SBA_BUF_INIT(MCP_MAX), names = SBA_BUF_INIT(MCP_MAX);
	const struct sba_driver *driver;
	int rc = driver_of(agent, &driver, err);
	if (rc == 0)
		rc = sba_mcp_translate(driver, text, len, &file, &names, err);
	if (rc < 0)
		return rc;
	*ret_names = sba_buf_take(&names);
	return *ret_names ? 0 : sba_fail_nomem(err);
}

int sba_agent_place_mcp(struct sba_sandbox *s, const char *agent, const char *text, size_t len,
			struct sba_error *err)
{
	SBA_BUF struct sba_buf file = SBA_BUF_INIT(MCP_MAX), names = SBA_BUF_INIT(MCP_MAX);
	const struct sba_driver *driver;
	const char *root = "";
	int rc = driver_of(agent, &driver, err);
	if (rc == 0)
		rc = sba_mcp_translate(driver, text, len, &file, &names, err);
	if (rc == 0)
		rc = sba_sandbox_root(s, &root, err);
	/* It looks for them in /etc, whoever's that is. */
	if (rc == 0 && *root && driver->mcp_form == SBA_MCP_CODEX)
		rc = sba_fail(err, SBA_EUNSUPPORTED, "in containers only");
	if (rc == 0)
		rc = sba_sandbox_write_small(s, driver->mcp_path, file.data, file.len, 0644, err);
	return rc < 0 ? sba_wrap(err, rc, "MCP servers for %s", agent) : 0;
}

/* ---- moving in ---- */

int sba_agent_no_cli(const struct sba_driver *d, const char *binary, const char *place,
		     struct sba_error *err)
{
	int rc = sba_fail(err, SBA_ENOCLI, "%s: there is no '%s' in %s", d->name, binary, place);
	return d->install ? sba_hint(err, rc, "%s", d->install) : rc;
}

const char *sba_agent_place(const struct sba_sandbox *s, char ret[SBA_PLACE_MAX])
{
	const struct sba_sandbox_info *i = sba_sandbox_info(s);
	if (*i->image)
		snprintf(ret, SBA_PLACE_MAX, "image '%s'", i->image);
	else
		snprintf(ret, SBA_PLACE_MAX, "%s sandbox '%s'", sba_sandbox_backend(s), i->name);
	return ret;
}

/* Asked for its version, so that one which cannot run is found too. */
static int check_cli(struct sba_sandbox *s, const struct sba_driver *d, struct sba_error *err)
{
	const char *const argv[] = { d->binary, "--version", NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = VERSION_MS };
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	char place[SBA_PLACE_MAX];
	int rc = d->binary ? sba_sandbox_exec(s, &o, &p, err) : 0;
	if (rc == 0 && p)
		rc = sba_process_wait(p, -1, &end, err);
	sba_process_free(p);
	if (rc < 0 || !d->binary)
		return rc;
	if (end.kind == SBA_NOT_FOUND)
		return sba_agent_no_cli(d, d->binary, sba_agent_place(s, place), err);
	if (end.kind != SBA_EXITED || end.number != 0)
		return sba_fail(err, SBA_ENOCLI, "%s: '%s --version' fails in sandbox '%s'",
				d->name, d->binary, sba_sandbox_info(s)->name);
	return 0;
}

int sba_agent_move_in(struct sba_sandbox *s, const struct sba_sandbox_options *o,
		      struct sba_error *err)
{
	const struct sba_sandbox_info *i = sba_sandbox_info(s);
	const struct sba_driver *driver;
	int rc = driver_of(o->agent, &driver, err);
	if (rc == 0)
		rc = sba_agent_check_permissions(o->agent, o->permissions, err);
	if (rc == 0)
		rc = sba_sandbox_find_agent(s, err);
	if (rc == 0 && *i->agent)
		rc = sba_hint(err,
			      sba_fail(err, SBA_EEXIST, "in sandbox '%s' lives %s already", i->name,
				       i->agent),
			      "talk with it:  sandbox-agent chat %s", i->name);
	if (rc == 0)
		rc = check_cli(s, driver, err);
	return rc == 0 ? sba_sandbox_set_agent(s, o, err) : rc;
}
