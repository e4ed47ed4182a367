/* SPDX-License-Identifier: MIT */
/*
 * The other form in which opencode tells a turn (measured with 1.18.33): the
 * server-sent events of `opencode serve`, a JSON object in each "data:" line. Parts are
 * those of `opencode run --format json`, told when they begin and when they end, with
 * their text in deltas between. A recording of it is read as one of the first form is.
 */
#include "drivers/opencode.h"

#include <string.h>

static bool has_ended(const char *type, const json_t *part)
{
	const char *status = sba_json_str(part, "state.status");
	if (strcmp(type, "tool") == 0)
		return status && (strcmp(status, "completed") == 0 || strcmp(status, "error") == 0);
	if (strcmp(type, "text") == 0 || strcmp(type, "reasoning") == 0)
		return sba_json_get(part, "time.end") != NULL;
	return true;
}

static void on_beginning(struct sba_stream *s, struct opencode *oc, const char *type,
			 const json_t *part)
{
	bool thinking = strcmp(type, "reasoning") == 0;
	/* The user's own text has no times. */
	if (sba_json_get(part, "time.start") && (thinking || strcmp(type, "text") == 0))
		sba_stream_block_begin(s);
	sba_text_keep(oc->thinking, sizeof(oc->thinking),
		      thinking ? sba_json_str(part, "id") : NULL);
}

static int on_part(struct sba_stream *s, struct opencode *oc, const json_t *properties)
{
	static const struct {
		const char *type, *name;
	} names[] = {
		{ "tool", "tool_use" },
		{ "step-start", "step_start" },
		{ "step-finish", "step_finish" },
	};
	const json_t *part = json_object_get(properties, "part");
	const char *type = sba_json_str(part, "type");
	if (!type)
		return sba_stream_unknown(s, "a part without a type");
	if (!has_ended(type, part)) {
		on_beginning(s, oc, type, part);
		return 0;
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (strcmp(type, names[i].type) == 0)
			type = names[i].name;
	}
	return sba_opencode_part(s, oc, type, part);
}

static int on_delta(struct sba_stream *s, struct opencode *oc, const json_t *properties)
{
	const char *field = sba_json_str(properties, "field");
	const char *part = sba_json_str(properties, "partID");
	bool thinking = part && *oc->thinking && strcmp(part, oc->thinking) == 0;
	if (!field || strcmp(field, "text") != 0)
		return 0;
	return sba_stream_delta(s, thinking ? SBA_EVENT_THINKING : SBA_EVENT_TEXT,
				sba_json_str(properties, "delta"));
}

static int on_session(struct sba_stream *s, struct opencode *oc SBA_UNUSED,
		      const json_t *properties)
{
	return sba_stream_found_session(s, sba_json_str(properties, "sessionID"));
}

static int on_error(struct sba_stream *s, struct opencode *oc SBA_UNUSED, const json_t *properties)
{
	return sba_opencode_error(s, json_object_get(properties, "error"));
}

/* What the server tells beside turns. */
static bool is_quiet(const char *type)
{
	static const char *const prefixes[] = { "catalog.",   "integration.", "message.", "plugin.",
						"reference.", "server.",      "session.", "file.",
						"lsp.",       "permission.",  "project.", "todo." };
	for (size_t i = 0; i < SBA_ARRAY_LEN(prefixes); i++) {
		if (sba_starts_with(type, prefixes[i]))
			return true;
	}
	return false;
}

int sba_opencode_server_object(struct sba_stream *s, void *state, const json_t *event)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct opencode *oc, const json_t *properties);
	} events[] = {
		{ "session.created", on_session },   { "session.status", on_session },
		{ "message.part.updated", on_part }, { "message.part.delta", on_delta },
		{ "session.error", on_error },
	};
	const char *type = sba_json_str(event, "type");
	for (size_t i = 0; type && i < SBA_ARRAY_LEN(events); i++) {
		if (strcmp(type, events[i].type) == 0)
			return events[i].on(s, state, json_object_get(event, "properties"));
	}
	return type && is_quiet(type)
		       ? 0
		       : sba_stream_unknown(s, "an event of type '%s'", type ? type : "?");
}
