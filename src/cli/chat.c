/* SPDX-License-Identifier: MIT */
/* `chat`: one turn on the main line of a sandbox's agent. */
#include "cli.h"

#include <string.h>

struct chat_options {
	const char *model, *script;
	int64_t timeout, idle_timeout;
};

#define FIELD(name) offsetof(struct chat_options, name)

static const struct cli_option chat_options[] = {
	{ "model", 'm', CLI_STRING, "MODEL", "the model's name", FIELD(model), 0 },
	{ "script", 0, CLI_STRING, "FILE", "what the scripted model says", FIELD(script), 0 },
	{ "timeout", 0, CLI_DURATION, "TIME", "of the turn (30m; 0: none)", FIELD(timeout), 0 },
	{ "idle-timeout", 0, CLI_DURATION, "TIME",
	  "ends a turn that is quiet so long (10m; 0: none)", FIELD(idle_timeout), 0 },
	{ 0 },
};

static int chat(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct chat_options *o = options;
	CLI_FREE char *prompt = NULL;
	size_t len = 0;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	if (args->n > 2)
		return cli_usage(cli, "quote it:  sandbox-agent chat calm-fox \"go on\"",
				 "the prompt is one word for the shell");
	int rc = cli_turn_prompt(args->v[1], &prompt, &len, &err);
	if (rc == 0)
		rc = cli_sandbox(cli, args->v[0], &s, &err);
	if (rc < 0)
		return cli_signals_caught() ? cli_signals_exit(cli, 1, "nothing was begun")
					    : cli_report(cli, &err);
	struct cli_turn turn = {
		.prompt = prompt,
		.prompt_len = len,
		.model = o->model,
		.script = o->script,
		.offline = !strcmp(sba_sandbox_info(s)->provider, "scripted"),
		.timeout = o->timeout,
		.idle_timeout = o->idle_timeout,
	};
	int status = cli_turn_run(cli, s, &turn);
	sba_sandbox_close(s);
	return cli_signals_exit(cli, status, "the turn was ended, the sandbox lives on");
}

const struct cli_command cli_command_chat = {
	.name = "chat",
	.args = "NAME PROMPT",
	.help = "one turn with the agent in NAME",
	.more = "A PROMPT of - is read from stdin; one that begins with - goes after --.",
	.example = "sandbox-agent chat calm-fox \"now make it faster\"",
	.tables = { chat_options },
	.options_size = sizeof(struct chat_options),
	.min_args = 1,
	.max_args = -1,
	.run = chat,
};
