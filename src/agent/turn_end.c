/* SPDX-License-Identifier: MIT */
/*
 * The end of a turn: what the CLI said, how its process ended, what the relay and
 * the sandbox know, and our own reasons become one verdict; and what is kept.
 */
#include "agent/turn.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the sandbox's limits take ---- */

static void give_notice(struct sba_turn *t, int64_t count, int64_t *told, const char *text)
{
	const struct sba_event event = {
		.kind = SBA_EVENT_NOTICE,
		.time_ms = sba_unix_ms(),
		.text = text,
	};
	if (count <= *told)
		return;
	*told = count;
	if (sba_event_queue_put(&t->events, &event) != 0)
		sba_log("agent", "an event was lost: out of memory");
}

/* A CLI goes on when the command that it ran is killed, and may not know why. */
void sba_turn_tell_losses(struct sba_turn *t, int64_t oom_kills, int64_t pids_refused)
{
	give_notice(t, oom_kills, &t->oom_kills,
		    "something in the sandbox was killed: out of memory");
	give_notice(t, pids_refused, &t->pids_refused,
		    "something in the sandbox could not start: out of processes");
}

/* ---- the verdict ---- */

static void set_error(struct sba_turn *t, enum sba_verdict verdict, int code, const char *text)
{
	const char *name = t->agent->driver->name;
	size_t len = strlen(name);
	bool named = strncmp(text, name, len) == 0 && text[len] == ' ';
	t->result.verdict = verdict;
	sba_fail(&t->result.error, code, "%s%s%s", named ? "" : name, named ? "" : ": ", text);
}

static void lost(struct sba_turn *t, const struct sba_error *why)
{
	t->result.verdict = why->code == SBA_EBROKEN     ? SBA_VERDICT_SANDBOX_BROKEN
			    : why->code == SBA_ENOTFOUND ? SBA_VERDICT_SANDBOX_BROKEN
							 : SBA_VERDICT_ENGINE_LOST;
	t->result.error = *why;
}

static void missing_cli(struct sba_turn *t)
{
	const struct sba_driver *d = t->agent->driver;
	char place[SBA_PLACE_MAX];
	const char *binary =
		d->binary ? d->binary : json_string_value(json_array_get(t->agent->program, 0));
	t->result.verdict = SBA_VERDICT_AGENT_FAILED;
	sba_agent_no_cli(d, binary ? binary : d->name, sba_agent_place(t->agent->sandbox, place),
			 &t->result.error);
}

/* What the stream and the exit status say together. */
static void take_outcome(struct sba_turn *t, int status)
{
	struct sba_outcome o = { 0 };
	const char *tail = t->stderr_tail.data ? t->stderr_tail.data : "";
	sba_stream_finish(t->stream, status, tail, &o);
	t->result.verdict = o.verdict;
	t->result.session = o.session ? o.session : "";
	t->result.text = o.text ? o.text : "";
	t->result.http_status = o.http_status;
	t->result.retryable = o.retryable;
	t->result.usage = o.usage;
	t->result.tools = o.tools;
	t->result.unknown_lines = o.unknown_lines + t->lines.dropped;
	t->result.exit_status = status;
	if (o.verdict == SBA_VERDICT_OK)
		return;
	set_error(t, o.verdict, sba_verdict_code(o.verdict), o.error ? o.error : "it failed");
	t->result.error.http_status = o.http_status;
}

/* A budget that ran out is the reason, whatever the CLI made of the refusal. */
static void judge_budget(struct sba_turn *t)
{
	struct sba_relay_stats stats;
	if (!t->agent->relay || t->result.verdict == SBA_VERDICT_OK || t->ended_by == BY_CALLER)
		return;
	sba_relay_stats_get(t->agent->relay, &stats);
	if (stats.tokens_spent)
		set_error(t, SBA_VERDICT_BUDGET, SBA_EBUDGET, "its budget of tokens is spent");
	else if (stats.requests_spent)
		set_error(t, SBA_VERDICT_BUDGET, SBA_EBUDGET,
			  "its budget of requests for this turn is spent");
}

/* Where a budget is spent, that is the reason; it was told before this. */
static void judge_refusal(struct sba_turn *t)
{
	if (t->result.verdict == SBA_VERDICT_BUDGET || t->result.verdict == SBA_VERDICT_OK)
		return;
	set_error(t, SBA_VERDICT_MODEL_ERROR, SBA_EMODEL,
		  "the model's provider refuses the key (401), and it asked on");
	t->result.http_status = t->result.error.http_status = 401;
	t->result.retryable = false;
}

static void judge_ours(struct sba_turn *t)
{
	char span[32];
	switch (t->ended_by) {
	case BY_CALLER:
		set_error(t, SBA_VERDICT_CANCELED, SBA_ECANCELED, "interrupted");
		break;
	case BY_IDLENESS:
		sba_format_duration(t->idle_ms, span, sizeof(span));
		t->result.verdict = SBA_VERDICT_IDLE_TIMEOUT;
		sba_fail(&t->result.error, SBA_ETIMEOUT,
			 "%s: nothing came from it for %s, nor did it compute",
			 t->agent->driver->name, span);
		break;
	case BY_LOOP:
		set_error(t, SBA_VERDICT_MODEL_ERROR, SBA_EMODEL,
			  "it asked the model again and again; every answer broke off");
		break;
	case BY_REFUSAL:
		judge_refusal(t);
		break;
	case BY_GRACE:
	case BY_ITSELF:
		break;
	}
}

static void judge_exit(struct sba_turn *t, const struct sba_exit *e)
{
	/* A CLI that we ended after its last word has done its work. */
	bool by_grace = t->ended_by == BY_GRACE && e->kind == SBA_WAS_CANCELED;
	take_outcome(t, by_grace ? 0 : sba_exit_status(e));
	switch (e->kind) {
	case SBA_NOT_FOUND:
		missing_cli(t);
		break;
	case SBA_TIMED_OUT:
		set_error(t, SBA_VERDICT_TIMEOUT, SBA_ETIMEOUT, "its time was over");
		break;
	case SBA_OUT_OF_MEMORY:
		set_error(t, SBA_VERDICT_SANDBOX_BROKEN, SBA_EBROKEN,
			  "the sandbox ran out of memory");
		break;
	case SBA_NO_PROCESS:
		set_error(t, SBA_VERDICT_SANDBOX_BROKEN, SBA_EBROKEN,
			  "the sandbox's process limit is full");
		break;
	case SBA_NO_WORKDIR:
		set_error(t, SBA_VERDICT_AGENT_FAILED, SBA_ENOTFOUND,
			  "its working directory is not there");
		break;
	case SBA_WAS_CANCELED:
		if (t->ended_by == BY_ITSELF)
			set_error(t, SBA_VERDICT_CANCELED, SBA_ECANCELED, "ended from outside");
		break;
	case SBA_EXITED:
	case SBA_SIGNALED:
	case SBA_CANNOT_RUN:
	case SBA_DETACHED:
	case SBA_LOCKED:
		break;
	}
	judge_budget(t);
	judge_ours(t);
}

/* ---- what is kept ---- */

void sba_turn_keep_session(struct sba_turn *t)
{
	const char *session = sba_stream_session(t->stream);
	if (!session || t->session_kept || t->aside)
		return;
	t->session_kept = true;
	t->state_rc = sba_agent_save_state(t->agent, session, sba_stream_kept(t->stream),
					   &t->state_error);
	if (t->state_rc < 0)
		sba_log("agent", "%s", t->state_error.text);
}

void sba_turn_keep_early(struct sba_turn *t)
{
	struct sba_agent *a = t->agent;
	if (t->aside || t->state_rc < 0)
		return;
	/* A turn counts once its session is known to be the one that it goes on with. */
	int64_t turns = t->session_kept ? a->turns : a->turns + 1;
	sba_agent_save_early(a, turns, sba_stream_kept(t->stream), sba_stream_used(t->stream));
}

static void keep_state(struct sba_turn *t)
{
	if (t->result.verdict == SBA_VERDICT_SANDBOX_BROKEN ||
	    t->result.verdict == SBA_VERDICT_ENGINE_LOST || t->aside)
		return;
	sba_turn_keep_session(t);
	if (t->state_rc == 0)
		t->state_rc = sba_agent_save_turn(t->agent, sba_stream_kept(t->stream),
						  &t->result.usage, &t->state_error);
}

/* A text that was cut may end within a key. */
static void hide_in(const struct sba_secrets *secrets, char *text, size_t size)
{
	size_t len = strlen(text);
	size_t safe = sba_secrets_hide(secrets, text, len, len + 1 < size);
	memset(text + safe, '*', len - safe);
}

static void hide_keys(struct sba_turn *t)
{
	const struct sba_secrets *secrets = &t->agent->secrets;
	hide_in(secrets, t->result.error.text, sizeof(t->result.error.text));
	hide_in(secrets, t->result.error.hint, sizeof(t->result.error.hint));
	if (!t->result.text || sba_secrets_none(secrets))
		return;
	t->answer = strdup(t->result.text);
	if (t->answer)
		sba_secrets_hide(secrets, t->answer, strlen(t->answer), true);
	t->result.text = t->answer ? t->answer : "";
}

void sba_turn_clear_up(struct sba_turn *t)
{
	struct sba_inside in;
	if (*t->scratch && sba_agent_inside(t->agent, &in, NULL) == 0)
		sba_agent_scratch_drop(&in, t->scratch);
	t->scratch[0] = '\0';
	/* Nothing of this turn is written once another may have begun. */
	if (t->lock)
		sba_early_save_end(&t->agent->early);
	sba_lock_free(sba_move(&t->lock));
}

void sba_turn_finish(struct sba_turn *t)
{
	struct sba_exit end;
	struct sba_error why = { 0 };
	/* The process may have ended before anybody looked at the wish. */
	if (atomic_load(&t->canceled) && t->ended_by == BY_ITSELF)
		t->ended_by = BY_CALLER;
	int rc = sba_process_wait(t->process, -1, &end, &why);
	t->over = true;
	if (sba_event_queue_flush(&t->events) != 0)
		sba_log("agent", "an event was lost: out of memory");
	if (rc == 0) {
		sba_turn_tell_losses(t, end.oom_kills, end.pids_refused);
		judge_exit(t, &end);
	} else {
		take_outcome(t, -1);
		lost(t, &why);
		judge_ours(t);
	}
	t->result.duration_ms = sba_now_ms() - t->began_ms;
	keep_state(t);
	sba_turn_changes_end(t);
	sba_turn_clear_up(t);
	if (t->state_rc < 0 && t->result.verdict == SBA_VERDICT_OK) {
		t->result.verdict = SBA_VERDICT_SANDBOX_BROKEN;
		t->result.error = t->state_error;
	}
	hide_keys(t);
	sba_turn_audit_end(t);
}
