/* SPDX-License-Identifier: MIT */
/* Lines come out of a stream the same, wherever it is cut, and have a ceiling. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each line in brackets. */
static void feed(struct sba_lines *l, const char *data, size_t len, struct sba_buf *ret)
{
	while (len > 0) {
		const char *line;
		size_t line_len;
		size_t n = sba_lines_feed(l, data, len, &line, &line_len);
		assert_true(n > 0 && n <= len);
		if (line) {
			sba_buf_putc(ret, '[');
			sba_buf_put(ret, line, line_len);
			sba_buf_putc(ret, ']');
		}
		data += n;
		len -= n;
	}
}

static void finish(struct sba_lines *l, struct sba_buf *ret)
{
	const char *line;
	size_t len;
	if (!sba_lines_rest(l, &line, &len))
		return;
	sba_buf_putc(ret, '(');
	sba_buf_put(ret, line, len);
	sba_buf_putc(ret, ')');
}

static void check(const char *data, const char *expected)
{
	size_t len = strlen(data);
	for (size_t a = 0; a <= len; a++) {
		for (size_t b = a; b <= len; b++) {
			struct sba_lines l;
			SBA_BUF struct sba_buf out = SBA_BUF_INIT(65536);
			sba_lines_init(&l, 1000);
			feed(&l, data, a, &out);
			feed(&l, data + a, b - a, &out);
			feed(&l, data + b, len - b, &out);
			finish(&l, &out);
			assert_int_equal(l.dropped, 0);
			sba_lines_fini(&l);
			assert_string_equal(out.data ? out.data : "", expected);
		}
	}
}

static void lines_are_the_same_at_every_cut(void **state)
{
	(void)state;
	check("one\ntwo\n\nthree", "[one][two][](three)");
	check("\n\n", "[][]");
	check("", "");
	check("a\r\nb\n", "[a\r][b]");
}

static void a_line_above_the_ceiling_is_dropped_and_counted(void **state)
{
	(void)state;
	struct sba_lines l;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(65536);
	sba_lines_init(&l, 8);
	/* In pieces: a whole line in one piece needs no memory of its own. */
	static const char *const pieces[] = { "ok\n", "0123", "4567", "89ab", "cdef\nne", "xt\n" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(pieces); i++)
		feed(&l, pieces[i], strlen(pieces[i]), &out);
	finish(&l, &out);
	assert_string_equal(out.data, "[ok][next]");
	assert_int_equal(l.dropped, 1);
	sba_lines_fini(&l);
}

static void a_line_above_the_ceiling_at_the_end_is_counted_too(void **state)
{
	(void)state;
	struct sba_lines l;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(65536);
	sba_lines_init(&l, 8);
	feed(&l, "0123456789", 10, &out);
	feed(&l, "x", 1, &out);
	finish(&l, &out);
	assert_int_equal(l.dropped, 1);
	assert_int_equal(out.len, 0);
	sba_lines_fini(&l);
}

static void memory_of_a_long_line_is_given_back(void **state)
{
	(void)state;
	struct sba_lines l;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(8 << 20);
	char *big = malloc(1 << 20);
	assert_non_null(big);
	memset(big, 'x', 1 << 20);
	sba_lines_init(&l, 4 << 20);
	feed(&l, big, 1 << 20, &out);
	feed(&l, "\n", 1, &out);
	feed(&l, "a", 1, &out);
	feed(&l, "\n", 1, &out);
	assert_int_equal(out.len, (1 << 20) + 2 + 3);
	assert_true(l.partial.cap < 1 << 20);
	sba_lines_fini(&l);
	free(big);
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
		cmocka_unit_test_setup(lines_are_the_same_at_every_cut, prepare),
		cmocka_unit_test_setup(a_line_above_the_ceiling_is_dropped_and_counted, prepare),
		cmocka_unit_test_setup(a_line_above_the_ceiling_at_the_end_is_counted_too, prepare),
		cmocka_unit_test_setup(memory_of_a_long_line_is_given_back, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
