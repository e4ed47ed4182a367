/* SPDX-License-Identifier: MIT */
/* The command of an agent's CLI: what the agent knows, in the driver's words. */
#include "agent/private.h"

#include <stdlib.h>

enum { URL_MAX = 256 };

/* The words of the sandbox's program, lent from the agent; NULL: it has none. */
static const char **program_of(const struct sba_agent *a)
{
	size_t n = json_array_size(a->program);
	const char **v = n ? calloc(n + 1, sizeof(*v)) : NULL;
	for (size_t i = 0; v && i < n; i++) {
		v[i] = json_string_value(json_array_get(a->program, i));
		if (!v[i])
			break; /* no label of ours */
	}
	return v;
}

int sba_agent_command(struct sba_agent *a, const struct sba_turn_spec *wish, bool *ret_open,
		      struct sba_command *ret, struct sba_error *err)
{
	const struct sba_sandbox_info *info = sba_sandbox_info(a->sandbox);
	SBA_FREE const char **program = program_of(a);
	struct sba_turn_spec spec = *wish;
	char base_url[URL_MAX] = "";
	int rc = a->host_port ? sba_sandbox_host_url(a->sandbox, a->host_port, base_url,
						     sizeof(base_url), err)
			      : 0;
	if (rc == 0)
		*ret_open = a->host_port != 0;
	if (rc == 0)
		rc = sba_sandbox_root(a->sandbox, &spec.root, err);
	if (rc < 0)
		return rc;
	spec.base_url = a->host_port ? base_url : NULL;
	spec.token = a->login ? NULL : a->token;
	spec.login = a->login;
	spec.model = a->model_name;
	spec.program = program;
	spec.permissions = a->permissions;
	spec.mcp = *info->mcp ? info->mcp : NULL;
	return sba_command_make(a->driver, &spec, ret, err);
}
