/* SPDX-License-Identifier: MIT */
/* A command whose stream breaks: its loss is no success, and it is not left alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "sandbox/private.h"
#include "sandbox/session.h"
#include "support/fake_engine.h"

#include <string.h>
#include <unistd.h>

#define UPGRADED                                                                                   \
	"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"             \
	"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

struct world {
	struct fake_engine *f;
	struct sba_engine *e;
	struct sba_sandbox box;
	struct sba_process *p;
};

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	return 0;
}

static void begin(struct world *w, const char *answer)
{
	static const char *const argv[] = { "true", NULL };
	static struct fake_exchange script[3] = {
		{ .method = "POST",
		  .path = "/containers/main/exec ",
		  .answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"),
		  .then = FAKE_CLOSE },
		{ .method = "POST",
		  .path = "/exec/feed/start ",
		  .answer = UPGRADED,
		  .answer_len = sizeof(UPGRADED) - 1,
		  .then = FAKE_CLOSE },
	};
	struct sba_error err = { 0 };
	script[2] = (struct fake_exchange){ .answer = answer, .forever = true, .then = FAKE_CLOSE };
	w->f = fake_engine_start("1.41", script, SBA_ARRAY_LEN(script));
	struct sba_engine_options o = { .host = fake_engine_host(w->f) };
	assert_int_equal(sba_engine_open(&o, &w->e, &err), 0);
	w->box = (struct sba_sandbox){ .engine = w->e,
				       .container = "main",
				       .sidecar = "side",
				       .info = { .allow = "", .state = "idle", .pool = "" } };
	assert_int_equal(sba_session_new(&w->box, &w->box.session, &err), 0);
	struct sba_exec_options eo = { .argv = argv, .user = "someone", .timeout_ms = 20000 };
	assert_int_equal(sba_sandbox_exec(&w->box, &eo, &w->p, &err), 0);
}

static void end(struct world *w)
{
	sba_process_free(w->p);
	sba_session_free(w->box.session);
	sba_engine_close(w->e);
	fake_engine_stop(w->f);
}

static int read_all(struct world *w, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	ssize_t n;
	while ((n = sba_process_read(w->p, -1, &which, &data, err)) > 0)
		;
	return (int)n;
}

/* C-02: the stream has ended, and the command has not. */
static void a_command_that_runs_on_is_watched(void **state)
{
	(void)state;
	struct world w;
	struct sba_error err = { 0 };
	struct sba_exit how;
	begin(&w, FAKE_ANSWER("200 OK", "{\"Running\":true,\"ExitCode\":null,"
					"\"State\":{\"Running\":true}}"));
	assert_int_equal(read_all(&w, &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "it still runs"));
	assert_int_equal(read_all(&w, &err), SBA_ELOST);
	assert_int_equal(sba_process_wait(w.p, 200, &how, &err), SBA_ETIMEOUT);
	sba_process_cancel(w.p);
	assert_int_equal(sba_process_wait(w.p, -1, &how, &err), SBA_ECANCELED);
	assert_non_null(strstr(err.hint, "stop"));
	end(&w);
}

static void a_command_that_has_ended_unseen_is_no_success(void **state)
{
	(void)state;
	struct world w;
	struct sba_error err = { 0 };
	struct sba_exit how;
	begin(&w, FAKE_ANSWER("200 OK", "{\"Running\":false,\"ExitCode\":0,"
					"\"State\":{\"Running\":true}}"));
	assert_int_equal(read_all(&w, &err), SBA_ELOST);
	assert_int_equal(sba_process_wait(w.p, -1, &how, &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "how it ended is not known"));
	end(&w);
}

/* ---- before there is a stream ---- */

static int begin_with(struct world *w, const struct fake_exchange *script, size_t n,
		      struct sba_error *err)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_options o = { .argv = argv, .user = "someone", .timeout_ms = 20000 };
	*w = (struct world){ .f = fake_engine_start("1.41", script, n) };
	const struct sba_engine_options eo = { .host = fake_engine_host(w->f) };
	assert_int_equal(sba_engine_open(&eo, &w->e, err), 0);
	w->box = (struct sba_sandbox){
		.engine = w->e,
		.container = "main",
		.sidecar = "side",
		.info = { .name = "n", .allow = "", .state = "idle", .pool = "" }
	};
	assert_int_equal(sba_session_new(&w->box, &w->box.session, err), 0);
	return sba_sandbox_exec(&w->box, &o, &w->p, err);
}

#define CREATED                                                                                    \
	{                                                                                          \
		.path = "/containers/main/exec ",                                                  \
		.answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"), .then = FAKE_CLOSE      \
	}
#define ALIVE                                                                                      \
	{                                                                                          \
		.method = "GET",                                                                   \
		.answer = FAKE_ANSWER("200 OK", "{\"State\":{\"Running\":true}}"),                 \
		.forever = true, .then = FAKE_CLOSE                                                \
	}

static void an_engine_that_refuses_a_command_and_resets_is_quoted(void **state)
{
	static const struct fake_exchange script[] = {
		{ .path = "/containers/main/exec ",
		  .early = true,
		  .answer = FAKE_ANSWER("500 Internal Server Error",
					"{\"message\":\"no room for it\"}"),
		  .then = FAKE_CLOSE },
		ALIVE,
	};
	struct world w;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(begin_with(&w, script, SBA_ARRAY_LEN(script), &err), SBA_EENGINE);
	assert_non_null(strstr(err.text, "no room for it"));
	end(&w);
}

/* It may have begun: it is not asked for again. */
static void an_engine_that_goes_before_a_command_has_begun_is_told_and_asked_once(void **state)
{
	static const struct fake_exchange script[] = {
		CREATED,
		{ .path = "/exec/feed/start ", .then = FAKE_CLOSE },
	};
	struct world w;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(begin_with(&w, script, SBA_ARRAY_LEN(script), &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "closed the connection"));
	assert_int_equal(fake_engine_requests(w.f), 2);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_command_that_runs_on_is_watched, prepare),
		cmocka_unit_test_setup(a_command_that_has_ended_unseen_is_no_success, prepare),
		cmocka_unit_test_setup(an_engine_that_refuses_a_command_and_resets_is_quoted,
				       prepare),
		cmocka_unit_test_setup(
			an_engine_that_goes_before_a_command_has_begun_is_told_and_asked_once,
			prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
