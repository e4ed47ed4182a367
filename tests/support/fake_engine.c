/* SPDX-License-Identifier: MIT */
/* The fake engine: one thread accepts, one per connection serves. */
#include "support/folder.h"
#include "support/fake_engine.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 512, MAX_SEEN = 64, SEEN_MAX = 64 * 1024 };

struct fake_engine {
	char dir[64], host[128], path[108];
	const char *api;
	const struct fake_exchange *x;
	size_t n;
	int listener, stop;
	pthread_t acceptor;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t next; /* exchange */
	size_t n_connections, n_closed, n_requests, swallowed;
	pthread_t threads[MAX_CONNECTIONS];
	char *seen[MAX_SEEN];
	char problem[256];
};

struct connection {
	struct fake_engine *f;
	int fd;
	char *in; /* one request */
	size_t len, cap;
	size_t head_len;
	bool too_long; /* further bytes are counted, not kept */
};

/* ---- bytes ---- */

/* > 0, 0 at the end or when the engine is being stopped. */
static ssize_t receive(struct connection *c, char *buf, size_t size)
{
	struct pollfd p[2] = { { c->fd, POLLIN, 0 }, { c->f->stop, POLLIN, 0 } };
	if (poll(p, 2, -1) < 0 || p[1].revents)
		return 0;
	ssize_t n = recv(c->fd, buf, size, 0);
	return n > 0 ? n : 0;
}

static bool send_all(struct connection *c, const char *data, size_t len)
{
	while (len > 0) {
		struct pollfd p[2] = { { c->fd, POLLOUT, 0 }, { c->f->stop, POLLIN, 0 } };
		if (poll(p, 2, -1) < 0 || p[1].revents)
			return false;
		ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* Until the other side has read everything, so that the next piece is seen
 * apart from it. */
static void drained(struct connection *c)
{
	struct pollfd p = { c->f->stop, POLLIN, 0 };
	int unread = 1;
	while (ioctl(c->fd, SIOCOUTQ, &unread) == 0 && unread > 0 && poll(&p, 1, 0) == 0)
		sched_yield();
}

static bool send_pieces(struct connection *c, const struct fake_exchange *x)
{
	size_t len = x->answer_len ? x->answer_len : x->answer ? strlen(x->answer) : 0;
	size_t piece = x->bytes ? 1 : x->first && x->first < len ? x->first : len;
	for (size_t at = 0; at < len; at += piece, piece = x->bytes ? 1 : len - at) {
		if (!send_all(c, x->answer + at, piece))
			return false;
		if (at + piece < len)
			drained(c);
	}
	return true;
}

/* ---- requests ---- */

static bool more(struct connection *c)
{
	if (c->len + 4096 + 1 > c->cap) {
		c->cap = c->cap ? 2 * c->cap : 8192;
		c->in = realloc(c->in, c->cap);
	}
	ssize_t n = receive(c, c->in + c->len, 4096);
	c->len += (size_t)n;
	c->in[c->len] = '\0';
	return n > 0;
}

static bool read_head(struct connection *c)
{
	c->len = 0;
	do {
		if (!more(c))
			return false;
	} while (!strstr(c->in, "\r\n\r\n"));
	c->head_len = (size_t)(strstr(c->in, "\r\n\r\n") - c->in) + 4;
	return true;
}

static bool ends_with(const struct connection *c, const char *tail)
{
	size_t n = strlen(tail);
	return c->len >= n && memcmp(c->in + c->len - n, tail, n) == 0;
}

static bool read_body(struct connection *c)
{
	const char *length = strcasestr(c->in, "\r\nContent-Length: ");
	bool chunked = strcasestr(c->in, "\r\nTransfer-Encoding: chunked") != NULL;
	if (strcasestr(c->in, "\r\nExpect: 100-continue"))
		send_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	size_t want = length ? c->head_len + strtoul(length + 18, NULL, 10) : c->head_len;
	while (chunked ? !ends_with(c, "0\r\n\r\n") || c->len == c->head_len : c->len < want) {
		if (!more(c))
			return false;
	}
	return true;
}

static const char *path_of(const struct connection *c)
{
	const char *path = strchr(c->in, ' ');
	path = path ? path + 1 : "";
	return strncmp(path, "/v", 2) == 0 && strchr(path + 1, '/') ? strchr(path + 1, '/') : path;
}

static bool matches(const struct connection *c, const struct fake_exchange *x)
{
	size_t m = x->method ? strlen(x->method) : 0;
	if (x->method && (strncmp(c->in, x->method, m) != 0 || c->in[m] != ' '))
		return false;
	if (x->path && strncmp(path_of(c), x->path, strlen(x->path)) != 0)
		return false;
	return !x->body ||
	       memmem(c->in + c->head_len, c->len - c->head_len, x->body, strlen(x->body));
}

/* The exchange for this request, by its head; NULL: close. */
static const struct fake_exchange *next_exchange(struct connection *c)
{
	struct fake_engine *f = c->f;
	pthread_mutex_lock(&f->lock);
	const struct fake_exchange *x = f->next < f->n ? &f->x[f->next] : NULL;
	if (x && !x->forever)
		f->next++;
	if (!x && !f->problem[0])
		snprintf(f->problem, sizeof(f->problem), "unexpected request: %.100s", c->in);
	pthread_mutex_unlock(&f->lock);
	return x;
}

static void record(struct connection *c, const struct fake_exchange *x)
{
	struct fake_engine *f = c->f;
	pthread_mutex_lock(&f->lock);
	if (f->n_requests < MAX_SEEN)
		f->seen[f->n_requests] = strndup(c->in, SEEN_MAX);
	f->n_requests++;
	if (!matches(c, x) && !f->problem[0])
		snprintf(f->problem, sizeof(f->problem), "expected %s %s %s, got %.150s",
			 x->method ? x->method : "", x->path ? x->path : "", x->body ? x->body : "",
			 c->in);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

/* ---- what follows an answer ---- */

static void swallowed(struct connection *c, size_t n)
{
	pthread_mutex_lock(&c->f->lock);
	c->f->swallowed += n;
	pthread_mutex_unlock(&c->f->lock);
}

static bool raw_stream(struct connection *c, const struct fake_exchange *x)
{
	enum { PIECE = 32768 };
	char *frame = calloc(1, 8 + PIECE);
	ssize_t n;
	frame[0] = 1;
	while ((n = receive(c, frame + 8, PIECE)) > 0) {
		swallowed(c, (size_t)n);
		frame[6] = (char)(n >> 8);
		frame[7] = (char)n;
		frame[5] = (char)(n >> 16);
		if (x->then == FAKE_ECHO && !send_all(c, frame, (size_t)n + 8))
			break;
	}
	free(frame);
	if (x->after)
		send_all(c, x->after, x->after_len ? x->after_len : strlen(x->after));
	return false;
}

/* True to go on with the connection. */
static bool follow(struct connection *c, const struct fake_exchange *x)
{
	struct pollfd p = { c->f->stop, POLLIN, 0 };
	switch (x->then) {
	case FAKE_KEEP:
		return true;
	case FAKE_SILENCE:
		poll(&p, 1, -1);
		return false;
	case FAKE_ECHO:
	case FAKE_SWALLOW:
		return raw_stream(c, x);
	default:
		return false;
	}
}

static bool serve_ping(struct connection *c)
{
	char answer[160];
	snprintf(answer, sizeof(answer),
		 "HTTP/1.1 200 OK\r\nApi-Version: %s\r\nContent-Length: 2\r\n\r\nOK", c->f->api);
	return send_all(c, answer, strlen(answer));
}

static bool ping_is_ours(struct connection *c)
{
	struct fake_engine *f = c->f;
	pthread_mutex_lock(&f->lock);
	const char *path = f->next < f->n ? f->x[f->next].path : NULL;
	pthread_mutex_unlock(&f->lock);
	return strcmp(path ? path : "", "/_ping") != 0 &&
	       strncmp(path_of(c), "/_ping ", strlen("/_ping ")) == 0;
}

static bool serve_one(struct connection *c)
{
	if (!read_head(c))
		return false;
	if (ping_is_ours(c))
		return serve_ping(c);
	const struct fake_exchange *x = next_exchange(c);
	if (!x || (!x->early && !read_body(c)))
		return false;
	record(c, x);
	return send_pieces(c, x) && follow(c, x);
}

static void *serve(void *arg)
{
	struct connection *c = arg;
	struct fake_engine *f = c->f;
	while (serve_one(c))
		;
	close(c->fd);
	free(c->in);
	free(c);
	pthread_mutex_lock(&f->lock);
	f->n_closed++;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct fake_engine *f = arg;
	for (;;) {
		struct pollfd p[2] = { { f->listener, POLLIN, 0 }, { f->stop, POLLIN, 0 } };
		if (poll(p, 2, -1) < 0 || p[1].revents)
			return NULL;
		int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || f->n_connections == MAX_CONNECTIONS)
			return NULL;
		struct connection *c = calloc(1, sizeof(*c));
		*c = (struct connection){ .f = f, .fd = fd };
		pthread_mutex_lock(&f->lock);
		pthread_create(&f->threads[f->n_connections++], NULL, serve, c);
		pthread_mutex_unlock(&f->lock);
	}
}

/* ---- the handle ---- */

struct fake_engine *fake_engine_start(const char *api, const struct fake_exchange *x, size_t n)
{
	struct fake_engine *f = calloc(1, sizeof(*f));
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	f->api = api;
	f->x = x;
	f->n = n;
	test_folder(f->dir, sizeof(f->dir), "fake-engine");
	snprintf(f->path, sizeof(f->path), "%s/engine.sock", f->dir);
	snprintf(f->host, sizeof(f->host), "unix://%s", f->path);
	memcpy(sa.sun_path, f->path, sizeof(sa.sun_path));
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(f->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_return_code(listen(f->listener, 16), 0);
	f->stop = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	assert_int_equal(pthread_create(&f->acceptor, NULL, accept_all, f), 0);
	return f;
}

const char *fake_engine_host(const struct fake_engine *f)
{
	return f->host;
}

char *fake_json(const char *body)
{
	size_t size = strlen(body) + 128;
	char *answer = malloc(size);
	snprintf(answer, size,
		 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
		 "%zu\r\n\r\n%s",
		 strlen(body), body);
	return answer;
}

static size_t get(struct fake_engine *f, const size_t *what)
{
	pthread_mutex_lock(&f->lock);
	size_t n = *what;
	pthread_mutex_unlock(&f->lock);
	return n;
}

static void await(struct fake_engine *f, const size_t *what, size_t n)
{
	pthread_mutex_lock(&f->lock);
	while (*what < n)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

size_t fake_engine_connections(struct fake_engine *f)
{
	return get(f, &f->n_connections);
}

size_t fake_engine_requests(struct fake_engine *f)
{
	return get(f, &f->n_requests);
}

size_t fake_engine_swallowed(struct fake_engine *f)
{
	return get(f, &f->swallowed);
}

void fake_engine_await_requests(struct fake_engine *f, size_t n)
{
	await(f, &f->n_requests, n);
}

void fake_engine_await_closed(struct fake_engine *f, size_t n)
{
	await(f, &f->n_closed, n);
}

const char *fake_engine_seen(struct fake_engine *f, size_t i)
{
	pthread_mutex_lock(&f->lock);
	const char *seen = i < MAX_SEEN && f->seen[i] ? f->seen[i] : "";
	pthread_mutex_unlock(&f->lock);
	return seen;
}

void fake_engine_stop(struct fake_engine *f)
{
	uint64_t one = 1;
	char problem[256];
	assert_int_equal(write(f->stop, &one, sizeof(one)), sizeof(one));
	pthread_join(f->acceptor, NULL);
	for (size_t i = 0; i < f->n_connections; i++)
		pthread_join(f->threads[i], NULL);
	for (size_t i = 0; i < MAX_SEEN; i++)
		free(f->seen[i]);
	close(f->listener);
	close(f->stop);
	test_folder_remove(f->dir);
	snprintf(problem, sizeof(problem), "%s", f->problem);
	free(f);
	assert_string_equal(problem, "");
}
