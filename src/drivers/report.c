/* SPDX-License-Identifier: MIT */
/*
 * Events out: fills in what every event carries and keeps count of what the
 * outcome will need. It knows no CLI.
 */
#include "drivers/stream.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int sba_stream_emit(struct sba_stream *s, struct sba_event event)
{
	event.time_ms = sba_unix_ms();
	event.session = sba_stream_session(s);
	event.raw = s->raw;
	event.raw_len = s->raw_len;
	return s->fn ? s->fn(s->user, &event) : 0;
}

int sba_stream_found_session(struct sba_stream *s, const char *id)
{
	if (s->session[0] || !sba_session_id_valid(id))
		return 0;
	memcpy(s->session, id, strlen(id) + 1);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_SESSION });
}

const char *sba_stream_asked_session(const struct sba_stream *s)
{
	return s->resumes[0] ? s->resumes : s->new_session;
}

void sba_stream_assume_session(struct sba_stream *s)
{
	const char *id = sba_stream_asked_session(s);
	if (!s->session[0] && sba_session_id_valid(id))
		memcpy(s->session, id, strlen(id) + 1);
}

/* ---- text ---- */

static struct sba_buf *shown_of(struct sba_stream *s, enum sba_event_kind kind)
{
	return kind == SBA_EVENT_TEXT ? &s->shown_text : &s->shown_thinking;
}

void sba_stream_block_begin(struct sba_stream *s)
{
	sba_buf_reset(&s->shown_text);
	sba_buf_reset(&s->shown_thinking);
}

void sba_stream_answer_drop(struct sba_stream *s)
{
	sba_buf_reset(&s->answer);
}

void sba_stream_answer_set(struct sba_stream *s, const char *text)
{
	sba_buf_reset(&s->answer);
	sba_buf_puts(&s->answer, text);
}

static int emit_text(struct sba_stream *s, enum sba_event_kind kind, const char *text, bool delta)
{
	return sba_stream_emit(s, (struct sba_event){ .kind = kind, .text = text, .delta = delta });
}

int sba_stream_delta(struct sba_stream *s, enum sba_event_kind kind, const char *text)
{
	if (!text || !text[0])
		return 0;
	struct sba_buf *shown = shown_of(s, kind);
	bool first = shown->len == 0;
	if (kind == SBA_EVENT_TEXT) {
		if (first && s->answer.len > 0)
			sba_buf_putc(&s->answer, '\n');
		sba_buf_puts(&s->answer, text);
	}
	sba_buf_puts(shown, text);
	return emit_text(s, kind, text, !first);
}

/* A stream that was cut is asked for again without streaming: then the whole
 * goes on where the deltas ended, or is another text altogether. */
int sba_stream_whole(struct sba_stream *s, enum sba_event_kind kind, const char *text)
{
	if (!text || !text[0])
		return 0;
	struct sba_buf *shown = shown_of(s, kind);
	if (shown->len > 0 && strncmp(text, shown->data, shown->len) == 0)
		text += shown->len;
	else
		sba_buf_reset(shown);
	int rc = sba_stream_delta(s, kind, text);
	sba_buf_reset(shown);
	return rc;
}

/* ---- tools ---- */

static void open_call(struct sba_stream *s, const struct sba_tool_use *use)
{
	if (!use->call_id || json_object_size(s->open_calls) >= SBA_OPEN_CALLS_MAX)
		return;
	/* Out of memory only costs the result its tool's name. */
	(void)json_object_set_new(
		s->open_calls, use->call_id,
		json_pack("[sss?]", use->native, use->name, sba_tool_path(use->input)));
}

static const char *open_call_get(const struct sba_stream *s, const char *call_id, size_t which)
{
	if (!call_id)
		return NULL;
	const json_t *names = json_object_get(s->open_calls, call_id);
	return json_string_value(json_array_get(names, which));
}

const char *sba_stream_open_tool(const struct sba_stream *s, const char *call_id)
{
	return open_call_get(s, call_id, 0);
}

const char *sba_stream_open_path(const struct sba_stream *s, const char *call_id)
{
	return open_call_get(s, call_id, 2);
}

int sba_stream_call(struct sba_stream *s, const struct sba_tool_use *use)
{
	SBA_BUF struct sba_buf summary = SBA_BUF_INIT(SBA_SUMMARY_MAX + 8);
	SBA_FREE char *input = use->input ? sba_json_dump(use->input) : NULL;
	sba_tool_summary(&summary, use->input);
	s->tools++;
	if (!use->aside) {
		sba_stream_answer_drop(s);
		sba_stream_block_begin(s);
	}
	open_call(s, use);
	return sba_stream_emit(s,
			       (struct sba_event){ .kind = SBA_EVENT_TOOL_CALL,
						   .tool = use->name,
						   .tool_native = use->native,
						   .call_id = use->call_id,
						   .input = input,
						   .summary = summary.len ? summary.data : NULL });
}

int sba_stream_result(struct sba_stream *s, const struct sba_tool_use *use)
{
	const char *native = use->native ? use->native : open_call_get(s, use->call_id, 0);
	const char *name = use->name ? use->name : open_call_get(s, use->call_id, 1);
	int rc = sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_TOOL_RESULT,
							.tool = name,
							.tool_native = native,
							.call_id = use->call_id,
							.output = use->output,
							.failed = use->failed,
							.has_exit_code = use->has_exit_code,
							.exit_code = use->exit_code });
	if (use->call_id)
		json_object_del(s->open_calls, use->call_id);
	return rc;
}

int sba_stream_file_change(struct sba_stream *s, const char *path, const char *change)
{
	if (!path || !path[0])
		return 0;
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_FILE_CHANGE,
						      .path = path,
						      .change = change });
}

/* ---- usage, failures, notices ---- */

static void add(int64_t *sum, int64_t more)
{
	if (more > 0 && __builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

void sba_usage_add(struct sba_usage *sum, const struct sba_usage *more)
{
	add(&sum->input, more->input);
	add(&sum->cached_input, more->cached_input);
	add(&sum->output, more->output);
	add(&sum->reasoning, more->reasoning);
	if (more->cost_usd > 0)
		sum->cost_usd += more->cost_usd;
}

int sba_stream_usage(struct sba_stream *s, const struct sba_usage *more)
{
	sba_usage_add(&s->usage, more);
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_USAGE, .usage = s->usage });
}

int sba_stream_error(struct sba_stream *s, const struct sba_failure *failure)
{
	const char *text = failure->text && failure->text[0] ? failure->text : "unknown error";
	s->failed = true;
	s->failure = *failure;
	sba_buf_reset(&s->failure_text);
	sba_buf_put(&s->failure_text, text, sba_text_cut(text, SBA_TURN_ERROR_MAX));
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_ERROR,
						      .text = text,
						      .http_status = failure->http_status });
}

void sba_stream_error_forget(struct sba_stream *s)
{
	s->failed = false;
}

bool sba_stream_failed(const struct sba_stream *s)
{
	return s->failed;
}

static int SBA_PRINTF(2, 0) notice(struct sba_stream *s, const char *fmt, va_list ap)
{
	SBA_FREE char *text = NULL;
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	return sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_NOTICE,
						      .text = text ? text : "out of memory" });
}

int sba_stream_notice(struct sba_stream *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = notice(s, fmt, ap);
	va_end(ap);
	return rc;
}

int sba_stream_retry(struct sba_stream *s, int status, const char *why, int64_t attempt,
		     int64_t most)
{
	char code[32] = "";
	if (status > 0)
		snprintf(code, sizeof(code), "HTTP %d%s", status, why ? ", " : "");
	return sba_stream_notice(s, "the model's request failed (%s%s): retry %lld of %lld", code,
				 why           ? why
				 : status <= 0 ? "no answer"
					       : "",
				 (long long)attempt, (long long)most);
}

int sba_stream_unknown(struct sba_stream *s, const char *fmt, ...)
{
	va_list ap;
	s->unknown_lines++;
	va_start(ap, fmt);
	int rc = notice(s, fmt, ap);
	va_end(ap);
	return rc;
}

void sba_stream_set_done(struct sba_stream *s, bool done)
{
	s->done = done;
}

void sba_stream_set_stuck(struct sba_stream *s)
{
	s->stuck = true;
}
