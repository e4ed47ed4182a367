/* SPDX-License-Identifier: MIT */
/* Small whole files and complete writes. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int sba_read_file(const char *path, size_t max, struct sba_buf *ret, struct sba_error *err)
{
	SBA_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno, "%s",
				      path);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(max);
	for (;;) {
		char piece[16384];
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "%s", path);
		if (n == 0)
			break;
		sba_buf_put(&b, piece, (size_t)n);
		int rc = sba_buf_check(&b, path, err);
		if (rc < 0)
			return rc;
	}
	sba_buf_fini(ret);
	*ret = b;
	b = (struct sba_buf){ 0 };
	return 0;
}

/* What is in /tmp may be in memory. */
int sba_open_unnamed(int *ret_fd, struct sba_error *err)
{
	static const char *const folders[] = { "/var/tmp", "/tmp" };
	int fd = -1;
	for (size_t i = 0; fd < 0 && i < SBA_ARRAY_LEN(folders); i++)
		fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a temporary file in /var/tmp or /tmp");
	*ret_fd = fd;
	return 0;
}

int sba_write_all(int fd, const void *data, size_t len, struct sba_error *err)
{
	const char *at = data;
	while (len > 0) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			int rc = sba_wait_fd(fd, POLLOUT, (struct sba_until){ SBA_NEVER, -1 }, err);
			if (rc < 0)
				return rc;
			continue;
		}
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "write");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int sba_pipe_open(int *ret_ours, int *ret_theirs, bool we_write, struct sba_error *err)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "pipe");
	SBA_CLOSE int ours = p[we_write], theirs = p[!we_write];
	int rc = sba_set_nonblock(ours, true);
	if (rc < 0)
		return sba_fail_errno(err, SBA_EIO, -rc, "pipe");
	*ret_ours = sba_move_fd(&ours);
	*ret_theirs = sba_move_fd(&theirs);
	return 0;
}

int sba_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
