/* SPDX-License-Identifier: MIT */
/* The end of a turn's record: its outcome, and retention. */
#include "audit/turn.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave_audit(struct sba_audit_turn *t)
{
	pthread_mutex_lock(&t->audit->lock);
	if (t->audit->turn == t)
		t->audit->turn = NULL;
	pthread_mutex_unlock(&t->audit->lock);
}

static json_t *usage_json(const struct sba_usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f}", "input", (json_int_t)u->input, "cached_input",
			 (json_int_t)u->cached_input, "output", (json_int_t)u->output, "reasoning",
			 (json_int_t)u->reasoning, "cost_usd", u->cost_usd);
}

/* What the end says, in the entry and among the events alike. */
static json_t *outcome(const struct sba_audit_turn *t, const struct sba_audit_end *e)
{
	const struct sba_audit *a = t->audit;
	json_t *j =
		json_pack("{s:s, s:i, s:I, s:I, s:I, s:o}", "verdict", e->verdict, "exit_status",
			  e->exit_status, "duration_ms", (json_int_t)e->duration_ms, "tools",
			  (json_int_t)e->tools, "unknown_lines", (json_int_t)e->unknown_lines,
			  "usage", usage_json(&e->usage));
	if (j && e->error && *e->error)
		json_object_set_new(j, "error",
				    sba_audit_text(a, e->error, strlen(e->error), 4 * SBA_KIB));
	return j;
}

static void put_result(struct sba_audit_turn *t, const json_t *said, const struct sba_audit_end *e)
{
	SBA_JSON json_t *j = json_copy((json_t *)(uintptr_t)said);
	if (j && e->answer && *e->answer)
		json_object_set_new(j, "answer",
				    sba_audit_text(t->audit, e->answer, strlen(e->answer),
						   SBA_AUDIT_PROMPT_MAX));
	sba_audit_turn_put(t, "result", j);
}

static void close_entry(struct sba_audit_turn *t)
{
	char now[SBA_AUDIT_TIME];
	int64_t first = sba_json_int(t->entry, "line", 1);
	int64_t begun = sba_json_int(t->entry, "offset", 0);
	sba_audit_time(sba_unix_ms(), now);
	json_object_set_new(t->entry, "ended", json_string(now));
	json_object_set_new(t->entry, "bytes", json_integer(t->bytes - begun));
	json_object_set_new(t->entry, "lines",
			    json_integer(t->bytes > begun ? t->at.line - first + 1 : 0));
	json_object_set_new(t->entry, "whole_lines", json_boolean(t->line_ended));
	json_object_set_new(t->entry, "events", json_integer((json_int_t)t->events_n));
}

/* The status of a record that broke off may still find room. */
static void save_last(struct sba_audit_turn *t)
{
	struct sba_error ignored = { 0 };
	if (!t->dead)
		sba_audit_turn_save(t);
	else if (sba_audit_status_save(t->folder.fd, t->status, &ignored) < 0)
		sba_log("audit", "%s", ignored.text);
}

static void prune_once(struct sba_audit *a)
{
	struct sba_error err = { 0 };
	if (a->pruned)
		return;
	a->pruned = true;
	if (sba_audit_prune(a->root, a->retention_days, NULL, &err) < 0)
		sba_log("audit", "%s", err.text);
}

void sba_audit_turn_end(struct sba_audit_turn *t, const struct sba_audit_end *e)
{
	if (!t || t->over)
		return;
	t->over = true;
	sba_audit_feed_close(t);
	sba_audit_connections_settle(t->audit->connections);
	if (e->session && *e->session)
		sba_audit_turn_session(t, e->session);
	SBA_JSON json_t *said = outcome(t, e);
	if (said)
		json_object_update(t->entry, said);
	if (!t->dead && said) {
		sba_audit_turn_let_go(t);
		put_result(t, said, e);
	}
	sba_audit_turn_write(t);
	close_entry(t);
	if (t->dead)
		json_object_set_new(t->entry, "incomplete", json_true());
	save_last(t);
	leave_audit(t);
	/* The next turn need not wait until this one is freed. */
	sba_cleanup_close(&t->events_fd);
	t->events_fd = -1;
	sba_audit_folder_close(&t->folder);
	prune_once(t->audit);
}

void sba_audit_turn_free(struct sba_audit_turn *t)
{
	static const struct sba_audit_end never = { .verdict = "abandoned", .exit_status = -1 };
	if (!t)
		return;
	sba_audit_turn_end(t, &never);
	leave_audit(t);
	sba_cleanup_close(&t->events_fd);
	sba_audit_folder_close(&t->folder);
	sba_buf_fini(&t->events);
	sba_buf_fini(&t->held);
	json_decref(t->status);
	pthread_mutex_destroy(&t->trouble_lock);
	free(t->path);
	free(t);
}
