/* SPDX-License-Identifier: MIT */
/*
 * Why sandboxes ended. The sidecar's exit code is the reason, and the engine's
 * `die` event keeps it, with the labels, after the containers are gone.
 */
#include "sandbox/past.h"

#include <string.h>

#include "channel/protocol.h"

enum { PAST_MS = 10 * 1000 };

static const struct {
	int code; /* of the reaper; 0: not told by a code */
	const char *reason;
	const char *words;
} reasons[] = {
	{ SBA_REAPER_KEEPALIVE, "keepalive",
	  "it ended itself: nobody had used it for its keepalive" },
	{ SBA_REAPER_LIFETIME, "max-lifetime", "it ended itself: its max-lifetime was over" },
	{ SBA_REAPER_MAIN_GONE, "main process gone", "its main process was killed" },
	{ SBA_REAPER_TAMPERED, "tampered",
	  "it ended itself: something inside blinded its sidecar" },
	{ SBA_REAPER_NEVER_BEGAN, "never begun", "it ended itself: it was never started" },
	{ SBA_REAPER_SETUP, "sidecar failed", "its sidecar could not make itself safe" },
	{ 0, "removed", "it was removed, or killed from outside" },
	{ 0, "killed", "it was killed from outside" },
	{ 0, "out of memory", "it ran out of memory" },
	{ 0, "unknown", "reason unknown" },
};

const char *sba_past_words(const char *reason)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(reasons); i++) {
		if (strcmp(reasons[i].reason, reason) == 0)
			return reasons[i].words;
	}
	return "reason unknown";
}

static const char *reason_of_code(int64_t code)
{
	for (size_t i = 0; code > 0 && i < SBA_ARRAY_LEN(reasons); i++) {
		if (reasons[i].code == code)
			return reasons[i].reason;
	}
	return NULL;
}

static struct sba_sandbox *known(struct sba_found *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->v[i].info.id, id) == 0)
			return &f->v[i];
	}
	return NULL;
}

/* The event's attributes hold the container's labels beside facts of its own. */
static int entry_of(struct sba_found *f, struct sba_engine *e, const json_t *attributes,
		    struct sba_sandbox **ret)
{
	const char *id = sba_label_get(attributes, "id");
	if (!*id)
		return 0;
	*ret = known(f, id);
	if (*ret)
		return 0;
	struct sba_sandbox *s = sba_found_new(f, e);
	if (!s)
		return SBA_ENOMEM;
	s->labels = json_incref((json_t *)(uintptr_t)attributes);
	sba_labels_read(s->labels, &s->info);
	s->sidecar_state = s->info.state = "gone";
	s->info.reason = "unknown";
	*ret = s;
	return 0;
}

/* A removal kills both halves, and the sidecar may have seen its first victim;
 * where a code of the sidecar tells more, that counts. */
static void learn_reason(struct sba_sandbox *s, const char *action, const json_t *attributes)
{
	const char *text = sba_json_str(attributes, "exitCode");
	int64_t code = 0;
	bool sidecar = strcmp(sba_label_get(attributes, "role"), "sidecar") == 0;
	if (strcmp(action, "oom") == 0 && !sidecar)
		s->info.reason = "out of memory";
	/* Of what ran out of memory before, it need not have died. */
	bool open = strcmp(s->info.reason, "unknown") == 0 ||
		    strcmp(s->info.reason, "out of memory") == 0;
	if (strcmp(action, "kill") == 0 && open)
		s->info.reason = "killed";
	bool killed =
		strcmp(s->info.reason, "killed") == 0 || strcmp(s->info.reason, "removed") == 0;
	if (strcmp(action, "die") == 0 && sidecar && text && !sba_parse_int(text, 0, 255, &code) &&
	    reason_of_code(code) && !(killed && code == SBA_REAPER_MAIN_GONE))
		s->info.reason = reason_of_code(code);
	bool gone = strcmp(action, "destroy") == 0 || strcmp(action, "remove") == 0; /* Podman's */
	if (gone && strcmp(s->info.reason, "killed") == 0)
		s->info.reason = "removed";
}

/* A member of the pool was called what its container was called last. */
static int learn_name(struct sba_sandbox *s, const json_t *attributes)
{
	const char *name = sba_json_str(attributes, "name");
	size_t len = strlen(s->info.prefix);
	if (!*s->info.pool || strcmp(sba_label_get(attributes, "role"), "sandbox") != 0 || !name ||
	    strncmp(name, s->info.prefix, len) != 0 || name[len] != '-')
		return 0;
	json_t *labels = sba_labels_with_name(s->labels, name + len + 1);
	if (!labels)
		return SBA_ENOMEM;
	json_decref(s->labels);
	s->labels = labels;
	sba_labels_read(labels, &s->info);
	return 0;
}

/* Whether the engine remembers how one was made, but not that it began. A start
 * comes after every create: where that is still known, so is the start. */
static bool never_began(const json_t *events, const char *id)
{
	bool created = false;
	size_t i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *action = sba_json_str(event, "Action");
		const json_t *attributes = sba_json_get(event, "Actor.Attributes");
		if (!action || !attributes || !sba_ours_event(attributes) ||
		    strcmp(sba_label_get(attributes, "id"), id) != 0)
			continue;
		if (strcmp(action, "start") == 0 &&
		    strcmp(sba_label_get(attributes, "role"), "sandbox") == 0)
			return false;
		created = created || strcmp(action, "create") == 0;
	}
	return created;
}

/* Not in the sidecar's own word. */
static bool ended_by_others(const struct sba_sandbox *s)
{
	static const char *const reasons_of_others[] = { "unknown", "killed", "removed" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(reasons_of_others); i++) {
		if (strcmp(s->info.reason, reasons_of_others[i]) == 0)
			return true;
	}
	return false;
}

/* What failed, or was given up, while it was made has never been. */
static void drop_never_begun(const json_t *events, struct sba_found *f, size_t from)
{
	size_t kept = from;
	for (size_t i = from; i < f->n; i++) {
		if (ended_by_others(&f->v[i]) && never_began(events, f->v[i].info.id))
			json_decref(f->v[i].labels);
		else
			f->v[kept++] = f->v[i];
	}
	f->n = kept;
}

int sba_past_add(struct sba_engine *e, const char *label, int64_t since_unix_s,
		 struct sba_found *found, struct sba_error *err)
{
	return sba_past_add_until(e, label, since_unix_s, sba_engine_until_regardless(PAST_MS),
				  found, err);
}

int sba_past_add_until(struct sba_engine *e, const char *label, int64_t since_unix_s,
		       struct sba_until until, struct sba_found *found, struct sba_error *err)
{
	SBA_JSON json_t *events = NULL;
	int rc = sba_engine_past_events(e, label, since_unix_s, sba_until_sooner(until, PAST_MS),
					&events, err);
	if (rc < 0)
		return rc;
	size_t alive = found->n, i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *action = sba_json_str(event, "Action");
		const json_t *attributes = sba_json_get(event, "Actor.Attributes");
		struct sba_sandbox *s = NULL;
		if (!action || !attributes || !sba_ours_event(attributes))
			continue;
		if (entry_of(found, e, attributes, &s) < 0)
			return sba_fail_nomem(err);
		/* What is still listed is not past. */
		if (!s || s < found->v + alive)
			continue;
		learn_reason(s, action, attributes);
		if (learn_name(s, attributes) < 0)
			return sba_fail_nomem(err);
	}
	drop_never_begun(events, found, alive);
	return 0;
}
