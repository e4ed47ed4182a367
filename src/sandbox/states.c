/* SPDX-License-Identifier: MIT */
/* States of a workspace, and what differs between two of them; see states.h. */
#include "sandbox/states.h"
#include "sandbox/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct state {
	bool is_there;
	int64_t turn;
	struct sba_records records; /* every file, as if it were new */
};

struct sba_states {
	char folder[SBA_INSIDE_PATH_MAX];
	bool gitignore;
	struct state first, last;
};

static void state_fini(struct state *state)
{
	if (state->is_there)
		sba_records_fini(&state->records);
	*state = (struct state){ 0 };
}

void sba_states_free(struct sba_states *states)
{
	if (!states)
		return;
	state_fini(&states->first);
	state_fini(&states->last);
	free(states);
}

/* ---- looking ---- */

/* As git does with its own work trees, where somebody reads .gitignore files. */
static bool is_repository(struct sba_sandbox *s, const char *folder)
{
	char git[SBA_INSIDE_PATH_MAX];
	struct sba_file_stat stat;
	return sba_inside_join(git, folder, ".git", NULL) == 0 &&
	       sba_sandbox_stat(s, git, &stat, NULL) == 0;
}

static void unhex(const char *hex, unsigned char *ret)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < SBA_SHA256_SIZE; i++)
		ret[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 |
					 (strchr(digits, hex[2 * i + 1]) - digits));
}

/* As the guest would tell of it as new. */
static int add_file(struct sba_records *to, const struct sba_snapshot_file *f,
		    struct sba_error *err)
{
	struct sba_record one = {
		.kind = SBA_RECORD_ADDED,
		.path = f->path,
		.fresh = { .entry = { .mode = f->mode,
				      .size = f->size,
				      .mtime_ns = f->mtime_ns,
				      .flags = *f->sha256 ? SBA_ENTRY_HASHED : 0,
				      .link = f->link },
			   .why = SBA_CONTENT_NOT_ASKED },
	};
	if (*f->sha256)
		unhex(f->sha256, one.fresh.entry.sha);
	return sba_records_add(to, &one, err);
}

static int add_all(const struct sba_snapshot *n, struct sba_records *to, struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sba_snapshot_count(n); i++)
		rc = add_file(to, sba_snapshot_at(n, i), err);
	for (size_t i = 0; rc == 0 && i < sba_snapshot_left_out(n); i++) {
		const struct sba_record one = { .kind = SBA_RECORD_LEFT_OUT,
						.path = sba_snapshot_left_out_at(n, i),
						.left_out = SBA_LEFT_UNREADABLE };
		rc = sba_records_add(to, &one, err);
	}
	return rc == 0 ? sba_records_end(to, err) : rc;
}

static int look(struct sba_sandbox *s, const char *folder, bool gitignore, struct sba_records *ret,
		struct sba_error *err)
{
	struct sba_snapshot_options o = { .folder = folder, .gitignore = gitignore };
	struct sba_snapshot *n = NULL;
	struct sba_error why = { 0 };
	int rc = sba_sandbox_snapshot(s, &o, &n, &why);
	if (rc == SBA_EUNSUPPORTED && gitignore) {
		o.gitignore = false;
		rc = sba_sandbox_snapshot(s, &o, &n, &why);
	}
	sba_records_init(ret);
	if (rc == 0)
		rc = add_all(n, ret, &why);
	sba_snapshot_free(n);
	if (rc < 0)
		sba_records_fini(ret);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

static struct sba_states *states_new(struct sba_sandbox *s, const char *folder)
{
	struct sba_states *states = calloc(1, sizeof(*states));
	if (!states)
		return NULL;
	snprintf(states->folder, sizeof(states->folder), "%s", folder);
	states->gitignore = is_repository(s, folder);
	return states;
}

/* Once they are there, they stay. */
static struct sba_states *states_get(struct sba_sandbox *s)
{
	pthread_mutex_lock(&s->lock);
	struct sba_states *states = s->states;
	pthread_mutex_unlock(&s->lock);
	return states;
}

static int keep(struct sba_sandbox *s, struct sba_states *states, int64_t turn,
		struct sba_error *err)
{
	struct state fresh = { .is_there = true, .turn = turn };
	int rc = look(s, states->folder, states->gitignore, &fresh.records, err);
	if (rc < 0)
		return rc;
	rc = sba_contents_fetch(s, states->folder, sba_transfer_until(s, 0), &fresh.records, err);
	if (rc < 0) {
		state_fini(&fresh);
		return rc;
	}
	pthread_mutex_lock(&s->lock);
	struct state *to = states->first.is_there ? &states->last : &states->first;
	state_fini(to);
	*to = fresh;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* The first one that comes stays. */
static struct sba_states *states_put(struct sba_sandbox *s, struct sba_states *take_fresh)
{
	pthread_mutex_lock(&s->lock);
	struct sba_states *there = s->states;
	if (!there)
		s->states = take_fresh;
	pthread_mutex_unlock(&s->lock);
	if (there)
		sba_states_free(take_fresh);
	return there ? there : take_fresh;
}

int sba_states_keep(struct sba_sandbox *s, const char *folder, int64_t turn, struct sba_error *err)
{
	struct sba_states *states = states_get(s);
	if (!states) {
		states = states_new(s, folder);
		if (!states)
			return sba_fail_nomem(err);
		states = states_put(s, states);
	}
	return keep(s, states, turn, err);
}

/* ---- comparing ---- */

static bool same_content(const struct sba_file_entry *a, const struct sba_file_entry *b)
{
	if (a->link || b->link)
		return a->link && b->link && strcmp(a->link, b->link) == 0;
	if (a->flags & b->flags & SBA_ENTRY_HASHED)
		return a->size == b->size && memcmp(a->sha, b->sha, sizeof(a->sha)) == 0;
	return !((a->flags | b->flags) & SBA_ENTRY_HASHED) && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns;
}

static struct sba_record_side side_of(const struct sba_record *r)
{
	struct sba_record_side side = r->fresh;
	if (side.entry.link)
		side.why = SBA_CONTENT_LINK;
	return side;
}

/* What cannot be looked at now is not known to be gone. */
static bool is_below_left_out(const struct sba_records *is, const char *path)
{
	for (size_t i = 0; i < is->n; i++) {
		size_t len = strlen(is->v[i].path);
		if (is->v[i].kind == SBA_RECORD_LEFT_OUT &&
		    (len == 0 || (strncmp(is->v[i].path, path, len) == 0 &&
				  (path[len] == '/' || path[len] == '\0'))))
			return true;
	}
	return false;
}

static int add_gone(struct sba_records *ret, const struct sba_record *was,
		    const struct sba_records *is, struct sba_error *err)
{
	const struct sba_record one = { .kind = SBA_RECORD_DELETED,
					.path = was->path,
					.old = side_of(was) };
	return is_below_left_out(is, was->path) ? 0 : sba_records_add(ret, &one, err);
}

static int add_both(struct sba_records *ret, const struct sba_record *was,
		    const struct sba_record *is, struct sba_error *err)
{
	struct sba_record one = { .kind = SBA_RECORD_MODIFIED,
				  .path = is->path,
				  .old = side_of(was),
				  .fresh = side_of(is) };
	if (same_content(&was->fresh.entry, &is->fresh.entry)) {
		if (was->fresh.entry.mode == is->fresh.entry.mode)
			return 0;
		one.old.why = one.fresh.why = SBA_CONTENT_SAME;
	}
	return sba_records_add(ret, &one, err);
}

static int add_fresh(struct sba_records *ret, const struct sba_record *is, struct sba_error *err)
{
	struct sba_record one = *is;
	one.fresh = side_of(is);
	return sba_records_add(ret, &one, err);
}

/* Both are by path. */
static int compare(const struct sba_records *was, const struct sba_records *is,
		   struct sba_records *ret, struct sba_error *err)
{
	size_t i = 0, k = 0;
	int rc = 0;
	while (rc == 0 && (i < was->n || k < is->n)) {
		const struct sba_record *a = i < was->n ? &was->v[i] : NULL;
		const struct sba_record *b = k < is->n ? &is->v[k] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
		bool has_old = a && order <= 0 && a->kind != SBA_RECORD_LEFT_OUT;
		i += order <= 0;
		k += order >= 0;
		if (b && has_old && order == 0 && b->kind != SBA_RECORD_LEFT_OUT)
			rc = add_both(ret, a, b, err);
		else if (b && order >= 0)
			rc = add_fresh(ret, b, err);
		else if (has_old)
			rc = add_gone(ret, a, is, err);
	}
	return rc;
}

/* The contents of what was stay in the state's file. */
static int share_contents(const struct sba_records *was, struct sba_records *ret,
			  struct sba_error *err)
{
	if (was->fresh_fd < 0)
		return 0;
	ret->old_fd = fcntl(was->fresh_fd, F_DUPFD_CLOEXEC, 0);
	ret->old_len = was->fresh_len;
	return ret->old_fd < 0 ? sba_fail_errno(err, SBA_EIO, errno, "share a temporary file") : 0;
}

/* NULL: it is not kept. */
static const struct state *state_of(const struct sba_states *states, int64_t turn)
{
	if (!states || !states->first.is_there)
		return NULL;
	if (turn <= states->first.turn)
		return &states->first;
	if (states->last.is_there && turn == states->last.turn)
		return &states->last;
	return turn == 0 ? &states->first : NULL;
}

static int nothing_kept(const struct sba_sandbox *s, int64_t turn, struct sba_error *err)
{
	int rc = turn ? sba_fail(err, SBA_ENOTFOUND,
				 "sandbox '%s': nothing is kept of its workspace as turn %lld "
				 "began",
				 s->info.name, (long long)turn)
		      : sba_fail(err, SBA_ENOTFOUND,
				 "sandbox '%s': nothing is kept of its workspace as it was",
				 s->info.name);
	return sba_hint(err, rc,
			"where nothing inside is root's, a program knows what it was as its own "
			"first turn began, and its last");
}

static int differ(struct sba_sandbox *s, int64_t turn, const struct sba_records *is,
		  struct sba_records *ret, struct sba_error *err)
{
	pthread_mutex_lock(&s->lock);
	const struct state *was = state_of(s->states, turn);
	int rc = was ? share_contents(&was->records, ret, err) : nothing_kept(s, turn, err);
	if (rc == 0)
		rc = compare(&was->records, is, ret, err);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int sba_states_changes(struct sba_sandbox *s, int64_t turn, struct sba_changes **ret,
		       struct sba_error *err)
{
	const struct sba_states *states = states_get(s);
	struct sba_records is, changed;
	if (!states)
		return nothing_kept(s, turn, err);
	struct sba_kept about = { .gitignore = states->gitignore };
	snprintf(about.folder, sizeof(about.folder), "%s", states->folder);
	int rc = look(s, about.folder, about.gitignore, &is, err);
	if (rc < 0)
		return rc;
	sba_records_init(&changed);
	rc = differ(s, turn, &is, &changed, err);
	sba_records_fini(&is);
	if (rc == 0)
		rc = sba_contents_fetch(s, about.folder, sba_transfer_until(s, 0), &changed, err);
	if (rc < 0) {
		sba_records_fini(&changed);
		return rc;
	}
	return sba_changes_make(s, &about, &changed, ret, err);
}
