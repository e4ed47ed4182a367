/* SPDX-License-Identifier: MIT */
/* `up`: a sandbox with an agent that stays. */
#include "cli.h"

static int up(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	int rc = cli_spawn(cli, options, args->v[0], &s, &err);
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
		cli_note(cli, "talk with it:  sandbox-agent chat %s \"hello\"", i->name);
	sba_sandbox_close(s);
	return 0;
}

const struct cli_command cli_command_up = {
	.name = "up",
	.args = "AGENT",
	.help = "a sandbox that stays; prints its name",
	.more = "Each chat opens a way to the model of its own: the script of a scripted one,\n"
		"the model's name, a key file and budgets are options of chat.",
	.example = "sandbox-agent up claude --offline --workspace . --name calm-fox",
	.tables = { cli_way_options, cli_spawn_options },
	.options_size = sizeof(struct cli_spawn),
	.min_args = 1,
	.max_args = 1,
	.run = up,
};
