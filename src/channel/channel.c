/* SPDX-License-Identifier: MIT */
/* A channel's birth, state and death. */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { HELLO_MAX = 512, SPARE_WINDOW = SBA_CHANNEL_BUFFERED_MAX / 2 };

_Static_assert(SPARE_WINDOW + SBA_CHANNEL_STREAMS_MAX * SBA_CHANNEL_FIRST_WINDOW <=
		       SBA_CHANNEL_BUFFERED_MAX,
	       "all windows together stay below what may be buffered");

void sba_channel_wake(struct sba_channel *c)
{
	uint64_t one = 1;
	if (!c->awake)
		c->awake = write(c->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

void sba_channel_die(struct sba_channel *c, const struct sba_error *why)
{
	if (c->failure.code)
		return;
	c->failure = *why;
	for (struct sba_channel_stream *s = c->streams; s; s = s->next)
		sba_channel_stream_signal(s);
	sba_channel_wake(c);
}

void sba_channel_fail(struct sba_channel *c, const struct sba_error *why)
{
	pthread_mutex_lock(&c->lock);
	sba_channel_die(c, why);
	pthread_mutex_unlock(&c->lock);
}

int sba_channel_check(struct sba_channel *c, struct sba_error *err)
{
	pthread_mutex_lock(&c->lock);
	int rc = c->failure.code;
	if (rc < 0 && err)
		*err = c->failure;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* ---- birth ---- */

static int check_hello(struct sba_channel *c, const struct sba_buf *text, struct sba_error *err)
{
	int rc = sba_hello_parse(text->data ? text->data : "", text->len, &c->hello, err);
	if (rc == 0 && c->hello.protocol != SBA_PROTOCOL_VERSION)
		rc = sba_fail(err, SBA_EUNSUPPORTED,
			      "the guest speaks version %lld of the protocol, not %d",
			      (long long)c->hello.protocol, SBA_PROTOCOL_VERSION);
	return rc;
}

static int say_hello(struct sba_channel *c, struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf hello = SBA_BUF_INIT(HELLO_MAX);
	SBA_BUF struct sba_buf piece = SBA_BUF_INIT(SBA_CHANNEL_BUFFERED_MAX);
	struct sba_channel_stream *s;
	int rc = sba_channel_stream_new(c, SBA_STREAM_CALLER, SBA_CHANNEL_HELLO, &s, err);
	if (rc < 0)
		return rc;
	sba_channel_stream_end_output(s);
	while ((rc = sba_channel_stream_take(s, &piece, until, err)) > 0)
		sba_buf_put(&hello, piece.data, piece.len);
	sba_channel_stream_close(s);
	if (rc == 0)
		rc = sba_buf_check(&hello, "the guest's hello", err);
	return rc < 0 ? rc : check_hello(c, &hello, err);
}

int sba_channel_make(struct sba_link *take_link, struct sba_channel **ret, struct sba_error *err)
{
	struct sba_channel *c = calloc(1, sizeof(*c));
	if (!c) {
		if (take_link)
			take_link->ops->close(take_link);
		return sba_fail_nomem(err);
	}
	c->link = take_link;
	c->spare = SPARE_WINDOW;
	c->out.max = SBA_CHANNEL_OUT_MAX;
	sba_passage_fit(&c->out, 0);
	pthread_mutex_init(&c->lock, NULL);
	sba_buf_init(&c->preamble, SBA_EXEC_OOB_TEXT_MAX);
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = 0;
	if (c->wake_fd < 0)
		rc = sba_fail_errno(err, SBA_EIO, errno, "channel: event descriptor");
	if (rc == 0 && c->out.size == 0)
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = sba_h2_open(c, err);
	if (rc < 0) {
		sba_channel_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

static int start_thread(struct sba_channel *c, struct sba_error *err)
{
	int rc = sba_thread_start(&c->thread, sba_channel_io, c, err);
	c->started = rc == 0;
	return rc;
}

int sba_channel_new(struct sba_link *take_link, struct sba_until until,
		    struct sba_channel_hello *ret_hello, struct sba_channel **ret,
		    struct sba_error *err)
{
	struct sba_channel *c = NULL;
	int rc = sba_channel_make(take_link, &c, err);
	if (rc < 0 || !c)
		return rc;
	rc = start_thread(c, err);
	if (rc == 0)
		rc = say_hello(c, until, err);
	if (ret_hello)
		*ret_hello = c->hello;
	if (rc < 0) {
		sba_channel_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

static int open_over(struct sba_link *take_link, struct sba_until until,
		     struct sba_channel_hello *ret_hello, struct sba_channel **ret,
		     struct sba_error *err)
{
	struct sba_channel *c = NULL;
	int rc = sba_channel_new(take_link, until, ret_hello, &c, err);
	if (rc < 0 || !c)
		return rc;
	rc = sba_channel_want_notices(c, err);
	if (rc < 0)
		sba_channel_close(c);
	else
		*ret = c;
	return rc;
}

static int not_opened(const char *container, int rc, struct sba_error *err)
{
	if (rc == SBA_ETIMEOUT)
		sba_hint(err, rc,
			 "the engine lets nobody in while it takes a copy into it: does another "
			 "client's stand still (Ctrl-Z)?");
	return rc < 0 ? sba_wrap(err, rc, "channel to container '%.12s'", container) : 0;
}

int sba_channel_open(struct sba_engine *e, const char *container, const char *user,
		     struct sba_until until, struct sba_channel_hello *ret_hello,
		     struct sba_channel **ret, struct sba_error *err)
{
	struct sba_link *link;
	if (ret_hello)
		*ret_hello = (struct sba_channel_hello){ 0 };
	int rc = sba_channel_link_exec(e, container, user, until, &link, err);
	if (rc == 0)
		rc = open_over(link, until, ret_hello, ret, err);
	return not_opened(container, rc, err);
}

int sba_channel_attach(struct sba_engine *e, const char *container, struct sba_until until,
		       struct sba_channel_hello *ret_hello, struct sba_channel **ret,
		       struct sba_error *err)
{
	struct sba_link *link;
	*ret_hello = (struct sba_channel_hello){ 0 };
	int rc = sba_channel_link_attach(e, container, until, &link, err);
	if (rc == 0)
		rc = open_over(link, until, ret_hello, ret, err);
	return not_opened(container, rc, err);
}

int sba_channel_open_socket(int take_fd, struct sba_until until,
			    struct sba_channel_hello *ret_hello, struct sba_channel **ret,
			    struct sba_error *err)
{
	struct sba_link *link;
	struct sba_channel *c = NULL;
	if (ret_hello)
		*ret_hello = (struct sba_channel_hello){ 0 };
	int rc = sba_link_socket(take_fd, &link, err);
	if (rc == 0)
		rc = sba_channel_new(link, until, ret_hello, &c, err);
	if (rc == 0 && (rc = sba_channel_want_notices(c, err)) < 0)
		sba_channel_close(c);
	if (rc < 0)
		return sba_wrap(err, rc, "channel to a guest here");
	*ret = c;
	return 0;
}

/* ---- death ---- */

void sba_channel_close(struct sba_channel *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	if (c->started)
		sba_channel_wake(c);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	if (c->link)
		c->link->ops->close(c->link);
	while (c->streams)
		sba_channel_stream_free(c->streams);
	nghttp2_session_del(c->h2);
	sba_passage_fini(&c->out);
	sba_buf_fini(&c->preamble);
	sba_cleanup_close(&c->wake_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
