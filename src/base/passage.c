/* SPDX-License-Identifier: MIT */
/* Room for bytes in passing, as large as what lately passed. */
#include "base/base.h"

#include <stdlib.h>

enum {
	FIRST = 16 * 1024,
	GROWTH = 4,
	CALM = 16, /* times in a row that little passed */
};

static size_t wanted(struct sba_passage *p, size_t used)
{
	if (p->size == 0)
		return FIRST < p->max ? FIRST : p->max;
	p->calm = used > FIRST / 2 ? 0 : p->calm + 1;
	if (used > p->size / 2)
		return p->size < p->max / GROWTH ? p->size * GROWTH : p->max;
	if (p->calm >= CALM && p->size > FIRST)
		return FIRST;
	return p->size;
}

void sba_passage_fit(struct sba_passage *p, size_t used)
{
	size_t size = wanted(p, used);
	char *data = size != p->size ? realloc(p->data, size) : NULL;
	if (!data)
		return;
	p->data = data;
	p->size = size;
}

void sba_passage_fini(struct sba_passage *p)
{
	free(p->data);
	*p = (struct sba_passage){ .max = p->max };
}
