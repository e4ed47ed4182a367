/* SPDX-License-Identifier: MIT */
/* The end of a sandbox, and whether one has ended. */
#include "sandbox/past.h"

#include <pthread.h>
#include <string.h>

enum { POST_MORTEM_MS = 1000, POST_MORTEM_POLL_MS = 50 };

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
		r->rc = sba_container_remove(r->engine, r->id,
					     sba_until_in(sba_engine_timeouts(r->engine)->stop_ms),
					     &r->err);
	return NULL;
}

/* Podman's removal leaves no `kill` among the events, and it does not take the
 * sidecar first: that would look as if the main process had died by itself. */
static void kill_first(struct sba_engine *e, const char *sidecar)
{
	struct sba_error why;
	if (*sidecar && sba_engine_podman(e) &&
	    sba_container_kill(e, sidecar, sba_until_in(sba_engine_timeouts(e)->stop_ms), &why) < 0)
		sba_log("sandbox", "%s", why.text);
}

/* Side by side: each takes the engine a tenth of a second. Podman refuses the
 * sidecar as long as the main container depends on it. */
int sba_sandbox_remove_both(struct sba_engine *e, const char *sidecar, const char *container,
			    struct sba_error *err)
{
	struct removal r[2] = { { .engine = e, .id = sidecar }, { .engine = e, .id = container } };
	pthread_t thread;
	kill_first(e, sidecar);
	bool parallel = sba_thread_start(&thread, remove_one, &r[0], NULL) == 0;
	if (!parallel)
		remove_one(&r[0]);
	remove_one(&r[1]);
	if (parallel)
		pthread_join(thread, NULL);
	if (r[0].rc == SBA_EENGINE && r[1].rc == 0)
		remove_one(&r[0]);
	for (int i = 0; i < 2; i++) {
		if (r[i].rc == 0)
			continue;
		if (err)
			*err = r[i].err;
		return r[i].rc;
	}
	return 0;
}

int sba_docker_remove(struct sba_sandbox *s, struct sba_error *err)
{
	int rc = sba_sandbox_remove_both(s->engine, s->sidecar, s->container, err);
	if (rc < 0)
		return sba_hint(err, sba_wrap(err, rc, "remove sandbox '%s'", s->info.name),
				"try again:  sandbox-agent rm %s", s->info.name);
	return 0;
}

/* What the events say so far; false while they do not tell why. */
static bool look_back(const struct sba_sandbox *s, struct sba_until until, char *ret, size_t size)
{
	char by_id[64];
	snprintf(by_id, sizeof(by_id), SBA_LABEL "id=%.40s", s->info.id);
	struct sba_found past = { 0 };
	bool told = false;
	if (sba_past_add_until(s->engine, by_id, s->info.created, until, &past, NULL) == 0 &&
	    past.n > 0) {
		const char *reason = past.v[0].info.reason;
		snprintf(ret, size, "%s", sba_past_words(reason));
		told = strcmp(reason, "unknown") != 0;
	}
	sba_found_fini(&past);
	return told;
}

/* Both halves die at once, and the engine may tell of the main one first. */
static void post_mortem(const struct sba_sandbox *s, struct sba_until until, char *ret, size_t size)
{
	struct sba_until soon = sba_until_sooner(until, POST_MORTEM_MS);
	snprintf(ret, size, "reason unknown");
	while (!look_back(s, until, ret, size) && sba_until_check(soon, NULL) == 0) {
		if (sba_wait_fd(-1, 0, sba_until_sooner(soon, POST_MORTEM_POLL_MS), NULL) ==
		    SBA_EIO)
			return;
	}
}

void sba_sandbox_post_mortem(const struct sba_sandbox *s, char *ret, size_t size)
{
	post_mortem(s, sba_engine_until_regardless(SBA_ENGINE_STEP_MS), ret, size);
}

/* Between the deaths of its two halves a sandbox is gone already; and a sidecar alone may
 * be one that somebody is just making. */
static int half_of_one(const struct sba_sandbox *s, struct sba_error *err)
{
	char why[128];
	if (look_back(s, sba_engine_until_regardless(SBA_ENGINE_STEP_MS), why, sizeof(why)))
		return sba_hint(
			err,
			sba_fail(err, SBA_EBROKEN, "sandbox '%s' is gone: %s", s->info.name, why),
			"what there is and was:  sandbox-agent ps -a");
	if (!*s->container)
		return sba_hint(err,
				sba_fail(err, SBA_EBROKEN, "sandbox '%s' is still being made",
					 s->info.name),
				"try again in a moment; if nobody is at it any more:  "
				"sandbox-agent gc");
	return sba_hint(
		err, sba_fail(err, SBA_EBROKEN, "sandbox '%s' has lost its sidecar", s->info.name),
		"remove it:  sandbox-agent rm %s", s->info.name);
}

/* As it is now: it may have been let go on since the handle was opened. */
static bool is_paused(const struct sba_sandbox *s)
{
	SBA_JSON json_t *j = NULL;
	return strcmp(s->info.state, "paused") == 0 &&
	       sba_container_inspect(s->engine, s->container,
				     sba_engine_until(s->engine, SBA_ENGINE_STEP_MS), &j,
				     NULL) == 0 &&
	       sba_json_bool(j, "State.Paused", false);
}

int sba_sandbox_check_whole(const struct sba_sandbox *s, struct sba_error *err)
{
	if (strcmp(s->info.state, "ready") == 0)
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED,
					 "sandbox '%s' is one of the pool: nobody's yet",
					 s->info.name),
				"run and up claim one, pool drain ends them");
	if (s->backend)
		return 0;
	if (!*s->container || !*s->sidecar)
		return half_of_one(s, err);
	if (!is_paused(s))
		return 0;
	return sba_hint(err, sba_fail(err, SBA_EBROKEN, "sandbox '%s' is paused", s->info.name),
			"go on with it:  docker unpause %s-%s", s->info.prefix, s->info.name);
}

static int is_running(struct sba_sandbox *s, const char *id, struct sba_until until,
		      struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_error why = { 0 };
	int rc = sba_container_inspect(s->engine, id,
				       sba_until_sooner(until, SBA_ENGINE_STEP_MS / 4), &j, &why);
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
	/* Asked also while the handle is being cancelled: the answer is for the error text. */
	return sba_sandbox_check_alive_until(s, tried,
					     sba_engine_until_regardless(SBA_ENGINE_STEP_MS), err);
}

int sba_sandbox_check_alive_until(struct sba_sandbox *s, const char *tried, struct sba_until until,
				  struct sba_error *err)
{
	/* Without containers there is none that could have gone. */
	if (!s->engine)
		return 0;
	int running = is_running(s, s->container, until, err);
	if (running > 0)
		running = is_running(s, s->sidecar, until, err);
	if (running > 0)
		return 0;
	if (running < 0)
		return sba_wrap(err, running, "%s", tried);
	char why[128];
	post_mortem(s, until, why, sizeof(why));
	return sba_fail(err, SBA_EBROKEN, "%s: sandbox '%s' is gone: %s", tried, s->info.name, why);
}
