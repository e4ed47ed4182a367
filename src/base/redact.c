/* SPDX-License-Identifier: MIT */
/*
 * Finds a secret in any bytes, also as JSON, URLs and base64 spell it, and stars
 * it out in place: the length stays, so that no length elsewhere becomes a lie.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum {
	SECRET_MIN = 8,    /* a shorter one is no secret, and would star out words */
	FORMS_MAX = 8,     /* one bit of a byte each */
	BACKSLASH_MAX = 8, /* JSON in JSON in JSON, three times over */
};

/* What a comparison says that is no length. */
enum { NO = 0, MORE = -1, SPLIT = -2 };

struct form {
	char *text;
	size_t len;
	bool spelled; /* each byte as itself, as \u00XX, \/ or %XX */
};

struct sba_redact {
	struct form forms[FORMS_MAX];
	size_t n;
	/* Bit i: form i may have this byte there. */
	unsigned char first[256], second[256];
};

/* ---- comparing ---- */

/* Where a string of JSON ends, its text may go on in the next one; a member's
 * name does not. */
static ssize_t at_mismatch(const char *at, size_t left)
{
	return *at == '"' && !(left > 1 && at[1] == ':') ? SPLIT : NO;
}

static bool same_digit(char c, unsigned value)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
	return c == lower[value] || c == upper[value];
}

/* Two digits of c behind lead: the length of all that. */
static ssize_t in_hex(const char *at, size_t left, const char *lead, unsigned char c)
{
	size_t skip = strlen(lead);
	for (size_t i = 0; i < skip + 2; i++) {
		if (i == left)
			return MORE;
		bool same = i < skip    ? at[i] == lead[i]
			    : i == skip ? same_digit(at[i], c >> 4)
					: same_digit(at[i], c & 15);
		if (!same)
			return at_mismatch(at + i, left - i);
	}
	return (ssize_t)skip + 2;
}

static ssize_t in_escape(const char *at, size_t left, unsigned char c)
{
	size_t n = 1;
	while (n < left && n < BACKSLASH_MAX && at[n] == '\\')
		n++;
	if (c == '\\')
		return n > 1 ? 2 : 1;
	if (n == left)
		return MORE;
	if ((unsigned char)at[n] == c && (c == '/' || c == '"'))
		return (ssize_t)n + 1;
	/* A quote behind an odd number of them is none. */
	if (at[n] == '"' && n % 2)
		return NO;
	ssize_t hex = in_hex(at + n, left - n, "u00", c);
	return hex > 0 ? hex + (ssize_t)n : hex;
}

/* One byte of the secret: how many bytes it takes there. */
static ssize_t in_any_spelling(const char *at, size_t left, unsigned char c)
{
	ssize_t n = NO;
	if (left == 0)
		return MORE;
	if (*at == '%')
		n = in_hex(at, left, "%", c);
	if (n != NO)
		return n;
	if (*at == '\\')
		return in_escape(at, left, c);
	return (unsigned char)*at == c ? 1 : NO;
}

static ssize_t compare(const struct form *f, const char *at, size_t left)
{
	size_t n = 0;
	ssize_t step = NO;
	bool quote = false; /* one that is taken for the secret's own */
	for (size_t i = 0; i < f->len; i++) {
		if (f->spelled)
			step = in_any_spelling(at + n, left - n, (unsigned char)f->text[i]);
		else
			step = n == left ? MORE : at[n] == f->text[i];
		if (step == NO && i > 0)
			return quote ? SPLIT : at_mismatch(at + n, left - n);
		if (step <= 0)
			return step;
		quote = quote || at[n] == '"';
		n += (size_t)step;
	}
	return (ssize_t)n;
}

/* The longest form that is there. A form that may yet be there goes before all,
 * so that the result does not depend on where the bytes were cut. */
static ssize_t find_at(const struct sba_redact *r, unsigned forms, const char *at, size_t left,
		       struct sba_redact_scan *scan)
{
	ssize_t longest = NO;
	for (size_t i = 0; forms; i++, forms >>= 1) {
		ssize_t n = forms & 1 ? compare(&r->forms[i], at, left) : NO;
		if (n == MORE && !scan->last)
			return MORE;
		scan->split = scan->split || n == SPLIT;
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Over what begins no form, which is nearly all of it: four bytes a look. */
static size_t skip(const struct sba_redact *r, const unsigned char *u, size_t at, size_t len)
{
	const unsigned char *first = r->first;
	while (len - at >= 4 &&
	       !(first[u[at]] | first[u[at + 1]] | first[u[at + 2]] | first[u[at + 3]]))
		at += 4;
	while (at < len && !first[u[at]])
		at++;
	return at;
}

size_t sba_redact(const struct sba_redact *r, char *data, size_t len, struct sba_redact_scan *scan)
{
	const unsigned char *u = (const unsigned char *)data;
	for (size_t at = skip(r, u, 0, len); at < len; at = skip(r, u, at, len)) {
		unsigned forms = r->first[u[at]];
		if (at + 1 < len)
			forms &= r->second[u[at + 1]];
		ssize_t n = forms ? find_at(r, forms, data + at, len - at, scan) : NO;
		if (n == MORE)
			return at;
		if (n > 0) {
			memset(data + at, '*', (size_t)n);
			scan->starred = true;
		}
		at += n > 0 ? (size_t)n : 1;
	}
	return len;
}

/* ---- making ---- */

static void learn(struct sba_redact *r, size_t i)
{
	const struct form *f = &r->forms[i];
	const unsigned char bit = (unsigned char)(1U << i);
	r->first[(unsigned char)f->text[0]] |= bit;
	r->second[(unsigned char)f->text[1]] |= bit;
	r->second['"'] |= bit;
	if (!f->spelled)
		return;
	r->first['\\'] |= bit;
	r->first['%'] |= bit;
	for (const char *c = "\\%/u0123456789abcdefABCDEF"; *c; c++)
		r->second[(unsigned char)*c] |= bit;
}

static int add_form(struct sba_redact *r, const char *text, size_t len, bool spelled)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->forms[i].len == len && memcmp(r->forms[i].text, text, len) == 0 &&
		    r->forms[i].spelled == spelled)
			return 0;
	}
	char *copy = malloc(len + 1);
	if (!copy)
		return SBA_ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\0';
	r->forms[r->n] = (struct form){ copy, len, spelled };
	learn(r, r->n++);
	return 0;
}

/* Of base64 in which the secret begins at any byte: the digits that no other
 * byte has a part in. */
static int add_base64(struct sba_redact *r, const char *secret, size_t len, size_t before, bool url)
{
	struct sba_buf raw = SBA_BUF_INIT(len + 3), text = SBA_BUF_INIT(2 * len + 16);
	sba_buf_put(&raw, "\0\0", before);
	sba_buf_put(&raw, secret, len);
	if (!raw.failed)
		sba_base64_put(&text, raw.data, raw.len, url);
	size_t from = (8 * before + 5) / 6, to = 8 * (before + len) / 6;
	int rc = raw.failed || text.failed ? SBA_ENOMEM
					   : add_form(r, text.data + from, to - from, false);
	if (raw.data)
		explicit_bzero(raw.data, raw.len);
	if (text.data)
		explicit_bzero(text.data, text.len);
	sba_buf_fini(&raw);
	sba_buf_fini(&text);
	return rc;
}

static int add_forms(struct sba_redact *r, const char *secret, size_t len)
{
	int rc = add_form(r, secret, len, true);
	/* As itself too where a byte of it could be taken for an escape. */
	if (rc == 0 && strpbrk(secret, "\\%"))
		rc = add_form(r, secret, len, false);
	for (size_t before = 0; rc == 0 && before < 3; before++)
		rc = add_base64(r, secret, len, before, false);
	for (size_t before = 0; rc == 0 && before < 3; before++)
		rc = add_base64(r, secret, len, before, true);
	return rc;
}

int sba_redact_new(const char *secret, struct sba_redact **ret, struct sba_error *err)
{
	size_t len = secret ? strlen(secret) : 0;
	struct sba_redact *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	if (len >= SECRET_MIN && add_forms(r, secret, len) < 0) {
		sba_redact_free(r);
		return sba_fail_nomem(err);
	}
	*ret = r;
	return 0;
}

void sba_redact_free(struct sba_redact *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		explicit_bzero(r->forms[i].text, r->forms[i].len);
		free(r->forms[i].text);
	}
	free(r);
}

size_t sba_redact_len(const struct sba_redact *r)
{
	return r->n ? r->forms[0].len : 0;
}

void sba_hide_secret(char *text, const char *secret)
{
	struct sba_redact_scan scan = { .last = true };
	struct sba_redact *r = NULL;
	size_t len = strlen(text);
	/* Out of memory: nothing is better said than the secret. */
	if (sba_redact_new(secret, &r, NULL) == 0)
		sba_redact(r, text, len, &scan);
	else
		memset(text, '*', len);
	sba_redact_free(r);
}
