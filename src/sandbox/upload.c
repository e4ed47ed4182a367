/* SPDX-License-Identifier: MIT */
/* Files and trees of this host, and tars, into a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/files.h"
#include "sandbox/git.h"

enum {
	/* Larger files by the engine: a root that does not care whose a folder is. */
	SMALL_MAX = SBA_MIB,
	GIT_MS = 60 * 1000,
};

struct upload {
	struct sba_sandbox *s;
	const char *host_path; /* real */
	struct stat st;
	const struct sba_transfer_options *options;
	struct sba_strv files; /* of git, where only these go */
	const char *leaf;      /* "": what is in the folder */
};

/* ---- where it goes ---- */

/* 1 a folder, 0 something else, or SBA_ENOTFOUND. */
static int look(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	struct sba_file_stat st;
	int rc = sba_sandbox_stat(s, path, &st, err);
	return rc < 0 ? rc : S_ISDIR(st.mode);
}

/* A folder that is there is merged into: its own user may do that, where he may not
 * write above it. */
static int enter_leaf(struct upload *u, char folder[SBA_INSIDE_PATH_MAX], struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	int rc = sba_inside_join(path, folder, u->leaf, err);
	if (rc == 0 && sba_inside_is_folder(u->s, path)) {
		memcpy(folder, path, sizeof(path));
		u->leaf = "";
	}
	return rc;
}

/* The folder, and what it is called there. */
static int find_folder(struct upload *u, const char *inside, char folder[SBA_INSIDE_PATH_MAX],
		       struct sba_error *err)
{
	bool is_folder = S_ISDIR(u->st.st_mode);
	int there = look(u->s, inside, err);
	if (there < 0 && there != SBA_ENOTFOUND)
		return there;
	if (there == 0 && is_folder)
		return sba_fail(err, SBA_EEXIST, "'%s' is not a directory", inside);
	if (is_folder && u->options && u->options->contents) {
		u->leaf = "";
		snprintf(folder, SBA_INSIDE_PATH_MAX, "%s", inside);
	} else if (there == 1) {
		u->leaf = sba_base_name(u->host_path);
		snprintf(folder, SBA_INSIDE_PATH_MAX, "%s", inside);
	} else {
		u->leaf = sba_inside_split(inside, folder);
	}
	if (strlen(u->leaf) > SBA_LAND_NAME_MAX)
		return sba_fail(err, SBA_EINVAL, "name '%.40s…': longer than %d bytes", u->leaf,
				SBA_LAND_NAME_MAX);
	return is_folder && *u->leaf ? enter_leaf(u, folder, err) : 0;
}

/* ---- one small file, by the channel ---- */

struct small {
	int fd;
	uint64_t bytes; /* read: a file of /proc does not know its size */
};

static ssize_t read_small(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct small *s = user;
	ssize_t n;
	do {
		n = read(s->fd, buf, size);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read");
	s->bytes += (uint64_t)n;
	return n;
}

static uint32_t mode_of(const struct upload *u)
{
	return u->st.st_mode & (u->options && u->options->set_id ? 06777 : 0777);
}

/* 1: done; 0: another way has to do it. */
static int send_small(struct upload *u, const char *folder, struct sba_transfer_report *ret,
		      struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	SBA_HOLD struct sba_hold *hold = NULL;
	struct sba_channel *channel = NULL;
	bool asked = false;
	bool small = S_ISREG(u->st.st_mode) && u->st.st_size <= SMALL_MAX;
	if (!small || (u->options && u->options->no_clobber))
		return 0;
	SBA_CLOSE int fd = open(u->host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "open '%s'", u->host_path);
	struct small source = { .fd = fd };
	int rc = sba_inside_join(path, folder, u->leaf, err);
	if (rc == 0)
		rc = sba_files_channel(u->s, &hold, &channel, err);
	if (rc < 0 || !channel)
		return rc;
	const struct sba_channel_write w = {
		.path = path,
		.set_mode = true,
		.mode = mode_of(u),
		.set_mtime = true,
		.mtime_ns = sba_time_ns(u->st.st_mtim.tv_sec, u->st.st_mtim.tv_nsec),
		.source = read_small,
		.user = &source,
	};
	struct sba_until until = sba_transfer_until(u->s, u->options ? u->options->timeout_ms : 0);
	rc = sba_channel_file_write(channel, &w, until, &asked, err);
	if (!asked && (rc == SBA_EPERM || rc == SBA_EUNSUPPORTED || rc == SBA_ENOTFOUND))
		return 0;
	if (rc == SBA_EREFUSED)
		return sba_fail(err, SBA_EEXIST, "'%s' is there, and no regular file", path);
	if (rc == 0 && ret)
		*ret = (struct sba_transfer_report){ .files = 1, .bytes = source.bytes };
	return rc < 0 ? rc : 1;
}

/* ---- all else ---- */

static int fill(void *user, struct sba_pack *pack, struct sba_error *err)
{
	const struct upload *u = user;
	static const char *const nothing[] = { NULL };
	if (!u->options || !u->options->gitignore)
		return sba_pack_path(pack, u->leaf, u->host_path, err);
	const char *const *files = u->files.v ? (const char *const *)u->files.v : nothing;
	return sba_pack_paths(pack, u->leaf, u->host_path, files, err);
}

static int ask_git(struct upload *u, struct sba_error *err)
{
	if (!u->options || !u->options->gitignore)
		return 0;
	if (!S_ISDIR(u->st.st_mode))
		return sba_fail(err, SBA_EINVAL, "'%s' is no folder: git ignores nothing in it",
				u->host_path);
	int rc = sba_git_files(u->host_path, sba_sandbox_until(u->s, GIT_MS), &u->files, err);
	if (rc == 0)
		return sba_hint(
			err, sba_fail(err, SBA_EINVAL, "'%s' is in no git work tree", u->host_path),
			"name what is to stay behind with patterns instead");
	return rc < 0 ? rc : 0;
}

static int upload(struct upload *u, const char *inside, struct sba_transfer_report *ret_report,
		  struct sba_error *err)
{
	char folder[SBA_INSIDE_PATH_MAX];
	int rc = find_folder(u, inside, folder, err);
	if (rc == 0)
		rc = ask_git(u, err);
	if (rc == 0)
		rc = send_small(u, folder, ret_report, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	const struct sba_cargo cargo = {
		.fill = fill,
		.user = u,
		.total = S_ISREG(u->st.st_mode) ? (uint64_t)u->st.st_size : 0,
	};
	return sba_send(u->s, folder, &cargo, u->options, ret_report, err);
}

int sba_sandbox_upload(struct sba_sandbox *s, const char *host_path, const char *path,
		       const struct sba_transfer_options *o, struct sba_transfer_report *ret_report,
		       struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	SBA_FREE char *real = realpath(host_path, NULL);
	struct upload u = { .s = s, .host_path = real, .options = o };
	int rc = sba_sandbox_need(s, SBA_CAN_TREES, err);
	if (rc < 0)
		return rc;
	if (!real || stat(real, &u.st) < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno, "%s",
				      host_path);
	rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = upload(&u, inside, ret_report, err);
	sba_strv_fini(&u.files);
	return rc < 0 ? sba_wrap(err, rc, "copy '%s' to %s:%s", host_path, s->info.name, path) : 0;
}

int sba_sandbox_upload_tar(struct sba_sandbox *s, sba_read_fn *read, void *user, const char *path,
			   const struct sba_transfer_options *o,
			   struct sba_transfer_report *ret_report, struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	const struct sba_cargo cargo = { .tar = read, .user = user };
	int rc = sba_sandbox_need(s, SBA_CAN_TREES, err);
	if (rc < 0)
		return rc;
	rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = look(s, inside, err);
	if (rc == 0)
		rc = sba_fail(err, SBA_EEXIST, "'%s' is not a directory", inside);
	if (rc > 0)
		rc = sba_send(s, inside, &cargo, o, ret_report, err);
	return rc < 0 ? sba_wrap(err, rc, "unpack into %s:%s", s->info.name, path) : 0;
}
