/* SPDX-License-Identifier: MIT */
/* The growing buffer and what can be appended to it. */
#include "base/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sba_buf_init(struct sba_buf *b, size_t max)
{
	*b = (struct sba_buf)SBA_BUF_INIT(max);
}

void sba_buf_fini(struct sba_buf *b)
{
	free(b->data);
	sba_buf_init(b, b->max);
}

void sba_buf_reset(struct sba_buf *b)
{
	b->len = 0;
	b->failed = 0;
	if (b->data)
		b->data[0] = '\0';
}

static int grow(struct sba_buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : 64;
	while (cap < need) {
		if (__builtin_mul_overflow(cap, 2, &cap))
			return SBA_ENOMEM;
	}
	char *data = realloc(b->data, cap);
	if (!data)
		return SBA_ENOMEM;
	b->data = data;
	b->cap = cap;
	b->data[b->len] = '\0';
	return 0;
}

char *sba_buf_reserve(struct sba_buf *b, size_t len)
{
	if (b->failed)
		return NULL;
	size_t need;
	if (__builtin_add_overflow(b->len, len, &need) || need > b->max) {
		b->failed = SBA_ELIMIT;
		return NULL;
	}
	if (__builtin_add_overflow(need, 1, &need)) {
		b->failed = SBA_ENOMEM;
		return NULL;
	}
	if (need > b->cap)
		b->failed = grow(b, need);
	return b->failed ? NULL : b->data + b->len;
}

void sba_buf_put(struct sba_buf *b, const void *data, size_t len)
{
	char *at = sba_buf_reserve(b, len);
	if (!at)
		return;
	if (len > 0)
		memcpy(at, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void sba_buf_puts(struct sba_buf *b, const char *s)
{
	sba_buf_put(b, s, strlen(s));
}

void sba_buf_putc(struct sba_buf *b, char c)
{
	sba_buf_put(b, &c, 1);
}

void sba_buf_printf(struct sba_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *at = n < 0 ? NULL : sba_buf_reserve(b, (size_t)n);
	if (at) {
		vsnprintf(at, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	} else if (n < 0) {
		b->failed = SBA_ENOMEM;
	}
	va_end(again);
}

void sba_buf_put_url(struct sba_buf *b, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";
	for (; *s; s++) {
		if (strchr(plain, *s))
			sba_buf_putc(b, *s);
		else
			sba_buf_printf(b, "%%%02X", (unsigned)(unsigned char)*s);
	}
}

void sba_buf_put_utf8(struct sba_buf *b, const void *data, size_t len)
{
	const unsigned char *s = data;
	size_t start = 0, i = 0;
	while (i < len) {
		size_t n = sba_utf8_seq(s + i, len - i);
		if (n > 0) {
			i += n;
			continue;
		}
		sba_buf_put(b, s + start, i - start);
		sba_buf_puts(b, "\xEF\xBF\xBD");
		for (i++; i < len && (s[i] & 0xC0) == 0x80; i++)
			;
		start = i;
	}
	sba_buf_put(b, s + start, i - start);
}

/* The code point of a valid sequence of one or two bytes; longer ones are
 * never control characters. */
static unsigned low_code_point(const unsigned char *s, size_t n)
{
	return n == 1 ? s[0] : n == 2 ? ((s[0] & 0x1FU) << 6 | (s[1] & 0x3FU)) : 0x10000U;
}

static bool is_control(unsigned c, bool one_line)
{
	if (c == '\n' || c == '\t')
		return one_line;
	return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

/* Bidirectional overrides reorder what a person reads (U+202A..2E, U+2066..69). */
static bool is_bidi(const unsigned char *s, size_t n)
{
	if (n != 3 || s[0] != 0xE2)
		return false;
	return (s[1] == 0x80 && s[2] >= 0xAA && s[2] <= 0xAE) ||
	       (s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9);
}

static void put_escape(struct sba_buf *b, unsigned c)
{
	if (c == '\n')
		sba_buf_puts(b, "\\n");
	else if (c == '\t')
		sba_buf_puts(b, "\\t");
	else if (c == '\r')
		sba_buf_puts(b, "\\r");
	else
		sba_buf_printf(b, "\\x%02x", c);
}

void sba_buf_put_visible(struct sba_buf *b, const void *data, size_t len, bool one_line)
{
	const unsigned char *s = data;
	for (size_t i = 0; i < len;) {
		size_t n = sba_utf8_seq(s + i, len - i);
		if (n == 0) {
			put_escape(b, s[i++]);
			continue;
		}
		unsigned c = low_code_point(s + i, n);
		if (is_control(c, one_line))
			put_escape(b, c);
		else if (is_bidi(s + i, n))
			sba_buf_printf(b, "\\u%02x%02x", 0x20U,
				       s[i + 1] == 0x80 ? s[i + 2] - 0x80U : s[i + 2] - 0x40U);
		else
			sba_buf_put(b, s + i, n);
		i += n;
	}
}

char *sba_visible(const void *data, size_t len, bool one_line)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SIZE_MAX / 2);
	sba_buf_put_visible(&b, data, len, one_line);
	return sba_buf_take(&b);
}

void sba_buf_drop(struct sba_buf *b, size_t len)
{
	if (len == 0 || !b->data)
		return;
	if (len > b->len)
		len = b->len;
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = '\0';
}

int sba_buf_check(const struct sba_buf *b, const char *what, struct sba_error *err)
{
	if (b->failed == SBA_ELIMIT)
		return sba_fail(err, SBA_ELIMIT, "%s is larger than %zu bytes", what, b->max);
	if (b->failed)
		return sba_fail_nomem(err);
	return 0;
}

char *sba_buf_take(struct sba_buf *b)
{
	if (!b->data && !b->failed)
		sba_buf_put(b, "", 0);
	if (b->failed)
		return NULL;
	char *data = sba_move(&b->data);
	b->len = b->cap = 0;
	return data;
}
