/* SPDX-License-Identifier: MIT */
/*
 * Small files and folders by the engine's archive endpoint, as root: state that
 * the sandbox's user may not touch, and folders where he may make none.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "sandbox/files.h"

struct body_reader {
	struct sba_body *body;
	struct sba_until until;
};

static ssize_t read_body(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct body_reader *r = user;
	return sba_body_read(r->body, buf, size, r->until, err);
}

int sba_docker_read_small(struct sba_sandbox *s, const char *path, size_t max, struct sba_buf *ret,
			  struct sba_error *err)
{
	struct body_reader r = { .until = sba_small_until(s) };
	int rc = sba_sandbox_check_whole(s, err);
	if (rc == 0)
		rc = sba_container_get(s->engine, s->container, path, r.until, &r.body, err);
	if (rc < 0)
		return rc;
	rc = sba_tar_one_file(read_body, &r, max, ret, err);
	sba_body_close(r.body);
	return rc < 0 ? sba_wrap(err, rc, "read '%s'", path) : 0;
}

int sba_docker_write_files(struct sba_sandbox *s, const struct sba_small_file *files, size_t n,
			   struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = -1 };
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = sba_pack_bytes(pack, files[i].path + 1, files[i].data, files[i].len,
				    files[i].mode, err);
	if (rc == 0)
		rc = sba_container_put(s->engine, s->container, "/", sba_pack_read, pack,
				       sba_small_until(s), err);
	sba_pack_free(pack);
	return rc;
}

/* ---- folders ---- */

/* A path whose leaf is to be written: the deepest folder that exists, the
 * missing ones below it, the leaf. */
struct place {
	char parent[SBA_INSIDE_PATH_MAX];
	char missing[SBA_INSIDE_PATH_MAX]; /* "a/b" or "" */
	char leaf[256];
};

/* Engine 20.10 answers 500, without a word, for a path that leads through a
 * file; the search for what exists then meets that file. */
static bool may_be_missing(int stat_rc)
{
	return stat_rc == SBA_ENOTFOUND || stat_rc == SBA_EENGINE;
}

static int find_place(struct sba_sandbox *s, const char *path, struct place *ret,
		      struct sba_error *err)
{
	char parent[SBA_INSIDE_PATH_MAX];
	snprintf(parent, sizeof(parent), "%s", path);
	char *slash = strrchr(parent, '/');
	if (strlen(slash + 1) > SBA_LAND_NAME_MAX)
		return sba_fail(err, SBA_EINVAL, "name '%.40s…': longer than %d bytes", slash + 1,
				SBA_LAND_NAME_MAX);
	snprintf(ret->leaf, sizeof(ret->leaf), "%s", slash + 1);
	*slash = '\0';
	char missing[SBA_INSIDE_PATH_MAX] = "";
	for (;;) {
		struct sba_path_stat st;
		int rc = sba_inside_stat(s, *parent ? parent : "/", &st, err);
		if (rc == 0 && !S_ISDIR(st.mode) && !S_ISLNK(st.mode))
			return sba_fail(err, SBA_EEXIST, "'%s' is in the way: not a directory",
					parent);
		if (rc == 0)
			break;
		if (!may_be_missing(rc) || !*parent)
			return rc;
		slash = strrchr(parent, '/');
		char longer[SBA_INSIDE_PATH_MAX];
		int n = snprintf(longer, sizeof(longer), "%s%s%s", slash + 1, *missing ? "/" : "",
				 missing);
		if (n < 0 || (size_t)n >= sizeof(longer))
			return sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", path);
		memcpy(missing, longer, (size_t)n + 1);
		*slash = '\0';
	}
	snprintf(ret->parent, sizeof(ret->parent), "%s", *parent ? parent : "/");
	memcpy(ret->missing, missing, sizeof(missing));
	return 0;
}

/* Missing folders, outermost first, owned like the rest. */
static int pack_missing(struct sba_pack *pack, const char *missing, struct sba_error *err)
{
	char part[SBA_INSIDE_PATH_MAX];
	int rc = 0;
	for (size_t at = 0; *missing && rc == 0;) {
		at += strcspn(missing + at, "/");
		snprintf(part, sizeof(part), "%.*s", (int)at, missing);
		rc = sba_pack_dir(pack, part, 0755, err);
		if (!missing[at])
			break;
		at++;
	}
	return rc;
}

static int send_folders(struct sba_sandbox *s, const struct place *place, struct sba_error *err)
{
	struct sba_pack_options options = { .fixed_mtime = -1 };
	struct sba_pack *pack = NULL;
	int rc = sba_sandbox_owner(s, &options.uid, &options.gid, err);
	if (rc == 0)
		rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = pack_missing(pack, place->missing, err);
	if (rc == 0)
		rc = sba_container_put(s->engine, s->container, place->parent, sba_pack_read, pack,
				       sba_small_until(s), err);
	sba_pack_free(pack);
	return rc;
}

int sba_docker_make_dir(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	struct place place = { .parent = "" };
	char below[SBA_INSIDE_PATH_MAX];
	/* The place of something in it: what that misses is made. */
	int rc = sba_inside_join(below, path, ".", err);
	if (rc == 0)
		rc = find_place(s, below, &place, err);
	if (rc < 0 || !*place.missing)
		return rc;
	rc = send_folders(s, &place, err);
	return rc < 0 ? sba_wrap(err, rc, "make '%s'", path) : 0;
}
