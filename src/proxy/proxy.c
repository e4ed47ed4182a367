/* SPDX-License-Identifier: MIT */
/*
 * The proxy as a whole: the listening socket, a bounded number of threads with
 * a connection each, and their end. It must not know what connections do.
 */
#include "proxy/private.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	BACKLOG = 256,
	RETRY_MS = 100, /* when accept() is out of descriptors or memory */
};

enum place_state { PLACE_FREE, PLACE_BUSY, PLACE_DONE };

struct place {
	atomic_int state; /* only its thread makes it DONE, only the accepter all else */
	pthread_t thread;
	int fd;
	const struct sba_proxy_shared *shared;
};

struct sba_proxy {
	struct sba_rules *rules;
	sba_proxy_event_fn *event;
	void *user;
	pthread_mutex_t event_lock;
	struct sba_proxy_shared shared;
	int listen_fd;
	pthread_t accepter;
	bool started;
	size_t n;
	struct place places[];
};

static void record(struct sba_proxy *p, const struct sba_proxy_event *event)
{
	if (!p->event)
		return;
	pthread_mutex_lock(&p->event_lock);
	p->event(p->user, event);
	pthread_mutex_unlock(&p->event_lock);
}

/* ---- connections ---- */

static void *run_place(void *arg)
{
	struct place *place = arg;
	sba_proxy_connection_serve(place->shared, place->fd);
	atomic_store(&place->state, PLACE_DONE);
	return NULL;
}

/* Joins what has ended; NULL if every place is taken. */
static struct place *free_place(struct sba_proxy *p)
{
	struct place *found = NULL;
	for (size_t i = 0; i < p->n; i++) {
		struct place *place = &p->places[i];
		if (atomic_load(&place->state) == PLACE_DONE) {
			pthread_join(place->thread, NULL);
			atomic_store(&place->state, PLACE_FREE);
		}
		if (!found && atomic_load(&place->state) == PLACE_FREE)
			found = place;
	}
	return found;
}

static void start_connection(struct sba_proxy *p, int fd)
{
	struct place *place = free_place(p);
	if (place) {
		place->fd = fd;
		place->shared = &p->shared;
		atomic_store(&place->state, PLACE_BUSY);
		if (sba_thread_start(&place->thread, run_place, place, NULL) == 0)
			return;
		atomic_store(&place->state, PLACE_FREE);
	}
	sba_proxy_connection_turn_away(&p->shared, fd);
}

static void *accept_all(void *arg)
{
	struct sba_proxy *p = arg;
	struct sba_until stop = { SBA_NEVER, p->shared.stop_fd };
	while (sba_wait_fd(p->listen_fd, POLLIN, stop, NULL) > 0) {
		int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			start_connection(p, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			/* The socket stays readable: without a pause this would spin. */
			if (sba_wait_fd(-1, 0, sba_until_sooner(stop, RETRY_MS), NULL) ==
			    SBA_ECANCELED)
				break;
	}
	return NULL;
}

/* ---- opening and closing ---- */

static int listen_on_loopback(struct sba_proxy *p, struct sba_error *err)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	p->shared.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->listen_fd < 0 || p->shared.stop_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "proxy");
	if (bind(p->listen_fd, (const struct sockaddr *)&a, len) < 0 ||
	    listen(p->listen_fd, BACKLOG) < 0 ||
	    getsockname(p->listen_fd, (struct sockaddr *)&a, &len) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "proxy: listen on 127.0.0.1");
	p->shared.port = ntohs(a.sin_port);
	return 0;
}

static void take_hooks(struct sba_proxy_hooks *to, const struct sba_proxy_hooks *from)
{
	if (from)
		*to = *from;
	if (!to->resolve)
		to->resolve = sba_resolve;
	if (!to->head_ms)
		to->head_ms = SBA_PROXY_HEAD_MS;
	if (!to->connect_ms)
		to->connect_ms = SBA_PROXY_CONNECT_MS;
	if (!to->idle_ms)
		to->idle_ms = SBA_PROXY_IDLE_MS;
}

static struct sba_proxy *proxy_new(const struct sba_proxy_options *o,
				   const struct sba_proxy_hooks *hooks)
{
	size_t n = o->max_connections ? o->max_connections : SBA_PROXY_CONNECTIONS_MAX;
	struct sba_proxy *p = calloc(1, sizeof(*p) + n * sizeof(p->places[0]));
	if (!p)
		return NULL;
	p->n = n;
	p->event = o->event;
	p->user = o->user;
	pthread_mutex_init(&p->event_lock, NULL);
	p->listen_fd = -1;
	p->shared = (struct sba_proxy_shared){ .record = record, .proxy = p, .stop_fd = -1 };
	take_hooks(&p->shared.hooks, hooks);
	return p;
}

int sba_proxy_open_hooked(const struct sba_proxy_options *options,
			  const struct sba_proxy_hooks *hooks, struct sba_proxy **ret,
			  struct sba_error *err)
{
	struct sba_proxy *p = proxy_new(options, hooks);
	if (!p)
		return sba_fail_nomem(err);
	int rc = sba_rules_new(options->allow, &p->rules, err);
	p->shared.rules = p->rules;
	if (rc == 0)
		rc = listen_on_loopback(p, err);
	if (rc == 0)
		rc = sba_thread_start(&p->accepter, accept_all, p, err);
	if (rc < 0) {
		sba_proxy_close(p);
		return rc;
	}
	p->started = true;
	*ret = p;
	return 0;
}

int sba_proxy_open(const struct sba_proxy_options *options, struct sba_proxy **ret,
		   struct sba_error *err)
{
	return sba_proxy_open_hooked(options, NULL, ret, err);
}

uint16_t sba_proxy_port(const struct sba_proxy *p)
{
	return p->shared.port;
}

static void stop(struct sba_proxy *p)
{
	eventfd_write(p->shared.stop_fd, 1);
	pthread_join(p->accepter, NULL);
	for (size_t i = 0; i < p->n; i++) {
		if (atomic_load(&p->places[i].state) != PLACE_FREE)
			pthread_join(p->places[i].thread, NULL);
	}
}

void sba_proxy_close(struct sba_proxy *p)
{
	if (!p)
		return;
	if (p->started)
		stop(p);
	sba_cleanup_close(&p->listen_fd);
	sba_cleanup_close(&p->shared.stop_fd);
	pthread_mutex_destroy(&p->event_lock);
	sba_rules_free(p->rules);
	free(p);
}
