/* SPDX-License-Identifier: MIT */
/*
 * Walks a file or tree of this host for the packer: by descriptors, following
 * no link below the path that the user gave, one open directory per level.
 * What it meets may have been written by a sandbox, or change meanwhile.
 */
#include "archive/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory that is being walked. */
struct level {
	int fd;
	size_t name_len; /* of the directory's own name in the archive */
	struct sba_strv names;
	size_t next;
};

struct sba_walk {
	int root_fd; /* file or directory; -1 once handed out */
	bool root_done;
	struct sba_beneath beneath;
	struct sba_buf name; /* of the current entry */
	size_t base_len;     /* the part that names the root */
	char link[PATH_MAX];
	struct level *levels;
	size_t depth;
	bool listed; /* only the paths in `only` */
	struct sba_strv only;
	const char *const *exclude;
	mode_t mode_mask;
	sba_left_out_fn *left_out;
	void *user;
	size_t next;    /* in `only` */
	size_t told_to; /* parents of only[next] up to here have been handed out */
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct sba_strv *v)
{
	if (v->n > 0)
		qsort(v->v, v->n, sizeof(*v->v), compare_names);
}

static int copy_list(const char *const *only, struct sba_strv *ret, struct sba_error *err)
{
	for (; *only; only++) {
		if (sba_path_components(*only) == 0)
			return sba_fail(err, SBA_EINVAL, "'%s' is no path within a tree", *only);
		int rc = sba_strv_add(ret, *only, err);
		if (rc < 0)
			return rc;
	}
	sort(ret);
	return 0;
}

/* Opens what the user named; links are followed here only. */
static int open_root(const char *host_path, struct stat *st, struct sba_error *err)
{
	SBA_CLOSE int fd = open(host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno,
				      "open '%s'", host_path);
	if (fstat(fd, st) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "stat '%s'", host_path);
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return sba_fail(err, SBA_EREFUSED, "'%s' is neither a file nor a directory",
				host_path);
	return sba_move_fd(&fd);
}

int sba_walk_new(const struct sba_walk_options *o, struct sba_walk **ret, struct sba_error *err)
{
	struct stat st;
	struct sba_walk *w = calloc(1, sizeof(*w));
	if (!w)
		return sba_fail_nomem(err);
	sba_buf_init(&w->name, SBA_LAND_PATH_MAX);
	sba_buf_puts(&w->name, o->name);
	w->base_len = w->name.len;
	w->exclude = o->exclude;
	w->mode_mask = o->set_id ? 06777 : 0777;
	w->left_out = o->left_out;
	w->user = o->user;
	w->root_fd = open_root(o->host_path, &st, err);
	sba_beneath_init(&w->beneath, w->root_fd, false);
	int rc = w->root_fd < 0 ? w->root_fd : sba_buf_check(&w->name, "name", err);
	if (rc == 0 && !S_ISDIR(st.st_mode) && (o->only || w->base_len == 0))
		rc = sba_fail(err, SBA_EINVAL, "'%s' is not a directory", o->host_path);
	w->listed = o->only != NULL;
	if (rc == 0 && o->only)
		rc = copy_list(o->only, &w->only, err);
	if (rc < 0) {
		sba_walk_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

static void leave(struct sba_walk *w)
{
	struct level *l = &w->levels[--w->depth];
	sba_cleanup_close(&l->fd);
	sba_strv_fini(&l->names);
}

void sba_walk_free(struct sba_walk *w)
{
	if (!w)
		return;
	while (w->depth > 0)
		leave(w);
	free(w->levels);
	sba_beneath_fini(&w->beneath);
	sba_cleanup_close(&w->root_fd);
	sba_strv_fini(&w->only);
	sba_buf_fini(&w->name);
	free(w);
}

/* ---- one directory ---- */

static int read_names(DIR *dir, struct sba_strv *ret, struct sba_error *err)
{
	for (;;) {
		errno = 0;
		const struct dirent *d = readdir(dir);
		if (!d)
			return errno ? sba_fail_errno(err, SBA_EIO, errno, "read the directory")
				     : 0;
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		int rc = sba_strv_add(ret, d->d_name, err);
		if (rc < 0)
			return rc;
	}
}

static int list_directory(int fd, struct sba_strv *ret, struct sba_error *err)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	if (!dir) {
		int e = errno;
		sba_cleanup_close(&own);
		return sba_fail_errno(err, SBA_EIO, e, "open the directory");
	}
	int rc = read_names(dir, ret, err);
	closedir(dir);
	sort(ret);
	return rc;
}

/* Takes the descriptor of a directory whose name is w->name. */
static int enter(struct sba_walk *w, int take_fd, struct sba_error *err)
{
	SBA_CLOSE int fd = take_fd;
	if (w->depth == SBA_PACK_DEPTH_MAX)
		return sba_fail(err, SBA_ELIMIT, "'%s' is more than %d directories deep",
				w->name.data, SBA_PACK_DEPTH_MAX);
	struct level *grown = realloc(w->levels, (w->depth + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	w->levels = grown;
	struct level *l = &grown[w->depth++];
	*l = (struct level){ .fd = sba_move_fd(&fd), .name_len = w->name.len };
	int rc = list_directory(l->fd, &l->names, err);
	return rc < 0 ? sba_wrap(err, rc, "'%s'", w->name.data) : 0;
}

/* ---- one entry ---- */

static int set_name(struct sba_walk *w, size_t dir_len, const char *leaf, size_t leaf_len,
		    struct sba_error *err)
{
	if (w->name.data)
		w->name.data[dir_len] = '\0';
	w->name.len = dir_len;
	if (dir_len > 0)
		sba_buf_putc(&w->name, '/');
	sba_buf_put(&w->name, leaf, leaf_len);
	return sba_buf_check(&w->name, "a path in the tree", err);
}

/* The current entry's path within the tree. */
static const char *relative(const struct sba_walk *w)
{
	return w->name.data + w->base_len + (w->base_len > 0);
}

bool sba_link_stays_inside(const char *rel, const char *target)
{
	long depth = 0;
	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (const char *s = rel; *s; s++)
		depth += *s == '/';
	while (*target) {
		size_t len = strcspn(target, "/");
		if (len == 2 && target[0] == '.' && target[1] == '.')
			depth--;
		else if (len > 0 && !(len == 1 && target[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
		target += len;
		target += *target == '/';
	}
	return true;
}

static void describe(const struct sba_walk *w, const struct stat *st, char type,
		     struct sba_walk_entry *ret)
{
	*ret = (struct sba_walk_entry){
		.name = w->name.data,
		.type = type,
		.mode = st->st_mode & w->mode_mask,
		.mtime = st->st_mtim.tv_sec,
		.fd = -1,
	};
}

/* A parent of a listed path comes along as a directory, without its content. */
enum role { WHOLE, PARENT };

/* What vanishes between the listing and this is simply not there. */
static int cannot(const struct sba_walk *w, const char *what, int e, struct sba_error *err)
{
	if (e == ENOENT)
		return 0;
	return sba_fail_errno(err, SBA_EIO, e, "%s '%s'", what, w->name.data);
}

/* Never an error: 0. */
static int leave_out(const struct sba_walk *w, enum sba_refusal why)
{
	if (w->left_out)
		w->left_out(w->user, w->name.data, why);
	return 0;
}

static enum sba_refusal kind_of(mode_t mode)
{
	if (S_ISFIFO(mode))
		return SBA_REFUSED_FIFO;
	if (S_ISSOCK(mode))
		return SBA_REFUSED_SOCKET;
	return S_ISCHR(mode) || S_ISBLK(mode) ? SBA_REFUSED_DEVICE : SBA_REFUSED_OTHER;
}

static int take_link(struct sba_walk *w, int dir_fd, const char *leaf, const struct stat *st,
		     struct sba_walk_entry *ret, struct sba_error *err)
{
	ssize_t n = readlinkat(dir_fd, leaf, w->link, sizeof(w->link) - 1);
	if (n < 0)
		return cannot(w, "read the link", errno, err);
	w->link[n] = '\0';
	if (!sba_link_stays_inside(relative(w), w->link))
		return leave_out(w, SBA_REFUSED_LEAVING);
	describe(w, st, '2', ret);
	ret->mode = 0777;
	ret->link = w->link;
	return 1;
}

static int take_open(struct sba_walk *w, int take_fd, enum role role, struct sba_walk_entry *ret,
		     struct sba_error *err)
{
	SBA_CLOSE int fd = take_fd;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cannot(w, "stat", errno, err);
	if (S_ISDIR(st.st_mode)) {
		int rc = role == WHOLE ? enter(w, sba_move_fd(&fd), err) : 0;
		describe(w, &st, '5', ret);
		return rc < 0 ? rc : 1;
	}
	if (!S_ISREG(st.st_mode) || role == PARENT)
		return 0;
	describe(w, &st, '0', ret);
	ret->size = (uint64_t)st.st_size;
	ret->fd = sba_move_fd(&fd);
	return 1;
}

/* The entry w->name, which is `leaf` in dir_fd: 1, or 0 if it is left out. */
static int take_leaf(struct sba_walk *w, int dir_fd, const char *leaf, enum role role,
		     struct sba_walk_entry *ret, struct sba_error *err)
{
	struct stat st;
	if (fstatat(dir_fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cannot(w, "stat", errno, err);
	if (role == PARENT && !S_ISDIR(st.st_mode))
		return 0;
	if (sba_exclude_leaf(w->exclude, relative(w), S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISLNK(st.st_mode))
		return take_link(w, dir_fd, leaf, &st, ret, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return leave_out(w, kind_of(st.st_mode));
	/* Not blocking: a fifo may have taken the file's place by now. */
	int fd = openat(dir_fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return cannot(w, "open", errno, err);
	return take_open(w, fd, role, ret, err);
}

/* ---- steps ---- */

static int step_root(struct sba_walk *w, struct sba_walk_entry *ret, struct sba_error *err)
{
	w->root_done = true;
	int fd = fcntl(w->root_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "'%s'", w->name.data);
	int rc = take_open(w, fd, w->listed ? PARENT : WHOLE, ret, err);
	/* Without a name the root has no entry of its own. */
	return rc == 1 && w->base_len == 0 ? 0 : rc;
}

static int step_directory(struct sba_walk *w, struct sba_walk_entry *ret, struct sba_error *err)
{
	struct level *l = &w->levels[w->depth - 1];
	if (l->next == l->names.n) {
		leave(w);
		return 0;
	}
	const char *leaf = l->names.v[l->next++];
	int rc = set_name(w, l->name_len, leaf, strlen(leaf), err);
	return rc < 0 ? rc : take_leaf(w, l->fd, leaf, WHOLE, ret, err);
}

/* How much of `path` are directories that have been handed out for `before`. */
static size_t shared_parents(const char *before, const char *path)
{
	size_t shared = 0;
	for (size_t i = 0; path[i] && path[i] == before[i]; i++) {
		if (path[i] == '/')
			shared = i + 1;
	}
	return shared;
}

static void next_listed(struct sba_walk *w)
{
	const char *before = w->only.v[w->next];
	const char *path;
	do {
		path = w->only.v[++w->next];
	} while (path && strcmp(before, path) == 0);
	w->told_to = path ? shared_parents(before, path) : 0;
}

/* Hands out the next parent of the listed path, or the path itself. */
static int step_list(struct sba_walk *w, struct sba_walk_entry *ret, struct sba_error *err)
{
	const char *path = w->only.v[w->next];
	const char *slash = strchr(path + w->told_to, '/');
	size_t len = slash ? (size_t)(slash - path) : strlen(path);
	int rc = set_name(w, w->base_len, path, len, err);
	if (rc < 0)
		return rc;
	const char *leaf;
	int dir_fd = sba_beneath_parent(&w->beneath, relative(w), &leaf);
	/* A parent that is gone, or no directory any more: so is the path. */
	bool gone = dir_fd == -ENOENT || dir_fd == -ENOTDIR || dir_fd == -ELOOP;
	if (dir_fd < 0 && !gone)
		return cannot(w, "open the parent of", -dir_fd, err);
	enum role role = slash ? PARENT : WHOLE;
	rc = gone ? 0 : take_leaf(w, dir_fd, leaf, role, ret, err);
	if (slash && rc == 1)
		w->told_to = len + 1;
	else
		next_listed(w);
	return rc;
}

int sba_walk_next(struct sba_walk *w, struct sba_walk_entry *ret, struct sba_error *err)
{
	for (;;) {
		int rc;
		if (!w->root_done)
			rc = step_root(w, ret, err);
		else if (w->depth > 0)
			rc = step_directory(w, ret, err);
		else if (w->next < w->only.n)
			rc = step_list(w, ret, err);
		else
			return 0;
		if (rc != 0)
			return rc;
	}
}
