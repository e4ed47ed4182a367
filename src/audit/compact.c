/* SPDX-License-Identifier: MIT */
/*
 * Whether a text is JSON on one line, without building its tree: what drivers pass on
 * as a tool's arguments nearly always is. A no is no verdict: numbers with an exponent,
 * blanks between values, escaped surrogates and deep nesting are left to the parser.
 */
#include "audit/private.h"

#include <string.h>

enum { DEPTH_MAX = 16, DIGITS_MAX = 15 };

static const char *value(const char *s, const char *end, int depth);

static const char *escape(const char *s)
{
	if (*s != 'u')
		return *s && strchr("\"\\/bfnrt", *s) ? s + 1 : NULL;
	if (strspn(s + 1, "0123456789abcdefABCDEF") < 4)
		return NULL;
	bool surrogate = (s[1] | 0x20) == 'd' && s[2] > '7';
	bool zero = strncmp(s + 1, "0000", 4) == 0;
	return surrogate || zero ? NULL : s + 5;
}

/* s is behind the quote; the result too. */
static const char *string(const char *s, const char *end)
{
	for (;;) {
		s += sba_audit_plain_length(s, (size_t)(end - s));
		if (*s == '"')
			return s + 1;
		if (*s == '\\')
			s = escape(s + 1);
		else if (*s == 0x7f)
			s++;
		else
			return NULL;
		if (!s)
			return NULL;
	}
}

static const char *digits(const char *s)
{
	size_t n = strspn(s, "0123456789");
	return n > 0 && n <= DIGITS_MAX ? s + n : NULL;
}

static const char *number(const char *s)
{
	s += *s == '-';
	if (*s == '0' && s[1] >= '0' && s[1] <= '9')
		return NULL;
	s = digits(s);
	return s && *s == '.' ? digits(s + 1) : s;
}

/* Behind '{' or '['. */
static const char *members(const char *s, const char *end, char last, int depth)
{
	if (*s == last)
		return s + 1;
	for (;;) {
		if (last == '}') {
			s = *s == '"' ? string(s + 1, end) : NULL;
			if (!s || *s++ != ':')
				return NULL;
		}
		s = value(s, end, depth);
		if (!s || *s == last)
			return s ? s + 1 : NULL;
		if (*s++ != ',')
			return NULL;
	}
}

static const char *value(const char *s, const char *end, int depth)
{
	static const char *const words[] = { "true", "false", "null" };
	if (depth == DEPTH_MAX)
		return NULL;
	switch (*s) {
	case '{':
		return members(s + 1, end, '}', depth + 1);
	case '[':
		return members(s + 1, end, ']', depth + 1);
	case '"':
		return string(s + 1, end);
	default:
		break;
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		if (sba_starts_with(s, words[i]))
			return s + strlen(words[i]);
	}
	return number(s);
}

bool sba_audit_is_compact(const char *text)
{
	const char *end = text + strlen(text);
	return value(text, end, 0) == end;
}
