/* SPDX-License-Identifier: MIT */
/* The proxy: requests that are refused as such, and what is sent on of others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/proxy_world.h"

static void heads_that_two_readers_could_take_differently_are_refused(void **state)
{
#define GET "GET http://good.test:%p/ HTTP/1.1\r\n"
	static const struct {
		int status;
		const char *head;
	} bad[] = {
		{ 400, GET "Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length: 1, 1\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length: +1\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length: 0x1\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length:\r\n\r\n" },
		{ 400, GET "Host: x\r\nContent-Length: 99999999999999999999\r\n\r\n" },
		{ 400, GET "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" },
		{ 400, GET "Host: x\r\nTransfer-Encoding: xchunked\r\n\r\n" },
		{ 400, GET "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
			   "identity\r\n\r\n" },
		{ 400, GET "Host: x\r\nA: b\r\n c\r\n\r\n" },
		{ 400, GET " A: b\r\nHost: x\r\n\r\n" },
		{ 400, GET "Host: x\r\nA : b\r\n\r\n" },
		{ 400, GET "Host: x\r\n: b\r\n\r\n" },
		{ 400, GET "Host: x\r\nA\r\n\r\n" },
		{ 400, GET "Host: x\nA: b\r\n\r\n" },
		{ 400, GET "Host: x\r\n\n" },
		{ 400, GET "Host: x\r\nA: b\rc\r\n\r\n" },
		{ 400, GET "Host: x\r\nA: b\r\r\n\r\n" },
		{ 400, GET "Host: x\r\nA: \x01\r\n\r\n" },
		{ 400, GET "Host: x\r\nHost: y\r\n\r\n" },
		{ 400, GET "\r\n" },
		{ 400, "GET http://good.test:%p/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" },
		{ 400, "GET  http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET http://good.test:%p/ a HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET http://good.test:%p/ http/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET http://good.test:%p/\r\n\r\n" },
		{ 400, "G(T http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n" },
		{ 400, "OPTIONS * HTTP/1.1\r\nHost: good.test\r\n\r\n" },
		{ 400, "GET https://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n" },
		{ 400, "GET ftp://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n" },
		{ 400, "GET http:///a HTTP/1.1\r\nHost: good.test\r\n\r\n" },
		{ 400, "GET http://good.test:%p/#a HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET http://a@good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "GET http://good.test\\@evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT good.test HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT good.test: HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT good.test:0 HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT http://good.test:%p HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 400, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n" },
		{ 400, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n" },
		{ 400, "\r\n" GET "Host: x\r\n\r\n" },
		{ 400, "\x16\x03\x01" },
		{ 405, "TRACE http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n" },
		{ 505, "GET http://good.test:%p/ HTTP/2.0\r\nHost: x\r\n\r\n" },
	};
	struct world *w = *state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_answer(w, bad[i].head, bad[i].status, "bad request");
	assert_int_equal(atomic_load(&w->lookups), 0);
#undef GET
}

static void a_nul_in_a_head_is_refused(void **state)
{
	static const char head[] = "GET http://good.test/ HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n";
	struct world *w = *state;
	int fd = client_connect(sba_proxy_port(w->proxy));
	client_send(fd, head, sizeof(head) - 1);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 400);
	reply_fini(&r);
}

static void heads_without_measure_are_refused(void **state)
{
	struct world *w = *state;
	struct sba_buf b = SBA_BUF_INIT(65536);
	sba_buf_puts(&b, "GET http://good.test/ HTTP/1.1\r\nHost: x\r\n");
	for (int i = 0; i < 64; i++)
		sba_buf_printf(&b, "X-%d: y\r\n", i);
	sba_buf_puts(&b, "\r\n");
	assert_answer(w, b.data, 431, "more than 64");
	sba_buf_reset(&b);
	sba_buf_puts(&b, "GET http://good.test/");
	while (b.len < SBA_PROXY_HEAD_MAX)
		sba_buf_puts(&b, "aaaaaaaaaaaaaaaa");
	assert_answer(w, b.data, 431, "16 KiB");
	sba_buf_fini(&b);
}

static void what_was_not_understood_is_recorded_visibly(void **state)
{
	struct world *w = *state;
	assert_answer(w,
		      "CONNECT a\xC2\x9B"
		      "b\xFF HTTP/1.1\r\nHost: x\r\n\r\n",
		      400, NULL);
	struct seen e = world_seen(w, 0);
	assert_string_equal(e.host, "a\\x9bb\\xff");
	assert_false(e.allowed);
	assert_true(sba_starts_with(e.why, "bad request"));
}

static void a_request_is_written_anew_for_its_server(void **state)
{
	struct world *w = *state;
	char want[512];
	int fd = ask(w, "GET HTTP://Good.Test.:%p/a?b=http://c/ HTTP/1.1\r\n"
			"Host: other.example\r\nX-One:  1 \r\nProxy-Connection: keep-alive\r\n"
			"Proxy-Authorization: Basic eA==\r\nConnection: close, x-two\r\n"
			"X-Two: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
			"Trailer: x\r\nAuthorization: Bearer y\r\nAccept:\r\n\r\n"
			"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
	int server = server_accept(w);
	snprintf(want, sizeof(want),
		 "GET /a?b=http://c/ HTTP/1.1\r\nHost: good.test:%u\r\nX-One: 1\r\n"
		 "Authorization: Bearer y\r\nAccept: \r\nConnection: close\r\n\r\n",
		 w->port);
	expect(server, want);
	say(server, "HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody");
	shutdown(server, SHUT_WR);
	expect(fd, "HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody");
	expect_end(fd);
	close(fd);
	expect_end(server);
	close(server);
	struct seen e = world_seen(w, 0);
	assert_true(e.allowed);
	assert_string_equal(e.why, "");
	assert_int_equal(e.sent, strlen(want));
	assert_int_equal(e.received, strlen("HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody"));
}

static void targets_without_a_path_get_one(void **state)
{
	static const char *const cases[][2] = {
		{ "GET http://good.test:%p HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\n" },
		{ "GET http://good.test:%p?a HTTP/1.0\r\n\r\n", "GET /?a HTTP/1.0\r\n" },
		{ "OPTIONS http://good.test:%p HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.0\r\n" },
	};
	struct world *w = *state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		int fd = ask(w, cases[i][0]);
		int server = server_accept(w);
		expect(server, cases[i][1]);
		close(server);
		close(fd);
	}
}

/* Sends a POST with this framing and body, compares what the server gets after
 * the fixed part of the head. */
static void assert_body(struct world *w, const char *framing, const char *body, const char *want)
{
	char request[1024], head[256];
	snprintf(request, sizeof(request),
		 "POST http://good.test:%%p/ HTTP/1.1\r\nHost: x\r\n%s\r\n", framing);
	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: good.test:%u\r\n", w->port);
	int fd = ask(w, request);
	int server = server_accept(w);
	for (; *body; body++)
		client_send(fd, body, 1);
	expect(server, head);
	expect(server, want);
	say(server, "HTTP/1.1 200 OK\r\n\r\n");
	close(server);
	expect(fd, "HTTP/1.1 200 OK\r\n\r\n");
	expect_end(fd);
	close(fd);
}

static void bodies_are_passed_by_length_and_no_byte_more(void **state)
{
	struct world *w = *state;
	assert_body(w, "Content-Length: 5\r\n", "helloGET / HTTP/1.1\r\n\r\n",
		    "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
	assert_body(w, "Content-Length: 0\r\n", "",
		    "Content-Length: 0\r\nConnection: close\r\n\r\n");
	assert_body(w, "", "GET / HTTP/1.1\r\n\r\n", "Connection: close\r\n\r\n");
	assert_int_equal(world_seen(w, 0).sent,
			 world_seen(w, 1).sent + 5); /* what was behind the body stayed here */
}

static void chunks_are_written_anew_without_trailers(void **state)
{
	struct world *w = *state;
	int fd = ask(w, "POST http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n"
			"Transfer-Encoding: Chunked\r\n\r\n"
			"0000A\r\n0123456789\r\n1\r\nx\r\n0\r\nX-Trailer: a\r\n\r\nGET /");
	int server = server_accept(w);
	char head[256];
	snprintf(head, sizeof(head),
		 "POST / HTTP/1.1\r\nHost: good.test:%u\r\nTransfer-Encoding: chunked\r\n"
		 "Connection: close\r\n\r\n"
		 "a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n",
		 w->port);
	expect(server, head);
	say(server, "HTTP/1.1 204 No Content\r\n\r\n");
	close(server);
	expect(fd, "HTTP/1.1 204 No Content\r\n\r\n");
	expect_end(fd);
	close(fd);
	assert_int_equal(world_seen(w, 0).sent, strlen(head));
	assert_body(w, "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n",
		    "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
		    "1\r\na\r\n0\r\n\r\n");
}

static void chunks_that_are_not_well_formed_are_refused(void **state)
{
	static const char *const bad[] = {
		"1;a=b\r\nx\r\n0\r\n\r\n",
		"1 \r\nx\r\n0\r\n\r\n",
		"\r\nx",
		"-1\r\nx\r\n",
		"0x1\r\nx\r\n",
		"1\nx\n0\n\n",
		"1\r\nxy\r\n",
		"1\r\nx\n0\r\n\r\n",
		"1\r\nx\rx",
		"1000000000000000\r\n",
		"0\r\n folded\r\n\r\n",
		"0\r\nA: b\n\r\n",
		"0\r\nA: \x01\r\n\r\n",
		"0\r\n\rx",
		"g\r\n",
	};
	struct world *w = *state;
	char request[256];
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		snprintf(request, sizeof(request),
			 "POST http://good.test:%%p/ HTTP/1.1\r\nHost: x\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n%s",
			 bad[i]);
		assert_answer(w, request, 400, "bad request");
		close(server_accept(w));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(heads_that_two_readers_could_take_differently_are_refused),
		IN_WORLD(a_nul_in_a_head_is_refused),
		IN_WORLD(heads_without_measure_are_refused),
		IN_WORLD(what_was_not_understood_is_recorded_visibly),
		IN_WORLD(a_request_is_written_anew_for_its_server),
		IN_WORLD(targets_without_a_path_get_one),
		IN_WORLD(bodies_are_passed_by_length_and_no_byte_more),
		IN_WORLD(chunks_are_written_anew_without_trailers),
		IN_WORLD(chunks_that_are_not_well_formed_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
