/* SPDX-License-Identifier: MIT */
/*
 * Files in and out of a sandbox by the engine's archive endpoint. What comes
 * out is judged by archive/; what goes in belongs to the sandbox's user.
 */
#include "sandbox/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "sandbox/files.h"

enum {
	PASSWD_MAX = SBA_MIB,
	SMALL_FILE_MS = 30 * 1000,
};

struct sba_until sba_transfer_until(const struct sba_sandbox *s,
				    const struct sba_transfer_options *o)
{
	return sba_engine_until(s->engine, o && o->timeout_ms > 0
						   ? o->timeout_ms
						   : sba_engine_timeouts(s->engine)->transfer_ms);
}

/* ---- paths inside ---- */

int sba_inside_path(const char *path, char ret[SBA_INSIDE_PATH_MAX], struct sba_error *err)
{
	if (path[0] != '/')
		return sba_fail(err, SBA_EINVAL, "path '%s': it must begin with '/'", path);
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len >= SBA_INSIDE_PATH_MAX)
		return sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", path);
	memcpy(ret, path, len);
	ret[len] = '\0';
	return 0;
}

/* The engine's archive endpoint takes these for folders of the image: what is
 * put there arrives beneath the mount, where nobody sees it. */
static int refuse_mounts(const char *path, struct sba_error *err)
{
	static const char *const mounts[] = { "/proc", "/sys", "/dev" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(mounts); i++) {
		size_t len = strlen(mounts[i]);
		if (strncmp(path, mounts[i], len) == 0 && (!path[len] || path[len] == '/'))
			return sba_fail(err, SBA_EUNSUPPORTED,
					"path '%s': files cannot be copied to or from %s", path,
					mounts[i]);
	}
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int inside_stat(struct sba_sandbox *s, const char *path, struct sba_path_stat *ret,
		       struct sba_error *err)
{
	int rc = sba_sandbox_check_whole(s, err);
	if (rc < 0)
		return rc;
	rc = sba_container_stat(s->engine, s->container, path,
				sba_engine_until(s->engine, SMALL_FILE_MS), ret, err);
	if (rc < 0 && rc != SBA_ECANCELED) {
		int dead = sba_sandbox_check_alive(s, "look at a file", NULL);
		if (dead == SBA_EBROKEN)
			return sba_sandbox_check_alive(s, "look at a file", err);
	}
	return rc;
}

/* ---- the user's ids ---- */

/* A line "name:x:uid:gid:…" of passwd for a name or uid. */
static bool passwd_find(const char *text, const char *user, int64_t *uid, int64_t *gid)
{
	size_t user_len = strlen(user);
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char fields[4][64] = { { 0 } };
		const char *at = line;
		for (int i = 0; i < 4; i++) {
			size_t len = strcspn(at, ":\n");
			snprintf(fields[i], sizeof(fields[i]), "%.*s", (int)(len < 63 ? len : 63),
				 at);
			at += len + (at[len] == ':');
		}
		bool match = strlen(fields[0]) == user_len && strcmp(fields[0], user) == 0;
		match = match || strcmp(fields[2], user) == 0;
		if (match && sba_parse_int(fields[2], 0, UINT32_MAX, uid) == 0 &&
		    sba_parse_int(fields[3], 0, UINT32_MAX, gid) == 0)
			return true;
	}
	return false;
}

static int user_of(struct sba_sandbox *s, char ret[128], struct sba_error *err)
{
	if (*s->info.user) {
		snprintf(ret, 128, "%s", s->info.user);
		return 0;
	}
	SBA_JSON json_t *j = NULL;
	int rc = sba_container_inspect(s->engine, s->container,
				       sba_engine_until(s->engine, SMALL_FILE_MS), &j, err);
	if (rc < 0)
		return rc;
	const char *user = sba_json_str(j, "Config.User");
	snprintf(ret, 128, "%s", user && *user ? user : "0:0");
	return 0;
}

/* "1000:1000" as it stands; a name or a lone uid by the sandbox's own passwd,
 * which may lie, but only about its own files. */
int sba_sandbox_owner(struct sba_sandbox *s, uint32_t *uid, uint32_t *gid, struct sba_error *err)
{
	char user[128];
	int rc = user_of(s, user, err);
	if (rc < 0)
		return rc;
	char *colon = strchr(user, ':');
	int64_t u = 0, g = 0;
	if (colon)
		*colon = '\0';
	bool numeric = sba_parse_int(user, 0, UINT32_MAX, &u) == 0;
	if (numeric && (u == 0 || (colon && sba_parse_int(colon + 1, 0, UINT32_MAX, &g) == 0))) {
		*uid = (uint32_t)u;
		*gid = (uint32_t)g;
		return 0;
	}
	SBA_BUF struct sba_buf passwd = SBA_BUF_INIT(PASSWD_MAX);
	if (sba_sandbox_read_small(s, "/etc/passwd", PASSWD_MAX, &passwd, NULL) < 0 ||
	    !passwd_find(passwd.data ? passwd.data : "", user, &u, &g)) {
		if (!numeric)
			return sba_fail(err, SBA_ENOTFOUND,
					"user '%s' is not in the sandbox's passwd", user);
		g = 0;
	}
	*uid = (uint32_t)u;
	*gid = (uint32_t)g;
	return 0;
}

/* ---- small files ---- */

struct body_reader {
	struct sba_body *body;
	struct sba_until until;
	const struct sba_transfer_options *options;
};

static ssize_t read_body(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct body_reader *r = user;
	return sba_body_read(r->body, buf, size, r->until, err);
}

int sba_sandbox_read_small(struct sba_sandbox *s, const char *path, size_t max, struct sba_buf *ret,
			   struct sba_error *err)
{
	struct body_reader r = { .until = sba_engine_until(
					 s->engine, sba_engine_timeouts(s->engine)->session_ms) };
	int rc = sba_sandbox_check_whole(s, err);
	if (rc == 0)
		rc = sba_container_get(s->engine, s->container, path, r.until, &r.body, err);
	if (rc < 0)
		return rc;
	rc = sba_tar_one_file(read_body, &r, max, ret, err);
	sba_body_close(r.body);
	return rc < 0 ? sba_wrap(err, rc, "read '%s'", path) : 0;
}

int sba_sandbox_write_files(struct sba_sandbox *s, const struct sba_small_file *files, size_t n,
			    struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = -1 };
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = sba_pack_bytes(pack, files[i].path + 1, files[i].data, files[i].len,
				    files[i].mode, err);
	if (rc == 0)
		rc = sba_container_put(
			s->engine, s->container, "/", sba_pack_read, pack,
			sba_engine_until(s->engine, sba_engine_timeouts(s->engine)->session_ms),
			err);
	sba_pack_free(pack);
	return rc;
}

int sba_sandbox_write_small(struct sba_sandbox *s, const char *path, const void *data, size_t len,
			    uint32_t mode, struct sba_error *err)
{
	const struct sba_small_file file = { path, data, len, mode };
	int rc = sba_sandbox_write_files(s, &file, 1, err);
	return rc < 0 ? sba_wrap(err, rc, "write '%s'", path) : 0;
}

/* ---- download ---- */

static const char *refusal_words(enum sba_refusal why)
{
	switch (why) {
	case SBA_REFUSED_SYMLINK:
		return "symbolic link";
	case SBA_REFUSED_DEVICE:
		return "device";
	case SBA_REFUSED_FIFO:
		return "fifo";
	case SBA_REFUSED_NAME:
		return "unsafe name";
	case SBA_REFUSED_DUPLICATE:
		return "appears twice";
	case SBA_REFUSED_OTHER:
	case SBA_REFUSED_KINDS:
		break;
	}
	return "neither file nor directory";
}

static void on_refused(void *user, const char *name, enum sba_refusal why)
{
	const struct sba_transfer_options *o = ((struct body_reader *)user)->options;
	if (o && o->refused)
		o->refused(o->user, name, refusal_words(why));
}

static void on_progress(void *user, uint64_t bytes, uint64_t files)
{
	const struct sba_transfer_options *o = ((struct body_reader *)user)->options;
	if (o && o->progress)
		o->progress(o->user, bytes, files);
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An existing folder receives what comes under its own name, as cp does. */
static int final_name(const char *name, const char *host_path, struct sba_buf *ret,
		      struct sba_error *err)
{
	sba_buf_puts(ret, host_path);
	if (is_directory(host_path)) {
		if (!sba_ends_with(host_path, "/"))
			sba_buf_putc(ret, '/');
		sba_buf_puts(ret, name);
	}
	return sba_buf_check(ret, "path", err);
}

static int land(struct sba_sandbox *s, const char *path, const char *dest,
		const struct sba_transfer_options *o, struct sba_land_report *report,
		struct sba_error *err)
{
	struct body_reader r = { .until = sba_transfer_until(s, o), .options = o };
	int rc = sba_container_get(s->engine, s->container, path, r.until, &r.body, err);
	if (rc < 0)
		return rc;
	const struct sba_land_options options = {
		.source_name = base_name(path),
		.dest = dest,
		.replace = o && o->replace,
		.refused = on_refused,
		.progress = on_progress,
		.user = &r,
	};
	rc = sba_land(&options, read_body, &r, report, err);
	/* At once, also in the middle: until then the engine locks the container. */
	sba_body_close(r.body);
	return rc;
}

int sba_sandbox_download(struct sba_sandbox *s, const char *path, const char *host_path,
			 const struct sba_transfer_options *o,
			 struct sba_transfer_report *ret_report, struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	struct sba_path_stat st;
	int rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = refuse_mounts(inside, err);
	if (rc == 0 && strcmp(inside, "/") == 0)
		rc = sba_fail(err, SBA_EREFUSED, "the sandbox's whole root is not copied");
	if (rc == 0)
		rc = inside_stat(s, inside, &st, err);
	if (rc == SBA_ENOTFOUND)
		return sba_fail(err, SBA_ENOTFOUND, "%s:%s: no such file or directory",
				s->info.name, inside);
	if (rc == 0 && !S_ISREG(st.mode) && !S_ISDIR(st.mode))
		rc = sba_fail(err, SBA_EREFUSED, "%s:%s: only files and directories are copied out",
			      s->info.name, inside);
	SBA_BUF struct sba_buf dest = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	if (rc == 0)
		rc = final_name(base_name(inside), host_path, &dest, err);
	if (rc < 0)
		return rc;
	struct sba_land_report report = { 0 };
	rc = land(s, inside, dest.data, o, &report, err);
	if (rc < 0)
		return sba_wrap(err, rc, "copy %s:%s to '%s'", s->info.name, inside, dest.data);
	if (ret_report) {
		*ret_report = (struct sba_transfer_report){
			.files = report.files,
			.directories = report.directories,
			.bytes = report.bytes,
		};
		for (size_t i = 0; i < SBA_REFUSED_KINDS; i++)
			ret_report->refused += report.refused[i];
	}
	return 0;
}

/* ---- upload ---- */

/* Engine 20.10 answers 500, without a word, for a path that leads through a
 * file; the search for what exists then meets that file. */
static bool may_be_missing(int stat_rc)
{
	return stat_rc == SBA_ENOTFOUND || stat_rc == SBA_EENGINE;
}

int sba_inside_place(struct sba_sandbox *s, const char *path, struct sba_inside_place *ret,
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
		int rc = inside_stat(s, *parent ? parent : "/", &st, err);
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

int sba_inside_pack(struct sba_sandbox *s, const struct sba_inside_place *place,
		    const struct sba_transfer_options *o, struct sba_pack **ret, char *ret_name,
		    struct sba_error *err)
{
	struct sba_pack_options options = { .fixed_mtime = -1 };
	int rc = sba_sandbox_owner(s, &options.uid, &options.gid, err);
	if (o) {
		options.progress = o->progress;
		options.user = o->user;
	}
	struct sba_pack *pack = NULL;
	if (rc == 0)
		rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = pack_missing(pack, place->missing, err);
	if (rc < 0) {
		sba_pack_free(pack);
		return rc;
	}
	snprintf(ret_name, 2 * SBA_INSIDE_PATH_MAX, "%s%s%s", place->missing,
		 *place->missing ? "/" : "", place->leaf);
	*ret = pack;
	return 0;
}

int sba_inside_send(struct sba_sandbox *s, const struct sba_inside_place *place,
		    struct sba_pack *take_pack, const struct sba_transfer_options *o,
		    struct sba_transfer_report *ret_report, struct sba_error *err)
{
	int rc = sba_container_put(s->engine, s->container, place->parent, sba_pack_read, take_pack,
				   sba_transfer_until(s, o), err);
	struct sba_pack_report report;
	sba_pack_report_get(take_pack, &report);
	sba_pack_free(take_pack);
	if (rc == 0 && ret_report)
		*ret_report = (struct sba_transfer_report){
			.files = report.files,
			.directories = report.directories,
			.symlinks = report.symlinks,
			.bytes = report.bytes,
			.refused = report.left_out,
		};
	return rc;
}

int sba_sandbox_make_dir(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	struct sba_inside_place place = { .parent = "" };
	char below[SBA_INSIDE_PATH_MAX], name[2 * SBA_INSIDE_PATH_MAX];
	struct sba_pack *pack = NULL;
	/* The place of something in it: what that misses is made. */
	snprintf(below, sizeof(below), "%s/.", path);
	int rc = sba_inside_place(s, below, &place, err);
	if (rc < 0 || !*place.missing)
		return rc;
	rc = sba_inside_pack(s, &place, NULL, &pack, name, err);
	if (rc == 0)
		rc = sba_inside_send(s, &place, pack, NULL, NULL, err);
	return rc < 0 ? sba_wrap(err, rc, "make '%s'", path) : 0;
}

static int upload(struct sba_sandbox *s, const char *host_path, const char *inside,
		  const struct sba_transfer_options *o, struct sba_transfer_report *ret_report,
		  struct sba_error *err)
{
	struct sba_inside_place place = { .parent = "" };
	char name[2 * SBA_INSIDE_PATH_MAX];
	struct sba_pack *pack = NULL;
	int rc = sba_inside_place(s, inside, &place, err);
	if (rc == 0)
		rc = sba_inside_pack(s, &place, o, &pack, name, err);
	if (rc == 0) {
		rc = sba_pack_path(pack, name, host_path, err);
		if (rc < 0)
			sba_pack_free(pack);
	}
	if (rc == 0)
		rc = sba_inside_send(s, &place, pack, o, ret_report, err);
	return rc;
}

int sba_sandbox_upload(struct sba_sandbox *s, const char *host_path, const char *path,
		       const struct sba_transfer_options *o, struct sba_transfer_report *ret_report,
		       struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	SBA_FREE char *real = realpath(host_path, NULL);
	if (!real)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno, "%s",
				      host_path);
	struct sba_path_stat st;
	int rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = refuse_mounts(inside, err);
	if (rc == 0)
		rc = inside_stat(s, inside, &st, err);
	if (rc == 0 && S_ISDIR(st.mode)) {
		size_t len = strlen(inside);
		int n = snprintf(inside + len, sizeof(inside) - len, "%s%s",
				 inside[len - 1] == '/' ? "" : "/", base_name(real));
		if (n < 0 || (size_t)n >= sizeof(inside) - len)
			rc = sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", path);
	} else if (may_be_missing(rc)) {
		rc = 0;
	}
	if (rc == 0)
		rc = upload(s, real, inside, o, ret_report, err);
	return rc < 0 ? sba_wrap(err, rc, "copy '%s' to %s:%s", host_path, s->info.name, path) : 0;
}
