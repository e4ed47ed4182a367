/* SPDX-License-Identifier: MIT */
/*
 * One file inside, read or written, of any size. The channel does it in a
 * millisecond, with the rights of the sandbox's user; where he has none, the
 * engine does it as root.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/tar_way.h"

enum { LARGE = 64 * SBA_MIB }; /* may be worth a look for holes */

/* ---- reading ---- */

/* The path that it really has, if it is mostly holes: content as such would carry them
 * as zeros, a tar of the guest's does not. */
static bool is_sparse(struct sba_sandbox *s, struct sba_channel *c, const char *path,
		      struct sba_channel_place *ret)
{
	struct sba_channel_ask *ask;
	struct sba_channel_census all;
	struct sba_until until = sba_small_until(s);
	return sba_channel_place(c, path, until, ret, NULL) == 0 && S_ISREG(ret->stat.mode) &&
	       sba_channel_census_begin(c, ret->path, 0, &ask, NULL) == 0 &&
	       sba_channel_census_end(ask, until, &all, NULL, NULL) == 0 &&
	       all.holes > all.bytes / 2;
}

static ssize_t read_tar(void *tar, void *buf, size_t size, struct sba_error *err)
{
	return sba_channel_tar_read(tar, buf, size, err);
}

static int read_sparse(struct sba_channel *c, const char *path, const struct sba_channel_get *g,
		       struct sba_until until, struct sba_error *err)
{
	const struct sba_channel_tar_options o = { .path = path };
	struct sba_channel_tar *t;
	int rc = sba_channel_tar_open(c, &o, until, &t, err);
	if (rc < 0)
		return rc;
	rc = sba_tar_one_stream(read_tar, t, g->sink, g->user, err);
	sba_channel_tar_close(t);
	return rc;
}

static int read_by_channel(struct sba_sandbox *s, struct sba_channel *c, struct sba_channel_get g,
			   struct sba_until until, struct sba_error *err)
{
	struct sba_channel_place place;
	g.max = LARGE;
	int rc = sba_channel_file_get(c, &g, until, err);
	if (rc != SBA_ELIMIT)
		return rc;
	g.max = 0;
	return is_sparse(s, c, g.path, &place) ? read_sparse(c, place.path, &g, until, err)
					       : sba_channel_file_get(c, &g, until, err);
}

static int read_by_engine(struct sba_sandbox *s, const char *path, struct sba_until until,
			  sba_write_fn *write, void *user, struct sba_error *err)
{
	const struct sba_tar_find find = { .path = path };
	struct sba_tar_way *w;
	int rc = sba_tar_way_open(s, &find, until, &w, err);
	if (rc < 0)
		return rc;
	rc = sba_tar_one_stream(sba_tar_way_read, w, write, user, err);
	sba_tar_way_close(w);
	return rc;
}

int sba_inside_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		    sba_write_fn *write, void *user, struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	SBA_HOLD struct sba_hold *hold = NULL;
	struct sba_channel *channel = NULL;
	struct sba_until until = sba_transfer_until(s, timeout_ms);
	int rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = sba_files_channel(s, &hold, &channel, err);
	if (rc == 0 && channel)
		rc = read_by_channel(
			s, channel,
			(struct sba_channel_get){ .path = inside, .sink = write, .user = user },
			until, err);
	bool locked = rc == SBA_EPERM;
	if (s->engine && ((rc == 0 && !channel) || rc == SBA_EPERM || rc == SBA_EUNSUPPORTED))
		rc = read_by_engine(s, inside, until, write, user, err);
	if (rc == SBA_ENOTFOUND && locked && sba_inside_is_unseen(s))
		rc = sba_inside_refuse_read(s, inside, err);
	if (rc == SBA_ENOTFOUND)
		return sba_fail(err, rc, "%s:%s: no such file", s->info.name, inside);
	if (rc == SBA_EREFUSED && err && !*err->hint)
		sba_hint(err, rc, "read takes one regular file; folders:  sandbox-agent cp %s:%s .",
			 s->info.name, inside);
	return rc < 0 ? sba_wrap(err, rc, "%s", s->info.name) : 0;
}

/* ---- writing, as root ---- */

struct spooled {
	int fd;
	const char *leaf;
	uint32_t mode;
};

/* A tar says how large a file is before its content comes. */
static int spool(sba_read_fn *read, void *user, int *ret_fd, struct sba_error *err)
{
	char piece[64 * SBA_KIB];
	ssize_t n;
	SBA_CLOSE int fd = -1;
	int opened = sba_open_unnamed(&fd, err);
	if (opened < 0)
		return opened;
	while ((n = read(user, piece, sizeof(piece), err)) > 0) {
		int rc = sba_write_all(fd, piece, (size_t)n, err);
		if (rc < 0)
			return rc;
	}
	if (n == 0)
		*ret_fd = sba_move_fd(&fd);
	return (int)n;
}

static int fill(void *user, struct sba_pack *pack, struct sba_error *err)
{
	const struct spooled *f = user;
	char path[64];
	if (fchmod(f->fd, f->mode) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "set a temporary file's mode");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return sba_pack_path(pack, f->leaf, path, err);
}

struct writing {
	struct sba_sandbox *s;
	char path[SBA_INSIDE_PATH_MAX];
	const struct sba_write_options *options;
	struct sba_hold *hold;
	struct sba_channel *channel; /* may be NULL */
	bool set_owner;
	uint32_t uid, gid;
	sba_read_fn *read;
	void *user;
	struct sba_until until;
};

/* Of the file that is there, unless others are asked for. */
static int keep_dress(struct writing *w, uint32_t *mode, struct sba_error *err)
{
	struct sba_channel_stat st;
	struct sba_path_stat seen;
	*mode = w->options && w->options->set_mode ? w->options->mode & 07777 : 0644;
	if (w->channel &&
	    sba_channel_file_stat(w->channel, w->path, false, w->until, &st, NULL) == 0) {
		if (!S_ISREG(st.mode))
			return sba_fail(err, SBA_EREFUSED, "it is no regular file");
		if (!w->set_owner) {
			w->set_owner = true;
			w->uid = st.uid;
			w->gid = st.gid;
		}
		if (!w->options || !w->options->set_mode)
			*mode = st.mode & 07777;
		return 0;
	}
	/* The engine tells the mode, but not whose it is. */
	if (sba_inside_stat(w->s, w->path, &seen, NULL) == 0) {
		if (!S_ISREG(seen.mode))
			return sba_fail(err, SBA_EREFUSED, "it is no regular file");
		if (!w->options || !w->options->set_mode)
			*mode = seen.mode & 07777;
	}
	return 0;
}

static int write_by_engine(struct writing *w, struct sba_error *err)
{
	char folder[SBA_INSIDE_PATH_MAX];
	SBA_CLOSE int fd = -1;
	struct spooled f = { .leaf = sba_inside_split(w->path, folder) };
	int rc = keep_dress(w, &f.mode, err);
	if (rc == 0)
		rc = spool(w->read, w->user, &fd, err);
	if (rc < 0)
		return rc;
	f.fd = fd;
	const struct sba_cargo cargo = {
		.fill = fill,
		.user = &f,
		.set_owner = w->set_owner,
		.uid = w->uid,
		.gid = w->gid,
	};
	const struct sba_transfer_options o = { .timeout_ms =
							w->options ? w->options->timeout_ms : 0,
						.set_id = true };
	return sba_send(w->s, folder, &cargo, &o, NULL, err);
}

/* ---- writing ---- */

static int write_by_channel(struct writing *w, bool *ret_asked, struct sba_error *err)
{
	const struct sba_channel_write c = {
		.path = w->path,
		.set_mode = w->options && w->options->set_mode,
		.mode = w->options ? w->options->mode : 0,
		.set_owner = w->set_owner,
		.uid = w->uid,
		.gid = w->gid,
		.source = w->read,
		.user = w->user,
	};
	return sba_channel_file_write(w->channel, &c, w->until, ret_asked, err);
}

static int write_file(struct writing *w, struct sba_error *err)
{
	bool asked = false;
	int rc = sba_files_channel(w->s, &w->hold, &w->channel, err);
	if (rc == 0 && w->options && w->options->owner)
		rc = sba_sandbox_need(w->s, SBA_CAN_USER, err);
	if (rc == 0 && w->options && w->options->owner) {
		rc = sba_sandbox_ids(w->s, w->options->owner, &w->uid, &w->gid, err);
		w->set_owner = rc == 0;
	}
	if (rc < 0)
		return rc;
	if (w->channel)
		rc = write_by_channel(w, &asked, err);
	bool other = rc == SBA_EPERM || rc == SBA_EUNSUPPORTED || rc == SBA_ENOTFOUND;
	if (w->s->engine && (!w->channel || (!asked && other)))
		rc = write_by_engine(w, err);
	return rc;
}

int sba_inside_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		     const struct sba_write_options *options, struct sba_error *err)
{
	struct writing w = {
		.s = s,
		.options = options,
		.read = read,
		.user = user,
		.until = sba_transfer_until(s, options ? options->timeout_ms : 0),
	};
	int rc = sba_inside_path(path, w.path, err);
	if (rc == 0 && (sba_ends_with(path, "/") || strcmp(w.path, "/") == 0))
		rc = sba_fail(err, SBA_EINVAL, "it names a folder");
	if (rc == 0)
		rc = write_file(&w, err);
	sba_hold_release(w.hold);
	return rc < 0 ? sba_wrap(err, rc, "write %s:%s", s->info.name, path) : 0;
}
