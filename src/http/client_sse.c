/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events out of any pieces, with bounded memory. Only the data
 * counts: the APIs read here repeat the event's name inside it.
 */
#include "base/limits.h"
#include "http/http.h"

#include <string.h>

void sba_sse_init(struct sba_sse *s)
{
	*s = (struct sba_sse){ 0 };
	sba_buf_init(&s->line, SBA_SSE_EVENT_MAX);
	sba_buf_init(&s->data, SBA_SSE_EVENT_MAX);
}

void sba_sse_fini(struct sba_sse *s)
{
	sba_buf_fini(&s->line);
	sba_buf_fini(&s->data);
}

static void start_event(struct sba_sse *s)
{
	sba_buf_reset(&s->data);
	s->has_data = s->too_large = s->given = false;
}

/* The blank line. True if there is an event to give. */
static bool end_event(struct sba_sse *s)
{
	bool whole = s->has_data && !s->too_large && !s->data.failed;
	if (whole) {
		s->given = true;
		return true;
	}
	s->dropped += s->too_large || s->data.failed;
	start_event(s);
	return false;
}

/* One line without its LF. True: an event is whole. */
static bool take_line(struct sba_sse *s, const char *line, size_t len)
{
	static const char field[] = "data:";
	const size_t name = sizeof(field) - 1;
	if (len && line[len - 1] == '\r')
		len--;
	if (!len)
		return end_event(s);
	if (len < name || memcmp(line, field, name) != 0)
		return false;
	line += name;
	len -= name;
	if (len && *line == ' ') {
		line++;
		len--;
	}
	if (s->has_data)
		sba_buf_putc(&s->data, '\n');
	sba_buf_put(&s->data, line, len);
	s->has_data = true;
	return false;
}

/* A line whose beginning came in an earlier piece. */
static bool take_joined_line(struct sba_sse *s, const char *rest, size_t len)
{
	sba_buf_put(&s->line, rest, len);
	bool whole = false;
	if (s->line.failed)
		s->too_large = true;
	else
		whole = take_line(s, s->line.data, s->line.len);
	sba_buf_reset(&s->line);
	return whole;
}

bool sba_sse_next(struct sba_sse *s, const char **data, size_t *len, const char **ret_event,
		  size_t *ret_len)
{
	if (s->given)
		start_event(s);
	while (*len) {
		const char *line = *data, *end = memchr(line, '\n', *len);
		size_t n = end ? (size_t)(end - line) : *len;
		*data += n + (end ? 1 : 0);
		*len -= n + (end ? 1 : 0);
		if (!end) {
			sba_buf_put(&s->line, line, n);
			return false;
		}
		bool begun = s->line.len || s->line.failed;
		if (begun ? take_joined_line(s, line, n) : take_line(s, line, n)) {
			*ret_event = s->data.data ? s->data.data : "";
			*ret_len = s->data.len;
			return true;
		}
	}
	return false;
}
