/* SPDX-License-Identifier: MIT */
/* `pool`: sandboxes that are ready before anybody wants them. */
#include "cli.h"

/* ---- fill ---- */

struct fill_options {
	struct cli_spawn spawn; /* first: its table counts from here */
	int64_t count;
};

static const struct cli_option fill_options[] = {
	{ "count", 'n', CLI_INT, "N", "so many shall be ready (1)",
	  offsetof(struct fill_options, count), 1 },
	{ 0 },
};

static int check_fill(const struct cli_spawn *o, struct sba_error *err)
{
	if (o->name)
		return cli_fail(err, SBA_EINVAL, "run and up take --name", "%s",
				"--name: what is in the pool gets its name from who claims it");
	if (o->workspace)
		return cli_fail(err, SBA_EINVAL, "run and up take --workspace", "%s",
				"--workspace: a folder is copied in once a sandbox is claimed");
	return 0;
}

static void filled(struct cli *cli, const char *agent, size_t made)
{
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:I}", "v", 1, "agent", agent, "made",
					(json_int_t)made));
	else if (made)
		cli_note(cli, "made %zu for %s", made, agent);
	else
		cli_note(cli, "enough are ready for %s", agent);
}

static int fill(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct fill_options o = *(const struct fill_options *)options;
	struct sba_error err;
	size_t made = 0;
	int rc = check_fill(&o.spawn, &err);
	if (rc == 0)
		rc = cli_way_settle(cli, &o.spawn.way, args, args->v[0], NULL, &err);
	if (rc == 0)
		rc = cli_spawn_fill(cli, &o.spawn, args->v[0], o.count ? (size_t)o.count : 1, &made,
				    &err);
	if (rc < 0 && cli_signals_caught())
		return cli_signals_exit(cli, 1, "what was made is ready");
	if (rc < 0)
		return cli_report(cli, &err);
	filled(cli, args->v[0], made);
	return 0;
}

const struct cli_command cli_command_pool_fill = {
	.name = "pool fill",
	.args = "AGENT",
	.help = "makes sandboxes that run and up with the same options claim",
	.more = "They wait for their keepalive (1h), and end as every other sandbox does. An\n"
		"environment (-e) is refused: anybody may claim.",
	.example = "sandbox-agent pool fill claude --offline -n 2",
	.tables = { fill_options, cli_way_options, cli_spawn_options },
	.options_size = sizeof(struct fill_options),
	.min_args = 1,
	.max_args = 1,
	.run = fill,
};

/* ---- ls ---- */

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	const struct sba_list_options lo = { .prefix = cli->prefix, .ready = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error err;
	int rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_sandbox_list(cli->engine, &lo, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	cli_ps_print(cli, l);
	sba_sandbox_list_free(l);
	return 0;
}

const struct cli_command cli_command_pool_ls = {
	.name = "pool ls",
	.args = "",
	.help = "what is ready",
	.example = "sandbox-agent pool ls",
	.run = ls,
};

/* ---- drain ---- */

static int drain(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_error err;
	int removed = 0;
	int rc = args->n ? cli_check_agent(args->v[0], &err) : 0;
	if (rc == 0)
		rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_pool_drain(cli->engine, cli->prefix, args->v[0], &removed, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:i}", "v", 1, "removed", removed));
	else if (removed)
		cli_note(cli, "removed %d", removed);
	else
		cli_note(cli, "nothing was ready");
	return 0;
}

const struct cli_command cli_command_pool_drain = {
	.name = "pool drain",
	.args = "[AGENT]",
	.help = "removes what is ready and unclaimed",
	.example = "sandbox-agent pool drain",
	.max_args = 1,
	.run = drain,
};
