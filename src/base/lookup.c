/* SPDX-License-Identifier: MIT */
/*
 * Names into addresses, each on a thread of its own: getaddrinfo() can neither
 * be given a deadline nor be stopped.
 */
#include "base/base.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum { HOST_MAX = 256 };

struct sba_lookup {
	atomic_int users; /* its thread, and who waits for it */
	pthread_t thread;
	bool joined;
	int done_fd;
	sba_resolve_fn *resolve;
	void *resolve_user;
	char host[HOST_MAX];
	uint16_t port;
	struct sba_addresses addresses;
	int rc;
	struct sba_error err;
};

static bool is_numeric(const char *host)
{
	unsigned char ip[16];
	return inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
}

static void take_addresses(const struct addrinfo *list, struct sba_addresses *ret)
{
	ret->n = 0;
	for (; list && ret->n < SBA_ADDRESSES_MAX; list = list->ai_next) {
		if (list->ai_addrlen <= sizeof(ret->v[0]))
			memcpy(&ret->v[ret->n++], list->ai_addr, list->ai_addrlen);
	}
}

int sba_resolve(void *user, const char *host, uint16_t port, struct sba_addresses *ret,
		struct sba_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list;
	char service[6];
	(void)user;
	if (is_numeric(host))
		hints.ai_flags |= AI_NUMERICHOST;
	snprintf(service, sizeof(service), "%u", port);
	int rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		return sba_fail(err, SBA_ENOTFOUND, "%s", gai_strerror(rc));
	take_addresses(list, ret);
	freeaddrinfo(list);
	return 0;
}

static void release(struct sba_lookup *l)
{
	if (atomic_fetch_sub(&l->users, 1) > 1)
		return;
	sba_cleanup_close(&l->done_fd);
	free(l);
}

static void *run(void *arg)
{
	struct sba_lookup *l = arg;
	l->rc = l->resolve(l->resolve_user, l->host, l->port, &l->addresses, &l->err);
	eventfd_write(l->done_fd, 1);
	release(l);
	return NULL;
}

int sba_lookup_start(sba_resolve_fn *resolve, void *user, const char *host, uint16_t port,
		     struct sba_lookup **ret, struct sba_error *err)
{
	if (strlen(host) >= HOST_MAX)
		return sba_fail(err, SBA_EINVAL, "look up a host: its name is too long");
	struct sba_lookup *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->resolve = resolve;
	l->resolve_user = user;
	l->port = port;
	snprintf(l->host, sizeof(l->host), "%s", host);
	l->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_init(&l->users, 2);
	int rc = l->done_fd < 0 ? sba_fail(err, SBA_EIO, "no descriptor for a look-up")
				: sba_thread_start(&l->thread, run, l, err);
	if (rc < 0) {
		sba_cleanup_close(&l->done_fd);
		free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

int sba_lookup_wait(struct sba_lookup *l, struct sba_until until, struct sba_addresses *ret,
		    struct sba_error *err)
{
	int rc = sba_wait_fd(l->done_fd, POLLIN, until, err);
	if (rc >= 0) {
		pthread_join(l->thread, NULL);
		l->joined = true;
		rc = l->rc;
		if (rc < 0 && err)
			*err = l->err;
	}
	if (rc < 0)
		return sba_wrap(err, rc, "look up %s", l->host);
	*ret = l->addresses;
	return 0;
}

void sba_lookup_end(struct sba_lookup *l, struct sba_until until)
{
	if (!l)
		return;
	if (!l->joined && sba_wait_fd(l->done_fd, POLLIN, until, NULL) > 0)
		pthread_join(l->thread, NULL);
	else if (!l->joined)
		pthread_detach(l->thread);
	release(l);
}

int sba_lookup(const char *host, uint16_t port, struct sba_until until, struct sba_addresses *ret,
	       struct sba_error *err)
{
	if (is_numeric(host))
		return sba_resolve(NULL, host, port, ret, err);
	struct sba_lookup *l = NULL;
	int rc = sba_lookup_start(sba_resolve, NULL, host, port, &l, err);
	if (rc == 0 && l)
		rc = sba_lookup_wait(l, until, ret, err);
	sba_lookup_end(l, (struct sba_until){ 0, -1 });
	return rc;
}
