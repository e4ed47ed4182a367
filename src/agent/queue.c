/* SPDX-License-Identifier: MIT */
/* Events between the driver, which gives several a line, and the caller, who takes one. */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 13 };

struct sba_queued {
	struct sba_event event;
	struct sba_queued *next;
	char strings[]; /* what event points to */
};

/* Every string of an event but raw, which belongs to the line. */
static void each_string(struct sba_event *e, const char **slots[static SLOTS])
{
	const char **all[SLOTS] = { &e->session,     &e->text,   &e->tool,    &e->tool_native,
				    &e->call_id,     &e->input,  &e->summary, &e->output,
				    &e->path,        &e->change, &e->diff,    &e->old_path,
				    &e->without_diff };
	memcpy(slots, all, sizeof(all));
}

int sba_event_queue_put(void *user, const struct sba_event *event)
{
	struct sba_event_queue *q = user;
	struct sba_event copy = *event;
	const char **slots[SLOTS];
	each_string(&copy, slots);
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
