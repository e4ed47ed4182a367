/* SPDX-License-Identifier: MIT */
/* The one table of commands, and the options that every command knows. */
#include "cli.h"

#include <string.h>

#define GLOBAL(field) offsetof(struct cli, field)

const struct cli_option cli_global_options[] = {
	{ "host", 'H', CLI_STRING, "ENGINE",
	  "the engine: unix:///path, tcp://host:port, ssh://host", GLOBAL(host), 0 },
	{ "config", 0, CLI_STRING, "FILE", "settings (~/.config/sandbox-agent/config.json)",
	  GLOBAL(config_file), 0 },
	{ "prefix", 0, CLI_STRING, "WORD", "first word of what things are called on the engine",
	  GLOBAL(prefix), 0 },
	{ "json", 0, CLI_FLAG, NULL, "JSON on stdout, and errors as JSON on stderr", GLOBAL(json),
	  0 },
	{ "quiet", 'q', CLI_FLAG, NULL, "nothing but the data", GLOBAL(quiet), 0 },
	{ "verbose", 'v', CLI_FLAG, NULL, "all of it: thinking, outputs, names", GLOBAL(verbose),
	  0 },
	{ "color", 0, CLI_STRING, "auto|always|never", "colour in the output", GLOBAL(color), 0 },
	{ "no-audit", 0, CLI_FLAG, NULL, "keeps no record of what is said and done",
	  GLOBAL(no_audit), 0 },
	{ "help", 'h', CLI_FLAG, NULL, "this text", GLOBAL(help), 0 },
	{ "version", 0, CLI_FLAG, NULL, "which version this is", GLOBAL(version), 0 },
	{ 0 },
};

const struct cli_command *const cli_commands[] = {
	&cli_command_run,
	&cli_command_up,
	&cli_command_create,
	&cli_command_chat,
	&cli_command_ask,
	&cli_command_fork,
	&cli_command_diff,
	&cli_command_patch,
	&cli_command_apply,
	&cli_command_sessions_ls,
	&cli_command_sessions_use,
	&cli_command_sessions_fork,
	&cli_command_sessions_dump,
	&cli_command_sessions_load,
	&cli_command_sessions_rm,
	&cli_command_skills_add,
	&cli_command_skills_ls,
	&cli_command_skills_rm,
	&cli_command_rules_set,
	&cli_command_rules_show,
	&cli_command_exec,
	&cli_command_shell,
	&cli_command_cp,
	&cli_command_read,
	&cli_command_write,
	&cli_command_snapshot,
	&cli_command_port,
	&cli_command_ps,
	&cli_command_inspect,
	&cli_command_stop,
	&cli_command_rm,
	&cli_command_gc,
	&cli_command_image_tag,
	&cli_command_image_build,
	&cli_command_image_pull,
	&cli_command_image_push,
	&cli_command_image_lock,
	&cli_command_image_verify,
	&cli_command_image_ls,
	&cli_command_image_check,
	&cli_command_image_rm,
	&cli_command_image_save,
	&cli_command_image_load,
	&cli_command_pool_fill,
	&cli_command_pool_ls,
	&cli_command_pool_drain,
	&cli_command_logs,
	&cli_command_audit_ls,
	&cli_command_audit_show,
	&cli_command_audit_report,
	&cli_command_audit_path,
	&cli_command_audit_prune,
	&cli_command_model,
	&cli_command_driver_ls,
	&cli_command_driver_parse,
	&cli_command_doctor,
	&cli_command_config_show,
	&cli_command_config_schema,
	&cli_command_config_doc,
	&cli_command_completion,
	&cli_command_version,
	&cli_command_help,
	NULL,
};

/* Whether `name` is the words at `words`; *ret_words: how many of them. */
static bool names_words(const char *name, char *const *words, int *ret_words)
{
	size_t first = strcspn(name, " ");
	if (strlen(words[0]) != first || strncmp(name, words[0], first) != 0)
		return false;
	if (!name[first]) {
		*ret_words = 1;
		return true;
	}
	*ret_words = 2;
	return words[1] && !strcmp(name + first + 1, words[1]);
}

const struct cli_command *cli_command_find(char *const *words, int *ret_words)
{
	for (size_t i = 0; words[0] && cli_commands[i]; i++) {
		if (names_words(cli_commands[i]->name, words, ret_words))
			return cli_commands[i];
	}
	return NULL;
}

bool cli_command_group(const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; cli_commands[i]; i++) {
		const char *name = cli_commands[i]->name;
		if (!strncmp(name, word, len) && name[len] == ' ')
			return true;
	}
	return false;
}

const char *cli_command_habit(const char *word)
{
	static const char *const habits[][2] = {
		{ "attach", "sandbox-agent shell NAME goes in" },
		{ "build", "sandbox-agent image build" },
		{ "delete", "did you mean rm?" },
		{ "destroy", "did you mean rm?" },
		{ "down", "did you mean rm?" },
		{ "images", "did you mean image ls?" },
		{ "kill", "stop ends what runs inside, rm the sandbox" },
		{ "list", "did you mean ps?" },
		{ "ls", "did you mean ps?" },
		{ "pull", "sandbox-agent image pull" },
		{ "remove", "did you mean rm?" },
		{ "push", "sandbox-agent image push" },
		{ "restart", "rm and up make a new one" },
		{ "start", "did you mean up?" },
		{ "top", "sandbox-agent exec NAME ps shows what runs inside" },
	};
	for (size_t i = 0; i < CLI_LEN(habits); i++) {
		if (!strcmp(habits[i][0], word))
			return habits[i][1];
	}
	return NULL;
}

const char *cli_command_nearest(const char *word)
{
	const char *names[64];
	size_t n = 0;
	for (; cli_commands[n] && n < CLI_LEN(names); n++)
		names[n] = cli_commands[n]->name;
	int i = sba_nearest(word, names, n);
	return i < 0 ? NULL : names[i];
}
