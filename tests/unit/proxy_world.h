/* SPDX-License-Identifier: MIT */
/*
 * A proxy, a server on loopback that the test plays by hand, a resolver that says
 * what the test wants, and the record of events. Include after cmocka.h.
 */
#ifndef SBA_TEST_PROXY_WORLD_H
#define SBA_TEST_PROXY_WORLD_H

#include "support/http_client.h"
#include "proxy/private.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

enum { EVENTS_MAX = 512, TEST_SECONDS = 60 };

struct seen {
	char host[300];
	uint16_t port;
	bool allowed;
	char why[SBA_ERROR_TEXT_MAX];
	char reason[128], rule[300];
	uint64_t sent, received;
};

struct world {
	struct sba_proxy *proxy;
	int listener; /* the server's */
	uint16_t port;
	atomic_int lookups, lookups_done;
	int hang_fd; /* readable: look-ups of hang.test go on */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct seen events[EVENTS_MAX];
	size_t events_n;
	int fds; /* open before all */
};

static inline int count_fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void add_address(struct sba_addresses *to, const char *text, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		memcpy(&to->v[to->n++], &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		memcpy(&to->v[to->n++], &v6, sizeof(v6));
}

/* HOST.test by what the table says; at-ADDRESS.test (with '_' for ':') is that. */
static inline int resolve_by_table(struct world *w, const char *host, uint16_t port,
				   struct sba_addresses *ret, struct sba_error *err)
{
	int n = atomic_fetch_add(&w->lookups, 1);
	ret->n = 0;
	if (strcmp(host, "good.test") == 0) {
		add_address(ret, "127.0.0.1", port);
	} else if (strcmp(host, "mixed.test") == 0) {
		add_address(ret, "10.0.0.1", port);
		add_address(ret, "127.0.0.1", port);
	} else if (strcmp(host, "half-dead.test") == 0) {
		add_address(ret, "127.0.0.2", port);
		add_address(ret, "127.0.0.1", port);
	} else if (strcmp(host, "rebind.test") == 0) {
		add_address(ret, n == 0 ? "127.0.0.1" : "10.0.0.1", port);
	} else if (strcmp(host, "hang.test") == 0) {
		if (sba_wait_fd(w->hang_fd, POLLIN, sba_until_in(1000 * TEST_SECONDS), err) < 0)
			return SBA_ETIMEOUT;
	} else if (strncmp(host, "at-", 3) == 0) {
		char text[64];
		snprintf(text, sizeof(text), "%.*s", (int)(strlen(host) - strlen("at-.test")),
			 host + 3);
		for (char *c = text; *c; c++)
			*c = *c == '_' ? ':' : *c;
		add_address(ret, text, port);
	} else if (strcmp(host, "empty.test") != 0) {
		return sba_fail(err, SBA_ENOTFOUND, "no such name");
	}
	return 0;
}

static inline int fake_resolve(void *user, const char *host, uint16_t port,
			       struct sba_addresses *ret, struct sba_error *err)
{
	struct world *w = user;
	int rc = resolve_by_table(w, host, port, ret, err);
	atomic_fetch_add(&w->lookups_done, 1);
	return rc;
}

static inline void world_event(void *user, const struct sba_proxy_event *e)
{
	struct world *w = user;
	pthread_mutex_lock(&w->lock);
	assert_true(w->events_n < EVENTS_MAX);
	struct seen *s = &w->events[w->events_n++];
	snprintf(s->host, sizeof(s->host), "%s", e->host);
	snprintf(s->why, sizeof(s->why), "%s", e->why ? e->why : "");
	snprintf(s->reason, sizeof(s->reason), "%s", e->reason ? e->reason : "");
	snprintf(s->rule, sizeof(s->rule), "%s", e->rule ? e->rule : "");
	s->port = e->port;
	s->allowed = e->allowed;
	s->sent = e->sent;
	s->received = e->received;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
}

/* The n-th event, once it is there. */
static inline struct seen world_seen(struct world *w, size_t n)
{
	pthread_mutex_lock(&w->lock);
	while (w->events_n <= n)
		pthread_cond_wait(&w->more, &w->lock);
	struct seen s = w->events[n];
	pthread_mutex_unlock(&w->lock);
	return s;
}

static inline void world_listen(struct world *w)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(w->listener >= 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(w->listener, 256), 0);
	assert_int_equal(getsockname(w->listener, (struct sockaddr *)&a, &len), 0);
	w->port = ntohs(a.sin_port);
}

/* Rules: *.test, localhost by address, at the server's port. */
static inline struct world *world_open(struct sba_proxy_hooks hooks, unsigned max)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sba_error err;
	char names[64], address[64];
	assert_non_null(w);
	alarm(TEST_SECONDS);
	w->fds = count_fds();
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	w->hang_fd = eventfd(0, EFD_CLOEXEC);
	world_listen(w);
	snprintf(names, sizeof(names), "*.test:%u", w->port);
	snprintf(address, sizeof(address), "127.0.0.1:%u", w->port);
	const char *allow[] = { names, address, "*.test:80", "exact.example", NULL };
	struct sba_proxy_options o = {
		.allow = allow,
		.event = world_event,
		.user = w,
		.max_connections = max,
	};
	hooks.resolve = fake_resolve;
	hooks.resolve_user = w;
	if (sba_proxy_open_hooked(&o, &hooks, &w->proxy, &err) < 0)
		fail_msg("%s", err.text);
	return w;
}

static inline int setup(void **state)
{
	*state = world_open((struct sba_proxy_hooks){ 0 }, 0);
	return 0;
}

static inline int setup_impatient(void **state)
{
	struct sba_proxy_hooks hooks = { .head_ms = 300, .connect_ms = 300, .idle_ms = 300 };
	*state = world_open(hooks, 0);
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;
	sba_proxy_close(w->proxy);
	close(w->listener);
	close(w->hang_fd);
	/* A look-up that was left behind ends by itself. */
	int64_t limit = sba_now_ms() + 5000;
	while ((atomic_load(&w->lookups_done) < atomic_load(&w->lookups) ||
		count_fds() != w->fds) &&
	       sba_now_ms() < limit)
		sched_yield();
	assert_int_equal(count_fds(), w->fds);
	free(w);
	alarm(0);
	return 0;
}

/* Connects and sends; every %p of the text is the server's port. */
static inline int ask(struct world *w, const char *text)
{
	struct sba_buf b = SBA_BUF_INIT(1 << 20);
	int fd = client_connect(sba_proxy_port(w->proxy));
	for (const char *at; (at = strstr(text, "%p")); text = at + 2) {
		sba_buf_put(&b, text, (size_t)(at - text));
		sba_buf_printf(&b, "%u", w->port);
	}
	sba_buf_puts(&b, text);
	client_send(fd, b.data, b.len);
	sba_buf_fini(&b);
	return fd;
}

static inline int server_accept(struct world *w)
{
	int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline void say(int fd, const char *text)
{
	client_send(fd, text, strlen(text));
}

/* Reads exactly the text. */
static inline void expect(int fd, const char *text)
{
	char got[65536];
	size_t want = strlen(text), n = 0;
	assert_true(want < sizeof(got));
	while (n < want) {
		ssize_t r = read(fd, got + n, want - n);
		assert_true(r > 0);
		n += (size_t)r;
	}
	got[n] = '\0';
	assert_string_equal(got, text);
}

static inline void expect_end(int fd)
{
	char c;
	assert_int_equal(read(fd, &c, 1), 0);
}

static inline void expect_reset(int fd)
{
	char c;
	assert_int_equal(read(fd, &c, 1), -1);
	assert_int_equal(errno, ECONNRESET);
}

/* A tunnel to good.test; the server's end is in ret_server. */
static inline int tunnel(struct world *w, int *ret_server)
{
	int fd = ask(w, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\n\r\n");
	*ret_server = server_accept(w);
	expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
	return fd;
}

/* One whole answer to one request. */
static inline struct reply answer_to(struct world *w, const char *text)
{
	return client_read_reply(ask(w, text));
}

/* Asks and checks status and words of the answer's body. */
static inline void assert_answer(struct world *w, const char *request, int status,
				 const char *words)
{
	struct reply r = answer_to(w, request);
	if (r.status != status || (words && !strstr(r.body.data, words)))
		fail_msg("%s\n-> %s", request, r.raw.data ? r.raw.data : "nothing");
	reply_fini(&r);
}

#define IN_WORLD(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)
#define IMPATIENT(f) cmocka_unit_test_setup_teardown(f, setup_impatient, teardown)

#endif
