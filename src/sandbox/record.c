/* SPDX-License-Identifier: MIT */
/* The scanner for the guest's records; see record.h. */
#include "sandbox/record.h"

#include <stdlib.h>
#include <string.h>

void sba_record_scan_init(struct sba_record_scan *s, const char nonce[SBA_RUN_NONCE_LEN])
{
	*s = (struct sba_record_scan){ 0 };
	memcpy(s->mark + 1, SBA_RECORD_PREFIX, strlen(SBA_RECORD_PREFIX));
	memcpy(s->mark + 9, nonce, SBA_RUN_NONCE_LEN);
	s->mark[SBA_RECORD_MARK_LEN - 1] = ':';
}

/* Whether one more byte can belong to the record that is held. */
static bool fits(const struct sba_record_scan *s, char c)
{
	size_t n = s->held_len;
	if (n < SBA_RECORD_MARK_LEN)
		return c == s->mark[n];
	size_t after = n - SBA_RECORD_MARK_LEN;
	if (after == 0)
		return c >= 'a' && c <= 'z';
	if (after == 1)
		return c == ':';
	if (s->held[n - 1] == ':' && after > 2)
		return c == '\0';
	return (c >= '0' && c <= '9') || (after > 2 && c == ':');
}

static bool complete(const struct sba_record_scan *s)
{
	return s->held_len > SBA_RECORD_MARK_LEN && s->held[s->held_len - 1] == '\0';
}

/* Where in data a record may begin: a whole mark, or the beginning of one at
 * the very end. len if nowhere. */
static size_t candidate(const struct sba_record_scan *s, const char *data, size_t len)
{
	const char *whole = memmem(data, len, s->mark, SBA_RECORD_MARK_LEN);
	if (whole)
		return (size_t)(whole - data);
	size_t tail = len < SBA_RECORD_MARK_LEN - 1 ? len : SBA_RECORD_MARK_LEN - 1;
	for (size_t at = len - tail; at < len; at++) {
		/* The mark holds one NUL, its first byte. */
		if (data[at] == '\0' && memcmp(data + at, s->mark, len - at) == 0)
			return at;
	}
	return len;
}

static size_t extend(struct sba_record_scan *s, const char *data, size_t len, const char **out,
		     size_t *out_len, struct sba_record *record)
{
	size_t used = 0;
	while (used < len) {
		if (s->held_len == sizeof(s->held) || !fits(s, data[used])) {
			memcpy(s->flushed, s->held, s->held_len);
			*out = s->flushed;
			*out_len = s->held_len;
			s->held_len = 0;
			return used;
		}
		s->held[s->held_len++] = data[used++];
		if (!complete(s))
			continue;
		record->kind = s->held[SBA_RECORD_MARK_LEN];
		record->number = strtoll(s->held + SBA_RECORD_MARK_LEN + 2, NULL, 10);
		s->held_len = 0;
		return used;
	}
	return used;
}

size_t sba_record_scan_step(struct sba_record_scan *s, const char *data, size_t len,
			    const char **out, size_t *out_len, struct sba_record *record)
{
	*out = data;
	*out_len = 0;
	record->kind = 0;
	if (s->held_len > 0)
		return extend(s, data, len, out, out_len, record);
	size_t at = candidate(s, data, len);
	if (at > 0) {
		*out_len = at;
		return at;
	}
	return extend(s, data, len, out, out_len, record);
}

size_t sba_record_scan_rest(struct sba_record_scan *s, const char **out)
{
	size_t n = s->held_len;
	memcpy(s->flushed, s->held, n);
	s->held_len = 0;
	*out = s->flushed;
	return n;
}
