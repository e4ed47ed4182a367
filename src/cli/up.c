/* SPDX-License-Identifier: MIT */
/* `up`: a sandbox with an agent that stays. */
#include "cli.h"

#include <string.h>

static const struct cli_option up_options[] = {
	{ "in", 0, CLI_STRING, "SANDBOX", "moves into one that `create` made",
	  offsetof(struct cli_spawn, in), 0 },
	{ 0 },
};

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

/* ---- into a sandbox that is there ---- */

/* What a sandbox is made with, it has; what a model costs and where its key goes is
 * each chat's to say, as what is kept inside is not beyond doubt. */
static int check_in(const struct cli_args *args, struct sba_error *err)
{
	static const char *const fits[] = {
		"offline", "permissions", "mcp", "skill", "rules", "in"
	};
	for (size_t i = 0; i < args->given_n; i++) {
		const char *name = args->given[i]->name;
		bool ok = false, of_sandbox = false;
		for (size_t k = 0; k < CLI_LEN(fits); k++)
			ok |= !strcmp(fits[k], name);
		for (const struct cli_option *o = cli_global_options; o->name; o++)
			ok |= !strcmp(o->name, name);
		for (const struct cli_option *o = cli_spawn_options; o->name; o++)
			of_sandbox |= !strcmp(o->name, name);
		if (!strcmp(name, "login-files"))
			return cli_fail(
				err, SBA_EINVAL,
				"up makes one for it:  sandbox-agent up AGENT --login-files",
				"--login-files is for a sandbox that is made for it");
		if (!ok)
			return cli_fail(err, SBA_EINVAL,
					of_sandbox ? "give it to create" : "give it to chat",
					"--%s does not go with --in", name);
	}
	return 0;
}

static int move_in(struct cli *cli, struct cli_spawn *o, const struct cli_args *args,
		   struct sba_sandbox **ret, struct sba_error *err)
{
	const char *agent = args->v[0];
	struct sba_sandbox *s = NULL;
	int rc = check_in(args, err);
	if (rc == 0)
		rc = cli_lodging_read(o, agent, err);
	if (rc == 0)
		rc = cli_sandbox(cli, o->in, &s, err);
	if (rc == 0)
		rc = cli_lodging_move_in(cli, o, agent, s, err);
	cli_lodging_forget(o);
	if (rc < 0)
		sba_sandbox_close(s);
	else
		*ret = s;
	return rc;
}

/* ---- the command ---- */

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
		rc = o.in ? move_in(cli, &o, args, &s, &err)
			  : cli_spawn_anywhere(cli, &o, NULL, args, args->v[0], &s, &err);
	return rc < 0 ? cli_not_spawned(cli, &err)
		      : cli_spawned(cli, s, "talk with it:  sandbox-agent chat", " \"hello\"");
}

const struct cli_command cli_command_up = {
	.name = "up",
	.args = "AGENT [-- PROGRAM ARG...]",
	.help = "a sandbox that stays; prints its name",
	.more = "Each chat opens a way to the model of its own: to the same provider and model,\n"
		"within the same budgets, unless it says otherwise. The key is read by chat.\n"
		"The agent `command` is any PROGRAM of the image, run for each chat.\n"
		"With --in the agent moves into a sandbox of `create`, which then has it for good.",
	.example = "sandbox-agent up claude --offline --workspace . --name calm-fox",
	.tables = { up_options, cli_way_options, cli_spawn_options, cli_lodging_options },
	.options_size = sizeof(struct cli_spawn),
	.min_args = 1,
	.max_args = -1,
	.run = up,
};
