/* SPDX-License-Identifier: MIT */
/* What a turn says of the network, its budget and its model, each once and never too much. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/private.h"
#include "model/relay_private.h"
#include "sandbox/session.h"

#include <poll.h>
#include <string.h>

static struct world {
	struct sba_sandbox sandbox;
	struct sba_notices notices;
	struct sba_event_queue queue;
} world;

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	return sba_session_new(&world.sandbox, &world.sandbox.session, NULL) ||
	       sba_notices_open(&world.notices, &world.sandbox, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	sba_notices_close(&world.notices);
	sba_event_queue_fini(&world.queue);
	sba_session_free(world.sandbox.session);
	return 0;
}

static void refuse(const char *host, uint16_t port)
{
	const struct sba_proxy_event e = { .host = host,
					   .port = port,
					   .why = "refused: at length",
					   .reason = "no rule",
					   .rule = host };
	sba_session_tell(world.sandbox.session, &e);
}

static void assert_says(const char *text)
{
	assert_int_equal(sba_notices_take(&world.notices, &world.queue), 0);
	const struct sba_event *e = sba_event_queue_take(&world.queue);
	if (!text) {
		assert_null(e);
		return;
	}
	assert_non_null(e);
	assert_int_equal(e->kind, SBA_EVENT_NOTICE);
	assert_string_equal(e->text, text);
}

static bool is_readable(void)
{
	struct pollfd p = { .fd = world.notices.fd, .events = POLLIN };
	return poll(&p, 1, 0) == 1;
}

/* ---- */

static void refusal_is_told_once_with_what_would_allow_it(void **state)
{
	(void)state;
	assert_false(is_readable());
	refuse("api.example.com", 443);
	refuse("api.example.com", 443);
	assert_true(is_readable());
	assert_says("network: api.example.com:443 refused: no rule; "
		    "--allow api.example.com would allow it");
	assert_says(NULL);
	sba_notices_seen(&world.notices);
	assert_false(is_readable());
	refuse("::1", 80);
	assert_says("network: [::1]:80 refused: no rule; --allow ::1 would allow it");
}

static void what_was_let_through_is_no_notice(void **state)
{
	const struct sba_proxy_event e = { .host = "a.test", .port = 443, .allowed = true };
	const struct sba_proxy_event failed = {
		.host = "b.test", .port = 443, .allowed = true, .why = "no answer in time"
	};
	(void)state;
	sba_session_tell(world.sandbox.session, &e);
	sba_session_tell(world.sandbox.session, &failed);
	assert_says(NULL);
}

static void a_flood_of_refusals_is_cut(void **state)
{
	size_t n = 0;
	const struct sba_event *e;
	char last[128] = "";
	(void)state;
	for (int i = 0; i < 1000; i++) {
		char host[32];
		snprintf(host, sizeof(host), "h%d.test", i);
		refuse(host, 443);
	}
	assert_int_equal(sba_notices_take(&world.notices, &world.queue), 0);
	while ((e = sba_event_queue_take(&world.queue))) {
		n++;
		snprintf(last, sizeof(last), "%s", e->text);
	}
	assert_in_range(n, 2, 64);
	assert_non_null(strstr(last, "more was refused"));
}

static void observer_that_left_hears_nothing(void **state)
{
	(void)state;
	sba_sandbox_unobserve(&world.sandbox, &world.notices.observer);
	refuse("api.example.com", 443);
	assert_says(NULL);
}

static void spend(struct sba_relay *r, int64_t tokens)
{
	const struct sba_usage none = { 0 }, now = { .input = tokens };
	sba_relay_spend(r, &none, &now, false);
}

static void budget_is_told_once_at_four_fifths(void **state)
{
	struct sba_agent a = { .max_tokens = 1000 };
	const struct sba_relay_options o = { .upstream = "http://127.0.0.1:1",
					     .token = "t",
					     .max_tokens = 1000 };
	(void)state;
	assert_int_equal(sba_relay_open(&o, &a.relay, NULL), 0);
	spend(a.relay, 799);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	spend(a.relay, 21);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says("budget: 820 of 1000 tokens are spent (82 %)");
	spend(a.relay, 50);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	sba_relay_close(a.relay);
}

static void spent_budget_is_the_verdicts_to_tell(void **state)
{
	struct sba_agent a = { .max_tokens = 1000 };
	const struct sba_relay_options o = { .upstream = "http://127.0.0.1:1",
					     .token = "t",
					     .max_tokens = 1000 };
	(void)state;
	assert_int_equal(sba_relay_open(&o, &a.relay, NULL), 0);
	spend(a.relay, 1200);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	sba_relay_close(a.relay);
}

static void fails_at(struct sba_agent *a, int64_t ago_ms)
{
	sba_relay_note(a->relay, 429, false);
	a->relay->stats.failed_ms -= ago_ms;
}

static void failures_that_the_cli_is_silent_about_are_told(void **state)
{
	static const struct sba_driver mute = { .name = "mute" };
	struct sba_agent a = { .driver = &mute };
	const struct sba_relay_options o = { .upstream = "http://127.0.0.1:1", .token = "t" };
	(void)state;
	assert_int_equal(sba_relay_open(&o, &a.relay, NULL), 0);
	fails_at(&a, 0);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	fails_at(&a, 60000);
	sba_notices_relay(&world.notices, &a, sba_now_ms() - 10000);
	assert_says(NULL);
	sba_notices_relay(&world.notices, &a, sba_now_ms() - 90000);
	assert_says("the model's request failed (HTTP 429, 2 times): mute has not given up");
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	fails_at(&a, 60000);
	sba_relay_note(a.relay, 200, false);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says(NULL);
	sba_relay_new_turn(a.relay);
	world.notices.failures_told = 0;
	fails_at(&a, 60000);
	sba_notices_relay(&world.notices, &a, 0);
	assert_says("the model's request failed (HTTP 429): mute has not given up");
	sba_relay_close(a.relay);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refusal_is_told_once_with_what_would_allow_it),
		TEST(what_was_let_through_is_no_notice),
		TEST(a_flood_of_refusals_is_cut),
		TEST(observer_that_left_hears_nothing),
		TEST(budget_is_told_once_at_four_fifths),
		TEST(spent_budget_is_the_verdicts_to_tell),
		TEST(failures_that_the_cli_is_silent_about_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
