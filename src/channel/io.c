/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one poll loop over the link, the callers' wish to be heard
 * and the sockets of tunnels. It answers pings and moves bytes whatever the
 * callers do.
 */
#include "channel/private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	READS = 64,               /* pieces of the link taken in a row before it is written to */
	MUCH = 32 * SBA_KIB,      /* at once: the link is left to fill for a moment */
	STILL_MUCH = 8 * SBA_KIB, /* in such a moment */
	MOMENT_NS = 150 * 1000,
	POLL_LINK = 0,
	POLL_WAKE,
	POLL_SOCKETS,
};

unsigned char *sba_channel_out_tail(struct sba_channel *c, size_t *ret_room)
{
	if (c->out.size - c->out_len < 2 * SBA_CHANNEL_FRAME_MAX) {
		memmove(c->out.data, c->out.data + c->out_at, c->out_len - c->out_at);
		c->out_len -= c->out_at;
		c->out_at = 0;
		sba_passage_fit(&c->out, c->out_len);
	}
	*ret_room = c->out.size - c->out_len;
	return (unsigned char *)c->out.data + c->out_len;
}

/* ---- reading ---- */

/* HTTP/2 begins with the length of a SETTINGS frame, so with a zero; anything
 * else is the engine's text about why the guest could not be started. */
static bool is_text(struct sba_channel *c, const char *data, size_t len)
{
	if (c->greeted)
		return false;
	if (c->preamble.len == 0 && data[0] == 0) {
		c->greeted = true;
		return false;
	}
	size_t room = c->preamble.max - c->preamble.len;
	sba_buf_put(&c->preamble, data, len < room ? len : room);
	return true;
}

static int receive(struct sba_channel *c, const char *data, size_t len, struct sba_error *err)
{
	c->heard = sba_now_ms();
	if (is_text(c, data, len))
		return 0;
	pthread_mutex_lock(&c->lock);
	int rc = sba_h2_receive(c, data, len, err);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static int at_end(struct sba_channel *c, struct sba_error *err)
{
	if (c->stood_ms > 0)
		return sba_fail(err, SBA_ELOST,
				"channel: this program stood still for %d s, and counts as gone "
				"after %d",
				(int)(c->stood_ms / 1000), SBA_CHANNEL_GUEST_SILENCE_MS / 1000);
	if (c->greeted)
		return sba_fail(err, SBA_ELOST, "channel: the guest's session ended");
	return c->link->ops->explain(c->link, c->preamble.data ? c->preamble.data : "", err);
}

static int read_pieces(struct sba_channel *c, size_t *came, struct sba_error *err)
{
	*came = 0;
	for (int i = 0; i < READS; i++) {
		const char *data;
		ssize_t n = c->link->ops->read(c->link, &data, err);
		if (n == SBA_ETIMEOUT)
			return 0;
		if (n == 0)
			return at_end(c, err);
		int rc = n < 0 ? (int)n : receive(c, data, (size_t)n, err);
		if (rc < 0)
			return rc;
		*came += (size_t)n;
	}
	return 0;
}

static int read_link(struct sba_channel *c, struct sba_error *err)
{
	size_t came;
	int rc = read_pieces(c, &came, err);
	c->much = came >= (size_t)(c->much ? STILL_MUCH : MUCH);
	pthread_mutex_lock(&c->lock);
	c->owes_news = sba_channel_stream_tell_news(c);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* ---- writing ---- */

static int flush(struct sba_channel *c, struct sba_error *err)
{
	while (c->out_at < c->out_len) {
		ssize_t n = c->link->ops->write(c->link, c->out.data + c->out_at,
						c->out_len - c->out_at, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return 0;
		c->out_at += (size_t)n;
	}
	sba_passage_fit(&c->out, c->out_len);
	c->out_at = c->out_len = 0;
	return 0;
}

/* Frames and writes until there is nothing more or the link is full. */
static int write_link(struct sba_channel *c, struct sba_error *err)
{
	for (;;) {
		pthread_mutex_lock(&c->lock);
		sba_h2_work(c);
		int rc = sba_h2_send(c, err);
		bool more = nghttp2_session_want_write(c->h2) != 0;
		pthread_mutex_unlock(&c->lock);
		if (rc == 0)
			rc = flush(c, err);
		if (rc < 0 || !more || c->out_at < c->out_len)
			return rc;
	}
}

/* ---- waiting ---- */

static size_t gather(struct sba_channel *c)
{
	size_t n = POLL_SOCKETS;
	c->link->ops->poll(c->link, c->out_at < c->out_len, &c->polls[POLL_LINK]);
	c->polls[POLL_WAKE] = (struct pollfd){ c->wake_fd, POLLIN, 0 };
	pthread_mutex_lock(&c->lock);
	for (struct sba_channel_stream *s = c->streams; s && n < SBA_ARRAY_LEN(c->polls);
	     s = s->next) {
		if (!sba_tunnel_poll(s, &c->polls[n]))
			continue;
		c->polled[n++] = s;
	}
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* Streams without a caller are freed by this thread alone, so what was polled
 * is still there. */
static void serve(struct sba_channel *c, size_t n)
{
	uint64_t count;
	pthread_mutex_lock(&c->lock);
	if (c->polls[POLL_WAKE].revents && read(c->wake_fd, &count, sizeof(count)) > 0)
		c->awake = false;
	for (size_t i = POLL_SOCKETS; i < n; i++) {
		if (c->polls[i].revents)
			sba_tunnel_serve(c->polled[i], c->polls[i].revents);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Pings in time; fails when the guest is silent. */
static int tick(struct sba_channel *c, int64_t *ret_next, struct sba_error *err)
{
	int64_t now = sba_now_ms(), lost_at = c->heard + SBA_CHANNEL_SILENCE_MS;
	int rc = 0;
	if (now >= lost_at)
		return sba_fail(err, SBA_ELOST, "channel: the guest was silent for %d s",
				SBA_CHANNEL_SILENCE_MS / 1000);
	if (now >= c->next_ping) {
		c->next_ping = now + SBA_CHANNEL_PING_MS;
		pthread_mutex_lock(&c->lock);
		/* One at a time: behind a slow engine the answer may take its while. */
		if (c->ping_last == 0)
			rc = sba_h2_ping(c, now, err);
		pthread_mutex_unlock(&c->lock);
	}
	*ret_next = c->next_ping < lost_at ? c->next_ping : lost_at;
	return rc;
}

static bool shall_go_on(struct sba_channel *c)
{
	pthread_mutex_lock(&c->lock);
	bool on = !c->stopping && !c->failure.code;
	pthread_mutex_unlock(&c->lock);
	return on;
}

/* Until something is to be done; how many descriptors were looked at. A link that brings
 * much is left out for a moment: every piece that wakes us costs its sender, and us, more
 * than to move it does. */
static int await(struct sba_channel *c, struct sba_until until, size_t *ret_n,
		 struct sba_error *err)
{
	struct timespec left = { .tv_nsec = MOMENT_NS };
	*ret_n = gather(c);
	if (c->much) {
		c->polls[POLL_LINK].events &= (short)~POLLIN;
	} else {
		int ms = sba_until_left(until);
		left = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
	}
	if (ppoll(c->polls, (nfds_t)*ret_n, &left, NULL) < 0 && errno != EINTR)
		return sba_fail_errno(err, SBA_EIO, errno, "channel: poll");
	return 0;
}

static int turn(struct sba_channel *c, struct sba_error *err)
{
	int64_t next = 0;
	int rc = tick(c, &next, err);
	if (rc == 0)
		rc = write_link(c, err);
	if (rc < 0)
		return rc;
	struct sba_until until = { next, -1 };
	if (c->owes_news)
		until = sba_until_sooner(until, 1);
	size_t n;
	rc = await(c, until, &n, err);
	if (rc < 0)
		return rc;
	/* Stopped, in a debugger, on a machine that slept. */
	int64_t late = sba_now_ms() - next;
	if (late >= SBA_CHANNEL_GUEST_SILENCE_MS - SBA_CHANNEL_PING_MS)
		c->stood_ms = late + SBA_CHANNEL_PING_MS;
	serve(c, n);
	return read_link(c, err);
}

/* ---- the end ---- */

static void say_goodbye(struct sba_channel *c)
{
	struct sba_until until = sba_until_in(SBA_CHANNEL_GOODBYE_MS);
	struct pollfd p;
	nghttp2_session_terminate_session(c->h2, NGHTTP2_NO_ERROR);
	while (write_link(c, NULL) == 0 && sba_until_left(until) > 0) {
		c->link->ops->poll(c->link, c->out_at < c->out_len, &p);
		if (!(p.events & POLLOUT))
			break;
		p.events = POLLOUT;
		poll(&p, 1, sba_until_left(until));
	}
	c->link->ops->shutdown(c->link);
}

/* Closing the connection is what tells the guest, in any case. */
static void finish(struct sba_channel *c, const struct sba_error *why)
{
	if (why->code == 0 && sba_channel_check(c, NULL) == 0)
		say_goodbye(c);
	pthread_mutex_lock(&c->lock);
	struct sba_error closed = *why;
	if (closed.code == 0)
		sba_fail(&closed, SBA_ELOST, "channel: closed");
	sba_channel_die(c, &closed);
	c->done = true;
	struct sba_channel_stream *next;
	for (struct sba_channel_stream *s = c->streams; s; s = next) {
		next = s->next;
		if (!s->held)
			sba_channel_stream_free(s);
	}
	pthread_mutex_unlock(&c->lock);
	c->link->ops->close(c->link);
	c->link = NULL;
}

void *sba_channel_io(void *channel)
{
	struct sba_channel *c = channel;
	struct sba_error why = { 0 };
	int rc = 0;
	c->heard = sba_now_ms();
	c->next_ping = c->heard + SBA_CHANNEL_PING_MS;
	while (rc == 0 && shall_go_on(c))
		rc = turn(c, &why);
	if (rc == 0)
		why.code = 0;
	finish(c, &why);
	return NULL;
}
