/* SPDX-License-Identifier: MIT */
/*
 * What a turn has changed in the workspace, found by looking at it before and after:
 * whatever did it, and whatever the CLI says.
 */
#include "agent/turn.h"

#include <sandbox-agent/changes.h>

#include <stdlib.h>
#include <string.h>

static void cannot(struct sba_turn *t, const struct sba_error *why)
{
	char line[SBA_ERROR_TEXT_MAX + 64];
	if (why->code == SBA_ECANCELED)
		return;
	snprintf(line, sizeof(line), "what changes in the workspace is not told: %s", why->text);
	sba_notices_say(&t->notices, line);
}

void sba_turn_changes_begin(struct sba_turn *t)
{
	const struct sba_watch_options o = {
		.folder = sba_sandbox_workdir(t->agent->sandbox),
		.turn = t->agent->turns + 1,
		.aside = t->aside,
		.last = t->agent->one_turn,
	};
	struct sba_error why = { 0 };
	int rc = sba_watch_begin(t->agent->sandbox, &o, &t->watch, &why);
	/* Without anything to look with nobody expects it. */
	if (rc < 0 && rc != SBA_EUNSUPPORTED)
		cannot(t, &why);
}

/* ---- events ---- */

/* Events are UTF-8; names and texts need not be. */
static char *utf8_of(const char *folder, const char *path)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	sba_buf_put_utf8(&b, folder, strlen(folder));
	sba_buf_puts(&b, strcmp(folder, "/") == 0 ? "" : "/");
	sba_buf_put_utf8(&b, path, strlen(path));
	return sba_buf_take(&b);
}

/* NULL, and *ret_why; *left: bytes for the diffs that come. */
static char *diff_of(struct sba_changes *c, size_t i, size_t *left, const char **ret_why)
{
	const struct sba_change *one = sba_changes_at(c, i);
	char *diff = NULL;
	*ret_why = one->without_content ? one->without_content
		   : one->binary        ? "it is binary"
					: NULL;
	if (*ret_why)
		return NULL;
	int rc = sba_change_diff(c, i, SBA_TURN_DIFF_MAX, &diff, NULL);
	size_t len = rc == 0 ? strlen(diff) : 0;
	if (rc == 0 && sba_utf8_valid(diff, len) && len <= *left) {
		*left -= len;
		return diff;
	}
	*ret_why = rc == SBA_ELIMIT ? "it is longer than 256 KiB"
		   : rc < 0         ? "it could not be made"
		   : len > *left    ? "the diffs of this turn are longer than 16 MiB"
				    : "it is not UTF-8";
	free(diff);
	return NULL;
}

static void summary_of(const struct sba_change *c, char *ret, size_t size)
{
	if (c->kind == SBA_CHANGE_MODE)
		snprintf(ret, size, "mode %04o -> %04o", c->old_mode & 07777, c->mode & 07777);
	else if (c->added || c->removed)
		snprintf(ret, size, "+%llu -%llu", (unsigned long long)c->added,
			 (unsigned long long)c->removed);
	else
		ret[0] = '\0';
}

static int tell_one(struct sba_turn *t, struct sba_changes *c, size_t i, size_t *left)
{
	const struct sba_change *one = sba_changes_at(c, i);
	const char *folder = sba_changes_folder(c), *why;
	char summary[64];
	SBA_FREE char *path = utf8_of(folder, one->path);
	SBA_FREE char *old_path = one->old_path ? utf8_of(folder, one->old_path) : NULL;
	SBA_FREE char *diff = diff_of(c, i, left, &why);
	if (!path || (one->old_path && !old_path))
		return SBA_ENOMEM;
	summary_of(one, summary, sizeof(summary));
	const struct sba_event event = {
		.kind = SBA_EVENT_FILE_CHANGE,
		.time_ms = sba_unix_ms(),
		.measured = true,
		.path = path,
		.old_path = old_path,
		.change = sba_change_kind_name(one->kind),
		.summary = *summary ? summary : NULL,
		.diff = diff,
		.without_diff = why,
	};
	return sba_event_queue_put(&t->events, &event);
}

static void tell_all(struct sba_turn *t, struct sba_changes *c)
{
	size_t n = sba_changes_count(c), left = SBA_TURN_DIFFS_MAX;
	char line[96];
	for (size_t i = 0; i < n && i < SBA_TURN_CHANGES_MAX; i++) {
		if (tell_one(t, c, i, &left) != 0)
			sba_log("agent", "an event was lost: out of memory");
	}
	if (n > SBA_TURN_CHANGES_MAX) {
		snprintf(line, sizeof(line), "%zu more files changed, which is not told one by one",
			 n - SBA_TURN_CHANGES_MAX);
		sba_notices_say(&t->notices, line);
	}
}

void sba_turn_changes_end(struct sba_turn *t)
{
	struct sba_changes *c = NULL;
	struct sba_error why = { 0 };
	bool lost = t->result.verdict == SBA_VERDICT_SANDBOX_BROKEN ||
		    t->result.verdict == SBA_VERDICT_ENGINE_LOST;
	if (!t->watch || lost)
		return;
	if (sba_watch_end(t->watch, &c, &why) == 0)
		tell_all(t, c);
	else
		cannot(t, &why);
	sba_changes_free(c);
}
