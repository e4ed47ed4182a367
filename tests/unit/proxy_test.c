/* SPDX-License-Identifier: MIT */
/* The proxy: what it refuses, and in which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/proxy_world.h"

static void a_name_without_a_rule_is_refused_and_never_looked_up(void **state)
{
	struct world *w = *state;
	assert_answer(w, "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "refused: example.org:443 is not in the rules of this sandbox; "
		      "its owner can allow it with: --allow example.org\n");
	assert_answer(w, "CONNECT leak.example:8443 HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow leak.example:8443\n");
	assert_answer(w, "GET http://example.org/ HTTP/1.1\r\nHost: good.test\r\n\r\n", 403,
		      "refused: example.org:80 is not");
	assert_answer(w, "CONNECT [2606:4700::1]:22 HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow [2606:4700::1]:22\n");
	assert_int_equal(atomic_load(&w->lookups), 0);
	struct seen e = world_seen(w, 1);
	assert_string_equal(e.host, "leak.example");
	assert_int_equal(e.port, 8443);
	assert_false(e.allowed);
	assert_non_null(strstr(e.why, "--allow leak.example:8443"));
	assert_string_equal(e.reason, "no rule");
	assert_string_equal(e.rule, "leak.example:8443");
}

static void a_refusal_is_told_in_the_status_line_too(void **state)
{
	struct world *w = *state;
	struct reply r = answer_to(w, "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(sba_starts_with(r.raw.data, "HTTP/1.1 403 refused: example.org:443 is not"));
	assert_true(r.whole);
	reply_fini(&r);
}

static void a_port_without_a_rule_is_refused(void **state)
{
	struct world *w = *state;
	assert_answer(w, "CONNECT good.test:22 HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow good.test:22\n");
	assert_answer(w, "GET http://exact.example:8080/ HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow exact.example:8080\n");
	assert_int_equal(atomic_load(&w->lookups), 0);
}

static void a_name_of_a_special_address_is_refused_with_the_address(void **state)
{
	static const char *const special[] = { "10.0.0.1",    "169.254.169.254", "127.0.0.2",
					       "0.0.0.0",     "100.64.0.1",      "224.0.0.1",
					       "192.168.0.1", "255.255.255.255", "198.18.0.1" };
	static const char *const special6[] = {
		"__1", "fe80__1", "fc00__1", "__ffff_127.0.0.1", "64_ff9b__a00_1", "2002_7f00_1__"
	};
	struct world *w = *state;
	char request[256], words[256];
	for (size_t i = 0; i < SBA_ARRAY_LEN(special); i++) {
		snprintf(request, sizeof(request),
			 "CONNECT at-%s.test:%%p HTTP/1.1\r\nHost: x\r\n\r\n", special[i]);
		snprintf(words, sizeof(words), "its owner can allow it with: --allow %s:%u\n",
			 special[i], w->port);
		assert_answer(w, request, 403, words);
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(special6); i++) {
		snprintf(request, sizeof(request),
			 "GET http://at-%s.test:%%p/ HTTP/1.1\r\nHost: x\r\n\r\n", special6[i]);
		assert_answer(w, request, 403, "which no rule of this sandbox names");
	}
	struct seen e = world_seen(w, 0);
	snprintf(words, sizeof(words),
		 "refused: at-10.0.0.1.test resolves to 10.0.0.1, a private address which no rule "
		 "of this sandbox names; its owner can allow it with: --allow 10.0.0.1:%u",
		 w->port);
	assert_string_equal(e.why, words);
	assert_string_equal(e.reason, "it resolves to 10.0.0.1, a private address");
	assert_false(e.allowed);
}

static void a_name_is_resolved_once_and_the_judged_address_connected_to(void **state)
{
	struct world *w = *state;
	int fd = ask(w, "CONNECT rebind.test:%p HTTP/1.1\r\nHost: x\r\n\r\n");
	int server = server_accept(w);
	expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
	assert_int_equal(atomic_load(&w->lookups), 1);
	close(fd);
	close(server);
	assert_answer(w, "CONNECT rebind.test:%p HTTP/1.1\r\nHost: x\r\n\r\n", 403, "10.0.0.1");
	assert_int_equal(atomic_load(&w->lookups), 2);
}

static void of_several_addresses_an_allowed_one_that_answers_is_taken(void **state)
{
	static const char *const hosts[] = { "mixed.test", "half-dead.test" };
	struct world *w = *state;
	char request[128];
	for (size_t i = 0; i < SBA_ARRAY_LEN(hosts); i++) {
		snprintf(request, sizeof(request), "CONNECT %s:%%p HTTP/1.1\r\nHost: x\r\n\r\n",
			 hosts[i]);
		int fd = ask(w, request);
		int server = server_accept(w);
		expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
		close(fd);
		close(server);
	}
}

static void spellings_of_an_allowed_host_reach_it(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "GOOD.Test", "good.test.", "127.0.0.1." };
	struct world *w = *state;
	char request[128];
	for (size_t i = 0; i < SBA_ARRAY_LEN(hosts); i++) {
		snprintf(request, sizeof(request), "CONNECT %s:%%p HTTP/1.1\r\nHost: x\r\n\r\n",
			 hosts[i]);
		int fd = ask(w, request);
		int server = server_accept(w);
		expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
		close(fd);
		close(server);
	}
}

static void spellings_that_hide_an_address_are_refused(void **state)
{
	static const char *const hosts[] = {
		"0177.0.0.1",          "2130706433", "0x7f000001",       "127.1", "user@good.test",
		"good.test@127.0.0.1", "[::1%25lo]", "g\xC3\xB6od.test", "::1",   "good..test",
		"good.test:80"
	};
	struct world *w = *state;
	char request[128];
	for (size_t i = 0; i < SBA_ARRAY_LEN(hosts); i++) {
		snprintf(request, sizeof(request), "CONNECT %s:%%p HTTP/1.1\r\nHost: x\r\n\r\n",
			 hosts[i]);
		assert_answer(w, request, 400, "bad request");
		snprintf(request, sizeof(request), "GET http://%s:%%p/ HTTP/1.1\r\nHost: x\r\n\r\n",
			 hosts[i]);
		assert_answer(w, request, 400, "bad request");
	}
	assert_answer(w, "CONNECT localhost:%p HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow localhost");
	assert_answer(w, "CONNECT LOCALHOST.:%p HTTP/1.1\r\nHost: x\r\n\r\n", 403,
		      "--allow localhost");
	assert_int_equal(atomic_load(&w->lookups), 0);
}

static void ignore_event(struct sba_proxy *p, const struct sba_proxy_event *e)
{
	(void)p;
	(void)e;
}

/* Nobody knows a proxy's port before it is open: here one connection is served
 * by itself, on port 80 as it believes. */
static void the_proxy_is_no_way_to_itself_even_where_rules_name_it(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]" };
	static const char *const allow[] = { "127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", NULL };
	struct sba_proxy_shared shared = {
		.hooks = { NULL, NULL, 1000, 1000, 1000 },
		.record = ignore_event,
		.port = 80,
		.stop_fd = -1,
	};
	struct sba_rules *rules;
	(void)state;
	alarm(TEST_SECONDS);
	assert_int_equal(sba_rules_new(allow, &rules, NULL), 0);
	shared.rules = rules;
	for (size_t i = 0; i < SBA_ARRAY_LEN(hosts); i++) {
		char request[128];
		int pair[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		snprintf(request, sizeof(request), "CONNECT %s:80 HTTP/1.1\r\nHost: x\r\n\r\n",
			 hosts[i]);
		say(pair[0], request);
		shutdown(pair[0], SHUT_WR);
		sba_proxy_connection_serve(&shared, pair[1]);
		struct reply r = client_read_reply(pair[0]);
		assert_int_equal(r.status, 403);
		assert_non_null(strstr(r.body.data, ":80 is this proxy"));
		reply_fini(&r);
	}
	sba_rules_free(rules);
}

static void failures_of_the_way_are_told_apart(void **state)
{
	struct world *w = *state;
	assert_answer(w, "CONNECT none.test:%p HTTP/1.1\r\nHost: x\r\n\r\n", 502,
		      "look up none.test: no such name");
	assert_answer(w, "CONNECT empty.test:%p HTTP/1.1\r\nHost: x\r\n\r\n", 502, "no address");
	struct seen e = world_seen(w, 0);
	assert_true(e.allowed);
	assert_string_equal(e.why, "look up none.test: no such name");
	int fd = ask(w, "GET http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n");
	int server = server_accept(w);
	expect(server, "GET / HTTP/1.1\r\n");
	shutdown(server, SHUT_WR);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 502);
	assert_non_null(strstr(r.body.data, "closed without an answer"));
	reply_fini(&r);
	close(server);
	close(w->listener);
	assert_answer(w, "CONNECT good.test:%p HTTP/1.1\r\nHost: x\r\n\r\n", 502,
		      "Connection refused");
	world_listen(w);
}

static void waiting_has_an_end_and_says_for_what(void **state)
{
	struct world *w = *state;
	assert_answer(w, "CONNECT hang.test:%p HTTP/1.1\r\nHost: x\r\n\r\n", 504,
		      "look up hang.test: no answer in time");
	eventfd_write(w->hang_fd, 1);
	int fd = ask(w, "GET http://good.test:%p/ HTTP/1.1\r\nHost: x\r\n\r\n");
	int server = server_accept(w);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 504);
	reply_fini(&r);
	close(server);
}

static void a_client_that_sends_nothing_or_little_is_sent_away(void **state)
{
	struct world *w = *state;
	int silent = client_connect(sba_proxy_port(w->proxy));
	expect_end(silent);
	close(silent);
	int slow = client_connect(sba_proxy_port(w->proxy));
	int64_t begun = sba_now_ms();
	struct pollfd p = { .fd = slow, .events = POLLIN };
	for (const char *at = "GET http://good.test/ HTTP/1.1\r\nHost: xxxxxxxxxxxxxxxxxxxxxxxxxxx";
	     *at && poll(&p, 1, 10) == 0; at++)
		client_send(slow, at, 1);
	struct reply r = client_read_reply(slow);
	assert_int_equal(r.status, 408);
	assert_true(sba_now_ms() - begun < 5000);
	reply_fini(&r);
}

static int setup_small(void **state)
{
	*state = world_open((struct sba_proxy_hooks){ 0 }, 2);
	return 0;
}

static void more_connections_than_allowed_are_turned_away(void **state)
{
	struct world *w = *state;
	int servers[2], fds[2] = { tunnel(w, &servers[0]), tunnel(w, &servers[1]) };
	int more = client_connect(sba_proxy_port(w->proxy));
	struct reply r = client_read_reply(more);
	assert_int_equal(r.status, 503);
	reply_fini(&r);
	struct seen e = world_seen(w, 0);
	assert_false(e.allowed);
	assert_non_null(strstr(e.why, "too many"));
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(servers[i]);
	}
	world_seen(w, 2);
}

/* localhost may be ::1 first, which no rule names: the next address is taken. */
static void the_systems_resolver_is_asked_for_names(void **state)
{
	struct world *w = *state;
	char name[32], address[32];
	snprintf(name, sizeof(name), "localhost:%u", w->port);
	snprintf(address, sizeof(address), "127.0.0.0/8:%u", w->port);
	const char *const allow[] = { name, address, NULL };
	const struct sba_proxy_options o = { .allow = allow };
	struct sba_proxy *p;
	assert_int_equal(sba_proxy_open(&o, &p, NULL), 0);
	int fd = client_connect(sba_proxy_port(p));
	struct sba_buf b = SBA_BUF_INIT(256);
	sba_buf_printf(&b, "CONNECT localhost:%u HTTP/1.1\r\n\r\n", w->port);
	say(fd, b.data);
	sba_buf_fini(&b);
	int server = server_accept(w);
	expect(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
	close(fd);
	close(server);
	sba_proxy_close(p);
}

static void without_rules_nothing_is_allowed(void **state)
{
	const struct sba_proxy_options o = { 0 };
	struct sba_proxy *p;
	(void)state;
	alarm(TEST_SECONDS);
	assert_int_equal(sba_proxy_open(&o, &p, NULL), 0);
	struct reply r = client_call(sba_proxy_port(p), "GET http://127.0.0.1/", "", NULL);
	assert_int_equal(r.status, 403);
	reply_fini(&r);
	sba_proxy_close(p);
	sba_proxy_close(NULL);
}

static void a_bad_rule_keeps_the_proxy_shut(void **state)
{
	const char *const allow[] = { "good.test", "127.1", NULL };
	const struct sba_proxy_options o = { .allow = allow };
	struct sba_proxy *p = NULL;
	struct sba_error err;
	(void)state;
	assert_int_equal(sba_proxy_open(&o, &p, &err), SBA_EINVAL);
	assert_null(p);
	assert_non_null(strstr(err.text, "127.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_name_without_a_rule_is_refused_and_never_looked_up),
		IN_WORLD(a_refusal_is_told_in_the_status_line_too),
		IN_WORLD(a_port_without_a_rule_is_refused),
		IN_WORLD(a_name_of_a_special_address_is_refused_with_the_address),
		IN_WORLD(a_name_is_resolved_once_and_the_judged_address_connected_to),
		IN_WORLD(of_several_addresses_an_allowed_one_that_answers_is_taken),
		IN_WORLD(spellings_of_an_allowed_host_reach_it),
		IN_WORLD(spellings_that_hide_an_address_are_refused),
		cmocka_unit_test(the_proxy_is_no_way_to_itself_even_where_rules_name_it),
		IN_WORLD(failures_of_the_way_are_told_apart),
		IMPATIENT(waiting_has_an_end_and_says_for_what),
		IMPATIENT(a_client_that_sends_nothing_or_little_is_sent_away),
		cmocka_unit_test_setup_teardown(more_connections_than_allowed_are_turned_away,
						setup_small, teardown),
		IN_WORLD(the_systems_resolver_is_asked_for_names),
		cmocka_unit_test(without_rules_nothing_is_allowed),
		cmocka_unit_test(a_bad_rule_keeps_the_proxy_shut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
