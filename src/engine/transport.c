/* SPDX-License-Identifier: MIT */
/*
 * Connecting, and the plain transport over a unix or TCP socket. Proxy
 * variables are ignored. A connection that cannot be made is told in words a
 * user can act on.
 */
#include "engine/private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

ssize_t sba_plain_read(struct sba_transport *t, void *buf, size_t len, struct sba_error *err)
{
	ssize_t n;
	do {
		n = recv(t->fd, buf, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno == EAGAIN)
		return SBA_AGAIN;
	return sba_fail_errno(err, SBA_ELOST, errno, "the connection to the engine broke");
}

ssize_t sba_plain_write(struct sba_transport *t, const void *buf, size_t len, struct sba_error *err)
{
	ssize_t n;
	do {
		n = send(t->fd, buf, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno == EAGAIN)
		return SBA_AGAIN;
	return sba_fail_errno(err, SBA_ELOST, errno, "the connection to the engine broke");
}

int sba_plain_shutdown(struct sba_transport *t)
{
	shutdown(t->fd, SHUT_WR);
	return 0;
}

static void plain_close(struct sba_transport *t)
{
	close(t->fd);
	free(t);
}

static const struct sba_transport_ops plain_ops = {
	.read = sba_plain_read,
	.write = sba_plain_write,
	.shutdown_write = sba_plain_shutdown,
	.close = plain_close,
};

static int plain_new(int take_fd, struct sba_transport **ret, struct sba_error *err)
{
	struct sba_transport *t = malloc(sizeof(*t));
	if (!t) {
		close(take_fd);
		return sba_fail_nomem(err);
	}
	*t = (struct sba_transport){ &plain_ops, take_fd, POLLIN, POLLOUT };
	*ret = t;
	return 0;
}

/* ---- what went wrong ---- */

static int cannot_connect(const struct sba_address *a, int e, struct sba_error *err)
{
	char where[512];
	int rc;
	sba_address_format(a, where, sizeof(where));
	if (e == EACCES || e == EPERM) {
		rc = sba_fail_errno(err, SBA_EPERM, e, "may not use the engine at %s", where);
		return sba_hint(err, rc,
				"add yourself to the group that owns the socket and log in again: "
				"sudo usermod -aG docker $USER");
	}
	rc = sba_fail_errno(err, SBA_ECONNECT, e, "no engine answers at %s", where);
	return sba_hint(err, rc,
			"start it: sudo systemctl start docker\n"
			"or use another: -H, DOCKER_HOST, docker context use");
}

/* ---- connecting ---- */

/* A unix socket whose backlog is full says EAGAIN, which no poll can wait
 * for: try again in a moment. */
static int connect_unix(int fd, const struct sockaddr_un *sa, struct sba_until until,
			int *ret_errno, struct sba_error *err)
{
	while (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0) {
		if (errno == EINTR)
			continue;
		*ret_errno = errno;
		if (errno != EAGAIN)
			return SBA_ECONNECT;
		int rc = sba_until_check(until, err);
		if (rc == 0)
			rc = sba_wait_fd(-1, 0, sba_until_sooner(until, 5), err);
		if (rc < 0 && rc != SBA_ETIMEOUT)
			return rc;
		rc = sba_until_check(until, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sba_connect_unix(const struct sba_address *a, const struct sockaddr_un *to,
		     struct sba_until until, int *ret_fd, struct sba_error *err)
{
	SBA_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "socket");
	int e = 0;
	int rc = connect_unix(fd, to, until, &e, err);
	if (rc == SBA_ECONNECT)
		return cannot_connect(a, e, err);
	if (rc < 0)
		return rc;
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

static int open_unix(const struct sba_address *a, struct sba_until until, int *ret_fd,
		     struct sba_error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_Static_assert(sizeof(sa.sun_path) == sizeof(a->path), "a path that fits one fits both");
	memcpy(sa.sun_path, a->path, sizeof(sa.sun_path));
	return sba_connect_unix(a, &sa, until, ret_fd, err);
}

/* One address of the host: 0, SBA_ECONNECT with *ret_errno, or worse. */
static int connect_tcp(const struct sockaddr_storage *to, struct sba_until until, int *ret_fd,
		       int *ret_errno, struct sba_error *err)
{
	socklen_t size = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in);
	SBA_CLOSE int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "socket");
	if (connect(fd, (const struct sockaddr *)to, size) < 0) {
		*ret_errno = errno;
		if (errno != EINPROGRESS)
			return SBA_ECONNECT;
		int rc = sba_wait_fd(fd, POLLOUT, until, err);
		if (rc < 0)
			return rc;
		socklen_t len = sizeof(*ret_errno);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, ret_errno, &len);
		if (*ret_errno)
			return SBA_ECONNECT;
	}
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

static int open_tcp(const struct sba_address *a, struct sba_until until, int *ret_fd,
		    struct sba_error *err)
{
	struct sba_addresses all;
	struct sba_error why;
	int64_t port;
	int rc = sba_parse_int(a->port, 1, UINT16_MAX, &port);
	if (rc < 0)
		return sba_fail(err, SBA_EINVAL, "'%s' is no port", a->port);
	rc = sba_lookup(a->host, (uint16_t)port, until, &all, &why);
	if (rc < 0)
		return sba_fail(err, rc == SBA_ENOTFOUND ? SBA_ECONNECT : rc,
				"no engine answers at tcp://%s:%s: %s", a->host, a->port, why.text);
	int e = EADDRNOTAVAIL;
	rc = SBA_ECONNECT;
	for (size_t i = 0; i < all.n && rc == SBA_ECONNECT; i++)
		rc = connect_tcp(&all.v[i], until, ret_fd, &e, err);
	return rc == SBA_ECONNECT ? cannot_connect(a, e, err) : rc;
}

int sba_transport_open(const struct sba_address *a, struct sba_tls *tls, struct sba_until until,
		       struct sba_transport **ret, struct sba_error *err)
{
	int fd = -1;
	int rc = a->tcp ? open_tcp(a, until, &fd, err) : open_unix(a, until, &fd, err);
	if (rc < 0)
		return rc;
	if (tls)
		return sba_tls_connect(tls, fd, a->host, until, ret, err);
	return plain_new(fd, ret, err);
}
