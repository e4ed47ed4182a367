/* SPDX-License-Identifier: MIT */
/*
 * A server that answers as a list says, byte for byte, whatever it is asked;
 * for tests of the HTTP client and of what stands on it. Include after
 * cmocka.h. Wrong answers are its purpose: nothing here is checked.
 */
#ifndef SBA_TEST_RAW_UPSTREAM_H
#define SBA_TEST_RAW_UPSTREAM_H

#include "support/http_client.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/un.h>

enum raw_end {
	RAW_KEEP,  /* wait for the next request on this connection */
	RAW_CLOSE, /* close at once */
	RAW_HOLD,  /* say nothing more until the other side closes */
};

struct raw_answer {
	const char *text;
	enum raw_end end;
};

enum { RAW_THREADS = 64 };

struct raw_upstream {
	const struct raw_answer *answers; /* request by request; the last one repeats */
	size_t n_answers;
	int listen_fd;
	uint16_t port;
	pthread_mutex_t lock;
	struct sba_buf seen; /* all that was received */
	size_t requests;
	unsigned connections;
	int held_fd;   /* an eventfd: a held answer was said */
	int closed_fd; /* an eventfd: the other side closed while held */
	pthread_t threads[RAW_THREADS];
	pthread_t acceptor;
	int stop_fd;
};

struct raw_connection {
	struct raw_upstream *u;
	int fd;
};

/* Waits for bytes or the end of the test; false at either end. */
static inline ssize_t raw_read(struct raw_upstream *u, int fd, char *buf, size_t size)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
			       { .fd = u->stop_fd, .events = POLLIN } };
	poll(p, 2, -1);
	return p[1].revents ? 0 : read(fd, buf, size);
}

/* One request: to the end of its head and as much body as it announces. */
static inline bool raw_take_request(struct raw_upstream *u, int fd)
{
	struct sba_buf b = SBA_BUF_INIT(128 << 20);
	size_t want = SIZE_MAX;
	char buf[65536];
	while (b.len < want) {
		ssize_t n = raw_read(u, fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		sba_buf_put(&b, buf, (size_t)n);
		const char *end = want == SIZE_MAX ? strstr(b.data, "\r\n\r\n") : NULL;
		const char *length = end ? strcasestr(b.data, "\r\nContent-Length: ") : NULL;
		if (end)
			want = (size_t)(end + 4 - b.data) +
			       (length && length < end ? strtoul(length + 18, NULL, 10) : 0);
	}
	bool whole = b.len >= want;
	pthread_mutex_lock(&u->lock);
	sba_buf_put(&u->seen, b.data ? b.data : "", b.len);
	u->requests += whole;
	pthread_mutex_unlock(&u->lock);
	sba_buf_fini(&b);
	return whole;
}

static inline void *raw_serve(void *arg)
{
	struct raw_connection c = *(struct raw_connection *)arg;
	const struct raw_answer *a = NULL;
	char buf[256];
	free(arg);
	do {
		if (!raw_take_request(c.u, c.fd))
			break;
		pthread_mutex_lock(&c.u->lock);
		size_t i = c.u->requests - 1;
		a = &c.u->answers[i < c.u->n_answers ? i : c.u->n_answers - 1];
		pthread_mutex_unlock(&c.u->lock);
		client_send(c.fd, a->text, strlen(a->text));
	} while (a->end == RAW_KEEP);
	if (a && a->end == RAW_HOLD) {
		eventfd_write(c.u->held_fd, 1);
		while (raw_read(c.u, c.fd, buf, sizeof(buf)) > 0)
			;
		eventfd_write(c.u->closed_fd, 1);
	}
	close(c.fd);
	return NULL;
}

static inline void *raw_accept(void *arg)
{
	struct raw_upstream *u = arg;
	struct pollfd p[2] = { { .fd = u->listen_fd, .events = POLLIN },
			       { .fd = u->stop_fd, .events = POLLIN } };
	while (poll(p, 2, -1) > 0 && !p[1].revents && u->connections < RAW_THREADS) {
		struct raw_connection *c = calloc(1, sizeof(*c));
		*c = (struct raw_connection){ u, accept(u->listen_fd, NULL, NULL) };
		pthread_create(&u->threads[u->connections++], NULL, raw_serve, c);
	}
	return NULL;
}

static inline void raw_listen(struct raw_upstream *u, const char *socket_path)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(in);
	u->listen_fd = socket(socket_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (socket_path) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", socket_path);
		assert_int_equal(bind(u->listen_fd, (struct sockaddr *)&un, sizeof(un)), 0);
	} else {
		assert_int_equal(bind(u->listen_fd, (struct sockaddr *)&in, len), 0);
		getsockname(u->listen_fd, (struct sockaddr *)&in, &len);
		u->port = ntohs(in.sin_port);
	}
	assert_int_equal(listen(u->listen_fd, 64), 0);
}

/* On loopback TCP, or on a unix socket if a path is given. */
static inline void raw_start(struct raw_upstream *u, const char *socket_path,
			     const struct raw_answer *answers, size_t n)
{
	*u = (struct raw_upstream){ .answers = answers, .n_answers = n };
	sba_buf_init(&u->seen, 256 << 20);
	pthread_mutex_init(&u->lock, NULL);
	u->held_fd = eventfd(0, EFD_CLOEXEC);
	u->closed_fd = eventfd(0, EFD_CLOEXEC);
	u->stop_fd = eventfd(0, EFD_CLOEXEC);
	raw_listen(u, socket_path);
	pthread_create(&u->acceptor, NULL, raw_accept, u);
}

/* Ends its threads; what was seen stays until raw_fini. */
static inline void raw_stop(struct raw_upstream *u)
{
	eventfd_write(u->stop_fd, 1);
	pthread_join(u->acceptor, NULL);
	for (unsigned i = 0; i < u->connections; i++)
		pthread_join(u->threads[i], NULL);
	close(u->listen_fd);
}

static inline void raw_fini(struct raw_upstream *u)
{
	sba_buf_fini(&u->seen);
	close(u->held_fd);
	close(u->closed_fd);
	close(u->stop_fd);
	pthread_mutex_destroy(&u->lock);
}

/* True once the eventfd was written to, at most ms from now. */
static inline bool raw_told(int fd, int64_t ms)
{
	return sba_wait_fd(fd, POLLIN, sba_until_in(ms), NULL) > 0;
}

#endif
