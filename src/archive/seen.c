/* SPDX-License-Identifier: MIT */
/*
 * Which names have been there: eight bytes for each, by a hash. Two that share one
 * are taken for the same; whoever asks must be able to live with that.
 */
#include "archive/private.h"

#include <stdlib.h>

enum { SEEN_FIRST = 256, SEEN_MAX = 1 << 20 };

/* FNV-1a; 0 stands for an empty slot. */
static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325U;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3U;
	return h ? h : 1;
}

static uint64_t *slot_of(const struct sba_seen *s, uint64_t hash)
{
	size_t at = (size_t)hash & (s->size - 1);
	while (s->slots[at] && s->slots[at] != hash)
		at = (at + 1) & (s->size - 1);
	return &s->slots[at];
}

static int grow(struct sba_seen *s, struct sba_error *err)
{
	struct sba_seen bigger = { .size = s->size ? 2 * s->size : SEEN_FIRST, .n = s->n };
	if (bigger.size > SEEN_MAX)
		return sba_fail(err, SBA_ELIMIT, "more than %d directories", SEEN_MAX / 2);
	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < s->size; i++) {
		if (s->slots[i])
			*slot_of(&bigger, s->slots[i]) = s->slots[i];
	}
	free(s->slots);
	*s = bigger;
	return 0;
}

int sba_seen_add(struct sba_seen *s, const char *name, struct sba_error *err)
{
	int rc = 2 * s->n >= s->size ? grow(s, err) : 0;
	if (rc < 0)
		return rc;
	uint64_t hash = hash_of(name), *slot = slot_of(s, hash);
	if (*slot)
		return 0;
	*slot = hash;
	s->n++;
	return 1;
}

void sba_seen_fini(struct sba_seen *s)
{
	free(s->slots);
	*s = (struct sba_seen){ 0 };
}
