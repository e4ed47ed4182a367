/* SPDX-License-Identifier: MIT */
/*
 * Connections with their receive buffer, and the pool of idle ones. A handle
 * usually keeps one; each exec takes one for itself.
 */
#include "engine/private.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

int sba_wire_open(struct sba_engine *e, struct sba_until until, struct sba_wire **ret,
		  struct sba_error *err)
{
	struct sba_wire *w = calloc(1, sizeof(*w));
	if (!w)
		return sba_fail_nomem(err);
	w->room.max = SBA_ENGINE_RECEIVE_BUFFER;
	int rc = e->ssh ? sba_ssh_connect(e->ssh, until, &w->t, err)
			: sba_transport_open(&e->address, e->tls, until, &w->t, err);
	if (rc < 0) {
		free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void sba_wire_close(struct sba_wire *w)
{
	if (!w)
		return;
	w->t->ops->close(w->t);
	sba_passage_fini(&w->room);
	free(w);
}

static int make_room(struct sba_wire *w, struct sba_error *err)
{
	if (w->len > 0 && w->at > 0)
		memmove(w->room.data, w->room.data + w->at, w->len);
	w->at = 0;
	sba_passage_fit(&w->room, w->used > w->len ? w->used : w->len);
	w->used = 0;
	if (w->room.size == 0)
		return sba_fail_nomem(err);
	if (w->len == w->room.size)
		return sba_fail(err, SBA_EPROTO, "the engine's answer does not fit the buffer");
	return 0;
}

ssize_t sba_wire_fill(struct sba_wire *w, struct sba_error *err)
{
	int rc = make_room(w, err);
	if (rc < 0)
		return rc;
	ssize_t n = w->t->ops->read(w->t, w->room.data + w->len, w->room.size - w->len, err);
	if (n > 0) {
		w->len += (size_t)n;
		w->used = w->len;
		w->heard = true;
	}
	return n;
}

ssize_t sba_wire_fill_wait(struct sba_wire *w, struct sba_until until, struct sba_error *err)
{
	for (;;) {
		ssize_t n = sba_wire_fill(w, err);
		if (n != SBA_AGAIN)
			return n;
		int rc = sba_wait_fd(w->t->fd, w->t->read_wants, until, err);
		if (rc < 0)
			return rc;
	}
}

ssize_t sba_wire_write(struct sba_wire *w, const void *data, size_t len, struct sba_error *err)
{
	ssize_t n = w->t->ops->write(w->t, data, len, err);
	if (n > 0)
		w->written += (uint64_t)n;
	return n;
}

void sba_wire_consume(struct sba_wire *w, size_t n)
{
	w->at += n;
	w->len -= n;
}

/* An idle connection has nothing to say: if it is readable, it was closed. */
static bool alive(const struct sba_wire *w)
{
	struct pollfd p = { .fd = w->t->fd, .events = POLLIN };
	return poll(&p, 1, 0) == 0;
}

static struct sba_wire *pop(struct sba_engine *e)
{
	pthread_mutex_lock(&e->lock);
	struct sba_wire *w = e->n_idle > 0 ? e->idle[--e->n_idle] : NULL;
	pthread_mutex_unlock(&e->lock);
	return w;
}

struct sba_wire *sba_pool_take(struct sba_engine *e)
{
	struct sba_wire *w;
	while ((w = pop(e)) != NULL && !alive(w))
		sba_wire_close(w);
	if (w) {
		w->reused = true;
		w->written = 0;
		w->heard = false;
	}
	return w;
}

void sba_pool_put(struct sba_engine *e, struct sba_wire *w)
{
	/* It may serve a stream of little next, and for long. */
	sba_passage_fini(&w->room);
	w->used = 0;
	pthread_mutex_lock(&e->lock);
	if (e->n_idle < SBA_ARRAY_LEN(e->idle)) {
		e->idle[e->n_idle++] = w;
		w = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	sba_wire_close(w);
}

void sba_pool_close(struct sba_engine *e)
{
	struct sba_wire *w;
	while ((w = pop(e)) != NULL)
		sba_wire_close(w);
}
