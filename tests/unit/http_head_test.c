/* SPDX-License-Identifier: MIT */
/* Heads of HTTP answers: what is accepted, what is refused, and when. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char good[] =
	"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nX-Empty:\r\nX-A:  b c\t\r\n\r\n";

/* From a copy of just that size, so that reading behind it is caught. */
static ssize_t parse(const char *text, size_t len, struct sba_http_head *h)
{
	char *copy = malloc(len ? len : 1);
	struct sba_error err;
	memcpy(copy, text, len);
	ssize_t n = sba_http_head_parse(copy, len, h, &err);
	free(copy);
	return n;
}

static void refuse(const char *text, size_t len)
{
	struct sba_http_head h;
	if (parse(text, len, &h) != SBA_EPROTO)
		fail_msg("not refused: %s", text);
}

#define REFUSE(text) refuse(text, sizeof(text) - 1)

static void takes_status_and_headers_apart(void **state)
{
	struct sba_http_head h;
	(void)state;
	assert_int_equal(parse(good, sizeof(good) - 1, &h), sizeof(good) - 1);
	assert_int_equal(h.status, 200);
	assert_int_equal(h.minor, 1);
	assert_string_equal(h.reason, "OK");
	assert_int_equal(h.n_headers, 3);
	assert_string_equal(sba_http_head_get(&h, "api-version"), "1.41");
	assert_string_equal(sba_http_head_get(&h, "x-empty"), "");
	assert_string_equal(sba_http_head_get(&h, "x-a"), "b c");
	assert_null(sba_http_head_get(&h, "x"));
	sba_http_head_fini(&h);
}

static void leaves_what_follows_the_blank_line(void **state)
{
	static const char text[] = "HTTP/1.0 404\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
	struct sba_http_head h;
	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &h), 16);
	assert_int_equal(h.status, 404);
	assert_int_equal(h.minor, 0);
	assert_string_equal(h.reason, "");
	sba_http_head_fini(&h);
}

static void wants_more_at_every_cut(void **state)
{
	struct sba_http_head h;
	(void)state;
	for (size_t len = 0; len < sizeof(good) - 1; len++)
		assert_int_equal(parse(good, len, &h), 0);
}

static void refuses_what_is_not_http_at_its_first_byte(void **state)
{
	(void)state;
	REFUSE("S");
	REFUSE("HTTP/2");
	REFUSE("\x16\x03");
	REFUSE("HTTP/1.1 OK\r\n\r\n");
	REFUSE("HTTP/1.1 2000 OK\r\n\r\n");
	REFUSE("HTTP/1.1 099 OK\r\n\r\n");
	REFUSE("HTTP/1.1  200 OK\r\n\r\n");
	REFUSE("HTTP/1.x 200 OK\r\n\r\n");
	REFUSE("HTTP/1.1\r\n\r\n");
}

static void refuses_headers_that_could_be_read_in_two_ways(void **state)
{
	(void)state;
	REFUSE("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\nA : b\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\n: b\r\n\r\n");
	REFUSE("HTTP/1.1 200 OK\r\nno colon\r\n\r\n");
	REFUSE("HTTP/1.1 200 \x1b[2J\r\n\r\n");
}

static void refuses_too_much_of_anything(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_puts(&b, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < SBA_HTTP_HEADERS_MAX + 1; i++)
		sba_buf_puts(&b, "A: b\r\n");
	sba_buf_puts(&b, "\r\n");
	refuse(b.data, b.len);
	sba_buf_reset(&b);
	sba_buf_puts(&b, "HTTP/1.1 200 OK\r\nA: ");
	while (b.len < SBA_HTTP_HEAD_MAX)
		sba_buf_putc(&b, 'a');
	refuse(b.data, b.len);
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
		cmocka_unit_test(takes_status_and_headers_apart),
		cmocka_unit_test(leaves_what_follows_the_blank_line),
		cmocka_unit_test(wants_more_at_every_cut),
		cmocka_unit_test(refuses_what_is_not_http_at_its_first_byte),
		cmocka_unit_test(refuses_headers_that_could_be_read_in_two_ways),
		cmocka_unit_test(refuses_too_much_of_anything),
	};
	return cmocka_run_group_tests(tests, limit_time, NULL);
}
