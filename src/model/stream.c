/* SPDX-License-Identifier: MIT */
/*
 * The pace of an answer: which event is due, how long to wait for it, where
 * to break off. What an event looks like is the wire's matter.
 */
#include "base/limits.h"
#include "model/private.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* Without a "chunk" of the script's: enough deltas to be a stream,
	 * few enough for large answers. */
	CHUNK_MIN = 24,
	CHUNKS_MAX = 200,

	/* What wires add to an answer: JSON's escapes (6 for 1 at worst), and
	 * Responses says every text four times. */
	OUT_FACTOR = 32,
};

static struct sba_model_stream *stream_new(struct sba_model_answer *a)
{
	struct sba_model_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	sba_buf_init(&s->out, OUT_FACTOR * (size_t)SBA_MODEL_ANSWER_MAX);
	s->answer = *a;
	*a = (struct sba_model_answer){ 0 };
	return s;
}

struct sba_model_stream *sba_model_stream_new(const struct sba_model_wire *wire,
					      struct sba_model_answer *a)
{
	struct sba_model_stream *s = stream_new(a);
	if (s)
		s->wire = wire;
	return s;
}

struct sba_model_stream *sba_model_stream_new_whole(struct sba_model_answer *a, const json_t *body)
{
	SBA_FREE char *text = sba_json_dump(body);
	struct sba_model_stream *s = text ? stream_new(a) : NULL;
	if (!s)
		return NULL;
	s->phase = SBA_MODEL_PHASE_OVER;
	sba_buf_puts(&s->out, text);
	return s;
}

void sba_model_stream_free(void *stream)
{
	struct sba_model_stream *s = stream;
	if (!s)
		return;
	sba_model_answer_fini(&s->answer);
	sba_buf_fini(&s->out);
	free(s);
}

void sba_model_stream_emit(struct sba_model_stream *s, const char *event, json_t *take_data)
{
	SBA_FREE char *text = take_data ? sba_json_dump(take_data) : NULL;
	json_decref(take_data);
	if (!text) {
		s->out.failed = SBA_ENOMEM;
		return;
	}
	if (event)
		sba_buf_printf(&s->out, "event: %s\n", event);
	sba_buf_puts(&s->out, "data: ");
	sba_buf_puts(&s->out, text);
	sba_buf_puts(&s->out, "\n\n");
}

/* False: the server stops. */
static bool pause_for(int64_t ms, int stop_fd)
{
	struct sba_until until = { .deadline_ms = SBA_NEVER, .cancel_fd = stop_fd };
	if (ms <= 0)
		return true;
	return sba_wait_fd(-1, 0, sba_until_sooner(until, ms), NULL) == SBA_ETIMEOUT;
}

/* How much of the part's text the next delta carries: whole characters. */
static size_t next_chunk(const struct sba_model_stream *s, const struct sba_model_part *p)
{
	size_t want = s->answer.chunk;
	if (!want)
		want = p->len / CHUNKS_MAX > CHUNK_MIN ? p->len / CHUNKS_MAX : CHUNK_MIN;
	const unsigned char *text = (const unsigned char *)p->text + s->offset;
	size_t left = p->len - s->offset, n = 0;
	while (n < want && n < left) {
		size_t seq = sba_utf8_seq(text + n, left - n);
		n += seq ? seq : 1;
	}
	return n;
}

static void begin_part(struct sba_model_stream *s)
{
	if (s->part == s->answer.n_parts) {
		s->wire->end(s);
		s->phase = SBA_MODEL_PHASE_OVER;
		return;
	}
	s->offset = 0;
	s->wire->part_begin(s, &s->answer.parts[s->part]);
	s->phase = SBA_MODEL_PHASE_PART_DELTA;
}

static bool say_delta(struct sba_model_stream *s, int stop_fd)
{
	const struct sba_model_part *p = &s->answer.parts[s->part];
	size_t n = next_chunk(s, p);
	if (n && !pause_for(s->answer.delay_ms, stop_fd))
		return false;
	if (n)
		s->wire->part_delta(s, p, p->text + s->offset, n);
	s->offset += n;
	if (s->offset < p->len)
		return true;
	s->wire->part_end(s, p);
	s->part++;
	s->phase = SBA_MODEL_PHASE_PART_BEGIN;
	return true;
}

/* Says the next event into s->out. */
static bool advance(struct sba_model_stream *s, int stop_fd)
{
	switch (s->phase) {
	case SBA_MODEL_PHASE_BEGIN:
		s->wire->begin(s);
		s->phase = SBA_MODEL_PHASE_PART_BEGIN;
		return true;
	case SBA_MODEL_PHASE_PART_BEGIN:
		begin_part(s);
		return true;
	case SBA_MODEL_PHASE_PART_DELTA:
		return say_delta(s, stop_fd);
	case SBA_MODEL_PHASE_OVER:
		break;
	}
	return true;
}

static ssize_t fetch(struct sba_model_stream *s, char *buf, size_t size)
{
	size_t n = s->out.len - s->fetched;
	if (n > size)
		n = size;
	if (s->answer.cut_after && n > s->answer.cut_after - s->sent)
		n = s->answer.cut_after - s->sent;
	if (!n)
		return 0;
	memcpy(buf, s->out.data + s->fetched, n);
	s->sent += n;
	s->fetched += n;
	if (s->fetched == s->out.len) {
		sba_buf_reset(&s->out);
		s->fetched = 0;
	}
	return (ssize_t)n;
}

static bool is_cut(const struct sba_model_stream *s)
{
	return s->answer.cut_after && s->sent >= s->answer.cut_after;
}

ssize_t sba_model_stream_read(void *stream, char *buf, size_t size, int stop_fd)
{
	struct sba_model_stream *s = stream;
	if (!s->stalled && !pause_for(s->answer.stall_ms, stop_fd))
		return -1;
	s->stalled = true;
	while (!s->out.len && s->phase != SBA_MODEL_PHASE_OVER && !is_cut(s))
		if (!advance(s, stop_fd) || s->out.failed)
			return -1;
	if (s->out.failed || is_cut(s))
		return -1;
	return fetch(s, buf, size);
}
