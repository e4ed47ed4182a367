/* SPDX-License-Identifier: MIT */
/*
 * From the turn to the thread that writes its record: what is said is packed, which
 * takes next to no time, and handed over when the turn waits or there is enough of it.
 * A disk that is slower than the CLI is waited for; nothing is left out.
 */
#include "audit/turn.h"

#include <stdlib.h>
#include <string.h>

enum { HANDED_MAX = 1024 * 1024, ALIGN = 8 };

/* In front of what is packed: bytes of the CLI, or an event and its strings. */
struct head {
	size_t len; /* of what follows, without padding */
	bool event;
};

struct sba_audit_feed {
	struct sba_audit_turn *turn;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t more, taken;
	struct sba_buf filling; /* the turn's; needs no lock */
	struct sba_buf handed;
	bool at_work, closing;
};

static void out_of_memory(struct sba_audit_turn *t)
{
	struct sba_error why = { 0 };
	sba_fail_nomem(&why);
	sba_audit_turn_give_up(t, &why);
}

/* ---- packing ---- */

static void pad(struct sba_buf *b)
{
	static const char zeros[ALIGN];
	sba_buf_put(b, zeros, (ALIGN - b->len % ALIGN) % ALIGN);
}

static void pack_event(struct sba_buf *b, const struct sba_event *e)
{
	struct sba_event copy = *e;
	const char **slots[SBA_EVENT_STRINGS];
	struct head h = { .len = sizeof(copy), .event = true };
	sba_event_strings(&copy, slots);
	for (size_t i = 0; i < SBA_EVENT_STRINGS; i++)
		h.len += *slots[i] ? strlen(*slots[i]) + 1 : 0;
	sba_buf_put(b, &h, sizeof(h));
	sba_buf_put(b, &copy, sizeof(copy));
	for (size_t i = 0; i < SBA_EVENT_STRINGS; i++) {
		if (*slots[i])
			sba_buf_put(b, *slots[i], strlen(*slots[i]) + 1);
	}
	pad(b);
}

static void unpack(struct sba_audit_turn *t, const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct head h;
		struct sba_event e;
		const char **slots[SBA_EVENT_STRINGS];
		memcpy(&h, data + at, sizeof(h));
		const char *from = data + at + sizeof(h);
		if (h.event) {
			memcpy(&e, from, sizeof(e));
			sba_event_strings(&e, slots);
			const char *s = from + sizeof(e);
			for (size_t i = 0; i < SBA_EVENT_STRINGS; i++) {
				if (!*slots[i])
					continue;
				*slots[i] = s;
				s += strlen(s) + 1;
			}
			sba_audit_turn_take_event(t, &e);
		} else {
			sba_audit_turn_take_raw(t, from, h.len);
		}
		at += sizeof(h) + h.len;
		at += (ALIGN - at % ALIGN) % ALIGN;
	}
}

/* ---- the thread ---- */

static void *work(void *feed)
{
	struct sba_audit_feed *f = feed;
	struct sba_buf mine = SBA_BUF_INIT(SBA_AUDIT_LINE_MAX);
	pthread_mutex_lock(&f->lock);
	for (;;) {
		while (!f->handed.len && !f->closing)
			pthread_cond_wait(&f->more, &f->lock);
		if (!f->handed.len)
			break;
		struct sba_buf taken = f->handed;
		f->handed = mine;
		f->at_work = true;
		pthread_cond_broadcast(&f->taken);
		pthread_mutex_unlock(&f->lock);
		unpack(f->turn, taken.data, taken.len);
		sba_audit_turn_write(f->turn);
		if (taken.failed)
			out_of_memory(f->turn);
		if (taken.cap > HANDED_MAX)
			sba_buf_fini(&taken);
		else
			sba_buf_reset(&taken);
		mine = taken;
		pthread_mutex_lock(&f->lock);
		f->at_work = false;
		pthread_cond_broadcast(&f->taken);
	}
	pthread_mutex_unlock(&f->lock);
	sba_buf_fini(&mine);
	return NULL;
}

int sba_audit_feed_open(struct sba_audit_turn *t, struct sba_error *err)
{
	struct sba_audit_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return sba_fail_nomem(err);
	f->turn = t;
	sba_buf_init(&f->filling, SBA_AUDIT_LINE_MAX);
	sba_buf_init(&f->handed, SBA_AUDIT_LINE_MAX);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
	pthread_cond_init(&f->taken, NULL);
	int rc = sba_thread_start(&f->thread, work, f, err);
	if (rc < 0) {
		pthread_cond_destroy(&f->taken);
		pthread_cond_destroy(&f->more);
		pthread_mutex_destroy(&f->lock);
		free(f);
		return rc;
	}
	t->feed = f;
	return 0;
}

void sba_audit_feed_close(struct sba_audit_turn *t)
{
	struct sba_audit_feed *f = t->feed;
	if (!f)
		return;
	sba_audit_turn_flush(t);
	t->feed = NULL;
	pthread_mutex_lock(&f->lock);
	f->closing = true;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->taken);
	pthread_cond_destroy(&f->more);
	pthread_mutex_destroy(&f->lock);
	sba_buf_fini(&f->filling);
	sba_buf_fini(&f->handed);
	free(f);
}

/* ---- the turn's side ---- */

/* Out of memory: what has been packed whole still goes. */
static void hand_if_much(struct sba_audit_turn *t, size_t whole)
{
	struct sba_audit_feed *f = t->feed;
	if (f->filling.failed) {
		f->filling.failed = 0;
		f->filling.len = whole;
		out_of_memory(t);
	}
	if (f->filling.len >= SBA_AUDIT_BATCH)
		sba_audit_turn_flush(t);
}

void sba_audit_turn_raw(struct sba_audit_turn *t, const char *data, size_t len)
{
	if (!t || !t->feed || t->dead || len == 0)
		return;
	struct sba_buf *b = &t->feed->filling;
	const struct head h = { .len = len };
	size_t whole = b->len;
	sba_buf_put(b, &h, sizeof(h));
	sba_buf_put(b, data, len);
	pad(b);
	hand_if_much(t, whole);
}

void sba_audit_turn_event(void *user, const struct sba_event *e)
{
	struct sba_audit_turn *t = user;
	if (!t || !t->feed || t->dead)
		return;
	size_t whole = t->feed->filling.len;
	pack_event(&t->feed->filling, e);
	hand_if_much(t, whole);
}

void sba_audit_turn_flush(struct sba_audit_turn *t)
{
	struct sba_audit_feed *f = t ? t->feed : NULL;
	if (!f || !f->filling.len)
		return;
	pthread_mutex_lock(&f->lock);
	while (f->handed.len && f->handed.len + f->filling.len > HANDED_MAX)
		pthread_cond_wait(&f->taken, &f->lock);
	if (!f->handed.len) {
		struct sba_buf empty = f->handed;
		f->handed = f->filling;
		f->filling = empty;
	} else {
		sba_buf_put(&f->handed, f->filling.data, f->filling.len);
		sba_buf_reset(&f->filling);
	}
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
}

void sba_audit_turn_settle(struct sba_audit_turn *t)
{
	struct sba_audit_feed *f = t->feed;
	sba_audit_turn_flush(t);
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	while (f->handed.len || f->at_work)
		pthread_cond_wait(&f->taken, &f->lock);
	pthread_mutex_unlock(&f->lock);
}
