/* SPDX-License-Identifier: MIT */
/* Names that one command at a time holds: abstract sockets; see lock.h. */
#include "guest/lock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/protocol.h"

enum { WAITERS_MAX = 64 };

static socklen_t address(const char *name, struct sockaddr_un *ret)
{
	int len;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* A NUL in front: not a path. */
	len = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "sandbox-agent/%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int sba_guest_lock_take(const char *name)
{
	struct sockaddr_un at;
	socklen_t len = address(name, &at);
	int fd = open_socket();
	int error;

	if (fd < 0)
		return -1;
	if (bind(fd, (const struct sockaddr *)&at, len) == 0 && listen(fd, WAITERS_MAX) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Nobody ever accepts: who waits is in the backlog until the holder is gone. */
int sba_guest_lock_watch(const char *name)
{
	struct sockaddr_un at;
	socklen_t len = address(name, &at);
	int fd = open_socket();

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, len) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
