/* SPDX-License-Identifier: MIT */
/* Chat Completions: how requests are read and answers said. */
#include "model/private.h"

#include <string.h>

static int read_tools(struct sba_model_request *r, struct sba_error *err)
{
	size_t i;
	json_t *tool;
	json_array_foreach(json_object_get(r->doc, "tools"), i, tool)
	{
		const json_t *function = json_object_get(tool, "function");
		struct sba_model_tool t = {
			.name = sba_json_str(function, "name"),
			.schema = json_object_get(function, "parameters"),
		};
		int rc = t.name ? sba_model_see_tool(r, &t, err) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void read_message(struct sba_model_request *r, const json_t *message)
{
	const char *role = sba_json_str(message, "role");
	const json_t *content = json_object_get(message, "content");
	if (!role)
		return;
	if (!strcmp(role, "system") || !strcmp(role, "developer"))
		sba_model_see_system(r, content);
	else if (!strcmp(role, "user"))
		sba_model_see_user(r, content);
	else if (!strcmp(role, "assistant"))
		sba_model_see_assistant(r);
	else if (!strcmp(role, "tool"))
		sba_model_see_tool_output(r, content);
}

static int chat_read(struct sba_model_request *r, struct sba_error *err)
{
	size_t i;
	json_t *message;
	const json_t *messages = json_object_get(r->doc, "messages");
	if (!json_is_array(messages))
		return sba_fail(err, SBA_EPROTO, "'messages' is missing or not a list");
	r->with_usage = sba_json_bool(r->doc, "stream_options.include_usage", false);
	json_array_foreach(messages, i, message) read_message(r, message);
	return read_tools(r, err);
}

static const struct {
	int status;
	const char *type, *code;
} errors[] = {
	{ 401, "invalid_request_error", "invalid_api_key" },
	{ 403, "invalid_request_error", "permission_denied" },
	{ 404, "invalid_request_error", "not_found" },
	{ 429, "rate_limit_error", "rate_limit_exceeded" },
};

json_t *sba_model_openai_error(int status, const char *message)
{
	const char *type = status >= 500 ? "server_error" : "invalid_request_error";
	const char *code = NULL;
	for (size_t i = 0; i < SBA_ARRAY_LEN(errors); i++)
		if (errors[i].status == status) {
			type = errors[i].type;
			code = errors[i].code;
		}
	return json_pack("{s:{s:s, s:s, s:s?, s:n}}", "error", "message", message, "type", type,
			 "code", code, "param");
}

static const char *finish_reason(const struct sba_model_answer *a)
{
	if (a->cut_short)
		return "length";
	return sba_model_answer_has_tools(a) ? "tool_calls" : "stop";
}

static json_t *usage(const struct sba_model_answer *a)
{
	return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", a->input_tokens,
			 "completion_tokens", a->output_tokens, "total_tokens",
			 a->input_tokens + a->output_tokens, "prompt_tokens_details",
			 "cached_tokens", a->cached_tokens, "completion_tokens_details",
			 "reasoning_tokens", a->thinking_tokens);
}

static const char *text_key(const struct sba_model_part *p)
{
	return p->kind == SBA_MODEL_TEXT ? "content" : "reasoning_content";
}

static json_t *whole_call(const struct sba_model_part *p)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s%}}", "id", p->id, "type", "function", "function",
			 "name", p->name, "arguments", p->text, p->len);
}

/* This wire has one text where the others have parts. */
static void append_text(json_t *message, const char *key, const struct sba_model_part *p)
{
	const json_t *before = json_object_get(message, key);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SIZE_MAX / 2);
	if (json_is_string(before))
		sba_buf_put(&b, json_string_value(before), json_string_length(before));
	sba_buf_put(&b, p->text, p->len);
	json_object_set_new(message, key, sba_json_text(b.data, b.len));
}

static void add_part(json_t *message, json_t *calls, const struct sba_model_part *p)
{
	if (p->kind == SBA_MODEL_TOOL)
		json_array_append_new(calls, whole_call(p));
	else
		append_text(message, text_key(p), p);
}

static json_t *chat_whole(const struct sba_model_answer *a)
{
	json_t *message = json_pack("{s:s, s:n}", "role", "assistant", "content");
	SBA_JSON json_t *calls = json_array();
	for (size_t i = 0; i < a->n_parts; i++)
		add_part(message, calls, &a->parts[i]);
	if (json_array_size(calls))
		json_object_set(message, "tool_calls", calls);
	return json_pack("{s:s, s:s, s:I, s:s, s:[{s:i, s:o, s:s}], s:o}", "id", a->id, "object",
			 "chat.completion", "created", a->created, "model", a->model, "choices",
			 "index", 0, "message", message, "finish_reason", finish_reason(a), "usage",
			 usage(a));
}

static json_t *chunk(const struct sba_model_stream *s, json_t *take_choices)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", s->answer.id, "object",
			 "chat.completion.chunk", "created", s->answer.created, "model",
			 s->answer.model, "choices", take_choices);
}

static void emit_choice(struct sba_model_stream *s, json_t *take_delta, const char *finish)
{
	sba_model_stream_emit(s, NULL,
			      chunk(s, json_pack("[{s:i, s:o, s:s?}]", "index", 0, "delta",
						 take_delta, "finish_reason", finish)));
}

static void chat_begin(struct sba_model_stream *s)
{
	emit_choice(s, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL);
}

static void chat_part_begin(struct sba_model_stream *s, const struct sba_model_part *p)
{
	if (p->kind == SBA_MODEL_TOOL)
		emit_choice(s,
			    json_pack("{s:[{s:I, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index",
				      (json_int_t)s->tool, "id", p->id, "type", "function",
				      "function", "name", p->name, "arguments", ""),
			    NULL);
}

static void chat_part_delta(struct sba_model_stream *s, const struct sba_model_part *p,
			    const char *text, size_t len)
{
	json_t *delta;
	if (p->kind == SBA_MODEL_TOOL)
		delta = json_pack("{s:[{s:I, s:{s:s%}}]}", "tool_calls", "index",
				  (json_int_t)s->tool, "function", "arguments", text, len);
	else
		delta = json_pack("{s:s%}", text_key(p), text, len);
	emit_choice(s, delta, NULL);
}

static void chat_part_end(struct sba_model_stream *s, const struct sba_model_part *p)
{
	s->tool += p->kind == SBA_MODEL_TOOL;
}

static void chat_end(struct sba_model_stream *s)
{
	emit_choice(s, json_object(), finish_reason(&s->answer));
	if (s->answer.with_usage) {
		json_t *last = chunk(s, json_array());
		json_object_set_new(last, "usage", usage(&s->answer));
		sba_model_stream_emit(s, NULL, last);
	}
	sba_buf_puts(&s->out, "data: [DONE]\n\n");
}

const struct sba_model_wire sba_model_wire_chat = {
	.path = "/v1/chat/completions",
	.read = chat_read,
	.error = sba_model_openai_error,
	.whole = chat_whole,
	.begin = chat_begin,
	.part_begin = chat_part_begin,
	.part_delta = chat_part_delta,
	.part_end = chat_part_end,
	.end = chat_end,
};
