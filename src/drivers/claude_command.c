/* SPDX-License-Identifier: MIT */
/* Claude Code: the command line and environment of a turn (2.1.332). */
#include "drivers/private.h"

static void claude_env(const struct sba_turn_spec *spec, struct sba_command *c)
{
	static const char *const fixed[] = {
		/* Alone it silences everything but the model's requests (2.1.332);
		 * the other three are its parts, for versions before it. */
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		/* With a background command alive the process stays after its result. */
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
		/* The default of 10 makes a wrong key take three minutes. What a cut
		 * stream falls back to, one request without streaming, stays on: the
		 * turn survives, it is bounded by the same count, and the text that
		 * was shown already is not shown again. */
		"CLAUDE_CODE_MAX_RETRIES=2",
		/* root may not skip permissions otherwise. */
		"IS_SANDBOX=1", NULL
	};
	sba_command_envs(c, fixed);
	if (spec->login)
		return;
	sba_command_env_url(c, "ANTHROPIC_BASE_URL", spec, "");
	/* About a key the screen would ask whether it may be used. */
	sba_command_env(c, spec->screen ? "ANTHROPIC_AUTH_TOKEN" : "ANTHROPIC_API_KEY",
			spec->token);
}

/* Its own tools, as far as the permissions go. Skip-permissions means: ask nobody
 * about those. An edit asks, so that what configures claude itself stays as it is.
 * Hooks and servers of the workspace would run commands. */
static void put_permissions(const struct sba_turn_spec *spec, struct sba_command *c)
{
	static const char *const full[] = { "--dangerously-skip-permissions", NULL };
	static const char *const closed[] = { "--strict-mcp-config", "--settings",
					      "{\"disableAllHooks\":true}", "--tools", NULL };
	static const char *const edit[] = { "Read,Glob,Grep,Edit,Write,NotebookEdit",
					    "--permission-mode", "acceptEdits", "--allowedTools",
					    NULL };
	if (spec->permissions != SBA_PERMISSIONS_FULL)
		sba_command_args(c, closed);
	if (spec->permissions == SBA_PERMISSIONS_EDIT) {
		sba_command_args(c, edit);
		sba_command_arg(c, "Read,Glob,Grep");
		sba_command_each(c, spec->mcp, "mcp__");
		return;
	}
	if (spec->permissions == SBA_PERMISSIONS_READ_ONLY)
		sba_command_arg(c, "Read,Glob,Grep");
	sba_command_args(c, full);
}

int sba_claude_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err SBA_UNUSED)
{
	/* Together they read the session's file and write none. */
	static const char *const aside[] = { "--no-session-persistence", NULL };
	/* stream-json without --verbose is refused. */
	static const char *const headless[] = {
		"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		NULL
	};
	const char *id = spec->session ? spec->session : spec->new_session;
	sba_command_arg(ret, "claude");
	if (!spec->screen)
		sba_command_args(ret, headless);
	put_permissions(spec, ret);
	if (spec->mcp) {
		sba_command_arg(ret, "--mcp-config");
		sba_command_file(ret, spec, sba_driver_claude.mcp_path);
	}
	if (spec->model || !spec->login) {
		sba_command_arg(ret, "--model");
		sba_command_arg(ret, spec->model ? spec->model : sba_driver_claude.default_model);
	}
	if (id) {
		sba_command_arg(ret, spec->session ? "--resume" : "--session-id");
		sba_command_arg(ret, id);
	}
	if (spec->aside && spec->session)
		sba_command_arg(ret, "--fork-session");
	if (spec->aside)
		sba_command_args(ret, aside);
	claude_env(spec, ret);
	return 0;
}
