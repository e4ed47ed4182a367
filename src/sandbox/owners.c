/* SPDX-License-Identifier: MIT */
/*
 * Who owns what in a sandbox whose engine does not say so in its archives. The guest
 * tells it, and what it says is the sandbox's word.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "sandbox/image_changes.h"

void sba_owners_fini(struct sba_owners *o)
{
	sba_buf_fini(&o->said);
	free(o->v);
	*o = (struct sba_owners){ 0 };
}

/* ---- what was said ---- */

static int no_line(struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "the guest's word about an owner cannot be read");
}

static bool read_id(const char *text, uint32_t *ret)
{
	int64_t id;
	if (sba_parse_int(text, 0, UINT32_MAX - 1, &id) < 0)
		return false;
	*ret = (uint32_t)id;
	return true;
}

/* "UID:GID PATH", which is cut into its parts. */
static bool read_line(char *line, struct sba_owner *ret)
{
	char *gid = strchr(line, ':'), *path = gid ? strchr(gid, ' ') : NULL;
	if (!path || path[1] != '/')
		return false;
	*gid++ = *path++ = '\0';
	ret->path = path;
	return read_id(line, &ret->uid) && read_id(gid, &ret->gid);
}

/* What was said first comes first. */
static int by_path(const void *a, const void *b)
{
	const struct sba_owner *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order ? order : (x->path > y->path) - (x->path < y->path);
}

static int read_lines(struct sba_owners *o, size_t of_root, struct sba_error *err)
{
	char *text = o->said.data;
	size_t len = o->said.len, lines = 0;
	if (len > 0 && text[len - 1] != '\0')
		return no_line(err);
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\0';
	o->v = calloc(lines + 1, sizeof(*o->v));
	if (!o->v)
		return sba_fail_nomem(err);
	for (size_t at = 0, next; at < len; at = next) {
		struct sba_owner one;
		next = at + strlen(text + at) + 1;
		if (!read_line(text + at, &one))
			return no_line(err);
		/* The sandbox's user can speak through a guest that runs as it: what is
		 * root's, root has told. */
		if (at < of_root || (one.uid != 0 && one.gid != 0))
			o->v[o->n++] = one;
	}
	qsort(o->v, o->n, sizeof(*o->v), by_path);
	return 0;
}

int sba_owners_parse(const char *said, size_t len, size_t of_root, struct sba_owners *ret,
		     struct sba_error *err)
{
	*ret = (struct sba_owners){ .said = SBA_BUF_INIT(SBA_CHANGES_MAX) };
	sba_buf_put(&ret->said, said, len);
	int rc = sba_buf_check(&ret->said, "owners", err);
	if (rc == 0)
		rc = read_lines(ret, of_root, err);
	if (rc < 0)
		sba_owners_fini(ret);
	return rc;
}

int sba_owners_ask(struct sba_sandbox *s, const struct sba_strv *paths, struct sba_owners *ret,
		   struct sba_error *err)
{
	SBA_BUF struct sba_buf asked = SBA_BUF_INIT(SBA_CHANGES_MAX);
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(SBA_CHANGES_MAX);
	size_t of_root = 0;
	int rc = sba_guest_paths_put(&asked, paths, err);
	if (rc == 0 && asked.len > 0)
		rc = sba_guest_paths(s, "owners", "0:0", &asked, &said, err);
	of_root = said.len;
	if (rc == 0 && asked.len > 0)
		rc = sba_guest_paths(s, "owners", NULL, &asked, &said, err);
	if (rc == 0)
		rc = sba_owners_parse(said.data ? said.data : "", said.len, of_root, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "look who owns the files") : 0;
}

/* ---- asked for ---- */

/* The first of those that are called so; NULL: there is none. `path` has no '/' in front. */
static const struct sba_owner *find(const struct sba_owners *o, const char *path, size_t len)
{
	size_t low = 0, high = o->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *there = o->v[mid].path + 1;
		int order = strncmp(there, path, len);
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	const char *there = low < o->n ? o->v[low].path + 1 : NULL;
	return there && strncmp(there, path, len) == 0 && !there[len] ? &o->v[low] : NULL;
}

void sba_owners_tell(void *owners, const char *name, uint32_t *uid, uint32_t *gid)
{
	const struct sba_owners *o = owners;
	const struct sba_owner *found = NULL;
	for (size_t len = strlen(name); len > 0 && !found;) {
		found = find(o, name, len);
		while (len > 0 && name[len - 1] != '/')
			len--;
		len -= len > 0;
	}
	if (found) {
		*uid = found->uid;
		*gid = found->gid;
	}
}
