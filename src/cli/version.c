/* SPDX-License-Identifier: MIT */
/* `version`: of the program and of the guest that it carries. */
#include "cli.h"

static int version(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:s}", "v", 1, "version", sba_version(),
					"guest", sba_guest_hash()));
	else
		printf("sandbox-agent %s (guest %s)\n", sba_version(), sba_guest_hash());
	return 0;
}

const struct cli_command cli_command_version = {
	.name = "version",
	.no_config = true,
	.args = "",
	.help = "of the program and of its guest",
	.example = "sandbox-agent version --json",
	.run = version,
};
