/* SPDX-License-Identifier: MIT */
/* `shell`: the best shell that the image has. */
#include "cli.h"

#include <unistd.h>

static const struct cli_option shell_options[] = {
	{ "user", 'u', CLI_STRING, "USER", "who it runs as (default: the sandbox's)",
	  offsetof(struct cli_exec, user), 0 },
	{ "workdir", 'w', CLI_STRING, "DIR", "where it runs (default: the image's)",
	  offsetof(struct cli_exec, workdir), 0 },
	{ "env", 'e', CLI_LIST, "K=V", "a variable; K alone passes ours on",
	  offsetof(struct cli_exec, env), 0 },
	CLI_CONTAINER_OPTION(offsetof(struct cli_exec, container)),
	{ 0 },
};

/* Without a terminal what comes on stdin is a script for it. */
static int shell(struct cli *cli, const void *options, const struct cli_args *args)
{
	static const char *const argv[] = { "sh", "-c",
					    "command -v bash >/dev/null 2>&1 && exec bash; exec sh",
					    NULL };
	struct cli_exec o = *(const struct cli_exec *)options;
	o.interactive = true;
	o.tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	o.timeout = -1;
	/* Who types `kill` means what they see in `ps`. */
	o.signal_others = true;
	return cli_exec_run(cli, args->v[0], &o, argv);
}

const struct cli_command cli_command_shell = {
	.name = "shell",
	.args = "NAME",
	.help = "a shell inside; without a terminal, stdin is its script",
	.example = "sandbox-agent shell calm-fox",
	.tables = { shell_options },
	.options_size = sizeof(struct cli_exec),
	.min_args = 1,
	.max_args = 1,
	.failure = CLI_EXIT_EXEC,
	.run = shell,
};
