/* SPDX-License-Identifier: MIT */
/* The chunked coding, fed in pieces of every size. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "engine/engine.h"

#include <string.h>
#include <unistd.h>

/* Decodes all of data in pieces; 0, or the error. *used tells how much was
 * consumed once it was done. */
static int decode(const char *data, size_t len, size_t piece, struct sba_buf *out, bool *done,
		  size_t *used)
{
	struct sba_chunked c = { 0 };
	size_t at = 0;
	*done = false;
	while (at < len && !*done) {
		const char *payload;
		size_t payload_len, n = len - at < piece ? len - at : piece;
		struct sba_error err;
		ssize_t took =
			sba_chunked_feed(&c, data + at, n, &payload, &payload_len, done, &err);
		if (took < 0)
			return (int)took;
		assert_in_range(took, *done ? 0 : 1, n);
		sba_buf_put(out, payload, payload_len);
		at += (size_t)took;
	}
	*used = at;
	return 0;
}

static void any_cut_gives_the_same(void **state)
{
	static const char data[] = "5\r\nhello\r\n0006 ; a=\"b\"\r\n world\r\n1\r\n!\r\n0\r\n"
				   "Trailer: x\r\nOther: y\r\n\r\nnext";
	(void)state;
	for (size_t piece = 1; piece < sizeof(data); piece++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(100);
		bool done;
		size_t used;
		assert_int_equal(decode(data, sizeof(data) - 1, piece, &out, &done, &used), 0);
		assert_true(done);
		assert_int_equal(used, sizeof(data) - 1 - strlen("next"));
		assert_string_equal(out.data, "hello world!");
	}
}

static void without_its_end_marker_it_is_not_done(void **state)
{
	static const char data[] = "5\r\nhello\r\n0\r\n\r\n";
	(void)state;
	for (size_t len = 0; len < sizeof(data) - 1; len++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(100);
		bool done;
		size_t used;
		assert_int_equal(decode(data, len, 100, &out, &done, &used), 0);
		assert_false(done);
	}
}

static void refuses_broken_framing(void **state)
{
	static const char *const broken[] = {
		"\r\n",
		"g\r\n",
		"-1\r\n",
		"5\nhello",
		"5\rhello",
		"5\r\nhelloX",
		"5\r\nhello\rX",
		"0x5\r\nhello\r\n",
		"1000000000000000\r\n",
		" 5\r\nhello",
		"0\r\nA: b\n",
		"0\r\n\rX",
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(broken); i++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(100);
		bool done;
		size_t used;
		if (decode(broken[i], strlen(broken[i]), 100, &out, &done, &used) != SBA_EPROTO)
			fail_msg("not refused: %s", broken[i]);
	}
}

static void lines_and_trailers_are_limited(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(100);
	bool done;
	size_t used;
	(void)state;
	sba_buf_puts(&b, "1;");
	for (int i = 0; i < SBA_HTTP_CHUNK_LINE_MAX; i++)
		sba_buf_putc(&b, 'x');
	assert_int_equal(decode(b.data, b.len, 4096, &out, &done, &used), SBA_EPROTO);
	sba_buf_reset(&b);
	sba_buf_puts(&b, "0\r\n");
	while (b.len < 2 * SBA_HTTP_HEAD_MAX)
		sba_buf_puts(&b, "Trailer: value\r\n");
	assert_int_equal(decode(b.data, b.len, 4096, &out, &done, &used), SBA_EPROTO);
}

static int limit_time(void **state)
{
	(void)state;
	alarm(10);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_cut_gives_the_same),
		cmocka_unit_test(without_its_end_marker_it_is_not_done),
		cmocka_unit_test(refuses_broken_framing),
		cmocka_unit_test(lines_and_trailers_are_limited),
	};
	return cmocka_run_group_tests(tests, limit_time, NULL);
}
