/* SPDX-License-Identifier: MIT */
/* How many sandboxes a prefix may have, without a lock. */
#include "sandbox/making.h"

#include <string.h>

enum { SWEEP_MS = 5000 };

/* The engine lists newest first; ours are ordered by their main container, which
 * is made last. What has none yet will count itself when it has. */
static int64_t older_than_ours(const struct sba_making *m, const struct sba_found *f)
{
	int64_t older = 0;
	bool passed = false;
	for (size_t i = 0; i < f->n; i++) {
		const struct sba_sandbox *s = &f->v[i];
		if (strcmp(s->container, m->sandbox->container) == 0)
			passed = true;
		else if (passed && *s->container && strcmp(s->info.state, "gone") != 0)
			older++;
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
}

int sba_room_check(struct sba_making *m, struct sba_error *err)
{
	char by_prefix[2 * SBA_NAME_MAX];
	snprintf(by_prefix, sizeof(by_prefix), SBA_LABEL "prefix=%s", m->o.prefix);
	const char *const labels[] = { by_prefix, NULL };
	struct sba_found f = { 0 };
	int rc = sba_found_get(m->engine, labels, &f, err);
	if (rc < 0)
		return rc;
	int64_t older = older_than_ours(m, &f);
	if (m->o.max_sandboxes == 0 || older < m->o.max_sandboxes)
		sweep(m, &f);
	sba_found_fini(&f);
	if (m->o.max_sandboxes == 0 || older < m->o.max_sandboxes)
		return 0;
	return sba_hint(err,
			sba_fail(err, SBA_ELIMIT, "there are already %lld sandboxes of prefix '%s'",
				 (long long)older, m->o.prefix),
			"end some:  sandbox-agent ps, sandbox-agent rm NAME…");
}
