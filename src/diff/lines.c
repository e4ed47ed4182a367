/* SPDX-License-Identifier: MIT */
/* Texts cut into lines, and lines numbered so that comparing them is comparing numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "diff/private.h"

enum { TEXT_LOOK = 8000 };

bool sba_diff_is_text(const char *data, size_t len)
{
	return len == 0 || !memchr(data, '\0', len < TEXT_LOOK ? len : TEXT_LOOK);
}

void sba_diff_lines_fini(struct sba_diff_lines *l)
{
	free(l->v);
	free(l->id);
	free(l->changed);
	*l = (struct sba_diff_lines){ 0 };
}

static size_t count(const struct sba_diff_text *text)
{
	size_t n = 0;
	for (const char *at = text->data, *end = at + text->len; at < end; n++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		at = newline ? newline + 1 : end;
	}
	return n;
}

static int cut(const struct sba_diff_text *text, struct sba_diff_lines *ret, struct sba_error *err)
{
	struct sba_diff_lines l = { .n = text->len ? count(text) : 0 };
	if (l.n > SBA_DIFF_LINES_MAX)
		return sba_fail(err, SBA_ELIMIT, "more than %d lines", SBA_DIFF_LINES_MAX);
	l.v = calloc(l.n + 1, sizeof(*l.v));
	l.id = calloc(l.n + 1, sizeof(*l.id));
	l.changed = calloc(l.n + 1, sizeof(*l.changed));
	if (!l.v || !l.id || !l.changed) {
		sba_diff_lines_fini(&l);
		return sba_fail_nomem(err);
	}
	const char *at = text->data;
	for (size_t i = 0; i < l.n; i++) {
		size_t left = text->len - (size_t)(at - text->data);
		const char *newline = memchr(at, '\n', left);
		l.v[i] = (struct sba_diff_line){ at, newline ? (size_t)(newline - at) + 1 : left };
		at += l.v[i].len;
	}
	*ret = l;
	return 0;
}

/* A table of the lines that were seen, by content. */
struct table {
	const struct sba_diff_line **slots;
	uint32_t *id;
	size_t mask;
	uint32_t next;
	uint64_t seed;
};

static uint64_t hash_of(const struct table *t, const struct sba_diff_line *l)
{
	uint64_t h = t->seed;
	for (size_t i = 0; i < l->len; i++)
		h = (h ^ (unsigned char)l->data[i]) * 0x100000001b3ULL;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ULL;
	return h ^ h >> 32;
}

static uint32_t id_of(struct table *t, const struct sba_diff_line *l)
{
	for (size_t at = (size_t)hash_of(t, l) & t->mask;; at = (at + 1) & t->mask) {
		const struct sba_diff_line *other = t->slots[at];
		if (!other) {
			t->slots[at] = l;
			t->id[at] = t->next++;
			return t->id[at];
		}
		if (other->len == l->len && memcmp(other->data, l->data, l->len) == 0)
			return t->id[at];
	}
}

static int number(struct sba_diff_lines *a, struct sba_diff_lines *b, struct sba_error *err)
{
	size_t size = 16;
	struct table t = { .next = 1 };
	while (size < 2 * (a->n + b->n))
		size *= 2;
	/* The texts may be made to collide by who knows the hash. */
	int rc = sba_random(&t.seed, sizeof(t.seed), err);
	if (rc < 0)
		return rc;
	t.slots = calloc(size, sizeof(*t.slots));
	t.id = calloc(size, sizeof(*t.id));
	t.mask = size - 1;
	rc = t.slots && t.id ? 0 : sba_fail_nomem(err);
	for (size_t i = 0; rc == 0 && i < a->n; i++)
		a->id[i] = id_of(&t, &a->v[i]);
	for (size_t i = 0; rc == 0 && i < b->n; i++)
		b->id[i] = id_of(&t, &b->v[i]);
	free(t.slots);
	free(t.id);
	return rc;
}

int sba_diff_lines_of(const struct sba_diff_text *old, const struct sba_diff_text *fresh,
		      struct sba_diff_lines *a, struct sba_diff_lines *b, struct sba_error *err)
{
	*a = *b = (struct sba_diff_lines){ 0 };
	int rc = cut(old, a, err);
	if (rc == 0)
		rc = cut(fresh, b, err);
	if (rc == 0)
		rc = number(a, b, err);
	if (rc < 0) {
		sba_diff_lines_fini(a);
		sba_diff_lines_fini(b);
	}
	return rc;
}
