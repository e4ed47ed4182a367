/* SPDX-License-Identifier: MIT */
/*
 * One line in: parsed as far as it can be, handed to the driver, never an
 * error. What a line means is the driver's business.
 */
#include "drivers/stream.h"

#include <stdlib.h>
#include <string.h>

int sba_stream_new(const struct sba_stream_options *o, struct sba_stream **ret,
		   struct sba_error *err)
{
	const struct sba_driver *driver = o->driver;
	struct sba_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return sba_fail_nomem(err);
	s->driver = driver;
	s->mcp = o->mcp;
	s->fn = o->fn;
	s->user = o->user;
	sba_text_keep(s->resumes, sizeof(s->resumes), o->resumes);
	sba_text_keep(s->new_session, sizeof(s->new_session), o->new_session);
	s->keeps = o->kept != NULL;
	sba_text_keep(s->kept, sizeof(s->kept), o->kept);
	sba_buf_init(&s->answer, SBA_ANSWER_MAX);
	sba_buf_init(&s->shown_text, SBA_ANSWER_MAX);
	sba_buf_init(&s->shown_thinking, SBA_ANSWER_MAX);
	sba_buf_init(&s->failure_text, SBA_TURN_ERROR_MAX);
	sba_buf_init(&s->error, 2 * SBA_TURN_ERROR_MAX);
	s->open_calls = json_object();
	s->state = calloc(1, driver->state_size ? driver->state_size : 1);
	if (!s->open_calls || !s->state) {
		sba_stream_free(s);
		return sba_fail_nomem(err);
	}
	*ret = s;
	return 0;
}

void sba_stream_free(struct sba_stream *s)
{
	if (!s)
		return;
	if (s->state && s->driver->state_fini)
		s->driver->state_fini(s->state);
	free(s->state);
	json_decref(s->open_calls);
	sba_buf_fini(&s->answer);
	sba_buf_fini(&s->shown_text);
	sba_buf_fini(&s->shown_thinking);
	sba_buf_fini(&s->failure_text);
	sba_buf_fini(&s->error);
	free(s);
}

/* The code of a "\uXXXX" at s. */
static bool unicode_escape(const char *s, size_t len, unsigned *ret)
{
	if (len < 6 || s[0] != '\\' || s[1] != 'u')
		return false;
	unsigned code = 0;
	for (size_t i = 2; i < 6; i++) {
		const char *digits = "0123456789abcdef";
		const char *at = s[i] ? strchr(digits, s[i] | 0x20) : NULL;
		if (!at)
			return false;
		code = code << 4 | (unsigned)(at - digits);
	}
	*ret = code;
	return true;
}

/* JavaScript's strings may hold U+0000 and half a surrogate pair (a text that
 * was cut between two deltas), and its JSON.stringify writes both as escapes,
 * which jansson refuses. The replacement has the same length. */
static void mend_escapes(char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned code, low;
		if (s[i] != '\\')
			continue;
		if (!unicode_escape(s + i, len - i, &code)) {
			i++; /* the escaped character, be it a backslash */
			continue;
		}
		if ((code & 0xFC00) == 0xD800 && unicode_escape(s + i + 6, len - i - 6, &low) &&
		    (low & 0xFC00) == 0xDC00) {
			i += 11;
			continue;
		}
		if (code == 0 || (code & 0xF800) == 0xD800)
			memcpy(s + i + 2, "fffd", 4);
		i += 5;
	}
}

static json_t *parse_mended(const char *line, size_t len)
{
	/* A bad byte becomes three. */
	SBA_BUF struct sba_buf b = SBA_BUF_INIT((size_t)3 * SBA_LINE_MAX);
	sba_buf_put_utf8(&b, line, len);
	if (b.failed || !b.data)
		return NULL;
	mend_escapes(b.data, b.len);
	json_t *j = sba_json_load(b.data, b.len, 0, NULL);
	/* Integers beyond int64 are legal JSON and an error to jansson. Only
	 * then: the flag turns every integer of the line into a real. */
	return j ? j : sba_json_load(b.data, b.len, JSON_DECODE_INT_AS_REAL, NULL);
}

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	}
	return true;
}

int sba_stream_object(struct sba_stream *s, void *state, const char *line, size_t len,
		      sba_object_fn *object)
{
	if (is_blank(line, len))
		return 0;
	SBA_JSON json_t *j = sba_json_load(line, len, 0, NULL);
	if (!j)
		j = parse_mended(line, len);
	if (!json_is_object(j))
		return sba_stream_unknown(s, "a line that is no JSON object");
	return object(s, state, j);
}

static int understand(struct sba_stream *s)
{
	if (s->raw_len > SBA_LINE_MAX)
		return sba_stream_unknown(s, "a line of %zu bytes, which is too long", s->raw_len);
	return s->driver->line(s, s->state, s->raw, s->raw_len);
}

int sba_stream_line(struct sba_stream *s, const char *line, size_t len)
{
	s->raw = line;
	s->raw_len = len;
	int rc = understand(s);
	s->raw = NULL;
	s->raw_len = 0;
	return rc;
}

bool sba_stream_done(const struct sba_stream *s)
{
	return s->done;
}

bool sba_stream_stuck(const struct sba_stream *s)
{
	return s->stuck;
}

const struct sba_usage *sba_stream_used(const struct sba_stream *s)
{
	return &s->usage;
}

const char *sba_stream_session(const struct sba_stream *s)
{
	return s->session[0] ? s->session : NULL;
}

const char *sba_stream_resumes(const struct sba_stream *s)
{
	return s->resumes[0] ? s->resumes : NULL;
}

const char *sba_stream_kept(const struct sba_stream *s)
{
	return s->keeps ? s->kept : NULL;
}

void sba_stream_keep(struct sba_stream *s, const char *text)
{
	s->keeps = text != NULL;
	sba_text_keep(s->kept, sizeof(s->kept), text);
}
