/* SPDX-License-Identifier: MIT */
/* The engine behind TLS: who is trusted, and half-close by close_notify. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "base/limits.h"
#include "support/fake_engine.h"
#include "support/tls_front.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world {
	struct fake_engine *f;
	struct tls_front *t;
};

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	unsetenv("DOCKER_TLS");
	setenv("DOCKER_TLS_VERIFY", "1", 1);
	alarm(30);
	return 0;
}

static void begin(struct world *w, const struct fake_exchange *script, size_t n,
		  struct tls_front_options o)
{
	char host[64];
	w->f = fake_engine_start("1.41", script, n);
	o.socket_path = fake_engine_host(w->f) + strlen("unix://");
	w->t = tls_front_start(&o);
	snprintf(host, sizeof(host), "tcp://127.0.0.1:%d", tls_front_port(w->t));
	setenv("DOCKER_HOST", host, 1);
	setenv("DOCKER_CERT_PATH", tls_front_folder(w->t), 1);
}

static void end(struct world *w)
{
	tls_front_stop(w->t);
	fake_engine_stop(w->f);
}

static int open_engine(struct sba_engine **ret, struct sba_error *err)
{
	*err = (struct sba_error){ 0 };
	return sba_engine_open(NULL, ret, err);
}

static struct sba_until soon(void)
{
	return sba_until_in(10000);
}

static void both_sides_prove_who_they_are(void **state)
{
	char *ok = fake_json("{\"a\":1}");
	const struct fake_exchange script[] = { { .answer = ok, .forever = true } };
	struct sba_request r = { .method = "GET", .path = "/thing" };
	struct sba_engine *e;
	struct sba_error err;
	struct world w;
	json_t *j;
	(void)state;
	begin(&w, script, 1, (struct tls_front_options){ .ask_certificate = true });
	int rc = open_engine(&e, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sba_engine_call(e, &r, soon(), &j, &err), 0);
		json_decref(j);
	}
	assert_int_equal(fake_engine_connections(w.f), 1);
	sba_engine_close(e);
	end(&w);
	free(ok);
}

static void a_certificate_for_another_host_is_refused(void **state)
{
	struct sba_engine *e;
	struct sba_error err;
	struct world w;
	char host[64];
	(void)state;
	begin(&w, NULL, 0, (struct tls_front_options){ 0 });
	snprintf(host, sizeof(host), "tcp://localhost:%d", tls_front_port(w.t));
	setenv("DOCKER_HOST", host, 1);
	assert_int_equal(open_engine(&e, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.text, "certificate for 'localhost': hostname mismatch"));
	/* DOCKER_TLS asks for TLS without looking at the certificate */
	unsetenv("DOCKER_TLS_VERIFY");
	setenv("DOCKER_TLS", "1", 1);
	assert_int_equal(open_engine(&e, &err), 0);
	sba_engine_close(e);
	end(&w);
}

static void an_unknown_authority_is_refused(void **state)
{
	struct sba_engine *e;
	struct sba_error err;
	struct world w, other;
	char host[64];
	(void)state;
	begin(&w, NULL, 0, (struct tls_front_options){ 0 });
	snprintf(host, sizeof(host), "%s", getenv("DOCKER_HOST"));
	begin(&other, NULL, 0, (struct tls_front_options){ 0 });
	setenv("DOCKER_HOST", host, 1);
	assert_int_equal(open_engine(&e, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.text, "certificate"));
	end(&w);
	end(&other);
}

static void plain_http_to_a_tls_port_fails(void **state)
{
	struct sba_engine *e;
	struct sba_error err;
	struct world w;
	(void)state;
	begin(&w, NULL, 0, (struct tls_front_options){ 0 });
	unsetenv("DOCKER_TLS_VERIFY");
	assert_true(open_engine(&e, &err) < 0);
	end(&w);
}

static const struct fake_exchange exec_script[] = {
	{ .answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"), .then = FAKE_CLOSE },
	{ .answer = "HTTP/1.1 101 UPGRADED\r\n\r\n",
	  .then = FAKE_SWALLOW,
	  .after = "\1\0\0\0\0\0\0\5hello",
	  .after_len = 13 },
};

/* Runs the exec of the script with `n` bytes of stdin; what the end says. */
static ssize_t run_exec(struct sba_engine *e, size_t n, char hello[6], struct sba_error *err)
{
	static const char *const argv[] = { "x", NULL };
	struct sba_exec_spec spec = { .container = "c", .argv = argv };
	enum sba_exec_stream stream;
	struct sba_exec *x;
	const char *data;
	char *zeros = calloc(1, n);
	assert_int_equal(sba_exec_open(e, &spec, soon(), &x, err), 0);
	for (size_t sent = 0; sent < n;) {
		ssize_t took = sba_exec_write(x, zeros, n - sent, err);
		assert_true(took >= 0);
		sent += (size_t)took;
		if (took == 0)
			assert_int_equal(sba_exec_read(x, &stream, &data, sba_until_in(1), err),
					 SBA_ETIMEOUT);
	}
	sba_exec_shutdown(x);
	ssize_t got = sba_exec_read(x, &stream, &data, soon(), err);
	assert_int_equal(got, 5);
	memcpy(hello, data, 5);
	got = sba_exec_read(x, &stream, &data, soon(), err);
	sba_exec_close(x);
	free(zeros);
	return got;
}

static void half_close_ends_stdin_and_leaves_the_output(void **state)
{
	enum { STDIN = 4 * SBA_MIB };
	char hello[6] = "";
	struct sba_engine *e;
	struct sba_error err;
	struct world w;
	(void)state;
	begin(&w, exec_script, 2, (struct tls_front_options){ 0 });
	assert_int_equal(open_engine(&e, &err), 0);
	assert_int_equal(run_exec(e, STDIN, hello, &err), 0);
	assert_string_equal(hello, "hello");
	assert_int_equal(fake_engine_swallowed(w.f), STDIN);
	sba_engine_close(e);
	end(&w);
}

/* Without close_notify the end may have been cut by anybody on the way. */
static void an_end_without_goodbye_is_lost(void **state)
{
	struct sba_request r = { .method = "GET", .path = "/thing" };
	const struct fake_exchange script[] = {
		{ .answer = FAKE_ANSWER("200 OK", "{}"), .then = FAKE_CLOSE },
	};
	struct sba_engine *e;
	struct sba_error err;
	struct world w;
	json_t *j;
	(void)state;
	begin(&w, script, 1, (struct tls_front_options){ .no_goodbye = true });
	assert_int_equal(open_engine(&e, &err), 0);
	assert_int_equal(sba_engine_call(e, &r, soon(), &j, &err), SBA_ELOST);
	sba_engine_close(e);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(both_sides_prove_who_they_are, prepare),
		cmocka_unit_test_setup(a_certificate_for_another_host_is_refused, prepare),
		cmocka_unit_test_setup(an_unknown_authority_is_refused, prepare),
		cmocka_unit_test_setup(plain_http_to_a_tls_port_fails, prepare),
		cmocka_unit_test_setup(half_close_ends_stdin_and_leaves_the_output, prepare),
		cmocka_unit_test_setup(an_end_without_goodbye_is_lost, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
