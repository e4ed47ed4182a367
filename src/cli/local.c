/* SPDX-License-Identifier: MIT */
/* `run --backend local`: a folder of this host as the sandbox. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_local_wanted(const struct cli_spawn *o)
{
	return o->backend && strcmp(o->backend, "local") == 0;
}

/* What only an engine can keep. */
static int check_options(const struct cli_args *args, struct sba_error *err)
{
	static const char *const others[] = { "image",     "pull",
					      "mount",     "user",
					      "memory",    "cpus",
					      "pids",      "network",
					      "allow",     "runtime",
					      "keepalive", "max-lifetime",
					      "keep",      "keep-on-failure",
					      "apply",     "commits",
					      "branch",    "tag",
					      "ca-file" };
	for (size_t i = 0; i < CLI_LEN(others); i++) {
		if (cli_given(args, others[i]))
			return cli_fail(err, SBA_EINVAL,
					"a container can:  leave out --backend local",
					"--%s: a local sandbox cannot keep it", others[i]);
	}
	if (!cli_given(args, "workspace"))
		return cli_fail(err, SBA_EINVAL, "as in:  -w .",
				"--backend local: in which folder?");
	return 0;
}

static int open_folder(struct cli *cli, const struct cli_spawn *o, const struct cli_local *l,
		       const char *agent, struct sba_sandbox **ret, struct sba_error *err)
{
	struct cli_env env = { 0 };
	int rc = cli_env_collect_config(&env, cli, agent, err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	const struct sba_local_options lo = {
		.name = o->name,
		.environment = (const char *const *)environ,
		.keep_env = l->keep_env,
		.env = (const char *const *)env.v,
		.no_landlock = l->no_landlock,
		.cancel = cli->cancel,
	};
	if (rc == 0)
		rc = sba_local_open(o->workspace, &lo, ret, err);
	cli_env_fini(&env);
	return rc;
}

static int settle(struct cli *cli, struct cli_spawn *o, const struct cli_local *l,
		  const char *agent, struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = open_folder(cli, o, l, agent, &s, err);
	if (rc == 0)
		rc = cli_lodging_move_in(cli, o, agent, s, err);
	if (rc < 0)
		sba_sandbox_close(s);
	else
		*ret = s;
	return rc;
}

int cli_local_spawn(struct cli *cli, struct cli_spawn *o, const struct cli_local *l,
		    const struct cli_args *args, struct sba_sandbox **ret, struct sba_error *err)
{
	const char *agent = args->v[0];
	int rc = check_options(args, err);
	if (rc == 0)
		rc = cli_way_check(&o->way, agent, err);
	if (rc == 0)
		rc = cli_lodging_read(o, agent, err);
	if (rc == 0)
		rc = cli_check_option_path("workspace", o->workspace, true, err);
	if (rc == 0)
		rc = cli_begin(cli, err);
	if (rc == 0)
		rc = settle(cli, o, l, agent, ret, err);
	cli_lodging_forget(o);
	if (rc == 0 && !l->no_landlock && !sba_local_landlock())
		cli_note(cli, "this kernel has no Landlock: what runs may write anywhere");
	return rc;
}
