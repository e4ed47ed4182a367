/* SPDX-License-Identifier: MIT */
/*
 * Services of sandboxes that refuse, are busy, are never ready, break off, say keys back;
 * and what goes out to them. tests/integration/backends_test.c has what goes well.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/backend.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "remote/private.h"
#include "support/remote_world.h"

/* ---- keys ---- */

static void a_key_that_is_not_taken_is_told_by_where_it_is_from(void **state)
{
	static const char wrong[] = "wrong-key-9876543210";
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		sba_remote_close(w.remote);
		remote_world_open(&w, wrong, "SOME_VARIABLE");
		assert_int_equal(remote_world_create(&w, &s), SBA_EPERM);
		assert_int_equal(w.err.http_status, 401);
		assert_non_null(strstr(w.err.hint, "SOME_VARIABLE"));
		assert_null(strstr(w.err.text, wrong));
		sba_remote_close(w.remote);
		remote_world_open(&w, NULL, NULL);
		assert_int_equal(remote_world_create(&w, &s), SBA_EPERM);
		assert_non_null(strstr(w.err.hint, "_API_KEY"));
		remote_world_end(&w);
	}
}

static void a_key_in_an_error_is_starred_and_goes_nowhere_else(void **state)
{
	static const struct remote_lie lies[] = {
		{ .method = "POST",
		  .path = "/sandboxes",
		  .times = 1,
		  .status = 400,
		  .body = "{\"code\":\"X\",\"message\":\"bad key " FAKE_KEY " here\"}" },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		assert_int_equal(remote_world_create(&w, &s), SBA_EINVAL);
		assert_null(strstr(w.err.text, FAKE_KEY));
		assert_non_null(strstr(w.err.text, "bad key *"));
		s = remote_world_made(&w);
		sba_sandbox_close(s);
		assert_false(w.leaked);
		remote_world_end(&w);
	}
}

/* ---- busy, broken, strange ---- */

static void what_is_busy_is_asked_again_where_that_is_harmless(void **state)
{
	static const struct remote_lie lies[] = { { .method = "GET",
						    .path = "/sandboxes",
						    .times = 2,
						    .status = 503,
						    .header = "Retry-After: 0" },
						  { 0 } };
	static const struct remote_lie making[] = { { .method = "POST",
						      .path = "/sandboxes",
						      .times = 1,
						      .status = 429,
						      .body = "{\"message\":\"too many\"}" },
						    { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		s = remote_world_made(&w);
		sba_sandbox_close(s);
		assert_true(w.lied[0] >= 3);
		assert_int_equal(w.fake.created, 1);
		remote_world_end(&w);
		remote_world_begin(&w, remote_services[i], making);
		assert_int_equal(remote_world_create(&w, &s), SBA_ELIMIT);
		assert_non_null(strstr(w.err.text, "too many"));
		assert_int_equal(w.fake.created, 0);
		remote_world_end(&w);
	}
}

static void what_stays_busy_is_given_up_with_words(void **state)
{
	static const struct remote_lie lies[] = { { .method = "GET",
						    .path = "/sandboxes",
						    .times = -1,
						    .status = 502,
						    .header = "Retry-After: 0",
						    .body = "<html>Bad Gateway</html>" },
						  { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		assert_int_equal(remote_world_create(&w, &s), SBA_EENGINE);
		assert_int_equal(w.err.http_status, 502);
		assert_int_equal(w.lied[0], 0);
		assert_int_equal(atomic_load(&w.seen), SBA_REMOTE_TRIES);
		remote_world_end(&w);
	}
}

static void an_answer_that_is_none_of_its_api_is_told(void **state)
{
	static const struct remote_lie lies[] = { { .method = "GET",
						    .path = "/sandboxes",
						    .times = -1,
						    .status = 200,
						    .body = "<html>hello</html>" },
						  { 0 } };
	static const struct remote_lie empty[] = { { .method = "POST",
						     .path = "/sandboxes",
						     .times = -1,
						     .status = 200,
						     .body = "{\"id\":\"../../etc\","
							     "\"sandboxID\":\"a/b\"}" },
						   { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		assert_int_equal(remote_world_create(&w, &s), SBA_EPROTO);
		assert_non_null(strstr(w.err.hint, "URL"));
		remote_world_end(&w);
		remote_world_begin(&w, remote_services[i], empty);
		assert_int_equal(remote_world_create(&w, &s), SBA_EPROTO);
		remote_world_end(&w);
	}
}

static void a_server_that_is_not_there_is_named(void **state)
{
	const struct sba_remote_options o = { .url = "http://127.0.0.1:1" };
	struct sba_remote *r = NULL;
	struct sba_sandbox_list *l = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_remote_open("e2b", &o, &r, &err), 0);
	assert_int_equal(sba_remote_list(r, NULL, &l, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.hint, "http://127.0.0.1:1"));
	sba_remote_close(r);
	assert_int_equal(sba_remote_open("nowhere", &o, &r, &err), SBA_EINVAL);
}

static void no_such_image_or_template_is_an_error_of_images(void **state)
{
	const struct sba_sandbox_options o = { .image = "none" };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), SBA_EIMAGE);
		remote_world_end(&w);
	}
}

/* ---- readiness ---- */

static void readiness_is_waited_for(void **state)
{
	static const struct remote_lie os[] = {
		{ .method = "GET",
		  .path = "/endpoints/44772",
		  .times = 2,
		  .status = 404,
		  .body = "{\"code\":\"KUBERNETES::POD_IP_NOT_AVAILABLE\"}" },
		{ .method = "GET", .path = "/ping", .times = 2, .hang_up = true },
		{ 0 }
	};
	static const struct remote_lie e2b[] = { { .method = "GET",
						   .path = "/health",
						   .times = 3,
						   .status = 502,
						   .body = "{\"message\":\"port is not open\"}" },
						 { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		remote_world_begin(&w, remote_services[i], i ? e2b : os);
		sba_sandbox_close(remote_world_made(&w));
		assert_true(w.lied[0] >= 2);
		remote_world_end(&w);
	}
}

static void what_is_never_ready_is_given_up_and_nothing_is_left(void **state)
{
	static const struct remote_lie lies[] = {
		{ .method = "GET", .path = "/ping", .times = -1, .status = 502 },
		{ .method = "GET", .path = "/health", .times = -1, .status = 502 },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		w.remote->ready_ms = 700;
		assert_int_equal(remote_world_create(&w, &s), SBA_ETIMEOUT);
		assert_non_null(strstr(w.err.text, "not ready"));
		assert_int_equal(w.fake.created, 1);
		assert_int_equal(fake_remote_count(&w.fake), 0);
		remote_world_end(&w);
	}
}

static void one_that_was_made_though_its_answer_was_lost_is_ended(void **state)
{
	static const struct remote_lie lost = { .method = "POST", .path = "/sandboxes" };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		w.spoilt = &lost;
		assert_int_equal(remote_world_create(&w, &s), SBA_ELOST);
		assert_int_equal(w.fake.created, 1);
		assert_int_equal(fake_remote_count(&w.fake), 0);
		remote_world_end(&w);
	}
}

/* ---- commands ---- */

static struct sba_process *start(struct sba_sandbox *s, const char *script, bool has_stdin)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv, .has_stdin = has_stdin },
			     &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void a_stream_that_breaks_off_is_lost_and_what_it_said_stays(void **state)
{
	static const struct remote_lie lies[] = {
		{ .method = "POST", .path = "/command", .times = 1, .cut = true },
		{ .method = "POST", .path = "/process.Process/Start", .times = 1, .cut = true },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_exit how;
		enum sba_output which;
		const char *data;
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		w.lies = lies;
		struct sba_process *p = start(s, "true", false);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 6);
		assert_memory_equal(data, "begun\n", 6);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 0);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_ELOST);
		sba_process_free(p);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

static void a_sandbox_that_is_gone_is_said_to_be(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s, *other = NULL;
		struct sba_exit how;
		remote_world_begin(&w, remote_services[i], NULL);
		s = remote_world_made(&w);
		assert_int_equal(sba_remote_find(w.remote, NULL, "one", &other, &w.err), 0);
		assert_int_equal(sba_sandbox_remove(other, &w.err), 0);
		sba_sandbox_close(other);
		struct sba_process *p = start(s, "true", false);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_EBROKEN);
		assert_non_null(strstr(w.err.text, "/one' is gone"));
		sba_process_free(p);
		assert_int_equal(sba_sandbox_remove(s, &w.err), 0);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

static void input_for_one_that_does_not_read_is_nobodys(void **state)
{
	enum { SIZE = 2 << 20 };
	char *data = calloc(1, SIZE);
	const char *const argv[] = { "true", NULL };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_run_result r = { 0 };
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		const struct sba_run_options o = { .argv = argv, .input = data, .input_len = SIZE };
		assert_int_equal(sba_sandbox_run(s, &o, &r, &w.err), 0);
		assert_int_equal(sba_exit_status(&r.exit), 0);
		sba_run_result_fini(&r);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
	free(data);
}

static void bytes_of_every_kind_come_out_as_they_are(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_run_result r = { 0 };
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		const char *const argv[] = { "printf", "a\\0b\\377\\r\\n\\001no end", NULL };
		assert_int_equal(
			sba_sandbox_run(s, &(struct sba_run_options){ .argv = argv }, &r, &w.err),
			0);
		assert_int_equal(r.out_len, 13);
		assert_memory_equal(r.out, "a\0b\377\r\n\001no end", 13);
		sba_run_result_fini(&r);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

static void how_it_could_not_begin_is_told_apart(void **state)
{
	static const struct {
		const char *program, *workdir;
		int kind;
	} cases[] = { { "no-such-program", NULL, SBA_NOT_FOUND },
		      { "/no/such/program", NULL, SBA_NOT_FOUND },
		      { "/etc/passwd", NULL, SBA_CANNOT_RUN },
		      { "/tmp", NULL, SBA_CANNOT_RUN },
		      { "true", "/no/such/folder", SBA_NO_WORKDIR } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		for (size_t k = 0; k < SBA_ARRAY_LEN(cases); k++) {
			const char *const argv[] = { cases[k].program, NULL };
			struct sba_run_result r = { 0 };
			const struct sba_run_options o = { .argv = argv,
							   .workdir = cases[k].workdir };
			assert_int_equal(sba_sandbox_run(s, &o, &r, &w.err), 0);
			assert_int_equal(r.exit.kind, cases[k].kind);
			assert_string_equal(r.err, "");
			sba_run_result_fini(&r);
		}
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

/* ---- what is there ---- */

static void one_is_found_by_its_name_and_listed_by_its_prefix(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s, *found = NULL;
		struct sba_sandbox_list *l = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		s = remote_world_made(&w);
		for (int n = 0; n < 3; n++) {
			const struct sba_sandbox_options o = { .prefix = "other", .image = "x" };
			struct sba_sandbox *more = NULL;
			assert_int_equal(sba_remote_create(w.remote, &o, &more, &w.err), 0);
			sba_sandbox_close(more);
		}
		assert_int_equal(remote_world_create(&w, &found), SBA_EEXIST);
		assert_int_equal(sba_remote_find(w.remote, NULL, "two", &found, &w.err),
				 SBA_ENOTFOUND);
		assert_int_equal(sba_remote_find(w.remote, NULL, "one", &found, &w.err), 0);
		assert_string_equal(strchr(sba_sandbox_info(found)->name, '/'), "/one");
		assert_string_equal(sba_sandbox_info(found)->image, "debian");
		assert_string_equal(sba_sandbox_info(found)->id, sba_sandbox_info(s)->id);
		assert_string_equal(sba_sandbox_workdir(found), sba_sandbox_workdir(s));
		sba_sandbox_close(found);
		assert_int_equal(sba_remote_list(w.remote, NULL, &l, &w.err), 0);
		assert_int_equal(sba_sandbox_list_count(l), 1);
		sba_sandbox_list_free(l);
		const struct sba_list_options all = { .prefix = "*" };
		assert_int_equal(sba_remote_list(w.remote, &all, &l, &w.err), 0);
		assert_int_equal(sba_sandbox_list_count(l), 4);
		sba_sandbox_list_free(l);
		sba_sandbox_close(s);
		assert_int_equal(fake_remote_count(&w.fake), 4);
		remote_world_end(&w);
	}
}

static void no_more_are_made_than_are_allowed(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		sba_sandbox_close(remote_world_made(&w));
		struct sba_sandbox_options o = remote_world_wish();
		o.name = "two";
		o.max_sandboxes = 1;
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), SBA_ELIMIT);
		assert_int_equal(w.fake.created, 1);
		remote_world_end(&w);
	}
}

static void what_a_service_cannot_is_refused_before_anything_is_made(void **state)
{
	static const char *const rules[] = { "example.org:443", NULL };
	static const char *const mounts[] = { "/a:/b", NULL };
	static const struct {
		const char *service;
		struct sba_sandbox_options o;
	} cases[] = {
		{ "e2b", { .memory = 1 << 30 } },
		{ "e2b", { .cpus = 1 } },
		{ "e2b", { .allow = rules } },
		{ "e2b", { .keepalive_ms = -1 } },
		{ "e2b", { .mounts = mounts } },
		{ "opensandbox", { .image = "x", .pids = 5 } },
		{ "opensandbox", { .image = "x", .user = "root" } },
		{ "opensandbox", { .image = "x", .allow = rules } },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, cases[i].service, NULL);
		assert_int_equal(sba_remote_create(w.remote, &cases[i].o, &s, &w.err),
				 SBA_EUNSUPPORTED);
		assert_int_equal(w.fake.created, 0);
		remote_world_end(&w);
	}
}

static void what_is_asked_for_goes_out_in_their_words(void **state)
{
	static const char *const env[] = { "A=b=c", NULL };
	struct sba_sandbox_options o = remote_world_wish();
	(void)state;
	o.env = env;
	o.network = "sealed";
	o.keepalive_ms = 120 * 1000;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), 0);
		sba_sandbox_close(s);
		SBA_JSON json_t *j = json_loadb(w.body.data, w.body.len, 0, NULL);
		assert_int_equal(sba_json_int(j, "timeout", 0), 120);
		const json_t *metadata = json_object_get(j, "metadata");
		assert_true(sba_marks_are(metadata, "sandbox-agent", "one"));
		assert_string_equal(sba_json_str(j, i ? "envVars.A" : "env.A"), "b=c");
		if (i)
			assert_false(sba_json_bool(j, "allow_internet_access", true));
		else
			assert_string_equal(sba_json_str(j, "networkPolicy.defaultAction"), "deny");
		remote_world_end(&w);
	}
}

static void a_life_is_put_off_while_there_is_a_handle(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_remote_box *b = NULL;
		struct sba_exit how;
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		SBA_JSON json_t *marks = json_deep_copy(sba_remote_box_of(s)->marks);
		assert_int_equal(
			sba_remote_box_new(w.remote, sba_remote_box_of(s)->id, marks, &b, &w.err),
			0);
		/* Whatever runs meanwhile. */
		struct sba_process *p = start(s, "exec sleep 600", false);
		b->keepalive_ms = 300;
		unsigned before = w.fake.renewed;
		assert_int_equal(sba_remote_lease_start(b, &w.err), 0);
		int64_t until = sba_now_ms() + 30000;
		unsigned now = before;
		while (now < before + 3 && sba_now_ms() < until) {
			(void)!sba_wait_fd(-1, 0, sba_until_in(20), NULL);
			pthread_mutex_lock(&w.fake.lock);
			now = w.fake.renewed;
			pthread_mutex_unlock(&w.fake.lock);
		}
		assert_true(now >= before + 3);
		assert_int_equal(sba_process_wait(p, 0, &how, &w.err), SBA_ETIMEOUT);
		sba_process_free(p);
		sba_remote_box_free(b);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_that_is_not_taken_is_told_by_where_it_is_from),
		cmocka_unit_test(a_key_in_an_error_is_starred_and_goes_nowhere_else),
		cmocka_unit_test(what_is_busy_is_asked_again_where_that_is_harmless),
		cmocka_unit_test(what_stays_busy_is_given_up_with_words),
		cmocka_unit_test(an_answer_that_is_none_of_its_api_is_told),
		cmocka_unit_test(a_server_that_is_not_there_is_named),
		cmocka_unit_test(no_such_image_or_template_is_an_error_of_images),
		cmocka_unit_test(readiness_is_waited_for),
		cmocka_unit_test(what_is_never_ready_is_given_up_and_nothing_is_left),
		cmocka_unit_test(one_that_was_made_though_its_answer_was_lost_is_ended),
		cmocka_unit_test(a_stream_that_breaks_off_is_lost_and_what_it_said_stays),
		cmocka_unit_test(a_sandbox_that_is_gone_is_said_to_be),
		cmocka_unit_test(input_for_one_that_does_not_read_is_nobodys),
		cmocka_unit_test(bytes_of_every_kind_come_out_as_they_are),
		cmocka_unit_test(how_it_could_not_begin_is_told_apart),
		cmocka_unit_test(one_is_found_by_its_name_and_listed_by_its_prefix),
		cmocka_unit_test(no_more_are_made_than_are_allowed),
		cmocka_unit_test(what_a_service_cannot_is_refused_before_anything_is_made),
		cmocka_unit_test(what_is_asked_for_goes_out_in_their_words),
		cmocka_unit_test(a_life_is_put_off_while_there_is_a_handle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
