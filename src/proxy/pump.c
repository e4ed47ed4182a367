/* SPDX-License-Identifier: MIT */
/*
 * Carries bytes both ways between a client and a server until both are at their
 * end. A tunnel's bytes are passed as they are; of a request only its one body.
 */
#include "proxy/private.h"

#include <errno.h>
#include <poll.h>

enum { PIECE = 64 * SBA_KIB - 1 }; /* with its NUL a power of two: no rounding up */

/* One direction. It reads only when all that it read before is sent. */
struct flow {
	int from, to;
	struct sba_proxy_body *body;
	struct sba_buf in; /* of a body: before it is written anew */
	struct sba_buf out;
	size_t out_at;
	uint64_t moved; /* sent */
	bool ended;     /* nothing more will be read */
	bool done;      /* and all is sent */
};

struct pump {
	struct flow up, down;
	bool tunnel;
	bool cut;      /* the server takes no more of what it should get */
	bool quiet[2]; /* client, server: its hang-up is known, and not to be polled for */
};

static bool wants_read(const struct flow *f)
{
	return !f->ended && f->out.len == 0;
}

static bool wants_write(const struct flow *f)
{
	return f->out.len > 0;
}

static bool is_transient(int e)
{
	return e == EAGAIN || e == EWOULDBLOCK || e == EINTR;
}

static int flow_end(struct flow *f, struct sba_error *err)
{
	if (f->body)
		return sba_fail(err, SBA_EIO, "the client ended in the middle of its request");
	f->ended = true;
	return 0;
}

static int flow_read(struct flow *f, struct sba_error *err)
{
	struct sba_buf *b = f->body ? &f->in : &f->out;
	char *at = sba_buf_reserve(b, PIECE);
	if (!at)
		return sba_fail_nomem(err);
	ssize_t n = recv(f->from, at, PIECE, 0);
	if (n < 0)
		return is_transient(errno) ? 0 : sba_fail_errno(err, SBA_EIO, errno, "broken off");
	if (n == 0)
		return flow_end(f, err);
	if (!f->body) {
		b->len += (size_t)n;
		return 0;
	}
	int rc = sba_proxy_body_feed(f->body, at, (size_t)n, &f->out, err);
	if (rc == 0)
		rc = sba_buf_check(&f->out, "a piece of the body", err);
	f->ended = f->body->done;
	return rc;
}

static int flow_write(struct flow *f, struct sba_error *err)
{
	ssize_t n = send(f->to, f->out.data + f->out_at, f->out.len - f->out_at, MSG_NOSIGNAL);
	if (n < 0)
		return is_transient(errno) ? 0 : sba_fail_errno(err, SBA_EIO, errno, "broken off");
	f->moved += (size_t)n;
	f->out_at += (size_t)n;
	if (f->out_at == f->out.len) {
		sba_buf_reset(&f->out);
		f->out_at = 0;
	}
	return 0;
}

static void flow_settle(struct flow *f, bool tunnel)
{
	if (f->done || !f->ended || f->out.len > 0)
		return;
	f->done = true;
	if (tunnel)
		shutdown(f->to, SHUT_WR);
}

/* A server that refuses the rest of a request may have said why. */
static void cut_off(struct pump *p)
{
	p->cut = true;
	p->up.ended = p->up.done = true;
	sba_buf_reset(&p->up.out);
}

static int step(struct pump *p, struct sba_error *err)
{
	int rc = 0;
	if (wants_read(&p->up))
		rc = flow_read(&p->up, err);
	if (rc == 0 && wants_write(&p->up) && flow_write(&p->up, NULL) < 0)
		cut_off(p);
	if (rc == 0 && wants_read(&p->down))
		rc = flow_read(&p->down, err);
	if (rc == 0 && wants_write(&p->down))
		rc = flow_write(&p->down, err);
	flow_settle(&p->up, p->tunnel);
	flow_settle(&p->down, p->tunnel);
	return rc;
}

static short events_of(const struct flow *in, const struct flow *out)
{
	return (short)((wants_read(in) ? POLLIN : 0) | (wants_write(out) ? POLLOUT : 0));
}

/* poll() reports a hang-up that nobody asked for, again and again. */
static int note_hang_ups(struct pump *p, const struct pollfd *fds, struct sba_error *err)
{
	for (int i = 0; i < 2; i++) {
		if (fds[i].events == 0 && fds[i].revents)
			p->quiet[i] = true;
	}
	if (p->quiet[0] && !p->down.done)
		return sba_fail(err, SBA_EIO, "the client is gone");
	return 0;
}

static int wait_for_bytes(struct pump *p, struct sba_until until, struct sba_error *err)
{
	struct pollfd fds[3] = {
		{ .fd = p->up.from, .events = events_of(&p->up, &p->down) },
		{ .fd = p->up.to, .events = events_of(&p->down, &p->up) },
		{ .fd = until.cancel_fd, .events = POLLIN },
	};
	for (int i = 0; i < 2; i++) {
		if (p->quiet[i] && fds[i].events == 0)
			fds[i].fd = -1;
	}
	int n = poll(fds, 3, sba_until_left(until));
	if (n < 0 && errno != EINTR)
		return sba_fail_errno(err, SBA_EIO, errno, "poll");
	if (n <= 0)
		return sba_until_check(until, err);
	if (fds[2].revents)
		return sba_fail(err, SBA_ECANCELED, "cancelled");
	return note_hang_ups(p, fds, err);
}

static int carry(struct pump *p, int stop_fd, int64_t idle_ms, struct sba_error *err)
{
	struct sba_until stop = { SBA_NEVER, stop_fd };
	struct sba_until until = sba_until_sooner(stop, idle_ms);
	uint64_t seen = 0;
	for (;;) {
		int rc = step(p, err);
		if (rc < 0)
			return rc;
		if (p->down.done && (p->up.done || !p->tunnel))
			return p->cut ? sba_fail(err, SBA_EIO, "the server broke off") : 0;
		if (p->up.moved + p->down.moved != seen) {
			seen = p->up.moved + p->down.moved;
			until = sba_until_sooner(stop, idle_ms);
		}
		rc = wait_for_bytes(p, until, err);
		if (rc < 0)
			return rc;
	}
}

int sba_proxy_pump_run(struct sba_proxy_pump *p, struct sba_error *err)
{
	struct pump both = {
		.up = { .from = p->client,
			.to = p->server,
			.body = p->body,
			.in = SBA_BUF_INIT(PIECE),
			.out = p->first,
			.ended = p->body && p->body->done },
		.down = { .from = p->server, .to = p->client, .out = SBA_BUF_INIT(PIECE) },
		.tunnel = !p->body,
	};
	sba_buf_init(&p->first, 0);
	both.up.out.max = 2 * PIECE;
	int rc = carry(&both, p->stop_fd, p->idle_ms, err);
	p->sent = both.up.moved;
	p->received = both.down.moved;
	sba_buf_fini(&both.up.in);
	sba_buf_fini(&both.up.out);
	sba_buf_fini(&both.down.out);
	return rc;
}
