/* SPDX-License-Identifier: MIT */
/*
 * The caller's side of a stream: bytes that came are taken in one swap of
 * buffers, bytes to send wait in a bounded one. Room in the window is given
 * back only when bytes are taken, so that a caller who does not read costs
 * no more than the window.
 */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void lock(struct sba_channel_stream *s)
{
	pthread_mutex_lock(&s->c->lock);
}

static void unlock(struct sba_channel_stream *s)
{
	pthread_mutex_unlock(&s->c->lock);
}

/* ---- between the threads; lock held ---- */

void sba_channel_stream_mark(struct sba_channel_stream *s)
{
	if (s->dirty)
		return;
	s->dirty = true;
	s->next_dirty = s->c->dirty;
	s->c->dirty = s;
}

static void mark_and_wake(struct sba_channel_stream *s)
{
	sba_channel_stream_mark(s);
	sba_channel_wake(s->c);
}

void sba_channel_stream_signal(struct sba_channel_stream *s)
{
	uint64_t one = 1;
	if (s->signalled || s->event_fd < 0)
		return;
	s->signalled = write(s->event_fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

void sba_channel_stream_news(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	if (s->event_fd < 0)
		return;
	if (c->news && c->news != s)
		sba_channel_stream_signal(c->news);
	c->news = s;
	if (s->in.len >= SBA_CHANNEL_NEWS_MAX)
		sba_channel_stream_signal(s);
}

static bool can_wait(const struct sba_channel_stream *s, int64_t now_ms)
{
	return s->window > SBA_CHANNEL_FIRST_WINDOW && s->woken_ms == now_ms && !s->ended;
}

bool sba_channel_stream_tell_news(struct sba_channel *c)
{
	struct sba_channel_stream *s = c->news;
	if (!s)
		return false;
	int64_t now_ms = sba_now_ms();
	if (!s->signalled && can_wait(s, now_ms))
		return true;
	s->woken_ms = now_ms;
	sba_channel_stream_signal(s);
	c->news = NULL;
	return false;
}

static void settle(struct sba_channel_stream *s)
{
	uint64_t count;
	if (!s->signalled)
		return;
	(void)!read(s->event_fd, &count, sizeof(count));
	s->signalled = false;
}

static bool over(const struct sba_channel_stream *s)
{
	return s->ended || s->c->failure.code;
}

static size_t waiting(const struct sba_channel_stream *s)
{
	return s->out.len - s->out_at;
}

/* ---- making, ending ---- */

static void append(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	c->n_streams++;
	s->next = c->streams;
	if (s->next)
		s->next->prev = s;
	c->streams = s;
}

int sba_channel_stream_make(struct sba_channel *c, enum sba_channel_stream_kind kind,
			    const char *path, struct sba_channel_stream **ret,
			    struct sba_error *err)
{
	if (c->failure.code) {
		if (err)
			*err = c->failure;
		return c->failure.code;
	}
	if (c->n_streams >= SBA_CHANNEL_STREAMS_MAX)
		return sba_fail(err, SBA_ELIMIT, "channel: %d streams are open",
				SBA_CHANNEL_STREAMS_MAX);
	struct sba_channel_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return sba_fail_nomem(err);
	*s = (struct sba_channel_stream){ .c = c, .kind = kind, .fd = -1, .event_fd = -1 };
	snprintf(s->path, sizeof(s->path), "%s", path);
	sba_buf_init(&s->in, SBA_CHANNEL_BUFFERED_MAX);
	sba_buf_init(&s->out, SBA_CHANNEL_SEND_MAX);
	s->window = SBA_CHANNEL_FIRST_WINDOW;
	append(s);
	*ret = s;
	return 0;
}

int sba_channel_stream_new(struct sba_channel *c, enum sba_channel_stream_kind kind,
			   const char *path, struct sba_channel_stream **ret, struct sba_error *err)
{
	SBA_CLOSE int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "channel: event descriptor");
	pthread_mutex_lock(&c->lock);
	struct sba_channel_stream *s = NULL;
	int rc = sba_channel_stream_make(c, kind, path, &s, err);
	if (rc == 0 && s) {
		s->held = true;
		s->event_fd = sba_move_fd(&event_fd);
		*ret = s;
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static void unlink_dirty(struct sba_channel_stream *s)
{
	struct sba_channel_stream **at = &s->c->dirty;
	while (s->dirty && *at != s)
		at = &(*at)->next_dirty;
	if (s->dirty)
		*at = s->next_dirty;
}

void sba_channel_stream_free(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	unlink_dirty(s);
	if (c->news == s)
		c->news = NULL;
	if (s->prev)
		s->prev->next = s->next;
	else
		c->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	c->n_streams--;
	c->spare += s->window - SBA_CHANNEL_FIRST_WINDOW;
	c->buffered -= s->in.len;
	sba_tunnel_close(s);
	sba_cleanup_close(&s->event_fd);
	sba_buf_fini(&s->in);
	sba_buf_fini(&s->out);
	free(s);
}

/* Forgets what came: nobody will take it. */
static void drop_input(struct sba_channel_stream *s)
{
	s->c->buffered -= s->in.len;
	sba_buf_fini(&s->in);
}

static void let_go(struct sba_channel_stream *s)
{
	s->held = false;
	if (s->c->done || (!s->open && s->ended))
		sba_channel_stream_free(s);
	else
		mark_and_wake(s);
}

void sba_channel_stream_close(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	pthread_mutex_lock(&c->lock);
	s->kind = SBA_STREAM_CALLER; /* a tunnel that was not made is none */
	s->out_end |= s->ended;
	drop_input(s);
	let_go(s);
	pthread_mutex_unlock(&c->lock);
}

void sba_channel_stream_release(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	pthread_mutex_lock(&c->lock);
	let_go(s);
	pthread_mutex_unlock(&c->lock);
}

/* ---- taking ---- */

static int refused(const struct sba_channel_stream *s, struct sba_error *err)
{
	int code = SBA_EBROKEN;
	switch (s->peer_errno) {
	case ENOENT:
	case ECONNREFUSED:
		code = SBA_ENOTFOUND;
		break;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		code = SBA_ELIMIT;
		break;
	case ENOSYS:
		code = SBA_EUNSUPPORTED;
		break;
	default:
		break;
	}
	return sba_fail_errno(err, code, s->peer_errno, "the guest refused");
}

static int why_over(const struct sba_channel_stream *s, struct sba_error *err)
{
	const struct sba_error *failure = &s->c->failure;
	if (s->status && s->status != 200 && (s->ended || !failure->code))
		return refused(s, err);
	if (s->ended && !s->reset)
		return 0;
	if (s->ended)
		return sba_fail(err, SBA_ELOST, "the guest reset the stream (%s)",
				nghttp2_http2_strerror(s->reset));
	if (err)
		*err = *failure;
	return failure->code;
}

/* 1 if swapped, 0 if there is nothing yet, 2 if there never will be. */
static int swap(struct sba_channel_stream *s, struct sba_buf *with, struct sba_error *err,
		int *ret_why)
{
	if (s->in.len > 0) {
		struct sba_buf came = s->in;
		s->in = *with;
		*with = came;
		s->taken += came.len;
		s->c->buffered -= came.len;
		/* Smaller steps cost more than they hasten; see give_back_taken(). */
		if (s->taken >= s->window / 4)
			mark_and_wake(s);
		return 1;
	}
	if (!over(s)) {
		settle(s);
		return 0;
	}
	*ret_why = why_over(s, err);
	return 2;
}

static void start(struct sba_channel_stream *s)
{
	if (s->id == 0 && !s->dirty)
		mark_and_wake(s);
}

int sba_channel_stream_take(struct sba_channel_stream *s, struct sba_buf *with,
			    struct sba_until until, struct sba_error *err)
{
	sba_buf_reset(with);
	for (;;) {
		int why = 0;
		lock(s);
		start(s);
		int rc = swap(s, with, err, &why);
		unlock(s);
		if (rc > 0)
			return rc == 1 ? 1 : why;
		if (until.deadline_ms == 0)
			return sba_fail(err, SBA_ETIMEOUT, "nothing has come");
		rc = sba_wait_fd(s->event_fd, POLLIN, until, err);
		if (rc < 0)
			return rc;
	}
}

static bool is_answered(const struct sba_channel_stream *s)
{
	return s->status != 0;
}

static bool has_port(const struct sba_channel_stream *s)
{
	return s->inside_port != 0;
}

/* Waits for `known`, or for the certainty that it will never be. */
static int await(struct sba_channel_stream *s, bool (*known)(const struct sba_channel_stream *s),
		 struct sba_until until, struct sba_error *err)
{
	for (;;) {
		lock(s);
		start(s);
		bool refused = s->status != 0 && s->status != 200;
		bool good = known(s) && !refused;
		bool hopeless = refused || over(s);
		int rc = 0;
		if (!good && hopeless)
			rc = why_over(s, err);
		if (!good && hopeless && rc == 0)
			rc = sba_fail(err, SBA_EPROTO, "the guest ended its answer early");
		if (!good && !hopeless)
			settle(s);
		unlock(s);
		if (good || hopeless)
			return rc;
		rc = sba_wait_fd(s->event_fd, POLLIN, until, err);
		if (rc < 0)
			return rc;
	}
}

int sba_channel_stream_await_answer(struct sba_channel_stream *s, struct sba_until until,
				    struct sba_error *err)
{
	return await(s, is_answered, until, err);
}

int sba_channel_stream_await_port(struct sba_channel_stream *s, struct sba_until until,
				  uint16_t *ret_port, struct sba_error *err)
{
	int rc = await(s, has_port, until, err);
	if (rc == 0)
		*ret_port = s->inside_port;
	return rc;
}

/* ---- putting; what the peer does not want any more is swallowed ---- */

ssize_t sba_channel_stream_put(struct sba_channel_stream *s, const void *data, size_t len,
			       struct sba_error *err)
{
	ssize_t rc = (ssize_t)len;
	lock(s);
	if (s->c->failure.code) {
		rc = why_over(s, err);
	} else if (!s->ended && !s->out_end) {
		size_t room = SBA_CHANNEL_SEND_MAX - waiting(s);
		size_t n = len < room ? len : room;
		if (s->out_at > 0 && s->out.len + n > SBA_CHANNEL_SEND_MAX) {
			sba_buf_drop(&s->out, s->out_at);
			s->out_at = 0;
		}
		sba_buf_put(&s->out, data, n);
		rc = s->out.failed ? sba_fail_nomem(err) : (ssize_t)n;
		s->want_room = n < len;
		if (s->paused)
			mark_and_wake(s);
		start(s);
	}
	unlock(s);
	return rc;
}

int sba_channel_stream_put_all(struct sba_channel_stream *s, const void *data, size_t len,
			       struct sba_until until, struct sba_error *err)
{
	for (const char *at = data; len > 0;) {
		ssize_t n = sba_channel_stream_put(s, at, len, err);
		if (n < 0)
			return (int)n;
		at += n;
		len -= (size_t)n;
		if (len == 0)
			break;
		int rc = sba_wait_fd(s->event_fd, POLLIN, until, err);
		if (rc < 0)
			return rc;
		lock(s);
		settle(s);
		unlock(s);
	}
	return 0;
}

void sba_channel_stream_end_output(struct sba_channel_stream *s)
{
	lock(s);
	s->out_end = true;
	if (s->paused)
		mark_and_wake(s);
	start(s);
	unlock(s);
}
