/* SPDX-License-Identifier: MIT */
/* A secret in what others say: every spelling, every cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <string.h>

#define KEY "sk-a/b+c?0123456789"

/* In pieces of every size, as a stream does it. */
static void assert_becomes(const char *text, const char *want)
{
	struct sba_redact *r = NULL;
	size_t len = strlen(text);
	assert_int_equal(sba_redact_new(KEY, &r, NULL), 0);
	for (size_t piece = 1; piece <= len; piece++) {
		SBA_BUF struct sba_buf held = SBA_BUF_INIT(4096), out = SBA_BUF_INIT(4096);
		for (size_t at = 0; at < len; at += piece) {
			size_t n = len - at < piece ? len - at : piece;
			struct sba_redact_scan scan = { .last = at + n == len };
			sba_buf_put(&held, text + at, n);
			size_t safe = sba_redact(r, held.data, held.len, &scan);
			sba_buf_put(&out, held.data, safe);
			sba_buf_drop(&held, safe);
		}
		assert_int_equal(held.len, 0);
		assert_string_equal(out.data, want);
	}
	sba_redact_free(r);
}

static void secret_as_it_is_is_starred_out(void **state)
{
	(void)state;
	assert_becomes("a " KEY ", sk-a/" KEY "sk-",
		       "a *******************, sk-a/*******************sk-");
	assert_becomes("sk-a/b+c?012345678", "sk-a/b+c?012345678");
}

static void spellings_of_json_are_found_also_mixed_and_nested(void **state)
{
	(void)state;
	assert_becomes("<sk-a\\/b+c?0123456789>", "<********************>");
	assert_becomes("<\\u0073k-a\\u002Fb+c?012345678\\u0039>",
		       "<**********************************>");
	assert_becomes("<sk-a\\\\\\/b+c?0123456789>", "<**********************>");
	assert_becomes("<\\\\u0073k-a/b+c?0123456789>", "<*************************>");
	assert_becomes("<\\u0173k-a/b+c?0123456789>", "<\\u0173k-a/b+c?0123456789>");
}

static void percent_encoding_is_found(void **state)
{
	(void)state;
	assert_becomes("?k=sk-a%2Fb%2bc%3F0123456789&", "?k=*************************&");
	assert_becomes("%73%6B-a%2fb+c?0123456789", "*************************");
}

/* Wherever in the encoded bytes it stands; its borders are shared with others. */
static void base64_is_found_at_every_alignment(void **state)
{
	(void)state;
	for (int url = 0; url < 2; url++) {
		for (size_t before = 0; before < 7; before++) {
			SBA_BUF struct sba_buf raw = SBA_BUF_INIT(256), text = SBA_BUF_INIT(256);
			sba_buf_put(&raw, "user:::::", before);
			sba_buf_puts(&raw, KEY "tail");
			sba_base64_put(&text, raw.data, raw.len, url);
			sba_hide_secret(text.data, KEY);
			size_t stars = 0;
			for (const char *c = text.data; *c; c++)
				stars += *c == '*';
			assert_true(stars >= strlen(KEY) * 8 / 6 - 1);
		}
	}
}

static void what_is_too_short_is_no_secret(void **state)
{
	char text[] = "shorter and short";
	(void)state;
	sba_hide_secret(text, "short");
	assert_string_equal(text, "shorter and short");
	sba_hide_secret(text, NULL);
	assert_string_equal(text, "shorter and short");
}

static void end_of_a_json_string_within_a_secret_is_noticed(void **state)
{
	static const struct {
		const char *text;
		bool split;
	} cases[] = {
		{ "{\"t\":\"abc sk-\"}", true },     { "{\"t\":\"abc s\"}", true },
		{ "{\"t\":\"abc \\u0073\"}", true }, { "{\"t\":\"abc x\"}", false },
		{ "{\"choices\":1}", false },        { "{\"t\":\"s\\\"\"}", false },
	};
	struct sba_redact *r = NULL;
	(void)state;
	assert_int_equal(sba_redact_new(KEY, &r, NULL), 0);
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		char text[64];
		struct sba_redact_scan scan = { .last = true };
		snprintf(text, sizeof(text), "%s", cases[i].text);
		assert_int_equal(sba_redact(r, text, strlen(text), &scan), strlen(text));
		assert_int_equal(scan.split, cases[i].split);
		assert_string_equal(text, cases[i].text);
	}
	sba_redact_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret_as_it_is_is_starred_out),
		cmocka_unit_test(spellings_of_json_are_found_also_mixed_and_nested),
		cmocka_unit_test(percent_encoding_is_found),
		cmocka_unit_test(base64_is_found_at_every_alignment),
		cmocka_unit_test(what_is_too_short_is_no_secret),
		cmocka_unit_test(end_of_a_json_string_within_a_secret_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
