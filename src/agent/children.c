/* SPDX-License-Identifier: MIT */
/* Children of an agent: those of its sandbox, each with a session of its own that
 * has the same past. */
#include "agent/sessions.h"

#include <stdlib.h>
#include <string.h>

/* What the child got as a copy of the parent's files is the parent's session: it
 * becomes one of its own. */
static int adopt(struct sba_agent *parent, struct sba_sandbox *child, const struct sba_parts *parts,
		 struct sba_error *err)
{
	struct sba_agent a = { .sandbox = child, .driver = parent->driver, .state_known = true };
	char id[SBA_SESSION_ID_MAX + 1];
	struct sba_memory m = { 0 };
	struct sba_inside in;
	int rc = sba_agent_inside(&a, &in, err);
	const struct sba_store *store = a.driver->store;
	if (rc == 0)
		rc = sba_store_new_id(store, parent->session, id, err);
	if (rc == 0)
		rc = store->load(store, &in, parts, parent->session, id, err);
	if (rc == 0) {
		rc = store->remove(store, &in, parent->session, err);
		/* It was taken out of the parent before its files were copied, or after; or
		 * another session there needs it. */
		rc = rc == SBA_ENOTFOUND || rc == SBA_EREFUSED ? 0 : rc;
	}
	if (rc == 0)
		rc = sba_agent_recall(parent, parent->session, &m, err);
	snprintf(m.parent, sizeof(m.parent), "%s", parent->session);
	if (rc == 0)
		rc = sba_agent_set_session(&a, id, &m, err);
	free(m.kept);
	free(a.home);
	json_decref(a.memory);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s'", sba_sandbox_info(child)->name) : 0;
}

static void drop_all(struct sba_sandbox **v, size_t n, int rc, struct sba_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (sba_sandbox_remove(v[i], NULL) < 0)
			sba_hint(err, rc,
				 "a child could not be removed; later:  sandbox-agent rm %s",
				 sba_sandbox_info(v[i])->name);
		sba_sandbox_close(v[i]);
		v[i] = NULL;
	}
}

static void record(struct sba_agent *a, struct sba_sandbox *const *children, size_t n)
{
	json_t *names = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(names, json_string(sba_sandbox_info(children[i])->name));
	sba_agent_record(a, "fork",
			 json_pack("{s:s, s:o}", "session", a->session, "children", names));
}

/* The session as it is now, if there is one and it can be got at. */
static int take_session(struct sba_agent *a, struct sba_parts *ret, struct sba_error *err)
{
	struct sba_access x = { 0 };
	int rc = sba_access_enter(a, false, &x, err);
	if (rc == 0 && *a->session)
		rc = x.store->dump(x.store, &x.in, a->session, ret, err);
	sba_access_leave(&x);
	return sba_access_wrap(a, rc, "fork its session", err);
}

int sba_agent_fork(struct sba_agent *a, const struct sba_fork_options *options,
		   struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		   struct sba_error *err)
{
	struct sba_parts parts = { 0 };
	size_t n = options && options->count ? options->count : 1;
	/* It says so before anything is asked of the session. */
	if (!sba_sandbox_can(a->sandbox, SBA_CAN_FORK))
		return sba_sandbox_fork(a->sandbox, options, ret, ret_report, err);
	int rc = a->driver->store ? take_session(a, &parts, err) : 0;
	if (rc == 0)
		rc = sba_sandbox_fork(a->sandbox, options, ret, ret_report, err);
	if (rc < 0) {
		sba_parts_fini(&parts);
		return rc;
	}
	for (size_t i = 0; rc == 0 && parts.n > 0 && i < n; i++)
		rc = adopt(a, ret[i], &parts, err);
	sba_parts_fini(&parts);
	if (rc < 0)
		drop_all(ret, n, rc, err);
	else
		record(a, ret, n);
	return rc;
}
