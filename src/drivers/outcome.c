/* SPDX-License-Identifier: MIT */
/*
 * The end of a turn: one verdict from what was emitted and how the process
 * ended, with the words for it. The driver has the last say.
 */
#include "drivers/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sba_outcome_set(struct sba_stream *s, struct sba_outcome *o, enum sba_verdict verdict,
		     const char *fmt, ...)
{
	SBA_FREE char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	sba_buf_reset(&s->error);
	sba_buf_puts(&s->error, text ? text : "out of memory");
	o->verdict = verdict;
	o->error = s->error.len ? s->error.data : "the turn failed";
}

void sba_outcome_failure(struct sba_stream *s, struct sba_outcome *o)
{
	sba_outcome_set(s, o, s->failure.model ? SBA_VERDICT_MODEL_ERROR : SBA_VERDICT_AGENT_FAILED,
			"%s", s->failure_text.len ? s->failure_text.data : "unknown error");
	o->http_status = s->failure.http_status;
	o->retryable = s->failure.retryable;
}

/* Skips "\x1b[…m" and its kin; returns what follows. */
static const char *skip_escape(const char *p)
{
	p++;
	if (*p != '[')
		return *p ? p + 1 : p;
	for (p++; *p && ((unsigned char)*p < 0x40 || (unsigned char)*p > 0x7E); p++)
		;
	return *p ? p + 1 : p;
}

/* The end of stderr as a message: colours gone (opencode colours even what it
 * writes into a pipe), no blanks around it. */
static void put_stderr(struct sba_buf *b, const char *tail)
{
	enum { KEEP = 2000 };
	size_t len = strlen(tail);
	const char *p = len > KEEP ? tail + len - KEEP : tail;
	while (((unsigned char)*p & 0xC0) == 0x80)
		p++; /* not in the middle of a character */
	while (*p) {
		if (*p == '\x1b') {
			p = skip_escape(p);
			continue;
		}
		const char *end = strchrnul(p, '\x1b');
		if (b->len == 0)
			p += strspn(p, " \t\r\n");
		if (p < end)
			sba_buf_put_utf8(b, p, (size_t)(end - p));
		p = p < end ? end : p;
	}
	while (b->len > 0 && strchr(" \t\r\n", b->data[b->len - 1]))
		b->data[--b->len] = '\0';
}

static void put_end(struct sba_buf *b, const char *name, int exit_status)
{
	if (exit_status > 128)
		sba_buf_printf(b, "%s was ended by signal %d", name, exit_status - 128);
	else
		sba_buf_printf(b, "%s ended with exit status %d", name, exit_status);
}

static void set_from_end(struct sba_stream *s, struct sba_outcome *o, int exit_status,
			 const char *stderr_tail)
{
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(SBA_TURN_ERROR_MAX);
	SBA_BUF struct sba_buf tail = SBA_BUF_INIT(3 * SBA_TURN_ERROR_MAX);
	bool silent = exit_status == 0;
	if (silent)
		sba_buf_printf(&words, "%s ended without an answer", s->driver->name);
	else
		put_end(&words, s->driver->name, exit_status);
	put_stderr(&tail, stderr_tail ? stderr_tail : "");
	sba_outcome_set(s, o, silent ? SBA_VERDICT_NO_ANSWER : SBA_VERDICT_AGENT_FAILED, "%s%s%s",
			words.data ? words.data : s->driver->name, tail.len ? ": " : "",
			tail.len ? tail.data : "");
}

/* A process that has said its last word and does not go is ended by us: then
 * its exit status says nothing, and what it said counts. */
static int believed_status(const struct sba_stream *s, int exit_status)
{
	if (s->done && exit_status > 128)
		return s->failed ? exit_status : 0;
	return exit_status;
}

int sba_stream_finish(struct sba_stream *s, int exit_status, const char *stderr_tail,
		      struct sba_outcome *ret)
{
	int status = believed_status(s, exit_status);
	struct sba_outcome o = {
		.verdict = SBA_VERDICT_OK,
		.session = sba_stream_session(s),
		.text = s->answer.data ? s->answer.data : "",
		.usage = s->usage,
		.tools = s->tools,
		.unknown_lines = s->unknown_lines,
	};
	if (s->failed && (status != 0 || s->answer.len == 0))
		sba_outcome_failure(s, &o);
	else if (status != 0 || s->answer.len == 0)
		set_from_end(s, &o, status, stderr_tail);
	if (s->driver->finish)
		s->driver->finish(s, s->state, status, &o);
	if (o.verdict == SBA_VERDICT_OK)
		o.error = NULL;
	*ret = o;
	return 0;
}
