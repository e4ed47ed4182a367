/* SPDX-License-Identifier: MIT */
/* What a user brings for an agent before its first turn: permissions, MCP servers. */
#include "agent/private.h"

#include <string.h>

enum { MCP_MAX = 1 << 20 };

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
	int rc = driver_of(agent, &driver, err);
	if (rc == 0)
		rc = sba_mcp_translate(driver, text, len, &file, &names, err);
	if (rc == 0)
		rc = sba_sandbox_write_small(s, driver->mcp_path, file.data, file.len, 0644, err);
	return rc < 0 ? sba_wrap(err, rc, "MCP servers for %s", agent) : 0;
}
