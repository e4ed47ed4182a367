/* SPDX-License-Identifier: MIT */
/*
 * pi (measured with 1.6.0): `pi -p --mode json`. Text in deltas, a call when it
 * begins and when it has ended, an exit status that is 0 whatever happened.
 */
#include "drivers/private.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct pi {
	bool streamed; /* the message under way has shown itself in deltas */
	bool settled;
	char *failure; /* of the last request, until it is asked again; NULL: none */
};

/* ---- command ---- */

#define PROVIDER      "sandbox"
#define PROVIDER_FILE SBA_DRIVER_DIR "/pi/provider.mjs"

extern const char sba_inside_pi_provider[] __attribute__((visibility("hidden")));

static const struct sba_driver_file files[] = {
	{ PROVIDER_FILE, 0644, sba_inside_pi_provider },
	{ NULL, 0, NULL },
};

/* Full: skills, settings and extensions of the workspace count. Else none that could
 * run a command does; servers that the user brought are another thing. */
static void put_permissions(const struct sba_turn_spec *spec, struct sba_command *c)
{
	static const char *const full[] = { "--approve", NULL };
	static const char *const closed[] = { "--no-approve", "--no-extensions", "-e",
					      "builtin:mcp",  "--tools",         NULL };
	if (spec->permissions == SBA_PERMISSIONS_FULL) {
		sba_command_args(c, full);
		return;
	}
	sba_command_args(c, closed);
	sba_command_arg(c, spec->permissions == SBA_PERMISSIONS_EDIT
				   ? "read,grep,find,ls,edit,write"
				   : "read,grep,find,ls");
}

/* The extension declares the provider from the environment: models.json takes no
 * address from there. */
static int pi_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		      struct sba_error *err SBA_UNUSED)
{
	static const char *const headless[] = { "-p", "--mode", "json", NULL };
	static const char *const env[] = { "PI_OFFLINE=1", "PI_TELEMETRY=0", NULL };
	const char *model = spec->model ? spec->model : sba_driver_pi.offline_model;
	const char *id = spec->session ? spec->session : spec->new_session;
	sba_command_arg(ret, "pi");
	if (!spec->screen)
		sba_command_args(ret, headless);
	put_permissions(spec, ret);
	sba_command_arg(ret, "-e");
	sba_command_file(ret, spec, PROVIDER_FILE);
	if (spec->model || !spec->login) {
		sba_command_arg(ret, "--model");
		sba_command_argf(ret, "%s%s", spec->login ? "" : PROVIDER "/", model);
	}
	if (id) {
		/* Makes it or goes on with it. */
		sba_command_arg(ret, "--session-id");
		sba_command_arg(ret, id);
	}
	if (spec->scratch) {
		sba_command_arg(ret, "--session-dir");
		sba_command_arg(ret, spec->scratch);
	}
	sba_command_envs(ret, env);
	if (!spec->login) {
		sba_command_env_url(ret, "SANDBOX_AGENT_MODEL_URL", spec, "/v1");
		sba_command_env(ret, "SANDBOX_AGENT_MODEL_KEY", spec->token);
		sba_command_env(ret, "SANDBOX_AGENT_MODEL", model);
	}
	if (spec->mcp)
		sba_command_env_file(ret, "SANDBOX_AGENT_MCP", spec, sba_driver_pi.mcp_path);
	return 0;
}

/* ---- tools ---- */

static const struct sba_tool_name tool_names[] = {
	{ "bash", "bash" }, { "read", "read" }, { "write", "write" }, { "edit", "edit" },
	{ "grep", "grep" }, { "find", "glob" }, { "skill", "skill" },
};

static int on_tool_start(struct sba_stream *s, struct pi *p SBA_UNUSED, const json_t *line)
{
	SBA_BUF struct sba_buf scratch = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	const char *native = sba_json_str(line, "toolName");
	if (!native)
		return sba_stream_unknown(s, "a tool call without a name");
	return sba_stream_call(
		s, &(struct sba_tool_use){
			   .native = native,
			   .name = sba_tool_name_mcp(tool_names, SBA_ARRAY_LEN(tool_names), native,
						     &scratch),
			   .call_id = sba_json_str(line, "toolCallId"),
			   .input = json_object_get(line, "args"),
		   });
}

static bool is_change(const char *tool)
{
	return tool && (strcmp(tool, "write") == 0 || strcmp(tool, "edit") == 0);
}

/* A command's without pi's words about its status, unless it was cut: they say where the
 * rest is. */
static void put_output(struct sba_buf *b, const json_t *result)
{
	const char *output = sba_json_str(result, "structuredContent.output");
	if (output && !sba_json_bool(result, "structuredContent.truncated", true))
		sba_buf_puts(b, output);
	else
		sba_content_put(b, json_object_get(result, "content"));
}

static int on_tool_end(struct sba_stream *s, struct pi *p SBA_UNUSED, const json_t *line)
{
	SBA_BUF struct sba_buf output = SBA_BUF_INIT(SBA_LINE_MAX);
	const char *id = sba_json_str(line, "toolCallId");
	const char *native = sba_stream_open_tool(s, id);
	const json_t *code = sba_json_get(line, "result.structuredContent.exit_code");
	int exit_code = sba_json_exit_code(line, "result.structuredContent.exit_code");
	bool failed = sba_json_bool(line, "isError", false);
	bool edit = native && strcmp(native, "edit") == 0;
	put_output(&output, json_object_get(line, "result"));
	int rc = failed || !is_change(native)
			 ? 0
			 : sba_stream_file_change(s, sba_stream_open_path(s, id),
						  edit ? "modified" : NULL);
	return rc ? rc
		  : sba_stream_result(s, &(struct sba_tool_use){
						 .call_id = id,
						 .output = output.data ? output.data : "",
						 .failed = failed || exit_code != 0,
						 .has_exit_code = json_is_number(code),
						 .exit_code = exit_code,
					 });
}

/* ---- messages ---- */

static int on_update(struct sba_stream *s, struct pi *p, const json_t *line)
{
	const json_t *event = json_object_get(line, "assistantMessageEvent");
	const char *type = sba_json_str(event, "type");
	if (!type)
		return sba_stream_unknown(s, "an update without a type");
	bool text = strcmp(type, "text_delta") == 0;
	if (sba_ends_with(type, "_start"))
		sba_stream_block_begin(s);
	if (!text && strcmp(type, "thinking_delta") != 0)
		return 0; /* ends and calls come again with the whole */
	p->streamed = true;
	return sba_stream_delta(s, text ? SBA_EVENT_TEXT : SBA_EVENT_THINKING,
				sba_json_str(event, "delta"));
}

static int on_message_start(struct sba_stream *s SBA_UNUSED, struct pi *p, const json_t *line)
{
	const char *role = sba_json_str(line, "message.role");
	if (role && strcmp(role, "assistant") == 0)
		p->streamed = false;
	return 0;
}

static int on_blocks(struct sba_stream *s, const json_t *content)
{
	size_t i;
	json_t *block;
	int rc = 0;
	json_array_foreach(content, i, block)
	{
		sba_stream_block_begin(s);
		rc = sba_stream_whole(s, SBA_EVENT_TEXT, sba_json_str(block, "text"));
		if (rc == 0)
			rc = sba_stream_whole(s, SBA_EVENT_THINKING,
					      sba_json_str(block, "thinking"));
		if (rc)
			break;
	}
	return rc;
}

/* Of one request; input comes without the cached part. */
static int on_usage(struct sba_stream *s, const json_t *usage)
{
	int64_t read = sba_json_count(usage, "cacheRead");
	int64_t made = sba_json_count(usage, "cacheWrite");
	struct sba_usage u = {
		.input = sba_json_count(usage, "input"),
		.cached_input = read,
		.output = sba_json_count(usage, "output"),
		.reasoning = sba_json_count(usage, "reasoning"),
		.cost_usd = json_number_value(sba_json_get(usage, "cost.total")),
	};
	sba_usage_add(&u, &(struct sba_usage){ .input = read });
	sba_usage_add(&u, &(struct sba_usage){ .input = made });
	if (u.input == 0 && u.output == 0)
		return 0;
	return sba_stream_usage(s, &u);
}

/* Takes "401: {"message": …}" apart; what is not of that form is the text itself, with
 * status 0. The caller frees *ret_body, from which the text may be lent. */
static const char *read_failure(const char *text, json_t **ret_body, int *ret_status)
{
	const char *brace = strchr(text, '{');
	*ret_body = brace ? json_loads(brace, 0, NULL) : NULL;
	*ret_status = sba_http_status(strtol(text, NULL, 10), NULL, "");
	const char *inner = sba_json_str(*ret_body, "message");
	return inner ? inner : text;
}

static int model_error(struct sba_stream *s, const char *text)
{
	SBA_JSON json_t *body = NULL;
	int status;
	const char *why = read_failure(text, &body, &status);
	return sba_stream_error(s, &(struct sba_failure){
					   .text = why,
					   .http_status = status,
					   .model = true,
					   .retryable = status == 0 || sba_http_retryable(status),
				   });
}

static int on_message_end(struct sba_stream *s, struct pi *p, const json_t *line)
{
	const json_t *m = json_object_get(line, "message");
	const char *role = sba_json_str(m, "role");
	const char *stop = sba_json_str(m, "stopReason");
	const char *why = sba_json_str(m, "errorMessage");
	if (!role || strcmp(role, "assistant") != 0)
		return 0;
	free(p->failure);
	bool broken = stop && (strcmp(stop, "error") == 0 || strcmp(stop, "aborted") == 0);
	p->failure = broken ? strdup(why ? why : stop) : NULL;
	int rc = p->streamed ? 0 : on_blocks(s, json_object_get(m, "content"));
	p->streamed = false;
	if (rc == 0)
		rc = on_usage(s, json_object_get(m, "usage"));
	if (rc == 0 && stop && strcmp(stop, "length") == 0)
		rc = sba_stream_notice(s, "the model's output limit cut the answer");
	return rc;
}

/* ---- the turn ---- */

static int on_agent_start(struct sba_stream *s, struct pi *p, const json_t *line SBA_UNUSED)
{
	p->settled = false;
	sba_stream_set_done(s, false);
	return 0;
}

static int on_retry(struct sba_stream *s, struct pi *p, const json_t *line)
{
	const char *text = sba_json_str(line, "errorMessage");
	SBA_JSON json_t *body = NULL;
	int status = 0;
	const char *why = text ? read_failure(text, &body, &status) : NULL;
	free(p->failure);
	p->failure = NULL;
	return sba_stream_retry(s, why == text ? 0 : status, why,
				sba_json_number(line, "attempt", 0),
				sba_json_number(line, "maxAttempts", 0));
}

static int on_settled(struct sba_stream *s, struct pi *p, const json_t *line SBA_UNUSED)
{
	int rc = p->failure ? model_error(s, p->failure) : 0;
	if (rc)
		return rc;
	p->settled = true;
	sba_stream_set_done(s, true);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

/* A session of another folder is not found, and one of its name begun; what tells them
 * apart is when they began. */
static int on_session(struct sba_stream *s, struct pi *p SBA_UNUSED, const json_t *line)
{
	const char *began = sba_json_str(line, "timestamp");
	const char *kept = sba_stream_kept(s);
	bool strayed = sba_stream_resumes(s) && kept && began && strcmp(kept, began) != 0;
	int rc = sba_stream_found_session(s, sba_json_str(line, "id"));
	if (began)
		sba_stream_keep(s, began);
	if (rc || !strayed)
		return rc;
	return sba_stream_notice(s, "pi does not remember what was said before: it finds "
				    "a session only in the folder where it began");
}

static int on_nothing(struct sba_stream *s SBA_UNUSED, struct pi *p SBA_UNUSED,
		      const json_t *line SBA_UNUSED)
{
	return 0;
}

static int pi_object(struct sba_stream *s, void *state, const json_t *line)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct pi *p, const json_t *line);
	} lines[] = {
		{ "message_update", on_update },
		{ "tool_execution_update", on_nothing },
		{ "tool_execution_start", on_tool_start },
		{ "tool_execution_end", on_tool_end },
		{ "message_start", on_message_start },
		{ "message_end", on_message_end },
		{ "session", on_session },
		{ "agent_start", on_agent_start },
		{ "agent_end", on_nothing },
		{ "agent_settled", on_settled },
		{ "turn_start", on_nothing },
		{ "turn_end", on_nothing },
		{ "auto_retry_start", on_retry },
		{ "auto_retry_end", on_nothing },
		{ "entry_appended", on_nothing },
	};
	const char *type = sba_json_str(line, "type");
	if (!type)
		return sba_stream_unknown(s, "a line without a type");
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++) {
		if (strcmp(type, lines[i].type) == 0)
			return lines[i].on(s, state, line);
	}
	return sba_stream_unknown(s, "a line of type '%s'", type);
}

static int pi_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	return sba_stream_object(s, state, line, len, pi_object);
}

static void pi_finish(struct sba_stream *s, void *state, int exit_status,
		      struct sba_outcome *outcome)
{
	const struct pi *p = state;
	if (sba_stream_failed(s))
		sba_outcome_failure(s, outcome);
	else if (!p->settled && exit_status == 0)
		sba_outcome_set(s, outcome, SBA_VERDICT_AGENT_FAILED,
				"pi ended in the middle of its turn%s%s", p->failure ? ": " : "",
				p->failure ? p->failure : "");
}

static void pi_fini(void *state)
{
	struct pi *p = state;
	free(p->failure);
}

static const struct sba_login login = {
	.path = ".pi/agent/auth.json",
	.variable = "PI_CODING_AGENT_DIR",
	.beneath = "auth.json",
	.how = "pi, then /login",
};

const struct sba_driver sba_driver_pi = {
	.size = sizeof(struct sba_driver),
	.name = "pi",
	.binary = "pi",
	.install = "an image that has it:  sandbox-agent image build pi\n"
		   "or, inside, with node:  npm install -g @earendil-works/pi-coding-agent",
	.api = SBA_API_CHAT_COMPLETIONS,
	.offline_model = "scripted",
	.needs_model = true,
	.files = files,
	.command = pi_command,
	.state_size = sizeof(struct pi),
	.state_fini = pi_fini,
	.line = pi_line,
	.finish = pi_finish,
	.rules = ".pi/agent/AGENTS.md",
	.skills = ".pi/agent/skills",
	.store = &sba_pi_store,
	.keeps_read_only = true,
	.keeps_edit = true,
	.has_screen = true,
	.mcp_path = SBA_LODGING_DIR "/mcp.json",
	.login = &login,
};
