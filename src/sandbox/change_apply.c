/* SPDX-License-Identifier: MIT */
/*
 * Changes of a workspace made to a folder of this host: everything is compared first,
 * every conflict told, and then all of it happens or nothing.
 */
#include "sandbox/change_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "base/limits.h"

enum { NS = 1000000000 };

struct apply {
	struct sba_changes *changes;
	const struct sba_apply_options *options;
	struct sba_edit *edit;
	const char **removed; /* paths, sorted; of the changes */
	size_t n_removed;
	struct sba_apply_report report;
	bool is_conflict; /* of the change that is looked at */
};

/* ---- what is here ---- */

static void conflict(struct apply *a, const char *path, const char *why)
{
	a->report.conflicts++;
	a->is_conflict = true;
	if (a->options && a->options->conflict)
		a->options->conflict(a->options->user, path, why);
}

static bool is_entry(const struct sba_edit_seen *seen, const struct sba_file_entry *e)
{
	if (e->link)
		return S_ISLNK(seen->mode) && strcmp(seen->link, e->link) == 0;
	if (!S_ISREG(seen->mode) || seen->size != e->size)
		return false;
	if (e->flags & SBA_ENTRY_HASHED)
		return memcmp(seen->sha256, e->sha, sizeof(e->sha)) == 0;
	/* Too large for a hash. A copy keeps the time of what it is a copy of, to the second. */
	return seen->mtime_ns / NS == e->mtime_ns / NS;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One folder that becomes a file may ask of each of many thousand. */
static int list_removed(struct apply *a, struct sba_error *err)
{
	a->removed = calloc(a->changes->n + 1, sizeof(*a->removed));
	if (!a->removed)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < a->changes->n; i++) {
		const struct sba_record *old = a->changes->v[i].old;
		const struct sba_record *fresh = a->changes->v[i].fresh;
		if (old && (!fresh || strcmp(fresh->path, old->path) != 0))
			a->removed[a->n_removed++] = old->path;
	}
	qsort(a->removed, a->n_removed, sizeof(*a->removed), compare_paths);
	return 0;
}

/* user: the apply. */
static bool is_removed(void *user, const char *path)
{
	const struct apply *a = user;
	return bsearch(&path, a->removed, a->n_removed, sizeof(*a->removed), compare_paths);
}

/* Whether a folder above it is a link by now, so that it is gone. */
static bool is_below_link(const struct apply *a, const char *path)
{
	for (size_t i = 0; i < a->changes->n; i++) {
		const struct sba_record *fresh = a->changes->v[i].fresh;
		size_t len = fresh && fresh->fresh.entry.link ? strlen(fresh->path) : 0;
		if (len && strncmp(path, fresh->path, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

/* 0 and what is here; a hash only where the size leaves it open. 1: a conflict, told. */
static int look(struct apply *a, const char *path, const struct sba_change_item *i,
		struct sba_edit_seen *ret, struct sba_error *err)
{
	struct sba_error why = { 0 };
	int rc = sba_edit_look(a->edit, path, false, ret, &why);
	bool hash = (i->old && i->old->old.entry.size == ret->size) ||
		    (i->fresh && i->fresh->fresh.entry.size == ret->size);
	if (rc == 0 && S_ISREG(ret->mode) && hash)
		rc = sba_edit_look(a->edit, path, true, ret, &why);
	if (rc == SBA_EREFUSED && is_removed(a, path) && is_below_link(a, path)) {
		*ret = (struct sba_edit_seen){ .mode = 0 };
		return 0;
	}
	if (rc == SBA_EREFUSED) {
		conflict(a, path, "a link is in the way here");
		return 1;
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* ---- what is written ---- */

struct fetched {
	int fd;
	uint64_t left;
};

static int take_fetched(void *user, const void *data, size_t len, struct sba_error *err)
{
	struct fetched *f = user;
	if (len > f->left)
		return sba_fail(err, SBA_ECONFLICT, "it has changed in the sandbox since");
	f->left -= len;
	return sba_write_all(f->fd, data, len, err);
}

/* What did not come with the changes is read now. */
static int fetch(struct apply *a, const struct sba_record *r, int fd, struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	unsigned char sha[SBA_SHA256_SIZE];
	struct fetched f = { fd, r->fresh.entry.size };
	int rc = sba_inside_join(path, a->changes->kept.folder, r->path, err);
	if (rc == 0)
		rc = sba_sandbox_read(a->changes->sandbox, path, 0, take_fetched, &f, err);
	if (rc < 0 || !(r->fresh.entry.flags & SBA_ENTRY_HASHED))
		return rc;
	char name[32];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	SBA_CLOSE int again = open(name, O_RDONLY | O_CLOEXEC);
	if (again < 0 || sba_sha256_file(again, sha) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read what was fetched of '%s'",
				      r->path);
	return f.left == 0 && memcmp(sha, r->fresh.entry.sha, sizeof(sha)) == 0
		       ? 0
		       : sba_fail(err, SBA_ECONFLICT, "'%s' has changed in the sandbox since",
				  r->path);
}

/* The permissions here stay, unless the agent has changed them there. */
static uint32_t mode_for(const struct sba_change_item *i, const struct sba_edit_seen *seen)
{
	uint32_t fresh = i->fresh->fresh.entry.mode;
	bool kept =
		i->old && S_ISREG(seen->mode) && ((i->old->old.entry.mode ^ fresh) & 07777) == 0;
	return (kept ? seen->mode : fresh) & 0777;
}

static int write_file(struct apply *a, const struct sba_change_item *i,
		      const struct sba_edit_seen *seen, struct sba_error *err)
{
	const struct sba_record *r = i->fresh;
	SBA_FREE char *content = NULL;
	int fd;
	int rc = sba_edit_file(a->edit, r->path, mode_for(i, seen), &fd, err);
	if (rc < 0)
		return rc;
	if (r->fresh.why != SBA_CONTENT_SENT)
		return fetch(a, r, fd, err);
	rc = sba_records_content(&a->changes->records, r, false, &content, err);
	return rc < 0 ? rc : sba_write_all(fd, content, (size_t)r->fresh.entry.size, err);
}

static int write_fresh(struct apply *a, const struct sba_change_item *i,
		       const struct sba_edit_seen *seen, struct sba_error *err)
{
	struct sba_error why = { 0 };
	if (!i->fresh->fresh.entry.link)
		return write_file(a, i, seen, err);
	int rc = sba_edit_link(a->edit, i->fresh->path, i->fresh->fresh.entry.link, &why);
	if (rc == SBA_EREFUSED) {
		conflict(a, i->fresh->path, "the link leads out of the folder");
		return 0;
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* ---- one change ---- */

/* A folder here, where a file went and others came below its name. */
static bool has_come(const struct apply *a, const char *folder)
{
	size_t len = strlen(folder);
	for (size_t i = 0; i < a->changes->n; i++) {
		const struct sba_record *fresh = a->changes->v[i].fresh;
		if (fresh && strncmp(fresh->path, folder, len) == 0 && fresh->path[len] == '/')
			return true;
	}
	return false;
}

/* A folder here is no conflict where all that was in it goes. */
static bool goes_away(const struct apply *a, const char *folder)
{
	size_t len = strlen(folder);
	for (size_t i = 0; i < a->changes->n; i++) {
		const struct sba_record *old = a->changes->v[i].old;
		if (old && strncmp(old->path, folder, len) == 0 && old->path[len] == '/')
			return true;
	}
	return false;
}

/* What is in a folder here that is to be a file. 1: more than what goes, a conflict. */
static int check_folder(struct apply *a, const char *path, struct sba_error *err)
{
	char other[SBA_LAND_PATH_MAX], why[512];
	if (!goes_away(a, path)) {
		conflict(a, path, "a folder is there");
		return 1;
	}
	int rc = sba_edit_remains(a->edit, path, is_removed, a, other, err);
	if (rc > 0) {
		snprintf(why, sizeof(why), "a folder is there, with %.400s in it", other);
		conflict(a, path, why);
	}
	return rc;
}

/* 1: there is nothing to do about it, or it is a conflict. */
static int check_fresh(struct apply *a, const struct sba_change_item *i, const char *old_path,
		       struct sba_edit_seen *seen, struct sba_error *err)
{
	const char *path = i->fresh->path;
	int rc = look(a, path, i, seen, err);
	if (rc != 0)
		return rc;
	if (is_entry(seen, &i->fresh->fresh.entry)) {
		a->report.already++;
		return 1;
	}
	if (old_path && strcmp(old_path, path) == 0) {
		if (is_entry(seen, &i->old->old.entry))
			return 0;
		conflict(a, path, seen->mode ? "it has changed here too" : "it is gone here");
		return 1;
	}
	if (seen->mode == 0)
		return 0;
	if (S_ISDIR(seen->mode))
		return check_folder(a, path, err);
	conflict(a, path, "it is here already, and is another one");
	return 1;
}

static int do_remove(struct apply *a, const struct sba_change_item *i, bool *ret_done,
		     struct sba_error *err)
{
	struct sba_edit_seen seen;
	const char *path = i->old->path;
	*ret_done = false;
	int rc = look(a, path, i, &seen, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (seen.mode == 0 || (S_ISDIR(seen.mode) && has_come(a, path)))
		return 0;
	if (!is_entry(&seen, &i->old->old.entry)) {
		conflict(a, path, "it has changed here too");
		return 0;
	}
	*ret_done = true;
	return sba_edit_remove(a->edit, path, err);
}

static int do_mode(struct apply *a, const struct sba_change_item *i, struct sba_error *err)
{
	struct sba_edit_seen seen;
	int rc = look(a, i->told.path, i, &seen, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!is_entry(&seen, &i->fresh->fresh.entry)) {
		conflict(a, i->told.path,
			 seen.mode ? "it has changed here too" : "it is gone here");
		return 0;
	}
	if (((seen.mode ^ i->told.mode) & 0777) == 0) {
		a->report.already++;
		return 0;
	}
	a->report.modes++;
	return sba_edit_mode(a->edit, i->told.path, i->told.mode, err);
}

static int do_write(struct apply *a, const struct sba_change_item *i, struct sba_error *err)
{
	struct sba_edit_seen seen;
	int rc = check_fresh(a, i, i->old ? i->old->path : NULL, &seen, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	a->report.renamed += i->told.kind == SBA_CHANGE_RENAMED;
	a->report.written += i->told.kind != SBA_CHANGE_RENAMED;
	return write_fresh(a, i, &seen, err);
}

static int do_change(struct apply *a, const struct sba_change_item *i, struct sba_error *err)
{
	bool removed = false;
	int rc = 0;
	a->is_conflict = false;
	switch (i->told.kind) {
	case SBA_CHANGE_CREATED:
	case SBA_CHANGE_MODIFIED:
		return do_write(a, i, err);
	case SBA_CHANGE_MODE:
		return do_mode(a, i, err);
	case SBA_CHANGE_DELETED:
		rc = do_remove(a, i, &removed, err);
		a->report.removed += removed;
		a->report.already += rc == 0 && !removed && !a->is_conflict;
		return rc;
	case SBA_CHANGE_RENAMED:
		rc = do_remove(a, i, &removed, err);
		if (rc == 0 && !a->is_conflict)
			rc = do_write(a, i, err);
		return rc;
	}
	return rc;
}

/* ---- all of them ---- */

static int do_all(struct apply *a, struct sba_error *err)
{
	struct sba_changes *c = a->changes;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < c->n; i++)
		rc = do_change(a, &c->v[i], err);
	if (rc == 0 && a->report.conflicts)
		return sba_fail(err, SBA_ECONFLICT,
				"%llu of %zu changes do not fit; nothing was changed",
				(unsigned long long)a->report.conflicts, c->n);
	if (rc == 0 && !(a->options && a->options->check))
		rc = sba_edit_commit(a->edit, err);
	return rc;
}

int sba_changes_apply(struct sba_changes *c, const char *dir,
		      const struct sba_apply_options *options, struct sba_apply_report *ret_report,
		      struct sba_error *err)
{
	struct apply a = { .changes = c, .options = options };
	int rc = list_removed(&a, err);
	if (rc == 0)
		rc = sba_edit_open(dir, &a.edit, err);
	if (rc == 0)
		rc = do_all(&a, err);
	sba_edit_close(a.edit);
	free(a.removed);
	if (ret_report && (rc == 0 || rc == SBA_ECONFLICT))
		*ret_report = a.report;
	return rc < 0 ? sba_wrap(err, rc, "apply to '%s'", dir) : 0;
}
