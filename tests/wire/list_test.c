/* SPDX-License-Identifier: MIT */
/* What a list says that each sandbox does, and what is said of one that is half there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/private.h"
#include "support/fake_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABEL "\"io.sandbox-agent."

/* One container of a list; `more` is what its labels say beside the usual. */
#define CONTAINER(id, name, suffix, role)                                                          \
	"{\"Id\":\"" id "\",\"Names\":[\"/p-" name suffix                                          \
	"\"],\"State\":\"running\",\"Labels\":{" LABEL "schema\":\"1\"," LABEL                     \
	"prefix\":\"p\"," LABEL "name\":\"" name "\"," LABEL "role\":\"" role "\"," LABEL          \
	"id\":\"id-" name "\"," LABEL "agent\":\"claude\"}}"
#define PAIR(name)                                                                                 \
	CONTAINER("main-" name, name, "", "sandbox")                                               \
	"," CONTAINER("side-" name, name, "-sidecar", "sidecar")

struct world {
	struct fake_engine *f;
	struct sba_cancel *cancel;
	struct sba_engine *e;
	struct sba_sandbox_list *l;
	char *answers[8]; /* of the script */
	size_t n;
};

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	return 0;
}

static const char *json(struct world *w, const char *body)
{
	assert_true(w->n < SBA_ARRAY_LEN(w->answers));
	return w->answers[w->n++] = fake_json(body);
}

static void begin(struct world *w, const struct fake_exchange *script, size_t n)
{
	struct sba_error err = { 0 };
	w->f = fake_engine_start("1.41", script, n);
	assert_int_equal(sba_cancel_new(&w->cancel, &err), 0);
	const struct sba_engine_options o = { .host = fake_engine_host(w->f), .cancel = w->cancel };
	assert_int_equal(sba_engine_open(&o, &w->e, &err), 0);
}

static void end(struct world *w)
{
	sba_sandbox_list_free(w->l);
	sba_engine_close(w->e);
	sba_cancel_free(w->cancel);
	fake_engine_stop(w->f);
	for (size_t i = 0; i < w->n; i++)
		free(w->answers[i]);
}

static void *list(void *user)
{
	struct world *w = user;
	const struct sba_list_options o = { .prefix = "p" };
	struct sba_error err;
	if (sba_sandbox_list(w->e, &o, &w->l, &err) < 0)
		w->l = NULL;
	return NULL;
}

/* ---- who holds one ---- */

static void lists_one_with(const char *execs, const char *running, const char *state, int commands)
{
	struct world w = { 0 };
	char container[256];
	snprintf(container, sizeof(container), "{\"State\":{\"Pid\":7},\"ExecIDs\":%s}", execs);
	const struct fake_exchange script[] = {
		{ .path = "/containers/json?", .answer = json(&w, "[" PAIR("one") "]") },
		{ .path = "/containers/main-one/json ", .answer = json(&w, container) },
		{ .path = "/exec/e1/json ", .answer = json(&w, running) },
		{ .path = "/exec/e2/json ",
		  .answer = json(&w, "{\"Running\":false,\"ExitCode\":0}") },
		{ .path = "/exec/e3/json ",
		  .answer = FAKE_ANSWER("404 Not Found", "{\"message\":\"no such exec\"}"),
		  .then = FAKE_CLOSE },
	};
	begin(&w, script, SBA_ARRAY_LEN(script));
	list(&w);
	assert_int_equal(sba_sandbox_list_count(w.l), 1);
	assert_string_equal(sba_sandbox_list_at(w.l, 0)->state, state);
	assert_int_equal(sba_sandbox_list_at(w.l, 0)->commands, commands);
	end(&w);
}

/* Podman lists execs that have ended, for five minutes; one may go meanwhile. */
static void only_execs_that_run_make_a_sandbox_work(void **state)
{
	(void)state;
	static const char execs[] = "[\"e1\",\"e2\",\"e3\"]";
	lists_one_with(execs, "{\"Running\":false,\"ExitCode\":1}", "idle", 0);
	lists_one_with(execs, "{\"Running\":true,\"ExitCode\":null}", "working", 1);
}

/* ---- many at once ---- */

/* The first is never answered; the last would not be asked after it. */
static void one_that_is_not_answered_keeps_no_other_waiting(void **state)
{
	(void)state;
	struct world w = { 0 };
	pthread_t lister;
	const struct fake_exchange script[] = {
		{ .path = "/containers/json?",
		  .answer = json(&w, "[" PAIR("one") "," PAIR("two") "," PAIR("three") "]") },
		{ .path = "/containers/main-", .then = FAKE_SILENCE },
		{ .path = "/containers/main-", .then = FAKE_SILENCE },
		{ .path = "/containers/main-", .then = FAKE_SILENCE },
	};
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(pthread_create(&lister, NULL, list, &w), 0);
	fake_engine_await_requests(w.f, 4);
	sba_cancel_fire(w.cancel);
	pthread_join(lister, NULL);
	assert_non_null(w.l);
	assert_int_equal(sba_sandbox_list_count(w.l), 3);
	end(&w);
}

static void a_brief_list_is_one_question(void **state)
{
	(void)state;
	struct world w = { 0 };
	const struct sba_list_options o = { .prefix = "p", .brief = true };
	const struct fake_exchange script[] = {
		{ .path = "/containers/json?",
		  .answer = json(&w, "[" PAIR("one") "," PAIR("two") "]") },
	};
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(sba_sandbox_list(w.e, &o, &w.l, &err), 0);
	assert_int_equal(sba_sandbox_list_count(w.l), 2);
	assert_string_equal(sba_sandbox_list_at(w.l, 0)->state, "idle");
	assert_int_equal(fake_engine_requests(w.f), 1);
	end(&w);
}

/* ---- one half ---- */

#define EVENT(action, role)                                                                        \
	"{\"Action\":\"" action "\",\"Actor\":{\"Attributes\":{" LABEL "schema\":\"1\"," LABEL     \
	"prefix\":\"p\"," LABEL "id\":\"id-one\"," LABEL "name\":\"one\"," LABEL "role\":\"" role  \
	"\",\"name\":\"p-one\",\"exitCode\":\"137\"}}}\n"

static void half_is_told_as(const char *events, const char *container, const char *words)
{
	struct world w = { 0 };
	const struct fake_exchange script[] = {
		{ .path = "/events?", .answer = json(&w, events) },
	};
	struct sba_sandbox half = { .sidecar = "side",
				    .info = { .id = "id-one", .name = "one", .state = "created" } };
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	half.engine = w.e;
	snprintf(half.container, sizeof(half.container), "%s", container);
	if (*container)
		*half.sidecar = '\0';
	assert_int_equal(sba_sandbox_check_whole(&half, &err), SBA_EBROKEN);
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in: %s", words, err.text);
	assert_true(*err.hint);
	end(&w);
}

static void a_half_whose_other_was_killed_is_told_as_gone_with_the_reason(void **state)
{
	(void)state;
	half_is_told_as(EVENT("kill", "sandbox") EVENT("die", "sandbox")
				EVENT("destroy", "sandbox"),
			"", "is gone: it was removed, or killed from outside");
}

static void a_sidecar_whose_sandbox_is_not_there_yet_is_told_as_being_made(void **state)
{
	(void)state;
	half_is_told_as("", "", "is still being made");
}

static void a_main_container_alone_is_told_as_that(void **state)
{
	(void)state;
	half_is_told_as("", "main", "has lost its sidecar");
}

/* ---- what is over ---- */

static size_t past_of(const char *events)
{
	struct world w = { 0 };
	const struct sba_list_options o = { .prefix = "p", .all = true };
	const struct fake_exchange script[] = {
		{ .path = "/containers/json?", .answer = json(&w, "[]") },
		{ .path = "/events?", .answer = json(&w, events) },
	};
	struct sba_error err = { 0 };
	begin(&w, script, SBA_ARRAY_LEN(script));
	assert_int_equal(sba_sandbox_list(w.e, &o, &w.l, &err), 0);
	size_t n = sba_sandbox_list_count(w.l);
	if (n > 0)
		assert_string_equal(sba_sandbox_list_at(w.l, 0)->reason, "unknown");
	end(&w);
	return n;
}

static void what_was_swept_half_made_is_no_sandbox_that_went(void **state)
{
	(void)state;
	assert_int_equal(past_of(EVENT("create", "sandbox") EVENT("destroy", "sandbox")), 0);
	assert_int_equal(past_of(EVENT("create", "sandbox") EVENT("start", "sandbox")
					 EVENT("destroy", "sandbox")),
			 1);
	/* How it was made is forgotten. */
	assert_int_equal(past_of(EVENT("destroy", "sandbox")), 1);
}

/* ---- paused ---- */

static int check_paused(const char *container, struct sba_error *err)
{
	struct world w = { 0 };
	const struct fake_exchange script[] = {
		{ .path = "/containers/main/json ", .answer = json(&w, container) },
	};
	struct sba_sandbox s = { .container = "main",
				 .sidecar = "side",
				 .info = { .name = "one", .prefix = "p", .state = "paused" } };
	begin(&w, script, SBA_ARRAY_LEN(script));
	s.engine = w.e;
	int rc = sba_sandbox_check_whole(&s, err);
	end(&w);
	return rc;
}

static void a_paused_one_is_told_as_that_until_it_goes_on(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	assert_int_equal(check_paused("{\"State\":{\"Running\":true,\"Paused\":true}}", &err),
			 SBA_EBROKEN);
	assert_string_equal(err.text, "sandbox 'one' is paused");
	assert_non_null(strstr(err.hint, "unpause p-one"));
	assert_int_equal(check_paused("{\"State\":{\"Running\":true,\"Paused\":false}}", &err), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_execs_that_run_make_a_sandbox_work),
		TEST(one_that_is_not_answered_keeps_no_other_waiting),
		TEST(a_brief_list_is_one_question),
		TEST(a_half_whose_other_was_killed_is_told_as_gone_with_the_reason),
		TEST(a_sidecar_whose_sandbox_is_not_there_yet_is_told_as_being_made),
		TEST(a_main_container_alone_is_told_as_that),
		TEST(what_was_swept_half_made_is_no_sandbox_that_went),
		TEST(a_paused_one_is_told_as_that_until_it_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
