/* SPDX-License-Identifier: MIT */
/* What is recorded under a root, by the status of each session. */
#include "audit/private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, BEGINNING_MIN = 4 };

/* What an entry of the list lends from. */
struct item {
	struct sba_audit_session s;
	json_t *status;
	char *text, *path, *name, *day;
};

struct sba_audit_list {
	struct item *v;
	size_t n;
	const char *root;
	const struct sba_audit_filter *filter;
};

static void item_fini(struct item *i)
{
	json_decref(i->status);
	free(i->text);
	free(i->path);
	free(i->name);
	free(i->day);
}

static const char *or_empty(const json_t *j, const char *path)
{
	const char *s = sba_json_str(j, path);
	return s ? s : "";
}

/* "running" is what the status says; whether it is true, the lock says. */
static const char *verdict_of(const json_t *status, int fd)
{
	const json_t *turns = json_object_get(status, "turns");
	const json_t *last = json_array_get(turns, json_array_size(turns) - 1);
	const char *verdict = or_empty(last, "verdict");
	return strcmp(verdict, "running") != 0 || sba_audit_folder_held(fd) ? verdict
									    : "unfinished";
}

static int64_t count_of(const json_t *usage, const char *name)
{
	int64_t n = sba_json_int(usage, name, 0);
	return n > 0 ? n : 0;
}

static void add_to(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = INT64_MAX;
}

static struct sba_usage usage_of(const json_t *status)
{
	struct sba_usage sum = { 0 };
	size_t i;
	const json_t *turn;
	json_array_foreach(json_object_get(status, "turns"), i, turn)
	{
		const json_t *u = json_object_get(turn, "usage");
		add_to(&sum.input, count_of(u, "input"));
		add_to(&sum.cached_input, count_of(u, "cached_input"));
		add_to(&sum.output, count_of(u, "output"));
		add_to(&sum.reasoning, count_of(u, "reasoning"));
		sum.cost_usd += json_number_value(json_object_get(u, "cost_usd"));
	}
	return sum;
}

static void describe(struct item *i, int fd)
{
	const json_t *j = i->status;
	i->s = (struct sba_audit_session){
		.name = i->name,
		.path = i->path,
		.day = i->day,
		.session = or_empty(j, "session"),
		.agent = or_empty(j, "agent"),
		.sandbox = or_empty(j, "sandbox.name"),
		.sandbox_id = or_empty(j, "sandbox.id"),
		.image = or_empty(j, "image"),
		.prompt = or_empty(j, "turns.#0.prompt"),
		.verdict = verdict_of(j, fd),
		.status = i->text,
		.created_ms = sba_audit_time_parse(sba_json_str(j, "created")),
		.updated_ms = sba_audit_time_parse(sba_json_str(j, "updated")),
		.turns = json_array_size(json_object_get(j, "turns")),
		.usage = usage_of(j),
	};
}

static bool is_wanted(const struct sba_audit_filter *f, const struct sba_audit_session *s)
{
	return !f || ((!f->agent || !strcmp(f->agent, s->agent)) &&
		      (!f->verdict || !strcmp(f->verdict, s->verdict)) &&
		      (!f->sandbox || !strcmp(f->sandbox, s->sandbox)));
}

static int keep(struct sba_audit_list *l, struct item *take, struct sba_error *err)
{
	struct item *grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	l->v = grown;
	l->v[l->n++] = *take;
	*take = (struct item){ 0 };
	return 0;
}

/* One whose status cannot be read is passed over: it is not there yet, or no more. */
static int add(struct sba_audit_list *l, int day_fd, const char *day, const char *name,
	       struct sba_error *err)
{
	SBA_CLOSE int fd = openat(day_fd, name, OPEN_DIR);
	struct item i = { 0 };
	int rc = fd < 0 ? SBA_ENOTFOUND : sba_audit_status_load(fd, &i.status, err);
	if (rc < 0)
		return rc == SBA_ENOMEM ? rc : 0;
	i.day = strdup(day);
	i.name = strdup(name);
	i.text = sba_json_dump(i.status);
	rc = i.name && i.day && i.text && asprintf(&i.path, "%s/%s/%s", l->root, day, name) >= 0
		     ? 0
		     : sba_fail_nomem(err);
	if (rc == 0) {
		describe(&i, fd);
		if (is_wanted(l->filter, &i.s))
			rc = keep(l, &i, err);
	}
	item_fini(&i);
	return rc;
}

static int add_day(struct sba_audit_list *l, int root_fd, const char *day, struct sba_error *err)
{
	SBA_CLOSE int fd = -1;
	SBA_STRV struct sba_strv names = { 0 };
	int rc = sba_audit_day_open(root_fd, day, false, &fd, err);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc == 0)
		rc = sba_audit_names(fd, &names, err);
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = add(l, fd, day, names.v[i], err);
	return rc;
}

static int newest_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return (x->s.updated_ms < y->s.updated_ms) - (x->s.updated_ms > y->s.updated_ms);
}

int sba_audit_list(const char *root, const struct sba_audit_filter *filter,
		   struct sba_audit_list **ret, struct sba_error *err)
{
	SBA_CLOSE int fd = -1;
	SBA_STRV struct sba_strv days = { 0 };
	struct sba_audit_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->root = root;
	l->filter = filter;
	int rc = sba_audit_root_open(root, false, &fd, err);
	if (rc == 0)
		rc = sba_audit_days(fd, &days, err);
	else if (rc == SBA_ENOTFOUND)
		rc = 0;
	for (size_t i = 0; rc == 0 && i < days.n; i++) {
		if (!filter || !filter->day || !strcmp(filter->day, days.v[i]))
			rc = add_day(l, fd, days.v[i], err);
	}
	l->root = NULL;
	l->filter = NULL;
	if (rc < 0) {
		sba_audit_list_free(l);
		return sba_wrap(err, rc, "audit");
	}
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), newest_first);
	*ret = l;
	return 0;
}

size_t sba_audit_list_count(const struct sba_audit_list *l)
{
	return l->n;
}

const struct sba_audit_session *sba_audit_list_at(const struct sba_audit_list *l, size_t n)
{
	return n < l->n ? &l->v[n].s : NULL;
}

/* The newest that has the whole id; else the only one that begins so. */
int sba_audit_list_find(const struct sba_audit_list *l, const char *id,
			const struct sba_audit_session **ret, struct sba_error *err)
{
	const struct sba_audit_session *found = NULL;
	size_t like = 0, len = strlen(id);
	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->v[i].name, id) || sba_audit_status_has(l->v[i].status, id)) {
			*ret = &l->v[i].s;
			return 0;
		}
		if (len < BEGINNING_MIN || strncmp(l->v[i].name, id, len) != 0)
			continue;
		found = &l->v[i].s;
		like++;
	}
	if (like == 1) {
		*ret = found;
		return 0;
	}
	int rc = like ? sba_fail(err, SBA_EINVAL, "'%s' may be any of %zu sessions", id, like)
		      : sba_fail(err, SBA_ENOTFOUND, "no session '%s' is recorded", id);
	return sba_hint(err, rc, "what there is:  sandbox-agent audit ls");
}

void sba_audit_list_free(struct sba_audit_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		item_fini(&l->v[i]);
	free(l->v);
	free(l);
}
