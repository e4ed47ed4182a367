/* SPDX-License-Identifier: MIT */
/* A command's stream, as its caller sees it. */
#include "channel/private.h"

#include <stdlib.h>

struct sba_channel_run {
	struct sba_channel_stream *s;
	struct sba_pieces pieces;
	struct sba_buf came;
	size_t at;
};

int sba_channel_run_open(struct sba_channel *c, struct sba_channel_run **ret, struct sba_error *err)
{
	struct sba_channel_run *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	sba_buf_init(&r->came, SBA_CHANNEL_BUFFERED_MAX);
	int rc = sba_channel_stream_new(c, SBA_STREAM_CALLER, SBA_CHANNEL_RUN, &r->s, err);
	if (rc < 0) {
		free(r);
		return sba_wrap(err, rc, "command");
	}
	*ret = r;
	return 0;
}

static ssize_t next_piece(struct sba_channel_run *r, int *stream, const char **data,
			  struct sba_error *err)
{
	while (r->at < r->came.len) {
		size_t len;
		ssize_t n = sba_pieces_feed(&r->pieces, r->came.data + r->at, r->came.len - r->at,
					    stream, data, &len, err);
		if (n < 0)
			return n;
		r->at += (size_t)n;
		if (len > 0)
			return (ssize_t)len;
	}
	return 0;
}

ssize_t sba_channel_run_read(struct sba_channel_run *r, int *stream, const char **data,
			     struct sba_until until, struct sba_error *err)
{
	for (;;) {
		ssize_t n = next_piece(r, stream, data, err);
		if (n != 0)
			return n;
		r->at = 0;
		int rc = sba_channel_stream_take(r->s, &r->came, until, err);
		if (rc == 0 && !sba_pieces_at_border(&r->pieces))
			rc = sba_fail(err, SBA_EPROTO, "command: its output ended in a piece");
		if (rc <= 0)
			return rc;
	}
}

ssize_t sba_channel_run_write(struct sba_channel_run *r, const void *data, size_t len,
			      struct sba_error *err)
{
	return sba_channel_stream_put(r->s, data, len, err);
}

int sba_channel_run_fd(const struct sba_channel_run *r)
{
	return r->s->event_fd;
}

void sba_channel_run_close(struct sba_channel_run *r)
{
	if (!r)
		return;
	sba_channel_stream_close(r->s);
	sba_buf_fini(&r->came);
	free(r);
}
