/* SPDX-License-Identifier: MIT */
/*
 * A handle's session that loses its channels: real guests as processes of this
 * host, killed at will.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_peer.h"
#include "wire/channel_command.h"
#include "support/fake_engine.h"
#include "sandbox/session.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

enum { SOON_MS = 1000 };

static struct world {
	struct sba_sandbox sandbox;
	struct guest guest; /* the last one */
	atomic_int opened;
	atomic_int waiting; /* openers that stand at the gate */
	int gate_fd;        /* an opener waits until it is readable; -1: open */
	int fail;           /* what openers fail with */
} world;

static int open_guest(void *user, struct sba_until until, struct sba_channel **ret,
		      struct sba_error *err)
{
	struct world *w = user;
	atomic_fetch_add(&w->waiting, 1);
	int rc = w->gate_fd >= 0 ? sba_wait_fd(w->gate_fd, POLLIN, until, err) : 1;
	atomic_fetch_sub(&w->waiting, 1);
	if (rc < 0)
		return rc;
	atomic_fetch_add(&w->opened, 1);
	if (w->fail)
		return sba_fail(err, w->fail, "no guest today");
	guest_start(&w->guest);
	*ret = w->guest.c;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	world = (struct world){ .gate_fd = -1 };
	world.sandbox.info.name = "under-test";
	return sba_session_new_with(&world.sandbox, open_guest, &world, &world.sandbox.session,
				    NULL);
}

static int tear_down(void **state)
{
	(void)state;
	sba_session_free(world.sandbox.session);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	sba_cleanup_close(&world.gate_fd);
	return 0;
}

static struct sba_hold *hold(void)
{
	struct sba_hold *h = NULL;
	struct sba_error err = { 0 };
	if (sba_session_hold(world.sandbox.session, -1, &h, &err) < 0)
		fail_msg("%s", err.text);
	return h;
}

static void lose_channel(struct sba_hold *h)
{
	int64_t limit = sba_now_ms() + PEER_WAIT_MS;
	assert_int_equal(kill(world.guest.pid, SIGKILL), 0);
	assert_int_equal(waitpid(world.guest.pid, NULL, 0), world.guest.pid);
	while (sba_channel_check(sba_hold_channel(h), NULL) == 0) {
		assert_true(sba_now_ms() < limit);
		poll(NULL, 0, 2);
	}
}

static void shut_gate(void)
{
	world.gate_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(world.gate_fd >= 0);
}

static void await_opener(void)
{
	int64_t limit = sba_now_ms() + PEER_WAIT_MS;
	while (atomic_load(&world.waiting) == 0) {
		assert_true(sba_now_ms() < limit);
		poll(NULL, 0, 2);
	}
}

static size_t count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- */

static void any_number_of_losses_is_survived_and_leaves_nothing(void **state)
{
	enum { LOSSES = 40 };
	size_t before = 0;
	(void)state;
	for (int i = 0; i < LOSSES; i++) {
		struct sba_hold *h = hold();
		command_ok(sba_hold_channel(h), "exit 0");
		lose_channel(h);
		sba_hold_release(h);
		if (i == 1)
			before = count_descriptors();
	}
	assert_int_equal(atomic_load(&world.opened), LOSSES);
	/* The last one may have gone already or not. */
	assert_true(count_descriptors() < before + LOSSES / 8);
}

static void lost_channel_stays_while_somebody_holds_it(void **state)
{
	struct sba_hold *first = hold(), *second;
	struct command k;
	(void)state;
	command_sh(&k, sba_hold_channel(first), "sleep 60", false);
	lose_channel(first);
	second = hold();
	assert_ptr_not_equal(first, second);
	assert_int_equal(sba_channel_check(sba_hold_channel(first), NULL), SBA_ELOST);
	assert_true(command_read(&k, PEER_WAIT_MS) < 0);
	command_close(&k);
	sba_hold_release(first);
	command_ok(sba_hold_channel(second), "exit 0");
	sba_hold_release(second);
}

static void *hold_and_use(void *user)
{
	struct sba_hold *h = NULL;
	*(int *)user = sba_session_hold(world.sandbox.session, -1, &h, NULL);
	sba_hold_release(h);
	return NULL;
}

enum { THREADS = 8 };

static void start_all(pthread_t threads[THREADS], int results[THREADS])
{
	shut_gate();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hold_and_use, &results[i]), 0);
	await_opener();
	assert_int_equal(eventfd_write(world.gate_fd, 1), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void one_opens_and_the_others_have_the_same(void **state)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	(void)state;
	start_all(threads, results);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(results[i], 0);
	assert_int_equal(atomic_load(&world.opened), 1);
}

static void failure_of_an_opener_is_told_to_those_who_waited(void **state)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	(void)state;
	world.fail = SBA_EBROKEN;
	start_all(threads, results);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(results[i], SBA_EBROKEN);
	world.fail = 0;
	sba_hold_release(hold()); /* the next one tries again */
}

/* ---- ports of the sandbox, while there is no channel ---- */

static struct sba_port *open_port(int *ret_client)
{
	struct sba_port *p = NULL;
	const struct sba_port_options o = { .port = 9 };
	assert_int_equal(sba_port_open(&world.sandbox, &o, &p, NULL), 0);
	struct sba_hold *h = hold();
	lose_channel(h);
	sba_hold_release(h);
	shut_gate();
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(sba_port_here(p)),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	*ret_client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*ret_client, (const struct sockaddr *)&a, sizeof(a)), 0);
	return p;
}

static void closing_a_port_ends_its_own_opening(void **state)
{
	int client;
	struct sba_port *p = open_port(&client);
	(void)state;
	await_opener();
	int64_t began = sba_now_ms();
	sba_port_close(p);
	assert_true(sba_now_ms() - began < SOON_MS);
	close(client);
}

static void closing_a_port_does_not_wait_for_another_opener(void **state)
{
	int client, result = -1;
	pthread_t opener;
	(void)state;
	struct sba_port *p = open_port(&client);
	await_opener(); /* the port's: it gives way below */
	sba_port_close(p);
	assert_int_equal(pthread_create(&opener, NULL, hold_and_use, &result), 0);
	await_opener();
	int64_t began = sba_now_ms();
	assert_int_equal(sba_session_proxy_port(world.sandbox.session), 0);
	sba_sandbox_unforward(&world.sandbox, 9);
	assert_true(sba_now_ms() - began < SOON_MS);
	eventfd_write(world.gate_fd, 1);
	pthread_join(opener, NULL);
	assert_int_equal(result, 0);
	close(client);
}

static void a_port_that_is_taken_here_is_named(void **state)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in a = any;
	socklen_t len = sizeof(a);
	struct sba_port *p = NULL;
	struct sba_error err = { 0 };
	char words[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	const struct sba_port_options o = { .port = 9, .host_port = ntohs(a.sin_port) };
	assert_int_equal(sba_port_open(&world.sandbox, &o, &p, &err), SBA_EIO);
	snprintf(words, sizeof(words), "127.0.0.1:%u", (unsigned)o.host_port);
	assert_non_null(strstr(err.text, words));
	assert_non_null(strstr(err.hint, "free one"));
	close(fd);
}

/* ---- ports of this host ---- */

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* Whether a connection to the port inside arrives at the listener. */
static bool arrives(uint16_t inside, int listener)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(inside),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer = -1;
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0) {
		struct pollfd p[2] = { { listener, POLLIN, 0 }, { fd, POLLIN, 0 } };
		assert_true(poll(p, 2, PEER_WAIT_MS) > 0);
		if (p[0].revents)
			peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	close(fd);
	if (peer >= 0)
		close(peer);
	return peer >= 0;
}

static void ports_of_this_host_come_back_under_their_number(void **state)
{
	uint16_t here, inside = 0, again = 0;
	int listener = listen_here(&here);
	(void)state;
	assert_int_equal(sba_sandbox_forward(&world.sandbox, here, &inside, NULL), 0);
	assert_true(arrives(inside, listener));
	for (int i = 0; i < 3; i++) {
		struct sba_hold *h = hold();
		lose_channel(h);
		sba_hold_release(h);
		assert_false(arrives(inside, listener));
		sba_hold_release(hold());
		assert_true(arrives(inside, listener));
	}
	assert_int_equal(sba_sandbox_forward(&world.sandbox, here, &again, NULL), 0);
	assert_int_equal(again, inside);
	sba_sandbox_unforward(&world.sandbox, here);
	assert_true(arrives(inside, listener));
	sba_sandbox_unforward(&world.sandbox, here);
	assert_false(arrives(inside, listener));
	close(listener);
}

static void port_that_somebody_took_meanwhile_is_another_one(void **state)
{
	uint16_t here, inside = 0, again = 0;
	int listener = listen_here(&here);
	(void)state;
	assert_int_equal(sba_sandbox_forward(&world.sandbox, here, &inside, NULL), 0);
	struct sba_hold *h = hold();
	lose_channel(h);
	sba_hold_release(h);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(inside),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int thief = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(thief, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(thief, 1), 0);
	assert_int_equal(sba_sandbox_forward(&world.sandbox, here, &again, NULL), 0);
	assert_int_not_equal(again, inside);
	assert_true(arrives(again, listener));
	close(thief);
	close(listener);
}

/* ---- an engine that hangs ---- */

static void *fire_later(void *user)
{
	poll(NULL, 0, 20);
	sba_event_fire(*(int *)user);
	return NULL;
}

static void question_about_a_death_ends_when_it_is_told_to(void **state)
{
	static const struct fake_exchange x[] = { { .then = FAKE_SILENCE, .forever = true } };
	struct fake_engine *f = fake_engine_start("1.41", x, 1);
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	struct sba_sandbox s = { .container = "c", .sidecar = "s", .info.name = "hung" };
	struct sba_error err;
	pthread_t thread;
	int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)state;
	assert_int_equal(sba_engine_open(&o, &s.engine, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, fire_later, &stop), 0);
	int64_t began = sba_now_ms();
	int rc = sba_sandbox_check_alive_until(&s, "command", (struct sba_until){ SBA_NEVER, stop },
					       &err);
	assert_int_equal(rc, SBA_ECANCELED);
	assert_true(sba_now_ms() - began < SOON_MS);
	pthread_join(thread, NULL);
	close(stop);
	sba_engine_close(s.engine);
	fake_engine_stop(f);
}

/* ---- an engine that is too quick ---- */

#define ANSWER(status, body) .answer = FAKE_ANSWER(status, body), .then = FAKE_CLOSE
#define RUNS                 ANSWER("200 OK", "{\"State\":{\"Running\":true}}")
#define GONE                 ANSWER("404 Not Found", "{\"message\":\"No such container\"}")
#define DIED                                                                                       \
	"{\"Action\":\"die\",\"Actor\":{\"Attributes\":{\"io.sandbox-agent.id\":\"i\","            \
	"\"io.sandbox-agent.role\":\"sidecar\",\"io.sandbox-agent.name\":\"quick\","               \
	"\"io.sandbox-agent.prefix\":\"p\",\"name\":\"p-quick-sidecar\",\"exitCode\":\"10\"}}}"

/* Podman has answered a wait at once, and a container can be gone before it is waited for. */
static void a_sandbox_is_dead_when_it_is_and_not_when_a_wait_is_answered(void **state)
{
	static const struct fake_exchange x[] = {
		{ .method = "POST", .path = "/containers/c/wait ", ANSWER("200 OK", "0") },
		{ .path = "/containers/c/json ", RUNS },
		{ .path = "/containers/s/json ", RUNS },
		{ .method = "POST", .path = "/containers/c/wait ", GONE },
		{ .path = "/containers/c/json ", GONE },
		{ .path = "/events?", ANSWER("200 OK", DIED) },
	};
	struct fake_engine *f = fake_engine_start("1.41", x, SBA_ARRAY_LEN(x));
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	struct sba_sandbox s = { .container = "c",
				 .sidecar = "s",
				 .info = { .name = "quick", .id = "i" } };
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_engine_open(&o, &s.engine, &err), 0);
	assert_int_equal(sba_session_await_death(&s, sba_until_in(30000), &err), SBA_EBROKEN);
	assert_non_null(strstr(err.text, "keepalive"));
	sba_engine_close(s.engine);
	fake_engine_stop(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_number_of_losses_is_survived_and_leaves_nothing),
		TEST(lost_channel_stays_while_somebody_holds_it),
		TEST(one_opens_and_the_others_have_the_same),
		TEST(failure_of_an_opener_is_told_to_those_who_waited),
		TEST(closing_a_port_ends_its_own_opening),
		TEST(closing_a_port_does_not_wait_for_another_opener),
		TEST(ports_of_this_host_come_back_under_their_number),
		TEST(port_that_somebody_took_meanwhile_is_another_one),
		TEST(a_port_that_is_taken_here_is_named),
		TEST(question_about_a_death_ends_when_it_is_told_to),
		TEST(a_sandbox_is_dead_when_it_is_and_not_when_a_wait_is_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
