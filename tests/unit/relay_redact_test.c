/* SPDX-License-Identifier: MIT */
/* A key that an upstream spreads over the deltas of its stream. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/relay_private.h"
#include "support/deltas.h"

#define KEY   "sk-real-key-0123456789abc"
#define STARS "*************************"

struct world {
	struct sba_redact *secret;
	struct sba_relay_redact d;
	struct sba_buf seen; /* by the client so far */
};

static void begin(struct world *w)
{
	*w = (struct world){ .secret = NULL };
	assert_int_equal(sba_redact_new(KEY, &w->secret, NULL), 0);
	sba_relay_redact_init(&w->d, w->secret, true);
	sba_buf_init(&w->seen, 16 * SBA_MIB);
}

static void end(struct world *w)
{
	sba_relay_redact_fini(&w->d);
	sba_redact_free(w->secret);
	sba_buf_fini(&w->seen);
}

static void take_out(struct world *w)
{
	sba_buf_put(&w->seen, w->d.out.data ? w->d.out.data : "", w->d.out.len);
	sba_buf_reset(&w->d.out);
}

static void say(struct world *w, const char *stream)
{
	char *copy = strdup(stream);
	assert_int_equal(sba_relay_redact_feed(&w->d, copy, strlen(copy)), 0);
	free(copy);
	take_out(w);
}

static void say_delta(struct world *w, enum deltas_format f, const char *text)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	deltas_put(&b, f, text, strlen(text));
	say(w, b.data);
}

static void finish(struct world *w)
{
	assert_int_equal(sba_relay_redact_end(&w->d), 0);
	take_out(w);
}

static void assert_text(struct world *w, enum deltas_format f, const char *want)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_MIB);
	deltas_join(w->seen.data ? w->seen.data : "", w->seen.len, f, &text);
	assert_string_equal(text.data ? text.data : "", want);
}

/* ---- */

static void key_cut_into_deltas_is_starred_out_in_every_format(void **state)
{
	static const char text[] = "so: " KEY ", sk-real-" KEY ".";
	static const char want[] = "so: " STARS ", sk-real-" STARS ".";
	(void)state;
	for (int f = 0; f < DELTAS_FORMATS; f++) {
		for (size_t piece = 1; piece < sizeof(text); piece++) {
			struct world w;
			begin(&w);
			for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
				char part[sizeof(text)];
				snprintf(part, piece + 1, "%s", text + at);
				say_delta(&w, (enum deltas_format)f, part);
			}
			finish(&w);
			SBA_BUF struct sba_buf got = SBA_BUF_INIT(SBA_MIB);
			deltas_join(w.seen.data, w.seen.len, (enum deltas_format)f, &got);
			assert_null(strstr(got.data, "real-key-0123456789abc"));
			assert_int_equal(got.len, sizeof(text) - 1);
			/* what was shown of its beginning before it was known */
			for (size_t i = 0; i < got.len; i++)
				assert_true(got.data[i] == want[i] || strchr("sk-", got.data[i]));
			end(&w);
		}
	}
}

static void text_that_cannot_become_the_key_passes_at_once_and_as_it_came(void **state)
{
	static const char event[] =
		"data:  {\"choices\": [{\"index\":0,\"delta\":{\"content\":\"It's ask\"}}]}\n\n";
	struct world w;
	(void)state;
	begin(&w);
	say(&w, event);
	say(&w, ": still here\n\n");
	assert_int_equal(w.seen.len, strlen(event) + strlen(": still here\n\n"));
	assert_memory_equal(w.seen.data, event, strlen(event));
	end(&w);
}

static void beginning_that_all_keys_share_does_not_wait(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	say_delta(&w, DELTAS_CHAT, "it begins with sk-");
	assert_text(&w, DELTAS_CHAT, "it begins with sk-");
	say_delta(&w, DELTAS_CHAT, "real-key-0123456789abc");
	finish(&w);
	assert_text(&w, DELTAS_CHAT, "it begins with sk-**********************");
	end(&w);
}

static void more_of_it_waits_until_it_is_known(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	say_delta(&w, DELTAS_MESSAGES, "use sk-real");
	say(&w, "event: ping\ndata: {\"type\": \"ping\"}\n\n");
	assert_int_equal(w.seen.len, 0);
	say_delta(&w, DELTAS_MESSAGES, "-estate");
	assert_text(&w, DELTAS_MESSAGES, "use sk-real-estate");
	assert_non_null(strstr(w.seen.data, "ping"));
	say_delta(&w, DELTAS_MESSAGES, " sk-real-k");
	finish(&w);
	assert_text(&w, DELTAS_MESSAGES, "use sk-real-estate sk-real-k");
	end(&w);
}

static void texts_that_grow_side_by_side_are_told_apart(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	say_delta(&w, DELTAS_TOOL, "sk-real-");
	say_delta(&w, DELTAS_CHAT, "key-0123456789abc sk-real-key-");
	say_delta(&w, DELTAS_TOOL, "key-0123456789abc");
	say_delta(&w, DELTAS_CHAT, "0123456789abc");
	finish(&w);
	assert_text(&w, DELTAS_TOOL, STARS);
	assert_text(&w, DELTAS_CHAT, "key-0123456789abc " STARS);
	end(&w);
}

static void block_that_begins_with_the_key_is_continued_by_its_deltas(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	say(&w, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
		"\"content_block\":{\"type\":\"text\",\"text\":\"sk-real-\"}}\n\n");
	say_delta(&w, DELTAS_MESSAGES, "key-0123456789abc");
	finish(&w);
	assert_text(&w, DELTAS_MESSAGES, "*****************");
	assert_non_null(strstr(w.seen.data, "\"text\":\"********\""));
	assert_non_null(strstr(w.seen.data, "event: content_block_start\n"));
	end(&w);
}

static void escaped_encoded_and_base64_pieces_are_joined_too(void **state)
{
	static const char *const parts[][2] = {
		{ "\\\\u0073k-real-k", "ey-0123456789abc" },
		{ "sk-real%2", "Dkey%2D0123456789abc" },
		{ "c2stcmVhbC1rZXk", "tMDEyMzQ1Njc4OWFiYw==" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(parts); i++) {
		struct world w;
		begin(&w);
		say_delta(&w, DELTAS_RESPONSES, parts[i][0]);
		say_delta(&w, DELTAS_RESPONSES, parts[i][1]);
		finish(&w);
		assert_non_null(strstr(w.seen.data, "******"));
		assert_null(strstr(w.seen.data, "0123456789"));
		assert_null(strstr(w.seen.data, "MDEyMzQ1Njc4"));
		end(&w);
	}
}

static void too_much_behind_a_half_key_stars_it_and_goes_on(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	say_delta(&w, DELTAS_CHAT, "sk-real-key");
	for (int i = 0; i < 4000 && w.seen.len == 0; i++)
		say_delta(&w, DELTAS_TOOL, "a long argument of a tool that goes on and on, ");
	assert_true(w.seen.len > 0);
	assert_true(w.d.held_bytes <= SBA_RELAY_HELD_MAX);
	assert_text(&w, DELTAS_CHAT, "***********");
	end(&w);
}

static void more_texts_than_can_be_followed_are_starred_not_shown(void **state)
{
	struct world w;
	(void)state;
	begin(&w);
	for (int i = 0; i < 2 * SBA_RELAY_LANES_MAX; i++) {
		char event[160];
		snprintf(event, sizeof(event),
			 "data: "
			 "{\"choices\":[{\"index\":%d,\"delta\":{\"content\":\"sk-real-k\"}}]}\n\n",
			 i);
		say(&w, event);
	}
	assert_true(w.d.n_lanes <= SBA_RELAY_LANES_MAX);
	assert_non_null(strstr(w.seen.data, "\"*********\""));
	assert_null(strstr(w.seen.data, "sk-real-k"));
	end(&w);
}

static void event_too_large_to_be_held_passes_without_the_key(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(2 * SBA_MIB);
	struct world w;
	(void)state;
	begin(&w);
	sba_buf_puts(&b, "data: {\"x\":\"");
	while (b.len < SBA_RELAY_EVENT_MAX + 1000)
		sba_buf_puts(&b, "some text " KEY);
	size_t first = b.len - 10;
	sba_buf_puts(&b, "\"}\n\ndata: {}\n\n");
	char cut = b.data[first];
	b.data[first] = '\0';
	say(&w, b.data);
	b.data[first] = cut;
	assert_true(w.seen.len > SBA_RELAY_EVENT_MAX / 2);
	say(&w, b.data + first);
	assert_int_equal(w.seen.len, b.len);
	assert_null(strstr(w.seen.data, KEY));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_cut_into_deltas_is_starred_out_in_every_format),
		cmocka_unit_test(text_that_cannot_become_the_key_passes_at_once_and_as_it_came),
		cmocka_unit_test(beginning_that_all_keys_share_does_not_wait),
		cmocka_unit_test(more_of_it_waits_until_it_is_known),
		cmocka_unit_test(texts_that_grow_side_by_side_are_told_apart),
		cmocka_unit_test(block_that_begins_with_the_key_is_continued_by_its_deltas),
		cmocka_unit_test(escaped_encoded_and_base64_pieces_are_joined_too),
		cmocka_unit_test(too_much_behind_a_half_key_stars_it_and_goes_on),
		cmocka_unit_test(more_texts_than_can_be_followed_are_starred_not_shown),
		cmocka_unit_test(event_too_large_to_be_held_passes_without_the_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
