/* SPDX-License-Identifier: MIT */
/* `chat`: one turn on the main line of a sandbox's agent; `ask`: one beside it. */
#include "cli.h"

#include <string.h>

struct chat_options {
	struct cli_way way; /* first: its table counts from here */
	int64_t timeout, idle_timeout;
	bool wait;
};

#define FIELD(name) offsetof(struct chat_options, name)

#define TURN_OPTIONS                                                                               \
	CLI_SCRIPT_OPTION(FIELD(way.script)),                                                      \
		{ "timeout",      0, CLI_DURATION, "TIME", "of the turn (30m; 0: none)",           \
		  FIELD(timeout), 0 },                                                             \
	{                                                                                          \
		"idle-timeout", 0, CLI_DURATION, "TIME",                                           \
			"ends a turn that is quiet so long (10m; 0: none)", FIELD(idle_timeout), 0 \
	}

static const struct cli_option ask_options[] = { TURN_OPTIONS, { 0 } };
static const struct cli_option chat_options[] = {
	TURN_OPTIONS,
	{ "wait", 0, CLI_FLAG, NULL, "for the end of a turn that is under way", FIELD(wait), 0 },
	{ 0 },
};

/* Each turn has a way of its own: options, then what the sandbox was made for, then
 * the configuration. */
static int settle(struct cli *cli, struct chat_options *o, const struct cli_args *args,
		  const struct sba_sandbox_info *info, struct sba_error *err)
{
	/* Without an agent the library knows what to say. */
	if (!info->agent[0])
		return 0;
	const struct sba_config_scope scope = { .agent = info->agent };
	int rc = cli_settings_apply(cli, cli->command, args, o, &scope, err);
	if (rc == 0)
		rc = cli_way_settle(cli, &o->way, args, info->agent, info, err);
	return rc == 0 ? cli_way_read(cli, &o->way, info->agent, err) : rc;
}

static int turn(struct cli *cli, const struct chat_options *given, const struct cli_args *args,
		bool aside)
{
	struct chat_options o = *given;
	CLI_FREE char *prompt = NULL;
	size_t len = 0;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	if (args->n > 2)
		return cli_usage(cli, cli->command->example,
				 "the prompt is one word for the shell");
	int rc = !aside && cli_screen_wanted(cli, args->v[1])
			 ? 0
			 : cli_turn_prompt(args->v[1], cli->command->example, &prompt, &len, &err);
	if (rc == 0)
		rc = cli_sandbox(cli, args->v[0], &s, &err);
	if (rc == 0)
		rc = sba_sandbox_find_agent(s, &err);
	if (rc == 0)
		rc = settle(cli, &o, args, sba_sandbox_info(s), &err);
	if (rc < 0) {
		sba_sandbox_close(s);
		cli_way_fini(&o.way);
		return cli_signals_caught() ? cli_signals_exit(cli, 1, "nothing was begun")
					    : cli_report(cli, &err);
	}
	struct cli_turn t = {
		.prompt = prompt,
		.prompt_len = len,
		.way = &o.way,
		.aside = aside,
		.wait = aside || o.wait,
		.timeout = o.timeout,
		.idle_timeout = o.idle_timeout,
	};
	int status = prompt ? cli_turn_run(cli, s, &t)
			    : cli_screen_run(cli, s, &o.way, o.wait ? CLI_SCREEN_WAITS : 0);
	sba_sandbox_close(s);
	cli_way_fini(&o.way);
	return cli_signals_exit(cli, status,
				t.begun || !prompt ? "the turn was ended, the sandbox lives on"
						   : "nothing was begun");
}

static int chat(struct cli *cli, const void *options, const struct cli_args *args)
{
	return turn(cli, options, args, false);
}

static int ask(struct cli *cli, const void *options, const struct cli_args *args)
{
	return turn(cli, options, args, true);
}

const struct cli_command cli_command_chat = {
	.name = "chat",
	.args = "NAME [PROMPT]",
	.help = "one turn with the agent in NAME",
	.more = "A PROMPT of - is read from stdin; one that begins with - goes after --.\n"
		"Without a PROMPT, on a terminal: the CLI's own screen.",
	.example = "sandbox-agent chat calm-fox \"now make it faster\"",
	.tables = { chat_options, cli_way_options },
	.options_size = sizeof(struct chat_options),
	.min_args = 1,
	.max_args = -1,
	.run = chat,
};

const struct cli_command cli_command_ask = {
	.name = "ask",
	.args = "NAME QUESTION",
	.help = "a question beside the conversation, which does not hear of it",
	.more = "Answers with all that the session knows. Afterwards the session is what it was,\n"
		"byte for byte; what tools did to files stays. Waits for a turn that is under "
		"way.\n"
		"A QUESTION of - is read from stdin; one that begins with - goes after --.",
	.example = "sandbox-agent ask calm-fox \"which files did you change so far?\"",
	.tables = { ask_options, cli_way_options },
	.options_size = sizeof(struct chat_options),
	.min_args = 1,
	.max_args = -1,
	.run = ask,
};
