/* SPDX-License-Identifier: MIT */
/*
 * Two framings as state machines that are fed in pieces and copy nothing:
 * HTTP's chunked transfer coding and the engine's multiplexed streams.
 */
#include "base/limits.h"
#include "engine/engine.h"

#include <string.h>

enum chunk_state {
	CHUNK_SIZE,    /* the size line, up to its CR */
	CHUNK_SIZE_LF, /* the size line's LF */
	CHUNK_DATA,
	CHUNK_DATA_CR, /* the CR LF behind the data */
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* a line after the last chunk; an empty one ends it all */
	CHUNK_TRAILER_LF,
	CHUNK_DONE,
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* "1a2b", maybe with ";extension" or blanks behind it. */
static bool parse_size(const struct sba_chunked *c, uint64_t *ret)
{
	size_t kept = c->line_len < sizeof(c->line) ? c->line_len : sizeof(c->line);
	uint64_t size = 0;
	size_t i = 0;
	for (; i < kept && hex_digit(c->line[i]) >= 0; i++) {
		if (i == 15) /* fits int64_t */
			return false;
		size = size << 4 | (unsigned)hex_digit(c->line[i]);
	}
	if (i == 0 || (i < kept && !strchr("; \t", c->line[i])))
		return false;
	*ret = size;
	return true;
}

static int chunk_broken(struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "broken chunked transfer coding");
}

static int size_line_byte(struct sba_chunked *c, char b, struct sba_error *err)
{
	if (b == '\r') {
		c->state = CHUNK_SIZE_LF;
		return 0;
	}
	if (b == '\n' || b == '\0' || c->line_len == SBA_HTTP_CHUNK_LINE_MAX)
		return chunk_broken(err);
	if (c->line_len < sizeof(c->line))
		c->line[c->line_len] = b;
	c->line_len++;
	return 0;
}

static int size_line_end(struct sba_chunked *c, char b, struct sba_error *err)
{
	if (b != '\n' || !parse_size(c, &c->left))
		return chunk_broken(err);
	c->line_len = 0;
	c->state = c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
	return 0;
}

/* `left` counts the trailer's bytes here: it may not go on for ever. */
static int trailer_byte(struct sba_chunked *c, char b, struct sba_error *err)
{
	if (b == '\r') {
		c->state = CHUNK_TRAILER_LF;
		return 0;
	}
	if (b == '\n' || c->line_len++ == SBA_HTTP_CHUNK_LINE_MAX || c->left++ == SBA_HTTP_HEAD_MAX)
		return chunk_broken(err);
	return 0;
}

static int trailer_line_end(struct sba_chunked *c, char b, struct sba_error *err)
{
	if (b != '\n')
		return chunk_broken(err);
	c->state = c->line_len > 0 ? CHUNK_TRAILER : CHUNK_DONE;
	c->line_len = 0;
	return 0;
}

static int expect_byte(struct sba_chunked *c, char b, char wanted, int next, struct sba_error *err)
{
	if (b != wanted)
		return chunk_broken(err);
	c->state = next;
	return 0;
}

static int chunk_byte(struct sba_chunked *c, char b, struct sba_error *err)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return size_line_byte(c, b, err);
	case CHUNK_SIZE_LF:
		return size_line_end(c, b, err);
	case CHUNK_DATA_CR:
		return expect_byte(c, b, '\r', CHUNK_DATA_LF, err);
	case CHUNK_DATA_LF:
		return expect_byte(c, b, '\n', CHUNK_SIZE, err);
	case CHUNK_TRAILER:
		return trailer_byte(c, b, err);
	case CHUNK_TRAILER_LF:
		return trailer_line_end(c, b, err);
	default:
		return chunk_broken(err);
	}
}

ssize_t sba_chunked_feed(struct sba_chunked *c, const char *data, size_t len, const char **payload,
			 size_t *payload_len, bool *done, struct sba_error *err)
{
	size_t i = 0, span = 0;
	while (i < len && c->state != CHUNK_DATA && c->state != CHUNK_DONE) {
		int rc = chunk_byte(c, data[i++], err);
		if (rc < 0)
			return rc;
	}
	if (c->state == CHUNK_DATA) {
		span = len - i < c->left ? len - i : (size_t)c->left;
		c->left -= span;
		if (c->left == 0)
			c->state = CHUNK_DATA_CR;
	}
	*payload = data + i;
	*payload_len = span;
	*done = c->state == CHUNK_DONE;
	return (ssize_t)(i + span);
}

/* Stream 3 is the engine's own error text (engines from 25 on). */
static int check_frame_head(const unsigned char *h, struct sba_error *err)
{
	if (h[0] > 3 || h[1] || h[2] || h[3])
		return sba_fail(err, SBA_EPROTO, "not a frame of the engine's stream");
	uint32_t len = (uint32_t)sba_be_get(h + 4, 4);
	if (len > SBA_FRAME_MAX)
		return sba_fail(err, SBA_EPROTO, "a frame of %u bytes", len);
	return 0;
}

ssize_t sba_frames_feed(struct sba_frames *f, const char *data, size_t len, int *type,
			const char **payload, size_t *payload_len, struct sba_error *err)
{
	size_t i = 0;
	while (i < len && f->left == 0) {
		if (f->head_len == sizeof(f->head)) /* of the frame before */
			f->head_len = 0;
		f->head[f->head_len++] = (unsigned char)data[i++];
		if (f->head_len < sizeof(f->head))
			continue;
		int rc = check_frame_head(f->head, err);
		if (rc < 0)
			return rc;
		f->left = (uint32_t)sba_be_get(f->head + 4, 4);
	}
	size_t span = len - i < f->left ? len - i : f->left;
	f->left -= (uint32_t)span;
	*type = f->head[0];
	*payload = data + i;
	*payload_len = span;
	return (ssize_t)(i + span);
}

bool sba_frames_at_border(const struct sba_frames *f)
{
	return f->left == 0 && (f->head_len == 0 || f->head_len == sizeof(f->head));
}
