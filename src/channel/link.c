/* SPDX-License-Identifier: MIT */
/*
 * What carries the channel: the engine's exec of `guest session`, the stream of a
 * container's main process that becomes one, or a socket whose other end is stdin
 * and stdout of one on this host.
 */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EXPLAIN_MS = 3000, READ_SIZE = 64 * SBA_KIB };

/* ---- the engine's exec ---- */

struct exec_link {
	struct sba_link link;
	struct sba_exec *exec;
};

static ssize_t exec_read(struct sba_link *l, const char **data, struct sba_error *err)
{
	const struct exec_link *x = (struct exec_link *)l;
	for (;;) {
		enum sba_exec_stream stream;
		ssize_t n = sba_exec_read(x->exec, &stream, data, (struct sba_until){ 0, -1 }, err);
		/* The engine handle's cancel token is its callers', not ours: they
		 * need the channel to end what they cancelled. */
		if (n == SBA_ECANCELED)
			return SBA_ETIMEOUT;
		/* The session says nothing on stderr. */
		if (n <= 0 || stream == SBA_EXEC_STDOUT)
			return n;
	}
}

static ssize_t exec_write(struct sba_link *l, const void *data, size_t len, struct sba_error *err)
{
	return sba_exec_write(((struct exec_link *)l)->exec, data, len, err);
}

static void exec_poll(const struct sba_link *l, bool pending, struct pollfd *ret)
{
	const struct exec_link *x = (const struct exec_link *)l;
	pending |= sba_exec_wants_write(x->exec);
	*ret = (struct pollfd){ sba_exec_fd(x->exec), (short)(pending ? POLLIN | POLLOUT : POLLIN),
				0 };
}

static void exec_shutdown(struct sba_link *l)
{
	sba_exec_shutdown(((struct exec_link *)l)->exec);
}

static int exec_explain(struct sba_link *l, const char *text, struct sba_error *err)
{
	struct exec_link *x = (struct exec_link *)l;
	size_t len = strlen(text);
	int code = 0;
	int rc = sba_exec_exit_code(x->exec, sba_until_in(EXPLAIN_MS), &code, err);
	if (rc < 0)
		return rc;
	if (strstr(text, "unable to find user"))
		return sba_fail(err, SBA_ENOTFOUND, "%.*s", (int)strcspn(text, "\r\n"), text);
	if (sba_exec_runtime_error(code, text, len))
		return sba_fail(err, SBA_EUNSUPPORTED, "no guest in the container: %.*s",
				(int)strcspn(text, "\r\n"), text);
	if (code == 2)
		return sba_fail(err, SBA_EUNSUPPORTED, "the guest in the container has no session");
	return sba_fail(err, SBA_ELOST, "the guest ended with %d before its hello", code);
}

static void exec_close(struct sba_link *l)
{
	sba_exec_close(((struct exec_link *)l)->exec);
	free(l);
}

static const struct sba_link_ops exec_ops = {
	.read = exec_read,
	.write = exec_write,
	.poll = exec_poll,
	.shutdown = exec_shutdown,
	.explain = exec_explain,
	.close = exec_close,
};

static int wrap_exec(struct sba_exec *take_x, const struct sba_link_ops *ops, struct sba_link **ret,
		     struct sba_error *err)
{
	struct exec_link *x = calloc(1, sizeof(*x));
	if (!x) {
		sba_exec_close(take_x);
		return sba_fail_nomem(err);
	}
	*x = (struct exec_link){ .link.ops = ops, .exec = take_x };
	*ret = &x->link;
	return 0;
}

int sba_channel_link_exec(struct sba_engine *e, const char *container, const char *user,
			  struct sba_until until, struct sba_link **ret, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "session", NULL };
	const struct sba_exec_spec spec = { .container = container, .argv = argv, .user = user };
	struct sba_exec *x;
	int rc = sba_exec_open(e, &spec, until, &x, err);
	return rc < 0 ? rc : wrap_exec(x, &exec_ops, ret, err);
}

/* ---- the main process ---- */

/* On stderr its parent tells that the session has ended. */
static ssize_t attached_read(struct sba_link *l, const char **data, struct sba_error *err)
{
	const struct exec_link *x = (struct exec_link *)l;
	enum sba_exec_stream stream = SBA_EXEC_STDOUT;
	ssize_t n = sba_exec_read(x->exec, &stream, data, (struct sba_until){ 0, -1 }, err);
	if (n == SBA_ECANCELED)
		return SBA_ETIMEOUT;
	return stream == SBA_EXEC_STDOUT ? n : 0;
}

static int attached_explain(struct sba_link *l, const char *text, struct sba_error *err)
{
	(void)l;
	return sba_fail(err, SBA_ELOST, "the main process ended before its hello%s%.80s",
			*text ? ": " : "", text);
}

static const struct sba_link_ops attached_ops = {
	.read = attached_read,
	.write = exec_write,
	.poll = exec_poll,
	.shutdown = exec_shutdown,
	.explain = attached_explain,
	.close = exec_close,
};

int sba_channel_link_attach(struct sba_engine *e, const char *container, struct sba_until until,
			    struct sba_link **ret, struct sba_error *err)
{
	struct sba_exec *x;
	int rc = sba_exec_attach(e, container, until, &x, err);
	return rc < 0 ? rc : wrap_exec(x, &attached_ops, ret, err);
}

/* ---- a socket ---- */

struct socket_link {
	struct sba_link link;
	int fd;
	char data[READ_SIZE];
};

static ssize_t socket_read(struct sba_link *l, const char **data, struct sba_error *err)
{
	struct socket_link *f = (struct socket_link *)l;
	ssize_t n = recv(f->fd, f->data, sizeof(f->data), 0);
	*data = f->data;
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return SBA_ETIMEOUT;
	return sba_fail_errno(err, SBA_ELOST, errno, "reading from the guest");
}

static ssize_t socket_write(struct sba_link *l, const void *data, size_t len, struct sba_error *err)
{
	const struct socket_link *f = (struct socket_link *)l;
	ssize_t n = send(f->fd, data, len, MSG_NOSIGNAL);
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	/* As with an exec: reading tells of the end, and what came before it. */
	if (errno == EPIPE || errno == ECONNRESET)
		return (ssize_t)len;
	return sba_fail_errno(err, SBA_ELOST, errno, "writing to the guest");
}

static void socket_poll(const struct sba_link *l, bool pending, struct pollfd *ret)
{
	const struct socket_link *f = (const struct socket_link *)l;
	*ret = (struct pollfd){ f->fd, (short)(pending ? POLLIN | POLLOUT : POLLIN), 0 };
}

static void socket_shutdown(struct sba_link *l)
{
	shutdown(((struct socket_link *)l)->fd, SHUT_WR);
}

static int socket_explain(struct sba_link *l, const char *text, struct sba_error *err)
{
	(void)l;
	return sba_fail(err, SBA_ELOST, "no guest answers%s%.80s", *text ? ": " : "", text);
}

static void socket_close(struct sba_link *l)
{
	struct socket_link *f = (struct socket_link *)l;
	sba_cleanup_close(&f->fd);
	free(f);
}

static const struct sba_link_ops socket_ops = {
	.read = socket_read,
	.write = socket_write,
	.poll = socket_poll,
	.shutdown = socket_shutdown,
	.explain = socket_explain,
	.close = socket_close,
};

int sba_link_socket(int take_fd, struct sba_link **ret, struct sba_error *err)
{
	SBA_CLOSE int fd = take_fd;
	int rc = sba_set_nonblock(fd, true);
	if (rc < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "socket of the channel");
	struct socket_link *f = calloc(1, sizeof(*f));
	if (!f)
		return sba_fail_nomem(err);
	f->link.ops = &socket_ops;
	f->fd = sba_move_fd(&fd);
	*ret = &f->link;
	return 0;
}
