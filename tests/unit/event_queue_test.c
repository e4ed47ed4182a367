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

/* ---- a secret that comes in pieces ---- */

#define SECRET "sk-key-0123456789"

static struct sba_secrets secrets;
static struct sba_redact *other;

static int with_secrets(void **state)
{
	(void)state;
	alarm(60);
	secrets = (struct sba_secrets){ .own_n = 2 };
	assert_int_equal(sba_redact_new(SECRET, &secrets.own[0], NULL), 0);
	assert_int_equal(sba_redact_new("another-secret-of-it", &secrets.own[1], NULL), 0);
	assert_int_equal(sba_redact_new("the relay's own", &other, NULL), 0);
	secrets.key = other;
	return 0;
}

static int without_secrets(void **state)
{
	(void)state;
	sba_secrets_fini(&secrets);
	sba_redact_free(other);
	return 0;
}

static void say(struct sba_event_queue *q, enum sba_event_kind kind, const char *text, size_t len,
		bool delta)
{
	char piece[256];
	snprintf(piece, sizeof(piece), "%.*s", (int)len, text);
	const struct sba_event e = {
		.kind = kind, .session = "s-1", .text = piece, .delta = delta
	};
	assert_int_equal(sba_event_queue_put(q, &e), 0);
}

static void tell(struct sba_event_queue *q, enum sba_event_kind kind)
{
	const struct sba_event e = { .kind = kind, .output = "out" };
	assert_int_equal(sba_event_queue_put(q, &e), 0);
}

/* All the text that is there, "|" in front of each that begins a block, other events by
 * their letter. */
static const char *all_of(struct sba_event_queue *q, char *buf, size_t size)
{
	const struct sba_event *e;
	size_t at = 0;
	buf[0] = '\0';
	while ((e = sba_event_queue_take(q))) {
		bool text = e->kind == SBA_EVENT_TEXT || e->kind == SBA_EVENT_THINKING;
		int n = snprintf(buf + at, size - at, "%s%s",
				 !text      ? ""
				 : e->delta ? ""
					    : "|",
				 text                             ? e->text
				 : e->kind == SBA_EVENT_TOOL_CALL ? "(call)"
				 : e->kind == SBA_EVENT_NOTICE    ? "(notice)"
								  : "(done)");
		assert_true(n >= 0 && (size_t)n < size - at);
		if (text) {
			assert_true(*e->text);
			assert_string_equal(e->session, "s-1");
		}
		at += (size_t)n;
	}
	return buf;
}

static void assert_says(struct sba_event_queue *q, const char *text)
{
	char said[512];
	assert_string_equal(all_of(q, said, sizeof(said)), text);
}

static void a_secret_is_starred_out_wherever_its_deltas_are_split(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{ "it is " SECRET ", yes", "|it is *****************, yes" },
		{ SECRET, "|*****************" },
		{ SECRET SECRET "s", "|**********************************s" },
		{ "\\u0073k-key-0123456789 in JSON", "|********************** in JSON" },
		{ "a=c2sta2V5LTAxMjM0NTY3ODk=", "|a=**********************k=" },
		{ "no another-secret-of-it, sk-key", "|no ********************, sk-key" },
		{ "sk-sk-key-01234567sk-key-0123456789", "|sk-sk-key-01234567*****************" },
		{ "another-sk-key-0123456789", "|another-*****************" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		const char *text = cases[i].text;
		size_t len = strlen(text);
		for (size_t a = 0; a <= len; a++) {
			for (size_t b = a; b <= len; b++) {
				struct sba_event_queue q = { .secrets = &secrets };
				say(&q, SBA_EVENT_TEXT, text, a, false);
				say(&q, SBA_EVENT_TEXT, text + a, b - a, a > 0);
				say(&q, SBA_EVENT_TEXT, text + b, len - b, b > 0);
				assert_int_equal(sba_event_queue_flush(&q), 0);
				assert_says(&q, cases[i].shown);
				sba_event_queue_fini(&q);
			}
		}
	}
}

static void a_secret_in_deltas_of_a_byte_is_starred_out(void **state)
{
	static const char text[] = "so " SECRET " so";
	struct sba_event_queue q = { .secrets = &secrets };
	(void)state;
	for (size_t i = 0; i < strlen(text); i++) {
		say(&q, SBA_EVENT_THINKING, text + i, 1, i > 0);
		/* Others come between them. */
		if (i % 3 == 0)
			tell(&q, SBA_EVENT_USAGE);
	}
	tell(&q, SBA_EVENT_TOOL_CALL);
	char said[512];
	all_of(&q, said, sizeof(said));
	assert_null(strstr(said, "sk-"));
	assert_null(strstr(said, "789"));
	assert_non_null(strstr(said, "***"));
	assert_non_null(strstr(said, "so(call)"));
	sba_event_queue_fini(&q);
}

static void only_what_may_be_a_secret_waits_and_not_for_long(void **state)
{
	struct sba_event_queue q = { .secrets = &secrets };
	(void)state;
	say(&q, SBA_EVENT_TEXT, "yes", 3, false);
	assert_says(&q, "|ye");
	say(&q, SBA_EVENT_TEXT, "ter", 3, true);
	assert_says(&q, "ster");
	say(&q, SBA_EVENT_TEXT, "sk-", 3, true);
	assert_says(&q, "");
	/* A text of another kind, and another block, end it. */
	say(&q, SBA_EVENT_THINKING, "hm", 2, false);
	assert_says(&q, "sk-|hm");
	say(&q, SBA_EVENT_TEXT, "sk", 2, false);
	say(&q, SBA_EVENT_TEXT, "tail", 4, false);
	assert_says(&q, "|sk|tail");
	say(&q, SBA_EVENT_TEXT, " s", 2, true);
	tell(&q, SBA_EVENT_NOTICE);
	say(&q, SBA_EVENT_TEXT, "k", 1, true);
	tell(&q, SBA_EVENT_DONE);
	assert_says(&q, " (notice)sk(done)");
	say(&q, SBA_EVENT_TEXT, "s", 1, false);
	assert_int_equal(sba_event_queue_flush(&q), 0);
	assert_int_equal(sba_event_queue_flush(&q), 0);
	assert_says(&q, "|s");
	sba_event_queue_fini(&q);
}

static void what_nobody_flushed_is_freed(void **state)
{
	struct sba_event_queue q = { .secrets = &secrets };
	(void)state;
	say(&q, SBA_EVENT_TEXT, "sk-key", 6, false);
	sba_event_queue_fini(&q);
	assert_true(sba_event_queue_empty(&q));
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
#define SECRETS_TEST(f) cmocka_unit_test_setup_teardown(f, with_secrets, without_secrets)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(events_come_out_in_order_with_copies_of_their_strings,
				       prepare),
		cmocka_unit_test_setup(all_ten_strings_are_kept, prepare),
		cmocka_unit_test(secret_is_starred_out_of_every_string),
		SECRETS_TEST(a_secret_is_starred_out_wherever_its_deltas_are_split),
		SECRETS_TEST(a_secret_in_deltas_of_a_byte_is_starred_out),
		SECRETS_TEST(only_what_may_be_a_secret_waits_and_not_for_long),
		SECRETS_TEST(what_nobody_flushed_is_freed),
		cmocka_unit_test_setup(what_nobody_took_is_freed, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
