/* SPDX-License-Identifier: MIT */
/* Codex: the command line and environment of a turn (0.171.0). */
#include "drivers/private.h"

#include <string.h>

#define PROVIDER "sandbox"
#define KEY_ENV  "SANDBOX_AGENT_MODEL_KEY"
/* What needs no quoting in TOML. */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:"

/* A provider of our own: the address goes by argument, the key by the variable
 * that the provider names. The built-in provider tries a WebSocket first and
 * ignores OPENAI_BASE_URL. */
static void put_provider(const struct sba_turn_spec *spec, struct sba_command *c)
{
	sba_command_arg(c, "-c");
	sba_command_arg(c, "model_provider=\"" PROVIDER "\"");
	sba_command_arg(c, "-c");
	sba_command_argf(c,
			 "model_providers." PROVIDER "={name=\"sandbox-agent\","
			 "base_url=\"%.*s/v1\",env_key=\"" KEY_ENV "\",wire_api=\"responses\","
			 "request_max_retries=2,stream_max_retries=1}",
			 sba_turn_base_len(spec), spec->base_url);
}

/* At its first start it asks whether to go over to the model that it takes for the
 * successor of the one that it was told to use (0.171). */
static void put_asked(const struct sba_turn_spec *spec, struct sba_command *c)
{
	const char *model = spec->model;
	if (!model || strspn(model, WORD) != strlen(model))
		return;
	sba_command_arg(c, "-c");
	sba_command_argf(c, "notice.model_migrations={\"%s\"=\"gpt-6-%s\"}", model,
			 strstr(model, "-luna") ? "luna" : "sol");
}

/* No configuration file: all of it belongs to this turn. stdin is the prompt,
 * and its end is waited for. */
int sba_codex_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		      struct sba_error *err SBA_UNUSED)
{
	static const char *const headless[] = { "exec", "--json", "--skip-git-repo-check", NULL };
	/* It asks whether it may trust a folder. */
	static const char *const screen[] = { "-c",
					      "projects={\"/workspace\"={trust_level="
					      "\"trusted\"}}",
					      NULL };
	static const char *const fixed[] = {
		/* bubblewrap finds no namespaces in a hardened container: every
		 * command would fail, and the turn be called a success. */
		"--dangerously-bypass-approvals-and-sandbox",
		/* Requests to others than the model. */
		"-c", "analytics.enabled=false", "-c", "otel.metrics_exporter=\"none\"", "-c",
		"check_for_update_on_startup=false", "-c", "features.plugins=false", "-c",
		"features.apps=false", "-c", "features.api_key_model_discovery=false",
		/* Otherwise a port that nobody listens on is asked for ever. */
		"-c", "features.unbounded_connection_retries=false",
		/* It would write the shell's environment into a file. */
		"-c", "features.shell_snapshot=false", NULL
	};
	sba_command_arg(ret, "codex");
	sba_command_args(ret, spec->screen ? screen : headless);
	sba_command_args(ret, fixed);
	if (!spec->login)
		put_provider(spec, ret);
	if (spec->screen)
		put_asked(spec, ret);
	if (spec->model) {
		sba_command_arg(ret, "-m");
		sba_command_arg(ret, spec->model);
	}
	if (spec->session) {
		/* `resume --ephemeral` writes into the session all the same. */
		sba_command_arg(ret, spec->aside ? "fork" : "resume");
		if (spec->aside)
			sba_command_arg(ret, "--ephemeral");
		sba_command_arg(ret, spec->session);
	} else if (spec->aside) {
		sba_command_arg(ret, "--ephemeral");
	}
	if (!spec->screen)
		sba_command_arg(ret, "-");
	if (!spec->login)
		sba_command_env(ret, KEY_ENV, spec->token);
	return 0;
}
