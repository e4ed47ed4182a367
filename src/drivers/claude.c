/* SPDX-License-Identifier: MIT */
/*
 * Claude Code (measured with 2.1.332): `claude -p` with stream-json output.
 * One line per content block, deltas of it before, one result per turn.
 */
#include "drivers/private.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct claude {
	bool has_result;
	bool failed;       /* the last result is an error */
	double total_cost; /* as of the last result of this process */
};

/* ---- tools ---- */

static const struct sba_tool_name tool_names[] = {
	{ "Bash", "bash" },          { "Read", "read" },      { "Write", "write" },
	{ "Edit", "edit" },          { "MultiEdit", "edit" }, { "NotebookEdit", "edit" },
	{ "Glob", "glob" },          { "Grep", "grep" },      { "WebSearch", "web_search" },
	{ "WebFetch", "web_fetch" }, { "Agent", "task" },     { "Task", "task" },
	{ "Skill", "skill" },        { "TodoWrite", "todo" },
};

static int tool_call(struct sba_stream *s, const json_t *block, bool aside)
{
	SBA_BUF struct sba_buf scratch = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	const char *native = sba_json_str(block, "name");
	if (!native)
		return sba_stream_unknown(s, "a tool call without a name");
	return sba_stream_call(
		s, &(struct sba_tool_use){
			   .native = native,
			   .name = sba_tool_name_mcp(tool_names, SBA_ARRAY_LEN(tool_names), native,
						     &scratch),
			   .call_id = sba_json_str(block, "id"),
			   .input = json_object_get(block, "input"),
			   .aside = aside,
		   });
}

/* A failing command's status is in its text only: "Exit code 3\npartial".
 * Takes it off the front of *output. */
static bool take_exit_code(const char **output, int *ret)
{
	const char *p = *output;
	if (!sba_starts_with(p, "Exit code "))
		return false;
	p += strlen("Exit code ");
	char digits[12];
	size_t len = strspn(p, "0123456789");
	int64_t code;
	if (len == 0 || len >= sizeof(digits) || (p[len] != '\0' && p[len] != '\n'))
		return false;
	memcpy(digits, p, len);
	digits[len] = '\0';
	if (sba_parse_int(digits, 0, INT32_MAX, &code) < 0)
		return false;
	*ret = (int)code;
	*output = p + len + (p[len] == '\n');
	return true;
}

static int file_change(struct sba_stream *s, const json_t *told)
{
	const json_t *before = json_object_get(told, "originalFile");
	const char *type = sba_json_str(told, "type");
	bool created = type ? strcmp(type, "create") == 0 : json_is_null(before);
	return sba_stream_file_change(s, sba_json_str(told, "filePath"),
				      created ? "created" : "modified");
}

static bool is_change(const char *native)
{
	return native && (strcmp(native, "Write") == 0 || strcmp(native, "Edit") == 0 ||
			  strcmp(native, "MultiEdit") == 0 || strcmp(native, "NotebookEdit") == 0);
}

/* `told` is what the CLI says beside the block; it may be NULL or a string. */
static int tool_result(struct sba_stream *s, const json_t *block, const json_t *told)
{
	SBA_BUF struct sba_buf output = SBA_BUF_INIT(SBA_LINE_MAX);
	const char *id = sba_json_str(block, "tool_use_id");
	const char *native = sba_stream_open_tool(s, id);
	bool changed = is_change(native);
	sba_content_put(&output, json_object_get(block, "content"));
	struct sba_tool_use use = {
		.call_id = id,
		.output = output.data ? output.data : "",
		.failed = sba_json_bool(block, "is_error", false),
	};
	if (native && strcmp(native, "Bash") == 0) {
		bool running = json_object_get(told, "backgroundTaskId") ||
			       sba_json_bool(told, "interrupted", false);
		use.has_exit_code =
			use.failed ? take_exit_code(&use.output, &use.exit_code) : !running;
	}
	int rc = sba_stream_result(s, &use);
	if (rc || use.failed || !changed)
		return rc;
	return file_change(s, told);
}

/* ---- lines ---- */

/* `line` is the assistant line or the result that tells of a failed request. */
static int model_error(struct sba_stream *s, const json_t *line, const char *text)
{
	const char *what = sba_json_str(line, "api_error");
	int status =
		sba_http_status(sba_json_number(line, "api_error_status", 0), text, "API Error: ");
	return sba_stream_error(
		s, &(struct sba_failure){
			   .text = text,
			   .http_status = status,
			   .model = true,
			   .retryable = status ? sba_http_retryable(status)
					       : what && strcmp(what, "connection_failed") == 0,
		   });
}

static int on_text(struct sba_stream *s, const json_t *line, const char *text, bool aside)
{
	if (!text)
		return 0;
	if (aside)
		return sba_stream_notice(s, "subagent: %s", text);
	/* Written by the CLI in the model's place. */
	if (sba_json_bool(line, "is_api_error_message", false))
		return model_error(s, line, text);
	sba_stream_error_forget(s);
	return sba_stream_whole(s, SBA_EVENT_TEXT, text);
}

static int on_block(struct sba_stream *s, const json_t *line, const json_t *block, bool aside)
{
	const char *type = sba_json_str(block, "type");
	if (!type)
		return sba_stream_unknown(s, "a content block without a type");
	if (strcmp(type, "text") == 0)
		return on_text(s, line, sba_json_str(block, "text"), aside);
	if (strcmp(type, "thinking") == 0)
		return aside ? 0
			     : sba_stream_whole(s, SBA_EVENT_THINKING,
						sba_json_str(block, "thinking"));
	if (strcmp(type, "tool_use") == 0)
		return tool_call(s, block, aside);
	if (strcmp(type, "redacted_thinking") == 0)
		return 0;
	return sba_stream_unknown(s, "a content block of type '%s'", type);
}

static bool is_aside(const json_t *line)
{
	return sba_json_str(line, "parent_tool_use_id") != NULL;
}

static int on_assistant(struct sba_stream *s, struct claude *c SBA_UNUSED, const json_t *line)
{
	const json_t *content = sba_json_get(line, "message.content");
	if (json_is_string(content))
		return on_text(s, line, json_string_value(content), is_aside(line));
	size_t i;
	json_t *block;
	int rc = 0;
	json_array_foreach(content, i, block)
	{
		rc = on_block(s, line, block, is_aside(line));
		if (rc)
			break;
	}
	return rc;
}

/* Text in user lines is the CLI's own: nudges, bodies of skills, prompts of
 * subagents. Only results matter. */
static int on_user(struct sba_stream *s, struct claude *c SBA_UNUSED, const json_t *line)
{
	size_t i;
	json_t *block;
	int rc = 0;
	json_array_foreach(sba_json_get(line, "message.content"), i, block)
	{
		const char *type = sba_json_str(block, "type");
		if (type && strcmp(type, "tool_result") == 0)
			rc = tool_result(s, block, json_object_get(line, "tool_use_result"));
		if (rc)
			break;
	}
	return rc;
}

static int on_delta(struct sba_stream *s, const json_t *delta)
{
	const char *type = sba_json_str(delta, "type");
	if (type && strcmp(type, "text_delta") == 0)
		return sba_stream_delta(s, SBA_EVENT_TEXT, sba_json_str(delta, "text"));
	if (type && strcmp(type, "thinking_delta") == 0)
		return sba_stream_delta(s, SBA_EVENT_THINKING, sba_json_str(delta, "thinking"));
	return 0; /* arguments and signatures come again with the whole block */
}

static int on_stream_event(struct sba_stream *s, struct claude *c SBA_UNUSED, const json_t *line)
{
	const char *type = sba_json_str(line, "event.type");
	if (!type || is_aside(line))
		return 0;
	if (strcmp(type, "content_block_start") == 0)
		sba_stream_block_begin(s);
	else if (strcmp(type, "content_block_delta") == 0)
		return on_delta(s, sba_json_get(line, "event.delta"));
	return 0;
}

static int on_api_retry(struct sba_stream *s, const json_t *line)
{
	int status = sba_http_status(sba_json_number(line, "error_status", 0), NULL, "");
	const char *why = sba_json_str(line, "error");
	return sba_stream_retry(s, status, why, sba_json_number(line, "attempt", 0),
				sba_json_number(line, "max_retries", 0));
}

static bool is_one_of(const char *what, const char *const *list)
{
	for (; *list; list++) {
		if (strcmp(what, *list) == 0)
			return true;
	}
	return false;
}

static int on_system(struct sba_stream *s, struct claude *c SBA_UNUSED, const json_t *line)
{
	static const char *const quiet[] = { "status",
					     "thinking_tokens",
					     "task_started",
					     "task_updated",
					     "task_notification",
					     "background_tasks_changed",
					     "ui_invalidate",
					     NULL };
	const char *what = sba_json_str(line, "subtype");
	const char *text = sba_json_str(line, "content");
	if (!what)
		return sba_stream_unknown(s, "a system line without a subtype");
	if (strcmp(what, "init") == 0) {
		/* A finished background subagent begins another turn by itself. */
		sba_stream_set_done(s, false);
		sba_stream_error_forget(s);
		return 0;
	}
	if (strcmp(what, "api_retry") == 0)
		return on_api_retry(s, line);
	if (strcmp(what, "permission_denied") == 0) {
		const char *tool = sba_json_str(line, "tool_name");
		text = sba_json_str(line, "message");
		return sba_stream_notice(s, "permission denied: %s: %s", tool ? tool : "?",
					 text ? text : "");
	}
	if (strcmp(what, "informational") == 0 && text)
		return sba_stream_notice(s, "%s", text);
	return is_one_of(what, quiet) ? 0 : sba_stream_unknown(s, "a system line '%s'", what);
}

/* ---- the result ---- */

static void add_model(struct sba_usage *u, const json_t *m)
{
	int64_t read = sba_json_count(m, "cacheReadInputTokens");
	int64_t made = sba_json_count(m, "cacheCreationInputTokens");
	sba_usage_add(u, &(struct sba_usage){
				 .input = sba_json_count(m, "inputTokens"),
				 .cached_input = read,
				 .output = sba_json_count(m, "outputTokens"),
				 .reasoning = sba_json_count(m, "thinkingTokens"),
				 .cost_usd = json_number_value(json_object_get(m, "costUSD")),
			 });
	sba_usage_add(u, &(struct sba_usage){ .input = read });
	sba_usage_add(u, &(struct sba_usage){ .input = made });
}

static void add_usage(struct sba_usage *u, const json_t *usage)
{
	int64_t read = sba_json_count(usage, "cache_read_input_tokens");
	int64_t made = sba_json_count(usage, "cache_creation_input_tokens");
	sba_usage_add(u, &(struct sba_usage){
				 .input = sba_json_count(usage, "input_tokens"),
				 .cached_input = read,
				 .output = sba_json_count(usage, "output_tokens"),
				 .reasoning = sba_json_count(
					 usage, "output_tokens_details.thinking_tokens"),
			 });
	sba_usage_add(u, &(struct sba_usage){ .input = read });
	sba_usage_add(u, &(struct sba_usage){ .input = made });
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* `usage` leaves out subagents and whatever was interrupted, the models' own
 * table leaves out requests whose stream broke: each is a lower bound, so the
 * larger is the nearer. total_cost_usd goes on from the turn before when a
 * session is resumed: only the table has this turn's own. */
static struct sba_usage result_usage(struct claude *c, const json_t *line)
{
	struct sba_usage told = { 0 }, models = { 0 };
	const json_t *table = json_object_get(line, "model_usage_since_last_result");
	double total = json_number_value(json_object_get(line, "total_cost_usd"));
	const char *name;
	json_t *m;
	add_usage(&told, json_object_get(line, "usage"));
	json_object_foreach((json_t *)table, name, m) add_model(&models, m);
	if (!table)
		models.cost_usd = total > c->total_cost ? total - c->total_cost : 0;
	c->total_cost = total;
	return (struct sba_usage){
		.input = larger(told.input, models.input),
		.cached_input = larger(told.cached_input, models.cached_input),
		.output = larger(told.output, models.output),
		.reasoning = larger(told.reasoning, models.reasoning),
		.cost_usd = models.cost_usd,
	};
}

static bool is_model_error(const json_t *line)
{
	const char *end = sba_json_str(line, "terminal_reason");
	return json_is_number(json_object_get(line, "api_error_status")) ||
	       sba_json_str(line, "api_error") || sba_json_str(line, "api_error_type") ||
	       (end && strcmp(end, "api_error") == 0);
}

static int on_failed_result(struct sba_stream *s, const json_t *line)
{
	const char *text = sba_json_str(line, "result");
	const char *end = sba_json_str(line, "terminal_reason");
	if (sba_stream_failed(s))
		return 0; /* told by the assistant line before */
	if (is_model_error(line) || !sba_json_bool(line, "is_error", false))
		return model_error(s, line, text);
	if (end && sba_starts_with(end, "aborted"))
		text = "interrupted"; /* its own words are diagnostics for its makers */
	else if (!text)
		text = sba_json_str(line, "errors.#0");
	return sba_stream_error(
		s, &(struct sba_failure){ .text = text ? text : sba_json_str(line, "subtype") });
}

/* The subtype is "success" for failed requests too, so it says nothing; and
 * when nothing was used, an error that only the text tells is one. */
static bool result_failed(const struct sba_stream *s, const json_t *line,
			  const struct sba_usage *used)
{
	const char *text = sba_json_str(line, "result");
	if (sba_json_bool(line, "is_error", false) || sba_stream_failed(s))
		return true;
	return used->input == 0 && used->output == 0 && text && sba_starts_with(text, "API Error");
}

static int on_result(struct sba_stream *s, struct claude *c, const json_t *line)
{
	const char *text = sba_json_str(line, "result");
	struct sba_usage used = result_usage(c, line);
	c->has_result = true;
	c->failed = result_failed(s, line, &used);
	int rc = sba_stream_usage(s, &used);
	if (rc == 0 && c->failed)
		rc = on_failed_result(s, line);
	else if (text && text[0])
		sba_stream_answer_set(s, text);
	if (rc)
		return rc;
	sba_stream_set_done(s, true);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

static int claude_object(struct sba_stream *s, void *state, const json_t *line)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct claude *c, const json_t *line);
	} lines[] = {
		{ "system", on_system },       { "stream_event", on_stream_event },
		{ "assistant", on_assistant }, { "user", on_user },
		{ "result", on_result },
	};
	const char *type = sba_json_str(line, "type");
	if (!type)
		return sba_stream_unknown(s, "a line without a type");
	/* The result of a failed resume repeats the id that does not exist. */
	int rc = strcmp(type, "result") == 0
			 ? 0
			 : sba_stream_found_session(s, sba_json_str(line, "session_id"));
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(lines); i++) {
		if (strcmp(type, lines[i].type) == 0)
			return lines[i].on(s, state, line);
	}
	return rc ? rc : sba_stream_unknown(s, "a line of type '%s'", type);
}

static void claude_finish(struct sba_stream *s, void *state, int exit_status,
			  struct sba_outcome *outcome)
{
	const struct claude *c = state;
	/* An interrupted turn exits with 0. */
	if (c->has_result && c->failed)
		sba_outcome_failure(s, outcome);
	else if (!c->has_result && exit_status == 0 && outcome->verdict == SBA_VERDICT_OK)
		sba_outcome_set(s, outcome, SBA_VERDICT_AGENT_FAILED,
				"claude ended without a result");
}

static int claude_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	return sba_stream_object(s, state, line, len, claude_object);
}

/* Its welcome, and whether to trust the folder and to ask nobody. */
static const struct sba_driver_file screen_settings = {
	".claude.json", 0600,
	"{\"hasCompletedOnboarding\":true,\"bypassPermissionsModeAccepted\":true,"
	"\"projects\":{\"/workspace\":{\"hasTrustDialogAccepted\":true,"
	"\"hasCompletedProjectOnboarding\":true}}}"
};

static const struct sba_login login = {
	.path = ".claude/.credentials.json",
	.variable = "CLAUDE_CONFIG_DIR",
	.beneath = ".credentials.json",
	.how = "claude, then /login",
};

const struct sba_driver sba_driver_claude = {
	.size = sizeof(struct sba_driver),
	.name = "claude",
	.binary = "claude",
	.install = "an image that has it:  sandbox-agent image build claude\n"
		   "or, inside, with node:  npm install -g @anthropic-ai/claude-code",
	.api = SBA_API_ANTHROPIC,
	.default_model = "claude-sonnet-5-5",
	.command = sba_claude_command,
	.state_size = sizeof(struct claude),
	.line = claude_line,
	.finish = claude_finish,
	.rules = ".claude/CLAUDE.md",
	.skills = ".claude/skills",
	.store = &sba_claude_store,
	.keeps_read_only = true,
	.keeps_edit = true,
	.has_screen = true,
	.screen_settings = &screen_settings,
	.mcp_path = SBA_LODGING_DIR "/mcp.json",
	.login = &login,
};
