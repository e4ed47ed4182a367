/* SPDX-License-Identifier: MIT */
/*
 * What a guest sends, to a host with one stream of each kind open. The first
 * byte says how the rest is cut.
 */
#include "channel/private.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Frames what is to go out, and throws it away. */
static int send_all(struct sba_channel *c)
{
	int rc;
	do {
		c->out_at = c->out_len = 0;
		sba_h2_work(c);
		rc = sba_h2_send(c, NULL);
	} while (rc == 0 && c->out_len > 0);
	return rc;
}

static struct sba_channel_stream *open_stream(struct sba_channel *c,
					      enum sba_channel_stream_kind kind)
{
	struct sba_channel_stream *s;
	if (sba_channel_stream_new(c, kind, SBA_CHANNEL_RUN, &s, NULL) < 0)
		abort();
	s->port = 1; /* nobody listens there */
	sba_channel_stream_mark(s);
	return s;
}

static void open_tunnel(struct sba_channel *c)
{
	int fds[2];
	struct sba_channel_stream *s = open_stream(c, SBA_STREAM_TUNNEL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	close(fds[1]);
	s->fd = fds[0];
	s->held = false;
}

static void take_all(struct sba_channel_stream *s)
{
	SBA_BUF struct sba_buf came = SBA_BUF_INIT(SBA_CHANNEL_BUFFERED_MAX);
	const struct sba_until now = { 0, -1 };
	while (sba_channel_stream_take(s, &came, now, NULL) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_channel *c;
	if (size == 0 || sba_channel_make(NULL, &c, NULL) < 0)
		return 0;
	size_t cut = data[0] ? data[0] : size;
	if (sba_channel_want_notices(c, NULL) < 0)
		abort();
	struct sba_channel_stream *caller = open_stream(c, SBA_STREAM_CALLER);
	struct sba_channel_stream *forward = open_stream(c, SBA_STREAM_FORWARD);
	open_tunnel(c);
	int rc = send_all(c);
	for (size_t at = 1; rc == 0 && at < size; at += cut) {
		size_t n = size - at < cut ? size - at : cut;
		rc = sba_h2_receive(c, (const char *)data + at, n, NULL);
		if (rc == 0)
			rc = send_all(c);
		assert(c->n_streams <= SBA_CHANNEL_STREAMS_MAX);
		assert(c->buffered <= SBA_CHANNEL_BUFFERED_MAX + SBA_CHANNEL_FRAME_MAX);
		if (at % 3 == 0)
			take_all(caller);
	}
	sba_channel_stream_close(caller);
	sba_channel_stream_close(forward);
	sba_channel_close(c);
	return 0;
}
