/* SPDX-License-Identifier: MIT */
/* A container that is not ours, at an engine that says odd things of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/backend.h>

#include "base/base.h"
#include "support/fake_engine.h"

#include <string.h>
#include <unistd.h>

#define UPGRADED                                                                                   \
	"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"             \
	"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
#define OK(json) .answer = FAKE_ANSWER("200 OK", json), .then = FAKE_CLOSE
#define WEB(state)                                                                                 \
	"{\"Id\":\"0123abcd\",\"Name\":\"/web\",\"State\":{" state                                 \
	"},\"Config\":{\"Image\":\"i:1\",\"WorkingDir\":\"/srv\"}}"
#define INSPECT(json)                                                                              \
	{                                                                                          \
		.method = "GET", .path = "/containers/web/json ", OK(json)                         \
	}
#define CREATED                                                                                    \
	{                                                                                          \
		.method = "POST", .path = "/containers/0123abcd/exec ",                            \
		.answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"), .then = FAKE_CLOSE      \
	}
#define STARTED(bytes, after_it)                                                                   \
	{                                                                                          \
		.method = "POST", .path = "/exec/feed/start ", .answer = UPGRADED bytes,           \
		.answer_len = sizeof(UPGRADED bytes) - 1, .then = after_it                         \
	}
#define EXEC_IS(json)                                                                              \
	{                                                                                          \
		.method = "GET", .path = "/exec/feed/json ", OK(json)                              \
	}
#define CONTAINER_IS(state)                                                                        \
	{                                                                                          \
		.method = "GET", .path = "/containers/0123abcd/json ", OK(WEB(state))              \
	}
#define ALIVE "\"Running\":true"

struct world {
	struct fake_engine *f;
	struct sba_engine *e;
	struct sba_sandbox *box;
	struct sba_process *p;
};

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	return 0;
}

static int borrow(struct world *w, const struct fake_exchange *script, size_t n,
		  struct sba_error *err)
{
	*w = (struct world){ .f = fake_engine_start("1.41", script, n) };
	const struct sba_engine_options o = { .host = fake_engine_host(w->f) };
	assert_int_equal(sba_engine_open(&o, &w->e, err), 0);
	return sba_sandbox_open_container(w->e, "web", &w->box, err);
}

static void begin(struct world *w, const struct fake_exchange *script, size_t n)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_error err = { 0 };
	assert_int_equal(borrow(w, script, n, &err), 0);
	assert_int_equal(sba_sandbox_exec(w->box, &o, &w->p, &err), 0);
}

static void end(struct world *w)
{
	sba_process_free(w->p);
	sba_sandbox_close(w->box);
	sba_engine_close(w->e);
	fake_engine_stop(w->f);
}

static int outcome(struct world *w, struct sba_exit *ret, struct sba_error *err)
{
	return sba_process_wait(w->p, 30000, ret, err);
}

/* ---- opening ---- */

static void what_is_no_running_container_is_told(void **state)
{
	(void)state;
	static const struct {
		struct fake_exchange x;
		int code;
		const char *words;
	} cases[] = {
		{ INSPECT("{}"), SBA_EPROTO, "does not say" },
		{ INSPECT("[]"), SBA_EPROTO, "" },
		{ INSPECT(WEB("\"Status\":\"exited\"")), SBA_EBROKEN, "does not run (exited)" },
		{ INSPECT(WEB("\"Paused\":true,\"Running\":true")), SBA_EBROKEN, "is paused" },
		{ INSPECT("{\"Id\":\"0123456789012345678901234567890123456789012345678901234567890"
			  "123456789\",\"Name\":\"/web\"}"),
		  SBA_EPROTO, "does not say" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		struct sba_error err = { 0 };
		assert_int_equal(borrow(&w, &cases[i].x, 1, &err), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].words));
		end(&w);
	}
}

/* ---- commands ---- */

static void a_stream_that_ends_early_is_no_end(void **state)
{
	(void)state;
	static const struct fake_exchange script[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("\1\0\0\0\0\0\0\5hel", FAKE_CLOSE),
		/* It may run on: it is to end when its handle is freed. */
		{ .method = "POST",
		  .path = "/containers/0123abcd/exec ",
		  .body = "/proc/[0-9]*",
		  .answer = FAKE_ANSWER("500 Internal Server Error", "{}"),
		  .then = FAKE_CLOSE },
	};
	struct world w;
	struct sba_exit how = { 0 };
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(outcome(&w, &how, &err), SBA_ELOST);
	end(&w);
}

/* The engine has it ended, and others hold its stream: nothing comes, and no end of it. */
static void an_end_that_the_stream_does_not_tell_is_found(void **state)
{
	(void)state;
	static const struct fake_exchange script[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("\1\0\0\0\0\0\0\2hi", FAKE_SILENCE),
		EXEC_IS("{\"Running\":false,\"ExitCode\":9}"),
	};
	struct world w;
	struct sba_exit how = { 0 };
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(outcome(&w, &how, &err), 0);
	assert_int_equal(how.kind, SBA_EXITED);
	assert_int_equal(how.number, 9);
	assert_true(sba_process_output_held(w.p));
	end(&w);
}

static void a_container_that_died_under_a_silent_stream_is_found(void **state)
{
	(void)state;
	static const struct fake_exchange script[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("", FAKE_SILENCE),
		EXEC_IS("{\"Running\":true,\"ExitCode\":null}"),
		CONTAINER_IS("\"Running\":false"),
	};
	struct world w;
	struct sba_exit how = { 0 };
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(outcome(&w, &how, &err), SBA_EBROKEN);
	assert_non_null(strstr(err.text, "container 'web' has ended"));
	end(&w);
}

#define NO_PROGRAM "exec: \"true\": executable file not found in $PATH"

/* As Docker 20.10 says it (stdout), Docker 25 (a frame of its own), Podman (stderr). */
static void a_program_that_is_not_there_is_known_by_any_engines_words(void **state)
{
	(void)state;
	static const struct fake_exchange by_stdout[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("\1\0\0\0\0\0\0\115OCI runtime exec failed: exec: \"true\": executable "
			"file "
			"not found in $PATH: u\n",
			FAKE_CLOSE),
		EXEC_IS("{\"Running\":false,\"ExitCode\":127}"),
		CONTAINER_IS(ALIVE),
	};
	static const struct fake_exchange by_frame[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("\3\0\0\0\0\0\0\62" NO_PROGRAM "12", FAKE_CLOSE),
	};
	static const struct fake_exchange by_stderr[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("\2\0\0\0\0\0\0\77"
			"Error: crun: executable file `true` not found in "
			"$PATH: No such",
			FAKE_CLOSE),
		EXEC_IS("{\"Running\":false,\"ExitCode\":127}"),
		CONTAINER_IS(ALIVE),
	};
	static const struct {
		const struct fake_exchange *v;
		size_t n;
	} cases[] = { { by_stdout, SBA_ARRAY_LEN(by_stdout) },
		      { by_frame, SBA_ARRAY_LEN(by_frame) },
		      { by_stderr, SBA_ARRAY_LEN(by_stderr) } };
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		struct sba_exit how = { 0 };
		struct sba_error err = { 0 };
		begin(&w, cases[i].v, cases[i].n);
		if (outcome(&w, &how, &err) < 0)
			fail_msg("%zu: %s", i, err.text);
		assert_int_equal(how.kind, SBA_NOT_FOUND);
		end(&w);
	}
}

/* What would end it does not come about either: nobody is kept waiting. */
static void a_deadline_at_an_engine_that_is_gone_is_told(void **state)
{
	(void)state;
	static const struct fake_exchange script[] = {
		INSPECT(WEB(ALIVE)),
		CREATED,
		STARTED("", FAKE_SILENCE),
		{ .answer = FAKE_ANSWER("500 Internal Server Error", "{\"message\":\"no more\"}"),
		  .forever = true,
		  .then = FAKE_CLOSE },
	};
	static const char *const argv[] = { "sleep", "1", NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 100 };
	struct world w;
	struct sba_exit how = { 0 };
	struct sba_error err = { 0 };
	assert_int_equal(borrow(&w, script, SBA_ARRAY_LEN(script), &err), 0);
	assert_int_equal(sba_sandbox_exec(w.box, &o, &w.p, &err), 0);
	assert_int_equal(outcome(&w, &how, &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "it was to end, and goes on"));
	assert_non_null(strstr(err.text, "no more"));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_no_running_container_is_told, prepare),
		cmocka_unit_test_setup(a_stream_that_ends_early_is_no_end, prepare),
		cmocka_unit_test_setup(an_end_that_the_stream_does_not_tell_is_found, prepare),
		cmocka_unit_test_setup(a_container_that_died_under_a_silent_stream_is_found,
				       prepare),
		cmocka_unit_test_setup(a_program_that_is_not_there_is_known_by_any_engines_words,
				       prepare),
		cmocka_unit_test_setup(a_deadline_at_an_engine_that_is_gone_is_told, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
