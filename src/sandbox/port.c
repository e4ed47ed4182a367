/* SPDX-License-Identifier: MIT */
/* Ports across the border: one inside reached from here, one here reached from inside. */
#include "sandbox/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, CONNECT_MS = 10 * 1000, FULL_MS = 100 };

struct sba_port {
	struct sba_sandbox *sandbox;
	uint16_t inside, here;
	int listen_fd, stop_fd;
	pthread_t thread;
	bool running;
};

/* A connection that cannot be joined is closed: its client sees that at once. */
static void join_one(struct sba_port *p, int take_fd)
{
	SBA_CLOSE int fd = take_fd;
	struct sba_hold *hold = NULL;
	struct sba_error why;
	int rc = sba_session_hold(p->sandbox->session, p->stop_fd, &hold, &why);
	if (rc == 0)
		rc = sba_channel_connect(
			sba_hold_channel(hold), p->inside, sba_move_fd(&fd),
			(struct sba_until){ sba_until_in(CONNECT_MS).deadline_ms, p->stop_fd },
			&why);
	if (rc < 0)
		sba_log("sandbox", "port %u: %s", (unsigned)p->inside, why.text);
	sba_hold_release(hold);
}

static void *serve(void *user)
{
	struct sba_port *p = user;
	const struct sba_until until = { SBA_NEVER, p->stop_fd };
	while (sba_wait_fd(p->listen_fd, POLLIN, until, NULL) > 0) {
		int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			join_one(p, fd);
		/* Out of descriptors: the connection waits and the socket stays readable. */
		else if ((errno == EMFILE || errno == ENFILE) &&
			 sba_wait_fd(-1, 0, sba_until_sooner(until, FULL_MS), NULL) != SBA_ETIMEOUT)
			break;
	}
	return NULL;
}

static int listen_here(struct sba_port *p, const char *address, uint16_t port,
		       struct sba_error *err)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	socklen_t len = sizeof(a);
	int on = 1;
	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		return sba_fail(err, SBA_EINVAL, "'%s' is not an IPv4 address", address);
	p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->listen_fd < 0 || p->stop_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "socket");
	if (setsockopt(p->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(p->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(p->listen_fd, BACKLOG) < 0 ||
	    getsockname(p->listen_fd, (struct sockaddr *)&a, &len) < 0) {
		int e = errno;
		int rc =
			sba_fail_errno(err, SBA_EIO, e, "listen on %s:%u", address, (unsigned)port);
		return e == EADDRINUSE
			       ? sba_hint(err, rc, "another one, or none: a free one is taken then")
			       : rc;
	}
	p->here = ntohs(a.sin_port);
	return 0;
}

static int start(struct sba_port *p, const char *address, uint16_t port, struct sba_error *err)
{
	struct sba_hold *hold = NULL;
	int rc = sba_session_hold(p->sandbox->session, -1, &hold, err);
	sba_hold_release(hold);
	if (rc == 0)
		rc = listen_here(p, address ? address : "127.0.0.1", port, err);
	if (rc < 0)
		return rc;
	rc = sba_thread_start(&p->thread, serve, p, err);
	p->running = rc == 0;
	return rc;
}

int sba_port_open(struct sba_sandbox *s, const struct sba_port_options *o, struct sba_port **ret,
		  struct sba_error *err)
{
	if (o->port == 0)
		return sba_fail(err, SBA_EINVAL, "port 0 is none");
	int rc = sba_sandbox_need(s, SBA_CAN_PORT, err);
	if (rc < 0)
		return rc;
	struct sba_port *p = calloc(1, sizeof(*p));
	if (!p)
		return sba_fail_nomem(err);
	*p = (struct sba_port){ .sandbox = s, .inside = o->port, .listen_fd = -1, .stop_fd = -1 };
	rc = start(p, o->host_address, o->host_port, err);
	if (rc < 0) {
		sba_port_close(p);
		return sba_wrap(err, rc, "port %u of sandbox '%s'", (unsigned)o->port,
				s->info.name);
	}
	*ret = p;
	return 0;
}

uint16_t sba_port_here(const struct sba_port *p)
{
	return p->here;
}

void sba_port_close(struct sba_port *p)
{
	if (!p)
		return;
	if (p->running) {
		sba_event_fire(p->stop_fd);
		sba_session_wake(p->sandbox->session);
		pthread_join(p->thread, NULL);
	}
	sba_cleanup_close(&p->listen_fd);
	sba_cleanup_close(&p->stop_fd);
	free(p);
}

int sba_guest_host_url(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
		       struct sba_error *err)
{
	uint16_t port;
	int rc = sba_sandbox_forward(s, host_port, &port, err);
	if (rc < 0)
		return rc;
	snprintf(ret, size, "http://127.0.0.1:%u", (unsigned)port);
	return 0;
}
