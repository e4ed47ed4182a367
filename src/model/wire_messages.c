/* SPDX-License-Identifier: MIT */
/*
 * Anthropic Messages: how requests are read and answers said. Each event
 * needs its `event:` line: claude 2.1.332 takes frames without as nothing.
 */
#include "model/private.h"

#include <string.h>

static int read_tools(struct sba_model_request *r, struct sba_error *err)
{
	size_t i;
	json_t *tool;
	json_array_foreach(json_object_get(r->doc, "tools"), i, tool)
	{
		struct sba_model_tool t = {
			.name = sba_json_str(tool, "name"),
			.schema = json_object_get(tool, "input_schema"),
		};
		int rc = t.name ? sba_model_see_tool(r, &t, err) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Results of tools travel as blocks of user messages. */
static void read_user(struct sba_model_request *r, const json_t *content)
{
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block)
	{
		const char *type = sba_json_str(block, "type");
		if (type && !strcmp(type, "tool_result"))
			sba_model_see_tool_output(r, json_object_get(block, "content"));
	}
	sba_model_see_user(r, content);
}

static int messages_read(struct sba_model_request *r, struct sba_error *err)
{
	size_t i;
	json_t *message;
	const json_t *messages = json_object_get(r->doc, "messages");
	if (!json_is_array(messages))
		return sba_fail(err, SBA_EPROTO, "'messages' is missing or not a list");
	sba_model_see_system(r, json_object_get(r->doc, "system"));
	json_array_foreach(messages, i, message)
	{
		const char *role = sba_json_str(message, "role");
		if (role && !strcmp(role, "user"))
			read_user(r, json_object_get(message, "content"));
		else if (role && !strcmp(role, "assistant"))
			sba_model_see_assistant(r);
	}
	return read_tools(r, err);
}

static const struct {
	int status;
	const char *type;
} errors[] = {
	{ 401, "authentication_error" }, { 403, "permission_error" }, { 404, "not_found_error" },
	{ 413, "request_too_large" },    { 429, "rate_limit_error" }, { 529, "overloaded_error" },
};

static json_t *messages_error(int status, const char *message)
{
	const char *type = status >= 500 ? "api_error" : "invalid_request_error";
	for (size_t i = 0; i < SBA_ARRAY_LEN(errors); i++)
		if (errors[i].status == status)
			type = errors[i].type;
	return json_pack("{s:s, s:{s:s, s:s}, s:n}", "type", "error", "error", "type", type,
			 "message", message, "request_id");
}

static const char *stop_reason(const struct sba_model_answer *a)
{
	if (a->cut_short)
		return "max_tokens";
	return sba_model_answer_has_tools(a) ? "tool_use" : "end_turn";
}

/* This wire tells the cached part of the input beside the rest. */
static json_t *usage(const struct sba_model_answer *a, json_int_t output, json_int_t thinking)
{
	json_int_t fresh =
		a->input_tokens > a->cached_tokens ? a->input_tokens - a->cached_tokens : 0;
	return json_pack("{s:I, s:I, s:I, s:I, s:{s:I}}", "input_tokens", fresh,
			 "cache_creation_input_tokens", (json_int_t)0, "cache_read_input_tokens",
			 a->cached_tokens, "output_tokens", output, "output_tokens_details",
			 "thinking_tokens", thinking);
}

static json_t *message(const struct sba_model_answer *a, json_t *take_content, const char *stop,
		       json_t *take_usage)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:n, s:o}", "id", a->id, "type",
			 "message", "role", "assistant", "model", a->model, "content", take_content,
			 "stop_reason", stop, "stop_sequence", "usage", take_usage);
}

static json_t *block(const struct sba_model_part *p, const char *text, size_t len,
		     json_t *take_input)
{
	switch (p->kind) {
	case SBA_MODEL_THINKING:
		return json_pack("{s:s, s:s%, s:s}", "type", "thinking", "thinking", text, len,
				 "signature", "");
	case SBA_MODEL_TEXT:
		return json_pack("{s:s, s:s%}", "type", "text", "text", text, len);
	case SBA_MODEL_TOOL:
		return json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", p->id, "name",
				 p->name, "input", take_input);
	}
	return NULL;
}

static json_t *messages_whole(const struct sba_model_answer *a)
{
	json_t *content = json_array();
	for (size_t i = 0; i < a->n_parts; i++) {
		const struct sba_model_part *p = &a->parts[i];
		json_t *input = NULL;
		if (p->kind == SBA_MODEL_TOOL)
			input = sba_json_load(p->text, p->len, JSON_ALLOW_NUL, NULL);
		json_array_append_new(content, block(p, p->text, p->len, input));
	}
	return message(a, content, stop_reason(a), usage(a, a->output_tokens, a->thinking_tokens));
}

static void messages_begin(struct sba_model_stream *s)
{
	sba_model_stream_emit(
		s, "message_start",
		json_pack("{s:s, s:o}", "type", "message_start", "message",
			  message(&s->answer, json_array(), NULL, usage(&s->answer, 1, 0))));
}

static void messages_part_begin(struct sba_model_stream *s, const struct sba_model_part *p)
{
	json_t *input = p->kind == SBA_MODEL_TOOL ? json_object() : NULL;
	sba_model_stream_emit(s, "content_block_start",
			      json_pack("{s:s, s:I, s:o}", "type", "content_block_start", "index",
					(json_int_t)s->part, "content_block",
					block(p, "", 0, input)));
}

static void emit_delta(struct sba_model_stream *s, json_t *take_delta)
{
	sba_model_stream_emit(s, "content_block_delta",
			      json_pack("{s:s, s:I, s:o}", "type", "content_block_delta", "index",
					(json_int_t)s->part, "delta", take_delta));
}

static void messages_part_delta(struct sba_model_stream *s, const struct sba_model_part *p,
				const char *text, size_t len)
{
	static const char *const types[][2] = {
		[SBA_MODEL_THINKING] = { "thinking_delta", "thinking" },
		[SBA_MODEL_TEXT] = { "text_delta", "text" },
		[SBA_MODEL_TOOL] = { "input_json_delta", "partial_json" },
	};
	emit_delta(s, json_pack("{s:s, s:s%}", "type", types[p->kind][0], types[p->kind][1], text,
				len));
}

static void messages_part_end(struct sba_model_stream *s, const struct sba_model_part *p)
{
	if (p->kind == SBA_MODEL_THINKING)
		emit_delta(s,
			   json_pack("{s:s, s:s}", "type", "signature_delta", "signature", p->id));
	sba_model_stream_emit(s, "content_block_stop",
			      json_pack("{s:s, s:I}", "type", "content_block_stop", "index",
					(json_int_t)s->part));
}

static void messages_end(struct sba_model_stream *s)
{
	const struct sba_model_answer *a = &s->answer;
	sba_model_stream_emit(s, "message_delta",
			      json_pack("{s:s, s:{s:s, s:n}, s:o}", "type", "message_delta",
					"delta", "stop_reason", stop_reason(a), "stop_sequence",
					"usage", usage(a, a->output_tokens, a->thinking_tokens)));
	sba_model_stream_emit(s, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

const struct sba_model_wire sba_model_wire_messages = {
	.path = "/v1/messages",
	.read = messages_read,
	.error = messages_error,
	.whole = messages_whole,
	.begin = messages_begin,
	.part_begin = messages_part_begin,
	.part_delta = messages_part_delta,
	.part_end = messages_part_end,
	.end = messages_end,
};
