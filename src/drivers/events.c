/* SPDX-License-Identifier: MIT */
/* The names of events and verdicts, the error code of each verdict, and what an event
 * points to. */
#include "drivers/drivers.h"

#include <string.h>

static const char *const kinds[] = {
	[SBA_EVENT_SESSION] = "session",
	[SBA_EVENT_TEXT] = "text",
	[SBA_EVENT_THINKING] = "thinking",
	[SBA_EVENT_TOOL_CALL] = "tool_call",
	[SBA_EVENT_TOOL_RESULT] = "tool_result",
	[SBA_EVENT_FILE_CHANGE] = "file_change",
	[SBA_EVENT_USAGE] = "usage",
	[SBA_EVENT_ERROR] = "error",
	[SBA_EVENT_NOTICE] = "notice",
	[SBA_EVENT_DONE] = "done",
};

static const struct {
	const char *name;
	int code;
} verdicts[] = {
	[SBA_VERDICT_NONE] = { "none", SBA_EINVAL },
	[SBA_VERDICT_OK] = { "ok", SBA_OK },
	[SBA_VERDICT_AGENT_FAILED] = { "agent_failed", SBA_EAGENT },
	[SBA_VERDICT_MODEL_ERROR] = { "model_error", SBA_EMODEL },
	[SBA_VERDICT_NO_ANSWER] = { "no_answer", SBA_EAGENT },
	[SBA_VERDICT_TIMEOUT] = { "timeout", SBA_ETIMEOUT },
	[SBA_VERDICT_IDLE_TIMEOUT] = { "idle_timeout", SBA_ETIMEOUT },
	[SBA_VERDICT_BUDGET] = { "budget", SBA_EBUDGET },
	[SBA_VERDICT_CANCELED] = { "canceled", SBA_ECANCELED },
	[SBA_VERDICT_SANDBOX_BROKEN] = { "sandbox_broken", SBA_EBROKEN },
	[SBA_VERDICT_ENGINE_LOST] = { "engine_lost", SBA_ELOST },
};

const char *sba_event_kind_name(enum sba_event_kind kind)
{
	return (size_t)kind < SBA_ARRAY_LEN(kinds) ? kinds[kind] : "unknown";
}

const char *sba_verdict_name(enum sba_verdict verdict)
{
	return (size_t)verdict < SBA_ARRAY_LEN(verdicts) ? verdicts[verdict].name : "unknown";
}

int sba_verdict_code(enum sba_verdict verdict)
{
	return (size_t)verdict < SBA_ARRAY_LEN(verdicts) ? verdicts[verdict].code : SBA_EINVAL;
}

void sba_event_strings(struct sba_event *e, const char **slots[static SBA_EVENT_STRINGS])
{
	const char **all[SBA_EVENT_STRINGS] = {
		&e->session, &e->text,     &e->tool,         &e->tool_native, &e->call_id,
		&e->input,   &e->summary,  &e->output,       &e->path,        &e->change,
		&e->diff,    &e->old_path, &e->without_diff,
	};
	memcpy(slots, all, sizeof(all));
}
