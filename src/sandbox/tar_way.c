/* SPDX-License-Identifier: MIT */
/*
 * A tar of something inside. The engine yields most of it, as root; what it does
 * not see (tmpfs, volumes, /proc) comes from the guest, as the sandbox's user.
 */
#include "sandbox/tar_way.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"

/* ---- where it is ---- */

/* Where the user may not look, only the engine can have looked. */
static int not_there(struct sba_sandbox *s, const struct sba_tar_way *w, const char *path,
		     struct sba_error *err)
{
	if (w->unseen && sba_inside_is_unseen(s))
		return sba_inside_refuse_read(s, path, err);
	return sba_fail(err, SBA_ENOTFOUND, "%s:%s: no such file or directory", s->info.name, path);
}

static int judge_place(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
		       struct sba_error *err)
{
	if (S_ISLNK(w->mode))
		return sba_hint(
			err,
			sba_fail(err, SBA_EREFUSED, "%s:%s is a symbolic link", s->info.name, path),
			"copy what it leads to: %s:%s/.", s->info.name, path);
	if (!S_ISREG(w->mode) && !S_ISDIR(w->mode))
		return sba_fail(err, SBA_EREFUSED, "%s:%s: only files and directories are copied",
				s->info.name, path);
	return strcmp(w->path, "/")
		       ? 0
		       : sba_fail(err, SBA_EREFUSED, "the sandbox's whole root is not copied");
}

static int look_by_engine(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
			  struct sba_error *err)
{
	struct sba_path_stat st = { 0 };
	int rc = w->channel ? 0 : sba_refuse_mounts(path, err);
	if (rc == 0)
		rc = sba_inside_stat(s, path, &st, err);
	if (rc < 0)
		return rc;
	w->mode = st.mode;
	w->size = (uint64_t)st.size;
	return 0;
}

static int look_by_table(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
			 struct sba_error *err)
{
	struct sba_file_stat st;
	int rc = sba_sandbox_stat(s, path, &st, err);
	if (rc < 0)
		return rc;
	w->mode = st.mode;
	w->size = (uint64_t)st.size;
	return 0;
}

static int look(struct sba_sandbox *s, struct sba_tar_way *w, const char *path, bool contents,
		struct sba_error *err)
{
	struct sba_channel_place place;
	char asked[SBA_INSIDE_PATH_MAX];
	snprintf(w->path, sizeof(w->path), "%s", path);
	int rc = contents ? sba_inside_join(asked, path, ".", err) : 0;
	if (rc == 0 && !sba_backend_of(s)->download)
		rc = sba_files_channel(s, &w->hold, &w->channel, err);
	if (rc < 0)
		return rc;
	if (!w->channel && !s->engine)
		return look_by_table(s, w, path, err);
	if (!w->channel)
		return look_by_engine(s, w, path, err);
	rc = sba_channel_place(w->channel, contents ? asked : path, sba_small_until(s), &place,
			       err);
	w->unseen = rc == 0 && place.unseen;
	if (s->engine && (rc == SBA_EUNSUPPORTED || w->unseen))
		return look_by_engine(s, w, path, err);
	if (rc < 0)
		return rc;
	snprintf(w->path, sizeof(w->path), "%s", place.path);
	w->mode = place.stat.mode;
	w->size = (uint64_t)place.stat.size;
	w->by_guest = !s->engine || place.other_mount || (place.mounts_below && S_ISDIR(w->mode));
	return 0;
}

/* ---- who owns it ---- */

/* Podman's archives (4.3 to 5.4) give every file to the container's user. Before such an
 * archive is open: an exec may have to wait for its end. */
static int learn_owners(struct sba_tar_way *w, bool contents, struct sba_error *err)
{
	SBA_STRV struct sba_strv paths = { 0 };
	if (!w->channel || w->by_guest || !sba_engine_podman(w->sandbox->engine))
		return 0;
	if (contents)
		snprintf(w->above, sizeof(w->above), "%s", w->path);
	else
		(void)sba_inside_split(w->path, w->above);
	int rc = sba_strv_add(&paths, w->path, err);
	return rc < 0 ? rc : sba_owners_ask(w->sandbox, &paths, &w->owners, err);
}

static void tell_owner(void *way, const char *name, uint32_t *uid, uint32_t *gid)
{
	struct sba_tar_way *w = way;
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	const char *above = w->above + (w->above[0] == '/');
	sba_buf_puts(&path, above);
	if (*above && *name)
		sba_buf_putc(&path, '/');
	sba_buf_puts(&path, name);
	if (!path.failed && path.data)
		sba_owners_tell(&w->owners, path.data, uid, gid);
}

/* ---- the tar ---- */

static ssize_t read_bytes(void *way, void *buf, size_t size, struct sba_error *err)
{
	struct sba_tar_way *w = way;
	if (w->tree.read)
		return w->tree.read(w->tree.user, buf, size, err);
	return w->tar ? sba_channel_tar_read(w->tar, buf, size, err)
		      : sba_ahead_read(w->ahead, buf, size, err);
}

static int open_by_engine(struct sba_sandbox *s, struct sba_tar_way *w, const char *tar_path,
			  struct sba_until until, struct sba_error *err)
{
	struct sba_body *body;
	int rc = sba_container_get(s->engine, s->container, tar_path,
				   sba_until_sooner(until, SBA_TRANSFER_STALL_MS), &body, err);
	if (rc == 0)
		rc = sba_ahead_open(body, until, &w->ahead, err);
	if (rc == 0 && w->owners.n > 0)
		rc = sba_reown_new(read_bytes, w, tell_owner, w, &w->reown, err);
	return rc;
}

static int open_by_guest(struct sba_tar_way *w, const char *tar_path, const struct sba_tar_find *f,
			 struct sba_until until, struct sba_error *err)
{
	const struct sba_channel_tar_options o = { tar_path, f->note, f->user };
	return sba_channel_tar_open(w->channel, &o, until, &w->tar, err);
}

/* The backend's own way, else a program inside. */
static int open_by_table(struct sba_sandbox *s, struct sba_tar_way *w, const char *tar_path,
			 struct sba_until until, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	const struct sba_tree_options o = { .timeout_ms = sba_timeout_of(until, 0) };
	return (b->download ? b->download : sba_commands_tar)(s, tar_path, &o, &w->tree, err);
}

static int open_tar(struct sba_sandbox *s, struct sba_tar_way *w, const struct sba_tar_find *f,
		    struct sba_until until, struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	int rc = 0;
	snprintf(path, sizeof(path), "%s", w->path);
	if (f->contents && f->raw)
		rc = sba_inside_join(path, w->path, ".", err);
	if (rc == 0 && !w->channel && !s->engine)
		return open_by_table(s, w, path, until, err);
	if (rc == 0 && !w->by_guest) {
		rc = open_by_engine(s, w, path, until, err);
		/* The guest has seen it: some engines know fewer mounts than others. */
		w->by_guest = rc == SBA_ENOTFOUND && w->channel;
	}
	if (w->by_guest && (rc == 0 || rc == SBA_ENOTFOUND))
		rc = open_by_guest(w, path, f, until, err);
	return rc;
}

int sba_tar_way_open(struct sba_sandbox *s, const struct sba_tar_find *f, struct sba_until until,
		     struct sba_tar_way **ret, struct sba_error *err)
{
	struct sba_tar_way *w = calloc(1, sizeof(*w));
	if (!w)
		return sba_fail_nomem(err);
	w->sandbox = s;
	int rc = sba_sandbox_check_path(s, f->path, err);
	if (rc == 0)
		rc = look(s, w, f->path, f->contents, err);
	if (rc == SBA_ENOTFOUND)
		rc = not_there(s, w, f->path, err);
	if (rc == 0)
		rc = judge_place(s, w, f->path, err);
	if (rc == 0 && f->contents && !S_ISDIR(w->mode))
		rc = sba_fail(err, SBA_ENOTFOUND, "%s:%s is not a directory", s->info.name,
			      f->path);
	if (rc == 0 && f->raw)
		rc = learn_owners(w, f->contents, err);
	if (rc == 0)
		rc = open_tar(s, w, f, until, err);
	if (rc < 0) {
		sba_tar_way_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

ssize_t sba_tar_way_read(void *way, void *buf, size_t size, struct sba_error *err)
{
	struct sba_tar_way *w = way;
	return w->reown ? sba_reown_read(w->reown, buf, size, err) : read_bytes(w, buf, size, err);
}

void sba_tar_way_stop(struct sba_tar_way *w)
{
	sba_reown_free(sba_move(&w->reown));
	sba_ahead_close(sba_move(&w->ahead));
	sba_channel_tar_close(sba_move(&w->tar));
	if (w->tree.close)
		w->tree.close(w->tree.user);
	w->tree = (struct sba_tree){ 0 };
}

void sba_tar_way_close(struct sba_tar_way *w)
{
	if (!w)
		return;
	sba_tar_way_stop(w);
	sba_owners_fini(&w->owners);
	sba_hold_release(w->hold);
	free(w);
}

/* The guest opens one folder after the other. */
int sba_tar_way_by_guest(struct sba_tar_way *w, const struct sba_tar_find *f,
			 struct sba_until until, struct sba_error *err)
{
	sba_tar_way_stop(w);
	w->by_guest = true;
	return open_tar(w->sandbox, w, f, until, err);
}
