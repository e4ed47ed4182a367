/* SPDX-License-Identifier: MIT */
/* Strings, strict numbers, durations and sizes, near misses. */
#include "base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF. */
size_t sba_utf8_seq(const unsigned char *s, size_t len)
{
	if (len == 0)
		return 0;
	unsigned char c = s[0];
	if (c < 0x80)
		return 1;
	size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
	if (c < 0xC2 || c > 0xF4 || len < n)
		return 0;
	unsigned char lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
	unsigned char hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	}
	return n;
}

bool sba_utf8_valid(const void *data, size_t len)
{
	const unsigned char *s = data;
	for (size_t i = 0; i < len;) {
		size_t n = sba_utf8_seq(s + i, len - i);
		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int sba_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	if (!is_digit(s[*s == '-']))
		return SBA_EINVAL;
	char *end;
	errno = 0;
	intmax_t v = strtoimax(s, &end, 10);
	if (errno || *end || v < min || v > max)
		return SBA_EINVAL;
	*ret = v;
	return 0;
}

const char *sba_parse_decimal(const char *s, double *ret)
{
	double value = 0, scale = 1;
	if (!is_digit(*s))
		return NULL;
	for (; is_digit(*s); s++)
		value = value * 10 + (*s - '0');
	if (*s == '.' && !is_digit(s[1]))
		return NULL;
	for (s += *s == '.'; is_digit(*s); s++) {
		value = value * 10 + (*s - '0');
		scale *= 10;
	}
	*ret = value / scale;
	return s;
}

struct unit {
	const char *name;
	double factor;
};

/* A non-negative decimal number, maybe with a fraction, and one of `units`. */
static int parse_with_unit(const char *s, const struct unit *units, size_t n, int64_t *ret)
{
	double number;
	const char *unit = sba_parse_decimal(s, &number);
	if (!unit || unit - s > 20)
		return SBA_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(unit, units[i].name) != 0)
			continue;
		double v = number * units[i].factor;
		if (!(v < 9e15))
			return SBA_EINVAL;
		*ret = (int64_t)llround(v);
		return 0;
	}
	return SBA_EINVAL;
}

int sba_parse_duration(const char *s, int64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "", 1e3 },     { "ms", 1 },     { "s", 1e3 },     { "m", 60e3 },
		{ "min", 60e3 }, { "h", 3600e3 }, { "d", 86400e3 },
	};
	return parse_with_unit(s, units, SBA_ARRAY_LEN(units), ret_ms);
}

int sba_parse_size(const char *s, int64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },         { "b", 1 },        { "k", 0x1p10 },   { "kb", 0x1p10 },
		{ "kib", 0x1p10 }, { "m", 0x1p20 },   { "mb", 0x1p20 },  { "mib", 0x1p20 },
		{ "g", 0x1p30 },   { "gb", 0x1p30 },  { "gib", 0x1p30 }, { "t", 0x1p40 },
		{ "tb", 0x1p40 },  { "tib", 0x1p40 },
	};
	return parse_with_unit(s, units, SBA_ARRAY_LEN(units), ret_bytes);
}

const char *sba_format_duration(int64_t ms, char *buf, size_t size)
{
	long long s = ms / 1000;
	if (ms < 10000)
		snprintf(buf, size, "%.1fs", (double)ms / 1000);
	else if (s < 60)
		snprintf(buf, size, "%llds", s);
	else if (s < 600 && s % 60)
		snprintf(buf, size, "%lldm %llds", s / 60, s % 60);
	else if (s < 3600)
		snprintf(buf, size, "%lldm", s / 60);
	else if (s < 86400 && s / 60 % 60)
		snprintf(buf, size, "%lldh %lldm", s / 3600, s / 60 % 60);
	else if (s < 86400)
		snprintf(buf, size, "%lldh", s / 3600);
	else
		snprintf(buf, size, "%lldd %lldh", s / 86400, s / 3600 % 24);
	return buf;
}

const char *sba_format_size(int64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	if (bytes < 1000) {
		snprintf(buf, size, "%lld B", (long long)bytes);
		return buf;
	}
	double v = (double)bytes / 1000;
	size_t u = 0;
	while (v >= 999.5 && u + 1 < SBA_ARRAY_LEN(units)) {
		v /= 1000;
		u++;
	}
	snprintf(buf, size, v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
	return buf;
}

bool sba_is_word(const char *s, const char *others, size_t max)
{
	size_t n = 0;
	for (; s && s[n] && n <= max; n++) {
		bool letter = (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z');
		if (!letter && !is_digit(s[n]) && !strchr(others, s[n]))
			return false;
	}
	return n > 0 && n <= max && s[0] != '-';
}

bool sba_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool sba_ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool sba_is_this_machine(const char *host)
{
	size_t len = strcspn(host, ":/");
	return sba_starts_with(host, "127.") || sba_starts_with(host, "[::1]") ||
	       (len == 9 && memcmp(host, "localhost", 9) == 0);
}

enum { NEAREST_WORD_MAX = 40 };

static unsigned lesser(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits between two short words; two neighbours swapped count as one. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][NEAREST_WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);
	if (n > NEAREST_WORD_MAX || m > NEAREST_WORD_MAX)
		return NEAREST_WORD_MAX;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = lesser(above[j], row[j - 1]) + 1;
			row[j] = lesser(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = lesser(row[j], higher[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

int sba_nearest(const char *word, const char *const *candidates, size_t n)
{
	int best = -1;
	unsigned best_distance = 3;
	if (strlen(word) < 4)
		best_distance = 2;
	for (size_t i = 0; i < n; i++) {
		unsigned d = distance(word, candidates[i]);
		if (d < best_distance) {
			best_distance = d;
			best = (int)i;
		}
	}
	return best;
}

static int strv_take(struct sba_strv *v, char *take_s, struct sba_error *err)
{
	char **grown = take_s ? realloc(v->v, (v->n + 2) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(take_s);
		return sba_fail_nomem(err);
	}
	v->v = grown;
	v->v[v->n++] = take_s;
	v->v[v->n] = NULL;
	return 0;
}

int sba_strv_add(struct sba_strv *v, const char *s, struct sba_error *err)
{
	return strv_take(v, strdup(s), err);
}

int sba_strv_addf(struct sba_strv *v, struct sba_error *err, const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return strv_take(v, n < 0 ? NULL : s, err);
}

void sba_strv_fini(struct sba_strv *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->v[i]);
	free(v->v);
	*v = (struct sba_strv){ 0 };
}
