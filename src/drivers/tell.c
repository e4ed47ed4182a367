/* SPDX-License-Identifier: MIT */
/*
 * What a driver of the user's own tells of a line: the shared report with text
 * that may be anything, and JSON as text.
 */
#include "drivers/stream.h"

#include <string.h>

/* The text itself if it is UTF-8, else a mended copy in b. */
static const char *mended(const char *text, struct sba_buf *b)
{
	if (!text || sba_utf8_valid(text, strlen(text)))
		return text;
	sba_buf_put_utf8(b, text, strlen(text));
	return b->data && !b->failed ? b->data : "";
}

/* A bad byte becomes three. */
#define MENDED_INIT SBA_BUF_INIT((size_t)3 * SBA_LINE_MAX)

int sba_tell_session(struct sba_stream *s, const char *id)
{
	return sba_stream_found_session(s, id);
}

static int tell_text(struct sba_stream *s, enum sba_event_kind kind, const char *text, bool delta)
{
	SBA_BUF struct sba_buf b = MENDED_INIT;
	if (!delta)
		sba_stream_block_begin(s);
	return sba_stream_delta(s, kind, mended(text, &b));
}

int sba_tell_text(struct sba_stream *s, const char *text, bool delta)
{
	return tell_text(s, SBA_EVENT_TEXT, text, delta);
}

int sba_tell_thinking(struct sba_stream *s, const char *text, bool delta)
{
	return tell_text(s, SBA_EVENT_THINKING, text, delta);
}

static int tell_tool(struct sba_stream *s, const struct sba_tell_tool *t,
		     int (*tell)(struct sba_stream *, const struct sba_tool_use *))
{
	SBA_BUF struct sba_buf name = MENDED_INIT, native = MENDED_INIT, id = MENDED_INIT;
	SBA_BUF struct sba_buf output = MENDED_INIT;
	SBA_JSON json_t *input = t->input ? json_loads(t->input, JSON_DECODE_ANY, NULL) : NULL;
	const char *own = mended(t->native ? t->native : t->name, &native);
	return tell(s, &(struct sba_tool_use){
			       .name = t->name ? mended(t->name, &name) : own,
			       .native = own,
			       .call_id = mended(t->call_id, &id),
			       .input = input,
			       .output = mended(t->output, &output),
			       .failed = t->failed || (t->has_exit_code && t->exit_code != 0),
			       .has_exit_code = t->has_exit_code,
			       .exit_code = t->exit_code,
		       });
}

int sba_tell_call(struct sba_stream *s, const struct sba_tell_tool *t)
{
	if (!t->native && !t->name)
		return sba_stream_unknown(s, "a tool call without a name");
	return tell_tool(s, t, sba_stream_call);
}

int sba_tell_result(struct sba_stream *s, const struct sba_tell_tool *t)
{
	return tell_tool(s, t, sba_stream_result);
}

int sba_tell_file_change(struct sba_stream *s, const char *path, const char *change)
{
	SBA_BUF struct sba_buf b = MENDED_INIT;
	return sba_stream_file_change(s, mended(path, &b), change);
}

int sba_tell_usage(struct sba_stream *s, const struct sba_usage *more)
{
	return sba_stream_usage(s, more);
}

int sba_tell_notice(struct sba_stream *s, const char *text)
{
	SBA_BUF struct sba_buf b = MENDED_INIT;
	return sba_stream_notice(s, "%s", mended(text ? text : "", &b));
}

int sba_tell_unknown(struct sba_stream *s, const char *text)
{
	SBA_BUF struct sba_buf b = MENDED_INIT;
	return sba_stream_unknown(s, "%s", mended(text ? text : "", &b));
}

int sba_tell_error(struct sba_stream *s, const char *text, bool from_model, int http_status)
{
	SBA_BUF struct sba_buf b = MENDED_INIT;
	return sba_stream_error(
		s, &(struct sba_failure){
			   .text = mended(text, &b),
			   .http_status = http_status,
			   .model = from_model,
			   .retryable = from_model &&
					(http_status == 0 || sba_http_retryable(http_status)),
		   });
}

int sba_tell_done(struct sba_stream *s)
{
	sba_stream_set_done(s, true);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

void sba_tell_stuck(struct sba_stream *s)
{
	sba_stream_set_stuck(s);
}
