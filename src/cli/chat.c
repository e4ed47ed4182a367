/* SPDX-License-Identifier: MIT */
/* `chat`: one turn on the main line of a sandbox's agent. */
#include "cli.h"

#include <string.h>

struct chat_options {
	struct cli_way way; /* first: its table counts from here */
	int64_t timeout, idle_timeout;
};

#define FIELD(name) offsetof(struct chat_options, name)

static const struct cli_option chat_options[] = {
	CLI_SCRIPT_OPTION(FIELD(way.script)),
	{ "timeout", 0, CLI_DURATION, "TIME", "of the turn (30m; 0: none)", FIELD(timeout), 0 },
	{ "idle-timeout", 0, CLI_DURATION, "TIME",
	  "ends a turn that is quiet so long (10m; 0: none)", FIELD(idle_timeout), 0 },
	{ 0 },
};

/* What the sandbox was made for, unless this turn says otherwise. */
static struct cli_way way_of(const struct cli_way *asked, const struct sba_sandbox_info *info)
{
	struct cli_way w = *asked;
	bool elsewhere = w.provider || w.base_url || w.key_env || w.key_file;
	if (!strcmp(info->provider, "scripted")) {
		w.offline = !elsewhere;
		return w;
	}
	if (!w.offline && !w.provider && *info->provider)
		w.provider = info->provider;
	if (!w.offline && !w.base_url && *info->base_url)
		w.base_url = info->base_url;
	if (!w.offline && !w.key_env && !w.key_file && *info->key_env)
		w.key_env = info->key_env;
	return w;
}

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
	struct cli_way way = { 0 };
	int rc = cli_turn_prompt(args->v[1], cli_command_chat.example, &prompt, &len, &err);
	if (rc == 0)
		rc = cli_sandbox(cli, args->v[0], &s, &err);
	if (rc == 0) {
		const struct sba_sandbox_info *info = sba_sandbox_info(s);
		way = way_of(&o->way, info);
		/* Without an agent the library knows what to say. */
		rc = info->agent[0] ? cli_way_read(&way, info->agent, &err) : 0;
	}
	if (rc < 0) {
		sba_sandbox_close(s);
		cli_way_fini(&way);
		return cli_signals_caught() ? cli_signals_exit(cli, 1, "nothing was begun")
					    : cli_report(cli, &err);
	}
	struct cli_turn turn = {
		.prompt = prompt,
		.prompt_len = len,
		.way = &way,
		.timeout = o->timeout,
		.idle_timeout = o->idle_timeout,
	};
	int status = cli_turn_run(cli, s, &turn);
	sba_sandbox_close(s);
	cli_way_fini(&way);
	return cli_signals_exit(cli, status, "the turn was ended, the sandbox lives on");
}

const struct cli_command cli_command_chat = {
	.name = "chat",
	.args = "NAME PROMPT",
	.help = "one turn with the agent in NAME",
	.more = "A PROMPT of - is read from stdin; one that begins with - goes after --.",
	.example = "sandbox-agent chat calm-fox \"now make it faster\"",
	.tables = { chat_options, cli_way_options },
	.options_size = sizeof(struct chat_options),
	.min_args = 1,
	.max_args = -1,
	.run = chat,
};
