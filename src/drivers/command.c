/* SPDX-License-Identifier: MIT */
/*
 * `command`: any program that takes a prompt on stdin and prints an answer. The
 * user names it when the sandbox is made; its lines are the answer, its exit
 * status the verdict.
 */
#include "drivers/private.h"

#include "base/limits.h"

#include <string.h>

struct command {
	bool began;
};

/* A model that was asked for is offered under the names that client libraries
 * look for. */
static void put_model(const struct sba_turn_spec *spec, struct sba_command *c)
{
	sba_command_env_url(c, "OPENAI_BASE_URL", spec, "/v1");
	sba_command_env(c, "OPENAI_API_KEY", spec->token);
	sba_command_env_url(c, "ANTHROPIC_BASE_URL", spec, "");
	sba_command_env(c, "ANTHROPIC_API_KEY", spec->token);
}

static int command_command(const struct sba_turn_spec *spec, struct sba_command *ret,
			   struct sba_error *err)
{
	if (!spec->program || !spec->program[0])
		return sba_hint(err, sba_fail(err, SBA_EINVAL, "the sandbox has no program to run"),
				"name it after --:  sandbox-agent run command --image REF PROMPT "
				"-- PROGRAM ARG...");
	sba_command_args(ret, spec->program);
	if (spec->base_url)
		put_model(spec, ret);
	if (spec->model)
		sba_command_env(ret, "SANDBOX_AGENT_MODEL", spec->model);
	if (spec->session)
		sba_command_env(ret, "SANDBOX_AGENT_RESUME", spec->session);
	else if (spec->new_session)
		sba_command_env(ret, "SANDBOX_AGENT_SESSION", spec->new_session);
	return 0;
}

/* The newline goes before the next line, so that the answer ends without one. */
static int command_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	struct command *c = state;
	SBA_BUF struct sba_buf text = SBA_BUF_INIT((size_t)3 * SBA_LINE_MAX);
	if (c->began)
		sba_buf_putc(&text, '\n');
	c->began = true;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	for (size_t i = 0; i < len;) {
		const char *nul = memchr(line + i, '\0', len - i);
		size_t n = nul ? (size_t)(nul - line) - i : len - i;
		sba_buf_put_utf8(&text, line + i, n);
		if (nul)
			sba_buf_puts(&text, "\xEF\xBF\xBD");
		i += n + (nul != NULL);
	}
	int rc = sba_stream_found_session(s, sba_stream_asked_session(s));
	return rc ? rc : sba_stream_delta(s, SBA_EVENT_TEXT, text.data);
}

static void command_finish(struct sba_stream *s, void *state SBA_UNUSED, int exit_status SBA_UNUSED,
			   struct sba_outcome *outcome)
{
	sba_stream_assume_session(s);
	outcome->session = sba_stream_session(s);
}

const struct sba_driver sba_driver_command = {
	.size = sizeof(struct sba_driver),
	.name = "command",
	.api = SBA_API_ANY,
	.command = command_command,
	.state_size = sizeof(struct command),
	.line = command_line,
	.finish = command_finish,
};
