/* SPDX-License-Identifier: MIT */
/* Records of a workspace as a list of changes: sorted, renamings found, lines counted. */
#include "sandbox/states.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TWINS_MAX = 64 }; /* files of the same content that are looked at for one name */

const char *sba_change_kind_name(enum sba_change_kind kind)
{
	static const char *const names[] = {
		[SBA_CHANGE_CREATED] = "created", [SBA_CHANGE_MODIFIED] = "modified",
		[SBA_CHANGE_DELETED] = "deleted", [SBA_CHANGE_RENAMED] = "renamed",
		[SBA_CHANGE_MODE] = "mode",
	};
	return (unsigned)kind < SBA_ARRAY_LEN(names) ? names[kind] : "modified";
}

/* ---- contents ---- */

static bool is_same(const struct sba_change_item *i)
{
	return i->told.kind == SBA_CHANGE_RENAMED || i->told.kind == SBA_CHANGE_MODE;
}

int sba_change_side(const struct sba_changes *c, const struct sba_change_item *i, bool old,
		    struct sba_diff_file *ret, char **ret_heap, struct sba_error *err)
{
	const struct sba_record *r = old ? i->old : i->fresh;
	*ret_heap = NULL;
	*ret = (struct sba_diff_file){ .content = { "", 0 } };
	if (!r)
		return 0;
	const struct sba_record_side *side = old ? &r->old : &r->fresh;
	ret->path = r->path;
	ret->mode = side->entry.mode;
	if (side->entry.link)
		ret->content = (struct sba_diff_text){ side->entry.link, strlen(side->entry.link) };
	if (side->entry.link || is_same(i) || side->why != SBA_CONTENT_SENT)
		return 0;
	int rc = sba_records_content(&c->records, r, old, ret_heap, err);
	if (rc == 0)
		ret->content = (struct sba_diff_text){ *ret_heap, (size_t)side->entry.size };
	return rc;
}

static const char *why_without(const struct sba_record_side *side, bool old)
{
	switch (side->why) {
	case SBA_CONTENT_LARGE:
		return "it is larger than 8 MiB";
	case SBA_CONTENT_MUCH:
		return "more than 256 MiB have changed";
	case SBA_CONTENT_NOT_KEPT:
	case SBA_CONTENT_NOT_ASKED:
		return old ? "what it was before is not kept" : "it was not read";
	case SBA_CONTENT_SENT:
	case SBA_CONTENT_SAME:
	case SBA_CONTENT_LINK:
		break;
	}
	return NULL;
}

static int look_into(struct sba_changes *c, struct sba_change_item *i, struct sba_error *err)
{
	SBA_FREE char *old_heap = NULL, *fresh_heap = NULL;
	struct sba_diff_file old, fresh;
	struct sba_diff_count lines = { 0 };
	if (is_same(i))
		return 0;
	if (i->old)
		i->told.without_content = why_without(&i->old->old, true);
	if (i->fresh && !i->told.without_content)
		i->told.without_content = why_without(&i->fresh->fresh, false);
	if (i->told.without_content)
		return 0;
	int rc = sba_change_side(c, i, true, &old, &old_heap, err);
	if (rc == 0)
		rc = sba_change_side(c, i, false, &fresh, &fresh_heap, err);
	if (rc < 0)
		return rc;
	i->told.binary = !sba_diff_is_text(old.content.data, old.content.len) ||
			 !sba_diff_is_text(fresh.content.data, fresh.content.len);
	if (i->told.binary)
		return 0;
	rc = sba_diff_hunks(&old.content, &fresh.content, NULL, &lines, err);
	if (rc == SBA_ELIMIT) {
		i->told.binary = true;
		return 0;
	}
	i->told.added = lines.added;
	i->told.removed = lines.removed;
	return rc;
}

/* ---- renamings ---- */

static const struct sba_record *gone_of(const void *item)
{
	return (*(const struct sba_change_item *const *)item)->old;
}

/* By content, and of the same content by path. */
static int by_content(const void *a, const void *b)
{
	const struct sba_record *x = gone_of(a), *y = gone_of(b);
	int order = memcmp(x->old.entry.sha, y->old.entry.sha, SBA_SHA256_SIZE);
	return order ? order : strcmp(x->path, y->path);
}

/* Content tells: not that of an empty file, nor of a link. */
static bool is_telling(const struct sba_file_entry *e)
{
	return S_ISREG(e->mode) && e->flags & SBA_ENTRY_HASHED && e->size > 0;
}

struct gone {
	struct sba_change_item **v; /* NULL: renamed already */
	size_t n;
};

static size_t first_of(const struct gone *g, const unsigned char sha[SBA_SHA256_SIZE])
{
	size_t low = 0, high = g->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (memcmp(g->v[mid]->old->old.entry.sha, sha, SBA_SHA256_SIZE) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Of those that had its content and are gone the one of the same name, or the first. */
static struct sba_change_item *find_gone(const struct gone *g, const struct sba_record *fresh)
{
	const unsigned char *sha = fresh->fresh.entry.sha;
	struct sba_change_item *first = NULL;
	size_t from = first_of(g, sha);
	for (size_t i = from; i < g->n && i < from + TWINS_MAX; i++) {
		struct sba_change_item *it = g->v[i];
		if (memcmp(it->old->old.entry.sha, sha, SBA_SHA256_SIZE) != 0)
			break;
		if (it->told.kind != SBA_CHANGE_DELETED)
			continue;
		if (strcmp(sba_base_name(it->old->path), sba_base_name(fresh->path)) == 0)
			return it;
		first = first ? first : it;
	}
	return first;
}

static void rename_item(struct sba_change_item *fresh, struct sba_change_item *gone)
{
	fresh->old = gone->old;
	fresh->told.kind = SBA_CHANGE_RENAMED;
	fresh->told.old_path = gone->old->path;
	fresh->told.old_mode = gone->told.old_mode;
	fresh->told.old_size = gone->told.old_size;
	/* It is no change of its own any more; taken out below. */
	gone->told.kind = SBA_CHANGE_RENAMED;
	gone->told.path = NULL;
}

static void find_renamings(struct sba_changes *c, struct gone *g)
{
	for (size_t i = 0; i < c->n; i++) {
		struct sba_change_item *it = &c->v[i];
		if (it->told.kind == SBA_CHANGE_DELETED && is_telling(&it->old->old.entry))
			g->v[g->n++] = it;
	}
	if (g->n)
		qsort(g->v, g->n, sizeof(*g->v), by_content);
	for (size_t i = 0; i < c->n && g->n > 0; i++) {
		struct sba_change_item *it = &c->v[i];
		if (it->told.kind != SBA_CHANGE_CREATED || !is_telling(&it->fresh->fresh.entry))
			continue;
		struct sba_change_item *gone = find_gone(g, it->fresh);
		if (gone)
			rename_item(it, gone);
	}
}

static void drop_renamed(struct sba_changes *c)
{
	size_t kept = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].told.path)
			c->v[kept++] = c->v[i];
	}
	c->n = kept;
}

/* ---- the list ---- */

static void take_old(struct sba_change_item *i, const struct sba_record *r)
{
	i->old = r;
	i->told.old_mode = r->old.entry.mode;
	i->told.old_size = r->old.entry.size;
}

static void take_fresh(struct sba_change_item *i, const struct sba_record *r)
{
	i->fresh = r;
	i->told.mode = r->fresh.entry.mode;
	i->told.size = r->fresh.entry.size;
}

static void add_item(struct sba_changes *c, const struct sba_record *r)
{
	struct sba_change_item i = { .told.path = r->path };
	switch (r->kind) {
	case SBA_RECORD_ADDED:
		i.told.kind = SBA_CHANGE_CREATED;
		take_fresh(&i, r);
		break;
	case SBA_RECORD_DELETED:
		i.told.kind = SBA_CHANGE_DELETED;
		take_old(&i, r);
		break;
	case SBA_RECORD_MODIFIED:
		i.told.kind =
			r->fresh.why == SBA_CONTENT_SAME ? SBA_CHANGE_MODE : SBA_CHANGE_MODIFIED;
		take_old(&i, r);
		take_fresh(&i, r);
		break;
	case SBA_RECORD_LEFT_OUT:
		c->left_out++;
		return;
	case SBA_RECORD_TOUCHED:
		return;
	}
	c->v[c->n++] = i;
}

static int fill(struct sba_changes *c, struct sba_error *err)
{
	struct gone g = { .n = 0 };
	int rc = 0;
	c->v = calloc(c->records.n + 1, sizeof(*c->v));
	g.v = calloc(c->records.n + 1, sizeof(struct sba_change_item *));
	if (!c->v || !g.v) {
		free(g.v);
		return sba_fail_nomem(err);
	}
	for (size_t i = 0; i < c->records.n; i++)
		add_item(c, &c->records.v[i]);
	find_renamings(c, &g);
	free(g.v);
	drop_renamed(c);
	for (size_t i = 0; rc == 0 && i < c->n; i++)
		rc = look_into(c, &c->v[i], err);
	return rc;
}

int sba_changes_make(struct sba_sandbox *s, struct sba_kept *take_k, struct sba_records *take_r,
		     struct sba_changes **ret, struct sba_error *err)
{
	struct sba_changes *c = calloc(1, sizeof(*c));
	if (!c) {
		sba_kept_fini(take_k);
		sba_records_fini(take_r);
		return sba_fail_nomem(err);
	}
	c->sandbox = s;
	c->kept = *take_k;
	c->records = *take_r;
	*take_k = (struct sba_kept){ 0 };
	sba_records_init(take_r);
	int rc = fill(c, err);
	if (rc < 0) {
		sba_changes_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

int sba_sandbox_changes(struct sba_sandbox *s, const struct sba_changes_options *options,
			struct sba_changes **ret, struct sba_error *err)
{
	struct sba_kept k = { 0 };
	struct sba_records r;
	int64_t turn = options ? options->turn : 0;
	if (!sba_kept_is_inside(s))
		return sba_states_changes(s, turn, ret, err);
	int rc = sba_kept_load(s, &k, err);
	if (rc < 0)
		return rc;
	if (k.n == 0) {
		sba_kept_fini(&k);
		return sba_hint(err,
				sba_fail(err, SBA_ENOTFOUND,
					 "sandbox '%s': nothing is kept of its workspace as it was",
					 s->info.name),
				"changes are told against a folder that was copied in (-w), or "
				"against the first turn");
	}
	rc = sba_kept_look(s, &k, sba_kept_before(&k, turn), &r, err);
	if (rc < 0) {
		sba_kept_fini(&k);
		return rc;
	}
	return sba_changes_make(s, &k, &r, ret, err);
}

size_t sba_changes_count(const struct sba_changes *c)
{
	return c->n;
}

const struct sba_change *sba_changes_at(const struct sba_changes *c, size_t i)
{
	return i < c->n ? &c->v[i].told : NULL;
}

const char *sba_changes_folder(const struct sba_changes *c)
{
	return c->kept.folder;
}

size_t sba_changes_left_out(const struct sba_changes *c)
{
	return c->left_out;
}

void sba_changes_free(struct sba_changes *c)
{
	if (!c)
		return;
	sba_records_fini(&c->records);
	sba_kept_fini(&c->kept);
	free(c->v);
	free(c);
}
