/* SPDX-License-Identifier: MIT */
/*
 * The way to a service and to what is inside of its sandboxes: TLS, by the server, what it
 * refuses, what is not ready yet; and how a sandbox's life ends and is put off.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "remote/private.h"
#include "support/remote_world.h"
#include "support/tls_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What `echo there` says in it. */
static void assert_works(struct sba_sandbox *s)
{
	const char *const argv[] = { "echo", "there", NULL };
	const struct sba_run_options o = { .argv = argv };
	struct sba_run_result r = { 0 };
	struct sba_error err = { 0 };
	if (sba_sandbox_run(s, &o, &r, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(r.out, "there\n");
	sba_run_result_fini(&r);
}

/* ---- TLS, and by the server ---- */

/* The handle of w goes by these options, and by `front` where they have no URL. */
static void reopen(struct remote_world *w, struct sba_remote_options o, struct tls_front *front)
{
	char url[64];
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/v1", tls_front_port(front));
	if (!o.url)
		o.url = url;
	o.key = FAKE_KEY;
	o.workdir = w->folder;
	o.ready_ms = 20000;
	sba_remote_close(w->remote);
	assert_int_equal(sba_remote_open(w->service, &o, &w->remote, &w->err), 0);
}

static struct tls_front *front_of(struct remote_world *w, char ca[512])
{
	const char *port = strrchr(w->fake.url, ':') + 1;
	struct tls_front *t = tls_front_start(
		&(struct tls_front_options){ .behind = (int)strtol(port, NULL, 10) });
	snprintf(ca, 512, "%s/ca.pem", tls_front_folder(t));
	return t;
}

static void a_ca_of_ones_own_is_trusted_for_the_server_and_what_goes_through_it(void **state)
{
	struct remote_world w;
	char ca[512];
	(void)state;
	remote_world_begin(&w, "opensandbox", NULL);
	struct tls_front *front = front_of(&w, ca);
	reopen(&w, (struct sba_remote_options){ .ca_file = ca, .through_server = true }, front);
	struct sba_sandbox *s = remote_world_made(&w);
	assert_works(s);
	assert_int_equal(sba_sandbox_remove(s, &w.err), 0);
	sba_sandbox_close(s);
	tls_front_stop(front);
	remote_world_end(&w);
}

static void a_certificate_that_is_not_trusted_is_told_and_not_waited_for(void **state)
{
	struct remote_world w;
	struct sba_sandbox_list *l = NULL;
	struct sba_sandbox *s = NULL;
	char ca[512], inside[64];
	(void)state;
	remote_world_begin(&w, "e2b", NULL);
	struct tls_front *front = front_of(&w, ca);
	reopen(&w, (struct sba_remote_options){ .url = NULL }, front);
	assert_int_equal(sba_remote_list(w.remote, NULL, &l, &w.err), SBA_ECONNECT);
	assert_non_null(strstr(w.err.text, "certificate"));
	assert_non_null(strstr(w.err.hint, "ca_file"));
	/* That of what is inside. */
	snprintf(inside, sizeof(inside), "https://127.0.0.1:%d", tls_front_port(front));
	reopen(&w, (struct sba_remote_options){ .url = w.fake.url, .sandbox_url = inside }, front);
	assert_int_equal(remote_world_create(&w, &s), SBA_ECONNECT);
	assert_non_null(strstr(w.err.text, "certificate"));
	assert_int_equal(w.fake.created, 1);
	assert_int_equal(fake_remote_count(&w.fake), 0);
	tls_front_stop(front);
	remote_world_end(&w);
}

static void a_sandbox_that_is_not_reached_is_told_with_the_way_by_the_server(void **state)
{
	static const struct remote_lie lies[] = { { .method = "GET",
						    .path = "/endpoints/44772",
						    .times = -1,
						    .status = 200,
						    .body = "{\"endpoint\":\"127.0.0.1:1\"}" },
						  { 0 } };
	struct remote_world w;
	struct sba_sandbox *s = NULL;
	(void)state;
	remote_world_begin(&w, "opensandbox", lies);
	w.remote->ready_ms = 3000;
	assert_int_equal(remote_world_create(&w, &s), SBA_ETIMEOUT);
	assert_non_null(strstr(w.err.hint, "http://127.0.0.1:1"));
	assert_non_null(strstr(w.err.hint, "opensandbox_through_server"));
	assert_int_equal(fake_remote_count(&w.fake), 0);
	remote_world_end(&w);
}

/* ---- refusals ---- */

static void what_is_refused_is_told_in_our_codes_and_their_words(void **state)
{
	static const struct {
		int status, code;
	} cases[] = {
		{ 400, SBA_EINVAL },    { 402, SBA_ELIMIT }, { 403, SBA_EPERM },
		{ 404, SBA_ENOTFOUND }, { 409, SBA_EBUSY },  { 413, SBA_ELIMIT },
		{ 415, SBA_EPROTO },    { 422, SBA_EINVAL }, { 418, SBA_EPROTO },
		{ 500, SBA_EENGINE },   { 507, SBA_ELIMIT },
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_lie lies[] = {
			{ .method = "GET",
			  .path = "/sandboxes",
			  .times = -1,
			  .body = "{\"code\":\"X\",\"message\":\"as it says\"}" },
			{ 0 }
		};
		struct remote_world w;
		struct sba_sandbox_list *l = NULL;
		remote_world_begin(&w, remote_services[i], lies);
		for (size_t k = 0; k < SBA_ARRAY_LEN(cases); k++) {
			lies[0].status = cases[k].status;
			assert_int_equal(sba_remote_list(w.remote, NULL, &l, &w.err),
					 cases[k].code);
			assert_int_equal(w.err.http_status, cases[k].status);
			assert_non_null(strstr(w.err.text, "as it says"));
		}
		/* None of them asked twice. */
		assert_int_equal(atomic_load(&w.seen), SBA_ARRAY_LEN(cases));
		remote_world_end(&w);
	}
}

/* ---- on its way up ---- */

#define STATE(word)                                                                                \
	{                                                                                          \
		.method = "GET", .path = "/v1/sandboxes/i", .times = 2, .status = 200,             \
		.body = "{\"status\":{\"state\":\"" word "\",\"message\":\"exit 137\"}}"           \
	}

static void a_state_that_is_on_its_way_is_waited_for(void **state)
{
	static const struct remote_lie lies[] = { STATE("Pending"), STATE("Resuming"), { 0 } };
	struct remote_world w;
	(void)state;
	remote_world_begin(&w, "opensandbox", lies);
	struct sba_sandbox *s = remote_world_made(&w);
	assert_true(w.lied[0] >= 2 && w.lied[1] >= 2);
	assert_works(s);
	sba_sandbox_close(s);
	remote_world_end(&w);
}

static void one_that_failed_is_not_waited_for(void **state)
{
	static const struct remote_lie lies[] = { STATE("Failed"), { 0 } };
	struct remote_world w;
	struct sba_sandbox *s = NULL;
	(void)state;
	remote_world_begin(&w, "opensandbox", lies);
	assert_int_equal(remote_world_create(&w, &s), SBA_EBROKEN);
	assert_non_null(strstr(w.err.text, "exit 137"));
	assert_int_equal(w.fake.created, 1);
	assert_int_equal(fake_remote_count(&w.fake), 0);
	remote_world_end(&w);
}

static void one_that_was_paused_is_woken_by_being_used(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		remote_world_begin(&w, remote_services[i], NULL);
		sba_sandbox_close(remote_world_made(&w));
		pthread_mutex_lock(&w.fake.lock);
		w.fake.sandboxes[0].paused = true;
		pthread_mutex_unlock(&w.fake.lock);
		if (sba_remote_find(w.remote, NULL, "one", &s, &w.err) < 0)
			fail_msg("%s", w.err.text);
		assert_false(w.fake.sandboxes[0].paused);
		assert_works(s);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

/* ---- its life ---- */

static void one_whose_client_is_gone_ends_when_it_was_to(void **state)
{
	struct sba_sandbox_options o = remote_world_wish();
	(void)state;
	o.keepalive_ms = 120 * 1000;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_sandbox *s = NULL;
		int64_t before = sba_unix_ms() / 1000;
		remote_world_begin(&w, remote_services[i], NULL);
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), 0);
		int64_t after = sba_unix_ms() / 1000;
		pthread_mutex_lock(&w.fake.lock);
		int64_t ends = w.fake.sandboxes[0].ends_at;
		pthread_mutex_unlock(&w.fake.lock);
		assert_true(ends >= before + 120 - 1 && ends <= after + 120 + 1);
		sba_sandbox_close(s);
		/* Nothing of ours lives on to put it off. */
		assert_int_equal(w.fake.sandboxes[0].ends_at, ends);
		remote_world_end(&w);
	}
}

static void one_that_expires_in_the_middle_is_said_to_be_gone(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo begun; exec sleep 600", NULL };
	const struct sba_exec_options o = { .argv = argv };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_process *p = NULL;
		struct sba_exit how;
		enum sba_output which;
		const char *data;
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		assert_int_equal(sba_sandbox_exec(s, &o, &p, &w.err), 0);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 6);
		fake_remote_expire(&w.fake);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 0);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_EBROKEN);
		assert_non_null(strstr(w.err.text, "/one' is gone: its time was over"));
		assert_non_null(strstr(w.err.hint, "--keepalive"));
		sba_process_free(p);
		/* Ended already, twice. */
		assert_int_equal(sba_sandbox_remove(s, &w.err), 0);
		assert_int_equal(sba_sandbox_remove(s, &w.err), 0);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

/* Nobody can say how the command ended, nor whether its sandbox is there. */
static void a_server_that_dies_in_a_stream_leaves_its_end_unknown(void **state)
{
	static const struct remote_lie lies[] = {
		{ .method = "POST", .path = "/command", .times = 1, .cut = true },
		{ .method = "POST", .path = "/process.Process/Start", .times = 1, .cut = true },
		{ .method = "POST", .path = "", .times = -1, .hang_up = true },
		{ .method = "GET", .path = "", .times = -1, .hang_up = true },
		{ 0 }
	};
	const char *const argv[] = { "true", NULL };
	const struct sba_exec_options o = { .argv = argv };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct remote_world w;
		struct sba_process *p = NULL;
		struct sba_exit how;
		remote_world_begin(&w, remote_services[i], NULL);
		struct sba_sandbox *s = remote_world_made(&w);
		w.lies = lies;
		assert_int_equal(sba_sandbox_exec(s, &o, &p, &w.err), 0);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_ELOST);
		sba_process_free(p);
		w.lies = NULL;
		assert_works(s);
		sba_sandbox_close(s);
		remote_world_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_ca_of_ones_own_is_trusted_for_the_server_and_what_goes_through_it),
		cmocka_unit_test(a_certificate_that_is_not_trusted_is_told_and_not_waited_for),
		cmocka_unit_test(a_sandbox_that_is_not_reached_is_told_with_the_way_by_the_server),
		cmocka_unit_test(what_is_refused_is_told_in_our_codes_and_their_words),
		cmocka_unit_test(a_state_that_is_on_its_way_is_waited_for),
		cmocka_unit_test(one_that_failed_is_not_waited_for),
		cmocka_unit_test(one_that_was_paused_is_woken_by_being_used),
		cmocka_unit_test(one_whose_client_is_gone_ends_when_it_was_to),
		cmocka_unit_test(a_server_that_dies_in_a_stream_leaves_its_end_unknown),
		cmocka_unit_test(one_that_expires_in_the_middle_is_said_to_be_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
