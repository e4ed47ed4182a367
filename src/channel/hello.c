/* SPDX-License-Identifier: MIT */
/*
 * The guest's first word: who it is, and whether it is older or newer than the one that
 * this library carries. Pure; what it says of itself is not to be believed further than
 * the sandbox that it is in.
 */
#include "channel/private.h"

#include <string.h>

enum { VERSION_PARTS = 3 };

/* A value of printable characters that fits, or nothing. */
static void keep(const char *value, size_t len, char *ret, size_t size)
{
	if (len >= size)
		return;
	for (size_t i = 0; i < len; i++) {
		if (value[i] <= ' ' || value[i] > '~')
			return;
	}
	memcpy(ret, value, len);
	ret[len] = '\0';
}

static bool is_word(const char *line, size_t len, const char *word)
{
	return len > strlen(word) && memcmp(line, word, strlen(word)) == 0 &&
	       line[strlen(word)] == ' ';
}

static void take_number(const char *value, size_t len, int64_t *ret)
{
	char text[12] = "";
	keep(value, len, text, sizeof(text));
	if (sba_parse_int(text, 0, INT32_MAX, ret) < 0)
		*ret = 0;
}

static void take_line(const char *line, size_t len, struct sba_channel_hello *h)
{
	const char *space = memchr(line, ' ', len);
	if (!space)
		return;
	const char *value = space + 1;
	size_t value_len = len - (size_t)(value - line);
	if (is_word(line, len, SBA_HELLO_PROGRAM))
		keep(value, value_len, h->program, sizeof(h->program));
	else if (is_word(line, len, SBA_HELLO_GUEST))
		keep(value, value_len, h->guest, sizeof(h->guest));
	else if (is_word(line, len, SBA_HELLO_LANDLOCK))
		take_number(value, value_len, &h->landlock);
	else if (is_word(line, len, SBA_HELLO_FIRST))
		h->sidecar_first = value_len == 7 && memcmp(value, "sidecar", 7) == 0;
}

static int take_version(const char *line, size_t len, struct sba_channel_hello *h,
			struct sba_error *err)
{
	char text[12] = "";
	if (len < sizeof(text))
		memcpy(text, line, len);
	if (strlen(text) != len || sba_parse_int(text, 1, INT32_MAX, &h->protocol) < 0)
		return sba_fail(err, SBA_EPROTO, "the guest's hello has no version");
	return 0;
}

int sba_hello_parse(const char *text, size_t len, struct sba_channel_hello *ret,
		    struct sba_error *err)
{
	struct sba_channel_hello h = { 0 };
	const char *end = text + len;
	for (const char *line = text; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			return sba_fail(err, SBA_EPROTO, "the guest's hello is cut");
		int rc = 0;
		if (h.protocol == 0)
			rc = take_version(line, (size_t)(stop - line), &h, err);
		else
			take_line(line, (size_t)(stop - line), &h);
		if (rc < 0)
			return rc;
		line = stop + 1;
	}
	if (h.protocol == 0)
		return sba_fail(err, SBA_EPROTO, "the guest's hello is empty");
	*ret = h;
	return 0;
}

/* "1.20.3" into numbers; what is none counts as 0. */
static void parts_of(const char *version, int64_t ret[VERSION_PARTS])
{
	for (int i = 0; i < VERSION_PARTS; i++) {
		char text[12] = "";
		size_t len = strcspn(version, ".");
		if (len < sizeof(text))
			memcpy(text, version, len);
		if (sba_parse_int(text, 0, INT32_MAX, &ret[i]) < 0)
			ret[i] = 0;
		version += len + (version[len] == '.');
	}
}

int sba_channel_hello_order(const struct sba_channel_hello *h)
{
	int64_t theirs[VERSION_PARTS], ours[VERSION_PARTS];
	if (h->protocol != SBA_PROTOCOL_VERSION)
		return h->protocol < SBA_PROTOCOL_VERSION ? -1 : 1;
	parts_of(h->program, theirs);
	parts_of(SBA_VERSION, ours);
	for (int i = 0; i < VERSION_PARTS; i++) {
		if (theirs[i] != ours[i])
			return theirs[i] < ours[i] ? -1 : 1;
	}
	return 0;
}
