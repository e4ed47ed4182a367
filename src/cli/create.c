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
	(void)args;
	int rc = cli_spawn(cli, &o, NULL, &s, &err);
	if (rc < 0 && cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing is left running");
	if (rc < 0)
		return cli_report(cli, &err);
	const struct sba_sandbox_info *i = sba_sandbox_info(s);
	if (cli->json)
		cli_json_first(cli_json_sandbox(i));
	else
		printf("%s\n", i->name);
	if (cli->look.out_tty)
		cli_note(cli, "go in:  sandbox-agent shell %s", i->name);
	sba_sandbox_close(s);
	return 0;
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
