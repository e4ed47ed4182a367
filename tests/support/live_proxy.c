/* SPDX-License-Identifier: MIT */
/* Stands between a client and the engine's socket, until it is cut; see live.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PROXY_PAIRS_MAX = 64 };

struct pair {
	int fd[2];
	bool ended[2]; /* its reading side has come to an end */
};

/* One thread owns everything but `stop`, a pipe's writing end. */
struct live_proxy {
	char host[160];
	int listener, stop[2];
	pthread_t thread;
	struct pair pairs[PROXY_PAIRS_MAX];
	size_t n;
	bool running;
};

/* Of an engine that is reached otherwise, SANDBOX_AGENT_TEST_SOCKET names the socket. */
static int connect_engine(void)
{
	const struct sba_engine_info *info;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("SANDBOX_AGENT_TEST_SOCKET");
	if (!path && sba_engine_info(live.engine, &info, NULL) == 0 &&
	    sba_starts_with(info->host, "unix://"))
		path = info->host + strlen("unix://");
	if (!path)
		return -1;
	snprintf(to.sun_path, sizeof(to.sun_path), "%.100s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void add_pair(struct live_proxy *p)
{
	int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	int engine = client < 0 || p->n == PROXY_PAIRS_MAX ? -1 : connect_engine();
	if (engine < 0) {
		close(client);
		return;
	}
	p->pairs[p->n++] = (struct pair){ .fd = { client, engine } };
}

static void forward(struct pair *c, int from)
{
	char piece[65536];
	ssize_t n = read(c->fd[from], piece, sizeof(piece));
	if (n > 0 && sba_write_all(c->fd[!from], piece, (size_t)n, NULL) == 0)
		return;
	c->ended[from] = true;
	shutdown(c->fd[!from], SHUT_WR);
}

static void *serve(void *user)
{
	struct live_proxy *p = user;
	for (;;) {
		struct pollfd fds[2 + 2 * PROXY_PAIRS_MAX] = {
			{ .fd = p->listener, .events = POLLIN },
			{ .fd = p->stop[0], .events = POLLIN },
		};
		size_t n = p->n;
		for (size_t i = 0; i < 2 * n; i++) {
			const struct pair *c = &p->pairs[i / 2];
			fds[2 + i].fd = c->ended[i % 2] ? -1 : c->fd[i % 2];
			fds[2 + i].events = POLLIN;
		}
		if (poll(fds, 2 + 2 * n, -1) < 0)
			continue;
		if (fds[1].revents)
			break;
		for (size_t i = 0; i < 2 * n; i++) {
			if (fds[2 + i].revents)
				forward(&p->pairs[i / 2], (int)(i % 2));
		}
		if (fds[0].revents)
			add_pair(p);
	}
	close(p->listener);
	unlink(p->host + strlen("unix://"));
	for (size_t i = 0; i < p->n; i++) {
		close(p->pairs[i].fd[0]);
		close(p->pairs[i].fd[1]);
	}
	return NULL;
}

struct live_proxy *live_proxy_start(void)
{
	struct live_proxy *p = calloc(1, sizeof(*p));
	assert_non_null(p);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/engine.sock", live.dir);
	snprintf(p->host, sizeof(p->host), "unix://%s", at.sun_path);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(p->listener, 16), 0);
	assert_int_equal(pipe2(p->stop, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
	p->running = true;
	return p;
}

const char *live_proxy_host(const struct live_proxy *p)
{
	return p->host;
}

void live_proxy_cut(struct live_proxy *p)
{
	if (!p->running)
		return;
	p->running = false;
	close(p->stop[1]);
	pthread_join(p->thread, NULL);
	close(p->stop[0]);
}

void live_proxy_stop(struct live_proxy *p)
{
	live_proxy_cut(p);
	free(p);
}
