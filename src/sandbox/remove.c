/* SPDX-License-Identifier: MIT */
/* The end of a sandbox, and finding out afterwards why one ended. */
#include "sandbox/private.h"

#include <pthread.h>
#include <string.h>

#include "channel/protocol.h"

struct removal {
	struct sba_engine *engine;
	const char *id;
	struct sba_error err;
	int rc;
};

static void *remove_one(void *user)
{
	struct removal *r = user;
	if (*r->id)
		r->rc = sba_container_remove(r->engine, r->id, sba_until_in(SBA_REMOVE_MS),
					     &r->err);
	return NULL;
}

/* Side by side: each takes the engine a tenth of a second. */
int sba_sandbox_remove_both(struct sba_engine *e, const char *sidecar, const char *container,
			    struct sba_error *err)
{
	struct removal r[2] = { { .engine = e, .id = sidecar }, { .engine = e, .id = container } };
	pthread_t thread;
	bool parallel = pthread_create(&thread, NULL, remove_one, &r[0]) == 0;
	if (!parallel)
		remove_one(&r[0]);
	remove_one(&r[1]);
	if (parallel)
		pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (r[i].rc == 0)
			continue;
		if (err)
			*err = r[i].err;
		return r[i].rc;
	}
	return 0;
}

int sba_sandbox_remove(struct sba_sandbox *s, struct sba_error *err)
{
	int rc = sba_sandbox_remove_both(s->engine, s->sidecar, s->container, err);
	if (rc < 0)
		return sba_hint(err, sba_wrap(err, rc, "remove sandbox '%s'", s->info.name),
				"try again:  sandbox-agent rm %s", s->info.name);
	s->info.state = "gone";
	return 0;
}

static const char *reaper_words(int code)
{
	switch (code) {
	case SBA_REAPER_KEEPALIVE:
		return "it ended itself: nobody had used it for its keepalive";
	case SBA_REAPER_LIFETIME:
		return "it ended itself: its max-lifetime was over";
	case SBA_REAPER_MAIN_GONE:
		return "its main process was killed";
	case SBA_REAPER_TAMPERED:
		return "it ended itself: something inside blinded its sidecar";
	case SBA_REAPER_NEVER_BEGAN:
		return "it ended itself: it was never started";
	case SBA_REAPER_SETUP:
		return "its sidecar could not make itself safe";
	default:
		return NULL;
	}
}

/* The last word of the events on the sidecar: its exit code tells why. */
void sba_sandbox_post_mortem(const struct sba_sandbox *s, char *ret, size_t size)
{
	snprintf(ret, size, "reason unknown");
	char by_id[64];
	snprintf(by_id, sizeof(by_id), SBA_LABEL "id=%s", s->info.id);
	SBA_JSON json_t *events = NULL;
	struct sba_until until = sba_until_in(SBA_ENGINE_STEP_MS / 10);
	if (sba_engine_past_events(s->engine, by_id, s->info.created, until, &events, NULL) < 0)
		return;
	size_t i;
	json_t *event;
	bool killed = false;
	json_array_foreach(events, i, event)
	{
		const char *action = sba_json_str(event, "Action");
		/* Label names hold dots, so no path reaches them. */
		const json_t *attributes = sba_json_get(event, "Actor.Attributes");
		const char *role = json_string_value(json_object_get(attributes, SBA_LABEL "role"));
		if (!action || !role)
			continue;
		killed = killed || strcmp(action, "kill") == 0;
		if (strcmp(action, "oom") == 0)
			snprintf(ret, size, "it ran out of memory");
		if (strcmp(action, "die") != 0 || strcmp(role, "sidecar") != 0)
			continue;
		int64_t code = -1;
		const char *text = sba_json_str(attributes, "exitCode");
		const char *words = text && sba_parse_int(text, 0, 255, &code) == 0
					    ? reaper_words((int)code)
					    : NULL;
		if (words)
			snprintf(ret, size, "%s", words);
		else if (killed)
			snprintf(ret, size, "it was killed or removed from outside");
	}
	if (killed && strcmp(ret, "reason unknown") == 0)
		snprintf(ret, size, "it was killed or removed from outside");
}

static int is_running(struct sba_sandbox *s, const char *id, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_error why = { 0 };
	/* Asked also while the handle is being cancelled: the answer is for the error text. */
	int rc = sba_container_inspect(s->engine, id, sba_until_in(SBA_ENGINE_STEP_MS / 4), &j,
				       &why);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc < 0) {
		if (err)
			*err = why;
		return rc;
	}
	return sba_json_bool(j, "State.Running", false) && !sba_json_bool(j, "State.Dead", false);
}

int sba_sandbox_check_alive(struct sba_sandbox *s, const char *tried, struct sba_error *err)
{
	int running = is_running(s, s->container, err);
	if (running > 0)
		running = is_running(s, s->sidecar, err);
	if (running > 0)
		return 0;
	if (running < 0)
		return sba_wrap(err, running, "%s", tried);
	char why[128];
	sba_sandbox_post_mortem(s, why, sizeof(why));
	return sba_fail(err, SBA_EBROKEN, "%s: sandbox '%s' is gone: %s", tried, s->info.name, why);
}
