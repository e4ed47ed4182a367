/* SPDX-License-Identifier: MIT */
/* The channel of a handle, its watch and its proxy; see session.h. */
#include "sandbox/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proxy/proxy.h"

enum {
	OPEN_MS = 30 * 1000,
	/* A channel that is lost so often is not worth opening again. */
	CHANNELS_MAX = 16,
	FORWARDS_MAX = 64,
};

/* One channel and the thread that waits for the end of its container: the
 * engine does not reliably end an exec's stream when a container dies. */
struct held {
	struct sba_session *session;
	struct sba_channel *channel;
	pthread_t watcher;
	bool watched;
	int stop_fd;
	struct {
		uint16_t here, inside;
		unsigned users; /* 0: free */
	} forwards[FORWARDS_MAX];
};

struct sba_session {
	struct sba_sandbox *sandbox;
	pthread_mutex_t lock;
	struct held held[CHANNELS_MAX]; /* the last one is in use; the others are dead */
	size_t n;
	bool unsupported;
	struct sba_proxy *proxy;
	uint16_t proxy_port; /* inside */
};

int sba_session_new(struct sba_sandbox *s, struct sba_session **ret, struct sba_error *err)
{
	struct sba_session *n = calloc(1, sizeof(*n));
	if (!n)
		return sba_fail_nomem(err);
	n->sandbox = s;
	pthread_mutex_init(&n->lock, NULL);
	*ret = n;
	return 0;
}

/* ---- the watch ---- */

static int await_end(struct held *h)
{
	struct sba_sandbox *s = h->session->sandbox;
	char path[SBA_ID_MAX + 32];
	snprintf(path, sizeof(path), "/containers/%s/wait", s->container);
	const struct sba_request request = { .method = "POST",
					     .path = path,
					     .tried = "wait for the container's end" };
	const struct sba_until until = { SBA_NEVER, h->stop_fd };
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

static void *watch(void *user)
{
	struct held *h = user;
	if (await_end(h) != 0)
		return NULL; /* told to stop, or the engine went: the channel notices itself */
	struct sba_error why = { 0 };
	if (sba_sandbox_check_alive(h->session->sandbox, "command", &why) == SBA_EBROKEN)
		sba_channel_fail(h->channel, &why);
	return NULL;
}

static int start_watch(struct held *h, struct sba_error *err)
{
	h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->stop_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "event descriptor");
	int rc = sba_thread_start(&h->watcher, watch, h, err);
	h->watched = rc == 0;
	return rc;
}

static void release(struct held *h)
{
	if (h->watched) {
		sba_event_fire(h->stop_fd);
		pthread_join(h->watcher, NULL);
	}
	sba_channel_close(h->channel);
	sba_cleanup_close(&h->stop_fd);
}

void sba_session_free(struct sba_session *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		release(&n->held[i]);
	sba_proxy_close(n->proxy);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* ---- the way out ---- */

/* The label holds the rules as they were given, with spaces between. */
static int split_rules(const char *label, struct sba_strv *ret, struct sba_error *err)
{
	int rc = 0;
	for (const char *at = label; rc == 0 && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		rc = sba_strv_addf(ret, err, "%.*s", (int)len, at);
		at += len;
	}
	return rc;
}

static int open_proxy(struct sba_session *n, struct sba_error *err)
{
	const char *allow = n->sandbox->info.allow;
	if (n->proxy || !*allow)
		return 0;
	SBA_STRV struct sba_strv rules = { 0 };
	int rc = split_rules(allow, &rules, err);
	const struct sba_proxy_options options = { .allow = (const char *const *)rules.v };
	if (rc == 0)
		rc = sba_proxy_open(&options, &n->proxy, err);
	return rc;
}

/* ---- the channel ---- */

static int open_channel(struct sba_session *n, struct held *h, struct sba_error *err)
{
	struct sba_sandbox *s = n->sandbox;
	struct sba_until until = sba_engine_until(s->engine, OPEN_MS);
	*h = (struct held){ .session = n, .stop_fd = -1 };
	int rc = sba_channel_open(s->engine, s->container, NULL, until, &h->channel, err);
	if (rc == 0)
		rc = start_watch(h, err);
	if (rc == 0)
		rc = open_proxy(n, err);
	if (rc == 0 && n->proxy)
		rc = sba_channel_forward(h->channel, sba_proxy_port(n->proxy), until,
					 &n->proxy_port, err);
	if (rc < 0)
		release(h);
	return rc;
}

static int channel_locked(struct sba_session *n, struct sba_channel **ret, struct sba_error *err)
{
	if (n->n > 0 && sba_channel_check(n->held[n->n - 1].channel, NULL) == 0) {
		*ret = n->held[n->n - 1].channel;
		return 0;
	}
	if (n->unsupported || n->n == CHANNELS_MAX)
		return sba_fail(err, SBA_EUNSUPPORTED, "no session channel to this sandbox");
	int rc = open_channel(n, &n->held[n->n], err);
	n->unsupported = rc == SBA_EUNSUPPORTED;
	if (rc == 0)
		*ret = n->held[n->n++].channel;
	return rc;
}

int sba_session_channel(struct sba_session *n, struct sba_channel **ret, struct sba_error *err)
{
	pthread_mutex_lock(&n->lock);
	int rc = channel_locked(n, ret, err);
	pthread_mutex_unlock(&n->lock);
	return rc;
}

uint16_t sba_session_proxy_port(struct sba_session *n)
{
	pthread_mutex_lock(&n->lock);
	uint16_t port = n->proxy_port;
	pthread_mutex_unlock(&n->lock);
	return port;
}

/* A port that is forwarded already stays the same for all who ask. */
static int forward_locked(struct sba_session *n, uint16_t host_port, uint16_t *ret_port,
			  struct sba_error *err)
{
	struct sba_channel *channel = NULL;
	int rc = channel_locked(n, &channel, err);
	if (rc < 0)
		return rc;
	struct held *h = &n->held[n->n - 1];
	size_t free_at = FORWARDS_MAX;
	for (size_t i = 0; i < FORWARDS_MAX; i++) {
		if (h->forwards[i].users == 0) {
			free_at = free_at < i ? free_at : i;
		} else if (h->forwards[i].here == host_port) {
			h->forwards[i].users++;
			*ret_port = h->forwards[i].inside;
			return 0;
		}
	}
	if (free_at == FORWARDS_MAX)
		return sba_fail(err, SBA_ELIMIT, "%d ports are open already", FORWARDS_MAX);
	uint16_t inside;
	rc = sba_channel_forward(channel, host_port, sba_engine_until(n->sandbox->engine, OPEN_MS),
				 &inside, err);
	if (rc < 0)
		return rc;
	h->forwards[free_at].here = host_port;
	h->forwards[free_at].inside = inside;
	h->forwards[free_at].users = 1;
	*ret_port = inside;
	return 0;
}

void sba_sandbox_unforward(struct sba_sandbox *s, uint16_t inside_port)
{
	struct sba_session *n = s->session;
	pthread_mutex_lock(&n->lock);
	struct held *h = n->n > 0 ? &n->held[n->n - 1] : NULL;
	for (size_t i = 0; h && i < FORWARDS_MAX; i++) {
		if (h->forwards[i].users == 0 || h->forwards[i].inside != inside_port)
			continue;
		if (--h->forwards[i].users == 0)
			sba_channel_unforward(h->channel, inside_port);
	}
	pthread_mutex_unlock(&n->lock);
}

int sba_sandbox_forward(struct sba_sandbox *s, uint16_t host_port, uint16_t *ret_port,
			struct sba_error *err)
{
	pthread_mutex_lock(&s->session->lock);
	int rc = forward_locked(s->session, host_port, ret_port, err);
	pthread_mutex_unlock(&s->session->lock);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': open a way to a port of this host",
				 s->info.name)
		      : 0;
}
