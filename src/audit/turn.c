/* SPDX-License-Identifier: MIT */
/*
 * The record of one turn as it happens: of what is handed over at once the bytes are
 * written first, then the events that speak of them. Whatever fails ends the record,
 * never the turn.
 */
#include "audit/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEEP_MEMORY = 4 * SBA_AUDIT_BATCH };

void sba_audit_turn_give_up(struct sba_audit_turn *t, const struct sba_error *why)
{
	pthread_mutex_lock(&t->trouble_lock);
	if (!t->dead)
		t->trouble = *why;
	t->dead = true;
	pthread_mutex_unlock(&t->trouble_lock);
}

bool sba_audit_turn_trouble(struct sba_audit_turn *t, struct sba_error *err)
{
	if (!t || !t->dead || t->told)
		return false;
	t->told = true;
	pthread_mutex_lock(&t->trouble_lock);
	*err = t->trouble;
	pthread_mutex_unlock(&t->trouble_lock);
	return true;
}

void sba_audit_turn_set_path(struct sba_audit_turn *t)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s/%s", t->audit->root, t->folder.day, t->folder.name) < 0)
		return;
	free(t->path);
	t->path = path;
}

const char *sba_audit_turn_path(const struct sba_audit_turn *t)
{
	return t && t->path ? t->path : "";
}

/* ---- writing ---- */

static int write_to(struct sba_audit_turn *t, int fd, const void *data, size_t len,
		    const char *name)
{
	struct sba_error err = { 0 };
	int rc = sba_write_all(fd, data, len, &err);
	if (rc < 0) {
		sba_wrap(&err, rc, "%s/%s", sba_audit_turn_path(t), name);
		sba_audit_turn_give_up(t, &err);
	}
	return rc;
}

void sba_audit_turn_write_raw(struct sba_audit_turn *t, const char *data, size_t len)
{
	if (!t->dead && len)
		(void)write_to(t, t->folder.raw_fd, data, len, SBA_AUDIT_RAW);
}

void sba_audit_turn_write(struct sba_audit_turn *t)
{
	struct sba_buf *b = &t->events;
	struct sba_error err = { 0 };
	if (t->dead || (!b->len && !b->failed))
		return;
	if (sba_buf_check(b, "what was said", &err) < 0)
		sba_audit_turn_give_up(t, &err);
	else
		(void)write_to(t, t->events_fd, b->data, b->len, SBA_AUDIT_EVENTS);
	if (b->cap > KEEP_MEMORY)
		sba_buf_fini(b);
	else
		sba_buf_reset(b);
}

void sba_audit_turn_take_piece(struct sba_audit_turn *t, const char *data, size_t len)
{
	if (t->dead)
		return;
	if (t->line_ended) {
		t->at.line++;
		t->at.offset = t->bytes;
	}
	t->line_ended = data[len - 1] == '\n';
	t->bytes += (int64_t)len;
}

/* ---- events ---- */

/* The line from `from` on is whole: secrets go, and a line that found no room is told
 * of by a short one. */
static void finish_line(struct sba_audit_turn *t, size_t from, const struct sba_audit_place *at,
			const char *kind)
{
	if (t->events.failed) {
		struct sba_buf cut = SBA_BUF_INIT(SBA_AUDIT_LINE_MAX);
		t->events.failed = 0;
		sba_buf_put(&cut, t->events.data, from);
		sba_buf_fini(&t->events);
		t->events = cut;
		sba_audit_line_other(&t->events, at, kind, "{\"left_out\":true}");
	} else {
		sba_audit_hide_in(t->audit, t->events.data + from, t->events.len - from);
	}
	t->events_n++;
}

static void put_event(struct sba_audit_turn *t, const struct sba_audit_place *at,
		      const struct sba_event *e)
{
	size_t from = t->events.len;
	sba_audit_line_event(&t->events, at, e);
	finish_line(t, from, at, sba_event_kind_name(e->kind));
}

void sba_audit_turn_put(struct sba_audit_turn *t, const char *kind, const json_t *payload)
{
	const struct sba_audit_place at = { .turn = t->number, .time_ms = sba_unix_ms() };
	SBA_FREE char *text = payload ? sba_json_dump(payload) : NULL;
	size_t from = t->events.len;
	sba_audit_line_other(&t->events, &at, kind, text ? text : "{\"left_out\":true}");
	finish_line(t, from, &at, kind);
}

static struct sba_audit_place place_of(const struct sba_audit_turn *t, const struct sba_event *e)
{
	struct sba_audit_place at = { .turn = t->number, .time_ms = e->time_ms };
	if (e->raw) {
		at.line = t->at.line;
		at.offset = t->at.offset;
	}
	return at;
}

/* What was held back turned out to be followed by something else. */
void sba_audit_turn_let_go(struct sba_audit_turn *t)
{
	if (t->held.len == 0)
		return;
	const struct sba_event rest = {
		.kind = t->held_kind,
		.time_ms = t->held_at.time_ms,
		.text = t->held.data,
		.delta = true,
	};
	put_event(t, &t->held_at, &rest);
	sba_buf_reset(&t->held);
}

/* A text that goes on may have a secret across two pieces of it. */
static void put_delta(struct sba_audit_turn *t, const struct sba_audit_place *at,
		      const struct sba_event *e)
{
	struct sba_event shown = *e;
	if (t->held.len && t->held_kind != e->kind)
		sba_audit_turn_let_go(t);
	sba_buf_puts(&t->held, e->text);
	if (t->held.failed || !t->held.data) {
		sba_buf_reset(&t->held);
		put_event(t, at, e);
		return;
	}
	size_t safe = sba_audit_hide_part(t->audit, t->held.data, t->held.len);
	SBA_FREE char *text = strndup(t->held.data, safe);
	t->held_kind = e->kind;
	t->held_at = *at;
	if (!text)
		return;
	shown.text = text;
	if (safe > 0)
		put_event(t, at, &shown);
	sba_buf_drop(&t->held, safe);
}

void sba_audit_turn_take_event(struct sba_audit_turn *t, const struct sba_event *e)
{
	if (t->dead)
		return;
	const struct sba_audit_place at = place_of(t, e);
	bool text = e->text && (e->kind == SBA_EVENT_TEXT || e->kind == SBA_EVENT_THINKING);
	/* A whole text may be what deltas go on from. */
	if (text && !e->delta)
		sba_audit_turn_let_go(t);
	if (text) {
		put_delta(t, &at, e);
	} else {
		sba_audit_turn_let_go(t);
		put_event(t, &at, e);
	}
	if (e->kind == SBA_EVENT_SESSION && e->session)
		sba_audit_turn_session(t, e->session);
	if (t->events.len >= SBA_AUDIT_BATCH || t->events.failed)
		sba_audit_turn_write(t);
}

void sba_audit_turn_other(struct sba_audit_turn *t, const char *kind, const char *payload,
			  int64_t time_ms)
{
	const struct sba_audit_place at = { .turn = t->number, .time_ms = time_ms };
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(SBA_AUDIT_LINE_MAX);
	struct sba_error err = { 0 };
	if (t->dead)
		return;
	sba_audit_line_other(&line, &at, kind, payload);
	if (line.failed)
		return;
	sba_audit_hide_in(t->audit, line.data, line.len);
	/* Not gathered: another thread's. Appending one line whole is the file's affair. */
	if (sba_write_all(t->events_fd, line.data, line.len, &err) < 0)
		sba_log("audit", "%s: %s", kind, err.text);
}

/* ---- the session's id ---- */

void sba_audit_turn_save(struct sba_audit_turn *t)
{
	struct sba_error err = { 0 };
	int rc = t->dead ? 0 : sba_audit_status_save(t->folder.fd, t->status, &err);
	if (rc < 0) {
		sba_wrap(&err, rc, "%s", sba_audit_turn_path(t));
		sba_audit_turn_give_up(t, &err);
	}
}

/* The first one counts, whenever it comes. Another than the one that the turn goes on
 * with is a further name of the same conversation; that of a turn aside is gone with
 * the turn. */
void sba_audit_turn_session(struct sba_audit_turn *t, const char *session)
{
	struct sba_error err = { 0 };
	if (t->dead || *t->session || !sba_session_id_valid(session))
		return;
	snprintf(t->session, sizeof(t->session), "%s", session);
	json_object_set_new(t->entry, "session", json_string(session));
	if (t->folder.pending) {
		int rc = sba_audit_folder_rename(t->audit, &t->folder, session, &err);
		if (rc < 0)
			sba_log("audit", "%s", err.text);
		sba_audit_turn_set_path(t);
	}
	if (!t->aside || !json_is_string(json_object_get(t->status, "session")))
		(void)sba_audit_status_add_session(t->status, session);
	sba_audit_turn_save(t);
}

/* ---- the beginning ---- */

int sba_audit_turn_begin(struct sba_audit *a, const struct sba_audit_begin *b,
			 struct sba_audit_turn **ret, struct sba_error *err)
{
	struct sba_audit_turn *t = calloc(1, sizeof(*t));
	struct sba_error why = { 0 };
	if (!t)
		return sba_fail_nomem(err);
	sba_audit_ask(a);
	t->audit = a;
	pthread_mutex_init(&t->trouble_lock, NULL);
	t->folder = (struct sba_audit_folder)SBA_AUDIT_FOLDER_INIT;
	t->events_fd = -1;
	t->aside = b->aside;
	sba_buf_init(&t->events, SBA_AUDIT_LINE_MAX);
	sba_buf_init(&t->held, SBA_LINE_MAX);
	int rc = sba_audit_turn_start(t, b, &why);
	if (rc < 0) {
		t->over = true;
		sba_audit_turn_free(t);
		if (err)
			*err = why;
		return rc;
	}
	pthread_mutex_lock(&a->lock);
	a->turn = t;
	pthread_mutex_unlock(&a->lock);
	*ret = t;
	return 0;
}
