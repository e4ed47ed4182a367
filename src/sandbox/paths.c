/* SPDX-License-Identifier: MIT */
/* Paths inside a sandbox, and what the engine and the guest say of them. */
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "sandbox/files.h"

struct sba_until sba_transfer_until(const struct sba_sandbox *s, int64_t timeout_ms)
{
	return sba_sandbox_until(s, timeout_ms > 0 ? timeout_ms
						   : sba_engine_timeouts(s->engine)->transfer_ms);
}

struct sba_until sba_small_until(const struct sba_sandbox *s)
{
	return sba_sandbox_until(s, sba_engine_timeouts(s->engine)->session_ms);
}

int64_t sba_timeout_of(struct sba_until until, int64_t none)
{
	int left = sba_until_left(until);
	return left > 0 ? left : left < 0 ? none : 1;
}

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

int sba_inside_join(char ret[SBA_INSIDE_PATH_MAX], const char *folder, const char *leaf,
		    struct sba_error *err)
{
	int n = snprintf(ret, SBA_INSIDE_PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "",
			 leaf);
	if (n < 0 || n >= SBA_INSIDE_PATH_MAX)
		return sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", folder);
	return 0;
}

/* Links are the inside's. */
bool sba_inside_under_proc(const char *path)
{
	size_t depth = 0;
	bool proc = false;
	while (*path) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		if (len == 2 && memcmp(path, "..", 2) == 0) {
			depth -= depth > 0;
		} else if (len > 0 && !(len == 1 && *path == '.')) {
			if (depth == 0)
				proc = len == 4 && memcmp(path, "proc", 4) == 0;
			depth++;
		}
		path += len;
	}
	return proc && depth > 0;
}

const char *sba_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

const char *sba_inside_split(const char *path, char ret_folder[SBA_INSIDE_PATH_MAX])
{
	const char *leaf = sba_base_name(path);
	size_t len = (size_t)(leaf - path) - 1;
	snprintf(ret_folder, SBA_INSIDE_PATH_MAX, "%.*s", len ? (int)len : 1, path);
	return leaf;
}

int sba_inside_stat(struct sba_sandbox *s, const char *path, struct sba_path_stat *ret,
		    struct sba_error *err)
{
	int rc = sba_sandbox_check_whole(s, err);
	if (rc < 0)
		return rc;
	rc = sba_container_stat(s->engine, s->container, path, sba_small_until(s), ret, err);
	if (rc < 0 && rc != SBA_ECANCELED) {
		int dead = sba_sandbox_check_alive(s, "look at a file", NULL);
		if (dead == SBA_EBROKEN)
			return sba_sandbox_check_alive(s, "look at a file", err);
	}
	return rc;
}

struct sba_file_stat sba_stat_of_engine(const struct sba_path_stat *st)
{
	return (struct sba_file_stat){ .mode = st->mode,
				       .size = st->size,
				       .mtime_ns = sba_time_ns(st->mtime, 0) };
}

/* The engine looks as root, and tells less. */
static int stat_by_engine(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
			  struct sba_error *err)
{
	struct sba_path_stat st;
	int rc = sba_inside_stat(s, path, &st, err);
	if (rc == 0)
		*ret = sba_stat_of_engine(&st);
	return rc;
}

int sba_inside_look(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		    struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	SBA_HOLD struct sba_hold *hold = NULL;
	struct sba_channel *channel = NULL;
	struct sba_channel_stat st;
	int rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = sba_files_channel(s, &hold, &channel, err);
	if (rc < 0)
		return rc;
	if (!channel)
		return stat_by_engine(s, inside, ret, err);
	rc = sba_channel_file_stat(channel, inside, true, sba_small_until(s), &st, err);
	if (rc == SBA_EPERM && s->engine)
		return stat_by_engine(s, inside, ret, err);
	if (rc == 0)
		*ret = (struct sba_file_stat){ .mode = st.mode,
					       .uid = st.uid,
					       .gid = st.gid,
					       .size = st.size,
					       .mtime_ns = st.mtime_ns };
	return rc;
}

bool sba_inside_is_folder(struct sba_sandbox *s, const char *path)
{
	SBA_HOLD struct sba_hold *hold = NULL;
	struct sba_channel *channel = NULL;
	struct sba_channel_stat st;
	return sba_files_channel(s, &hold, &channel, NULL) == 0 && channel &&
	       sba_channel_file_stat(channel, path, false, sba_small_until(s), &st, NULL) == 0 &&
	       S_ISDIR(st.mode);
}

int sba_refuse_mounts(const char *path, struct sba_error *err)
{
	static const char *const mounts[] = { "/proc", "/sys", "/dev" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(mounts); i++) {
		size_t len = strlen(mounts[i]);
		if (strncmp(path, mounts[i], len) == 0 && (!path[len] || path[len] == '/'))
			return sba_fail(err, SBA_EUNSUPPORTED,
					"path '%s': the engine does not reach %s, and there is no "
					"channel to this sandbox",
					path, mounts[i]);
	}
	return 0;
}

int sba_files_channel(struct sba_sandbox *s, struct sba_hold **ret_hold, struct sba_channel **ret,
		      struct sba_error *err)
{
	*ret = NULL;
	*ret_hold = NULL;
	int rc = sba_sandbox_check_whole(s, err);
	/* What the guest keeps of files is root's, and a carried one is not root. */
	if (rc < 0 || s->carries)
		return rc;
	rc = sba_session_hold(s->session, -1, ret_hold, err);
	if (rc == 0)
		*ret = sba_hold_channel(*ret_hold);
	return rc == SBA_EUNSUPPORTED ? 0 : rc;
}

void sba_cleanup_hold(struct sba_hold **h)
{
	sba_hold_release(*h);
}

bool sba_inside_is_unseen(struct sba_sandbox *s)
{
	struct sba_path_stat st;
	return s->engine && sba_inside_stat(s, "/", &st, NULL) == SBA_ENOTFOUND;
}

int sba_hint_mounts(const struct sba_sandbox *s, struct sba_error *err, int rc)
{
	SBA_JSON json_t *mounts = json_loads(s->info.mounts, 0, NULL);
	const char *first = sba_json_str(mounts, "#0");
	return first ? sba_hint(err, rc, "is the source of a mount gone?  %s%s", first,
				json_array_size(mounts) > 1 ? ", …" : "")
		     : rc;
}

int sba_inside_refuse_read(const struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	int rc = sba_fail(err, SBA_EREFUSED,
			  "the sandbox's user may not read '%s', and the engine does not see it",
			  path);
	return sba_hint_mounts(s, err, rc);
}
