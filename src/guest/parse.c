/* SPDX-License-Identifier: MIT */
/*
 * Strict parsers of short texts; see parse.h. No locale, no strtol: what is
 * not exactly the expected form is refused.
 */
#include "guest/parse.h"

#include <string.h>

#include "channel/protocol.h"

/* Keeps every later product with 1000 and sum with a clock inside int64_t. */
static const uint64_t seconds_max = 100ULL * 366 * 24 * 3600;

bool sba_guest_parse_number(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value) || value > max)
			return false;
	}
	*ret = value;
	return true;
}

bool sba_guest_parse_size(const char *text, size_t len, struct winsize *ret)
{
	const char *mark = memchr(text, 'x', len);
	uint64_t rows;
	uint64_t cols;
	size_t left;

	if (!mark)
		return false;
	left = (size_t)(mark - text);
	if (!sba_guest_parse_number(text, left, UINT16_MAX, &rows) ||
	    !sba_guest_parse_number(mark + 1, len - left - 1, UINT16_MAX, &cols) || rows == 0 ||
	    cols == 0)
		return false;
	*ret = (struct winsize){ .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
	return true;
}

bool sba_guest_parse_id(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(text);

	return len > 0 && len <= SBA_RUN_ID_MAX && text[0] != '-' && strspn(text, allowed) == len;
}

static bool parse_seconds(const char *text, int64_t *ret)
{
	uint64_t value;

	if (!sba_guest_parse_number(text, strlen(text), seconds_max, &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

bool sba_guest_parse_limits(int argc, char **argv, struct sba_guest_limits *ret)
{
	struct sba_guest_limits limits = { 0 };

	for (int i = 1; i < argc; i += 2) {
		int64_t *target = NULL;

		if (strcmp(argv[i], "--keepalive") == 0)
			target = &limits.keepalive;
		else if (strcmp(argv[i], "--max-lifetime") == 0)
			target = &limits.max_lifetime;
		if (!target || i + 1 >= argc || !parse_seconds(argv[i + 1], target))
			return false;
	}
	*ret = limits;
	return true;
}
