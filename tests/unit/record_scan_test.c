/* SPDX-License-Identifier: MIT */
/* The guest's records are found however the stream is cut, and nothing else is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "sandbox/record.h"

#include <string.h>
#include <unistd.h>

#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"
#define MARK  "\0sba-run:" NONCE ":"

/* What came out: bytes, and "<kind number>" for each record at its place. */
static void scan(struct sba_record_scan *s, const char *data, size_t len, struct sba_buf *ret)
{
	while (len > 0) {
		const char *out;
		size_t out_len;
		struct sba_record record;
		size_t n = sba_record_scan_step(s, data, len, &out, &out_len, &record);
		assert_true(n <= len);
		assert_true(n > 0 || out_len > 0);
		sba_buf_put(ret, out, out_len);
		if (record.kind)
			sba_buf_printf(ret, "<%c %lld>", record.kind, (long long)record.number);
		data += n;
		len -= n;
	}
}

static void rest(struct sba_record_scan *s, struct sba_buf *ret)
{
	const char *out;
	size_t n = sba_record_scan_rest(s, &out);
	sba_buf_put(ret, out, n);
}

static void assert_bytes(const struct sba_buf *b, const char *expected, size_t len)
{
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data ? b->data : "", expected, len);
}

/* Whole, cut in two at every place, in three at every two, and byte by byte. */
static void check(const char *data, size_t len, const char *expected, size_t expected_len)
{
	for (size_t a = 0; a <= len; a++) {
		for (size_t b = a; b <= len; b++) {
			struct sba_record_scan s;
			SBA_BUF struct sba_buf out = SBA_BUF_INIT(65536);
			sba_record_scan_init(&s, NONCE);
			scan(&s, data, a, &out);
			scan(&s, data + a, b - a, &out);
			scan(&s, data + b, len - b, &out);
			rest(&s, &out);
			assert_bytes(&out, expected, expected_len);
		}
	}
	struct sba_record_scan s;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(65536);
	sba_record_scan_init(&s, NONCE);
	for (size_t i = 0; i < len; i++)
		scan(&s, data + i, 1, &out);
	rest(&s, &out);
	assert_bytes(&out, expected, expected_len);
}

#define CHECK(data, expected) check("" data, sizeof(data) - 1, "" expected, sizeof(expected) - 1)

static void records_are_found_at_every_cut(void **state)
{
	(void)state;
	CHECK(MARK "b:1:\0"
		   "out" MARK "x:0:\0",
	      "<b 1>out<x 0>");
	CHECK("before" MARK "s:15:\0"
	      "after",
	      "before<s 15>after");
	CHECK(MARK "b:1:\0" MARK "x:255:\0" MARK "x:3:\0", "<b 1><x 255><x 3>");
}

static void what_only_resembles_one_is_output(void **state)
{
	(void)state;
	CHECK("\0", "\0");
	CHECK("\0\0\0", "\0\0\0");
	CHECK("\0sba-run:", "\0sba-run:");
	CHECK("\0sba-run:" OTHER ":x:0:\0", "\0sba-run:" OTHER ":x:0:\0");
	CHECK(MARK "X:0:\0", MARK "X:0:\0");
	CHECK(MARK "x:-1:\0", MARK "x:-1:\0");
	CHECK(MARK "x::\0", MARK "x::\0");
	CHECK(MARK "x:0", MARK "x:0");
	CHECK("sba-run:" NONCE ":x:0:\0", "sba-run:" NONCE ":x:0:\0");
}

static void a_false_beginning_hides_no_record(void **state)
{
	(void)state;
	CHECK("\0" MARK "x:7:\0", "\0<x 7>");
	CHECK("\0sba-run" MARK "x:7:\0", "\0sba-run<x 7>");
	CHECK(MARK "x:" MARK "x:7:\0", MARK "x:<x 7>");
}

static void a_number_without_end_is_not_held_for_ever(void **state)
{
	(void)state;
	static const char data[] = MARK "x:"
					"00000000000000000000000000000000000000000000000000000000"
					"00000000000000000000000000000000000000000000000000000000";
	check(data, sizeof(data) - 1, data, sizeof(data) - 1);
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
		cmocka_unit_test_setup(records_are_found_at_every_cut, prepare),
		cmocka_unit_test_setup(what_only_resembles_one_is_output, prepare),
		cmocka_unit_test_setup(a_false_beginning_hides_no_record, prepare),
		cmocka_unit_test_setup(a_number_without_end_is_not_held_for_ever, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
