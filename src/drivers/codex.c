/* SPDX-License-Identifier: MIT */
/*
 * Codex (measured with 0.171.0): `codex exec --json`. Whole items, a call when it
 * begins and again when it has ended, no text before it is complete, and tokens
 * as a running total of the session.
 */
#include "drivers/codex.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

/* "waiting for network" is said for ever where features keep it from failing. */
enum { WAITING_MAX = 5, TOTALS = 4 };

/* ---- failures ---- */

static bool is_retry(const char *text)
{
	return sba_starts_with(text, "Reconnecting...");
}

static bool is_transient(const char *text)
{
	static const char *const words[] = { "stream disconnected", "high demand",
					     "Connection failed", "exceeded retry limit",
					     "rate limit" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

/* Of some statuses the message is the whole body. */
int sba_codex_failure(struct sba_stream *s, const char *text)
{
	SBA_JSON json_t *body = text[0] == '{' ? json_loads(text, 0, NULL) : NULL;
	const char *inner = sba_json_str(body, "error.message");
	int status = sba_http_status(0, text, "unexpected status ");
	if (status == 0)
		status = sba_http_status(0, text, "last status: ");
	return sba_stream_error(
		s, &(struct sba_failure){
			   .text = inner ? inner : text,
			   .http_status = status,
			   .model = !sba_starts_with(text, "Missing environment variable"),
			   .retryable = status ? sba_http_retryable(status) : is_transient(text),
		   });
}

static int on_error(struct sba_stream *s, struct codex *c, const json_t *line)
{
	const char *text = sba_json_str(line, "message");
	if (!text)
		return sba_stream_unknown(s, "an error without a message");
	if (!is_retry(text))
		return sba_codex_failure(s, text);
	c->waiting = strstr(text, "waiting for network") ? c->waiting + 1 : 0;
	if (c->waiting >= WAITING_MAX)
		sba_stream_set_stuck(s);
	return sba_stream_notice(s, "%s", text);
}

static int on_turn_failed(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *line)
{
	const char *text = sba_json_str(line, "error.message");
	sba_stream_set_done(s, true);
	if (sba_stream_failed(s))
		return 0; /* an error line has told it */
	return sba_codex_failure(s, text ? text : "the turn failed");
}

/* ---- tokens ---- */

static const char *const total_keys[TOTALS] = { "input_tokens", "cached_input_tokens",
						"output_tokens", "reasoning_output_tokens" };

/* What the session had used before this turn: all zero for a new one; false
 * where nobody knows. */
static bool used_before(const struct sba_stream *s, int64_t ret[TOTALS])
{
	const char *kept = sba_stream_kept(s);
	SBA_JSON json_t *j = kept ? json_loads(kept, 0, NULL) : NULL;
	for (size_t i = 0; i < TOTALS; i++)
		ret[i] = sba_json_count(j, total_keys[i]);
	return json_is_object(j) || !sba_stream_resumes(s);
}

static void keep_totals(struct sba_stream *s, const int64_t totals[TOTALS])
{
	SBA_JSON json_t *j = json_object();
	for (size_t i = 0; i < TOTALS; i++)
		json_object_set_new(j, total_keys[i], json_integer((json_int_t)totals[i]));
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	sba_stream_keep(s, text);
}

/* The total counts all turns of the session and of those it was forked from. A
 * turn that failed tells none: its tokens are then the next one's. */
int sba_codex_usage(struct sba_stream *s, const json_t *total)
{
	int64_t now[TOTALS], before[TOTALS];
	bool known = used_before(s, before);
	for (size_t i = 0; i < TOTALS; i++) {
		now[i] = sba_json_count(total, total_keys[i]);
		before[i] = before[i] < now[i] ? before[i] : now[i];
	}
	keep_totals(s, now);
	if (!known)
		return sba_stream_notice(s, "the tokens of this turn are not known: what the "
					    "session had used before it is not");
	return sba_stream_usage(s, &(struct sba_usage){
					   .input = now[0] - before[0],
					   .cached_input = now[1] - before[1],
					   .output = now[2] - before[2],
					   .reasoning = now[3] - before[3],
				   });
}

static int on_turn_completed(struct sba_stream *s, struct codex *c, const json_t *line)
{
	c->completed = true;
	int rc = sba_codex_usage(s, json_object_get(line, "usage"));
	if (rc)
		return rc;
	sba_stream_error_forget(s);
	sba_stream_set_done(s, true);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

/* ---- items ---- */

struct item {
	const json_t *j;
	const char *id;
	const char *status;
	bool ended; /* else it has begun */
};

/* A call that is told only when it has ended is told both ways then. */
static int on_tool(struct sba_stream *s, const struct item *it, struct sba_tool_use *use)
{
	use->call_id = it->id;
	bool open = sba_stream_open_tool(s, it->id) != NULL;
	int rc = open ? 0 : sba_stream_call(s, use);
	if (rc || !it->ended)
		return rc;
	use->failed = use->failed || (it->status && strcmp(it->status, "completed") != 0);
	return sba_stream_result(s, use);
}

/* Its own sandbox, which we turn off, finds no namespaces in a container. */
static int check_own_sandbox(struct sba_stream *s, const struct item *it)
{
	const char *output = sba_json_str(it->j, "aggregated_output");
	return it->ended && output && sba_starts_with(output, "bwrap: ")
		       ? sba_stream_notice(s, "codex's own sandbox cannot start here")
		       : 0;
}

static int on_command(struct sba_stream *s, const struct item *it)
{
	const char *line = sba_json_str(it->j, "command");
	SBA_BUF struct sba_buf script = SBA_BUF_INIT(SBA_LINE_MAX);
	if (line)
		sba_codex_script(&script, line);
	SBA_JSON json_t *input = json_pack("{s:s*}", "command", script.data);
	const json_t *code = json_object_get(it->j, "exit_code");
	int exit_code = sba_json_exit_code(it->j, "exit_code");
	int rc = check_own_sandbox(s, it);
	if (rc)
		return rc;
	return on_tool(s, it,
		       &(struct sba_tool_use){
			       .name = "bash",
			       .native = "command_execution",
			       .input = input,
			       .output = sba_json_str(it->j, "aggregated_output"),
			       .failed = exit_code != 0,
			       .has_exit_code = json_is_number(code),
			       .exit_code = exit_code,
		       });
}

static const char *change_name(const char *kind)
{
	static const struct {
		const char *kind, *name;
	} kinds[] = { { "add", "created" }, { "update", "modified" }, { "delete", "deleted" } };
	for (size_t i = 0; kind && i < SBA_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].kind, kind) == 0)
			return kinds[i].name;
	}
	return NULL;
}

static int on_file_change(struct sba_stream *s, const struct item *it)
{
	const json_t *changes = json_object_get(it->j, "changes");
	const char *first = sba_json_str(changes, "#0.path"), *kind;
	bool only_new = json_array_size(changes) > 0;
	size_t i;
	json_t *change;
	json_array_foreach(changes, i, change)
	{
		kind = sba_json_str(change, "kind");
		only_new = only_new && kind && strcmp(kind, "add") == 0;
	}
	SBA_JSON json_t *input = json_pack("{s:s*, s:O*}", "path", first, "changes", changes);
	int rc = on_tool(s, it,
			 &(struct sba_tool_use){ .name = only_new ? "write" : "edit",
						 .native = "file_change",
						 .input = input });
	bool made = it->ended && it->status && strcmp(it->status, "completed") == 0;
	for (i = 0; rc == 0 && made && i < json_array_size(changes); i++) {
		change = json_array_get(changes, i);
		rc = sba_stream_file_change(s, sba_json_str(change, "path"),
					    change_name(sba_json_str(change, "kind")));
	}
	return rc;
}

static int on_mcp(struct sba_stream *s, const struct item *it)
{
	const char *server = sba_json_str(it->j, "server"), *tool = sba_json_str(it->j, "tool");
	const char *error = sba_json_str(it->j, "error.message");
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	SBA_BUF struct sba_buf native = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	SBA_BUF struct sba_buf output = SBA_BUF_INIT(SBA_LINE_MAX);
	sba_buf_printf(&name, "mcp:%s.%s", server ? server : "?", tool ? tool : "?");
	sba_buf_printf(&native, "mcp__%s__%s", server ? server : "?", tool ? tool : "?");
	if (name.failed || native.failed)
		return sba_stream_unknown(s, "a call of a tool with an endless name");
	sba_content_put(&output, sba_json_get(it->j, "result.content"));
	return on_tool(s, it,
		       &(struct sba_tool_use){
			       .name = name.data,
			       .native = native.data,
			       .input = json_object_get(it->j, "arguments"),
			       .output = error ? error : output.data,
			       .failed = error != NULL,
		       });
}

static int on_web_search(struct sba_stream *s, const struct item *it)
{
	return on_tool(s, it,
		       &(struct sba_tool_use){
			       .name = "web_search", .native = "web_search", .input = it->j });
}

static int on_todo(struct sba_stream *s, const struct item *it)
{
	return on_tool(s, it,
		       &(struct sba_tool_use){ .name = "todo",
					       .native = "todo_list",
					       .input = json_object_get(it->j, "items") });
}

static int on_message(struct sba_stream *s, const struct item *it)
{
	if (!it->ended)
		return 0;
	sba_stream_answer_drop(s); /* the last one is the answer */
	return sba_stream_whole(s, SBA_EVENT_TEXT, sba_json_str(it->j, "text"));
}

static int on_reasoning(struct sba_stream *s, const struct item *it)
{
	return it->ended ? sba_stream_whole(s, SBA_EVENT_THINKING, sba_json_str(it->j, "text")) : 0;
}

/* A warning: the turn goes on. */
static int on_warning(struct sba_stream *s, const struct item *it)
{
	const char *text = sba_json_str(it->j, "message");
	return it->ended ? sba_stream_notice(s, "%s", text ? text : "a warning without words") : 0;
}

int sba_codex_item(struct sba_stream *s, const json_t *j, bool ended)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, const struct item *it);
	} items[] = {
		{ "agent_message", on_message },   { "reasoning", on_reasoning },
		{ "error", on_warning },           { "command_execution", on_command },
		{ "file_change", on_file_change }, { "mcp_tool_call", on_mcp },
		{ "web_search", on_web_search },   { "todo_list", on_todo },
	};
	const char *type = sba_json_str(j, "type");
	const struct item it = { j, sba_json_str(j, "id"), sba_json_str(j, "status"), ended };
	if (!type)
		return sba_stream_unknown(s, "an item without a type");
	for (size_t i = 0; i < SBA_ARRAY_LEN(items); i++) {
		if (strcmp(type, items[i].type) == 0)
			return items[i].on(s, &it);
	}
	return sba_stream_unknown(s, "an item of type '%s'", type);
}

/* ---- lines ---- */

static int on_item_started(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *line)
{
	return sba_codex_item(s, json_object_get(line, "item"), false);
}

static int on_item_completed(struct sba_stream *s, struct codex *c, const json_t *line)
{
	c->waiting = 0;
	return sba_codex_item(s, json_object_get(line, "item"), true);
}

static int on_nothing(struct sba_stream *s SBA_UNUSED, struct codex *c SBA_UNUSED,
		      const json_t *line SBA_UNUSED)
{
	return 0;
}

/* A first turn that fails tells no tokens: those of the second are all that there are. */
static int on_thread_started(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *line)
{
	if (!sba_stream_resumes(s) && !sba_stream_kept(s))
		keep_totals(s, (const int64_t[TOTALS]){ 0 });
	return sba_stream_found_session(s, sba_json_str(line, "thread_id"));
}

static int codex_object(struct sba_stream *s, void *state, const json_t *line)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct codex *c, const json_t *line);
	} lines[] = {
		{ "thread.started", on_thread_started }, { "turn.started", on_nothing },
		{ "item.started", on_item_started },     { "item.updated", on_nothing },
		{ "item.completed", on_item_completed }, { "turn.completed", on_turn_completed },
		{ "turn.failed", on_turn_failed },       { "error", on_error },
	};
	const char *type = sba_json_str(line, "type");
	if (!type && (json_object_get(line, "method") || json_object_get(line, "id")))
		return sba_codex_server_object(s, state, line);
	if (!type)
		return sba_stream_unknown(s, "a line without a type");
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++) {
		if (strcmp(type, lines[i].type) == 0)
			return lines[i].on(s, state, line);
	}
	return sba_stream_unknown(s, "a line of type '%s'", type);
}

static int codex_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	return sba_stream_object(s, state, line, len, codex_object);
}

static void codex_finish(struct sba_stream *s, void *state, int exit_status,
			 struct sba_outcome *outcome)
{
	const struct codex *c = state;
	if (sba_stream_stuck(s)) {
		sba_outcome_set(s, outcome, SBA_VERDICT_MODEL_ERROR,
				"codex waited for the network again and again");
		outcome->retryable = true;
	} else if (sba_stream_failed(s)) {
		sba_outcome_failure(s, outcome);
	} else if (!c->completed && exit_status == 0) {
		sba_outcome_set(s, outcome, SBA_VERDICT_AGENT_FAILED,
				"codex ended in the middle of its turn");
	}
}

static const struct sba_login login = {
	.path = ".codex/auth.json",
	.variable = "CODEX_HOME",
	.beneath = "auth.json",
	.how = "codex login",
};

const struct sba_driver sba_driver_codex = {
	.size = sizeof(struct sba_driver),
	.name = "codex",
	.binary = "codex",
	.install = "an image that has it:  sandbox-agent image build codex\n"
		   "or, inside, with node:  npm install -g @openai/codex",
	.api = SBA_API_RESPONSES,
	/* Its own default takes its tools in a way that only OpenAI knows. */
	.offline_model = "gpt-5.5",
	.command = sba_codex_command,
	.state_size = sizeof(struct codex),
	.line = codex_line,
	.finish = codex_finish,
	.rules = ".codex/AGENTS.md",
	.skills = ".codex/skills",
	.store = &sba_codex_store,
	/* Its file sandbox is bubblewrap, which finds no namespaces; without it a
	 * command is all or nothing, and a command is how codex reads. */
	.has_screen = true,
	.mcp_path = "/etc/codex/config.toml",
	.mcp_form = SBA_MCP_CODEX,
	.login = &login,
};
