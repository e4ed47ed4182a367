/* SPDX-License-Identifier: MIT */
/*
 * Reads a body ahead into a ring. An engine holds a container's lock for as
 * long as an archive of it is open and unread (20.10 to 24.0 at least), and
 * what takes the bytes here may be a slow disk, a pipe, or stopped.
 */
#include "engine/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* A reader is woken for so much, not for each piece of the engine's (32 KiB); and now
 * and then for less, where little comes. */
enum { WORTH = 256 * SBA_KIB, NOW_AND_THEN_MS = 100 };

struct sba_ahead {
	struct sba_until until;
	pthread_t thread;

	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t more, room;
	struct sba_body *body; /* NULL once closed */
	bool stopping;
	bool ended;              /* nothing more will come: failed tells why */
	struct sba_error failed; /* code 0: the true end */
	size_t at, len;          /* of what is in data */
	char data[SBA_AHEAD_MAX];
};

static size_t tail_of(const struct sba_ahead *a, size_t *ret_room)
{
	size_t tail = (a->at + a->len) % SBA_AHEAD_MAX;
	size_t end = tail < a->at || a->len == SBA_AHEAD_MAX ? a->at : (size_t)SBA_AHEAD_MAX;
	*ret_room = a->len == SBA_AHEAD_MAX ? 0 : end - tail;
	return tail;
}

static struct timespec in_ms(int64_t ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += (time_t)(ms / 1000) + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* Lock held. 0 when there is room; else it has been told to stop, or nobody takes. */
static int await_room(struct sba_ahead *a)
{
	const struct timespec limit = in_ms(SBA_AHEAD_FULL_MS);
	size_t before = a->len;
	while (a->len == SBA_AHEAD_MAX && !a->stopping) {
		int e = pthread_cond_timedwait(&a->room, &a->lock, &limit);
		if (e == ETIMEDOUT && a->len == before)
			return sba_fail(&a->failed, SBA_ETIMEOUT,
					"what comes was not taken for %d s: closed, so that the "
					"engine does not lock the sandbox",
					SBA_AHEAD_FULL_MS / 1000);
	}
	return a->stopping ? SBA_ECANCELED : 0;
}

static ssize_t read_once(struct sba_ahead *a, size_t tail, size_t room, struct sba_error *err)
{
	struct sba_until until = sba_until_sooner(a->until, SBA_TRANSFER_STALL_MS);
	ssize_t n = sba_body_read(a->body, a->data + tail, room, until, err);
	if (n == SBA_ETIMEOUT && sba_until_left(a->until) != 0)
		return sba_fail(err, SBA_ETIMEOUT, "nothing has come from the engine for %d s",
				SBA_TRANSFER_STALL_MS / 1000);
	return n;
}

static void *run(void *user)
{
	struct sba_ahead *a = user;
	pthread_mutex_lock(&a->lock);
	while (await_room(a) == 0) {
		/* The same few pages again, as long as the reader keeps up. */
		if (a->len == 0)
			a->at = 0;
		size_t room, tail = tail_of(a, &room);
		struct sba_error err = { 0 };
		/* Nobody else touches the part of the ring that is free, nor the body. */
		pthread_mutex_unlock(&a->lock);
		ssize_t n = read_once(a, tail, room, &err);
		pthread_mutex_lock(&a->lock);
		if (n <= 0) {
			a->failed = err;
			break;
		}
		a->len += (size_t)n;
		if (a->len >= WORTH)
			pthread_cond_signal(&a->more);
	}
	struct sba_body *body = sba_move(&a->body);
	pthread_mutex_unlock(&a->lock);
	sba_body_close(body);
	pthread_mutex_lock(&a->lock);
	a->ended = true;
	pthread_cond_signal(&a->more);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void fini(struct sba_ahead *a)
{
	pthread_cond_destroy(&a->more);
	pthread_cond_destroy(&a->room);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int sba_ahead_open(struct sba_body *take_body, struct sba_until until, struct sba_ahead **ret,
		   struct sba_error *err)
{
	struct sba_ahead *a = malloc(sizeof(*a));
	if (!a) {
		sba_body_close(take_body);
		return sba_fail_nomem(err);
	}
	/* The ring's memory is touched when it is needed. */
	memset(a, 0, offsetof(struct sba_ahead, data));
	a->body = take_body;
	a->until = until;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->more, &clock);
	pthread_cond_init(&a->room, &clock);
	pthread_condattr_destroy(&clock);
	int rc = sba_thread_start(&a->thread, run, a, err);
	if (rc < 0) {
		sba_body_close(take_body);
		fini(a);
		return rc;
	}
	*ret = a;
	return 0;
}

/* Lock held. */
static void await_some(struct sba_ahead *a)
{
	size_t worth = WORTH;
	while (a->len < worth && !a->ended) {
		const struct timespec limit = in_ms(NOW_AND_THEN_MS);
		if (pthread_cond_timedwait(&a->more, &a->lock, &limit) == ETIMEDOUT)
			worth = 1;
	}
}

ssize_t sba_ahead_read(struct sba_ahead *a, void *buf, size_t size, struct sba_error *err)
{
	pthread_mutex_lock(&a->lock);
	await_some(a);
	ssize_t rc = 0;
	if (a->failed.code) {
		/* What was read before is of no use without the rest. */
		rc = a->failed.code;
		if (err)
			*err = a->failed;
	} else if (a->len > 0) {
		size_t n = a->len < size ? a->len : size;
		n = n < SBA_AHEAD_MAX - a->at ? n : SBA_AHEAD_MAX - a->at;
		/* Nobody else touches the part of the ring that is filled. */
		pthread_mutex_unlock(&a->lock);
		memcpy(buf, a->data + a->at, n);
		pthread_mutex_lock(&a->lock);
		a->at = (a->at + n) % SBA_AHEAD_MAX;
		a->len -= n;
		rc = (ssize_t)n;
		pthread_cond_signal(&a->room);
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

void sba_ahead_close(struct sba_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stopping = true;
	pthread_cond_signal(&a->room);
	/* Wakes a read that waits. A connection that can be used again is at its end,
	 * and nothing reads it. */
	if (a->body)
		shutdown(a->body->wire->t->fd, SHUT_RDWR);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	fini(a);
}
