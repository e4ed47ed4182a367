/* SPDX-License-Identifier: MIT */
/* Events between the driver, which gives several a line, and the caller, who takes one. */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

struct sba_queued {
	struct sba_event event;
	struct sba_queued *next;
	char strings[]; /* what event points to */
};

int sba_event_queue_put(void *user, const struct sba_event *event)
{
	struct sba_event_queue *q = user;
	struct sba_event copy = *event;
	const char **slots[SBA_EVENT_STRINGS];
	sba_event_strings(&copy, slots);
	size_t total = 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(slots); i++)
		total += *slots[i] ? strlen(*slots[i]) + 1 : 0;
	struct sba_queued *item = malloc(sizeof(*item) + total);
	if (!item)
		return SBA_ENOMEM;
	char *at = item->strings;
	for (size_t i = 0; i < SBA_ARRAY_LEN(slots); i++) {
		if (!*slots[i])
			continue;
		size_t len = strlen(*slots[i]) + 1;
		memcpy(at, *slots[i], len);
		*slots[i] = at;
		at += len;
	}
	if (q->secrets)
		sba_secrets_hide(q->secrets, item->strings, total, true);
	item->event = copy;
	item->next = NULL;
	if (q->tap)
		q->tap(q->tap_user, &item->event);
	if (q->last)
		q->last->next = item;
	else
		q->first = item;
	q->last = item;
	return 0;
}

const struct sba_event *sba_event_queue_take(struct sba_event_queue *q)
{
	free(q->lent);
	q->lent = q->first;
	if (!q->lent)
		return NULL;
	q->first = q->lent->next;
	if (!q->first)
		q->last = NULL;
	return &q->lent->event;
}

bool sba_event_queue_empty(const struct sba_event_queue *q)
{
	return !q->first;
}

void sba_event_queue_fini(struct sba_event_queue *q)
{
	while (q->first)
		sba_event_queue_take(q);
	free(q->lent);
	*q = (struct sba_event_queue){ 0 };
}
