/* SPDX-License-Identifier: MIT */
/*
 * Events as lines of JSON. A turn has tens of thousands of them and must not be
 * slower for it: they are written without building a tree first, by the one
 * escaper below.
 */
#include "audit/private.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = sizeof(uint64_t) };

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

/* Sets the top bit of each byte that is zero, and perhaps of ones above such a byte. */
static uint64_t zero_bytes(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	return (w - ones) & ~w & tops;
}

/* Whether all bytes of a word are plain; a false no costs a look at each. */
static bool is_plain_word(const char *s)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t w;
	memcpy(&w, s, sizeof(w));
	return !(zero_bytes(w & (ones * 0xe0)) | zero_bytes(w ^ (ones * '"')) |
		 zero_bytes(w ^ (ones * '\\')) | zero_bytes(w ^ (ones * 0x7f)));
}

size_t sba_audit_plain_length(const char *s, size_t len)
{
	size_t n = 0;
	while (n + WORD <= len && is_plain_word(s + n))
		n += WORD;
	while (n < len && is_plain((unsigned char)s[n]))
		n++;
	return n;
}

static void put_escape(struct sba_buf *b, unsigned char c)
{
	const char pair[2] = { '\\', c == '\n' ? 'n' : (char)c };
	if (c == '"' || c == '\\' || c == '\n')
		sba_buf_put(b, pair, sizeof(pair));
	else
		sba_buf_printf(b, "\\u%04x", c);
}

static void put_escaped(struct sba_buf *b, const char *s)
{
	for (size_t len = strlen(s); len > 0;) {
		size_t n = sba_audit_plain_length(s, len);
		sba_buf_put(b, s, n);
		if (n == len)
			break;
		put_escape(b, (unsigned char)s[n]);
		s += n + 1;
		len -= n + 1;
	}
}

/* An object's members, the first without a comma. */
struct members {
	struct sba_buf *b;
	bool any;
};

/* ,"name": and with a quote behind it where a text follows. */
static void begin_member(struct members *m, const char *name, bool quote)
{
	size_t len = strlen(name);
	char *at = sba_buf_reserve(m->b, len + 5);
	if (!at)
		return;
	char *end = at;
	*end++ = m->any ? ',' : '{';
	m->any = true;
	*end++ = '"';
	end = mempcpy(end, name, len);
	*end++ = '"';
	*end++ = ':';
	if (quote)
		*end++ = '"';
	m->b->len += (size_t)(end - at);
	*end = '\0';
}

static void key(struct members *m, const char *name)
{
	begin_member(m, name, false);
}

static void text(struct members *m, const char *name, const char *value)
{
	if (!value)
		return;
	begin_member(m, name, true);
	put_escaped(m->b, value);
	sba_buf_putc(m->b, '"');
}

static void number(struct members *m, const char *name, int64_t value)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	key(m, name);
	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--at = '-';
	sba_buf_put(m->b, at, (size_t)(digits + sizeof(digits) - at));
}

static void boolean(struct members *m, const char *name, bool value)
{
	key(m, name);
	sba_buf_puts(m->b, value ? "true" : "false");
}

static void end(struct members *m)
{
	sba_buf_puts(m->b, m->any ? "}" : "{}");
}

/* The arguments are JSON where the CLI kept to it, and stay as they are where they are
 * one line without blanks. */
static void arguments(struct members *m, const char *input)
{
	bool compact = input && sba_audit_is_compact(input);
	SBA_JSON json_t *j = input && !compact
				     ? sba_json_load(input, strlen(input), JSON_DECODE_ANY, NULL)
				     : NULL;
	SBA_FREE char *dump = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (!dump && !compact) {
		text(m, "input", input);
		return;
	}
	key(m, "input");
	sba_buf_puts(m->b, dump ? dump : input);
}

static void usage(struct members *m, const struct sba_usage *u)
{
	struct members inner = { .b = m->b };
	key(m, "usage");
	number(&inner, "input", u->input);
	number(&inner, "cached_input", u->cached_input);
	number(&inner, "output", u->output);
	number(&inner, "reasoning", u->reasoning);
	if (u->cost_usd > 0) {
		key(&inner, "cost_usd");
		sba_buf_printf(m->b, "%.6f", u->cost_usd);
	}
	end(&inner);
}

static void payload_of(struct sba_buf *b, const struct sba_event *e)
{
	struct members m = { .b = b };
	/* All others are of the folder's, or of the one that was told last. */
	if (e->kind == SBA_EVENT_SESSION)
		text(&m, "session", e->session);
	text(&m, "text", e->text);
	if (e->delta)
		boolean(&m, "delta", true);
	text(&m, "tool", e->tool);
	text(&m, "tool_native", e->tool_native);
	text(&m, "call_id", e->call_id);
	text(&m, "summary", e->summary);
	arguments(&m, e->input);
	text(&m, "output", e->output);
	if (e->kind == SBA_EVENT_TOOL_RESULT)
		boolean(&m, "failed", e->failed);
	if (e->has_exit_code)
		number(&m, "exit_code", e->exit_code);
	text(&m, "path", e->path);
	text(&m, "change", e->change);
	if (e->measured)
		boolean(&m, "measured", true);
	text(&m, "old_path", e->old_path);
	text(&m, "diff", e->diff);
	text(&m, "without_diff", e->without_diff);
	if (e->kind == SBA_EVENT_USAGE)
		usage(&m, &e->usage);
	if (e->http_status)
		number(&m, "http_status", e->http_status);
	end(&m);
}

static void or_null(struct members *m, const char *name, bool known, int64_t value)
{
	if (known) {
		number(m, name, value);
		return;
	}
	key(m, name);
	sba_buf_puts(m->b, "null");
}

static void head(struct members *m, const struct sba_audit_place *at, const char *kind)
{
	char time[SBA_AUDIT_TIME];
	sba_audit_time(at->time_ms, time);
	or_null(m, "line", at->line > 0, at->line);
	or_null(m, "offset", at->line > 0, at->offset);
	text(m, "time", time);
	or_null(m, "turn", at->turn > 0, at->turn);
	text(m, "kind", kind);
	key(m, "payload");
}

void sba_audit_line_event(struct sba_buf *b, const struct sba_audit_place *at,
			  const struct sba_event *e)
{
	struct members m = { .b = b };
	head(&m, at, sba_event_kind_name(e->kind));
	payload_of(b, e);
	sba_buf_put(b, "}\n", 2);
}

void sba_audit_line_other(struct sba_buf *b, const struct sba_audit_place *at, const char *kind,
			  const char *payload)
{
	struct members m = { .b = b };
	head(&m, at, kind);
	sba_buf_puts(b, payload);
	sba_buf_put(b, "}\n", 2);
}
