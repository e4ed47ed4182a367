/* SPDX-License-Identifier: MIT */
/*
 * Every file below a folder, with its hash: what a backend tells of it, checked, as it may
 * be the guest's word, a command's, or a table's of one's own.
 */
#include <sandbox-agent/changes.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/snapshot.h"

struct sba_snapshot {
	struct sba_snapshot_file *v; /* each one's strings are one piece of heap, its path's */
	size_t n, left_out, cap;     /* what is left out comes last */
	size_t bytes;                /* of strings */
	bool ordered;                /* by path so far */
};

/* ---- what is told ---- */

static bool is_sha256(const char *hex)
{
	return strlen(hex) == SBA_SHA256_HEX - 1 &&
	       strspn(hex, "0123456789abcdef") == SBA_SHA256_HEX - 1;
}

/* NULL: nothing. */
static const char *what_is_wrong(const struct sba_snapshot_file *f)
{
	bool is_link = S_ISLNK(f->mode);
	if (f->mode == 0)
		return NULL;
	if (!sba_record_path_ok(f->path, strlen(f->path)))
		return "an impossible path";
	if (!S_ISREG(f->mode) && !is_link)
		return "neither a file nor a link";
	if (is_link != (f->link != NULL) ||
	    (is_link && (!*f->link || strlen(f->link) > SBA_RECORD_LINK_MAX)))
		return "an impossible link";
	if (f->sha256 && *f->sha256 && (is_link || !is_sha256(f->sha256)))
		return "an impossible SHA-256";
	return f->size > INT64_MAX ? "an impossible size" : NULL;
}

static int make_room(struct sba_snapshot *n, struct sba_error *err)
{
	size_t all = n->n + n->left_out;
	if (all == SBA_CHANGED_FILES_MAX)
		return sba_fail(err, SBA_ELIMIT, "more than %d files", SBA_CHANGED_FILES_MAX);
	if (all < n->cap)
		return 0;
	size_t cap = n->cap ? 2 * n->cap : 64;
	struct sba_snapshot_file *grown = realloc(n->v, cap * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	n->v = grown;
	n->cap = cap;
	return 0;
}

static const char *put(char **at, const char *text)
{
	const char *copy = *at;
	size_t size = strlen(text) + 1;
	memcpy(*at, text, size);
	*at += size;
	return copy;
}

/* Strings of it in a piece of their own. */
static int copy(struct sba_snapshot *n, const struct sba_snapshot_file *f,
		struct sba_snapshot_file *ret, struct sba_error *err)
{
	const char *sha = f->sha256 && f->mode ? f->sha256 : "";
	size_t size = strlen(f->path) + strlen(sha) + (f->link ? strlen(f->link) : 0) + 3;
	n->bytes += size;
	if (n->bytes > SBA_CHANGED_BYTES_MAX)
		return sba_fail(err, SBA_ELIMIT, "the paths are more than %d MiB",
				SBA_CHANGED_BYTES_MAX / SBA_MIB);
	char *at = malloc(size);
	if (!at)
		return sba_fail_nomem(err);
	*ret = *f;
	ret->path = put(&at, f->path);
	ret->sha256 = put(&at, sha);
	ret->link = f->link ? put(&at, f->link) : NULL;
	return 0;
}

static int tell(void *user, const struct sba_snapshot_file *f, struct sba_error *err)
{
	struct sba_snapshot *n = user;
	struct sba_snapshot_file fresh;
	const char *wrong = what_is_wrong(f);
	if (wrong)
		return sba_fail(err, SBA_EPROTO, "it tells of %s", wrong);
	int rc = make_room(n, err);
	if (rc == 0)
		rc = copy(n, f, &fresh, err);
	if (rc < 0)
		return rc;
	size_t all = n->n + n->left_out;
	n->ordered &= n->left_out == 0 && fresh.mode &&
		      (all == 0 || strcmp(n->v[all - 1].path, fresh.path) < 0);
	n->v[all] = fresh;
	n->left_out += fresh.mode == 0;
	n->n += fresh.mode != 0;
	return 0;
}

/* ---- all of it ---- */

static int by_path(const void *a, const void *b)
{
	const struct sba_snapshot_file *x = a, *y = b;
	if ((x->mode == 0) != (y->mode == 0))
		return x->mode == 0 ? 1 : -1;
	return strcmp(x->path, y->path);
}

static int order(struct sba_snapshot *n, struct sba_error *err)
{
	if (n->ordered)
		return 0;
	qsort(n->v, n->n + n->left_out, sizeof(*n->v), by_path);
	for (size_t i = 1; i < n->n; i++) {
		if (strcmp(n->v[i - 1].path, n->v[i].path) == 0)
			return sba_fail(err, SBA_EPROTO, "it tells of a file twice");
	}
	return 0;
}

static int fill(struct sba_sandbox *s, const struct sba_snapshot_options *o, struct sba_snapshot *n,
		struct sba_error *err)
{
	char folder[SBA_INSIDE_PATH_MAX];
	const struct sba_backend *b = sba_backend_of(s);
	struct sba_snapshot_options asked = *o;
	int rc = o->folder ? sba_inside_path(o->folder, folder, err) : 0;
	if (rc < 0)
		return rc;
	asked.folder = o->folder ? folder : NULL;
	rc = sba_sandbox_check_path(s, o->folder ? folder : sba_sandbox_workdir(s), err);
	if (rc == 0)
		rc = (b->snapshot ? b->snapshot : sba_commands_snapshot)(s, &asked, tell, n, err);
	return rc == 0 ? order(n, err) : rc;
}

int sba_sandbox_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
			 struct sba_snapshot **ret, struct sba_error *err)
{
	const struct sba_snapshot_options none = { 0 };
	const struct sba_snapshot_options *o = options ? options : &none;
	struct sba_snapshot *n = calloc(1, sizeof(*n));
	if (!n)
		return sba_fail_nomem(err);
	n->ordered = true;
	int rc = fill(s, o, n, err);
	if (rc < 0) {
		sba_snapshot_free(n);
		return sba_wrap(err, rc, "sandbox '%s': files in %s", s->info.name,
				o->folder ? o->folder : sba_sandbox_workdir(s));
	}
	*ret = n;
	return 0;
}

size_t sba_snapshot_count(const struct sba_snapshot *n)
{
	return n->n;
}

const struct sba_snapshot_file *sba_snapshot_at(const struct sba_snapshot *n, size_t i)
{
	return i < n->n ? &n->v[i] : NULL;
}

size_t sba_snapshot_left_out(const struct sba_snapshot *n)
{
	return n->left_out;
}

const char *sba_snapshot_left_out_at(const struct sba_snapshot *n, size_t i)
{
	return i < n->left_out ? n->v[n->n + i].path : NULL;
}

void sba_snapshot_free(struct sba_snapshot *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n + n->left_out; i++)
		free((void *)(uintptr_t)n->v[i].path);
	free(n->v);
	free(n);
}
