/* SPDX-License-Identifier: MIT */
/*
 * A channel over a command of the backend: our guest, placed as a file of the sandbox's
 * user, with the command's stdin and stdout as its own. For what no table has: ports, the way
 * to a model, terminals.
 */
#include "sandbox/carried.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "image/image.h"

enum { PIECE = 64 * SBA_KIB, ASK_MS = 30 * 1000, LOOK_MS = 1000 };

struct sba_carried {
	struct sba_process *process;
	int socket; /* non-blocking; the channel has the other end */
	int stop_fd;
	pthread_t thread;
	bool threaded;
	char in[PIECE]; /* from the channel, not yet taken by the command */
	size_t at, len;
};

/* ---- between the two ---- */

/* False: one of them has ended. */
static bool to_command(struct sba_carried *c)
{
	if (c->at == c->len) {
		ssize_t n = read(c->socket, c->in, sizeof(c->in));
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		c->at = 0;
		c->len = (size_t)n;
	}
	ssize_t n = sba_process_write(c->process, c->in + c->at, c->len - c->at, NULL);
	c->at += n > 0 ? (size_t)n : 0;
	return n >= 0;
}

static bool put(struct sba_carried *c, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->socket, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN &&
		    sba_wait_fd(c->socket, POLLOUT, (struct sba_until){ SBA_NEVER, c->stop_fd },
				NULL) > 0)
			n = 0;
		if (n < 0 && errno != EINTR)
			return false;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool to_channel(struct sba_carried *c)
{
	enum sba_output which;
	const char *data;
	ssize_t n;
	while ((n = sba_process_read(c->process, 0, &which, &data, NULL)) > 0) {
		if (which == SBA_STDOUT && !put(c, data, (size_t)n))
			return false;
	}
	return n == SBA_ETIMEOUT;
}

static void *carry(void *user)
{
	struct sba_carried *c = user;
	bool lives = true;
	while (lives) {
		bool full = c->at < c->len;
		struct pollfd p[] = {
			{ c->stop_fd, POLLIN, 0 },
			{ full ? -1 : c->socket, POLLIN, 0 },
			{ sba_process_fd(c->process), sba_process_events(c->process), 0 },
		};
		(void)poll(p, SBA_ARRAY_LEN(p), LOOK_MS);
		lives = !p[0].revents && to_channel(c) && to_command(c);
	}
	/* The channel sees its end at once. */
	shutdown(c->socket, SHUT_RDWR);
	return NULL;
}

void sba_carried_free(struct sba_carried *c)
{
	if (!c)
		return;
	sba_event_fire(c->stop_fd);
	if (c->threaded)
		pthread_join(c->thread, NULL);
	sba_process_free(c->process);
	sba_cleanup_close(&c->socket);
	sba_cleanup_close(&c->stop_fd);
	free(c);
}

/* ---- placing it ---- */

static int find_guest(struct sba_sandbox *s, struct sba_guest *ret, struct sba_error *err)
{
	static const char *const argv[] = { "uname", "-m", NULL };
	const struct sba_run_options o = { .argv = argv, .workdir = "/", .timeout_ms = ASK_MS };
	struct sba_run_result r = { 0 };
	int rc = sba_sandbox_run(s, &o, &r, err);
	if (rc < 0)
		return rc;
	const char *arch = sba_starts_with(r.out, "x86_64")    ? "amd64"
			   : sba_starts_with(r.out, "aarch64") ? "arm64"
							       : NULL;
	rc = arch ? sba_guest_find(arch, ret, err)
		  : sba_fail(err, SBA_EUNSUPPORTED, "there is no guest for its machine");
	sba_run_result_fini(&r);
	return rc;
}

/* Under the name of its content: what is there already is it, in a folder of the user's. */
static int place_guest(struct sba_sandbox *s, char *path, size_t size, struct sba_error *err)
{
	struct sba_guest guest = { 0 };
	struct sba_file_stat st;
	const char *root = NULL;
	char name[80];
	int rc = find_guest(s, &guest, err);
	if (rc == 0)
		rc = sba_sandbox_root(s, &root, err);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "/guest-%s", guest.hash);
	snprintf(path, size, "%s%s", root, name);
	if (sba_sandbox_stat(s, path, &st, NULL) == 0 && st.size == (int64_t)guest.len)
		return 0;
	return sba_sandbox_write_small(s, name, guest.data, guest.len, 0700, err);
}

/* ---- opening ---- */

static int start(struct sba_sandbox *s, struct sba_carried *c, int *ret_socket,
		 struct sba_error *err)
{
	char path[4096];
	int ends[2];
	int rc = place_guest(s, path, sizeof(path), err);
	const char *const argv[] = { path, "session", NULL };
	const struct sba_exec_options o = { .argv = argv, .has_stdin = true };
	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a socket for the guest");
	c->socket = ends[0];
	SBA_CLOSE int theirs = ends[1];
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->stop_fd < 0 || sba_set_nonblock(c->socket, true) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a socket for the guest");
	rc = sba_sandbox_exec(s, &o, &c->process, err);
	if (rc == 0)
		rc = sba_thread_start(&c->thread, carry, c, err);
	c->threaded = rc == 0;
	if (rc == 0)
		*ret_socket = sba_move_fd(&theirs);
	return rc;
}

int sba_carried_open(void *sandbox, struct sba_until until, struct sba_channel **ret,
		     struct sba_error *err)
{
	struct sba_sandbox *s = sandbox;
	int fd = -1;
	/* One at a time: the session sees to that. */
	sba_carried_free(sba_move(&s->carried));
	struct sba_carried *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->socket = c->stop_fd = -1;
	int rc = start(s, c, &fd, err);
	if (rc == 0)
		rc = sba_channel_open_socket(fd, until, NULL, ret, err);
	if (rc < 0) {
		sba_carried_free(c);
		return sba_wrap(err, rc, "sandbox '%s': a guest inside", s->info.name);
	}
	s->carried = c;
	return 0;
}
