/* SPDX-License-Identifier: MIT */
/*
 * The CLI's sessions, through the driver's store. What changes them holds the
 * lock that turns hold.
 */
#include "agent/sessions.h"

#include <stdlib.h>
#include <string.h>

struct sba_session_list {
	struct sba_kept_list kept;
	struct sba_session_info *v;
};

void sba_access_leave(struct sba_access *x)
{
	sba_lock_free(x->lock);
}

int sba_access_enter(struct sba_agent *a, bool change, struct sba_access *ret,
		     struct sba_error *err)
{
	struct sba_access x = { .store = a->driver->store };
	if (!x.store)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s keeps no sessions that can be got at",
				a->driver->name);
	int rc = change ? sba_agent_lock(a, 0, &x.lock, err) : 0;
	if (rc == 0)
		rc = sba_agent_load_state(a, err);
	if (rc == 0)
		rc = sba_agent_inside(a, &x.in, err);
	if (rc < 0) {
		sba_access_leave(&x);
		return rc;
	}
	*ret = x;
	return 0;
}

int sba_access_wrap(const struct sba_agent *a, int rc, const char *what, struct sba_error *err)
{
	const char *name = sba_sandbox_info(a->sandbox)->name;
	if (rc == 0)
		return 0;
	if (rc == SBA_ENOTFOUND && err && !err->hint[0])
		sba_hint(err, rc, "what there is:  sandbox-agent sessions ls %s", name);
	return sba_wrap(err, rc, "sandbox '%s': %s", name, what);
}

int sba_access_id(const struct sba_agent *a, const char *id, const char **ret,
		  struct sba_error *err)
{
	*ret = id ? id : a->session;
	if (id && !sba_session_id_valid(id))
		return sba_fail(err, SBA_EINVAL, "'%s' is no session id", id);
	if (!**ret)
		return sba_hint(err,
				sba_fail(err, SBA_ENOTFOUND, "%s has not said anything yet",
					 a->driver->name),
				"begin:  sandbox-agent chat %s \"hello\"",
				sba_sandbox_info(a->sandbox)->name);
	return 0;
}

/* ---- list ---- */

/* Where the CLI does not know. */
static int fill_parent(struct sba_kept *k, const struct sba_memory *m, struct sba_error *err)
{
	if (*k->parent || !*m->parent)
		return 0;
	char *parent = strdup(m->parent);
	if (!parent)
		return sba_fail_nomem(err);
	free(k->parent);
	k->parent = parent;
	return 0;
}

static int describe(const struct sba_agent *a, struct sba_session_list *l, struct sba_error *err)
{
	l->v = calloc(l->kept.n + 1, sizeof(*l->v));
	if (!l->v)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < l->kept.n; i++) {
		struct sba_kept *k = &l->kept.v[i];
		struct sba_memory m = { 0 };
		int rc = sba_agent_recall(a, k->id, &m, err);
		free(m.kept);
		if (rc == 0)
			rc = fill_parent(k, &m, err);
		if (rc < 0)
			return rc;
		l->v[i] = (struct sba_session_info){
			.id = k->id,
			.title = k->title,
			.model = k->model,
			.parent = k->parent,
			.workdir = k->workdir,
			.created_ms = k->created_ms,
			.updated_ms = k->updated_ms,
			.main = strcmp(k->id, a->session) == 0,
			.turns = m.turns,
			.usage = m.usage,
		};
	}
	return 0;
}

int sba_sessions_list(struct sba_agent *a, struct sba_session_list **ret, struct sba_error *err)
{
	struct sba_access x = { 0 };
	struct sba_session_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = sba_access_enter(a, false, &x, err);
	if (rc == 0)
		rc = x.store->list(x.store, &x.in, &l->kept, err);
	if (rc == 0)
		rc = describe(a, l, err);
	sba_access_leave(&x);
	if (rc < 0) {
		sba_sessions_free(l);
		return sba_access_wrap(a, rc, "list sessions", err);
	}
	*ret = l;
	return 0;
}

size_t sba_sessions_count(const struct sba_session_list *l)
{
	return l->kept.n;
}

const struct sba_session_info *sba_sessions_at(const struct sba_session_list *l, size_t n)
{
	return n < l->kept.n ? &l->v[n] : NULL;
}

void sba_sessions_free(struct sba_session_list *l)
{
	if (!l)
		return;
	sba_kept_list_fini(&l->kept);
	free(l->v);
	free(l);
}

/* ---- the main one ---- */

int sba_sessions_main(struct sba_agent *a, const char **ret, struct sba_error *err)
{
	int rc = sba_agent_load_state(a, err);
	if (rc == 0)
		*ret = a->session;
	return sba_access_wrap(a, rc, "its session", err);
}

static int find(const struct sba_access *x, const char *id, struct sba_error *err)
{
	struct sba_kept_list l = { 0 };
	bool found = false;
	int rc = x->store->list(x->store, &x->in, &l, err);
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		found = found || strcmp(l.v[i].id, id) == 0;
	sba_kept_list_fini(&l);
	if (rc == 0 && !found)
		rc = sba_fail(err, SBA_ENOTFOUND, "there is no session '%s'", id);
	return rc;
}

int sba_sessions_use(struct sba_agent *a, const char *id, struct sba_error *err)
{
	struct sba_access x = { 0 };
	const char *found;
	int rc = sba_access_enter(a, true, &x, err);
	if (rc == 0)
		rc = sba_access_id(a, id, &found, err);
	if (rc == 0)
		rc = find(&x, found, err);
	if (rc == 0)
		rc = sba_agent_set_session(a, found, NULL, err);
	if (rc == 0)
		sba_agent_record_session(a, "use", found, NULL);
	sba_access_leave(&x);
	return sba_access_wrap(a, rc, "use another session", err);
}

/* ---- copies ---- */

/* A dump of the session put in again under a new name. */
static int copy(struct sba_agent *a, const struct sba_access *x, const char *id,
		char ret[SBA_SESSION_NAME_MAX], struct sba_error *err)
{
	char name[SBA_SESSION_ID_MAX + 1];
	struct sba_parts parts = { 0 };
	struct sba_memory m = { 0 };
	int rc = x->store->dump(x->store, &x->in, id, &parts, err);
	if (rc == 0)
		rc = sba_store_new_id(x->store, id, name, err);
	if (rc == 0)
		rc = sba_agent_recall(a, id, &m, err);
	if (rc == 0)
		rc = x->store->load(x->store, &x->in, &parts, id, name, err);
	snprintf(m.parent, sizeof(m.parent), "%s", id);
	if (rc == 0)
		rc = sba_agent_remember(a, name, &m, err);
	free(m.kept);
	sba_parts_fini(&parts);
	if (rc == 0)
		snprintf(ret, SBA_SESSION_NAME_MAX, "%s", name);
	return rc;
}

int sba_sessions_copy(struct sba_agent *a, const char *id, char ret[SBA_SESSION_NAME_MAX],
		      struct sba_error *err)
{
	struct sba_access x = { 0 };
	const char *from;
	int rc = sba_access_enter(a, true, &x, err);
	if (rc == 0)
		rc = sba_access_id(a, id, &from, err);
	if (rc == 0)
		rc = copy(a, &x, from, ret, err);
	if (rc == 0)
		sba_agent_record_session(a, "copy", from, ret);
	sba_access_leave(&x);
	return sba_access_wrap(a, rc, "copy a session", err);
}

static int forget(struct sba_agent *a, const char *id, struct sba_error *err)
{
	int rc = sba_agent_remember(a, id, NULL, err);
	return rc == 0 && strcmp(id, a->session) == 0 ? sba_agent_set_session(a, "", NULL, err)
						      : rc;
}

int sba_sessions_remove(struct sba_agent *a, const char *id, struct sba_error *err)
{
	struct sba_access x = { 0 };
	const char *which;
	int rc = sba_access_enter(a, true, &x, err);
	if (rc == 0)
		rc = sba_access_id(a, id, &which, err);
	if (rc == 0)
		rc = x.store->remove(x.store, &x.in, which, err);
	if (rc == 0) {
		sba_agent_record_session(a, "remove", which, NULL);
		rc = forget(a, which, err);
	}
	sba_access_leave(&x);
	return sba_access_wrap(a, rc, "remove a session", err);
}
