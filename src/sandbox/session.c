/* SPDX-License-Identifier: MIT */
/* The channel of a handle, its watch and its proxy; see session.h. */
#include "sandbox/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "sandbox/guest.h"

enum {
	OPEN_MS = 30 * 1000,
	WATCH_AFTER_MS = 1000,
	WAIT_AGAIN_MS = 500,
};

/* One channel and the thread that waits for the end of its container: the
 * engine does not reliably end an exec's stream when a container dies. */
struct sba_hold {
	struct sba_session *session;
	struct sba_channel *channel;
	unsigned users; /* the session's lock guards it */
	pthread_t watcher;
	bool watched;
	int stop_fd;
};

int sba_session_new_with(struct sba_sandbox *s, sba_session_open_fn *open, void *user,
			 struct sba_session **ret, struct sba_error *err)
{
	struct sba_session *n = calloc(1, sizeof(*n));
	if (!n)
		return sba_fail_nomem(err);
	n->sandbox = s;
	n->open = open;
	n->open_user = user;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	pthread_mutex_init(&n->observers_lock, NULL);
	*ret = n;
	return 0;
}

int sba_session_new(struct sba_sandbox *s, struct sba_session **ret, struct sba_error *err)
{
	return sba_session_new_with(s, NULL, NULL, ret, err);
}

struct sba_until sba_session_until(const struct sba_session *n)
{
	return sba_sandbox_until(n->sandbox, OPEN_MS);
}

/* ---- the watch ---- */

static int await_end(const struct sba_sandbox *s, struct sba_until until)
{
	char path[SBA_ID_MAX + 32];
	snprintf(path, sizeof(path), "/containers/%s/wait", s->container);
	const struct sba_request request = { .method = "POST",
					     .path = path,
					     .tried = "wait for the container's end" };
	struct sba_body *body = NULL;
	int rc = sba_engine_stream(s->engine, &request, NULL, NULL, NULL, until, &body, NULL);
	if (rc < 0)
		return rc;
	char answer[256];
	ssize_t n;
	do
		n = sba_body_read(body, answer, sizeof(answer), until, NULL);
	while (n > 0);
	sba_body_close(body);
	return n < 0 ? (int)n : 0;
}

int sba_session_await_death(struct sba_sandbox *s, struct sba_until until, struct sba_error *err)
{
	for (;;) {
		int rc = await_end(s, until);
		if (rc == 0 || rc == SBA_ENOTFOUND)
			rc = sba_sandbox_check_alive_until(s, "command", until, err);
		if (rc < 0)
			return rc;
		/* Some engines answer before the end (containers/podman-py issue 201). */
		rc = sba_wait_fd(-1, 0, sba_until_sooner(until, WAIT_AGAIN_MS), err);
		if (rc < 0 && rc != SBA_ETIMEOUT)
			return rc;
	}
}

static void *watch(void *user)
{
	struct sba_hold *h = user;
	const struct sba_until until = { SBA_NEVER, h->stop_fd };
	struct sba_error why = { 0 };
	/* Most commands are over by then, and need no connection for it: at ssh:// each is a
	 * login, and one that is given up half-way counts against us (PerSourcePenalties). */
	if (sba_wait_fd(-1, 0, sba_until_sooner(until, WATCH_AFTER_MS), NULL) != SBA_ETIMEOUT)
		return NULL;
	/* All else is that it was told to stop, or that the engine went: the channel notices. */
	if (sba_session_await_death(h->session->sandbox, until, &why) == SBA_EBROKEN)
		sba_channel_fail(h->channel, &why);
	return NULL;
}

static int start_watch(struct sba_hold *h, struct sba_error *err)
{
	h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->stop_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "event descriptor");
	int rc = sba_thread_start(&h->watcher, watch, h, err);
	h->watched = rc == 0;
	return rc;
}

/* ---- holds ---- */

static void end_hold(struct sba_hold *h)
{
	if (h->watched) {
		sba_event_fire(h->stop_fd);
		pthread_join(h->watcher, NULL);
	}
	sba_channel_close(h->channel);
	sba_cleanup_close(&h->stop_fd);
	free(h);
}

struct sba_channel *sba_hold_channel(const struct sba_hold *h)
{
	return h->channel;
}

void sba_hold_release(struct sba_hold *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->session->lock);
	bool last = --h->users == 0;
	pthread_mutex_unlock(&h->session->lock);
	if (last)
		end_hold(h);
}

void sba_session_free(struct sba_session *n)
{
	if (!n)
		return;
	sba_hold_release(n->now);
	sba_proxy_close(n->proxy);
	pthread_mutex_destroy(&n->observers_lock);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* ---- the way out ---- */

static int open_proxy(struct sba_session *n, struct sba_error *err)
{
	const char *allow = n->sandbox->info.allow;
	if (n->proxy || !allow || !*allow)
		return 0;
	SBA_STRV struct sba_strv rules = { 0 };
	int rc = sba_label_words(allow, &rules, err);
	const struct sba_proxy_options options = { .allow = (const char *const *)rules.v,
						   .event = sba_session_tell,
						   .user = n };
	if (rc == 0)
		rc = sba_proxy_open(&options, &n->proxy, err);
	return rc;
}

static int forward_proxy(struct sba_session *n, struct sba_hold *h, struct sba_until until,
			 struct sba_error *err)
{
	int rc = open_proxy(n, err);
	uint16_t port = sba_session_proxy_port(n);
	if (rc < 0 || !n->proxy)
		return rc;
	rc = sba_channel_forward(h->channel, sba_proxy_port(n->proxy), port, until, &port, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&n->lock);
	n->proxy_port = port;
	pthread_mutex_unlock(&n->lock);
	return 0;
}

/* ---- opening ---- */

static int open_hold(struct sba_session *n, struct sba_until until, struct sba_hold **ret,
		     struct sba_error *err)
{
	struct sba_sandbox *s = n->sandbox;
	struct sba_hold *h = malloc(sizeof(*h));
	if (!h)
		return sba_fail_nomem(err);
	/* One is the session's own, one its opener's. */
	*h = (struct sba_hold){ .session = n, .users = 2, .stop_fd = -1 };
	int rc = n->open ? n->open(n->open_user, until, &h->channel, err)
			 : sba_guest_channel(s, until, &h->channel, err);
	if (rc == 0 && !n->open)
		rc = start_watch(h, err);
	if (rc == 0)
		rc = forward_proxy(n, h, until, err);
	if (rc < 0) {
		end_hold(h);
		return rc;
	}
	sba_session_forward_again(n, h->channel, until);
	*ret = h;
	return 0;
}

/* The lock is held on both ends, and not between. */
static int open_locked(struct sba_session *n, struct sba_until until, struct sba_hold **ret,
		       struct sba_error *err)
{
	struct sba_error why = { 0 };
	struct sba_hold *lost = n->now, *h = NULL;
	n->now = NULL;
	n->opening = true;
	pthread_mutex_unlock(&n->lock);
	sba_hold_release(lost);
	int rc = open_hold(n, until, &h, &why);
	pthread_mutex_lock(&n->lock);
	n->opening = false;
	n->openings++;
	n->unsupported = rc == SBA_EUNSUPPORTED;
	if (rc == 0) {
		why.code = 0;
		n->now = *ret = h;
	} else if (err) {
		*err = why;
	}
	n->failure = why;
	pthread_cond_broadcast(&n->changed);
	return rc;
}

/* What one opener failed with is every waiter's answer, its own impatience not. */
static int answer_of(const struct sba_session *n, unsigned before, struct sba_error *err)
{
	int rc = n->openings != before ? n->failure.code : 0;
	if (rc == SBA_ECANCELED || rc == SBA_ETIMEOUT)
		return 0;
	if (rc < 0 && err)
		*err = n->failure;
	return rc;
}

static int hold_locked(struct sba_session *n, struct sba_until until, struct sba_hold **ret,
		       struct sba_error *err)
{
	for (;;) {
		if (n->now && sba_channel_check(n->now->channel, NULL) == 0) {
			n->now->users++;
			*ret = n->now;
			return 0;
		}
		if (n->unsupported)
			return sba_fail(err, SBA_EUNSUPPORTED,
					"no session channel to this sandbox");
		if (!n->opening)
			return open_locked(n, until, ret, err);
		unsigned before = n->openings;
		pthread_cond_wait(&n->changed, &n->lock);
		int rc = answer_of(n, before, err);
		if (rc == 0)
			rc = sba_until_check(until, err);
		if (rc < 0)
			return rc;
	}
}

int sba_session_hold(struct sba_session *n, int stop_fd, struct sba_hold **ret,
		     struct sba_error *err)
{
	struct sba_until until = sba_session_until(n);
	if (stop_fd >= 0)
		until.cancel_fd = stop_fd;
	pthread_mutex_lock(&n->lock);
	int rc = hold_locked(n, until, ret, err);
	pthread_mutex_unlock(&n->lock);
	return rc;
}

void sba_session_wake(struct sba_session *n)
{
	pthread_mutex_lock(&n->lock);
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

uint16_t sba_session_proxy_port(struct sba_session *n)
{
	pthread_mutex_lock(&n->lock);
	uint16_t port = n->proxy_port;
	pthread_mutex_unlock(&n->lock);
	return port;
}
