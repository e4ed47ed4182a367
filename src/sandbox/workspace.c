/* SPDX-License-Identifier: MIT */
/*
 * A project folder copied in. What belongs to a git work tree is git's to
 * say, so git is asked; its own folder goes along without what is the host's
 * business: hooks, credentials, configuration other than identity and the
 * names of remotes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/borrowed.h"
#include "sandbox/files.h"
#include "sandbox/git.h"
#include "sandbox/states.h"

enum { GIT_MS = 60 * 1000, GIT_PACK_MS = 10 * 60 * 1000 };

/* A project on its way. */
struct project {
	const char *dir;
	struct sba_strv files; /* of git */
	bool tracked;
	struct sba_until until, pack_until;
	struct sba_strv packed; /* temporary folders, of objects that were borrowed */
};

/* ---- the .git folder ---- */

/* Host's business, or of no use elsewhere. */
static bool stays_here(const char *name)
{
	static const char *const names[] = {
		"config",    "config.worktree", "credentials",          "hooks",
		"worktrees", "modules",         "fsmonitor--daemon.ipc"
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return sba_ends_with(name, ".lock");
}

/* Where a work tree's history is. A linked work tree has a HEAD and an index of
 * its own beside what it shares with the others. */
struct repository {
	struct sba_buf own, common;
	bool found; /* the folder is the top of its work tree */
};

/* The files below `relative` of a repository's folder; depth bounds a hostile tree. */
static int list_git(const char *root, const char *relative, int depth, struct sba_strv *ret,
		    struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	sba_buf_printf(&path, "%s/%s", root, relative);
	int rc = sba_buf_check(&path, "path", err);
	if (rc < 0)
		return rc;
	DIR *d = opendir(path.data);
	if (!d)
		return sba_fail_errno(err, SBA_EIO, errno, "%s", path.data);
	const struct dirent *entry;
	while (rc == 0 && (entry = readdir(d))) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    (depth == 0 && stays_here(name)))
			continue;
		SBA_BUF struct sba_buf child = SBA_BUF_INIT(SBA_LAND_PATH_MAX);
		sba_buf_printf(&child, "%s%s%s", relative, *relative ? "/" : "", name);
		rc = sba_buf_check(&child, "path", err);
		bool is_dir = entry->d_type == DT_DIR, is_file = entry->d_type == DT_REG;
		struct stat st;
		/* Not every file system tells with the name. */
		if (entry->d_type == DT_UNKNOWN &&
		    fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			is_dir = S_ISDIR(st.st_mode);
			is_file = S_ISREG(st.st_mode);
		}
		if (rc == 0 && is_dir && depth < SBA_LAND_DEPTH_MAX)
			rc = list_git(root, child.data, depth + 1, ret, err);
		else if (rc == 0 && is_file)
			rc = sba_strv_add(ret, child.data, err);
	}
	closedir(d);
	return rc;
}

/* ---- packing ---- */

/* Three lines: the own folder, the common one, the top of the work tree. */
static int find_repository(const char *dir, struct sba_until until, struct repository *ret,
			   struct sba_error *err)
{
	static const char *const ask[] = { "rev-parse",       "--path-format=absolute",
					   "--git-dir",       "--git-common-dir",
					   "--show-toplevel", NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(2 * SBA_RUN_IO_CHUNK);
	SBA_FREE char *real = realpath(dir, NULL);
	int rc = sba_git_run(dir, ask, until, &answer, err);
	if (rc != 0 || !answer.data || !real)
		return rc < 0 ? rc : 0;
	char *rest = answer.data;
	const char *own = strsep(&rest, "\n"), *common = strsep(&rest, "\n");
	const char *top = strsep(&rest, "\n");
	if (!top || strcmp(top, real) != 0)
		return 0;
	sba_buf_puts(&ret->own, own);
	sba_buf_puts(&ret->common, common);
	rc = sba_buf_check(&ret->own, "path", err);
	if (rc == 0)
		rc = sba_buf_check(&ret->common, "path", err);
	ret->found = rc == 0;
	return rc;
}

/* One file of the own folder over what the common one has. */
static int pack_own(struct sba_pack *pack, const char *name, const struct repository *r,
		    const char *file, struct sba_error *err)
{
	SBA_BUF struct sba_buf from = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	SBA_BUF struct sba_buf to = SBA_BUF_INIT(2 * SBA_INSIDE_PATH_MAX);
	sba_buf_printf(&from, "%s/%s", r->own.data, file);
	sba_buf_printf(&to, "%s%s.git/%s", name, *name ? "/" : "", file);
	int rc = sba_buf_check(&from, "path", err);
	if (rc == 0)
		rc = sba_buf_check(&to, "path", err);
	if (rc == 0 && access(from.data, F_OK) == 0)
		rc = sba_pack_path(pack, to.data, from.data, err);
	return rc;
}

/* What comes from elsewhere: its own folder, or the pack of all objects. */
static bool comes_otherwise(const char *name, bool borrows)
{
	return strcmp(name, "HEAD") == 0 || strcmp(name, "index") == 0 ||
	       (borrows && sba_starts_with(name, "objects/"));
}

/* The objects that it shares with others, and its own with them. */
static int pack_borrowed(struct sba_pack *pack, const char *dir, const char *name,
			 struct project *p, struct sba_error *err)
{
	char folder[SBA_BORROWED_PATH];
	SBA_BUF struct sba_buf to = SBA_BUF_INIT(2 * SBA_INSIDE_PATH_MAX);
	sba_buf_printf(&to, "%s%s.git/objects", name, *name ? "/" : "");
	int rc = sba_buf_check(&to, "path", err);
	if (rc == 0)
		rc = sba_borrowed_pack(dir, p->pack_until, folder, err);
	if (rc < 0)
		return rc;
	rc = sba_strv_add(&p->packed, folder, err);
	if (rc < 0)
		sba_borrowed_remove(folder);
	return rc < 0 ? rc : sba_pack_path(pack, to.data, folder, err);
}

static int pack_history(struct sba_pack *pack, const char *name, const struct repository *r,
			bool borrows, struct sba_error *err)
{
	SBA_STRV struct sba_strv listed = { 0 }, files = { 0 };
	SBA_BUF struct sba_buf to = SBA_BUF_INIT(2 * SBA_INSIDE_PATH_MAX);
	sba_buf_printf(&to, "%s%s.git", name, *name ? "/" : "");
	int rc = sba_buf_check(&to, "path", err);
	if (rc == 0)
		rc = list_git(r->common.data, "", 0, &listed, err);
	for (size_t i = 0; rc == 0 && i < listed.n; i++) {
		if (!comes_otherwise(listed.v[i], borrows))
			rc = sba_strv_add(&files, listed.v[i], err);
	}
	if (rc == 0 && files.n > 0)
		rc = sba_pack_paths(pack, to.data, r->common.data, (const char *const *)files.v,
				    err);
	if (rc == 0)
		rc = pack_own(pack, name, r, "HEAD", err);
	return rc < 0 ? rc : pack_own(pack, name, r, "index", err);
}

/* Without these, empty or not, git does not take it for a repository. */
static int pack_git_folders(struct sba_pack *pack, const char *name, struct sba_error *err)
{
	static const char *const folders[] = { "", "/refs", "/refs/heads", "/refs/tags",
					       "/objects" };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(folders); i++) {
		SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_INSIDE_PATH_MAX);
		sba_buf_printf(&path, "%s%s.git%s", name, *name ? "/" : "", folders[i]);
		rc = sba_buf_check(&path, "path", err);
		if (rc == 0)
			rc = sba_pack_dir(pack, path.data, 0755, err);
	}
	return rc;
}

static int pack_git_config(struct sba_pack *pack, const char *dir, const char *name,
			   struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf config = SBA_BUF_INIT(64 * SBA_KIB);
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_INSIDE_PATH_MAX);
	sba_buf_printf(&path, "%s%s.git/config", name, *name ? "/" : "");
	int rc = sba_buf_check(&path, "path", err);
	if (rc == 0)
		rc = sba_git_config_make(dir, until, &config, err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, path.data, config.data, config.len, 0644, err);
	return rc;
}

static int pack_repository(struct sba_pack *pack, const char *dir, const char *name,
			   struct project *p, struct sba_error *err)
{
	struct repository r = { SBA_BUF_INIT(SBA_LAND_PATH_MAX), SBA_BUF_INIT(SBA_LAND_PATH_MAX),
				false };
	int rc = find_repository(dir, p->until, &r, err);
	bool borrows = rc == 0 && r.found && sba_git_borrows(r.common.data);
	if (rc == 0 && r.found)
		rc = pack_git_folders(pack, name, err);
	if (rc == 0 && r.found)
		rc = pack_history(pack, name, &r, borrows, err);
	if (rc == 0 && borrows)
		rc = pack_borrowed(pack, dir, name, p, err);
	if (rc == 0 && r.found)
		rc = pack_git_config(pack, dir, name, p->until, err);
	sba_buf_fini(&r.own);
	sba_buf_fini(&r.common);
	return rc;
}

/* ---- submodules, and other repositories within ---- */

/* Adds the folder, once, if a repository begins there. */
static int add_nested(const char *dir, const char *folder, size_t len, struct sba_strv *ret,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf git = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	struct stat st;
	sba_buf_printf(&git, "%s/%.*s/.git", dir, (int)len, folder);
	int rc = sba_buf_check(&git, "path", err);
	if (rc < 0 || lstat(git.data, &st) < 0)
		return rc;
	for (size_t i = 0; i < ret->n; i++) {
		if (strncmp(ret->v[i], folder, len) == 0 && !ret->v[i][len])
			return 0;
	}
	return sba_strv_addf(ret, err, "%.*s", (int)len, folder);
}

/* Files come sorted, so a folder is looked at when the first one in it comes. */
static int find_nested(const char *dir, const struct sba_strv *files, struct sba_strv *ret,
		       struct sba_error *err)
{
	const char *before = "";
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < files->n; i++) {
		const char *file = files->v[i];
		size_t same = 0;
		while (before[same] && before[same] == file[same])
			same++;
		for (const char *c = strchr(file, '/'); rc == 0 && c; c = strchr(c + 1, '/')) {
			if ((size_t)(c - file) >= same)
				rc = add_nested(dir, file, (size_t)(c - file), ret, err);
		}
		before = file;
	}
	return rc;
}

/* Each with a history of its own: on the host a submodule's lies in its parent's. */
static int pack_nested(struct sba_pack *pack, struct project *p, struct sba_error *err)
{
	SBA_STRV struct sba_strv nested = { 0 };
	int rc = find_nested(p->dir, &p->files, &nested, err);
	for (size_t i = 0; rc == 0 && i < nested.n; i++) {
		SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
		sba_buf_printf(&path, "%s/%s", p->dir, nested.v[i]);
		rc = sba_buf_check(&path, "path", err);
		if (rc == 0)
			rc = pack_repository(pack, path.data, nested.v[i], p, err);
	}
	return rc;
}

static int pack_tree(struct sba_pack *pack, struct project *p, struct sba_error *err)
{
	const char *const *files = (const char *const *)p->files.v;
	int rc = p->files.n > 0 ? sba_pack_paths(pack, "", p->dir, files, err) : 0;
	if (rc == 0)
		rc = pack_repository(pack, p->dir, "", p, err);
	return rc < 0 ? rc : pack_nested(pack, p, err);
}

static int fill(void *user, struct sba_pack *pack, struct sba_error *err)
{
	struct project *p = user;
	return p->tracked ? pack_tree(pack, p, err) : sba_pack_path(pack, "", p->dir, err);
}

static int send_project(struct sba_sandbox *s, struct project *p, const char *inside,
			const struct sba_transfer_options *o,
			struct sba_transfer_report *ret_report, struct sba_error *err)
{
	const struct sba_cargo cargo = { .fill = fill, .user = p };
	int rc = sba_git_files(p->dir, p->until, &p->files, err);
	if (rc < 0)
		return rc;
	p->tracked = rc > 0;
	return sba_send(s, inside, &cargo, o, ret_report, err);
}

/* Where there are no tools to look with, no changes are told. */
static int keep_here(struct sba_sandbox *s, const char *inside, struct sba_error *err)
{
	struct sba_error why = { 0 };
	int rc = sba_states_keep(s, inside, 0, &why);
	if (rc == SBA_EUNSUPPORTED)
		return 0;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* As it came in: what changes from now on is told against it. A second one adds to
 * the first, as a change. */
static int keep(struct sba_sandbox *s, const struct project *p, const char *inside,
		struct sba_error *err)
{
	struct sba_kept k = { 0 };
	struct sba_records r;
	if (!sba_kept_is_inside(s))
		return keep_here(s, inside, err);
	int rc = sba_kept_load(s, &k, err);
	if (rc == SBA_EUNSUPPORTED || (rc == 0 && *k.folder)) {
		sba_kept_fini(&k);
		return 0;
	}
	if (rc < 0)
		return rc;
	k.gitignore = p->tracked;
	snprintf(k.folder, sizeof(k.folder), "%s", inside);
	rc = sba_kept_look(s, &k, 0, &r, err);
	if (rc == 0) {
		rc = sba_kept_save(s, &k, 0, SBA_KEPT_END, &r, err);
		sba_records_fini(&r);
	}
	sba_kept_fini(&k);
	return rc;
}

int sba_sandbox_add_workspace(struct sba_sandbox *s, const char *host_dir, const char *path,
			      const struct sba_transfer_options *o,
			      struct sba_transfer_report *ret_report, struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	struct stat st;
	int rc = sba_sandbox_need(s, SBA_CAN_TREES, err);
	if (rc < 0)
		return rc;
	if (stat(host_dir, &st) < 0)
		return sba_fail_errno(err, SBA_ENOTFOUND, errno, "workspace '%s'", host_dir);
	if (!S_ISDIR(st.st_mode))
		return sba_fail(err, SBA_EINVAL, "workspace '%s': not a directory", host_dir);
	struct project p = { .dir = host_dir,
			     .until = sba_sandbox_until(s, GIT_MS),
			     .pack_until = sba_sandbox_until(s, GIT_PACK_MS) };
	rc = sba_inside_path(path ? path : sba_sandbox_workdir(s), inside, err);
	if (rc == 0 && strcmp(inside, "/") == 0)
		rc = sba_fail(err, SBA_EREFUSED, "a workspace does not replace the sandbox's root");
	if (rc == 0)
		rc = send_project(s, &p, inside, o, ret_report, err);
	if (rc == 0)
		rc = keep(s, &p, inside, err);
	for (size_t i = 0; i < p.packed.n; i++)
		sba_borrowed_remove(p.packed.v[i]);
	sba_strv_fini(&p.packed);
	sba_strv_fini(&p.files);
	return rc < 0 ? sba_wrap(err, rc, "copy workspace '%s'", host_dir) : 0;
}
