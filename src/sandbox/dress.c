/* SPDX-License-Identifier: MIT */
/*
 * Folders that another than the sandbox's user has moved in place. Without
 * capabilities he can move only what he may write in, so they arrive writable for
 * his group, and get what they should have once they are there.
 */
#include <string.h>

#include "sandbox/files.h"

struct dir {
	uint32_t mode;
	int64_t mtime;
};

void sba_dress_note(struct sba_dress *d, const char *name, uint32_t mode, int64_t mtime)
{
	const struct dir dir = { mode, mtime };
	sba_buf_put(&d->dirs, &dir, sizeof(dir));
	sba_buf_put(&d->dirs, name, strlen(name) + 1);
}

/* The next one, its name lent; false after the last. */
static bool next(const struct sba_buf *dirs, size_t *at, struct dir *ret, const char **ret_name)
{
	if (*at >= dirs->len)
		return false;
	memcpy(ret, dirs->data + *at, sizeof(*ret));
	*ret_name = dirs->data + *at + sizeof(*ret);
	*at += sizeof(*ret) + strlen(*ret_name) + 1;
	return true;
}

static bool is_beneath(const char *name, const char *above)
{
	size_t len = strlen(above);
	return len > 0 && strncmp(name, above, len) == 0 && name[len] == '/';
}

int sba_dress_keep_new(struct sba_dress *d, struct sba_channel *c, const char *folder,
		       struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf all = d->dirs;
	char path[SBA_INSIDE_PATH_MAX];
	struct sba_channel_stat st;
	struct dir dir;
	const char *name, *missing = "";
	int rc = sba_buf_check(&all, "the folders that come", err);
	sba_buf_init(&d->dirs, all.max);
	for (size_t at = 0; rc == 0 && next(&all, &at, &dir, &name);) {
		if (!is_beneath(name, missing)) {
			rc = sba_inside_join(path, folder, name, err);
			if (rc == 0)
				rc = sba_channel_file_stat(c, path, false, until, &st, err);
			if (rc == 0)
				continue;
			missing = name;
		}
		if (rc == 0 || rc == SBA_ENOTFOUND) {
			sba_dress_note(d, name, dir.mode, dir.mtime);
			rc = 0;
		}
	}
	return rc < 0 ? rc : sba_buf_check(&d->dirs, "the folders that come", err);
}

int sba_dress_put(const struct sba_dress *d, struct sba_sandbox *s, const char *folder,
		  const struct sba_dress_owner *owner, struct sba_error *err)
{
	const struct sba_pack_options options = { .uid = owner->uid,
						  .gid = owner->gid,
						  .fixed_mtime = -1 };
	struct sba_pack *pack = NULL;
	struct dir dir;
	const char *name;
	if (d->dirs.len == 0)
		return 0;
	int rc = sba_pack_new(&options, &pack, err);
	for (size_t at = 0; rc == 0 && next(&d->dirs, &at, &dir, &name);)
		rc = sba_pack_dir_at(pack, name, dir.mode, dir.mtime, err);
	if (rc == 0)
		rc = sba_container_put(s->engine, s->container, folder, sba_pack_read, pack,
				       owner->until, err);
	sba_pack_free(pack);
	return rc < 0 ? sba_wrap(err, rc,
				 "all of it is in '%s', but its folders belong to their group too",
				 folder)
		      : 0;
}
