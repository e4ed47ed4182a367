/* SPDX-License-Identifier: MIT */
/*
 * Responses: how requests are read and answers said. codex 0.171.0 takes an
 * item from output_item.done and the end from response.completed; the other
 * events are for clients that show deltas.
 */
#include "model/private.h"

#include <string.h>

static int read_tools(struct sba_model_request *r, struct sba_error *err)
{
	size_t i;
	json_t *tool;
	json_array_foreach(json_object_get(r->doc, "tools"), i, tool)
	{
		const char *type = sba_json_str(tool, "type");
		struct sba_model_tool t = {
			.name = sba_json_str(tool, "name"),
			.schema = json_object_get(tool, "parameters"),
			.custom = type && !strcmp(type, "custom"),
		};
		int rc = t.name ? sba_model_see_tool(r, &t, err) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

enum item { ITEM_OTHER, ITEM_USER, ITEM_MODEL, ITEM_RESULT };

static enum item read_message(struct sba_model_request *r, const json_t *item)
{
	const char *role = sba_json_str(item, "role");
	const json_t *content = json_object_get(item, "content");
	if (role && !strcmp(role, "assistant"))
		return ITEM_MODEL;
	if (role && !strcmp(role, "user")) {
		sba_model_see_user(r, content);
		return ITEM_USER;
	}
	sba_model_see_system(r, content);
	return ITEM_OTHER;
}

static enum item read_item(struct sba_model_request *r, const json_t *item)
{
	static const char *const models[] = { "reasoning", "function_call", "custom_tool_call",
					      "local_shell_call" };
	const char *type = sba_json_str(item, "type");
	if (!type || !strcmp(type, "message"))
		return read_message(r, item);
	if (sba_ends_with(type, "_output")) {
		sba_model_see_tool_output(r, json_object_get(item, "output"));
		return ITEM_RESULT;
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(models); i++)
		if (!strcmp(type, models[i]))
			return ITEM_MODEL;
	return ITEM_OTHER;
}

/* An answer of several items (text, calls) is one step. */
static void read_input(struct sba_model_request *r, const json_t *input)
{
	size_t i;
	json_t *item;
	enum item before = ITEM_OTHER;
	json_array_foreach(input, i, item)
	{
		enum item now = read_item(r, item);
		if (now == ITEM_MODEL && before != ITEM_MODEL)
			sba_model_see_assistant(r);
		before = now;
	}
}

static int responses_read(struct sba_model_request *r, struct sba_error *err)
{
	const json_t *input = json_object_get(r->doc, "input");
	sba_model_see_system(r, json_object_get(r->doc, "instructions"));
	if (json_is_string(input))
		sba_model_see_user(r, input);
	else if (json_is_array(input))
		read_input(r, input);
	else
		return sba_fail(err, SBA_EPROTO, "'input' is missing or neither text nor list");
	return read_tools(r, err);
}

static json_t *usage(const struct sba_model_answer *a)
{
	return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", a->input_tokens,
			 "input_tokens_details", "cached_tokens", a->cached_tokens, "output_tokens",
			 a->output_tokens, "output_tokens_details", "reasoning_tokens",
			 a->thinking_tokens, "total_tokens", a->input_tokens + a->output_tokens);
}

static json_t *text_part(const char *text, size_t len)
{
	return json_pack("{s:s, s:s%, s:[]}", "type", "output_text", "text", text, len,
			 "annotations");
}

static json_t *summary_part(const char *text, size_t len)
{
	return json_pack("{s:s, s:s%}", "type", "summary_text", "text", text, len);
}

/* A tool of an MCP server is called by the two halves of its name (codex 0.171.0
 * rejects the whole). */
static int put_name(json_t *item, const char *name)
{
	const char *tool = strncmp(name, "mcp__", 5) ? NULL : strstr(name + 5, "__");
	if (!tool)
		return json_object_set_new(item, "name", json_string(name));
	json_object_set_new(item, "namespace", json_stringn(name, (size_t)(tool - name)));
	return json_object_set_new(item, "name", json_string(tool + 2));
}

static json_t *call_item(const struct sba_model_part *p, const char *text, size_t len,
			 const char *status)
{
	json_t *item = json_pack("{s:s, s:s, s:s, s:s}", "id", p->id, "type",
				 p->custom ? "custom_tool_call" : "function_call", "status", status,
				 "call_id", p->id);
	if (item)
		put_name(item, p->name);
	if (item && json_object_set_new(item, p->custom ? "input" : "arguments",
					json_stringn(text, len)) < 0) {
		json_decref(item);
		return NULL;
	}
	return item;
}

/* The item as it is announced (empty), or as it is at its end. */
static json_t *item(const struct sba_model_part *p, bool done)
{
	const char *status = done ? "completed" : "in_progress";
	const char *text = done ? p->text : "";
	size_t len = done ? p->len : 0;
	switch (p->kind) {
	case SBA_MODEL_THINKING:
		return json_pack("{s:s, s:s, s:o, s:n}", "id", p->id, "type", "reasoning",
				 "summary",
				 done ? json_pack("[o]", summary_part(text, len)) : json_array(),
				 "encrypted_content");
	case SBA_MODEL_TEXT:
		return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", p->id, "type", "message",
				 "role", "assistant", "status", status, "content",
				 done ? json_pack("[o]", text_part(text, len)) : json_array());
	case SBA_MODEL_TOOL:
		return call_item(p, text, len, status);
	}
	return NULL;
}

static json_t *items(const struct sba_model_answer *a)
{
	json_t *list = json_array();
	for (size_t i = 0; i < a->n_parts; i++)
		json_array_append_new(list, item(&a->parts[i], true));
	return list;
}

static json_t *response(const struct sba_model_answer *a, const char *status, json_t *take_output,
			json_t *take_usage)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o?, s:n}", "id", a->id, "object",
			 "response", "created_at", a->created, "model", a->model, "status", status,
			 "output", take_output, "usage", take_usage, "error");
}

static json_t *responses_whole(const struct sba_model_answer *a)
{
	json_t *r = response(a, a->cut_short ? "incomplete" : "completed", items(a), usage(a));
	if (a->cut_short)
		json_object_set_new(r, "incomplete_details",
				    json_pack("{s:s}", "reason", "max_output_tokens"));
	return r;
}

static void emit(struct sba_model_stream *s, const char *type, json_t *take)
{
	json_object_set_new(take, "type", json_string(type));
	json_object_set_new(take, "sequence_number", json_integer(s->seq++));
	sba_model_stream_emit(s, type, take);
}

static void emit_item(struct sba_model_stream *s, const char *type, json_t *take_item)
{
	emit(s, type,
	     json_pack("{s:I, s:o}", "output_index", (json_int_t)s->part, "item", take_item));
}

/* An event about the inside of the item in turn; adds where it belongs. */
static void emit_inside(struct sba_model_stream *s, const struct sba_model_part *p,
			const char *type, json_t *take)
{
	json_object_set_new(take, "item_id", json_string(p->id));
	json_object_set_new(take, "output_index", json_integer((json_int_t)s->part));
	if (p->kind == SBA_MODEL_TEXT)
		json_object_set_new(take, "content_index", json_integer(0));
	if (p->kind == SBA_MODEL_THINKING)
		json_object_set_new(take, "summary_index", json_integer(0));
	emit(s, type, take);
}

/* What the events of a kind of part are called. */
struct names {
	const char *part_added, *delta, *done, *done_key, *part_done;
};
static const struct names thinking_names = {
	"response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
	"response.reasoning_summary_text.done",  "text",
	"response.reasoning_summary_part.done",
};
static const struct names text_names = {
	"response.content_part.added", "response.output_text.delta",
	"response.output_text.done",   "text",
	"response.content_part.done",
};
static const struct names call_names = {
	.delta = "response.function_call_arguments.delta",
	.done = "response.function_call_arguments.done",
	.done_key = "arguments",
};
static const struct names custom_names = {
	.delta = "response.custom_tool_call_input.delta",
	.done = "response.custom_tool_call_input.done",
	.done_key = "input",
};

static const struct names *names_of(const struct sba_model_part *p)
{
	if (p->kind == SBA_MODEL_TOOL)
		return p->custom ? &custom_names : &call_names;
	return p->kind == SBA_MODEL_TEXT ? &text_names : &thinking_names;
}

static json_t *inner_part(const struct sba_model_part *p, const char *text, size_t len)
{
	return p->kind == SBA_MODEL_TEXT ? text_part(text, len) : summary_part(text, len);
}

static void responses_begin(struct sba_model_stream *s)
{
	static const char *const types[] = { "response.created", "response.in_progress" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(types); i++)
		emit(s, types[i],
		     json_pack("{s:o}", "response",
			       response(&s->answer, "in_progress", json_array(), NULL)));
}

static void responses_part_begin(struct sba_model_stream *s, const struct sba_model_part *p)
{
	const struct names *n = names_of(p);
	emit_item(s, "response.output_item.added", item(p, false));
	if (n->part_added)
		emit_inside(s, p, n->part_added, json_pack("{s:o}", "part", inner_part(p, "", 0)));
}

static void responses_part_delta(struct sba_model_stream *s, const struct sba_model_part *p,
				 const char *text, size_t len)
{
	emit_inside(s, p, names_of(p)->delta, json_pack("{s:s%}", "delta", text, len));
}

static void responses_part_end(struct sba_model_stream *s, const struct sba_model_part *p)
{
	const struct names *n = names_of(p);
	emit_inside(s, p, n->done, json_pack("{s:s%}", n->done_key, p->text, p->len));
	if (n->part_done)
		emit_inside(s, p, n->part_done,
			    json_pack("{s:o}", "part", inner_part(p, p->text, p->len)));
	emit_item(s, "response.output_item.done", item(p, true));
}

static void responses_end(struct sba_model_stream *s)
{
	emit(s, s->answer.cut_short ? "response.incomplete" : "response.completed",
	     json_pack("{s:o}", "response", responses_whole(&s->answer)));
}

const struct sba_model_wire sba_model_wire_responses = {
	.path = "/v1/responses",
	.read = responses_read,
	.error = sba_model_openai_error,
	.whole = responses_whole,
	.begin = responses_begin,
	.part_begin = responses_part_begin,
	.part_delta = responses_part_delta,
	.part_end = responses_part_end,
	.end = responses_end,
};
