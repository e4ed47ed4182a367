/* SPDX-License-Identifier: MIT */
/*
 * The engine's list of changes, made into a plan. The list names parents too,
 * and every file of a folder that is new; the plan names the folder.
 */
#include "sandbox/image_changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "channel/protocol.h"

/* GET /containers/ID/changes, "Kind". */
enum change_kind { MODIFIED, ADDED, DELETED, KINDS };

struct change {
	const char *path; /* lent by the list */
	enum change_kind kind;
};

void sba_image_changes_fini(struct sba_image_changes *c)
{
	sba_strv_fini(&c->fetch);
	sba_strv_fini(&c->folders);
	sba_strv_fini(&c->modified);
	sba_strv_fini(&c->deleted);
}

static bool beneath(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* The engine writes some files of its own into every container; ours are placed
 * anew in each. */
static bool is_of_nobody(const char *path)
{
	static const char *const own[] = { SBA_GUEST_DIR,
					   SBA_STATE_DIR,
					   "/proc",
					   "/sys",
					   "/dev",
					   "/etc/hosts",
					   "/etc/resolv.conf",
					   "/etc/mtab",
					   "/etc/hostname",
					   "/.dockerenv",
					   "/run/.containerenv" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(own); i++) {
		if (beneath(path, own[i]))
			return true;
	}
	return false;
}

/* A folder comes right before what is in it, whatever else its name is the
 * beginning of. */
static int compare(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct change *)a)->path;
	const unsigned char *y = (const unsigned char *)((const struct change *)b)->path;
	while (*x && *x == *y) {
		x++;
		y++;
	}
	int l = *x == '/' ? 1 : *x ? *x + 1 : 0, r = *y == '/' ? 1 : *y ? *y + 1 : 0;
	return l - r;
}

static bool is_mounted(const char *path, const char *const *mounted)
{
	for (; mounted && *mounted; mounted++) {
		if (beneath(path, *mounted))
			return true;
	}
	return false;
}

static bool holds_mount(const char *path, const char *const *mounted)
{
	for (; mounted && *mounted; mounted++) {
		if (beneath(*mounted, path))
			return true;
	}
	return false;
}

static int collect(const json_t *list, const char *const *mounted, struct change **ret,
		   size_t *ret_n, struct sba_error *err)
{
	size_t i, n = 0;
	const json_t *item;
	struct change *v = calloc(json_array_size(list) + 1, sizeof(*v));
	if (!v)
		return sba_fail_nomem(err);
	json_array_foreach(list, i, item)
	{
		const char *path = sba_json_str(item, "Path");
		int64_t kind = sba_json_int(item, "Kind", -1);
		if (!path || path[0] != '/' || kind < 0 || kind >= KINDS) {
			free(v);
			return sba_fail(err, SBA_EPROTO, "the engine's list of changes: entry %zu",
					i);
		}
		if (path[1] && !is_of_nobody(path) && !is_mounted(path, mounted))
			v[n++] = (struct change){ path, (enum change_kind)kind };
	}
	qsort(v, n, sizeof(*v), compare);
	*ret = v;
	*ret_n = n;
	return 0;
}

int sba_image_changes_parse(const json_t *list, const char *const *mounted,
			    struct sba_image_changes *ret, struct sba_error *err)
{
	SBA_FREE struct change *v = NULL;
	struct sba_image_changes c = { 0 };
	size_t n = 0;
	const char *added = NULL;
	int rc = json_is_null(list) ? 0 : collect(list, mounted, &v, &n, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct sba_strv *to = &c.deleted;
		if (added && beneath(v[i].path, added))
			continue;
		if (v[i].kind == ADDED && holds_mount(v[i].path, mounted)) {
			to = &c.folders;
		} else if (v[i].kind == ADDED) {
			added = v[i].path;
			to = &c.fetch;
		} else if (v[i].kind == MODIFIED) {
			bool folder = i + 1 < n && beneath(v[i + 1].path, v[i].path);
			to = folder ? &c.folders : &c.modified;
		}
		rc = sba_strv_add(to, v[i].path, err);
	}
	if (rc < 0) {
		sba_image_changes_fini(&c);
		return rc;
	}
	*ret = c;
	return 0;
}
