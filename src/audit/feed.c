/* SPDX-License-Identifier: MIT */
/*
 * From the turn to the thread that writes its record: what is said is packed, which
 * takes next to no time, and handed over when there is enough of it or it has waited
 * for long enough: a thread that is woken for each line costs the turn more than its
 * work does. A disk that is slower than the CLI is waited for; nothing is left out.
 */
#include "audit/turn.h"

#include <stdlib.h>
#include <string.h>

enum { HANDED_MAX = 1024 * 1024, ALIGN = 8, LATE_MS = 50 };

/* Of the CLI's bytes how many came, or an event and its strings behind it. */
struct head {
	size_t len; /* of an event: of what follows, without padding */
	bool event;
};

/* What was said: bytes as they go to the file, and what they mean. */
struct said {
	struct sba_buf bytes, told;
};

struct sba_audit_feed {
	struct sba_audit_turn *turn;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t more, taken;
	struct said filling; /* the turn's; needs no lock, nor does the time */
	int64_t handed_ms;
	struct said handed;
	bool at_work, closing;
};

static void said_init(struct said *s)
{
	sba_buf_init(&s->bytes, SBA_AUDIT_LINE_MAX);
	sba_buf_init(&s->told, SBA_AUDIT_LINE_MAX);
}

static void said_fini(struct said *s)
{
	sba_buf_fini(&s->bytes);
	sba_buf_fini(&s->told);
}

static size_t said_len(const struct said *s)
{
	return s->bytes.len + s->told.len;
}

static void empty(struct sba_buf *b)
{
	if (b->cap > HANDED_MAX)
		sba_buf_fini(b);
	else
		sba_buf_reset(b);
}

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

static void unpack_event(struct sba_audit_turn *t, const char *from)
{
	struct sba_event e;
	const char **slots[SBA_EVENT_STRINGS];
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
}

static void unpack(struct sba_audit_turn *t, const struct said *said)
{
	const char *bytes = said->bytes.data, *told = said->told.data;
	sba_audit_turn_write_raw(t, bytes, said->bytes.len);
	for (size_t at = 0; at < said->told.len;) {
		struct head h;
		memcpy(&h, told + at, sizeof(h));
		at += sizeof(h);
		if (!h.event) {
			sba_audit_turn_take_piece(t, bytes, h.len);
			bytes += h.len;
			continue;
		}
		unpack_event(t, told + at);
		at += h.len;
		at += (ALIGN - at % ALIGN) % ALIGN;
	}
	sba_audit_turn_write(t);
}

/* ---- the thread ---- */

static void *work(void *feed)
{
	struct sba_audit_feed *f = feed;
	struct said mine;
	said_init(&mine);
	pthread_mutex_lock(&f->lock);
	for (;;) {
		while (!said_len(&f->handed) && !f->closing)
			pthread_cond_wait(&f->more, &f->lock);
		if (!said_len(&f->handed))
			break;
		struct said taken = f->handed;
		f->handed = mine;
		f->at_work = true;
		pthread_cond_broadcast(&f->taken);
		pthread_mutex_unlock(&f->lock);
		unpack(f->turn, &taken);
		if (taken.bytes.failed || taken.told.failed)
			out_of_memory(f->turn);
		empty(&taken.bytes);
		empty(&taken.told);
		mine = taken;
		pthread_mutex_lock(&f->lock);
		f->at_work = false;
		pthread_cond_broadcast(&f->taken);
	}
	pthread_mutex_unlock(&f->lock);
	said_fini(&mine);
	return NULL;
}

int sba_audit_feed_open(struct sba_audit_turn *t, struct sba_error *err)
{
	struct sba_audit_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return sba_fail_nomem(err);
	f->turn = t;
	said_init(&f->filling);
	said_init(&f->handed);
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
	said_fini(&f->filling);
	said_fini(&f->handed);
	free(f);
}

/* ---- the turn's side ---- */

static void hand_over(struct sba_audit_feed *f)
{
	pthread_mutex_lock(&f->lock);
	while (said_len(&f->handed) && said_len(&f->handed) + said_len(&f->filling) > HANDED_MAX)
		pthread_cond_wait(&f->taken, &f->lock);
	if (!said_len(&f->handed)) {
		struct said old = f->handed;
		f->handed = f->filling;
		f->filling = old;
	} else {
		sba_buf_put(&f->handed.bytes, f->filling.bytes.data, f->filling.bytes.len);
		sba_buf_put(&f->handed.told, f->filling.told.data, f->filling.told.len);
		sba_buf_reset(&f->filling.bytes);
		sba_buf_reset(&f->filling.told);
	}
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
	f->handed_ms = sba_now_ms();
}

void sba_audit_turn_flush(struct sba_audit_turn *t)
{
	if (t && t->feed && said_len(&t->feed->filling))
		hand_over(t->feed);
}

int64_t sba_audit_turn_flush_late(struct sba_audit_turn *t)
{
	struct sba_audit_feed *f = t ? t->feed : NULL;
	if (!f || !said_len(&f->filling))
		return -1;
	int64_t left = f->handed_ms + LATE_MS - sba_now_ms();
	if (left > 0)
		return left;
	hand_over(f);
	return -1;
}

/* Out of memory: what was packed whole still goes. */
static void hand_if_much(struct sba_audit_turn *t, size_t bytes, size_t told)
{
	struct said *s = &t->feed->filling;
	if (s->bytes.failed || s->told.failed) {
		s->bytes.failed = s->told.failed = 0;
		s->bytes.len = bytes;
		s->told.len = told;
		out_of_memory(t);
	}
	if (said_len(s) >= SBA_AUDIT_HAND)
		sba_audit_turn_flush(t);
}

void sba_audit_turn_raw(struct sba_audit_turn *t, const char *data, size_t len)
{
	if (!t || !t->feed || t->dead || len == 0)
		return;
	struct said *s = &t->feed->filling;
	const struct head h = { .len = len };
	size_t bytes = s->bytes.len, told = s->told.len;
	sba_buf_put(&s->bytes, data, len);
	sba_buf_put(&s->told, &h, sizeof(h));
	hand_if_much(t, bytes, told);
}

void sba_audit_turn_event(void *user, const struct sba_event *e)
{
	struct sba_audit_turn *t = user;
	if (!t || !t->feed || t->dead)
		return;
	struct said *s = &t->feed->filling;
	size_t bytes = s->bytes.len, told = s->told.len;
	pack_event(&s->told, e);
	hand_if_much(t, bytes, told);
}

void sba_audit_turn_settle(struct sba_audit_turn *t)
{
	struct sba_audit_feed *f = t->feed;
	sba_audit_turn_flush(t);
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	while (said_len(&f->handed) || f->at_work)
		pthread_cond_wait(&f->taken, &f->lock);
	pthread_mutex_unlock(&f->lock);
}
