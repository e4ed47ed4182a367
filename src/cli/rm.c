/* SPDX-License-Identifier: MIT */
/* `stop`, `rm` and `gc`: ending commands, sandboxes, and what died half-made. */
#include "cli.h"

#include <string.h>

/* ---- stop ---- */

static int stop_one(struct cli *cli, const char *name, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	bool ended = false;
	int rc = cli_sandbox(cli, name, &s, err);
	if (rc == 0)
		rc = cli_settings_timeout(cli, "stop_timeout", sba_sandbox_stop(s, &ended, err),
					  err);
	sba_sandbox_close(s);
	if (rc < 0)
		return rc;
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:b}", "v", 1, "name", name, "ended", ended));
	cli_note(cli, ended ? "%s: its commands were ended" : "%s: nothing ran", name);
	return 0;
}

/* The others have their turn although one fails. */
static int each(struct cli *cli, const struct cli_args *args,
		int (*one)(struct cli *, const char *, struct sba_error *))
{
	int status = 0;
	for (int i = 0; i < args->n && !cli_signals_caught(); i++) {
		struct sba_error err;
		if (one(cli, args->v[i], &err) < 0)
			status = cli_report(cli, &err);
	}
	return cli_signals_exit(cli, status, "not all was done");
}

static int stop(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	return each(cli, args, stop_one);
}

const struct cli_command cli_command_stop = {
	.name = "stop",
	.args = "NAME...",
	.help = "ends what runs inside; the sandbox stays",
	.example = "sandbox-agent stop calm-fox",
	.min_args = 1,
	.max_args = -1,
	.run = stop,
};

/* ---- rm ---- */

struct rm_options {
	bool all;
};

static const struct cli_option rm_options[] = {
	{ "all", 0, CLI_FLAG, NULL, "every sandbox of ours", offsetof(struct rm_options, all), 0 },
	{ 0 },
};

static void removed(struct cli *cli, const char *name)
{
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:b}", "v", 1, "name", name, "removed", true));
	else if (!cli->quiet)
		printf("%s\n", name);
}

static int remove_found(struct cli *cli, const char *name, const char *shown, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = cli_sandbox(cli, name, &s, err);
	if (rc == 0)
		rc = cli_settings_timeout(cli, "stop_timeout", sba_sandbox_remove(s, err), err);
	sba_sandbox_close(s);
	if (rc == 0)
		removed(cli, shown);
	return rc;
}

static int remove_one(struct cli *cli, const char *name, struct sba_error *err)
{
	return remove_found(cli, name, name, err);
}

/* Half-made ones have no name that could be opened: gc takes them. */
static int remove_listed(struct cli *cli, const struct sba_sandbox_list *l)
{
	int status = 0;
	struct sba_error err;
	for (size_t n = 0; n < sba_sandbox_list_count(l) && !cli_signals_caught(); n++) {
		const struct sba_sandbox_info *i = sba_sandbox_list_at(l, n);
		if (i->foreign_schema)
			continue;
		int rc = remove_found(cli, i->id, i->name, &err);
		if (rc < 0 && rc != SBA_ENOTFOUND)
			status = cli_report(cli, &err);
	}
	if (!cli_signals_caught() && sba_gc(cli->engine, cli->prefix, NULL, &err) < 0)
		status = cli_report(cli, &err);
	return cli_signals_exit(cli, status, "not all was removed");
}

static int remove_all(struct cli *cli)
{
	struct sba_list_options lo = { .prefix = cli->prefix, .all = true, .brief = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error err;
	int rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_sandbox_list(cli->engine, &lo, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	int status = remove_listed(cli, l);
	if (sba_sandbox_list_count(l) == 0)
		cli_note(cli, "there was nothing to remove");
	sba_sandbox_list_free(l);
	return status;
}

static int rm(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct rm_options *o = options;
	if (o->all == (args->n > 0))
		return cli_usage(cli, "as in:  sandbox-agent rm calm-fox",
				 "rm takes names, or --all");
	return o->all ? remove_all(cli) : each(cli, args, remove_one);
}

const struct cli_command cli_command_rm = {
	.name = "rm",
	.args = "NAME...|--all",
	.help = "ends and removes",
	.example = "sandbox-agent rm calm-fox old-heron",
	.tables = { rm_options },
	.options_size = sizeof(struct rm_options),
	.max_args = -1,
	.run = rm,
};

/* ---- gc ---- */

int cli_removed(struct cli *cli, int n, const char *none)
{
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:i}", "v", 1, "removed", n));
	else if (n)
		cli_note(cli, "removed %d", n);
	else
		cli_note(cli, "%s", none);
	return 0;
}

static int gc(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	struct sba_error err;
	int n = 0;
	int rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_gc(cli->engine, cli->prefix, &n, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	return cli_removed(cli, n, "nothing was left over");
}

const struct cli_command cli_command_gc = {
	.name = "gc",
	.args = "",
	.help = "sweeps what died half-made",
	.example = "sandbox-agent gc",
	.run = gc,
};
