/* SPDX-License-Identifier: MIT */
/*
 * What a model request asks, told in one form for all wires: the user's own
 * text, how far the turn has come, what the last tool said, which tools are
 * offered. State lives in the request alone, so that a resumed session goes
 * on where it was.
 */
#include "base/limits.h"
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts with the user's role that the CLIs write themselves: codex and dsh
 * describe their surroundings in user messages, claude reports interrupts. */
static const char *const noise[] = {
	"<environment_context>",         "<user_instructions>",     "<turn_aborted>",
	"# AGENTS.md instructions for ", "Current runtime context", "[Request interrupted by user",
};

/* System texts of requests for a title: opencode's, dsh's. */
static const char *const titles[] = {
	"You are a title generator",
	"Create a concise title for ",
};

static bool starts_with_any(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sba_starts_with(s, prefixes[i]))
			return true;
	return false;
}

/* NUL is legal in JSON text, but ends a C string: it becomes U+FFFD. */
static void put_text(struct sba_buf *b, const json_t *string)
{
	const char *s = json_string_value(string);
	size_t left = json_string_length(string);
	while (left) {
		size_t n = strnlen(s, left);
		sba_buf_put(b, s, n);
		if (n < left) {
			sba_buf_puts(b, "\xef\xbf\xbd");
			n++;
		}
		s += n;
		left -= n;
	}
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void trim(struct sba_buf *b)
{
	size_t start = 0;
	while (b->len && is_space(b->data[b->len - 1]))
		b->data[--b->len] = '\0';
	while (start < b->len && is_space(b->data[start]))
		start++;
	sba_buf_drop(b, start);
}

/* Appends s without the <system-reminder> blocks that claude puts around and
 * into the user's text. */
static void put_without_reminders(struct sba_buf *b, const char *s)
{
	static const char open[] = "<system-reminder>", close[] = "</system-reminder>";
	const char *from, *to;
	while ((from = strstr(s, open)) && (to = strstr(from, close))) {
		sba_buf_put(b, s, (size_t)(from - s));
		s = to + sizeof(close) - 1;
	}
	sba_buf_puts(b, s);
}

/* Appends what in one text is the user's own. */
static void put_users_own(struct sba_buf *b, const json_t *string)
{
	SBA_BUF struct sba_buf raw = SBA_BUF_INIT(b->max);
	SBA_BUF struct sba_buf own = SBA_BUF_INIT(b->max);
	put_text(&raw, string);
	put_without_reminders(&own, raw.data ? raw.data : "");
	trim(&own);
	if (!own.len || starts_with_any(own.data, noise, SBA_ARRAY_LEN(noise)))
		return;
	sba_buf_put(b, own.data, own.len);
}

static void put_line(struct sba_buf *b, const json_t *string)
{
	if (b->len)
		sba_buf_putc(b, '\n');
	put_text(b, string);
}

static void each_line(const json_t *content, struct sba_buf *ret)
{
	size_t i;
	json_t *block;
	if (json_is_string(content))
		put_line(ret, content);
	json_array_foreach(content, i, block)
	{
		const json_t *text = json_object_get(block, "text");
		if (json_is_string(text))
			put_line(ret, text);
	}
}

void sba_model_see_system(struct sba_model_request *r, const json_t *content)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_HTTP_REQUEST_MAX);
	each_line(content, &b);
	if (b.data && starts_with_any(b.data, titles, SBA_ARRAY_LEN(titles)))
		r->title = true;
}

/* Each text counts as a message: claude 2.1.332 puts one that was never answered
 * (its turn failed) into the next message, as a block of its own. */
static void see_users_own(struct sba_model_request *r, const json_t *text)
{
	SBA_BUF struct sba_buf own = SBA_BUF_INIT(SBA_HTTP_REQUEST_MAX);
	put_users_own(&own, text);
	if (!own.len)
		return;
	if (r->users++)
		sba_buf_puts(&r->user_texts, " | ");
	sba_buf_put(&r->user_texts, own.data, own.len);
	sba_buf_reset(&r->prompt);
	sba_buf_put(&r->prompt, own.data, own.len);
	sba_buf_reset(&r->tool_output);
	r->step = 0;
}

void sba_model_see_user(struct sba_model_request *r, const json_t *content)
{
	size_t i;
	json_t *block;
	if (json_is_string(content))
		see_users_own(r, content);
	json_array_foreach(content, i, block)
	{
		const json_t *text = json_object_get(block, "text");
		if (json_is_string(text))
			see_users_own(r, text);
	}
}

void sba_model_see_assistant(struct sba_model_request *r)
{
	r->step++;
}

void sba_model_see_tool_output(struct sba_model_request *r, const json_t *content)
{
	sba_buf_reset(&r->tool_output);
	each_line(content, &r->tool_output);
}

int sba_model_see_tool(struct sba_model_request *r, const struct sba_model_tool *tool,
		       struct sba_error *err)
{
	struct sba_model_tool *grown = realloc(r->tools, (r->n_tools + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	grown[r->n_tools++] = *tool;
	r->tools = grown;
	return 0;
}

static int load(struct sba_model_request *r, const char *body, size_t len, struct sba_error *err)
{
	json_error_t e;
	r->doc = sba_json_load(body, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (!r->doc && errno == ENOMEM)
		return sba_fail_nomem(err);
	if (!r->doc)
		return sba_fail(err, SBA_EPROTO, "the request is not JSON: line %d column %d: %s",
				e.line, e.column, e.text);
	if (!json_is_object(r->doc))
		return sba_fail(err, SBA_EPROTO, "the request is not a JSON object");
	return 0;
}

int sba_model_request_parse(struct sba_model_request *r, const struct sba_model_wire *wire,
			    const char *body, size_t len, struct sba_error *err)
{
	*r = (struct sba_model_request){ .wire = wire, .body_len = len };
	sba_buf_init(&r->prompt, SBA_HTTP_REQUEST_MAX);
	sba_buf_init(&r->user_texts, 2 * (size_t)SBA_HTTP_REQUEST_MAX);
	sba_buf_init(&r->tool_output, SBA_HTTP_REQUEST_MAX);
	int rc = load(r, body, len, err);
	if (rc < 0)
		return rc;
	const char *model = sba_json_str(r->doc, "model");
	r->model = model ? model : "scripted";
	r->stream = sba_json_bool(r->doc, "stream", false);
	rc = wire->read(r, err);
	if (rc < 0)
		return rc;
	if (r->n_tools)
		r->title = false;
	rc = sba_buf_check(&r->prompt, "the prompt", err);
	if (rc == 0)
		rc = sba_buf_check(&r->user_texts, "the user's texts", err);
	return rc ? rc : sba_buf_check(&r->tool_output, "the tool's output", err);
}

void sba_model_request_fini(struct sba_model_request *r)
{
	json_decref(r->doc);
	sba_buf_fini(&r->prompt);
	sba_buf_fini(&r->user_texts);
	sba_buf_fini(&r->tool_output);
	free(r->tools);
	*r = (struct sba_model_request){ 0 };
}
