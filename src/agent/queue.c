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

static int put(struct sba_event_queue *q, const struct sba_event *event)
{
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

/* ---- a secret that comes in pieces ---- */

static bool is_text(enum sba_event_kind kind)
{
	return kind == SBA_EVENT_TEXT || kind == SBA_EVENT_THINKING;
}

/* What may come between two deltas of one text. */
static bool is_beside(enum sba_event_kind kind)
{
	return kind == SBA_EVENT_NOTICE || kind == SBA_EVENT_USAGE ||
	       kind == SBA_EVENT_FILE_CHANGE || kind == SBA_EVENT_SESSION;
}

/* Gives the first bytes of what is held. */
static int give(struct sba_event_queue *q, const struct sba_event *like, size_t len)
{
	struct sba_text_hold *h = &q->hold;
	struct sba_event event = *like;
	if (len == 0)
		return 0;
	const char behind = h->text.data[len];
	h->text.data[len] = '\0';
	event.text = h->text.data;
	event.delta = h->delta;
	int rc = put(q, &event);
	h->text.data[len] = behind;
	sba_buf_drop(&h->text, len);
	h->delta = true;
	return rc;
}

int sba_event_queue_flush(struct sba_event_queue *q)
{
	struct sba_text_hold *h = &q->hold;
	const struct sba_event event = { .kind = h->kind,
					 .time_ms = sba_unix_ms(),
					 .session = *h->session ? h->session : NULL };
	return give(q, &event, h->text.len);
}

static void begin_text(struct sba_text_hold *h, const struct sba_event *event)
{
	if (h->text.cap > SBA_MIB)
		sba_buf_fini(&h->text);
	h->text.max = (size_t)2 * SBA_LINE_MAX;
	h->kind = event->kind;
	h->delta = event->delta;
	snprintf(h->session, sizeof(h->session), "%s", event->session ? event->session : "");
}

static int put_text(struct sba_event_queue *q, const struct sba_event *event)
{
	struct sba_text_hold *h = &q->hold;
	int rc = event->delta && event->kind == h->kind ? 0 : sba_event_queue_flush(q);
	if (h->text.len == 0)
		begin_text(h, event);
	sba_buf_puts(&h->text, event->text ? event->text : "");
	if (h->text.failed) {
		sba_buf_fini(&h->text);
		return SBA_ENOMEM;
	}
	size_t safe =
		h->text.len ? sba_secrets_hide(q->secrets, h->text.data, h->text.len, false) : 0;
	int given = give(q, event, safe);
	return rc ? rc : given;
}

int sba_event_queue_put(void *user, const struct sba_event *event)
{
	struct sba_event_queue *q = user;
	if (sba_secrets_none(q->secrets))
		return put(q, event);
	if (is_text(event->kind))
		return put_text(q, event);
	int rc = is_beside(event->kind) ? 0 : sba_event_queue_flush(q);
	int given = put(q, event);
	return rc ? rc : given;
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
	sba_buf_fini(&q->hold.text);
	*q = (struct sba_event_queue){ 0 };
}
