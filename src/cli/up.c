/* SPDX-License-Identifier: MIT */
/* `up`: a sandbox with an agent that stays. */
#include "cli.h"

/* A sandbox remembers the name of a variable, and nothing that leads to a key. */
static int check_key(const struct cli_way *w, struct sba_error *err)
{
	if (!w->key_file && !w->key_command)
		return 0;
	return cli_fail(err, SBA_EINVAL,
			"chat takes it, and every chat does with api_key_file or key_command in "
			"the configuration",
			"--%s: up keeps no key, nor where it is",
			w->key_file ? "api-key-file" : "api-key-command");
}

static int up(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_spawn o = *(const struct cli_spawn *)options;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	int rc = check_key(&o.way, &err);
	if (rc == 0)
		rc = cli_spawn_program(&o, args, 1, "up command", &err);
	if (rc == 0)
		rc = cli_way_settle(cli, &o.way, args, args->v[0], NULL, &err);
	if (rc == 0)
		rc = cli_spawn(cli, &o, args->v[0], &s, &err);
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
	.args = "AGENT [-- PROGRAM ARG...]",
	.help = "a sandbox that stays; prints its name",
	.more = "Each chat opens a way to the model of its own: to the same provider and model,\n"
		"within the same budgets, unless it says otherwise. The key is read by chat.\n"
		"The agent `command` is any PROGRAM of the image, run for each chat.",
	.example = "sandbox-agent up claude --offline --workspace . --name calm-fox",
	.tables = { cli_way_options, cli_spawn_options },
	.options_size = sizeof(struct cli_spawn),
	.min_args = 1,
	.max_args = -1,
	.run = up,
};
