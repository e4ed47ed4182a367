/* SPDX-License-Identifier: MIT */
/* A body of JSON lines (build, pull, events), split and parsed as it comes. */
#include "engine/private.h"

#include <string.h>

struct splitter {
	struct sba_buf line;
	sba_line_fn *fn;
	void *user;
	const char *tried;
};

/* A line that is no JSON is skipped: one bad line must not end a stream. */
static int end_line(struct splitter *s, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_error why;
	int rc = sba_buf_check(&s->line, "a line of the engine's answer", err);
	if (rc < 0)
		return rc;
	bool blank = !s->line.data || s->line.data[strspn(s->line.data, " \r\t")] == '\0';
	if (!blank)
		rc = sba_json_parse(s->line.data, s->line.len, "line", &j, &why);
	if (rc == SBA_ENOMEM)
		return sba_fail_nomem(err);
	if (rc < 0)
		sba_log("engine", "%s: skipped a %s", s->tried, why.text);
	sba_buf_reset(&s->line);
	return j ? s->fn(s->user, j, err) : 0;
}

static int feed(struct splitter *s, const char *data, size_t len, struct sba_error *err)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t part = end ? (size_t)(end - data) : len;
		sba_buf_put(&s->line, data, part);
		int rc = end ? end_line(s, err) : 0;
		if (rc < 0)
			return rc;
		part += end ? 1 : 0;
		data += part;
		len -= part;
	}
	return sba_buf_check(&s->line, "a line of the engine's answer", err);
}

int sba_body_lines(struct sba_body *body, sba_line_fn *fn, void *user, struct sba_until until,
		   struct sba_error *err)
{
	struct splitter s = { .fn = fn, .user = user, .tried = body->tried };
	int rc = 0;
	sba_buf_init(&s.line, SBA_ENGINE_LINE_MAX);
	while (rc == 0) {
		char piece[16384];
		ssize_t n = sba_body_read(body, piece, sizeof(piece), until, err);
		if (n <= 0) {
			rc = n < 0 ? (int)n : end_line(&s, err);
			break;
		}
		rc = feed(&s, piece, (size_t)n, err);
	}
	sba_buf_fini(&s.line);
	return rc;
}
