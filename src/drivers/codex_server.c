/* SPDX-License-Identifier: MIT */
/*
 * The other form in which codex tells a turn (measured with 0.171.0): what
 * `codex app-server` notifies. Items are those of `codex exec --json` under names of
 * another case; text comes in deltas, tokens once more for each request. A recording
 * of it is read as one of the first form is.
 */
#include "drivers/codex.h"

#include "base/limits.h"

#include <ctype.h>
#include <string.h>

/* "exitCode" is "exit_code". */
static void put_snake(struct sba_buf *b, const char *camel)
{
	for (; *camel; camel++) {
		if (isupper((unsigned char)*camel))
			sba_buf_putc(b, '_');
		sba_buf_putc(b, (char)tolower((unsigned char)*camel));
	}
}

/* An item, or counts of tokens, as the first form has it. */
static json_t *in_snake(const json_t *from)
{
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	json_t *to = json_object(), *value;
	const char *key;
	/* jansson takes no const, but only reads. */
	json_object_foreach((json_t *)(uintptr_t)from, key, value)
	{
		sba_buf_reset(&name);
		put_snake(&name, key);
		if (!name.failed && name.data)
			json_object_set(to, name.data, value);
	}
	sba_buf_reset(&name);
	put_snake(&name, sba_json_str(from, "type") ? sba_json_str(from, "type") : "");
	if (name.len > 0 && !name.failed)
		json_object_set_new(to, "type", json_string(name.data));
	return to;
}

static int on_thread_started(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	return sba_stream_found_session(s, sba_json_str(params, "thread.id"));
}

static int on_turn_started(struct sba_stream *s, struct codex *c, const json_t *params SBA_UNUSED)
{
	c->completed = false;
	sba_stream_set_done(s, false);
	return 0;
}

/* The summary is the text of the first form. */
static void put_reasoning(json_t *item, const json_t *from)
{
	const char *summary = sba_json_str(from, "summary.#0");
	if (summary)
		json_object_set_new(item, "text", json_string(summary));
}

static int on_item(struct sba_stream *s, const json_t *params, bool ended)
{
	const json_t *from = json_object_get(params, "item");
	const char *type = sba_json_str(from, "type");
	if (type && strcmp(type, "userMessage") == 0)
		return 0;
	SBA_JSON json_t *item = in_snake(from);
	put_reasoning(item, from);
	if (!ended)
		sba_stream_block_begin(s);
	return sba_codex_item(s, item, ended);
}

static int on_item_started(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	const char *type = sba_json_str(params, "item.type");
	/* The last message is the answer, and its deltas come before its end. */
	if (type && strcmp(type, "agentMessage") == 0)
		sba_stream_answer_drop(s);
	return on_item(s, params, false);
}

static int on_item_completed(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	return on_item(s, params, true);
}

static int on_text(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	return sba_stream_delta(s, SBA_EVENT_TEXT, sba_json_str(params, "delta"));
}

static int on_thinking(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	return sba_stream_delta(s, SBA_EVENT_THINKING, sba_json_str(params, "delta"));
}

static int on_tokens(struct sba_stream *s, struct codex *c SBA_UNUSED, const json_t *params)
{
	SBA_JSON json_t *total = in_snake(sba_json_get(params, "tokenUsage.total"));
	return sba_codex_usage(s, total);
}

static int on_turn_completed(struct sba_stream *s, struct codex *c, const json_t *params)
{
	const char *status = sba_json_str(params, "turn.status");
	const char *text = sba_json_str(params, "turn.error.message");
	c->completed = status && strcmp(status, "completed") == 0;
	sba_stream_set_done(s, true);
	if (c->completed)
		sba_stream_error_forget(s);
	else if (text)
		return sba_codex_failure(s, text);
	else
		return sba_stream_error(s, &(struct sba_failure){ .text = status });
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

/* What an answer to one of the client's requests is, and what is told beside turns. */
static bool is_quiet(const char *method)
{
	static const char *const prefixes[] = { "account/", "remoteControl/", "thread/",
						"item/reasoning/" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(prefixes); i++) {
		if (sba_starts_with(method, prefixes[i]))
			return true;
	}
	return false;
}

int sba_codex_server_object(struct sba_stream *s, struct codex *c, const json_t *line)
{
	static const struct {
		const char *method;
		int (*on)(struct sba_stream *s, struct codex *c, const json_t *params);
	} lines[] = {
		{ "thread/started", on_thread_started },
		{ "turn/started", on_turn_started },
		{ "item/started", on_item_started },
		{ "item/completed", on_item_completed },
		{ "item/agentMessage/delta", on_text },
		{ "item/reasoning/summaryTextDelta", on_thinking },
		{ "thread/tokenUsage/updated", on_tokens },
		{ "turn/completed", on_turn_completed },
	};
	const char *method = sba_json_str(line, "method");
	const char *refused = sba_json_str(line, "error.message");
	if (refused)
		return sba_codex_failure(s, refused);
	for (size_t i = 0; method && i < SBA_ARRAY_LEN(lines); i++) {
		if (strcmp(method, lines[i].method) == 0)
			return lines[i].on(s, c, json_object_get(line, "params"));
	}
	return !method || is_quiet(method) ? 0
					   : sba_stream_unknown(s, "a notification '%s'", method);
}
