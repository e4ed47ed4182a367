/* SPDX-License-Identifier: MIT */
/*
 * Names that one command at a time holds; see lock.h. A process of the sandbox's user
 * could take the name of an abstract socket, and keep every later turn waiting.
 */
#include "guest/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/protocol.h"

enum { WAITERS_MAX = 64 };

/* ---- in the file ---- */

static int open_file(const char *key)
{
	char path[sizeof(SBA_LOCK_DIR) + 1 + SBA_LOCK_KEY_LEN];
	struct stat found;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", SBA_LOCK_DIR, key);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Each name has a byte of its own (FNV-1a). */
static off_t place_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return (off_t)(hash >> 2);
}

static int take_in_file(int fd, const char *name)
{
	struct flock byte = { .l_type = F_WRLCK, .l_start = place_of(name), .l_len = 1 };
	int error;

	if (fcntl(fd, F_OFD_SETLK, &byte) == 0)
		return fd;
	error = errno == EAGAIN || errno == EACCES ? EADDRINUSE : errno;
	close(fd);
	errno = error;
	return -1;
}

/* ---- as an abstract socket ---- */

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

static int take_as_socket(const char *name)
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

/* ---- either ---- */

int sba_guest_lock_take(const char *name, const char *key)
{
	int fd = open_file(key);

	return fd >= 0 ? take_in_file(fd, name) : take_as_socket(name);
}

/* Nobody ever accepts: who waits is in the backlog until the holder is gone. */
int sba_guest_lock_watch(const char *name, const char *key)
{
	struct sockaddr_un at;
	socklen_t len = address(name, &at);
	int fd = open_file(key);

	if (fd >= 0) {
		close(fd);
		return -1;
	}
	fd = open_socket();
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, len) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
