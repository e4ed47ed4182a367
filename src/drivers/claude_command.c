/* SPDX-License-Identifier: MIT */
/* Claude Code: the command line and environment of a turn (2.1.332). */
#include "drivers/private.h"

static int claude_argv(const struct sba_turn_spec *spec, struct sba_strv *v, struct sba_error *err)
{
	/* stream-json without --verbose is refused. */
	static const char *const fixed[] = { "claude",
					     "-p",
					     "--output-format",
					     "stream-json",
					     "--verbose",
					     "--include-partial-messages",
					     "--dangerously-skip-permissions",
					     "--model",
					     NULL };
	int rc = sba_strv_add_all(v, fixed, err);
	if (rc == 0)
		rc = sba_strv_add(v, spec->model ? spec->model : sba_driver_claude.default_model,
				  err);
	const char *id = spec->session ? spec->session : spec->new_session;
	if (rc < 0 || !id)
		return rc;
	rc = sba_strv_add(v, spec->session ? "--resume" : "--session-id", err);
	return rc < 0 ? rc : sba_strv_add(v, id, err);
}

static int claude_env(const struct sba_turn_spec *spec, struct sba_strv *v, struct sba_error *err)
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
	int rc = sba_strv_add_all(v, fixed, err);
	if (rc == 0)
		rc = sba_strv_addf(v, err, "ANTHROPIC_BASE_URL=%.*s", sba_turn_base_len(spec),
				   spec->base_url);
	return rc < 0 ? rc : sba_strv_addf(v, err, "ANTHROPIC_API_KEY=%s", spec->token);
}

int sba_claude_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err)
{
	struct sba_command c = { 0 };
	int rc = sba_turn_check(spec, err);
	if (rc == 0)
		rc = claude_argv(spec, &c.argv, err);
	if (rc == 0)
		rc = claude_env(spec, &c.env, err);
	if (rc < 0) {
		sba_command_fini(&c);
		return rc;
	}
	*ret = c;
	return 0;
}
