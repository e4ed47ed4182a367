/* SPDX-License-Identifier: MIT */
/*
 * The CLI's sessions, through the driver's store; and children of an agent.
 * What changes them holds the lock that turns hold.
 */
#include "agent/private.h"

#include <sandbox-agent/session.h>

#include <stdlib.h>
#include <string.h>

struct sba_session_list {
	struct sba_kept_list kept;
	struct sba_session_info *v;
};

/* What nearly every function here needs. */
struct access {
	const struct sba_store *store;
	struct sba_inside in;
	struct sba_lock *lock; /* NULL for one that only looks */
};

static void leave(struct access *x)
{
	sba_lock_free(x->lock);
}

static int enter(struct sba_agent *a, bool change, struct access *ret, struct sba_error *err)
{
	struct access x = { .store = a->driver->store };
	if (!x.store)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s keeps no sessions that can be got at",
				a->driver->name);
	int rc = change ? sba_agent_lock(a, 0, &x.lock, err) : 0;
	if (rc == 0)
		rc = sba_agent_load_state(a, err);
	if (rc == 0)
		rc = sba_agent_inside(a, &x.in, err);
	if (rc < 0) {
		leave(&x);
		return rc;
	}
	*ret = x;
	return 0;
}

static int wrap(const struct sba_agent *a, int rc, const char *what, struct sba_error *err)
{
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': %s", sba_sandbox_info(a->sandbox)->name,
				 what)
		      : 0;
}

static int id_or_main(const struct sba_agent *a, const char *id, const char **ret,
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

static int describe(const struct sba_agent *a, struct sba_session_list *l, struct sba_error *err)
{
	l->v = calloc(l->kept.n + 1, sizeof(*l->v));
	if (!l->v)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < l->kept.n; i++) {
		const struct sba_kept *k = &l->kept.v[i];
		l->v[i] = (struct sba_session_info){
			.id = k->id,
			.title = k->title,
			.model = k->model,
			.parent = k->parent,
			.workdir = k->workdir,
			.created_ms = k->created_ms,
			.updated_ms = k->updated_ms,
			.main = strcmp(k->id, a->session) == 0,
		};
	}
	return 0;
}

int sba_sessions_list(struct sba_agent *a, struct sba_session_list **ret, struct sba_error *err)
{
	struct access x = { 0 };
	struct sba_session_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = enter(a, false, &x, err);
	if (rc == 0)
		rc = x.store->list(x.store, &x.in, &l->kept, err);
	if (rc == 0)
		rc = describe(a, l, err);
	leave(&x);
	if (rc < 0) {
		sba_sessions_free(l);
		return wrap(a, rc, "list sessions", err);
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
	return wrap(a, rc, "its session", err);
}

static int find(const struct access *x, const char *id, struct sba_error *err)
{
	struct sba_kept_list l = { 0 };
	bool found = false;
	int rc = x->store->list(x->store, &x->in, &l, err);
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		found = found || strcmp(l.v[i].id, id) == 0;
	sba_kept_list_fini(&l);
	if (rc == 0 && !found)
		rc = sba_hint(err, sba_fail(err, SBA_ENOTFOUND, "there is no session '%s'", id),
			      "what there is:  sandbox-agent sessions ls NAME");
	return rc;
}

int sba_sessions_use(struct sba_agent *a, const char *id, struct sba_error *err)
{
	struct access x = { 0 };
	const char *found;
	int rc = enter(a, true, &x, err);
	if (rc == 0)
		rc = id_or_main(a, id, &found, err);
	if (rc == 0)
		rc = find(&x, found, err);
	if (rc == 0)
		rc = sba_agent_set_session(a, found, NULL, err);
	leave(&x);
	return wrap(a, rc, "use another session", err);
}

/* ---- copies ---- */

/* A dump of the session, put in again under a new name. */
static int copy(const struct access *x, const char *id, char ret[SBA_SESSION_NAME_MAX],
		struct sba_error *err)
{
	char name[SBA_SESSION_ID_MAX + 1];
	struct sba_parts parts = { 0 };
	int rc = x->store->dump(x->store, &x->in, id, &parts, err);
	if (rc == 0)
		rc = sba_store_new_id(x->store, id, name, err);
	if (rc == 0)
		rc = x->store->load(x->store, &x->in, &parts, id, name, err);
	sba_parts_fini(&parts);
	if (rc == 0)
		snprintf(ret, SBA_SESSION_NAME_MAX, "%s", name);
	return rc;
}

int sba_sessions_copy(struct sba_agent *a, const char *id, char ret[SBA_SESSION_NAME_MAX],
		      struct sba_error *err)
{
	struct access x = { 0 };
	const char *from;
	int rc = enter(a, true, &x, err);
	if (rc == 0)
		rc = id_or_main(a, id, &from, err);
	if (rc == 0)
		rc = copy(&x, from, ret, err);
	leave(&x);
	return wrap(a, rc, "copy a session", err);
}

int sba_sessions_remove(struct sba_agent *a, const char *id, struct sba_error *err)
{
	struct access x = { 0 };
	const char *which;
	int rc = enter(a, true, &x, err);
	if (rc == 0)
		rc = id_or_main(a, id, &which, err);
	if (rc == 0)
		rc = x.store->remove(x.store, &x.in, which, err);
	if (rc == 0 && strcmp(which, a->session) == 0)
		rc = sba_agent_set_session(a, "", NULL, err);
	leave(&x);
	return wrap(a, rc, "remove a session", err);
}

/* ---- children ---- */

/* What the child got as a copy of the parent's files is the parent's session: it
 * becomes one of its own. */
static int adopt(struct sba_agent *parent, struct sba_sandbox *child, const struct sba_parts *parts,
		 struct sba_error *err)
{
	struct sba_agent a = { .sandbox = child, .driver = parent->driver, .state_known = true };
	char id[SBA_SESSION_ID_MAX + 1];
	struct sba_inside in;
	int rc = sba_agent_inside(&a, &in, err);
	const struct sba_store *store = a.driver->store;
	if (rc == 0)
		rc = sba_store_new_id(store, parent->session, id, err);
	if (rc == 0)
		rc = store->load(store, &in, parts, parent->session, id, err);
	if (rc == 0) {
		rc = store->remove(store, &in, parent->session, err);
		/* It was taken out of the parent before its files were copied, or after. */
		rc = rc == SBA_ENOTFOUND ? 0 : rc;
	}
	if (rc == 0)
		rc = sba_agent_set_session(&a, id, parent->kept, err);
	free(a.home);
	free(a.kept);
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

int sba_agent_fork(struct sba_agent *a, const struct sba_fork_options *options,
		   struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		   struct sba_error *err)
{
	struct access x = { 0 };
	struct sba_parts parts = { 0 };
	size_t n = options && options->count ? options->count : 1;
	int rc = enter(a, false, &x, err);
	if (rc == 0 && *a->session)
		rc = x.store->dump(x.store, &x.in, a->session, &parts, err);
	leave(&x);
	if (rc == 0)
		rc = sba_sandbox_fork(a->sandbox, options, ret, ret_report, err);
	else
		rc = wrap(a, rc, "fork its session", err);
	if (rc < 0 || !*a->session) {
		sba_parts_fini(&parts);
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = adopt(a, ret[i], &parts, err);
	sba_parts_fini(&parts);
	if (rc < 0)
		drop_all(ret, n, rc, err);
	return rc;
}
