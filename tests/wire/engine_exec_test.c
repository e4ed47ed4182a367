/* SPDX-License-Identifier: MIT */
/* Exec streams on the wire: frames however they are cut, stdin, and the end. */
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
#include <unistd.h>

#define CREATED FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}")
#define CREATE                                                                                     \
	{                                                                                          \
		.method = "POST", .path = "/containers/c/exec ", .answer = CREATED,                \
		.then = FAKE_CLOSE                                                                 \
	}
#define UPGRADED                                                                                   \
	"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"             \
	"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
#define HELLO     "\1\0\0\0\0\0\0\5hello"
#define WORLD     "\2\0\0\0\0\0\0\6 world"
#define EMPTY     "\1\0\0\0\0\0\0\0"
#define STREAM(s) .answer = UPGRADED s, .answer_len = sizeof(UPGRADED s) - 1
#define INSPECT(json)                                                                              \
	{                                                                                          \
		.method = "GET", .path = "/exec/feed/json ",                                       \
		.answer = FAKE_ANSWER("200 OK", json), .then = FAKE_CLOSE                          \
	}
#define CONTAINER(json)                                                                            \
	{                                                                                          \
		.method = "GET", .path = "/containers/c/json ",                                    \
		.answer = FAKE_ANSWER("200 OK", json), .then = FAKE_CLOSE                          \
	}
#define RUNNING "{\"Running\":true,\"ExitCode\":null}"
#define ALIVE   "{\"State\":{\"Running\":true}}"
#define DEAD    "{\"State\":{\"Running\":false}}"

struct world {
	struct fake_engine *f;
	struct sba_engine *e;
	struct sba_exec *x;
};

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	return 0;
}

static struct sba_until soon(void)
{
	return sba_until_in(20000);
}

static int try_begin(struct world *w, const struct fake_exchange *script, size_t n,
		     struct sba_cancel *cancel, struct sba_error *err)
{
	static const char *const argv[] = { "true", NULL };
	struct sba_exec_spec spec = { .container = "c", .argv = argv };
	w->f = fake_engine_start("1.41", script, n);
	struct sba_engine_options o = { .host = fake_engine_host(w->f), .cancel = cancel };
	assert_int_equal(sba_engine_open(&o, &w->e, err), 0);
	w->x = NULL;
	return sba_exec_open(w->e, &spec, soon(), &w->x, err);
}

static void begin(struct world *w, const struct fake_exchange *script, size_t n)
{
	struct sba_error err = { 0 };
	int rc = try_begin(w, script, n, NULL, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
}

static void end(struct world *w)
{
	sba_exec_close(w->x);
	sba_engine_close(w->e);
	fake_engine_stop(w->f);
}

#define BEGIN(...)                                                                                 \
	static const struct fake_exchange script_[] = { CREATE, __VA_ARGS__ };                     \
	struct sba_error err = { 0 };                                                              \
	struct world w;                                                                            \
	(void)state;                                                                               \
	(void)err;                                                                                 \
	begin(&w, script_, SBA_ARRAY_LEN(script_))

/* All output, with what came on stderr in parentheses; the last return. */
static ssize_t read_all(struct sba_exec *x, struct sba_buf *out, struct sba_error *err)
{
	enum sba_exec_stream stream;
	const char *data;
	ssize_t n;
	while ((n = sba_exec_read(x, &stream, &data, soon(), err)) > 0) {
		if (stream == SBA_EXEC_STDERR)
			sba_buf_putc(out, '(');
		sba_buf_put(out, data, (size_t)n);
		if (stream == SBA_EXEC_STDERR)
			sba_buf_putc(out, ')');
	}
	return n;
}

static void expect_output(struct world *w, const char *wanted, int end_rc)
{
	struct sba_error err = { 0 };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_MIB);
	ssize_t n = read_all(w->x, &out, &err);
	assert_int_equal(n, end_rc);
	assert_int_equal(err.code, end_rc);
	assert_string_equal(out.data ? out.data : "", wanted);
}

/* ---- output ---- */

/* C-01: a head and the first frame in one piece. */
static void output_behind_the_head_belongs_to_the_stream(void **state)
{
	BEGIN({ .method = "POST",
		.path = "/exec/feed/start ",
		.body = "{\"Detach\":false,\"Tty\":false}",
		STREAM(HELLO EMPTY WORLD),
		.then = FAKE_CLOSE });
	assert_non_null(strstr(fake_engine_seen(w.f, 1), "\r\nUpgrade: tcp\r\n"));
	expect_output(&w, "hello( world)", 0);
	end(&w);
}

static void a_plain_200_begins_a_stream_too(void **state)
{
	BEGIN({ .answer = "HTTP/1.1 200 OK\r\n\r\n" HELLO,
		.answer_len = sizeof("HTTP/1.1 200 OK\r\n\r\n" HELLO) - 1,
		.then = FAKE_CLOSE });
	expect_output(&w, "hello", 0);
	end(&w);
}

static void frames_may_be_cut_anywhere(void **state)
{
	static const char all[] = UPGRADED HELLO EMPTY WORLD HELLO;
	(void)state;
	for (size_t cut = 1; cut < sizeof(all) - 1; cut++) {
		const struct fake_exchange script[] = {
			CREATE,
			{ .answer = all,
			  .answer_len = sizeof(all) - 1,
			  .first = cut,
			  .then = FAKE_CLOSE },
		};
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
		struct sba_error err;
		struct world w;
		begin(&w, script, 2);
		assert_int_equal(read_all(w.x, &out, &err), 0);
		/* a cut frame comes in two pieces: compare without the marks */
		size_t n = 0;
		for (size_t i = 0; i < out.len; i++) {
			if (!strchr("()", out.data[i]))
				out.data[n++] = out.data[i];
		}
		assert_int_equal(n, strlen("hello worldhello"));
		assert_memory_equal(out.data, "hello worldhello", n);
		end(&w);
	}
}

static void a_stream_cut_inside_a_frame_is_lost(void **state)
{
	BEGIN({ STREAM(HELLO "\1\0\0\0\0\0\0\7lo"), .then = FAKE_CLOSE });
	expect_output(&w, "hellolo", SBA_ELOST);
	end(&w);
}

static void a_stream_cut_inside_a_frames_head_is_lost(void **state)
{
	BEGIN({ STREAM(HELLO "\1\0\0"), .then = FAKE_CLOSE });
	expect_output(&w, "hello", SBA_ELOST);
	end(&w);
}

static void what_is_no_frame_is_a_protocol_error(void **state)
{
	BEGIN({ STREAM(HELLO "plain text"), .then = FAKE_CLOSE });
	expect_output(&w, "hello", SBA_EPROTO);
	end(&w);
}

static void a_frame_that_is_too_long_is_a_protocol_error(void **state)
{
	BEGIN({ STREAM("\1\0\0\0\xff\xff\xff\xff"), .then = FAKE_SILENCE });
	expect_output(&w, "", SBA_EPROTO);
	end(&w);
}

static void the_engines_own_error_in_the_stream_is_no_output(void **state)
{
	BEGIN({ STREAM(HELLO "\3\0\0\0\0\0\0\4oops"), .then = FAKE_CLOSE });
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	assert_int_equal(read_all(w.x, &out, &err), SBA_EENGINE);
	assert_string_equal(out.data, "hello");
	assert_string_equal(err.text, "exec in container 'c': oops");
	end(&w);
}

static void a_read_that_times_out_can_be_tried_again(void **state)
{
	BEGIN({ STREAM(HELLO), .then = FAKE_SILENCE });
	enum sba_exec_stream stream;
	const char *data;
	assert_int_equal(sba_exec_read(w.x, &stream, &data, soon(), &err), 5);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sba_exec_read(w.x, &stream, &data, sba_until_in(10), &err),
				 SBA_ETIMEOUT);
	end(&w);
}

/* ---- stdin ---- */

/* As much in either direction as cannot be in flight: who writes all before
 * reading would hang. */
static void stdin_and_output_flow_at_the_same_time(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_ECHO });
	enum { PIECE = 100000 };
	size_t total = 32 * (size_t)SBA_MIB, sent = 0, got = 0;
	char *piece = malloc(PIECE);
	for (int i = 0; i < PIECE; i++)
		piece[i] = (char)(i * 31);
	for (;;) {
		size_t at = sent % PIECE;
		size_t n = total - sent < PIECE - at ? total - sent : PIECE - at;
		ssize_t took = n > 0 ? sba_exec_write(w.x, piece + at, n, &err) : 0;
		assert_true(took >= 0);
		sent += (size_t)took;
		if (sent == total)
			sba_exec_shutdown(w.x);
		enum sba_exec_stream stream;
		const char *data;
		ssize_t r = sba_exec_read(w.x, &stream, &data, soon(), &err);
		assert_true(r >= 0);
		if (r == 0)
			break;
		for (ssize_t i = 0; i < r; i++, got++) {
			if (data[i] != piece[got % PIECE])
				fail_msg("byte %zu came back wrong", got);
		}
	}
	assert_int_equal(got, total);
	free(piece);
	end(&w);
}

static void the_queue_takes_no_more_than_its_limit(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_SILENCE });
	size_t size = 8 * (size_t)SBA_MIB;
	char *zeros = calloc(1, size);
	ssize_t took = sba_exec_write(w.x, zeros, size, &err);
	assert_in_range(took, SBA_EXEC_QUEUE_MAX, SBA_EXEC_QUEUE_MAX + 2 * SBA_MIB);
	assert_int_equal(sba_exec_write(w.x, zeros, size, &err), 0);
	assert_true(sba_exec_wants_write(w.x));
	free(zeros);
	end(&w);
}

/* C-04. */
static void half_close_comes_after_all_that_was_written(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_SWALLOW, .after = HELLO, .after_len = sizeof(HELLO) - 1 });
	char *zeros = calloc(1, SBA_MIB);
	assert_int_equal(sba_exec_write(w.x, zeros, SBA_MIB, &err), SBA_MIB);
	sba_exec_shutdown(w.x);
	assert_int_equal(sba_exec_write(w.x, zeros, 1, &err), SBA_EINVAL);
	expect_output(&w, "hello", 0);
	assert_int_equal(fake_engine_swallowed(w.f), SBA_MIB);
	free(zeros);
	end(&w);
}

static void a_reader_that_is_gone_swallows_stdin(void **state)
{
	BEGIN({ STREAM(HELLO), .then = FAKE_CLOSE });
	char *zeros = calloc(1, SBA_MIB);
	fake_engine_await_closed(w.f, 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(sba_exec_write(w.x, zeros, SBA_MIB, &err), SBA_MIB);
	sba_exec_shutdown(w.x);
	expect_output(&w, "hello", 0);
	free(zeros);
	end(&w);
}

/* ---- failing to begin ---- */

static void no_exec_in_a_container_that_does_not_run(void **state)
{
	static const struct fake_exchange script[] = {
		{ .answer = FAKE_ANSWER("409 Conflict",
					"{\"message\":\"Container c is not running\"}"),
		  .then = FAKE_CLOSE },
	};
	struct sba_error err;
	struct world w;
	(void)state;
	assert_int_equal(try_begin(&w, script, 1, NULL, &err), SBA_EBROKEN);
	assert_non_null(strstr(err.text, "is not running"));
	end(&w);
}

static void an_answer_without_a_raw_stream_is_a_protocol_error(void **state)
{
	static const struct fake_exchange script[] = {
		CREATE,
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" },
	};
	struct sba_error err;
	struct world w;
	(void)state;
	assert_int_equal(try_begin(&w, script, 2, NULL, &err), SBA_EPROTO);
	end(&w);
}

/* ---- a container's main process ---- */

static int try_attach(struct world *w, const struct fake_exchange *script, struct sba_error *err)
{
	w->f = fake_engine_start("1.41", script, 1);
	struct sba_engine_options o = { .host = fake_engine_host(w->f) };
	assert_int_equal(sba_engine_open(&o, &w->e, err), 0);
	w->x = NULL;
	return sba_exec_attach(w->e, "c", soon(), &w->x, err);
}

static void the_main_process_is_attached_to_in_one_request(void **state)
{
	static const struct fake_exchange script[] = {
		{ .method = "POST",
		  .path = "/containers/c/attach?stream=1&stdin=1&stdout=1&stderr=1 ",
		  STREAM(HELLO WORLD),
		  .then = FAKE_CLOSE },
	};
	struct sba_error err;
	struct world w;
	(void)state;
	assert_int_equal(try_attach(&w, script, &err), 0);
	expect_output(&w, "hello( world)", 0);
	end(&w);
}

static void no_stream_of_a_container_that_is_not_there(void **state)
{
	static const struct fake_exchange script[] = {
		{ .answer = FAKE_ANSWER("404 Not Found", "{\"message\":\"No such container: c\"}"),
		  .then = FAKE_CLOSE },
	};
	struct sba_error err;
	struct world w;
	(void)state;
	assert_int_equal(try_attach(&w, script, &err), SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "attach to container 'c'"));
	end(&w);
}

/* ---- the end ---- */

static void the_exit_code_is_waited_for(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_CLOSE }, INSPECT(RUNNING),
	      INSPECT("{\"Running\":false,\"ExitCode\":null}"),
	      INSPECT("{\"Running\":false,\"ExitCode\":3}"));
	int code = -1;
	expect_output(&w, "", 0);
	assert_int_equal(sba_exec_exit_code(w.x, soon(), &code, &err), 0);
	assert_int_equal(code, 3);
	end(&w);
}

static void a_killed_command_is_no_dead_container(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_CLOSE }, INSPECT("{\"Running\":false,\"ExitCode\":137}"),
	      CONTAINER(ALIVE));
	int code = -1;
	assert_int_equal(sba_exec_exit_code(w.x, soon(), &code, &err), 0);
	assert_int_equal(code, 137);
	end(&w);
}

static void a_dead_container_is_told_apart_from_an_exit_code(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_CLOSE }, INSPECT("{\"Running\":false,\"ExitCode\":137}"),
	      CONTAINER(DEAD));
	int code = -1;
	assert_int_equal(sba_exec_exit_code(w.x, soon(), &code, &err), SBA_EBROKEN);
	assert_int_equal(code, -1);
	end(&w);
}

static void an_exec_that_runs_for_ever_ends_at_the_deadline(void **state)
{
	BEGIN({ STREAM(""), .then = FAKE_CLOSE }, { .path = "/exec/feed/json ",
						    .answer = FAKE_ANSWER("200 OK", RUNNING),
						    .then = FAKE_CLOSE,
						    .forever = true });
	int code;
	assert_int_equal(sba_exec_exit_code(w.x, sba_until_in(60), &code, &err), SBA_ETIMEOUT);
	end(&w);
}

struct firing {
	struct fake_engine *f;
	struct sba_cancel *c;
};

static void *fire_once_started(void *arg)
{
	struct firing *x = arg;
	fake_engine_await_requests(x->f, 2);
	sba_cancel_fire(x->c);
	return NULL;
}

static void cancelling_ends_a_read_at_once(void **state)
{
	static const struct fake_exchange script[] = { CREATE,
						       { STREAM(""), .then = FAKE_SILENCE } };
	struct sba_error err;
	struct sba_cancel *c;
	struct world w;
	pthread_t t;
	enum sba_exec_stream stream;
	const char *data;
	(void)state;
	assert_int_equal(sba_cancel_new(&c, &err), 0);
	assert_int_equal(try_begin(&w, script, 2, c, &err), 0);
	struct firing x = { w.f, c };
	assert_int_equal(pthread_create(&t, NULL, fire_once_started, &x), 0);
	assert_int_equal(sba_exec_read(w.x, &stream, &data, soon(), &err), SBA_ECANCELED);
	pthread_join(t, NULL);
	end(&w);
	sba_cancel_free(c);
}

static bool runtime_error(int code, const char *text)
{
	return sba_exec_runtime_error(code, text, strlen(text));
}

static void the_runtimes_own_words_are_no_output(void **state)
{
	(void)state;
	assert_true(runtime_error(126, "OCI runtime exec failed: exec failed: unable to start "
				       "container process: exec: \"x\": not found: unknown\r\n"));
	assert_true(runtime_error(126, "unable to find user x: no matching entries in passwd "
				       "file\r\n"));
	assert_false(runtime_error(1, "OCI runtime exec failed: exec failed\r\n"));
	assert_false(runtime_error(127, "sh: x: not found\n"));
	assert_false(runtime_error(126, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(output_behind_the_head_belongs_to_the_stream, prepare),
		cmocka_unit_test_setup(a_plain_200_begins_a_stream_too, prepare),
		cmocka_unit_test_setup(frames_may_be_cut_anywhere, prepare),
		cmocka_unit_test_setup(a_stream_cut_inside_a_frame_is_lost, prepare),
		cmocka_unit_test_setup(a_stream_cut_inside_a_frames_head_is_lost, prepare),
		cmocka_unit_test_setup(what_is_no_frame_is_a_protocol_error, prepare),
		cmocka_unit_test_setup(a_frame_that_is_too_long_is_a_protocol_error, prepare),
		cmocka_unit_test_setup(the_engines_own_error_in_the_stream_is_no_output, prepare),
		cmocka_unit_test_setup(a_read_that_times_out_can_be_tried_again, prepare),
		cmocka_unit_test_setup(stdin_and_output_flow_at_the_same_time, prepare),
		cmocka_unit_test_setup(the_queue_takes_no_more_than_its_limit, prepare),
		cmocka_unit_test_setup(half_close_comes_after_all_that_was_written, prepare),
		cmocka_unit_test_setup(a_reader_that_is_gone_swallows_stdin, prepare),
		cmocka_unit_test_setup(no_exec_in_a_container_that_does_not_run, prepare),
		cmocka_unit_test_setup(an_answer_without_a_raw_stream_is_a_protocol_error, prepare),
		cmocka_unit_test_setup(the_main_process_is_attached_to_in_one_request, prepare),
		cmocka_unit_test_setup(no_stream_of_a_container_that_is_not_there, prepare),
		cmocka_unit_test_setup(the_exit_code_is_waited_for, prepare),
		cmocka_unit_test_setup(a_killed_command_is_no_dead_container, prepare),
		cmocka_unit_test_setup(a_dead_container_is_told_apart_from_an_exit_code, prepare),
		cmocka_unit_test_setup(an_exec_that_runs_for_ever_ends_at_the_deadline, prepare),
		cmocka_unit_test_setup(cancelling_ends_a_read_at_once, prepare),
		cmocka_unit_test_setup(the_runtimes_own_words_are_no_output, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
