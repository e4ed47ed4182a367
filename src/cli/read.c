/* SPDX-License-Identifier: MIT */
/* `read`: one file of a sandbox to stdout. */
#include "cli.h"

#include <stdlib.h>

struct read_options {
	bool container;
	int64_t timeout;
};

static const struct cli_option read_options[] = {
	{ "timeout", 0, CLI_DURATION, "TIME", "for all of it (transfer_timeout: 5m)",
	  offsetof(struct read_options, timeout), 0 },
	CLI_CONTAINER_OPTION(offsetof(struct read_options, container)),
	{ 0 },
};

static int read_file(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct read_options *o = options;
	struct cli_stream stream = { 0 };
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	CLI_FREE char *path = cli_inside_path(args->v[1]);
	int rc = path ? cli_sandbox_or_container(cli, args->v[0], o->container, &s, &err)
		      : cli_fail_nomem(&err);
	if (rc == 0)
		rc = cli_inside_settle(s, args->v[1], &path, &err);
	if (rc == 0)
		rc = sba_sandbox_read(s, path, o->timeout, cli_stream_write, &stream, &err);
	const struct cli_moved m = { .from = path, .error = rc < 0 ? &err : NULL };
	cli_record_once(cli, s, "transfer", cli_record_transfer(&m));
	sba_sandbox_close(s);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "what came may be cut");
	if (stream.deaf)
		return EXIT_FAILURE;
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_read = {
	.name = "read",
	.args = "NAME PATH",
	.help = "one file of a sandbox to stdout, whatever its size",
	.more = "A PATH that does not begin with / is beneath /workspace. Links are followed.",
	.example = "sandbox-agent read calm-fox /workspace/report.txt",
	.tables = { read_options },
	.options_size = sizeof(struct read_options),
	.min_args = 2,
	.max_args = 2,
	.run = read_file,
};
