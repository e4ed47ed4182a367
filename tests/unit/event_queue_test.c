/* SPDX-License-Identifier: MIT */
/* Events wait in order, with strings of their own, until they are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/private.h"

#include <string.h>
#include <unistd.h>

static void events_come_out_in_order_with_copies_of_their_strings(void **state)
{
	(void)state;
	struct sba_event_queue q = { 0 };
	char text[] = "first", id[] = "call-1";
	struct sba_event e = { .kind = SBA_EVENT_TOOL_RESULT,
			       .time_ms = 17,
			       .text = text,
			       .call_id = id,
			       .failed = true,
			       .has_exit_code = true,
			       .exit_code = 3,
			       .usage = { .input = 9 } };
	assert_true(sba_event_queue_empty(&q));
	assert_null(sba_event_queue_take(&q));
	assert_int_equal(sba_event_queue_put(&q, &e), 0);
	memset(text, 'x', 5);
	e.call_id = NULL;
	assert_int_equal(sba_event_queue_put(&q, &e), 0);

	const struct sba_event *one = sba_event_queue_take(&q);
	assert_string_equal(one->text, "first");
	assert_string_equal(one->call_id, "call-1");
	assert_null(one->tool);
	assert_int_equal(one->kind, SBA_EVENT_TOOL_RESULT);
	assert_int_equal(one->exit_code, 3);
	assert_int_equal(one->usage.input, 9);
	const struct sba_event *two = sba_event_queue_take(&q);
	assert_string_equal(two->text, "xxxxx");
	assert_null(two->call_id);
	assert_true(sba_event_queue_empty(&q));
	assert_null(sba_event_queue_take(&q));
	sba_event_queue_fini(&q);
}

static void secret_is_starred_out_of_every_string(void **state)
{
	struct sba_event_queue q = { 0 };
	struct sba_redact *secret = NULL;
	const struct sba_event e = { .text = "it is sk-key-0123456789",
				     .input = "{\"k\":\"sk-key-01\\u00323456789\"}",
				     .output = "sk-key-012345678" };
	(void)state;
	assert_int_equal(sba_redact_new("sk-key-0123456789", &secret, NULL), 0);
	q.secrets = &(struct sba_secrets){ .key = secret };
	assert_int_equal(sba_event_queue_put(&q, &e), 0);
	const struct sba_event *one = sba_event_queue_take(&q);
	assert_string_equal(one->text, "it is *****************");
	assert_string_equal(one->input, "{\"k\":\"**********************\"}");
	assert_string_equal(one->output, "sk-key-012345678");
	sba_event_queue_fini(&q);
	sba_redact_free(secret);
}

static void all_ten_strings_are_kept(void **state)
{
	(void)state;
	struct sba_event_queue q = { 0 };
	const struct sba_event e = { .session = "1",
				     .text = "2",
				     .tool = "3",
				     .tool_native = "4",
				     .call_id = "5",
				     .input = "6",
				     .summary = "7",
				     .output = "8",
				     .path = "9",
				     .change = "" };
	assert_int_equal(sba_event_queue_put(&q, &e), 0);
	const struct sba_event *g = sba_event_queue_take(&q);
	assert_string_equal(g->session, "1");
	assert_string_equal(g->text, "2");
	assert_string_equal(g->tool, "3");
	assert_string_equal(g->tool_native, "4");
	assert_string_equal(g->call_id, "5");
	assert_string_equal(g->input, "6");
	assert_string_equal(g->summary, "7");
	assert_string_equal(g->output, "8");
	assert_string_equal(g->path, "9");
	assert_string_equal(g->change, "");
	assert_ptr_not_equal(g->text, e.text);
	sba_event_queue_fini(&q);
}

static void what_nobody_took_is_freed(void **state)
{
	(void)state;
	struct sba_event_queue q = { 0 };
	const struct sba_event e = { .text = "left" };
	for (int i = 0; i < 100; i++)
		assert_int_equal(sba_event_queue_put(&q, &e), 0);
	assert_non_null(sba_event_queue_take(&q));
	sba_event_queue_fini(&q);
	assert_true(sba_event_queue_empty(&q));
}

static int prepare(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(events_come_out_in_order_with_copies_of_their_strings,
				       prepare),
		cmocka_unit_test_setup(all_ten_strings_are_kept, prepare),
		cmocka_unit_test(secret_is_starred_out_of_every_string),
		cmocka_unit_test_setup(what_nobody_took_is_freed, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
