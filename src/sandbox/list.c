/* SPDX-License-Identifier: MIT */
/*
 * Lists of sandboxes. What each of them does only questions about it tell: they are
 * asked side by side, and one that is not answered keeps the others waiting no longer
 * than a moment.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "sandbox/past.h"

enum {
	PAST_S = 60 * 60,
	LOOKERS = SBA_ENGINE_IDLE_CONNECTIONS, /* each on a connection that is kept */
	LOOK_MS = 5000,
};

bool sba_list_wants(const struct sba_sandbox *s, const struct sba_list_options *o)
{
	bool gone = strcmp(s->info.state, "gone") == 0;
	/* What somebody took away on purpose is no news, nor what nobody had. */
	if (strcmp(s->info.reason, "removed") == 0 || (gone && sba_member_unclaimed(s)))
		return false;
	if (o->ready && strcmp(s->info.state, "ready") != 0)
		return false;
	if (o->tag && strcmp(o->tag, s->info.tag) != 0)
		return false;
	if (o->agent && strcmp(o->agent, s->info.agent) != 0)
		return false;
	if (o->name && strcmp(o->name, s->info.name) != 0)
		return false;
	return o->all || o->ready ||
	       (!gone && strcmp(s->info.state, "created") != 0 && !sba_member_unclaimed(s));
}

static int newest_first(const void *a, const void *b)
{
	const struct sba_sandbox *x = a, *y = b;
	if (x->info.created != y->info.created)
		return x->info.created < y->info.created ? 1 : -1;
	return strcmp(x->info.name, y->info.name);
}

void sba_list_sort(struct sba_sandbox_list *l)
{
	if (l->found.n > 0)
		qsort(l->found.v, l->found.n, sizeof(*l->found.v), newest_first);
}

/* ---- what each is doing ---- */

struct looking {
	struct sba_engine *engine;
	const struct sba_list_options *options;
	struct sba_found *found;
	atomic_size_t next;
};

static void find_agent(struct sba_sandbox *s)
{
	struct sba_error why;
	if (!*s->info.agent && sba_sandbox_find_agent(s, &why) < 0)
		sba_log("sandbox", "%s", why.text);
}

/* The engine answers no question about a container that it has locked, as for a copy that
 * stands still. */
static void look_at(const struct looking *l, struct sba_sandbox *s)
{
	SBA_JSON json_t *j = NULL;
	struct sba_until until = sba_engine_until(l->engine, LOOK_MS);
	if (strcmp(s->info.state, "idle") != 0 || s->info.foreign_schema)
		return;
	int rc = sba_container_inspect(l->engine, s->container, until, &j, NULL);
	if (rc == SBA_ENOTFOUND)
		s->info.state = "gone";
	else if (rc == SBA_ETIMEOUT)
		s->info.state = "changing";
	if (rc < 0)
		return;
	if (l->options->moved_in)
		find_agent(s);
	if (!sba_list_wants(s, l->options))
		return;
	s->info.commands = sba_sandbox_held(s, j, until);
	if (s->info.commands > 0)
		s->info.state = "working";
}

static void *look_on(void *user)
{
	struct looking *l = user;
	size_t i;
	while ((i = atomic_fetch_add(&l->next, 1)) < l->found->n)
		look_at(l, &l->found->v[i]);
	return NULL;
}

static void look_at_all(struct sba_engine *e, const struct sba_list_options *o, struct sba_found *f)
{
	struct looking l = { .engine = e, .options = o, .found = f };
	pthread_t others[LOOKERS - 1];
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++)
		f->v[i].engine = e;
	while (n < SBA_ARRAY_LEN(others) && n + 1 < f->n &&
	       sba_thread_start(&others[n], look_on, &l, NULL) == 0)
		n++;
	look_on(&l);
	while (n > 0)
		pthread_join(others[--n], NULL);
}

/* ---- the list ---- */

static int find_all(struct sba_engine *e, const struct sba_list_options *o, struct sba_found *ret,
		    struct sba_error *err)
{
	static const char *const every[] = { SBA_LABEL "id", NULL };
	bool any_prefix = o->prefix && strcmp(o->prefix, "*") == 0;
	char by_prefix[SBA_FILTER_MAX];
	const char *const one[] = { sba_label_of_prefix(by_prefix, o->prefix), NULL };
	int rc = sba_found_get(e, any_prefix ? every : one, ret, err);
	if (rc < 0)
		return rc;
	/* Other prefixes are others'. */
	if (!any_prefix)
		sba_found_sweep(e, ret, NULL);
	/* Without the past the list is still worth having. */
	if (o->all && sba_past_add(e, any_prefix ? every[0] : by_prefix,
				   sba_unix_ms() / 1000 - PAST_S, ret, NULL) < 0)
		sba_log("sandbox", "the engine does not tell what was before");
	return 0;
}

static void keep_wanted(struct sba_found *f, const struct sba_list_options *o)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct sba_sandbox *s = &f->v[i];
		if (sba_list_wants(s, o)) {
			f->v[kept++] = *s;
			continue;
		}
		json_decref(s->labels);
		json_decref(s->resident);
	}
	f->n = kept;
}

int sba_sandbox_list(struct sba_engine *e, const struct sba_list_options *options,
		     struct sba_sandbox_list **ret, struct sba_error *err)
{
	static const struct sba_list_options defaults = { 0 };
	const struct sba_list_options *o = options ? options : &defaults;
	struct sba_sandbox_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = find_all(e, o, &l->found, err);
	if (rc < 0) {
		free(l);
		return rc;
	}
	if (!o->brief)
		look_at_all(e, o, &l->found);
	keep_wanted(&l->found, o);
	sba_list_sort(l);
	*ret = l;
	return 0;
}

size_t sba_sandbox_list_count(const struct sba_sandbox_list *l)
{
	return l->found.n;
}

const struct sba_sandbox_info *sba_sandbox_list_at(const struct sba_sandbox_list *l, size_t n)
{
	return n < l->found.n ? &l->found.v[n].info : NULL;
}

void sba_sandbox_list_free(struct sba_sandbox_list *l)
{
	if (!l)
		return;
	sba_found_fini(&l->found);
	free(l);
}
