/* SPDX-License-Identifier: MIT */
/*
 * Changes to a folder of this host that happen together. What is new is made in a
 * temporary folder within it; the commit only renames, keeps what it replaces there, and
 * puts everything back when one step fails.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/private.h"

enum { STAGED_NAME = 32 };

enum step_kind { STEP_REMOVE, STEP_PUT, STEP_MODE };

/* What was there when it was looked at. */
struct identity {
	bool there;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct step {
	enum step_kind kind;
	char *path;
	mode_t mode;   /* to be; of STEP_MODE also what was, once it is done */
	size_t staged; /* of STEP_PUT: the number of what was made */
	struct identity was;
	bool exchanged; /* what was there is in its place among what was made */
	bool kept;      /* what was there is kept among what is old */
	bool put;       /* what was made is in place */
	bool gave_way;  /* a folder that was in its place is kept among what is gone */
	bool mode_set;
	mode_t mode_was;
};

struct sba_edit {
	int root_fd, stage_fd, file_fd;
	char stage[SBA_LAND_NAME_MAX + 1];
	struct sba_beneath beneath;
	struct step *v;
	size_t n, cap, staged;
	struct sba_strv made; /* folders, in the order in which they were made */
};

/* ---- open, close ---- */

int sba_edit_open(const char *dir, struct sba_edit **ret, struct sba_error *err)
{
	struct sba_edit *e = calloc(1, sizeof(*e));
	if (!e)
		return sba_fail_nomem(err);
	e->stage_fd = e->file_fd = -1;
	sba_beneath_init(&e->beneath, -1, false);
	e->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = e->root_fd < 0 ? sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO,
						 errno, "open the folder '%s'", dir)
				: sba_temp_name("apply", e->stage, err);
	if (rc == 0) {
		sba_temp_sweep(e->root_fd);
		e->stage_fd = sba_temp_directory(e->root_fd, e->stage);
		if (e->stage_fd < 0)
			rc = sba_fail_errno(err, SBA_EIO, -e->stage_fd,
					    "make a temporary folder in '%s'", dir);
	}
	sba_beneath_init(&e->beneath, e->root_fd, false);
	if (rc < 0) {
		sba_edit_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

void sba_edit_close(struct sba_edit *e)
{
	if (!e)
		return;
	sba_cleanup_close(&e->file_fd);
	if (e->stage_fd >= 0)
		sba_remove_tree(e->root_fd, e->stage);
	sba_cleanup_close(&e->stage_fd);
	sba_beneath_fini(&e->beneath);
	sba_cleanup_close(&e->root_fd);
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].path);
	free(e->v);
	sba_strv_fini(&e->made);
	free(e);
}

static int bad_path(const char *path, int e, struct sba_error *err)
{
	if (e == ELOOP)
		return sba_fail(err, SBA_EREFUSED, "'%s': a link is in the way", path);
	return sba_fail_errno(err, SBA_EIO, e, "'%s'", path);
}

static int check_path(const char *path, struct sba_error *err)
{
	return sba_path_components(path) > 0
		       ? 0
		       : sba_fail(err, SBA_EINVAL, "'%.200s' is no path beneath a folder", path);
}

/* ---- looking ---- */

/* Whether one of the folders above is a link and no folder. */
static bool has_link_above(struct sba_edit *e, const char *path)
{
	char part[SBA_LAND_PATH_MAX];
	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		const char *leaf;
		struct stat st;
		snprintf(part, sizeof(part), "%.*s", (int)(s - path), path);
		int dir_fd = sba_beneath_parent(&e->beneath, part, &leaf);
		if (dir_fd < 0 || fstatat(dir_fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		if (S_ISLNK(st.st_mode))
			return true;
	}
	return false;
}

/* The directory that holds it; nothing is there where that is missing: -ENOENT. */
static int look_at(struct sba_edit *e, const char *path, const char **leaf, struct stat *ret)
{
	int dir_fd = sba_beneath_parent(&e->beneath, path, leaf);
	if (dir_fd == -ENOTDIR)
		return has_link_above(e, path) ? -ELOOP : -ENOENT;
	if (dir_fd < 0)
		return dir_fd;
	return fstatat(dir_fd, *leaf, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : dir_fd;
}

static int read_seen(int dir_fd, const char *leaf, bool hash, struct sba_edit_seen *seen)
{
	if (S_ISLNK(seen->mode)) {
		ssize_t n = readlinkat(dir_fd, leaf, seen->link, sizeof(seen->link) - 1);
		if (n >= 0)
			seen->link[n] = '\0';
		return n < 0 ? -errno : 0;
	}
	if (!hash || !S_ISREG(seen->mode))
		return 0;
	SBA_CLOSE int fd = openat(dir_fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 || sba_sha256_file(fd, seen->sha256) < 0 ? -errno : 0;
}

int sba_edit_look(struct sba_edit *e, const char *path, bool hash, struct sba_edit_seen *ret,
		  struct sba_error *err)
{
	const char *leaf;
	struct stat st;
	int rc = check_path(path, err);
	if (rc < 0)
		return rc;
	*ret = (struct sba_edit_seen){ .mode = 0 };
	int dir_fd = look_at(e, path, &leaf, &st);
	if (dir_fd == -ENOENT)
		return 0;
	if (dir_fd < 0)
		return bad_path(path, -dir_fd, err);
	ret->mode = st.st_mode;
	ret->size = (uint64_t)st.st_size;
	ret->mtime_ns = sba_time_ns(st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	rc = read_seen(dir_fd, leaf, hash, ret);
	return rc < 0 ? bad_path(path, -rc, err) : 0;
}

int sba_edit_remains(struct sba_edit *e, const char *folder,
		     bool (*goes)(void *user, const char *path), void *user, char *ret,
		     struct sba_error *err)
{
	const char *leaf;
	int rc = check_path(folder, err);
	if (rc < 0)
		return rc;
	int dir_fd = sba_beneath_parent(&e->beneath, folder, &leaf);
	snprintf(ret, SBA_LAND_PATH_MAX, "%s", folder);
	rc = dir_fd < 0 ? dir_fd : sba_files_remain(dir_fd, leaf, goes, user, ret);
	return rc < 0 ? bad_path(ret, -rc, err) : rc;
}

/* ---- what shall happen ---- */

static struct identity identity_of(const struct stat *st)
{
	return (struct identity){ true, st->st_dev, st->st_ino, st->st_size, st->st_mtim };
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->there == b->there &&
	       (!a->there ||
		(a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
		 a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec));
}

static int add(struct sba_edit *e, const char *path, struct step step, struct sba_error *err)
{
	const char *leaf;
	struct stat st;
	int rc = check_path(path, err);
	if (rc < 0)
		return rc;
	if (e->n == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 64;
		struct step *grown = realloc(e->v, cap * sizeof(*grown));
		if (!grown)
			return sba_fail_nomem(err);
		e->v = grown;
		e->cap = cap;
	}
	int there = look_at(e, path, &leaf, &st);
	if (there < 0 && there != -ENOENT)
		return bad_path(path, -there, err);
	if (there >= 0 && !S_ISDIR(st.st_mode))
		step.was = identity_of(&st);
	step.path = strdup(path);
	if (!step.path)
		return sba_fail_nomem(err);
	e->v[e->n++] = step;
	return 0;
}

static void staged_name(char ret[STAGED_NAME], char kind, size_t number)
{
	snprintf(ret, STAGED_NAME, "%c%zu", kind, number);
}

int sba_edit_file(struct sba_edit *e, const char *path, uint32_t mode, int *ret_fd,
		  struct sba_error *err)
{
	char name[STAGED_NAME];
	sba_cleanup_close(&e->file_fd);
	staged_name(name, 'n', e->staged);
	e->file_fd = openat(e->stage_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (e->file_fd < 0 || fchmod(e->file_fd, mode & 0777) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "make '%s'", path);
	*ret_fd = e->file_fd;
	return add(e, path, (struct step){ .kind = STEP_PUT, .staged = e->staged++ }, err);
}

/* Two links that each stay inside may lead out together where one goes up again behind
 * the other. */
static bool goes_up_later(const char *target)
{
	bool down = false;
	while (*target) {
		size_t len = strcspn(target, "/");
		bool up = len == 2 && target[0] == '.' && target[1] == '.';
		if (up && down)
			return true;
		down = down || (len > 0 && !up && !(len == 1 && target[0] == '.'));
		target += len;
		target += *target == '/';
	}
	return false;
}

int sba_edit_link(struct sba_edit *e, const char *path, const char *target, struct sba_error *err)
{
	char name[STAGED_NAME];
	if (!sba_link_stays_inside(path, target) || goes_up_later(target))
		return sba_fail(err, SBA_EREFUSED, "'%s': the link leads out of the folder", path);
	staged_name(name, 'n', e->staged);
	if (symlinkat(target, e->stage_fd, name) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "make the link '%s'", path);
	return add(e, path, (struct step){ .kind = STEP_PUT, .staged = e->staged++ }, err);
}

int sba_edit_remove(struct sba_edit *e, const char *path, struct sba_error *err)
{
	return add(e, path, (struct step){ .kind = STEP_REMOVE }, err);
}

int sba_edit_mode(struct sba_edit *e, const char *path, uint32_t mode, struct sba_error *err)
{
	return add(e, path, (struct step){ .kind = STEP_MODE, .mode = mode & 0777 }, err);
}

/* ---- the commit: steps return 0 or -errno; -ESTALE: it is not what it was ---- */

static int make_parents(struct sba_edit *e, const char *path)
{
	char part[SBA_LAND_PATH_MAX];
	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		const char *leaf;
		snprintf(part, sizeof(part), "%.*s", (int)(s - path), path);
		int dir_fd = sba_beneath_parent(&e->beneath, part, &leaf);
		if (dir_fd < 0)
			return dir_fd;
		if (mkdirat(dir_fd, leaf, 0777) == 0) {
			if (sba_strv_add(&e->made, part, NULL) < 0)
				return -ENOMEM;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return 0;
}

/* What the name led to, which is among ours by now, is what was looked at. */
static int check_taken(const struct sba_edit *e, const char *name, const struct identity *was)
{
	struct stat st;
	if (fstatat(e->stage_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	struct identity is = identity_of(&st);
	return is_same(&is, was) ? 0 : -ESTALE;
}

static int take_away(struct sba_edit *e, struct step *s, size_t number)
{
	char name[STAGED_NAME];
	const char *leaf;
	int dir_fd = sba_beneath_parent(&e->beneath, s->path, &leaf);
	if (dir_fd < 0)
		return dir_fd;
	staged_name(name, 'o', number);
	if (renameat(dir_fd, leaf, e->stage_fd, name) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	s->kept = true;
	return check_taken(e, name, &s->was);
}

/* Folders alone are what removals have left of a tree; nobody puts a file into one that is
 * among ours. */
static int give_way(struct sba_edit *e, struct step *s, int dir_fd, const char *leaf, size_t number)
{
	char gone[STAGED_NAME], path[SBA_LAND_PATH_MAX] = "";
	struct stat st;
	if (fstatat(dir_fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return -ESTALE;
	staged_name(gone, 'g', number);
	if (renameat(dir_fd, leaf, e->stage_fd, gone) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	s->gave_way = true;
	int rc = sba_files_remain(e->stage_fd, gone, NULL, NULL, path);
	return rc > 0 ? -ESTALE : rc;
}

static int put_new(struct sba_edit *e, struct step *s, int dir_fd, const char *leaf, size_t number)
{
	char name[STAGED_NAME];
	staged_name(name, 'n', s->staged);
	int rc = sba_rename_new(false, e->stage_fd, name, dir_fd, leaf, true);
	if (rc == -EEXIST) {
		rc = give_way(e, s, dir_fd, leaf, number);
		if (rc == 0)
			rc = sba_rename_new(false, e->stage_fd, name, dir_fd, leaf, true);
	}
	s->put = rc == 0;
	return rc == -EEXIST ? -ESTALE : rc;
}

static int put(struct sba_edit *e, struct step *s, size_t number)
{
	char name[STAGED_NAME];
	const char *leaf;
	int rc = make_parents(e, s->path);
	int dir_fd = rc < 0 ? rc : sba_beneath_parent(&e->beneath, s->path, &leaf);
	if (dir_fd < 0)
		return dir_fd == -ENOTDIR ? -ESTALE : dir_fd;
	staged_name(name, 'n', s->staged);
	if (!s->was.there)
		return put_new(e, s, dir_fd, leaf, number);
	if (renameat2(e->stage_fd, name, dir_fd, leaf, RENAME_EXCHANGE) == 0) {
		s->exchanged = true;
		return check_taken(e, name, &s->was);
	}
	if (errno != EINVAL && errno != ENOSYS && errno != EPERM)
		return errno == ENOENT ? -ESTALE : -errno;
	rc = take_away(e, s, number);
	return rc < 0 ? rc : put_new(e, s, dir_fd, leaf, number);
}

static int set_mode(struct sba_edit *e, struct step *s)
{
	struct stat st;
	SBA_CLOSE int fd = sba_beneath_open(&e->beneath, s->path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	struct identity is = identity_of(&st);
	if (!is_same(&is, &s->was))
		return -ESTALE;
	s->mode_was = st.st_mode & 07777;
	s->mode_set = fchmod(fd, s->mode) == 0;
	return s->mode_set ? 0 : -errno;
}

static int do_step(struct sba_edit *e, struct step *s, size_t number)
{
	switch (s->kind) {
	case STEP_REMOVE:
		return take_away(e, s, number);
	case STEP_PUT:
		return put(e, s, number);
	case STEP_MODE:
		return set_mode(e, s);
	}
	return -EINVAL;
}

/* ---- and back ---- */

static void undo_mode(struct sba_edit *e, const struct step *s)
{
	SBA_CLOSE int fd = sba_beneath_open(&e->beneath, s->path, O_RDONLY | O_NONBLOCK);
	if (fd >= 0)
		(void)!fchmod(fd, s->mode_was);
}

static void undo_step(struct sba_edit *e, const struct step *s, size_t number)
{
	char made[STAGED_NAME], old[STAGED_NAME], gone[STAGED_NAME];
	const char *leaf;
	staged_name(made, 'n', s->staged);
	staged_name(old, 'o', number);
	staged_name(gone, 'g', number);
	if (s->mode_set)
		undo_mode(e, s);
	int dir_fd = sba_beneath_parent(&e->beneath, s->path, &leaf);
	if (dir_fd < 0)
		return;
	if (s->exchanged)
		(void)!renameat2(e->stage_fd, made, dir_fd, leaf, RENAME_EXCHANGE);
	if (s->put)
		(void)!renameat(dir_fd, leaf, e->stage_fd, made);
	if (s->gave_way)
		(void)!renameat(e->stage_fd, gone, dir_fd, leaf);
	if (s->kept)
		(void)!renameat(e->stage_fd, old, dir_fd, leaf);
}

static void undo_parents(struct sba_edit *e)
{
	for (size_t i = e->made.n; i-- > 0;) {
		const char *leaf;
		int dir_fd = sba_beneath_parent(&e->beneath, e->made.v[i], &leaf);
		if (dir_fd >= 0)
			(void)!unlinkat(dir_fd, leaf, AT_REMOVEDIR);
	}
}

static void undo(struct sba_edit *e)
{
	/* What was put goes first: a folder may have given way to it. */
	for (size_t i = e->n; i-- > 0;) {
		if (e->v[i].kind != STEP_REMOVE)
			undo_step(e, &e->v[i], i);
	}
	undo_parents(e);
	for (size_t i = e->n; i-- > 0;) {
		if (e->v[i].kind == STEP_REMOVE)
			undo_step(e, &e->v[i], i);
	}
}

/* As with git: a folder is there for what is in it. */
static void drop_empty(struct sba_edit *e, const char *path)
{
	char part[SBA_LAND_PATH_MAX];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strrchr(part, '/'); slash; slash = strrchr(part, '/')) {
		const char *leaf;
		*slash = '\0';
		int dir_fd = sba_beneath_parent(&e->beneath, part, &leaf);
		if (dir_fd < 0 || unlinkat(dir_fd, leaf, AT_REMOVEDIR) < 0)
			return;
	}
}

static int run(struct sba_edit *e, bool removals, struct sba_error *err)
{
	for (size_t i = 0; i < e->n; i++) {
		struct step *s = &e->v[i];
		if ((s->kind == STEP_REMOVE) != removals)
			continue;
		int rc = do_step(e, s, i);
		if (rc == -ESTALE)
			return sba_fail(err, SBA_ECONFLICT, "'%s' has changed here in this moment",
					s->path);
		if (rc < 0)
			return bad_path(s->path, -rc, err);
	}
	return 0;
}

int sba_edit_commit(struct sba_edit *e, struct sba_error *err)
{
	sba_cleanup_close(&e->file_fd);
	int rc = run(e, true, err);
	if (rc == 0)
		rc = run(e, false, err);
	if (rc < 0) {
		undo(e);
		return rc;
	}
	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].kind == STEP_REMOVE)
			drop_empty(e, e->v[i].path);
	}
	return 0;
}
