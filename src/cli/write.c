/* SPDX-License-Identifier: MIT */
/* `write`: stdin to one file of a sandbox. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct write_options {
	const char *mode, *owner;
	int64_t timeout;
	bool container;
};
#define FIELD(f) offsetof(struct write_options, f)

static const struct cli_option write_options[] = {
	{ "mode", 0, CLI_STRING, "MODE", "octal, as for chmod (default: kept, or 644)", FIELD(mode),
	  0 },
	{ "owner", 0, CLI_STRING, "USER[:GROUP]", "default: kept, or the sandbox's user",
	  FIELD(owner), 0 },
	{ "timeout", 0, CLI_DURATION, "TIME", "for all of it (transfer_timeout: 5m)",
	  FIELD(timeout), 0 },
	CLI_CONTAINER_OPTION(FIELD(container)),
	{ 0 },
};

static int parse_mode(const char *text, struct sba_write_options *ret, struct sba_error *err)
{
	char *end;
	if (!text)
		return 0;
	errno = 0;
	unsigned long mode = strtoul(text, &end, 8);
	if (!*text || strspn(text, "01234567") != strlen(text) || errno || mode > 07777)
		return cli_fail(err, SBA_EINVAL, "as in:  --mode 755", "--mode '%s': no octal mode",
				text);
	ret->set_mode = true;
	ret->mode = (uint32_t)mode;
	return 0;
}

static int write_file(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct write_options *o = options;
	struct sba_write_options w = { .owner = o->owner, .timeout_ms = o->timeout };
	struct cli_stream stream = { 0 };
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	CLI_FREE char *path = cli_inside_path(args->v[1]);
	int rc = path ? parse_mode(o->mode, &w, &err) : cli_fail_nomem(&err);
	if (rc < 0)
		return cli_report(cli, &err);
	rc = cli_sandbox_or_container(cli, args->v[0], o->container, &s, &err);
	if (rc == 0)
		rc = cli_inside_settle(s, args->v[1], &path, &err);
	if (rc == 0)
		rc = sba_sandbox_write(s, path, cli_stream_read, &stream, &w, &err);
	const struct cli_moved m = { .in = true, .to = path, .error = rc < 0 ? &err : NULL };
	cli_record_once(cli, s, "transfer", cli_record_transfer(&m));
	sba_sandbox_close(s);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing has been written");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_write = {
	.name = "write",
	.args = "NAME PATH",
	.help = "stdin to one file of a sandbox, whatever its size",
	.more = "A PATH that does not begin with / is beneath /workspace; missing folders are "
		"made.\n"
		"The file is replaced once all of it is there, and keeps its mode and owner.",
	.example = "sandbox-agent write calm-fox run.sh --mode 755 < run.sh",
	.tables = { write_options },
	.options_size = sizeof(struct write_options),
	.min_args = 2,
	.max_args = 2,
	.run = write_file,
};
