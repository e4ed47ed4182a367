/* SPDX-License-Identifier: MIT */
/*
 * Names into addresses, each on a thread of its own: getaddrinfo() can neither
 * be given a deadline nor be stopped.
 */
#include "proxy/private.h"

#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum { STACK = 512 * SBA_KIB }; /* resolver plugins take more than our own code */

struct sba_proxy_lookup {
	atomic_int users; /* its thread, and who waits for it */
	pthread_t thread;
	bool joined;
	int done_fd;
	sba_proxy_resolve_fn *resolve;
	void *resolve_user;
	struct sba_proxy_authority what;
	struct sba_proxy_addresses addresses;
	int rc;
	struct sba_error err;
};

static void take_addresses(const struct addrinfo *list, struct sba_proxy_addresses *ret)
{
	ret->n = 0;
	for (; list && ret->n < SBA_PROXY_ADDRESSES_MAX; list = list->ai_next) {
		if (list->ai_addrlen <= sizeof(ret->v[0]))
			memcpy(&ret->v[ret->n++], list->ai_addr, list->ai_addrlen);
	}
}

int sba_proxy_resolve(void *user, const char *host, uint16_t port, struct sba_proxy_addresses *ret,
		      struct sba_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list;
	struct sba_proxy_ip ip;
	char service[6];
	(void)user;
	if (sba_proxy_ip_parse(host, &ip))
		hints.ai_flags |= AI_NUMERICHOST;
	snprintf(service, sizeof(service), "%u", port);
	int rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		return sba_fail(err, SBA_ENOTFOUND, "%s", gai_strerror(rc));
	take_addresses(list, ret);
	freeaddrinfo(list);
	return 0;
}

static void release(struct sba_proxy_lookup *l)
{
	if (atomic_fetch_sub(&l->users, 1) > 1)
		return;
	sba_cleanup_close(&l->done_fd);
	free(l);
}

static void *run(void *arg)
{
	struct sba_proxy_lookup *l = arg;
	l->rc = l->resolve(l->resolve_user, l->what.host, l->what.port, &l->addresses, &l->err);
	eventfd_write(l->done_fd, 1);
	release(l);
	return NULL;
}

int sba_proxy_lookup_start(const struct sba_proxy_hooks *hooks,
			   const struct sba_proxy_authority *what, struct sba_proxy_lookup **ret,
			   struct sba_error *err)
{
	struct sba_proxy_lookup *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->resolve = hooks->resolve;
	l->resolve_user = hooks->resolve_user;
	l->what = *what;
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

int sba_proxy_lookup_wait(struct sba_proxy_lookup *l, struct sba_until until,
			  struct sba_proxy_addresses *ret, struct sba_error *err)
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
		return sba_wrap(err, rc, "look up %s", l->what.host);
	*ret = l->addresses;
	return 0;
}

void sba_proxy_lookup_end(struct sba_proxy_lookup *l, struct sba_until until)
{
	if (!l)
		return;
	if (!l->joined && sba_wait_fd(l->done_fd, POLLIN, until, NULL) > 0)
		pthread_join(l->thread, NULL);
	else if (!l->joined)
		pthread_detach(l->thread);
	release(l);
}
