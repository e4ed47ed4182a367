/* SPDX-License-Identifier: MIT */
/* `create`: a sandbox without an agent. */
#include "cli.h"

static const struct cli_option create_options[] = {
	{ "ca-file", 0, CLI_STRING, "FILE", "a CA bundle that programs inside trust",
	  offsetof(struct cli_spawn, way.ca_file), 0 },
	{ 0 },
};

static int create(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_spawn o = *(const struct cli_spawn *)options;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	int rc = cli_spawn_anywhere(cli, &o, NULL, args, NULL, &s, &err);
	return rc < 0 ? cli_not_spawned(cli, &err)
		      : cli_spawned(cli, s, "go in:  sandbox-agent shell", "");
}

const struct cli_command cli_command_create = {
	.name = "create",
	.args = "",
	.help = "a sandbox without an agent; prints its name",
	.more = "For commands, files and ports. An agent may move in later: up AGENT --in NAME.",
	.example = "sandbox-agent create --image debian:stable-slim --name calm-fox",
	.tables = { create_options, cli_spawn_options },
	.options_size = sizeof(struct cli_spawn),
	.run = create,
};
