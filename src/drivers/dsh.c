/* SPDX-License-Identifier: MIT */
/*
 * dsh (measured with 0.1.0-rc.8): its headless profile with a runner of ours,
 * which prints the session's events. A session file is the same lines.
 */
#include "drivers/private.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct dsh {
	bool streamed; /* the message under way has shown itself in deltas */
	bool ended;
	bool cut; /* the answer, by the model's output limit */
};

/* ---- command ---- */

#define PATCH_FILE  SBA_DRIVER_DIR "/dsh/patch.yml"
#define RUNNER_FILE SBA_DRIVER_DIR "/dsh/runner.mjs"

extern const char sba_inside_dsh_patch[] __attribute__((visibility("hidden")));
extern const char sba_inside_dsh_runner[] __attribute__((visibility("hidden")));

static const struct sba_driver_file files[] = {
	{ PATCH_FILE, 0644, sba_inside_dsh_patch },
	{ RUNNER_FILE, 0644, sba_inside_dsh_runner },
	{ NULL, 0, NULL },
};

/* Nobody is there to approve what its own sandbox asks for. */
static const char *mode_of(enum sba_permissions p)
{
	switch (p) {
	case SBA_PERMISSIONS_READ_ONLY:
		return "read-only";
	case SBA_PERMISSIONS_EDIT:
		return "workspace-write";
	case SBA_PERMISSIONS_FULL:
		break;
	}
	return "danger-full-access";
}

static int dsh_command(const struct sba_turn_spec *spec, struct sba_command *ret,
		       struct sba_error *err)
{
	static const char *const fixed[] = { "dsh",     "--profile", "headless",
					     "--patch", PATCH_FILE,  NULL };
	/* Its patch names the runner by its place. */
	if (spec->root && *spec->root)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"dsh: its runner has a place in containers only");
	sba_command_args(ret, fixed);
	if (spec->mcp) {
		sba_command_arg(ret, "--patch");
		sba_command_arg(ret, sba_driver_dsh.mcp_path);
	}
	sba_command_env(ret, "DSH_TELEMETRY_DISABLED", "1");
	sba_command_env(ret, "DSH_PERMISSION_MODE", mode_of(spec->permissions));
	sba_command_env_url(ret, "DEEPSEEK_BASE_URL", spec, "/v1");
	sba_command_env(ret, "DEEPSEEK_API_KEY", spec->token);
	sba_command_env(ret, "SANDBOX_AGENT_MODEL", spec->model ? spec->model : "");
	sba_command_env(ret, "SANDBOX_AGENT_SESSION", spec->new_session ? spec->new_session : "");
	if (spec->scratch)
		sba_command_env(ret, "SANDBOX_AGENT_SESSIONS", spec->scratch);
	sba_command_env(ret, "SANDBOX_AGENT_RESUME", spec->session ? spec->session : "");
	return 0;
}

/* ---- tools ---- */

static const struct sba_tool_name tool_names[] = {
	{ "bash", "bash" },
	{ "read", "read" },
	{ "write", "write" },
	{ "edit", "edit" },
	{ "glob", "glob" },
	{ "grep", "grep" },
	{ "web_search", "web_search" },
	{ "web_fetch", "web_fetch" },
	{ "subagent", "task" },
	{ "skill", "skill" },
	{ "todo_write", "todo" },
	{ "str_replace_editor", "edit" },
};

static int on_call(struct sba_stream *s, struct dsh *d SBA_UNUSED, const json_t *data)
{
	SBA_BUF struct sba_buf scratch = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	const char *native = sba_json_str(data, "name");
	const char *arguments = sba_json_str(data, "arguments");
	SBA_JSON json_t *input = arguments ? json_loads(arguments, 0, NULL) : NULL;
	if (!native)
		return sba_stream_unknown(s, "a tool call without a name");
	return sba_stream_call(
		s, &(struct sba_tool_use){
			   .native = native,
			   .name = sba_tool_name_mcp(tool_names, SBA_ARRAY_LEN(tool_names), native,
						     &scratch),
			   .call_id = sba_json_str(data, "callId"),
			   .input = input,
		   });
}

/* A failing command's status is in its text only: "…\n[exit code: 3]". Takes it
 * off the end. */
static bool take_exit_code(struct sba_buf *output, int *ret)
{
	static const char open[] = "[exit code: ";
	size_t len = output->len, start = len;
	if (len == 0 || output->data[len - 1] != ']')
		return false;
	while (start > 0 && output->data[start - 1] != '\n')
		start--;
	if (!sba_starts_with(output->data + start, open))
		return false;
	SBA_FREE char *digits =
		strndup(output->data + start + strlen(open), len - start - strlen(open) - 1);
	int64_t code;
	if (!digits || sba_parse_int(digits, INT32_MIN, INT32_MAX, &code) < 0)
		return false;
	*ret = (int)code;
	output->len = start > 0 ? start - 1 : 0;
	output->data[output->len] = '\0';
	return true;
}

static int tell_change(struct sba_stream *s, const char *id)
{
	const char *native = sba_stream_open_tool(s, id);
	const char *name =
		native ? sba_tool_name(tool_names, SBA_ARRAY_LEN(tool_names), native) : "";
	bool edit = strcmp(name, "edit") == 0;
	if (!edit && strcmp(name, "write") != 0)
		return 0;
	return sba_stream_file_change(s, sba_stream_open_path(s, id), edit ? "modified" : NULL);
}

static int on_result(struct sba_stream *s, struct dsh *d SBA_UNUSED, const json_t *data)
{
	SBA_BUF struct sba_buf output = SBA_BUF_INIT(SBA_LINE_MAX);
	const json_t *block = sba_json_get(data, "message.content.#0");
	const char *id = sba_json_str(block, "toolCallId");
	const char *native = sba_stream_open_tool(s, id);
	bool failed = sba_json_bool(block, "isError", false);
	bool command = native && strcmp(native, "bash") == 0 && !failed;
	int exit_code = 0;
	sba_content_put(&output, json_object_get(block, "content"));
	bool told = command && take_exit_code(&output, &exit_code);
	int rc = failed ? 0 : tell_change(s, id);
	return rc ? rc
		  : sba_stream_result(s, &(struct sba_tool_use){
						 .call_id = id,
						 .output = output.data ? output.data : "",
						 .failed = failed || exit_code != 0,
						 .has_exit_code = told || command,
						 .exit_code = exit_code,
					 });
}

/* ---- messages ---- */

static int on_chunk(struct sba_stream *s, struct dsh *d, const json_t *data)
{
	const json_t *chunk = json_object_get(data, "chunk");
	const char *type = sba_json_str(chunk, "type");
	if (!type)
		return sba_stream_unknown(s, "a chunk without a type");
	bool text = strcmp(type, "text-delta") == 0;
	if (strcmp(type, "block-start") == 0)
		sba_stream_block_begin(s);
	if (!text && strcmp(type, "reasoning-delta") != 0)
		return 0;
	d->streamed = true;
	return sba_stream_delta(s, text ? SBA_EVENT_TEXT : SBA_EVENT_THINKING,
				sba_json_str(chunk, "text"));
}

static int on_block(struct sba_stream *s, const json_t *block)
{
	const char *type = sba_json_str(block, "type");
	sba_stream_block_begin(s);
	if (type && strcmp(type, "text") == 0)
		return sba_stream_whole(s, SBA_EVENT_TEXT, sba_json_str(block, "text"));
	if (type && strcmp(type, "reasoning") == 0)
		return sba_stream_whole(s, SBA_EVENT_THINKING, sba_json_str(block, "text"));
	return 0;
}

/* Of one request; input comes without the cached part. */
static int on_usage(struct sba_stream *s, const json_t *usage)
{
	int64_t read = sba_json_count(usage, "cacheReadTokens");
	struct sba_usage u = {
		.input = sba_json_count(usage, "inputTokens"),
		.cached_input = read,
		.output = sba_json_count(usage, "outputTokens"),
		.reasoning = sba_json_count(usage, "reasoningTokens"),
	};
	sba_usage_add(&u, &(struct sba_usage){ .input = read });
	return usage ? sba_stream_usage(s, &u) : 0;
}

static int on_message(struct sba_stream *s, struct dsh *d, const json_t *data)
{
	size_t i;
	json_t *block;
	int rc = 0;
	json_array_foreach(sba_json_get(data, "message.content"), i, block)
	{
		if (rc == 0 && !d->streamed)
			rc = on_block(s, block);
	}
	d->streamed = false;
	return rc ? rc : on_usage(s, json_object_get(data, "usage"));
}

/* ---- the turn ---- */

static int on_turn_start(struct sba_stream *s, struct dsh *d, const json_t *data SBA_UNUSED)
{
	d->ended = false;
	sba_stream_set_done(s, false);
	return 0;
}

static int on_retry(struct sba_stream *s, struct dsh *d SBA_UNUSED, const json_t *data)
{
	int status = sba_http_status(sba_json_number(data, "failure.status", 0), NULL, "");
	const char *why = sba_json_str(data, "failure.message");
	return sba_stream_retry(s, status, why, sba_json_number(data, "retry", 0),
				sba_json_number(data, "maxRetries", 0));
}

static int on_failure(struct sba_stream *s, const json_t *error)
{
	static const char *const transient[] = { "TRANSPORT", "TIMEOUT", "STREAM_CLOSED",
						 "EMPTY_RESPONSE" };
	const char *text = sba_json_str(error, "message");
	const char *code = sba_json_str(error, "code");
	int status = sba_http_status(sba_json_number(error, "status", 0), NULL, "");
	bool retryable = status && sba_http_retryable(status);
	for (size_t i = 0; code && i < SBA_ARRAY_LEN(transient); i++)
		retryable = retryable || strcmp(code, transient[i]) == 0;
	return sba_stream_error(s,
				&(struct sba_failure){
					.text = text ? text : code,
					.http_status = status,
					.model = !code || strcmp(code, "MISSING_CREDENTIAL") != 0,
					.retryable = retryable,
				});
}

static int on_turn_end(struct sba_stream *s, struct dsh *d, const json_t *data)
{
	const char *kind = sba_json_str(data, "reason.kind");
	int rc = 0;
	d->cut = kind && strcmp(kind, "max-tokens") == 0;
	d->ended = true;
	sba_stream_set_done(s, true);
	if (d->cut)
		rc = sba_stream_notice(s, "the model's output limit cut the answer");
	else if (kind && strcmp(kind, "error") == 0)
		rc = on_failure(s, sba_json_get(data, "reason.error"));
	else if (!kind || strcmp(kind, "completed") != 0)
		rc = sba_stream_error(s, &(struct sba_failure){ .text = kind });
	return rc ? rc : sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

/* ---- lines ---- */

/* What a session holds beside the conversation. */
static bool is_quiet(const char *type)
{
	static const char *const prefixes[] = {
		"agent/",   "approval/", "compaction/", "llm/",  "permission/",
		"request/", "sandbox/",  "session/",    "step/", "user/",
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(prefixes); i++) {
		if (sba_starts_with(type, prefixes[i]))
			return true;
	}
	return false;
}

static int dsh_object(struct sba_stream *s, void *state, const json_t *line)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct dsh *d, const json_t *data);
	} lines[] = {
		{ "assistant/chunk", on_chunk }, { "assistant/message", on_message },
		{ "tool/call", on_call },        { "tool/result", on_result },
		{ "turn/start", on_turn_start }, { "turn/end", on_turn_end },
		{ "llm/retry", on_retry },
	};
	const char *type = sba_json_str(line, "type");
	if (!type)
		return sba_stream_unknown(s, "a line without a type");
	if (strcmp(type, "session") == 0)
		return sba_stream_found_session(s, sba_json_str(line, "id"));
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++) {
		if (strcmp(type, lines[i].type) == 0)
			return lines[i].on(s, state, json_object_get(line, "data"));
	}
	return is_quiet(type) ? 0 : sba_stream_unknown(s, "a line of type '%s'", type);
}

static int dsh_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	return sba_stream_object(s, state, line, len, dsh_object);
}

static void dsh_finish(struct sba_stream *s, void *state, int exit_status,
		       struct sba_outcome *outcome)
{
	const struct dsh *d = state;
	if (sba_stream_failed(s))
		sba_outcome_failure(s, outcome);
	else if (!d->ended && exit_status == 0) /* SIGTERM ends it so */
		sba_outcome_set(s, outcome, SBA_VERDICT_AGENT_FAILED,
				"dsh ended in the middle of its turn");
	else if (d->cut && outcome->text[0])
		outcome->verdict = SBA_VERDICT_OK; /* it exits with 1 */
}

const struct sba_driver sba_driver_dsh = {
	.size = sizeof(struct sba_driver),
	.name = "dsh",
	.binary = "dsh",
	.install = "an image that has it:  sandbox-agent image build dsh",
	.api = SBA_API_CHAT_COMPLETIONS,
	.provider = "deepseek",
	.files = files,
	.command = dsh_command,
	.state_size = sizeof(struct dsh),
	.line = dsh_line,
	.finish = dsh_finish,
	.rules = ".dsh/AGENTS.md",
	.skills = ".dsh/skills",
	.store = &sba_dsh_store,
	.keeps_read_only = true,
	.keeps_edit = true,
	.mcp_path = SBA_LODGING_DIR "/dsh.yml",
	.mcp_form = SBA_MCP_DSH,
};
