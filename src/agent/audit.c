/* SPDX-License-Identifier: MIT */
/* The record, as far as the agent has a part in it. It fails nothing. */
#include "agent/turn.h"

#include <string.h>

void sba_agent_record(struct sba_agent *a, const char *kind, json_t *take_payload)
{
	SBA_JSON json_t *j = take_payload;
	SBA_FREE char *text = a->audit && j ? sba_json_dump(j) : NULL;
	struct sba_error why = { 0 };
	if (text && sba_audit_record(a->audit, kind, text, &why) < 0)
		sba_log("agent", "%s", why.text);
}

void sba_agent_record_session(struct sba_agent *a, const char *action, const char *id,
			      const char *new_id)
{
	sba_agent_record(
		a, "session_change",
		json_pack("{s:s, s:s, s:s*}", "action", action, "id", id, "new_id", new_id));
}

static void tell(struct sba_turn *t, const struct sba_error *why)
{
	char text[SBA_ERROR_TEXT_MAX + 64];
	if (t->agent->audit_told)
		return;
	t->agent->audit_told = true;
	snprintf(text, sizeof(text), "audit: %s; the turn goes on without it", why->text);
	const struct sba_event event = {
		.kind = SBA_EVENT_NOTICE,
		.time_ms = sba_unix_ms(),
		.text = text,
	};
	if (sba_event_queue_put(&t->events, &event) != 0)
		sba_log("agent", "%s", text);
}

void sba_turn_audit_begin(struct sba_turn *t)
{
	const struct sba_agent *a = t->agent;
	struct sba_error why = { 0 };
	const struct sba_audit_begin b = {
		.session = *a->session ? a->session : NULL,
		.aside = t->aside,
		.one_turn = a->one_turn,
		.prompt = t->prompt,
		.prompt_len = t->prompt_len,
		.model = a->model_name,
	};
	if (!a->audit)
		return;
	if (sba_audit_turn_begin(a->audit, &b, &t->audit, &why) < 0) {
		tell(t, &why);
		return;
	}
	t->events.tap = sba_audit_turn_event;
	t->events.tap_user = t->audit;
}

void sba_turn_audit_look(struct sba_turn *t)
{
	struct sba_error why = { 0 };
	if (sba_audit_turn_trouble(t->audit, &why))
		tell(t, &why);
}

void sba_turn_audit_end(struct sba_turn *t)
{
	const struct sba_turn_result *r = &t->result;
	const struct sba_audit_end end = {
		.session = r->session,
		.verdict = sba_verdict_name(r->verdict),
		.error = r->error.text,
		.answer = r->text,
		.usage = r->usage,
		.exit_status = r->exit_status,
		.duration_ms = r->duration_ms,
		.tools = r->tools,
		.unknown_lines = r->unknown_lines,
	};
	sba_audit_turn_end(t->audit, &end);
	sba_turn_audit_look(t);
}

void sba_turn_audit_failed(struct sba_turn *t, const struct sba_error *why)
{
	const struct sba_audit_end end = {
		.verdict = "not_begun",
		.error = why ? why->text : NULL,
		.exit_status = -1,
	};
	sba_audit_turn_end(t->audit, &end);
}
