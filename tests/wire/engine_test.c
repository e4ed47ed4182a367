/* SPDX-License-Identifier: MIT */
/*
 * Requests on the wire: versions, kept connections, uploads, and what becomes
 * of an engine that misbehaves in any of the ways seen or feared.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "base/limits.h"
#include "support/fake_engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START(api, ...)                                                                            \
	static const struct fake_exchange script_[] = { __VA_ARGS__ };                             \
	struct fake_engine *f = fake_engine_start(api, script_, SBA_ARRAY_LEN(script_));           \
	struct sba_engine *e = open_engine(f, NULL)

static const struct sba_request get_thing = { .method = "GET", .path = "/thing" };
static const struct sba_request post_thing = { .method = "POST", .path = "/thing" };

static int prepare(void **state)
{
	static const char *const names[] = { "DOCKER_HOST",   "DOCKER_CONTEXT",
					     "DOCKER_CONFIG", "DOCKER_TLS_VERIFY",
					     "DOCKER_TLS",    "DOCKER_API_VERSION" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	setenv("HOME", "/nonexistent", 1);
	alarm(30);
	return 0;
}

static struct sba_engine *open_engine(struct fake_engine *f, struct sba_cancel *cancel)
{
	struct sba_engine_options o = { .host = fake_engine_host(f), .cancel = cancel };
	struct sba_engine *e = NULL;
	struct sba_error err = { 0 };
	int rc = sba_engine_open(&o, &e, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	return e;
}

static struct sba_until soon(void)
{
	return sba_until_in(10000);
}

static void stop(struct fake_engine *f, struct sba_engine *e)
{
	sba_engine_close(e);
	fake_engine_stop(f);
}

static int call(struct sba_engine *e, const struct sba_request *r, struct sba_error *err)
{
	json_t *j = NULL;
	*err = (struct sba_error){ 0 };
	int rc = sba_engine_call(e, r, soon(), &j, err);
	assert_true(rc == 0 || j == NULL);
	assert_int_equal(rc, err->code);
	json_decref(j);
	return rc;
}

static void assert_says(const struct sba_error *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("'%s' does not say '%s'", err->text, words);
}

/* ---- opening ---- */

static void check_version(const char *theirs, const char *used)
{
	struct fake_exchange x = { .answer = FAKE_ANSWER("200 OK", "null"), .then = FAKE_CLOSE };
	struct fake_engine *f = fake_engine_start(theirs, &x, 1);
	struct sba_engine *e = open_engine(f, NULL);
	struct sba_error err;
	char line[64];
	assert_int_equal(call(e, &get_thing, &err), 0);
	snprintf(line, sizeof(line), "GET /v%s/thing HTTP/1.1\r\n", used);
	assert_memory_equal(fake_engine_seen(f, 0), line, strlen(line));
	stop(f, e);
}

/* C-37, C-38. */
static void speaks_the_highest_version_both_know(void **state)
{
	(void)state;
	check_version("1.40", "1.40");
	check_version("1.41", "1.41");
	check_version("1.52", "1.47");
	setenv("DOCKER_API_VERSION", "v1.41", 1);
	check_version("1.44", "1.41");
}

static int open_host(const char *host, struct sba_error *err)
{
	struct sba_engine_options o = { .host = host };
	struct sba_engine *e = NULL;
	int rc = sba_engine_open(&o, &e, err);
	assert_true(rc == 0 || e == NULL);
	sba_engine_close(e);
	return rc;
}

/* C-38. */
static void refuses_an_engine_that_is_too_old(void **state)
{
	struct sba_error err;
	struct fake_engine *f = fake_engine_start("1.39", NULL, 0);
	(void)state;
	assert_int_equal(open_host(fake_engine_host(f), &err), SBA_EUNSUPPORTED);
	assert_says(&err, "API 1.39 is too old");
	fake_engine_stop(f);
}

static void refuses_a_pinned_version_the_engine_lacks(void **state)
{
	struct sba_error err;
	struct fake_engine *f = fake_engine_start("1.41", NULL, 0);
	(void)state;
	setenv("DOCKER_API_VERSION", "1.47", 1);
	assert_int_equal(open_host(fake_engine_host(f), &err), SBA_EUNSUPPORTED);
	assert_says(&err, "DOCKER_API_VERSION is 1.47, it speaks up to 1.41");
	fake_engine_stop(f);
}

/* C-37. */
static void an_engine_that_outgrew_us_is_unsupported(void **state)
{
	struct sba_error err;
	(void)state;
	START("1.60", { .answer = FAKE_ANSWER("400 Bad Request",
					      "{\"message\":\"client version 1.47 is too old. "
					      "Minimum supported API version is 1.50\"}"),
			.then = FAKE_CLOSE });
	assert_int_equal(call(e, &get_thing, &err), SBA_EUNSUPPORTED);
	stop(f, e);
}

static void open_fails_on(const char *answer, int code, const char *words)
{
	struct fake_exchange x = { .path = "/_ping", .answer = answer, .then = FAKE_CLOSE };
	struct fake_engine *f = fake_engine_start("1.41", &x, 1);
	struct sba_error err;
	assert_int_equal(open_host(fake_engine_host(f), &err), code);
	assert_says(&err, words);
	fake_engine_stop(f);
}

/* C-41 */
static void proxy_variables_do_not_concern_it(void **state)
{
	static const char *const names[] = { "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy" };
	struct sba_error err;
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		setenv(names[i], "http://127.0.0.1:1", 1);
	START("1.41", { .answer = FAKE_ANSWER("200 OK", "null"), .then = FAKE_CLOSE });
	assert_int_equal(call(e, &get_thing, &err), 0);
	stop(f, e);
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

static void tells_what_is_no_engine(void **state)
{
	(void)state;
	open_fails_on("SSH-2.0-OpenSSH_9.2\r\n", SBA_EPROTO, "not an HTTP answer");
	open_fails_on("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", SBA_EPROTO,
		      "is no Docker Engine");
	open_fails_on(
		"HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.",
		SBA_EENGINE, "HTTPS server");
	open_fails_on("", SBA_ELOST, "closed the connection unanswered");
}

static void says_how_to_reach_an_engine_that_is_not_there(void **state)
{
	struct sba_error err;
	char host[200];
	(void)state;
	assert_int_equal(open_host("unix:///nonexistent/x.sock", &err), SBA_ECONNECT);
	assert_string_equal(err.text, "no engine answers at unix:///nonexistent/x.sock: "
				      "No such file or directory");
	assert_non_null(strstr(err.hint, "systemctl start docker"));
	snprintf(host, sizeof(host), "unix:///%0108d", 1);
	assert_int_equal(open_host(host, &err), SBA_EINVAL);
	assert_says(&err, "at most 107 bytes");
	assert_int_equal(open_host("tcp://127.0.0.1:1", &err), SBA_ECONNECT);
	setenv("DOCKER_CONTEXT", "gone", 1);
	assert_int_equal(open_host(NULL, &err), SBA_EINVAL);
	assert_says(&err, "docker context 'gone' does not exist");
}

/* root may use every socket: try as somebody else. */
static void says_who_may_use_the_socket(void **state)
{
	struct fake_engine *f = fake_engine_start("1.41", NULL, 0);
	const char *path = fake_engine_host(f) + strlen("unix://");
	int status;
	(void)state;
	assert_return_code(chmod(path, 0600), 0);
	if (geteuid() != 0)
		assert_return_code(chmod(path, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct sba_error err;
		if (geteuid() == 0 && setuid(65534) != 0)
			_exit(2);
		int rc = open_host(fake_engine_host(f), &err);
		_exit(rc == SBA_EPERM && strstr(err.hint, "usermod") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* the folder of mkdtemp is closed to others as well: either refusal will do */
	assert_int_equal(status, 0);
	fake_engine_stop(f);
}

/* ---- answers ---- */

static void answer_is(const char *answer, enum fake_then then, bool bytes, int code,
		      const char *words)
{
	struct fake_exchange x = { .answer = answer, .then = then, .bytes = bytes };
	struct fake_engine *f = fake_engine_start("1.41", &x, 1);
	struct sba_engine *e = open_engine(f, NULL);
	struct sba_error err;
	assert_int_equal(call(e, &get_thing, &err), code);
	assert_says(&err, words);
	stop(f, e);
}

static void reads_an_answer_that_comes_byte_by_byte(void **state)
{
	(void)state;
	answer_is("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\nTrailer: 1\r\n\r\n",
		  FAKE_KEEP, true, 0, "");
}

static void passes_the_engines_words_on(void **state)
{
	struct sba_error err;
	(void)state;
	answer_is(FAKE_ANSWER("500 Internal Server Error", "oops\r\n"), FAKE_CLOSE, false,
		  SBA_EENGINE, "/thing: oops");
	answer_is(FAKE_ANSWER("409 Conflict", "{\"message\":\"name \\u001b[31m taken\"}\n"),
		  FAKE_CLOSE, false, SBA_EEXIST, "/thing: name \\x1b[31m taken");
	answer_is(FAKE_ANSWER("403 Forbidden", ""), FAKE_CLOSE, false, SBA_EENGINE,
		  "the engine says 403 Forbidden");
	answer_is("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such thi", FAKE_CLOSE,
		  false, SBA_ENOTFOUND, "no such thi");
	START("1.41", { .answer = FAKE_ANSWER("404 Not Found", "x"), .then = FAKE_CLOSE });
	assert_int_equal(call(e, &get_thing, &err), SBA_ENOTFOUND);
	assert_int_equal(err.http_status, 404);
	stop(f, e);
}

static void a_cut_answer_is_no_success(void **state)
{
	(void)state;
	answer_is("HTTP/1.1 200 OK\r\nContent-Le", FAKE_CLOSE, false, SBA_ELOST,
		  "in the middle of its answer");
	answer_is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nnull", FAKE_CLOSE, false, SBA_ELOST,
		  "closed the connection in the middle");
	answer_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnull\r\n", FAKE_CLOSE,
		  false, SBA_ELOST, "closed the connection in the middle");
}

static void broken_answers_are_protocol_errors(void **state)
{
	(void)state;
	answer_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", FAKE_KEEP, false,
		  SBA_EPROTO, "chunked");
	answer_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", FAKE_KEEP, false,
		  SBA_EPROTO, "gzip");
	answer_is("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", FAKE_KEEP, false, SBA_EPROTO,
		  "content length");
	answer_is("HTTP/1.1 101 UPGRADED\r\n\r\n", FAKE_KEEP, false, SBA_EPROTO, "unasked");
	answer_is(FAKE_ANSWER("200 OK", "{\"a\":1"), FAKE_CLOSE, false, SBA_EPROTO, "not JSON");
	answer_is("\x16\x03\x01\x02", FAKE_KEEP, false, SBA_EPROTO, "not an HTTP answer");
}

static void a_flood_of_headers_is_refused(void **state)
{
	char *flood = malloc(64 * SBA_KIB);
	(void)state;
	memset(flood, 'a', 64 * SBA_KIB - 1);
	flood[64 * SBA_KIB - 1] = '\0';
	memcpy(flood, "HTTP/1.1 200 OK\r\nX: ", 20);
	answer_is(flood, FAKE_CLOSE, false, SBA_EPROTO, "larger than 16384 bytes");
	free(flood);
}

static void a_body_beyond_the_ceiling_is_refused(void **state)
{
	size_t size = SBA_ENGINE_BODY_MAX + 64 * SBA_KIB;
	char *big = malloc(size);
	(void)state;
	memset(big, ' ', size - 1);
	big[size - 1] = '\0';
	memcpy(big, "HTTP/1.1 200 OK\r\n\r\n", 19);
	answer_is(big, FAKE_CLOSE, false, SBA_ELIMIT, "larger than");
	free(big);
}

static void silence_ends_at_the_deadline(void **state)
{
	struct sba_error err;
	json_t *j;
	(void)state;
	START("1.41", { .then = FAKE_SILENCE });
	int64_t begin = sba_now_ms();
	assert_int_equal(sba_engine_call(e, &get_thing, sba_until_in(150), &j, &err), SBA_ETIMEOUT);
	assert_in_range(sba_now_ms() - begin, 100, 5000);
	stop(f, e);
}

/* ---- kept connections ---- */

static void one_connection_serves_all_requests(void **state)
{
	struct sba_error err;
	char *ok = fake_json("{}");
	struct fake_exchange x = { .answer = ok, .forever = true };
	struct fake_engine *f = fake_engine_start("1.41", &x, 1);
	struct sba_engine *e = open_engine(f, NULL);
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(call(e, i % 2 ? &get_thing : &post_thing, &err), 0);
	assert_int_equal(fake_engine_connections(f), 1);
	stop(f, e);
	free(ok);
}

static void a_kept_connection_closed_meanwhile_is_replaced(void **state)
{
	struct sba_error err;
	(void)state;
	START("1.41", { .answer = FAKE_EMPTY, .then = FAKE_CLOSE }, { .answer = FAKE_EMPTY });
	assert_int_equal(call(e, &post_thing, &err), 0);
	fake_engine_await_closed(f, 1);
	assert_int_equal(call(e, &post_thing, &err), 0);
	assert_int_equal(fake_engine_connections(f), 2);
	stop(f, e);
}

/* The engine closes just when the request arrives: nobody can know whether it
 * was carried out. */
static void a_get_is_repeated_on_a_new_connection(void **state)
{
	struct sba_error err;
	(void)state;
	START("1.41", { .answer = FAKE_EMPTY }, { .then = FAKE_CLOSE }, { .answer = FAKE_EMPTY });
	assert_int_equal(call(e, &get_thing, &err), 0);
	assert_int_equal(call(e, &get_thing, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(fake_engine_requests(f), 3);
	stop(f, e);
}

static void a_post_is_never_sent_twice(void **state)
{
	struct sba_error err;
	(void)state;
	START("1.41", { .answer = FAKE_EMPTY }, { .then = FAKE_CLOSE });
	assert_int_equal(call(e, &get_thing, &err), 0);
	assert_int_equal(call(e, &post_thing, &err), SBA_ELOST);
	assert_int_equal(fake_engine_requests(f), 2);
	stop(f, e);
}

/* ---- uploads ---- */

struct zeros {
	size_t left, asked;
	int fail;
};

static ssize_t zeros(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct zeros *z = user;
	z->asked++;
	if (z->fail && z->left == 0)
		return sba_fail(err, z->fail, "the disk is gone");
	size_t n = z->left < size ? z->left : size;
	memset(buf, 0, n);
	z->left -= n;
	return (ssize_t)n;
}

static int put(struct sba_engine *e, struct zeros *z, struct sba_error *err)
{
	return sba_container_put(e, "c", "/a b+c", zeros, z, soon(), err);
}

static void an_upload_arrives_whole(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = 1000 };
	(void)state;
	START("1.41", { .method = "PUT",
			.path = "/containers/c/archive?path=%2Fa%20b%2Bc&noOverwriteDirNonDir=1 ",
			.body = "000003e8\r\n",
			.answer = FAKE_EMPTY });
	assert_int_equal(put(e, &z, &err), 0);
	stop(f, e);
}

static void a_refusal_comes_before_a_byte_is_sent(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = SIZE_MAX };
	(void)state;
	START("1.41", { .early = true,
			.answer = FAKE_ANSWER("404 Not Found", "{\"message\":\"no such folder\"}"),
			.then = FAKE_CLOSE });
	assert_int_equal(put(e, &z, &err), SBA_ENOTFOUND);
	assert_says(&err, "no such folder");
	assert_int_equal(z.asked, 0);
	stop(f, e);
}

/* Said while the body comes, with a reset behind it. */
static void an_early_answer_counts_and_not_the_broken_pipe(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = SIZE_MAX };
	(void)state;
	START("1.41", { .early = true,
			.answer = "HTTP/1.1 100 Continue\r\n\r\n"
				  "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 8\r\n\r\n"
				  "bad tar\n",
			.first = 25,
			.then = FAKE_CLOSE });
	assert_int_equal(put(e, &z, &err), SBA_EENGINE);
	assert_says(&err, "bad tar");
	stop(f, e);
}

static void a_source_that_fails_breaks_the_upload_off(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = 100000, .fail = SBA_EIO };
	(void)state;
	START("1.41",
	      { .early = true, .answer = "HTTP/1.1 100 Continue\r\n\r\n", .then = FAKE_SWALLOW });
	assert_int_equal(put(e, &z, &err), SBA_EIO);
	assert_says(&err, "the disk is gone");
	stop(f, e);
}

static void an_upload_that_nobody_reads_ends_at_the_deadline(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = SIZE_MAX };
	(void)state;
	START("1.41",
	      { .early = true, .answer = "HTTP/1.1 100 Continue\r\n\r\n", .then = FAKE_SILENCE });
	assert_int_equal(sba_container_put(e, "c", "/", zeros, &z, sba_until_in(200), &err),
			 SBA_ETIMEOUT);
	stop(f, e);
}

/* Nothing of the source is lost as long as it was not asked. */
static void an_upload_not_yet_begun_is_repeated(void **state)
{
	struct sba_error err;
	struct zeros z = { .left = 1000 };
	(void)state;
	START("1.41", { .answer = FAKE_EMPTY },
	      { .method = "PUT", .early = true, .then = FAKE_CLOSE },
	      { .method = "PUT", .body = "000003e8\r\n", .answer = FAKE_EMPTY });
	assert_int_equal(call(e, &get_thing, &err), 0);
	assert_int_equal(put(e, &z, &err), 0);
	assert_int_equal(z.asked, 2);
	stop(f, e);
}

/* ---- threads ---- */

enum { THREADS = 8, CALLS = 50 };

static void *call_often(void *arg)
{
	struct sba_error err;
	for (int i = 0; i < CALLS; i++) {
		if (sba_engine_call(arg, &get_thing, soon(), NULL, &err) < 0)
			return arg;
	}
	return NULL;
}

static void threads_share_a_handle(void **state)
{
	char *ok = fake_json("{}");
	struct fake_exchange x = { .answer = ok, .forever = true };
	struct fake_engine *f = fake_engine_start("1.41", &x, 1);
	struct sba_engine *e = open_engine(f, NULL);
	pthread_t threads[THREADS];
	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, e), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(fake_engine_requests(f), THREADS * CALLS);
	stop(f, e);
	free(ok);
}

/* ---- cancelling ---- */

struct firing {
	struct fake_engine *f;
	struct sba_cancel *c;
};

static void *fire_once_asked(void *arg)
{
	struct firing *x = arg;
	fake_engine_await_requests(x->f, 1);
	sba_cancel_fire(x->c);
	return NULL;
}

static void cancelling_ends_a_wait_at_once_but_not_a_removal(void **state)
{
	static const struct fake_exchange script[] = {
		{ .then = FAKE_SILENCE },
		{ .method = "DELETE", .answer = FAKE_EMPTY },
	};
	struct fake_engine *f = fake_engine_start("1.41", script, 2);
	struct sba_cancel *c;
	struct sba_error err;
	pthread_t t;
	(void)state;
	assert_int_equal(sba_cancel_new(&c, &err), 0);
	struct sba_engine *e = open_engine(f, c);
	struct firing x = { f, c };
	assert_int_equal(pthread_create(&t, NULL, fire_once_asked, &x), 0);
	assert_int_equal(call(e, &get_thing, &err), SBA_ECANCELED);
	pthread_join(t, NULL);
	assert_int_equal(call(e, &get_thing, &err), SBA_ECANCELED);
	assert_int_equal(sba_container_remove(e, "c", soon(), &err), 0);
	stop(f, e);
	sba_cancel_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(speaks_the_highest_version_both_know, prepare),
		cmocka_unit_test_setup(refuses_an_engine_that_is_too_old, prepare),
		cmocka_unit_test_setup(refuses_a_pinned_version_the_engine_lacks, prepare),
		cmocka_unit_test_setup(an_engine_that_outgrew_us_is_unsupported, prepare),
		cmocka_unit_test_setup(proxy_variables_do_not_concern_it, prepare),
		cmocka_unit_test_setup(tells_what_is_no_engine, prepare),
		cmocka_unit_test_setup(says_how_to_reach_an_engine_that_is_not_there, prepare),
		cmocka_unit_test_setup(says_who_may_use_the_socket, prepare),
		cmocka_unit_test_setup(reads_an_answer_that_comes_byte_by_byte, prepare),
		cmocka_unit_test_setup(passes_the_engines_words_on, prepare),
		cmocka_unit_test_setup(a_cut_answer_is_no_success, prepare),
		cmocka_unit_test_setup(broken_answers_are_protocol_errors, prepare),
		cmocka_unit_test_setup(a_flood_of_headers_is_refused, prepare),
		cmocka_unit_test_setup(a_body_beyond_the_ceiling_is_refused, prepare),
		cmocka_unit_test_setup(silence_ends_at_the_deadline, prepare),
		cmocka_unit_test_setup(one_connection_serves_all_requests, prepare),
		cmocka_unit_test_setup(a_kept_connection_closed_meanwhile_is_replaced, prepare),
		cmocka_unit_test_setup(a_get_is_repeated_on_a_new_connection, prepare),
		cmocka_unit_test_setup(a_post_is_never_sent_twice, prepare),
		cmocka_unit_test_setup(an_upload_arrives_whole, prepare),
		cmocka_unit_test_setup(a_refusal_comes_before_a_byte_is_sent, prepare),
		cmocka_unit_test_setup(an_early_answer_counts_and_not_the_broken_pipe, prepare),
		cmocka_unit_test_setup(a_source_that_fails_breaks_the_upload_off, prepare),
		cmocka_unit_test_setup(an_upload_that_nobody_reads_ends_at_the_deadline, prepare),
		cmocka_unit_test_setup(an_upload_not_yet_begun_is_repeated, prepare),
		cmocka_unit_test_setup(threads_share_a_handle, prepare),
		cmocka_unit_test_setup(cancelling_ends_a_wait_at_once_but_not_a_removal, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
