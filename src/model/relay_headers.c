/* SPDX-License-Identifier: MIT */
/*
 * Which headers pass the relay. Lists of what may pass, not of what may not: a
 * header that nobody here knows could name another account, another host or
 * another length to someone behind the relay, and no client has failed for
 * want of one.
 */
#include "model/relay_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	NAME_MAX_LEN = 63,
	KEY_MAX = 4096,
};

/* A name that ends in '-' stands for all that begin with it. */
static const char *const request_names[] = {
	"content-type",    "content-encoding",    "accept",
	"user-agent",      "anthropic-",          "openai-",
	"idempotency-key", "x-idempotency-key",   "x-session-",
	"session-id",      "session_id",          "thread-id",
	"conversation-id", "conversation_id",     "originator",
	"x-codex-",        "x-claude-",           "x-app",
	"x-stainless-",    "x-client-request-id", "x-request-id",
};

static const char *const answer_names[] = {
	"content-type", "cache-control", "retry-after",    "retry-after-ms",
	"request-id",   "x-request-id",  "x-should-retry", "x-ratelimit-",
	"anthropic-",   "openai-model",  "openai-version", "openai-processing-ms",
};

/* The account is the key's owner's to choose, and to know. */
static const char *const account_names[] = {
	"anthropic-organization-id",
	"openai-organization",
	"openai-project",
};

static bool is_listed(const char *header, size_t len, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t want = strlen(names[i]);
		bool prefix = names[i][want - 1] == '-';
		if ((len == want || (prefix && len > want)) && !strncasecmp(header, names[i], want))
			return true;
	}
	return false;
}

/* libmicrohttpd 0.9.75 fails the whole answer over a value that is empty or
 * has a tab in it. */
static bool is_sendable(const char *value)
{
	return *value && !strchr(value, '\t');
}

/* The value of a header that may pass, else NULL. */
static const char *passing_value(const char *header, const char *const *names, size_t n)
{
	const char *colon = strchr(header, ':');
	size_t len = colon ? (size_t)(colon - header) : 0;
	if (!len || len > NAME_MAX_LEN || !is_listed(header, len, names, n) ||
	    is_listed(header, len, account_names, SBA_ARRAY_LEN(account_names)))
		return NULL;
	const char *value = colon + 1 + strspn(colon + 1, " \t");
	return is_sendable(value) ? value : NULL;
}

int sba_relay_request_headers(const struct sba_strv *from, struct sba_strv *ret,
			      struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < from->n; i++)
		if (passing_value(from->v[i], request_names, SBA_ARRAY_LEN(request_names)))
			rc = sba_strv_add(ret, from->v[i], err);
	return rc;
}

int sba_relay_answer_headers(const struct sba_relay *r, const struct sba_strv *from,
			     struct sba_strv *ret, struct sba_error *err)
{
	struct sba_redact_scan scan = { .last = true };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < from->n; i++) {
		char *h = from->v[i];
		if (!passing_value(h, answer_names, SBA_ARRAY_LEN(answer_names)))
			continue;
		rc = sba_strv_add(ret, h, err);
		if (rc == 0)
			sba_redact(r->secret, ret->v[ret->n - 1], strlen(h), &scan);
	}
	return rc;
}

static bool is_visible(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

/* No header that says where a request goes or how long it is. */
static bool is_key_header(const char *name)
{
	static const char *const taken[] = { "host",   "content-length", "transfer-encoding",
					     "expect", "connection",     "accept-encoding" };
	static const char punctuation[] = "-_.";
	if (!name || !*name || strlen(name) > NAME_MAX_LEN)
		return false;
	for (size_t i = 0; i < SBA_ARRAY_LEN(taken); i++)
		if (!strcasecmp(name, taken[i]))
			return false;
	for (const char *p = name; *p; p++)
		if (!strchr(punctuation, *p) && !(*p >= '0' && *p <= '9') &&
		    !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z'))
			return false;
	return true;
}

int sba_relay_secret_header(const struct sba_relay_options *o, char **ret, struct sba_error *err)
{
	static const char *const prefixes[] = {
		[SBA_KEY_BEARER] = "Authorization: Bearer ",
		[SBA_KEY_X_API_KEY] = "x-api-key: ",
		[SBA_KEY_HEADER] = ": ",
	};
	const char *name = o->key_style == SBA_KEY_HEADER ? o->key_header : "";
	if (o->key_style == SBA_KEY_HEADER && !is_key_header(name))
		return sba_fail(err, SBA_EINVAL, "the key cannot be sent in header '%s'",
				name ? name : "");
	/* Neither here nor elsewhere does an error say anything of the key itself. */
	if (!*o->key || strlen(o->key) > KEY_MAX || !is_visible(o->key))
		return sba_fail(err, SBA_EINVAL, "the key is empty, too long, or not printable");
	size_t size = strlen(name) + strlen(prefixes[o->key_style]) + strlen(o->key) + 1;
	char *header = malloc(size);
	if (!header)
		return sba_fail_nomem(err);
	snprintf(header, size, "%s%s%s", name, prefixes[o->key_style], o->key);
	*ret = header;
	return 0;
}
