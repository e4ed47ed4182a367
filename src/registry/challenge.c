/* SPDX-License-Identifier: MIT */
/* WWW-Authenticate: how a registry says whom it wants to see (RFC 7235, first challenge). */
#include "registry/registry.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static size_t token_len(const char *s)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("!#$%&'*+-.^_`|~", s[n])))
		n++;
	return n;
}

/* A quoted string or a token at *at into `to`; false: neither, or too long. */
static bool take_value(const char **at, char *to, size_t size)
{
	const char *c = *at;
	size_t n = 0;
	if (*c != '"') {
		n = token_len(c);
		if (n == 0 || n >= size)
			return false;
		memcpy(to, c, n);
		to[n] = '\0';
		*at = c + n;
		return true;
	}
	for (c++; *c && *c != '"'; c++) {
		if (*c == '\\' && c[1])
			c++;
		if (n + 1 >= size || iscntrl((unsigned char)*c))
			return false;
		to[n++] = *c;
	}
	to[n] = '\0';
	*at = c + 1;
	return *c == '"';
}

static bool take_parameter(const char **at, struct sba_challenge *c)
{
	char other[512];
	const struct {
		const char *name;
		char *to;
		size_t size;
	} known[] = {
		{ "realm", c->realm, sizeof(c->realm) },
		{ "service", c->service, sizeof(c->service) },
		{ "scope", c->scope, sizeof(c->scope) },
	};
	const char *name = *at;
	size_t len = token_len(name);
	char *to = other;
	size_t size = sizeof(other);
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strlen(known[i].name) == len && strncasecmp(name, known[i].name, len) == 0) {
			to = known[i].to;
			size = known[i].size;
		}
	}
	const char *value = name + len;
	value += strspn(value, " \t");
	if (len == 0 || *value != '=')
		return false;
	value++;
	value += strspn(value, " \t");
	*at = value;
	return take_value(at, to, size);
}

int sba_challenge_parse(const char *header, struct sba_challenge *ret, struct sba_error *err)
{
	struct sba_challenge c = { 0 };
	const char *at = header + strspn(header, " \t");
	size_t len = token_len(at);
	if (len == 0 || len >= sizeof(c.scheme))
		return sba_fail(err, SBA_EPROTO, "WWW-Authenticate names no scheme");
	for (size_t i = 0; i < len; i++)
		c.scheme[i] = (char)tolower((unsigned char)at[i]);
	at += len;
	at += strspn(at, " \t");
	/* What is no parameter begins the next challenge. */
	while (*at && take_parameter(&at, &c)) {
		at += strspn(at, " \t");
		if (*at && *at != ',')
			return sba_fail(err, SBA_EPROTO, "WWW-Authenticate is malformed");
		at += strspn(at, ", \t");
	}
	*ret = c;
	return 0;
}
