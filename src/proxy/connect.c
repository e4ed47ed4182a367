/* SPDX-License-Identifier: MIT */
/* Connecting to addresses that were judged; it looks nothing up. */
#include "proxy/private.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>

static int finish(int fd, struct sba_until until, struct sba_error *err)
{
	int rc = sba_wait_fd(fd, POLLOUT, until, err);
	if (rc < 0)
		return rc;
	int e = 0, on = 1;
	socklen_t len = sizeof(e);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0)
		e = errno;
	if (e)
		return sba_fail_errno(err, SBA_ECONNECT, e, "not connected");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return 0;
}

static int connect_one(const struct sockaddr_storage *to, struct sba_until until, int *ret_fd,
		       struct sba_error *err)
{
	socklen_t len = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in);
	SBA_CLOSE int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "socket");
	if (connect(fd, (const struct sockaddr *)to, len) < 0 && errno != EINPROGRESS &&
	    errno != EINTR)
		return sba_fail_errno(err, SBA_ECONNECT, errno, "not connected");
	int rc = finish(fd, until, err);
	if (rc < 0)
		return rc;
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

int sba_proxy_connect(const struct sba_addresses *addresses, struct sba_until until, int *ret_fd,
		      struct sba_error *err)
{
	int rc = SBA_ECONNECT;
	for (size_t i = 0; i < addresses->n; i++) {
		bool last = i + 1 == addresses->n;
		int left = sba_until_left(until);
		/* An address that is silent must leave time for the next. */
		struct sba_until u = last || left < 0 ? until : sba_until_sooner(until, left / 2);
		struct sba_proxy_ip ip;
		char text[INET6_ADDRSTRLEN] = "?";
		rc = connect_one(&addresses->v[i], u, ret_fd, err);
		if (rc == 0)
			return 0;
		if (sba_proxy_ip_of((const struct sockaddr *)&addresses->v[i], &ip))
			sba_proxy_ip_text(&ip, text);
		sba_wrap(err, rc, "connect to %s", text);
		if (rc == SBA_ECANCELED)
			return rc;
	}
	return addresses->n ? rc : sba_fail(err, SBA_ECONNECT, "no address to connect to");
}
