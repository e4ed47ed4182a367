/* SPDX-License-Identifier: MIT */
/* Lines out of a stream of bytes: constant memory for ordinary ones, a ceiling for all. */
#include "agent/private.h"

#include <string.h>

enum { KEEP_LINE_MEMORY = 64 * 1024 };

void sba_lines_init(struct sba_lines *l, size_t max)
{
	*l = (struct sba_lines){ 0 };
	sba_buf_init(&l->partial, max);
}

void sba_lines_fini(struct sba_lines *l)
{
	sba_buf_fini(&l->partial);
}

static void begin_line(struct sba_lines *l)
{
	l->dropped += l->too_long;
	l->too_long = false;
	if (l->partial.cap > KEEP_LINE_MEMORY)
		sba_buf_fini(&l->partial);
	else
		sba_buf_reset(&l->partial);
}

static void keep(struct sba_lines *l, const char *data, size_t len)
{
	if (l->too_long)
		return;
	sba_buf_put(&l->partial, data, len);
	l->too_long = l->partial.failed != 0;
}

size_t sba_lines_feed(struct sba_lines *l, const char *data, size_t len, const char **line,
		      size_t *line_len)
{
	*line = NULL;
	/* A line that was handed out stays valid until now. */
	if (l->partial.len > 0 && l->partial.data[l->partial.len - 1] == '\n')
		begin_line(l);
	const char *newline = memchr(data, '\n', len);
	if (!newline) {
		keep(l, data, len);
		return len;
	}
	size_t used = (size_t)(newline - data) + 1;
	if (l->partial.len == 0 && !l->too_long) {
		*line = data;
		*line_len = used - 1;
		return used;
	}
	keep(l, data, used);
	if (l->too_long) {
		begin_line(l);
		return used;
	}
	*line = l->partial.data;
	*line_len = l->partial.len - 1;
	return used;
}

bool sba_lines_rest(struct sba_lines *l, const char **line, size_t *line_len)
{
	l->dropped += l->too_long;
	if (l->too_long || l->partial.len == 0 || l->partial.data[l->partial.len - 1] == '\n')
		return false;
	*line = l->partial.data;
	*line_len = l->partial.len;
	return true;
}
