/* SPDX-License-Identifier: MIT */
/*
 * The pool: sandboxes that were made before anybody wanted them. They are as all
 * others, with a label that says what they are for. A claim is the renaming of
 * the sidecar to a name that only this member's can have and that it keeps: the
 * engine refuses a rename to the present name, so that one claimer wins, and no
 * later one can.
 */
#include "sandbox/making.h"
#include "sandbox/session.h"

#include <pthread.h>
#include <string.h>

#include "base/limits.h"

/* What is about to end itself is not worth a claim. */
enum { END_IS_NEAR_MS = 2000, CLAIM_S = 60 };

/* ---- what a member is for ---- */

/* All labels but those that are one sandbox's own. */
static int common_labels(const struct sba_making *m, json_t **ret, struct sba_error *err)
{
	static const char *const own[] = { SBA_LABEL "id", SBA_LABEL "name", SBA_LABEL "creator",
					   SBA_LABEL "created", SBA_LABEL "pool" };
	int rc = sba_labels_make(&m->o, "", NULL, ret, err);
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(own); i++)
		json_object_del(*ret, own[i]);
	return rc;
}

int sba_member_spec(const struct sba_making *m, char ret[SBA_POOL_SPEC_LEN + 1],
		    struct sba_error *err)
{
	const struct sba_sandbox_options *o = &m->o;
	char ca[SBA_SHA256_HEX] = "", hash[SBA_SHA256_HEX];
	SBA_JSON json_t *labels = NULL;
	int rc = common_labels(m, &labels, err);
	if (rc < 0)
		return rc;
	if (o->ca_file && sba_sha256_hex(m->ca.data ? m->ca.data : "", m->ca.len, ca) < 0)
		return sba_fail_nomem(err);
	SBA_JSON json_t *j = json_pack("{s:O, s:s, s:s?, s:s, s:s, s:I, s:I, s:f}", "labels",
				       labels, "image-id", m->image_id, "runtime", o->runtime, "ca",
				       ca, "guest", m->guest.hash, "memory", (json_int_t)o->memory,
				       "pids", (json_int_t)o->pids, "cpus", o->cpus);
	SBA_FREE char *text = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text)
		return sba_fail(err, SBA_EINVAL, "runtime: not valid UTF-8");
	if (sba_sha256_hex(text, strlen(text), hash) < 0)
		return sba_fail_nomem(err);
	snprintf(ret, SBA_POOL_SPEC_LEN + 1, "%.*s", SBA_POOL_SPEC_LEN, hash);
	return 0;
}

/* Whoever claims it shall have most of its time before him. */
static bool has_time_left(const struct sba_sandbox_info *i)
{
	int64_t age = sba_unix_ms() - i->created * 1000;
	return (!i->keepalive_ms || age + END_IS_NEAR_MS < i->keepalive_ms) &&
	       (!i->max_lifetime_ms || age < i->max_lifetime_ms / 2);
}

static bool suits(const struct sba_making *m, const struct sba_sandbox *s)
{
	return strcmp(s->info.state, "ready") == 0 && strcmp(s->info.pool, m->pool) == 0 &&
	       has_time_left(&s->info);
}

static bool has_env(const struct sba_sandbox_options *o)
{
	return o->env && o->env[0];
}

/* ---- claiming ---- */

/* 1: it is ours now, and nobody else's; 0: somebody was faster, or it has ended. */
static int claim(struct sba_engine *e, const struct sba_sandbox *s, struct sba_error *err)
{
	char name[3 * SBA_NAME_MAX];
	struct sba_error why;
	snprintf(name, sizeof(name), "%s-%s" SBA_CLAIMED_SUFFIX, s->info.prefix, s->info.name);
	int rc = sba_container_rename(e, s->sidecar, name, sba_engine_until(e, SBA_ENGINE_STEP_MS),
				      &why);
	if (rc == 0)
		return 1;
	if (rc == SBA_EEXIST || rc == SBA_ENOTFOUND)
		return 0;
	if (err)
		*err = why;
	return rc;
}

/* What the engine does while the channel opens. */
struct settling {
	const struct sba_making *m;
	const struct sba_sandbox *member;
	int rc;
	struct sba_error err;
};

static void *settle(void *user)
{
	struct settling *c = user;
	const struct sba_making *m = c->m;
	char name[2 * SBA_NAME_MAX];
	snprintf(name, sizeof(name), "%s-%s", m->o.prefix, m->o.name);
	c->rc = sba_container_rename(m->engine, c->member->container, name, m->until, &c->err);
	if (c->rc == SBA_EEXIST)
		c->rc = sba_making_name_taken(m, &c->err);
	if (c->rc == 0)
		c->rc = sba_room_check_claimed(m, &c->err);
	return NULL;
}

/* m's sandbox is this member from here on. The session of one that was tried before
 * may have a channel there. */
static int become(struct sba_making *m, const struct sba_sandbox *member, struct sba_error *err)
{
	struct sba_sandbox *s = m->sandbox;
	struct sba_session *session = NULL;
	json_t *labels = sba_labels_with_name(member->labels, m->o.name);
	int rc = labels ? sba_session_new(s, &session, err) : sba_fail_nomem(err);
	if (rc < 0) {
		json_decref(labels);
		return rc;
	}
	sba_session_free(s->session);
	s->session = session;
	json_decref(s->labels);
	s->labels = labels;
	sba_labels_read(labels, &s->info);
	memcpy(s->container, member->container, sizeof(s->container));
	memcpy(s->sidecar, member->sidecar, sizeof(s->sidecar));
	s->unattached = true;
	return 0;
}

static int settled(const struct settling *c, int rc, const struct sba_error *why,
		   struct sba_error *err)
{
	const struct sba_sandbox *s = c->member;
	if (rc == 0 && c->rc == 0)
		return 1;
	if (sba_sandbox_remove_both(s->engine, s->sidecar, s->container, NULL) < 0)
		sba_log("sandbox", "'%s' could not be removed", s->info.name);
	/* It may have ended the moment before, which is nobody's failure. */
	if (c->rc == SBA_ENOTFOUND || (c->rc == 0 && (rc == SBA_EBROKEN || rc == SBA_ENOTFOUND)))
		return 0;
	if (err)
		*err = c->rc < 0 ? c->err : *why;
	return c->rc < 0 ? c->rc : rc;
}

/* 1: it is m's; 0: it cannot be had. Only whoever has won it may attach to it. */
static int take_one(struct sba_making *m, const struct sba_sandbox *member, struct sba_error *err)
{
	struct settling c = { .m = m, .member = member };
	struct sba_error why = { 0 };
	pthread_t thread;
	int rc = sba_until_check(m->until, err);
	if (rc == 0)
		rc = claim(m->engine, member, err);
	if (rc <= 0)
		return rc;
	rc = become(m, member, &why);
	bool parallel = sba_thread_start(&thread, settle, &c, NULL) == 0;
	if (!parallel)
		settle(&c);
	if (rc == 0)
		rc = sba_making_confirm(m, &why);
	if (parallel)
		pthread_join(thread, NULL);
	return settled(&c, rc, &why, err);
}

static int check_name(const struct sba_making *m, const struct sba_found *f, struct sba_error *err)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->v[i].info.name, m->o.name) == 0)
			return sba_making_name_taken(m, err);
	}
	return 0;
}

/* The n-th that suits; NULL: there are not so many. */
static const struct sba_sandbox *suitable(const struct sba_making *m, const struct sba_found *f,
					  size_t n)
{
	for (size_t i = 0; i < f->n; i++) {
		if (suits(m, &f->v[i]) && n-- == 0)
			return &f->v[i];
	}
	return NULL;
}

/* Those who claim at once shall not all begin with the same one. */
static int take_any(struct sba_making *m, const struct sba_found *f, struct sba_error *err)
{
	size_t n = 0;
	unsigned char first;
	while (suitable(m, f, n))
		n++;
	if (n == 0)
		return 0;
	int rc = check_name(m, f, err);
	if (rc == 0)
		rc = sba_room_left(m, f, err);
	if (rc == 0)
		rc = sba_random(&first, 1, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct sba_sandbox *member = suitable(m, f, (first + i) % n);
		/* Some may have had their time meanwhile. */
		if (member)
			rc = take_one(m, member, err);
	}
	return rc;
}

/* Back to a sandbox that has yet to be made. */
static int begin_again(struct sba_making *m, struct sba_error *err)
{
	struct sba_sandbox *s = m->sandbox;
	sba_session_free(s->session);
	s->session = NULL;
	json_decref(s->labels);
	s->labels = NULL;
	s->container[0] = s->sidecar[0] = '\0';
	return sba_session_new(s, &s->session, err);
}

int sba_member_take(struct sba_making *m, struct sba_error *err)
{
	struct sba_found f = { 0 };
	/* Podman (5.4) renames to the present name, and does not tell in its list which
	 * containers belong together. */
	if (has_env(&m->o) || sba_engine_podman(m->engine))
		return 0;
	int rc = sba_member_spec(m, m->pool, err);
	if (rc == 0)
		rc = sba_found_get_prefix(m->engine, m->o.prefix, &f, err);
	if (rc == 0)
		rc = take_any(m, &f, err);
	if (rc == 0)
		rc = begin_again(m, err);
	sba_found_fini(&f);
	return rc;
}

static int claim_any(struct sba_making *m, struct sba_error *err)
{
	int rc = sba_member_take(m, err);
	if (rc == 0)
		rc = sba_hint(err, sba_fail(err, SBA_ENOTFOUND, "none such is ready in the pool"),
			      "make some:  sandbox-agent pool fill");
	return rc < 0 ? sba_wrap(err, rc, "claim a sandbox") : 0;
}

int sba_pool_claim(struct sba_engine *e, const struct sba_sandbox_options *options,
		   struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_making m = { 0 };
	int rc = sba_making_init(&m, e, options, err);
	if (rc == 0)
		rc = claim_any(&m, err);
	if (rc == 0)
		*ret = sba_move(&m.sandbox);
	sba_making_fini(&m);
	return rc;
}

/* A claimer that dies between its two renames leaves what is nobody's. One that
 * lives is done within a second, or holds its channel. */
bool sba_claim_abandoned(const struct sba_sandbox *s)
{
	char by_id[64];
	SBA_JSON json_t *j = NULL, *events = NULL;
	struct sba_until until = sba_engine_until(s->engine, SBA_ENGINE_STEP_MS);
	if (s->info.foreign_schema || !s->claimed || strcmp(s->info.state, "changing") != 0 ||
	    !sba_member_name(s->info.name))
		return false;
	snprintf(by_id, sizeof(by_id), SBA_LABEL "id=%.40s", s->info.id);
	if (sba_container_inspect(s->engine, s->container, until, &j, NULL) < 0 ||
	    sba_sandbox_held(s, j, until) > 0 ||
	    sba_engine_past_events(s->engine, by_id, sba_unix_ms() / 1000 - CLAIM_S, until, &events,
				   NULL) < 0)
		return false;
	size_t i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *action = sba_json_str(event, "Action");
		if (action && strcmp(action, "rename") == 0)
			return false;
	}
	return true;
}

/* ---- filling ---- */

static int count_ready(const struct sba_making *m, size_t *ret, struct sba_error *err)
{
	struct sba_found f = { 0 };
	int rc = sba_found_get_prefix(m->engine, m->o.prefix, &f, err);
	size_t n = 0;
	for (size_t i = 0; rc == 0 && i < f.n; i++)
		n += suits(m, &f.v[i]);
	sba_found_fini(&f);
	if (rc == 0)
		*ret = n;
	return rc;
}

/* 1: made one; 0: there are enough. */
static int fill_one(struct sba_engine *e, const struct sba_sandbox_options *options, size_t count,
		    struct sba_error *err)
{
	struct sba_making m = { .members = count };
	size_t ready = 0;
	int rc = sba_making_init(&m, e, options, err);
	if (rc == 0)
		rc = sba_member_spec(&m, m.pool, err);
	if (rc == 0)
		rc = count_ready(&m, &ready, err);
	bool missing = ready < count;
	if (rc == 0 && missing)
		rc = sba_making_make(&m, err);
	sba_making_fini(&m);
	/* Somebody else has filled it meanwhile. */
	if (rc == SBA_ELIMIT)
		return 0;
	return rc < 0 ? rc : missing;
}

int sba_pool_fill(struct sba_engine *e, const struct sba_sandbox_options *options, size_t count,
		  size_t *ret_made, struct sba_error *err)
{
	if (ret_made)
		*ret_made = 0;
	if (has_env(options))
		return sba_hint(
			err,
			sba_fail(err, SBA_EINVAL,
				 "a pool takes no environment: anybody may claim its members"),
			"run and up take one, and make a sandbox of its own then");
	if (count < 1 || count > SBA_POOL_MAX)
		return sba_fail(err, SBA_EINVAL, "a pool has 1 to %d members", SBA_POOL_MAX);
	if (sba_engine_podman(e))
		return sba_fail(
			err, SBA_EUNSUPPORTED,
			"no pool on Podman: it renames to the name that is there already, so "
			"that two could claim one");
	int rc = 1;
	for (size_t made = 0; rc > 0 && made < count; made++) {
		rc = fill_one(e, options, count, err);
		if (rc > 0 && ret_made)
			(*ret_made)++;
	}
	return rc < 0 ? sba_wrap(err, rc, "fill the pool") : 0;
}

/* ---- draining ---- */

/* Claimed before it is removed: whoever claims at the same time keeps what is his. */
static int drain_one(const struct sba_sandbox *s, int *removed, struct sba_error *err)
{
	int rc = claim(s->engine, s, err);
	if (rc <= 0)
		return rc;
	rc = sba_sandbox_remove_both(s->engine, s->sidecar, s->container, err);
	*removed += rc == 0;
	return rc;
}

int sba_pool_drain(struct sba_engine *e, const char *prefix, const char *agent, int *ret_removed,
		   struct sba_error *err)
{
	struct sba_found f = { 0 };
	int removed = 0;
	int rc = sba_found_get_prefix(e, prefix, &f, err);
	for (size_t i = 0; rc >= 0 && i < f.n; i++) {
		const struct sba_sandbox_info *s = &f.v[i].info;
		if (strcmp(s->state, "ready") == 0 && (!agent || strcmp(agent, s->agent) == 0))
			rc = drain_one(&f.v[i], &removed, err);
	}
	sba_found_fini(&f);
	if (ret_removed)
		*ret_removed = removed;
	return rc < 0 ? sba_wrap(err, rc, "drain the pool") : 0;
}
