/* SPDX-License-Identifier: MIT */
/* How many sandboxes a prefix may have, and members the pool, without a lock. */
#include "sandbox/making.h"

#include <string.h>

enum { SWEEP_MS = 5000, SETTLE_MS = 5000, SETTLE_POLL_MS = 20 };

/* Members of the pool are counted among their like, until they are claimed. */
static bool counts(const struct sba_making *m, const struct sba_sandbox *s)
{
	if (!*s->container || strcmp(s->info.state, "gone") == 0 ||
	    strcmp(s->container, m->sandbox->container) == 0)
		return false;
	if (m->members)
		return sba_member_unclaimed(s) && strcmp(s->info.pool, m->pool) == 0;
	return !sba_member_unclaimed(s);
}

/* The engine lists newest first; ours are ordered by their main container, which
 * is made last. */
static int64_t older_than_ours(const struct sba_making *m, const struct sba_found *f)
{
	int64_t older = 0;
	bool passed = false;
	for (size_t i = 0; i < f->n; i++) {
		passed = passed || strcmp(f->v[i].container, m->sandbox->container) == 0;
		older += passed && counts(m, &f->v[i]);
	}
	return older;
}

/* Somebody else's litter is no reason to fail, nor to wait long. */
static void sweep(const struct sba_making *m, const struct sba_found *f)
{
	struct sba_until until = sba_engine_until(m->engine, SWEEP_MS);
	for (size_t i = 0; i < f->n && sba_until_check(until, NULL) == 0; i++) {
		if (sba_found_is_litter(&f->v[i]) &&
		    sba_sandbox_remove_both(m->engine, f->v[i].sidecar, f->v[i].container, NULL) <
			    0)
			sba_log("sandbox", "'%s' could not be swept", f->v[i].info.name);
	}
	if (m->as_root && sba_volumes_sweep(m->engine, m->o.prefix, until, NULL, NULL) < 0)
		sba_log("sandbox", "volumes could not be swept");
}

static int full(const struct sba_making *m, int64_t there, struct sba_error *err)
{
	return sba_hint(err,
			sba_fail(err, SBA_ELIMIT, "there are already %lld sandboxes of prefix '%s'",
				 (long long)there, m->o.prefix),
			"end some:  sandbox-agent ps, sandbox-agent rm NAME…");
}

/* A main container is dated when its making begins and listed when that is over: what has
 * only a sidecar yet may turn out to be older than ours. */
static int64_t in_the_making(const struct sba_making *m, const struct sba_found *f)
{
	int64_t n = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct sba_sandbox *s = &f->v[i];
		n += !*s->container && strcmp(s->info.state, "gone") != 0 &&
		     sba_member_unclaimed(s) == (m->members > 0) && !sba_found_is_litter(s);
	}
	return n;
}

/* Once nothing that is older can come any more; what is stuck is not waited for long. */
static int count_older(const struct sba_making *m, int64_t limit, struct sba_found *f, int64_t *ret,
		       struct sba_error *err)
{
	struct sba_until settled = sba_until_sooner(m->until, SETTLE_MS);
	for (;;) {
		int rc = sba_found_get_prefix(m->engine, m->o.prefix, f, err);
		if (rc < 0)
			return rc;
		*ret = older_than_ours(m, f);
		if (limit == 0 || *ret >= limit || *ret + in_the_making(m, f) < limit ||
		    sba_until_check(settled, NULL) < 0)
			return 0;
		sba_found_fini(f);
		(void)!sba_wait_fd(-1, 0, sba_until_sooner(settled, SETTLE_POLL_MS), NULL);
	}
}

int sba_room_check(struct sba_making *m, struct sba_error *err)
{
	struct sba_found f = { 0 };
	int64_t limit = m->members ? (int64_t)m->members : m->o.max_sandboxes;
	int64_t older = 0;
	int rc = count_older(m, limit, &f, &older, err);
	if (rc < 0)
		return rc;
	if (limit == 0 || older < limit)
		sweep(m, &f);
	else
		rc = full(m, older, err);
	sba_found_fini(&f);
	return rc;
}

int sba_room_left(const struct sba_making *m, const struct sba_found *f, struct sba_error *err)
{
	int64_t others = 0;
	for (size_t i = 0; i < f->n; i++)
		others += counts(m, &f->v[i]);
	bool room = m->o.max_sandboxes == 0 || others < m->o.max_sandboxes;
	return room ? 0 : full(m, others, err);
}

int sba_room_check_claimed(const struct sba_making *m, struct sba_error *err)
{
	struct sba_found f = { 0 };
	if (m->o.max_sandboxes == 0)
		return 0;
	int rc = sba_found_get_prefix(m->engine, m->o.prefix, &f, err);
	if (rc == 0)
		rc = sba_room_left(m, &f, err);
	if (rc == 0)
		sweep(m, &f);
	sba_found_fini(&f);
	return rc;
}
