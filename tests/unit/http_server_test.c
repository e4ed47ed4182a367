/* SPDX-License-Identifier: MIT */
/* The HTTP server: bodies, limits, streams piece by piece, its end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/http_client.h"
#include "base/limits.h"
#include "http/http.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

enum { PIECES = 41 };

/* What the handler below keeps of a server's life. */
struct world {
	struct sba_http_server *server;
	atomic_int freed;
	int freed_fd; /* an eventfd: the same */
};

struct flow {
	struct world *world;
	int said;
};

static void flow_free(void *user)
{
	struct flow *f = user;
	atomic_fetch_add(&f->world->freed, 1);
	eventfd_write(f->world->freed_fd, 1);
	free(f);
}

/* Pieces, 3 ms apart, that tell when they were made. */
static ssize_t timed_pieces(void *user, char *buf, size_t size, int stop_fd)
{
	struct flow *f = user;
	struct sba_until u = { SBA_NEVER, stop_fd };
	struct timespec t;
	if (f->said == PIECES)
		return 0;
	if (f->said++ && sba_wait_fd(-1, 0, sba_until_sooner(u, 3), NULL) != SBA_ETIMEOUT)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return snprintf(buf, size, "[%lld]", (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

static ssize_t one_piece_then_break(void *user, char *buf, size_t size, int stop_fd)
{
	struct flow *f = user;
	(void)stop_fd;
	return f->said++ ? -1 : snprintf(buf, size, "half");
}

static ssize_t one_piece_then_silence(void *user, char *buf, size_t size, int stop_fd)
{
	struct flow *f = user;
	if (!f->said++)
		return snprintf(buf, size, "begun");
	return sba_wait_fd(-1, 0, (struct sba_until){ SBA_NEVER, stop_fd }, NULL);
}

static ssize_t endless(void *user, char *buf, size_t size, int stop_fd)
{
	(void)user;
	if (sba_until_check((struct sba_until){ SBA_NEVER, stop_fd }, NULL) < 0)
		return -1;
	memset(buf, 'x', size);
	return (ssize_t)size;
}

static const struct {
	const char *path;
	sba_http_stream_fn *stream;
} streams[] = {
	{ "/timed", timed_pieces },
	{ "/break", one_piece_then_break },
	{ "/silence", one_piece_then_silence },
	{ "/endless", endless },
};

static void on_request(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(streams); i++) {
		if (strcmp(streams[i].path, r->path) != 0)
			continue;
		struct flow *f = calloc(1, sizeof(*f));
		f->world = user;
		a->stream = streams[i].stream;
		a->stream_user = f;
		a->stream_free = flow_free;
		return;
	}
	const char *tag = sba_http_request_header(r, "x-tag");
	a->hang_up = !strcmp(r->path, "/hang-up");
	a->status = 202;
	a->content_type = "text/plain";
	assert_int_equal(sba_strv_add(&a->headers, "X-Answer: yes", NULL), 0);
	sba_buf_init(&a->body, SBA_MIB);
	sba_buf_printf(&a->body, "%s %s %s %zu:%s", r->method, r->path, tag ? tag : "-",
		       r->body_len, r->body);
}

/* Against all that is under /judged, and whatever is irregular. */
static bool judge(void *user, const struct sba_http_request *head, struct sba_http_answer *a)
{
	(void)user;
	assert_int_equal(head->body_len, 0);
	assert_int_equal(head->stop_fd, -1);
	if (!head->irregular && !sba_starts_with(head->target, "/judged"))
		return false;
	a->status = head->irregular ? 400 : 403;
	sba_buf_init(&a->body, SBA_MIB);
	sba_buf_puts(&a->body, head->irregular ? head->irregular : head->target);
	return true;
}

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sba_error err;
	alarm(30);
	w->freed_fd = eventfd(0, EFD_CLOEXEC);
	if (sba_http_server_open(&(struct sba_http_server_options){ .judge = judge,
								    .handler = on_request,
								    .user = w },
				 &w->server, &err) < 0)
		return -1;
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;
	sba_http_server_close(w->server);
	close(w->freed_fd);
	free(w);
	return 0;
}

static uint16_t port_of(void **state)
{
	return sba_http_server_port(((struct world *)*state)->server);
}

static void handler_sees_method_path_headers_and_body(void **state)
{
	struct reply r =
		client_call(port_of(state), "POST /a%20b?c=d", "X-TAG: t\r\n", "some body");
	assert_int_equal(r.status, 202);
	assert_true(r.whole);
	assert_string_equal(r.body.data, "POST /a b t 9:some body");
	assert_non_null(strstr(r.raw.data, "\r\nX-Answer: yes\r\n"));
	assert_non_null(strstr(r.raw.data, "\r\nContent-Type: text/plain\r\n"));
	reply_fini(&r);
}

static void one_connection_serves_many_requests(void **state)
{
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	int fd = client_connect(port_of(state));
	for (int i = 0; i < 3; i++) {
		sba_buf_reset(&r.raw);
		client_request(fd, "POST /again", "", "x");
		while (!r.raw.data || !strstr(r.raw.data, "POST /again - 1:x"))
			assert_true(client_read_some(fd, &r));
	}
	close(fd);
	reply_fini(&r);
}

static void declared_body_over_the_limit_is_refused_before_it_is_sent(void **state)
{
	char headers[96];
	snprintf(headers, sizeof(headers), "Content-Length: %lld\r\n",
		 (long long)SBA_HTTP_REQUEST_MAX + 1);
	struct reply r = client_call(port_of(state), "POST /big", headers, NULL);
	assert_int_equal(r.status, 413);
	reply_fini(&r);
}

static void chunked_body_over_the_limit_is_refused(void **state)
{
	static char chunk[SBA_MIB + 32];
	int fd = client_connect(port_of(state));
	int head = snprintf(chunk, sizeof(chunk), "%x\r\n", SBA_MIB);
	memset(chunk + head, 'x', SBA_MIB);
	memcpy(chunk + head + SBA_MIB, "\r\n", 2);
	client_request(fd, "POST /big", "Connection: close\r\nTransfer-Encoding: chunked\r\n",
		       NULL);
	for (int i = 0; i <= SBA_HTTP_REQUEST_MAX / SBA_MIB; i++)
		client_send(fd, chunk, (size_t)head + SBA_MIB + 2);
	client_send(fd, "0\r\n\r\n", 5);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 413);
	reply_fini(&r);
}

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;
	return (x > y) - (x < y);
}

/* The median, since a loaded machine delays some: corking would delay all. */
static void stream_reaches_the_client_piece_by_piece(void **state)
{
	long long lag[PIECES];
	int seen = 0;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	int fd = client_connect(port_of(state));
	client_request(fd, "GET /timed", "Connection: close\r\n", NULL);
	size_t parsed = 0;
	while (client_read_some(fd, &r)) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		const char *piece;
		while ((piece = strchr(r.raw.data + parsed, '[')) && strchr(piece, ']')) {
			assert_true(seen < PIECES);
			lag[seen++] = (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000 -
				      strtoll(piece + 1, NULL, 10);
			parsed = (size_t)(strchr(piece, ']') - r.raw.data);
		}
	}
	close(fd);
	assert_int_equal(seen, PIECES);
	qsort(lag, PIECES, sizeof(lag[0]), compare);
	assert_in_range(lag[PIECES / 2], 0, 5000);
	reply_parse(&r);
	assert_true(r.whole);
	reply_fini(&r);
}

static void broken_off_stream_is_seen_as_cut(void **state)
{
	struct reply r = client_call(port_of(state), "GET /break", "", NULL);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body.data, "half");
	assert_false(r.whole);
	reply_fini(&r);
}

static void hang_up_gives_no_answer(void **state)
{
	struct reply r = client_call(port_of(state), "GET /hang-up", "", NULL);
	assert_int_equal(r.status, 0);
	reply_fini(&r);
}

static void client_that_leaves_harms_nobody(void **state)
{
	struct world *w = *state;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	int fd = client_connect(port_of(state));
	client_request(fd, "GET /endless", "", NULL);
	assert_true(client_read_some(fd, &r));
	close(fd);
	reply_fini(&r);
	r = client_call(port_of(state), "GET /still-here", "", NULL);
	assert_int_equal(r.status, 202);
	reply_fini(&r);
	sba_http_server_close(w->server);
	w->server = NULL;
	assert_int_equal(atomic_load(&w->freed), 1);
}

static void close_ends_waiting_streams_and_idle_connections_at_once(void **state)
{
	struct world *w = *state;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB), .body = SBA_BUF_INIT(SBA_MIB) };
	int idle = client_connect(port_of(state));
	int fd = client_connect(port_of(state));
	client_request(fd, "GET /silence", "Connection: close\r\n", NULL);
	while (!r.raw.data || !strstr(r.raw.data, "begun"))
		assert_true(client_read_some(fd, &r));
	int64_t start = sba_now_ms();
	sba_http_server_close(w->server);
	w->server = NULL;
	assert_in_range(sba_now_ms() - start, 0, 2000);
	assert_int_equal(atomic_load(&w->freed), 1);
	while (client_read_some(fd, &r))
		;
	reply_parse(&r);
	assert_false(r.whole);
	reply_fini(&r);
	close(fd);
	close(idle);
}

static void stream_that_waits_learns_that_its_client_has_gone(void **state)
{
	struct world *w = *state;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	int fd = client_connect(port_of(state));
	client_request(fd, "GET /silence", "", NULL);
	while (!r.raw.data || !strstr(r.raw.data, "begun"))
		assert_true(client_read_some(fd, &r));
	close(fd);
	reply_fini(&r);
	assert_true(sba_wait_fd(w->freed_fd, POLLIN, sba_until_in(1000), NULL) > 0);
}

static void judged_request_loses_its_body_and_its_connection_goes_on(void **state)
{
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB), .body = SBA_BUF_INIT(SBA_MIB) };
	int fd = client_connect(port_of(state));
	client_request(fd, "POST /judged/%41?q=%42", "", "GET /smuggled HTTP/1.1\r\n\r\n");
	client_request(fd, "POST /next", "Connection: close\r\n", "body");
	while (client_read_some(fd, &r))
		;
	close(fd);
	assert_true(sba_starts_with(r.raw.data, "HTTP/1.1 403"));
	assert_non_null(strstr(r.raw.data, "/judged/%41?q=%42"));
	assert_true(sba_ends_with(r.raw.data, "POST /next - 4:body"));
	assert_null(strstr(r.raw.data, "smuggled"));
	reply_fini(&r);
}

static void irregular_head_is_told_to_the_judge_and_ends_the_connection(void **state)
{
	struct reply r = client_call(port_of(state), "POST /x",
				     "X-A: 1\nX-B: 2\r\nContent-Length: 4\r\n", NULL);
	assert_int_equal(r.status, 400);
	assert_non_null(strstr(r.body.data, "CRLF"));
	reply_fini(&r);
}

static void port_that_is_taken_is_told(void **state)
{
	struct sba_error err = { 0 };
	struct sba_http_server *s = NULL;
	const struct sba_http_server_options o = { .port = port_of(state), .handler = on_request };
	assert_int_equal(sba_http_server_open(&o, &s, &err), SBA_EIO);
	assert_non_null(strstr(err.text, "listen on 127.0.0.1:"));
	assert_non_null(strstr(err.text, "in use"));
	assert_null(s);
}

static void address_that_is_none_is_told(void **state)
{
	struct sba_error err = { 0 };
	struct sba_http_server *s = NULL;
	(void)state;
	const struct sba_http_server_options o = { .address = "localhost", .handler = on_request };
	assert_int_equal(sba_http_server_open(&o, &s, &err), SBA_EINVAL);
	assert_non_null(strstr(err.text, "'localhost'"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(handler_sees_method_path_headers_and_body),
		TEST(one_connection_serves_many_requests),
		TEST(declared_body_over_the_limit_is_refused_before_it_is_sent),
		TEST(chunked_body_over_the_limit_is_refused),
		TEST(stream_reaches_the_client_piece_by_piece),
		TEST(broken_off_stream_is_seen_as_cut),
		TEST(hang_up_gives_no_answer),
		TEST(client_that_leaves_harms_nobody),
		TEST(close_ends_waiting_streams_and_idle_connections_at_once),
		TEST(stream_that_waits_learns_that_its_client_has_gone),
		TEST(judged_request_loses_its_body_and_its_connection_goes_on),
		TEST(irregular_head_is_told_to_the_judge_and_ends_the_connection),
		TEST(port_that_is_taken_is_told),
		TEST(address_that_is_none_is_told),
	};
	return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
