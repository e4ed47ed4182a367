/* SPDX-License-Identifier: MIT */
/*
 * Network connections as streams: the I/O thread moves bytes between socket
 * and stream, each direction ends on its own. The ids of connections to a
 * forwarded port come in on a stream of that port.
 */
#include "channel/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a connection; in the I/O thread, lock held ---- */

static void reset(struct sba_channel_stream *s)
{
	if (s->open)
		nghttp2_submit_rst_stream(s->c->h2, NGHTTP2_FLAG_NONE, s->id,
					  NGHTTP2_CONNECT_ERROR);
}

bool sba_tunnel_poll(const struct sba_channel_stream *s, struct pollfd *ret)
{
	int events = 0;
	if (s->held || s->kind != SBA_STREAM_TUNNEL || s->fd < 0)
		return false;
	if (s->connecting || s->in.len > 0)
		events |= POLLOUT;
	if (s->wait_socket && !s->connecting)
		events |= POLLIN;
	*ret = (struct pollfd){ s->fd, (short)events, 0 };
	return events != 0;
}

/* How much the socket took; -1 when it is broken. */
static ssize_t offer(struct sba_channel_stream *s, const char *data, size_t len)
{
	ssize_t n = send(s->fd, data, len, MSG_NOSIGNAL);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void half_close(struct sba_channel_stream *s)
{
	if (!s->held && s->ended && s->in.len == 0 && !s->connecting && s->fd >= 0)
		shutdown(s->fd, SHUT_WR);
}

void sba_tunnel_put(struct sba_channel_stream *s, const char *data, size_t len)
{
	bool direct = !s->held && s->fd >= 0 && !s->connecting && s->in.len == 0;
	ssize_t n = direct ? offer(s, data, len) : 0;
	if (n < 0) {
		reset(s);
		return;
	}
	sba_h2_give_back(s, (size_t)n);
	sba_buf_put(&s->in, data + n, len - (size_t)n);
	s->c->buffered += len - (size_t)n;
}

static void flush(struct sba_channel_stream *s)
{
	ssize_t n = s->in.len > 0 ? offer(s, s->in.data, s->in.len) : 0;
	if (n < 0) {
		reset(s);
		n = (ssize_t)s->in.len;
	}
	if (n == 0)
		return;
	sba_buf_drop(&s->in, (size_t)n);
	s->c->buffered -= (size_t)n;
	sba_h2_give_back(s, (size_t)n);
	half_close(s);
}

void sba_tunnel_cut(struct sba_channel_stream *s)
{
	half_close(s);
}

ssize_t sba_tunnel_read(struct sba_channel_stream *s, void *to, size_t size)
{
	if (s->held || s->connecting) {
		s->wait_socket = true;
		return 0;
	}
	ssize_t n = s->fd < 0 ? 0 : recv(s->fd, to, size, 0);
	if (n > 0)
		return n;
	if (n == 0)
		return -1;
	if (errno == EAGAIN || errno == EINTR)
		s->wait_socket = true;
	else
		reset(s);
	return 0;
}

static void connected(struct sba_channel_stream *s)
{
	int e = 0;
	socklen_t len = sizeof(e);
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 || e != 0) {
		reset(s);
		sba_cleanup_close(&s->fd);
		return;
	}
	s->connecting = false;
}

static void resume(struct sba_channel_stream *s)
{
	s->wait_socket = false;
	if (!s->paused)
		return;
	s->paused = false;
	nghttp2_session_resume_data(s->c->h2, s->id);
}

void sba_tunnel_serve(struct sba_channel_stream *s, short revents)
{
	if (s->connecting)
		connected(s);
	if (s->fd >= 0 && revents & (POLLOUT | POLLERR | POLLHUP))
		flush(s);
	if (s->wait_socket && revents & (POLLIN | POLLERR | POLLHUP))
		resume(s);
	if (sba_tunnel_over(s))
		sba_channel_stream_free(s);
}

bool sba_tunnel_over(const struct sba_channel_stream *s)
{
	bool rest = s->kind == SBA_STREAM_TUNNEL && s->fd >= 0 && s->in.len > 0 && !s->reset;
	return !s->held && !s->open && s->id != 0 && !rest;
}

void sba_tunnel_close(struct sba_channel_stream *s)
{
	static const struct linger hard = { .l_onoff = 1, .l_linger = 0 };
	if (s->fd >= 0 && s->reset)
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	sba_cleanup_close(&s->fd);
}

/* ---- connections from inside ---- */

static int start_connecting(struct sba_channel_stream *s, uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int one = 1;
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -1;
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(s->fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return 0;
	s->connecting = errno == EINPROGRESS;
	return s->connecting ? 0 : -1;
}

/* Without a stream to spare the guest gives the connection up by itself. */
static void claim(struct sba_channel_stream *forward, uint32_t id)
{
	char path[32];
	struct sba_channel_stream *s;
	snprintf(path, sizeof(path), SBA_CHANNEL_ACCEPT "%u", id);
	/* Whatever is inside can open connections: commands keep streams of their own. */
	if (forward->c->n_streams >= SBA_CHANNEL_CLAIMED_MAX ||
	    sba_channel_stream_make(forward->c, SBA_STREAM_TUNNEL, path, &s, NULL) < 0)
		return;
	if (forward->port == 0 || start_connecting(s, forward->port) < 0) {
		/* Claimed all the same: only so it can be reset. */
		sba_cleanup_close(&s->fd);
		s->kind = SBA_STREAM_CALLER;
		s->refused = true;
	}
	sba_channel_stream_mark(s);
}

void sba_tunnel_forward(struct sba_channel_stream *s, const char *data, size_t len)
{
	sba_h2_give_back(s, len);
	for (size_t i = 0; i < len; i++) {
		size_t want = s->inside_port ? 4 : 2;
		s->word[s->word_len++] = (unsigned char)data[i];
		if (s->word_len < want)
			continue;
		s->word_len = 0;
		if (s->inside_port)
			claim(s, (uint32_t)sba_be_get(s->word, 4));
		else
			s->inside_port = (uint16_t)sba_be_get(s->word, 2);
	}
}

/* ---- for callers ---- */

static int listen_inside(struct sba_channel *c, const char *path, uint16_t host_port,
			 struct sba_until until, uint16_t *ret_port, struct sba_error *err)
{
	struct sba_channel_stream *s;
	int rc = sba_channel_stream_new(c, SBA_STREAM_FORWARD, path, &s, err);
	if (rc < 0)
		return rc;
	s->port = host_port;
	rc = sba_channel_stream_await_port(s, until, ret_port, err);
	if (rc < 0)
		sba_channel_stream_close(s);
	else
		sba_channel_stream_release(s);
	return rc;
}

int sba_channel_forward(struct sba_channel *c, uint16_t host_port, uint16_t wish,
			struct sba_until until, uint16_t *ret_port, struct sba_error *err)
{
	char path[32];
	snprintf(path, sizeof(path), SBA_CHANNEL_LISTEN_AT "%u", wish);
	/* Somebody inside may have it, or the guest be older than the wish. */
	if (wish && listen_inside(c, path, host_port, until, ret_port, NULL) == 0)
		return 0;
	int rc = listen_inside(c, SBA_CHANNEL_LISTEN, host_port, until, ret_port, err);
	return rc < 0 ? sba_wrap(err, rc, "forward port %u", host_port) : 0;
}

void sba_channel_unforward(struct sba_channel *c, uint16_t inside_port)
{
	pthread_mutex_lock(&c->lock);
	for (struct sba_channel_stream *s = c->streams; s; s = s->next) {
		if (s->kind == SBA_STREAM_FORWARD && s->inside_port == inside_port)
			s->port = 0; /* what comes now is reset */
	}
	pthread_mutex_unlock(&c->lock);
}

int sba_channel_connect(struct sba_channel *c, uint16_t port, int take_fd, struct sba_until until,
			struct sba_error *err)
{
	SBA_CLOSE int fd = take_fd;
	char path[32];
	struct sba_channel_stream *s;
	snprintf(path, sizeof(path), SBA_CHANNEL_CONNECT "%u", port);
	int rc = sba_set_nonblock(fd, true);
	if (rc < 0)
		rc = sba_fail_errno(err, SBA_EIO, errno, "socket");
	else
		rc = sba_channel_stream_new(c, SBA_STREAM_TUNNEL, path, &s, err);
	if (rc < 0)
		return sba_wrap(err, rc, "connect to port %u inside", port);
	rc = sba_channel_stream_await_answer(s, until, err);
	if (rc < 0) {
		sba_channel_stream_close(s);
		return sba_wrap(err, rc, "connect to port %u inside", port);
	}
	int on = 1;
	/* Of use where it is TCP; a unix socket says no. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	s->fd = sba_move_fd(&fd); /* the I/O thread looks at it once it is released */
	sba_channel_stream_release(s);
	return 0;
}
