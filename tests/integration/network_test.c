/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox reaches: nothing but its loopback where it is sealed, what a
 * rule names where there is one, ports both ways, and the model on every network.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/http_client.h"
#include "support/live.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 50, TURN_ROUNDS = 25 };

static char base_image[256], claude_image[256]; /* "": not here */

static void note_image(const struct sba_images *images, const char *name, char ret[256])
{
	SBA_JSON json_t *there = NULL;
	const char *ref = sba_images_ref(images, name);
	if (sba_image_inspect(live.engine, ref, sba_until_in(30000), &there, NULL) == 0)
		snprintf(ret, 256, "%s", ref);
}

static int begin(void **state)
{
	struct sba_images *images = NULL;
	if (live_begin(state) < 0 || sba_images_open(NULL, NULL, &images, NULL) < 0)
		return -1;
	note_image(images, "base", base_image);
	note_image(images, "claude", claude_image);
	sba_images_close(images);
	return 0;
}

#define NEEDS(image)                                                                               \
	do {                                                                                       \
		if (!*(image)) {                                                                   \
			print_message("SKIPPED %s: no " #image " here\n", __func__);               \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* ---- a server here ---- */

struct server {
	int listener;
	uint16_t port;
	pthread_t thread;
	atomic_int served;
};

/* To its blank line: closing with a rest unread would reset the connection. */
static bool read_request(int fd)
{
	char text[4096] = "";
	size_t len = 0;
	while (!strstr(text, "\r\n\r\n") && len < sizeof(text) - 1) {
		ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
	}
	return true;
}

/* Answers each request with the bytes of its own port, and closes. */
static void *serve(void *user)
{
	struct server *s = user;
	char answer[160], body[32];
	int fd;
	snprintf(body, sizeof(body), "here %u\n", (unsigned)s->port);
	snprintf(answer, sizeof(answer),
		 "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		if (read_request(fd)) {
			client_send(fd, answer, strlen(answer));
			atomic_fetch_add(&s->served, 1);
		}
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	*s = (struct server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(s->listener, 128), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
}

/* bash opens /dev/tcp itself: no tool is needed inside. */
static char *get_inside(struct sba_sandbox *s, const char *host, uint16_t port)
{
	char script[512];
	snprintf(script, sizeof(script),
		 "exec 2>&1; timeout 10 bash -c 'exec 3<>/dev/tcp/%s/%u && "
		 "printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3 && tail -n 1 <&3' || echo failed",
		 host, (unsigned)port);
	return live_sh_out(s, script);
}

/* ---- sealed ---- */

static void a_sealed_sandbox_has_nothing_but_loopback(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	SBA_FREE char *said = live_sh_out(
		s, "ls /sys/class/net 2>/dev/null || sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' "
		   "/proc/net/dev; wc -l </proc/net/route; "
		   "grep -o 'nameserver .*' /etc/resolv.conf; getent hosts host.docker.internal "
		   "|| echo no host");
	/* None at all, as on Podman, means the same to resolvers. */
	const char *server = strstr(said, "nameserver ");
	if (strncmp(said, "lo\n", 3) != 0 ||
	    (server && !sba_starts_with(server, "nameserver 127.0.0.1")))
		fail_msg("%s", said);
	SBA_FREE char *out = get_inside(s, "1.1.1.1", 443);
	assert_non_null(strstr(out, "nreachable"));
	SBA_FREE char *bridge = get_inside(s, "172.17.0.1", 80);
	assert_non_null(strstr(bridge, "nreachable"));
	live_remove(s);
}

static void look_ups_of_a_sealed_sandbox_fail_at_once(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	free(live_sh_out(s, "true"));
	int64_t began = sba_now_ms();
	SBA_FREE char *said = live_sh_out(s, "getent hosts one.invalid.example || echo none");
	assert_string_equal(said, "none\n");
	assert_true(sba_now_ms() - began < 1000);
	live_remove(s);
}

static void the_hosts_own_loopback_is_not_a_sealed_sandboxs(void **state)
{
	(void)state;
	struct server here;
	server_start(&here);
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	SBA_FREE char *said = get_inside(s, "127.0.0.1", here.port);
	assert_non_null(strstr(said, "failed"));
	assert_int_equal(atomic_load(&here.served), 0);
	live_remove(s);
	server_stop(&here);
}

/* ---- a turn ---- */

static void turn_on(const char *network)
{
	LIVE_CHILD c;
	RUN(&c, "run", "claude", "--offline", "--image", claude_image, "--network", network,
	    "run: env | grep ^ANTHROPIC_BASE_URL");
	live_assert_says(&c, 0, NULL);
	/* Through the channel, whatever the network: loopback, by its number. */
	assert_non_null(strstr(c.out.data, "ANTHROPIC_BASE_URL=http://127.0.0.1:"));
}

static void the_model_works_in_a_sealed_sandbox(void **state)
{
	(void)state;
	NEEDS(claude_image);
	turn_on("sealed");
}

static void the_model_is_reached_through_the_channel_on_an_open_network_too(void **state)
{
	(void)state;
	NEEDS(claude_image);
	turn_on("open");
}

/* ---- rules ---- */

struct seen {
	int let_through, refused;
	char line[512];
};

static void note_connection(void *user, const struct sba_connection *c)
{
	struct seen *s = user;
	s->let_through += c->allowed;
	s->refused += sba_connection_refusal(c, s->line, sizeof(s->line));
}

static void a_rule_opens_what_it_names_and_nothing_else(void **state)
{
	(void)state;
	NEEDS(base_image);
	struct server named, other;
	char rule[64], script[512];
	server_start(&named);
	server_start(&other);
	snprintf(rule, sizeof(rule), "127.0.0.1/32:%u", (unsigned)named.port);
	const char *const allow[] = { rule, NULL };
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .image = base_image, .allow = allow });
	assert_string_equal(sba_sandbox_info(s)->network, "sealed");
	struct seen seen = { .let_through = 0 };
	struct sba_observer observer = { .connection = note_connection, .user = &seen };
	sba_sandbox_observe(s, &observer);
	/* Loopback is asked directly by custom; here the proxy is meant. */
	snprintf(script, sizeof(script), "curl -sS --noproxy '' http://127.0.0.1:%u/",
		 (unsigned)named.port);
	SBA_FREE char *plain = live_sh_out(s, script);
	snprintf(script, sizeof(script), "curl -sS -p --noproxy '' http://127.0.0.1:%u/",
		 (unsigned)named.port);
	SBA_FREE char *tunnel = live_sh_out(s, script);
	assert_true(sba_starts_with(plain, "here ") && sba_starts_with(tunnel, "here "));
	snprintf(script, sizeof(script),
		 "curl -sS --noproxy '' http://127.0.0.1:%u/; "
		 "curl -sS -p --noproxy '' http://127.0.0.1:%u/ 2>&1; true",
		 (unsigned)other.port, (unsigned)other.port);
	SBA_FREE char *refused = live_sh_out(s, script);
	snprintf(rule, sizeof(rule), "127.0.0.1:%u", (unsigned)other.port);
	if (!strstr(refused, rule) || !strstr(refused, "--allow"))
		fail_msg("%s", refused);
	assert_non_null(strstr(refused, "403"));
	assert_int_equal(atomic_load(&other.served), 0);
	assert_int_equal(atomic_load(&named.served), 2);
	snprintf(script, sizeof(script),
		 "network: 127.0.0.1:%u refused: no rule; --allow %s would allow it",
		 (unsigned)other.port, rule);
	sba_sandbox_unobserve(s, &observer);
	assert_int_equal(seen.refused, 2);
	LIVE_CHILD verbose;
	char command[128];
	snprintf(command, sizeof(command), "curl -sS --noproxy '' http://127.0.0.1:%u/",
		 (unsigned)other.port);
	RUN(&verbose, "exec", "-v", sba_sandbox_info(s)->name, "--", "sh", "-c", command);
	live_assert_says(&verbose, 0, script);
	assert_string_equal(seen.line, script);
	live_remove(s);
	assert_in_range(seen.let_through, 1, 2);
	server_stop(&named);
	server_stop(&other);
}

static void a_proxy_of_their_own_inside_gets_no_further(void **state)
{
	(void)state;
	NEEDS(base_image);
	const char *const allow[] = { "one.allowed.example", NULL };
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .image = base_image, .allow = allow });
	SBA_FREE char *said = live_sh_out(
		s, "for u in http://other.example/ http://127.0.0.1:22/ http://169.254.169.254/ "
		   "http://one.allowed.example.evil.example/ http://one.allowed.example:22/; do "
		   "curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '' $u; done");
	assert_string_equal(said, "403\n403\n403\n403\n403\n");
	live_remove(s);
}

/* ---- ports ---- */

static const char server_inside[] =
	"import http.server,sys\n"
	"class H(http.server.BaseHTTPRequestHandler):\n"
	"  def do_GET(self):\n"
	"    b=('inside '+self.path).encode()\n"
	"    self.send_response(200); self.send_header('Content-Length',str(len(b)))\n"
	"    self.end_headers(); self.wfile.write(b)\n"
	"  def log_message(self,*a): pass\n"
	"s=http.server.ThreadingHTTPServer(('127.0.0.1',8123),H); s.request_queue_size=128\n"
	"print('up',flush=True); s.serve_forever()\n";

static struct sba_process *serve_inside(struct sba_sandbox *s)
{
	const char *const argv[] = { "python3", "-c", server_inside, NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	enum sba_output which;
	const char *data;
	if (sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err) < 0 ||
	    sba_process_read(p, 30000, &which, &data, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(strncmp(data, "up", 2), 0);
	return p;
}

struct client {
	pthread_t thread;
	uint16_t port;
	int n;
	bool right;
};

static void *ask_once(void *user)
{
	struct client *c = user;
	char line[64], expected[64];
	snprintf(line, sizeof(line), "GET /%d", c->n);
	snprintf(expected, sizeof(expected), "inside /%d", c->n);
	struct reply r = client_call(c->port, line, "", NULL);
	c->right = r.status == 200 && r.body.data && strcmp(r.body.data, expected) == 0;
	reply_fini(&r);
	return NULL;
}

static void a_server_inside_is_reached_from_here_by_fifty_at_once(void **state)
{
	(void)state;
	NEEDS(base_image);
	static const char *const networks[] = { "sealed", "open" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(networks); i++) {
		struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){
			.image = base_image, .network = networks[i] });
		struct sba_process *p = serve_inside(s);
		struct sba_port *port = NULL;
		struct sba_error err = { 0 };
		struct client clients[MANY];
		if (sba_port_open(s, &(struct sba_port_options){ .port = 8123 }, &port, &err) < 0)
			fail_msg("%s", err.text);
		for (int n = 0; n < MANY; n++) {
			clients[n] = (struct client){ .port = sba_port_here(port), .n = n };
			assert_int_equal(
				pthread_create(&clients[n].thread, NULL, ask_once, &clients[n]), 0);
		}
		int right = 0;
		for (int n = 0; n < MANY; n++) {
			pthread_join(clients[n].thread, NULL);
			right += clients[n].right;
		}
		assert_int_equal(right, MANY);
		sba_port_close(port);
		sba_process_free(p);
		live_remove(s);
	}
}

static void a_port_where_nobody_listens_inside_is_closed_at_once(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	struct sba_port *port = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_port_open(s, &(struct sba_port_options){ .port = 8123 }, &port, &err),
			 0);
	int64_t began = sba_now_ms();
	struct reply r = client_call(sba_port_here(port), "GET /", "", NULL);
	assert_int_equal(r.status, 0);
	assert_true(sba_now_ms() - began < 3000);
	reply_fini(&r);
	sba_port_close(port);
	live_remove(s);
}

static void a_server_here_is_reached_from_inside(void **state)
{
	(void)state;
	static const char *const networks[] = { "sealed", "open" };
	struct server here;
	server_start(&here);
	for (size_t i = 0; i < SBA_ARRAY_LEN(networks); i++) {
		struct sba_sandbox *s =
			live_sandbox((struct sba_sandbox_options){ .network = networks[i] });
		struct sba_error err = { 0 };
		char url[64], expected[32], host[64];
		unsigned port = 0;
		if (sba_sandbox_host_url(s, here.port, url, sizeof(url), &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(sscanf(url, "http://%63[0-9.]:%u", host, &port), 2);
		assert_string_equal(host, "127.0.0.1");
		SBA_FREE char *said = get_inside(s, host, (uint16_t)port);
		snprintf(expected, sizeof(expected), "here %u\n", (unsigned)here.port);
		assert_string_equal(said, expected);
		live_remove(s);
	}
	server_stop(&here);
}

static void a_port_opened_for_one_sandbox_is_not_anothers(void **state)
{
	(void)state;
	struct server here;
	char url[64];
	unsigned port = 0;
	struct sba_error err = { 0 };
	server_start(&here);
	struct sba_sandbox *one = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	struct sba_sandbox *two = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	assert_int_equal(sba_sandbox_host_url(one, here.port, url, sizeof(url), &err), 0);
	assert_int_equal(sscanf(url, "http://127.0.0.1:%u", &port), 1);
	SBA_FREE char *said = get_inside(two, "127.0.0.1", (uint16_t)port);
	assert_non_null(strstr(said, "failed"));
	assert_int_equal(atomic_load(&here.served), 0);
	live_remove(one);
	live_remove(two);
	server_stop(&here);
}

/* ---- two clients ---- */

struct second {
	pthread_t thread;
	const char *name;
	int failures;
};

/* A client with a handle of its own, as another process would be. */
static void *work_beside(void *user)
{
	struct second *c = user;
	for (int i = 0; i < TURN_ROUNDS; i++) {
		struct sba_engine *e = NULL;
		struct sba_sandbox *s = NULL;
		LIVE_RESULT r = { .rc = -1 };
		if (sba_engine_open(NULL, &e, NULL) == 0 &&
		    sba_sandbox_open(e, live.prefix, c->name, &s, NULL) == 0)
			live_sh(s, "sleep 0.05; echo beside", &r);
		c->failures += r.rc < 0 || strcmp(r.out.data ? r.out.data : "", "beside\n") != 0;
		sba_sandbox_close(s);
		sba_engine_close(e);
	}
	return NULL;
}

static void two_clients_of_one_sandbox_do_not_disturb_each_other(void **state)
{
	(void)state;
	struct server here;
	char url[64], script[256];
	struct sba_error err = { 0 };
	unsigned port = 0;
	server_start(&here);
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .name = "shared", .network = "sealed" });
	struct second beside = { .name = "shared" };
	assert_int_equal(sba_sandbox_host_url(s, here.port, url, sizeof(url), &err), 0);
	assert_int_equal(sscanf(url, "http://127.0.0.1:%u", &port), 1);
	assert_int_equal(pthread_create(&beside.thread, NULL, work_beside, &beside), 0);
	/* One long command, and many connections of it, while the other comes and goes. */
	snprintf(script, sizeof(script),
		 "for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/%u || exit 9; "
		 "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; grep -c here <&3; done | sort | uniq -c "
		 "| tr -d ' '",
		 port);
	const char *const argv[] = { "bash", "-c", script, NULL };
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv }, &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "1001\n");
	pthread_join(beside.thread, NULL);
	assert_int_equal(beside.failures, 0);
	live_remove(s);
	server_stop(&here);
}

static void a_chat_and_an_exec_share_a_sandbox(void **state)
{
	(void)state;
	NEEDS(claude_image);
	LIVE_CHILD up, chat, exec, rm;
	RUN(&up, "up", "claude", "--offline", "--image", claude_image, "--name", "both");
	live_assert_says(&up, 0, NULL);
	const char *const argv[] = { "chat", "both", "run: sleep 3; echo slept", NULL };
	live_start(&chat, &(struct live_start){ .argv = argv });
	for (int i = 0; i < 5; i++) {
		RUN(&exec, "exec", "both", "--", "echo", "beside");
		live_assert_says(&exec, 0, NULL);
		assert_string_equal(exec.out.data, "beside\n");
		live_child_fini(&exec);
		exec = (struct live_child){
			.in = -1, .held_in = -1, .out_fd = -1, .err_fd = -1, .screen_fd = -1
		};
	}
	live_child_end(&chat, 60000);
	live_assert_says(&chat, 0, NULL);
	assert_non_null(strstr(chat.out.data, "slept"));
	RUN(&rm, "rm", "both");
	live_assert_says(&rm, 0, NULL);
}

/* Clients of their own, of which one is killed. */
static void two_execs_at_once_end_each_for_itself(void **state)
{
	static const char *const first[] = { "exec", "pair", "--",
					     "sh",   "-c",   "echo up; sleep 1000; echo never",
					     NULL };
	static const char *const second[] = { "exec", "pair", "--",
					      "sh",   "-c",   "echo up; sleep 2; echo down",
					      NULL };
	(void)state;
	LIVE_CHILD one, two;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "pair" });
	live_start(&one, &(struct live_start){ .argv = first });
	live_start(&two, &(struct live_start){ .argv = second });
	live_child_await(&one, "up\n", 20000);
	live_child_await(&two, "up\n", 20000);
	assert_int_equal(kill(one.pid, SIGKILL), 0);
	live_child_end(&one, 10000);
	live_await_inside(sba_sandbox_container(s), "sleep 1000", false, 15000);
	live_child_end(&two, 30000);
	live_assert_says(&two, 0, NULL);
	assert_string_equal(two.out.data, "up\ndown\n");
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_sealed_sandbox_has_nothing_but_loopback),
		LIVE_TEST(look_ups_of_a_sealed_sandbox_fail_at_once),
		LIVE_TEST(the_hosts_own_loopback_is_not_a_sealed_sandboxs),
		LIVE_TEST(the_model_works_in_a_sealed_sandbox),
		LIVE_TEST(the_model_is_reached_through_the_channel_on_an_open_network_too),
		LIVE_TEST(a_rule_opens_what_it_names_and_nothing_else),
		LIVE_TEST(a_proxy_of_their_own_inside_gets_no_further),
		LIVE_TEST(a_server_inside_is_reached_from_here_by_fifty_at_once),
		LIVE_TEST(a_port_where_nobody_listens_inside_is_closed_at_once),
		LIVE_TEST(a_server_here_is_reached_from_inside),
		LIVE_TEST(a_port_opened_for_one_sandbox_is_not_anothers),
		LIVE_TEST(two_clients_of_one_sandbox_do_not_disturb_each_other),
		LIVE_TEST(a_chat_and_an_exec_share_a_sandbox),
		LIVE_TEST(two_execs_at_once_end_each_for_itself),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
