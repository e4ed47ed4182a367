/* SPDX-License-Identifier: MIT */
/*
 * Files and folders of the engine's machine that a sandbox sees as its own: how they
 * are written, which are refused, what the engine is told, and whether it did that.
 * An engine's socket is root on that machine, so it goes into no sandbox, however it
 * is named.
 */
#include "sandbox/making.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/files.h"

#define AS_WRITTEN "it is HOST:PATH or HOST:PATH:ro"

struct mount {
	const char *host, *path;
	bool read_only;
};

/* ---- how one is written ---- */

/* Cuts `text` up. */
static int cut(char *text, struct mount *ret, struct sba_error *err)
{
	char *path = strchr(text, ':');
	char *mode = path ? strchr(path + 1, ':') : NULL;
	if (!path || path == text || !path[1])
		return sba_hint(err, sba_fail(err, SBA_EINVAL, "mount '%s': half of it", text),
				AS_WRITTEN);
	if (mode && strcmp(mode, ":ro") != 0 && strcmp(mode, ":rw") != 0)
		return sba_hint(err, sba_fail(err, SBA_EINVAL, "mount: '%s' is no mode", mode + 1),
				AS_WRITTEN);
	*path = '\0';
	*ret = (struct mount){ text, path + 1, mode && strcmp(mode, ":ro") == 0 };
	if (mode)
		*mode = '\0';
	return 0;
}

/* Absolute, and the engine would not write it otherwise. */
static bool is_plain(const char *path)
{
	size_t len = strlen(path);
	return path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./") &&
	       !strstr(path, "/../") && !sba_ends_with(path, "/.") && !sba_ends_with(path, "/..") &&
	       (len == 1 || path[len - 1] != '/');
}

static void drop_slashes(char *path)
{
	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
}

/* ---- what is refused ---- */

/* Whether `folder` is `path` or above it. */
static bool leads_to(const char *folder, const char *path)
{
	size_t len = strlen(folder);
	return strcmp(folder, "/") == 0 ||
	       (strncmp(folder, path, len) == 0 && (!path[len] || path[len] == '/'));
}

static int check_path(const char *path, struct sba_error *err)
{
	static const char *const kept[] = { SBA_GUEST_DIR, SBA_CA_DIR, "/proc", "/sys", "/dev" };
	if (!is_plain(path))
		return sba_fail(err, SBA_EINVAL,
				"mount at '%s': an absolute path without . and .. is needed", path);
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++) {
		if (leads_to(path, kept[i]) || leads_to(kept[i], path))
			return sba_fail(err, SBA_EREFUSED,
					"mount at '%s': the sandbox needs its own %s", path,
					kept[i]);
	}
	return 0;
}

static int refuse_socket(const char *host, const char *socket, struct sba_error *err)
{
	int rc = strcmp(host, socket) == 0
			 ? sba_fail(err, SBA_EREFUSED, "mount '%s': it is an engine's socket", host)
			 : sba_fail(err, SBA_EREFUSED,
				    "mount '%s': the engine's socket %s is within reach of it",
				    host, socket);
	return sba_hint(err, rc, "whoever has the socket is root on its machine; no sandbox has");
}

/* By its name, by what that leads to, by being the same file. */
static int check_socket(const char *host, const char *socket, struct sba_error *err)
{
	struct stat one, other;
	SBA_FREE char *real = realpath(socket, NULL);
	bool same = stat(host, &one) == 0 && stat(socket, &other) == 0 &&
		    one.st_dev == other.st_dev && one.st_ino == other.st_ino;
	if (leads_to(host, socket) || (real && leads_to(host, real)) || same)
		return refuse_socket(host, socket, err);
	return 0;
}

static int check_sockets_of_users(const char *host, struct sba_error *err)
{
	static const char *const patterns[] = { "/run/user/*/docker.sock",
						"/run/user/*/podman/podman.sock" };
	glob_t found = { 0 };
	int rc = 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(patterns); i++)
		(void)!glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
		rc = check_socket(host, found.gl_pathv[i], err);
	globfree(&found);
	return rc;
}

/* A socket in a place that nobody knows can still be asked. */
static int check_answers(const char *host, struct sba_error *err)
{
	struct stat st;
	struct sba_engine *e = NULL;
	char address[SBA_INSIDE_PATH_MAX + 8];
	if (stat(host, &st) < 0 || !S_ISSOCK(st.st_mode))
		return 0;
	snprintf(address, sizeof(address), "unix://%s", host);
	if (sba_engine_open(&(struct sba_engine_options){ .host = address }, &e, NULL) < 0)
		return 0;
	sba_engine_close(e);
	return refuse_socket(host, host, err);
}

static int check_host(const struct sba_making *m, const char *host, struct sba_error *err)
{
	static const char *const sockets[] = {
		"/var/run/docker.sock",
		"/run/docker.sock",
		"/run/podman/podman.sock",
		"/run/containerd/containerd.sock",
		"/var/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/buildkit/buildkitd.sock",
	};
	const char *own = sba_engine_socket(m->engine);
	/* Through another's /proc/PID/root one gets anywhere; /sys has the engine's groups. */
	if (leads_to("/proc", host) || leads_to("/sys", host))
		return sba_fail(err, SBA_EREFUSED, "mount '%s': the machine's own %.5s", host,
				host);
	int rc = own ? check_socket(host, own, err) : 0;
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(sockets); i++)
		rc = check_socket(host, sockets[i], err);
	if (rc == 0 && own)
		rc = check_sockets_of_users(host, err);
	return rc == 0 && own ? check_answers(host, err) : rc;
}

/* ---- all of them ---- */

/* Links are followed here, so that what was looked at is what is mounted. Elsewhere
 * there is nothing to look at. */
static int real_host(const struct sba_making *m, char *host, char **ret, struct sba_error *err)
{
	if (sba_engine_socket(m->engine)) {
		*ret = realpath(host, NULL);
		return *ret ? 0 : sba_fail_errno(err, SBA_ENOTFOUND, errno, "mount '%s'", host);
	}
	drop_slashes(host);
	if (!is_plain(host))
		return sba_fail(err, SBA_EINVAL,
				"mount '%s': on another machine it must be an absolute path "
				"without . and ..",
				host);
	*ret = strdup(host);
	return *ret ? 0 : sba_fail_nomem(err);
}

/* Docker refuses what is not there. Podman (4.3 to 5.4) makes a folder of root's of it,
 * and its machine need not be the one that we see. */
static int check_there(const struct sba_making *m, const char *host, struct sba_error *err)
{
	SBA_JSON json_t *labels = NULL;
	struct sba_error why;
	if (!sba_engine_podman(m->engine))
		return 0;
	labels = json_pack("{s:s, s:s}", SBA_LABEL "prefix", m->o.prefix, SBA_LABEL "id", "mount");
	if (!labels)
		return sba_fail_nomem(err);
	int rc = sba_volume_look(m->engine, host, labels,
				 sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), &why);
	if (rc == SBA_ENOTFOUND)
		return sba_hint(err,
				sba_fail(err, rc,
					 "mount '%s': the engine's machine has no such "
					 "file or folder",
					 host),
				"make it there first");
	if (rc < 0 && err)
		*err = why;
	return rc < 0 ? sba_wrap(err, rc, "mount '%s'", host) : 0;
}

static int resolve_one(struct sba_making *m, const char *text, struct sba_error *err)
{
	SBA_FREE char *copy = strdup(text), *host = NULL;
	struct mount one = { 0 };
	int rc = copy ? cut(copy, &one, err) : sba_fail_nomem(err);
	if (rc < 0 || !one.path)
		return rc;
	drop_slashes((char *)(uintptr_t)one.path);
	rc = check_path(one.path, err);
	if (rc == 0)
		rc = real_host(m, copy, &host, err);
	if (rc == 0 && host && strchr(host, ':'))
		rc = sba_fail(err, SBA_EINVAL, "mount '%s': a ':' in it", host);
	if (rc == 0)
		rc = check_host(m, host, err);
	if (rc == 0)
		rc = check_there(m, host, err);
	return rc < 0 ? rc
		      : sba_strv_addf(&m->mounts, err, "%s:%s%s", host, one.path,
				      one.read_only ? ":ro" : "");
}

int sba_mounts_resolve(struct sba_making *m, struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && m->o.mounts && m->o.mounts[i]; i++)
		rc = resolve_one(m, m->o.mounts[i], err);
	m->o.mounts = (const char *const *)m->mounts.v;
	return rc;
}

int sba_mounts_paths(const struct sba_strv *mounts, struct sba_strv *ret, struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < mounts->n; i++) {
		struct mount one = { 0 };
		SBA_FREE char *copy = strdup(mounts->v[i]);
		rc = copy ? cut(copy, &one, err) : sba_fail_nomem(err);
		if (rc == 0)
			rc = sba_strv_add(ret, one.path, err);
	}
	return rc;
}

/* ---- what the engine is told ---- */

/* "Binds" would make a folder that is not there. What is mounted below a folder would
 * stay writable in a read-only one (before Docker 25), so it does not come along. */
static json_t *spec_of(const struct mount *one)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source", one->host, "Target",
			      one->path, "ReadOnly", one->read_only);
	if (one->read_only &&
	    json_object_set_new(j, "BindOptions", json_pack("{s:b}", "NonRecursive", true)) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

int sba_mounts_add(const struct sba_making *m, json_t *host_config, struct sba_error *err)
{
	struct mount one = { 0 };
	SBA_JSON json_t *list = json_array();
	for (size_t i = 0; i < m->mounts.n; i++) {
		SBA_FREE char *copy = strdup(m->mounts.v[i]);
		if (!copy)
			return sba_fail_nomem(err);
		int rc = cut(copy, &one, err);
		if (rc < 0)
			return rc;
		if (json_array_append_new(list, spec_of(&one)) < 0)
			return sba_fail(err, SBA_EINVAL, "mount: not valid UTF-8");
	}
	if (m->mounts.n > 0 && json_object_set(host_config, "Mounts", list) < 0)
		return sba_fail_nomem(err);
	return 0;
}

static bool is_made(const json_t *wanted, const json_t *made)
{
	size_t i;
	json_t *one;
	json_array_foreach(made, i, one)
	{
		const char *source = sba_json_str(one, "Source");
		const char *path = sba_json_str(one, "Destination");
		const char *told = sba_json_str(wanted, "Source"); /* none for a volume */
		if (path && strcmp(path, sba_json_str(wanted, "Target")) == 0)
			return source && (!told || strcmp(source, told) == 0) &&
			       sba_json_bool(one, "RW", true) !=
				       sba_json_bool(wanted, "ReadOnly", false);
	}
	return false;
}

bool sba_mounts_hold(const json_t *wanted, const json_t *made)
{
	size_t i;
	json_t *one;
	json_array_foreach(wanted, i, one)
	{
		if (!is_made(one, made))
			return false;
	}
	return true;
}
