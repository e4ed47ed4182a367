/* SPDX-License-Identifier: MIT */
/* Network connections through the channel; guest and host are processes of one host. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_peer.h"

#include <errno.h>
#include <netinet/in.h>

static struct guest guest;

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	guest_start(&guest);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	guest_stop(&guest);
	return 0;
}

static struct sba_until soon(void)
{
	return sba_until_in(PEER_WAIT_MS);
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = new_socket();
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 256), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in a = loopback(port);
	int fd = new_socket();
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hear(int fd, const char *text)
{
	char got[64] = "";
	assert_int_equal(recv(fd, got, strlen(text), MSG_WAITALL), strlen(text));
	assert_string_equal(got, text);
}

static void hear_end(int fd)
{
	char byte;
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static uint16_t forward(uint16_t port)
{
	uint16_t inside = 0;
	struct sba_error err;
	if (sba_channel_forward(guest.c, port, 0, soon(), &inside, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_not_equal(inside, 0);
	return inside;
}

static void await_streams(size_t n)
{
	int64_t limit = sba_now_ms() + PEER_WAIT_MS;
	for (size_t have = SIZE_MAX; have != n; poll(NULL, 0, 2)) {
		pthread_mutex_lock(&guest.c->lock);
		have = guest.c->n_streams;
		pthread_mutex_unlock(&guest.c->lock);
		if (sba_now_ms() > limit)
			fail_msg("%zu streams, not %zu", have, n);
	}
}

/* Both ends of one connection through the channel. */
struct joined {
	int listener, inside, outside;
};

static void join(struct joined *j)
{
	uint16_t port;
	j->listener = listen_somewhere(&port);
	j->inside = connect_to(forward(port));
	j->outside = accept(j->listener, NULL, NULL);
	assert_true(j->outside >= 0);
}

static void join_back(struct joined *j)
{
	uint16_t port;
	int fds[2];
	struct sba_error err;
	j->listener = listen_somewhere(&port);
	peer_pair(fds);
	if (sba_channel_connect(guest.c, port, fds[0], soon(), &err) < 0)
		fail_msg("%s", err.text);
	j->outside = fds[1];
	j->inside = accept(j->listener, NULL, NULL);
	assert_true(j->inside >= 0);
}

static void part(struct joined *j)
{
	close(j->listener);
	close(j->inside);
	close(j->outside);
}

static void converse(struct joined *j)
{
	say(j->inside, "hello");
	hear(j->outside, "hello");
	say(j->outside, "who is there");
	hear(j->inside, "who is there");
}

static void end_one_way_then_the_other(struct joined *j)
{
	shutdown(j->inside, SHUT_WR);
	hear_end(j->outside);
	say(j->outside, "I still talk");
	hear(j->inside, "I still talk");
	shutdown(j->outside, SHUT_WR);
	hear_end(j->inside);
}

static void a_forwarded_port_is_reached_from_inside(void **state)
{
	struct joined j;
	(void)state;
	join(&j);
	converse(&j);
	end_one_way_then_the_other(&j);
	await_streams(1);
	part(&j);
}

static void a_port_inside_is_reached_from_here(void **state)
{
	struct joined j;
	(void)state;
	join_back(&j);
	converse(&j);
	end_one_way_then_the_other(&j);
	await_streams(0);
	part(&j);
}

static void what_ends_on_this_side_first_still_listens(void **state)
{
	struct joined j;
	(void)state;
	join(&j);
	shutdown(j.outside, SHUT_WR);
	hear_end(j.inside);
	say(j.inside, "bye");
	hear(j.outside, "bye");
	shutdown(j.inside, SHUT_WR);
	hear_end(j.outside);
	part(&j);
	await_streams(1);
}

static void a_port_nobody_listens_on_resets(void **state)
{
	uint16_t port;
	char byte;
	struct sba_error err;
	int fds[2];
	(void)state;
	close(listen_somewhere(&port));
	int fd = connect_to(forward(port));
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	await_streams(1);
	peer_pair(fds);
	assert_int_equal(sba_channel_connect(guest.c, port, fds[0], soon(), &err), SBA_ENOTFOUND);
	hear_end(fds[1]);
	close(fds[1]);
	await_streams(1);
}

static void a_reset_is_passed_on(void **state)
{
	static const struct linger hard = { 1, 0 };
	struct joined j;
	char byte;
	(void)state;
	join(&j);
	converse(&j);
	setsockopt(j.inside, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(j.inside);
	assert_int_equal(recv(j.outside, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(j.outside);
	close(j.listener);
	await_streams(1);
}

static void two_hundred_connections_at_once(void **state)
{
	enum { COUNT = 200 };
	uint16_t port;
	int inside[COUNT], outside[COUNT];
	int listener = listen_somewhere(&port);
	uint16_t door = forward(port);
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		inside[i] = connect_to(door);
		outside[i] = accept(listener, NULL, NULL);
		assert_true(outside[i] >= 0);
	}
	for (int i = 0; i < COUNT; i++) {
		struct joined j = { listener, inside[i], outside[i] };
		converse(&j);
	}
	for (int i = 0; i < COUNT; i++) {
		struct joined j = { listener, inside[i], outside[i] };
		end_one_way_then_the_other(&j);
		close(inside[i]);
		close(outside[i]);
	}
	close(listener);
	await_streams(1);
}

/* A side that has ended its own half and reads late gets every byte. */
static void a_slow_reader_gets_all(void **state)
{
	enum { SIZE = 8 * 1024 * 1024 };
	SBA_FREE char *data = malloc(SIZE);
	SBA_FREE char *got = malloc(SIZE);
	struct joined j;
	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		join(&j);
		int from = turn ? j.inside : j.outside, to = turn ? j.outside : j.inside;
		for (size_t i = 0; i < SIZE; i++)
			data[i] = (char)(i * 31 + i / 4099);
		shutdown(to, SHUT_WR);
		hear_end(from);
		pid_t writer = fork();
		if (writer == 0)
			_exit(sba_write_all(from, data, SIZE, NULL) < 0);
		close(from);
		struct pollfd p = { to, POLLIN, 0 };
		assert_int_equal(poll(&p, 1, PEER_WAIT_MS), 1);
		poll(NULL, 0, 300); /* every buffer on the way is full now */
		assert_int_equal(recv(to, got, SIZE, MSG_WAITALL), SIZE);
		assert_memory_equal(data, got, SIZE);
		hear_end(to);
		int status;
		assert_int_equal(waitpid(writer, &status, 0), writer);
		assert_int_equal(status, 0);
		close(to);
		close(j.listener);
	}
	await_streams(2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(a_forwarded_port_is_reached_from_inside),
		TEST(a_port_inside_is_reached_from_here),
		TEST(what_ends_on_this_side_first_still_listens),
		TEST(a_port_nobody_listens_on_resets),
		TEST(a_reset_is_passed_on),
		TEST(two_hundred_connections_at_once),
		TEST(a_slow_reader_gets_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
