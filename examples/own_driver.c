/* SPDX-License-Identifier: MIT */
/*
 * A driver of one's own: an agent CLI that the library does not know, here a
 * shell script that is placed in the sandbox, with a stream of lines of its own:
 *
 *   id 4711              its session
 *   think ...            reasoning
 *   say ...              the answer
 *   run 0 ls -l          a command that it ran, with the exit status
 *   used 12 5            tokens in and out
 *   bye
 *
 * usage: own_driver IMAGE PROMPT
 */
#include <sandbox-agent/sandbox-agent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLI "/opt/parrot/parrot"

/* ---- the CLI: any program that is in the image would do ---- */

static const struct sba_driver_file files[] = {
	{ CLI, 0755,
	  "#!/bin/sh\n"
	  "prompt=$(cat)\n"
	  "echo \"id ${PARROT_SESSION:-parrot-$$}\"\n"
	  "echo 'think what was said?'\n"
	  "ls /workspace >/dev/null; echo \"run $? ls /workspace\"\n"
	  "echo \"say $prompt\"\n"
	  "echo 'used 12 5'\n"
	  "echo bye\n" },
	{ 0 },
};

static int command(const struct sba_turn_spec *turn, struct sba_command *ret, struct sba_error *err)
{
	(void)err;
	sba_command_arg(ret, CLI);
	if (turn->session)
		sba_command_env(ret, "PARROT_SESSION", turn->session);
	/* What it would need to call a model: its address, and a token for it. */
	sba_command_env(ret, "PARROT_BASE_URL", turn->base_url);
	sba_command_env(ret, "PARROT_KEY", turn->token);
	return 0;
}

/* ---- its lines ---- */

struct parrot {
	unsigned runs;
};

static int on_run(struct sba_stream *s, struct parrot *p, const char *rest)
{
	char id[16], input[600], *end;
	long status = strtol(rest, &end, 10);
	snprintf(id, sizeof(id), "%u", ++p->runs);
	/* Real input would come from a JSON library. */
	snprintf(input, sizeof(input), "{\"command\":\"%.500s\"}", end + strspn(end, " "));
	const struct sba_tell_tool tool = { .name = "bash",
					    .native = "run",
					    .call_id = id,
					    .input = input,
					    .has_exit_code = true,
					    .exit_code = (int)status };
	int rc = sba_tell_call(s, &tool);
	return rc ? rc : sba_tell_result(s, &tool);
}

static int on_used(struct sba_stream *s, const char *rest)
{
	char *end;
	struct sba_usage used = { .input = strtol(rest, &end, 10) };
	used.output = strtol(end, NULL, 10);
	return sba_tell_usage(s, &used);
}

/* The rest of the line behind its first word; NULL: another word. */
static const char *behind(const char *line, const char *word)
{
	size_t len = strlen(word);
	return strncmp(line, word, len) == 0 ? line + len : NULL;
}

static int on_line(struct sba_stream *s, void *state, const char *bytes, size_t len)
{
	char line[1000];
	const char *rest;
	snprintf(line, sizeof(line), "%.*s", len < sizeof(line) ? (int)len : (int)sizeof(line) - 1,
		 bytes);
	if ((rest = behind(line, "id ")))
		return sba_tell_session(s, rest);
	if ((rest = behind(line, "say ")))
		return sba_tell_text(s, rest, false);
	if ((rest = behind(line, "think ")))
		return sba_tell_thinking(s, rest, false);
	if ((rest = behind(line, "run ")))
		return on_run(s, state, rest);
	if ((rest = behind(line, "used ")))
		return on_used(s, rest);
	if (strcmp(line, "bye") == 0)
		return sba_tell_done(s);
	return sba_tell_unknown(s, line);
}

static const struct sba_driver parrot = {
	.size = sizeof(struct sba_driver),
	.name = "parrot",
	.binary = CLI,
	.api = SBA_API_CHAT_COMPLETIONS,
	.files = files,
	.command = command,
	.state_size = sizeof(struct parrot),
	.line = on_line,
};

/* ---- a turn with it ---- */

static int complain(const struct sba_error *err)
{
	fprintf(stderr, "own_driver: %s\n", err->text);
	return 1;
}

static void show(const struct sba_event *e)
{
	if (e->kind == SBA_EVENT_TEXT || e->kind == SBA_EVENT_THINKING)
		printf("%s: %s\n", sba_event_kind_name(e->kind), e->text);
	else if (e->kind == SBA_EVENT_TOOL_CALL)
		printf("%s: %s\n", e->tool, e->summary ? e->summary : "");
}

static int turn(struct sba_agent *a, const char *prompt, struct sba_error *err)
{
	const struct sba_turn_options options = { .prompt = prompt };
	const struct sba_event *e;
	struct sba_turn_result r;
	struct sba_turn *t;
	int rc = sba_turn_begin(a, &options, &t, err);
	if (rc < 0)
		return rc;
	while (sba_turn_next(t, -1, &e, err) > 0)
		show(e);
	sba_turn_result(t, &r);
	printf("%s, session %s, %lld tokens\n", sba_verdict_name(r.verdict), r.session,
	       (long long)(r.usage.input + r.usage.output));
	if (r.verdict != SBA_VERDICT_OK)
		*err = r.error;
	rc = r.verdict == SBA_VERDICT_OK ? 0 : r.error.code;
	sba_turn_free(t);
	return rc;
}

static int talk(struct sba_sandbox *s, const char *prompt, struct sba_error *err)
{
	const struct sba_agent_options options = { .driver = &parrot, .offline = true };
	struct sba_agent *a;
	int rc = sba_agent_open(s, &options, &a, err);
	if (rc < 0)
		return rc;
	/* Twice: the second goes on with the session of the first. */
	rc = turn(a, prompt, err);
	if (rc == 0)
		rc = turn(a, prompt, err);
	sba_agent_close(a);
	return rc;
}

int main(int argc, char **argv)
{
	struct sba_engine *e;
	struct sba_sandbox *s;
	struct sba_error err = { 0 };
	if (argc != 3) {
		fputs("usage: own_driver IMAGE PROMPT\n", stderr);
		return 2;
	}
	const struct sba_sandbox_options options = { .image = argv[1],
						     .prefix = getenv("SANDBOX_AGENT_PREFIX"),
						     .agent = parrot.name,
						     .keepalive_ms = 30 * 1000 };
	if (sba_engine_open(NULL, &e, &err) < 0)
		return complain(&err);
	int rc = sba_sandbox_create(e, &options, &s, &err);
	if (rc == 0) {
		rc = talk(s, argv[2], &err);
		sba_sandbox_remove(s, NULL);
		sba_sandbox_close(s);
	}
	sba_engine_close(e);
	return rc < 0 ? complain(&err) : 0;
}
