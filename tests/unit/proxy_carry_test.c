/* SPDX-License-Identifier: MIT */
/* The proxy under way: bytes both ways, many connections, how they end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/proxy_world.h"

enum { PARALLEL = 200, BIG = 64 << 20 };

static void each_half_of_a_tunnel_ends_by_itself(void **state)
{
	struct world *w = *state;
	int server, fd = tunnel(w, &server);
	say(fd, "question");
	shutdown(fd, SHUT_WR);
	expect(server, "question");
	expect_end(server);
	say(server, "answer");
	say(server, ", later");
	expect(fd, "answer, later");
	close(server);
	expect_end(fd);
	close(fd);
	struct seen e = world_seen(w, 0);
	assert_string_equal(e.host, "good.test");
	assert_int_equal(e.port, w->port);
	assert_true(e.allowed);
	assert_string_equal(e.why, "");
	assert_int_equal(e.sent, strlen("question"));
	assert_int_equal(e.received, strlen("answer, later"));
}

static void the_server_may_end_first(void **state)
{
	struct world *w = *state;
	int server, fd = tunnel(w, &server);
	say(server, "greeting");
	shutdown(server, SHUT_WR);
	expect(fd, "greeting");
	expect_end(fd);
	say(fd, "still listening?");
	shutdown(fd, SHUT_WR);
	expect(server, "still listening?");
	expect_end(server);
	close(server);
	close(fd);
	assert_string_equal(world_seen(w, 0).why, "");
}

static void bytes_sent_with_the_head_are_the_tunnels_first(void **state)
{
	struct world *w = *state;
	int fd = ask(w, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\n\r\nearly\r\n\n");
	int server = server_accept(w);
	expect(server, "early\r\n\n");
	say(fd, "late");
	expect(server, "late");
	close(fd);
	close(server);
}

/* Sends and reads at once so that neither side waits for the other; every byte
 * tells its place. */
struct flood {
	int fd;
	unsigned char salt;
	size_t sent, got;
	bool wrong;
};

static unsigned char byte_at(size_t i, unsigned char salt)
{
	return (unsigned char)((i * 31 + (i >> 8) * 7 + (i >> 16)) ^ salt);
}

static void flood_send(struct flood *f)
{
	unsigned char b[32768];
	size_t n = BIG - f->sent < sizeof(b) ? BIG - f->sent : sizeof(b);
	for (size_t i = 0; i < n; i++)
		b[i] = byte_at(f->sent + i, f->salt);
	ssize_t sent = send(f->fd, b, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent > 0)
		f->sent += (size_t)sent;
	if (f->sent == BIG)
		shutdown(f->fd, SHUT_WR);
}

static bool flood_read(struct flood *f, unsigned char salt)
{
	unsigned char b[65536];
	ssize_t n = recv(f->fd, b, sizeof(b), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return true;
	for (ssize_t i = 0; i < n; i++)
		f->wrong |= b[i] != byte_at(f->got + (size_t)i, salt);
	f->got += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Who has read the other's end may still have bytes to send. */
static struct pollfd flood_wish(const struct flood *f, bool open)
{
	short events = (short)((open ? POLLIN : 0) | (f->sent < BIG ? POLLOUT : 0));
	return (struct pollfd){ events ? f->fd : -1, events, 0 };
}

static void a_big_transfer_both_ways_arrives_whole(void **state)
{
	struct world *w = *state;
	struct flood a = { .salt = 1 }, b = { .salt = 2 };
	a.fd = tunnel(w, &b.fd);
	bool a_open = true, b_open = true;
	while (a_open || b_open) {
		struct pollfd p[2] = { flood_wish(&a, a_open), flood_wish(&b, b_open) };
		assert_true(poll(p, 2, -1) > 0);
		if (p[0].revents & POLLOUT)
			flood_send(&a);
		if (p[1].revents & POLLOUT)
			flood_send(&b);
		if (a_open && p[0].revents & (POLLIN | POLLHUP))
			a_open = flood_read(&a, b.salt);
		if (b_open && p[1].revents & (POLLIN | POLLHUP))
			b_open = flood_read(&b, a.salt);
	}
	assert_int_equal(a.got, BIG);
	assert_int_equal(b.got, BIG);
	assert_false(a.wrong || b.wrong);
	close(a.fd);
	close(b.fd);
	struct seen e = world_seen(w, 0);
	assert_int_equal(e.sent, BIG);
	assert_int_equal(e.received, BIG);
}

static void a_side_that_does_not_read_holds_the_other_back(void **state)
{
	struct world *w = *state;
	int server, fd = tunnel(w, &server);
	static const char piece[65536];
	size_t sent = 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	while (poll(&p, 1, 200) > 0) {
		ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		assert_true(sent < (size_t)64 << 20);
	}
	shutdown(fd, SHUT_WR);
	size_t got = 0;
	char b[65536];
	for (ssize_t n; (n = read(server, b, sizeof(b))) > 0;)
		got += (size_t)n;
	assert_int_equal(got, sent);
	close(server);
	close(fd);
}

static void many_connections_live_side_by_side(void **state)
{
	struct world *w = *state;
	static int fds[PARALLEL], servers[PARALLEL];
	char text[32];
	for (int i = 0; i < PARALLEL; i++)
		fds[i] = ask(w, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < PARALLEL; i++)
		servers[i] = server_accept(w);
	for (int i = 0; i < PARALLEL; i++) {
		expect(fds[i], "HTTP/1.1 200 Connection established\r\n\r\n");
		snprintf(text, sizeof(text), "I am number %03d", i);
		say(fds[i], text);
	}
	for (int i = 0; i < PARALLEL; i++) {
		char got[sizeof("I am number 000")] = "";
		assert_int_equal(recv(servers[i], got, sizeof(got) - 1, MSG_WAITALL),
				 sizeof(got) - 1);
		say(servers[i], got);
	}
	for (int i = 0; i < PARALLEL; i++) {
		snprintf(text, sizeof(text), "I am number %03d", i);
		expect(fds[i], text);
		close(fds[i]);
		close(servers[i]);
	}
	world_seen(w, PARALLEL - 1);
}

/* Places are taken again: far more connections in all than places. */
static void connections_one_after_another_use_the_same_places(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < 400; i++) {
		int server, fd = tunnel(w, &server);
		close(fd);
		expect_end(server);
		close(server);
		world_seen(w, i);
	}
}

static void a_reset_is_passed_on_as_a_reset(void **state)
{
	struct linger hard = { .l_onoff = 1 };
	struct world *w = *state;
	int server, fd = tunnel(w, &server);
	setsockopt(server, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(server);
	expect_reset(fd);
	close(fd);
	fd = tunnel(w, &server);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	expect_reset(server);
	close(server);
	assert_string_not_equal(world_seen(w, 0).why, "");
	assert_string_not_equal(world_seen(w, 1).why, "");
}

static void a_cut_answer_does_not_look_whole(void **state)
{
	struct linger hard = { .l_onoff = 1 };
	struct world *w = *state;
	int fd = ask(w, "GET http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n");
	int server = server_accept(w);
	expect(server, "GET / HTTP/1.1\r\n");
	say(server, "HTTP/1.1 200 OK\r\n\r\nhalf");
	expect(fd, "HTTP/1.1 200 OK\r\n\r\nhalf");
	setsockopt(server, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(server);
	expect_reset(fd);
	close(fd);
}

static void a_client_that_leaves_takes_its_request_along(void **state)
{
	struct linger hard = { .l_onoff = 1 };
	struct world *w = *state;
	int fd = ask(w, "POST http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n"
			"Content-Length: 100\r\n\r\nhalf");
	int server = server_accept(w);
	expect(server, "POST / HTTP/1.1\r\n");
	shutdown(fd, SHUT_WR);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 502);
	assert_non_null(strstr(r.body.data, "in the middle of its request"));
	reply_fini(&r);
	close(server);
	fd = ask(w, "GET http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n");
	server = server_accept(w);
	expect(server, "GET / HTTP/1.1\r\n");
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	char b[512];
	while (read(server, b, sizeof(b)) > 0)
		;
	close(server);
	assert_string_equal(world_seen(w, 1).why, "the client is gone");
}

static void an_early_answer_arrives_though_the_body_is_not_taken(void **state)
{
	struct world *w = *state;
	int fd = ask(w, "POST http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n"
			"Content-Length: 100000000\r\n\r\nhalf");
	int server = server_accept(w);
	say(server, "HTTP/1.1 413 Too Large\r\n\r\n");
	shutdown(server, SHUT_WR);
	expect(fd, "HTTP/1.1 413 Too Large\r\n\r\n");
	expect_end(fd);
	close(fd);
	close(server);
	world_seen(w, 0);
}

static void interim_answers_reach_the_client(void **state)
{
	struct world *w = *state;
	int fd = ask(w, "POST http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n"
			"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	int server = server_accept(w);
	expect(server, "POST / HTTP/1.1\r\n");
	say(server, "HTTP/1.1 100 Continue\r\n\r\n");
	expect(fd, "HTTP/1.1 100 Continue\r\n\r\n");
	say(fd, "body");
	char b[512] = "", *at = b;
	while (!sba_ends_with(b, "\r\n\r\nbody")) {
		ssize_t n = read(server, at, sizeof(b) - 1 - (size_t)(at - b));
		assert_true(n > 0);
		at += n;
		*at = '\0';
	}
	assert_non_null(strstr(b, "Expect: 100-continue\r\n"));
	say(server, "HTTP/1.1 200 OK\r\n\r\n");
	close(server);
	expect(fd, "HTTP/1.1 200 OK\r\n\r\n");
	expect_end(fd);
	close(fd);
}

static void a_tunnel_on_which_nothing_moves_ends(void **state)
{
	struct world *w = *state;
	int server, fd = tunnel(w, &server);
	expect_reset(fd);
	expect_reset(server);
	close(fd);
	close(server);
	assert_string_equal(world_seen(w, 0).why, "no answer in time");
}

static void closing_breaks_off_all_that_is_under_way(void **state)
{
	struct world *w = *state;
	static const char piece[65536];
	int busy_server, busy = tunnel(w, &busy_server);
	int idle_server, idle = tunnel(w, &idle_server);
	int silent = client_connect(sba_proxy_port(w->proxy));
	int looking = ask(w, "CONNECT hang.test:%p HTTP/1.1\r\nHost: x\r\n\r\n");
	int lingering = ask(w, "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n");
	while (send(busy, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	expect(lingering, "HTTP/1.1 403");
	while (atomic_load(&w->lookups) < 3)
		sched_yield();
	int64_t begun = sba_now_ms();
	sba_proxy_close(w->proxy);
	assert_true(sba_now_ms() - begun < 1000);
	w->proxy = NULL;
	eventfd_write(w->hang_fd, 1); /* the look-up left behind ends by itself */
	expect_reset(idle);
	int fds[] = { busy, idle, silent, looking, lingering, busy_server, idle_server };
	for (size_t i = 0; i < SBA_ARRAY_LEN(fds); i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(each_half_of_a_tunnel_ends_by_itself),
		IN_WORLD(the_server_may_end_first),
		IN_WORLD(bytes_sent_with_the_head_are_the_tunnels_first),
		IN_WORLD(a_big_transfer_both_ways_arrives_whole),
		IN_WORLD(a_side_that_does_not_read_holds_the_other_back),
		IN_WORLD(many_connections_live_side_by_side),
		IN_WORLD(connections_one_after_another_use_the_same_places),
		IN_WORLD(a_reset_is_passed_on_as_a_reset),
		IN_WORLD(a_cut_answer_does_not_look_whole),
		IN_WORLD(a_client_that_leaves_takes_its_request_along),
		IN_WORLD(an_early_answer_arrives_though_the_body_is_not_taken),
		IN_WORLD(interim_answers_reach_the_client),
		IMPATIENT(a_tunnel_on_which_nothing_moves_ends),
		IN_WORLD(closing_breaks_off_all_that_is_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
