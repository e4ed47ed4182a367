/* SPDX-License-Identifier: MIT */
/*
 * Children of a sandbox: new ones of the same image, with what changed in the
 * parent copied into each. No image is ever committed: it would keep the
 * parent's environment and labels, and fill the engine's disk.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "sandbox/image_changes.h"
#include "sandbox/files.h"
#include "sandbox/making.h"
#include "sandbox/session.h"

enum {
	FORK_MS = 5 * 60 * 1000,
	CHILDREN_MAX = 64,
	NUMBERS_MAX = 1000, /* of names that are tried */
	READS = 3,          /* of what changes while it is read */
};

/* As of a download; the parent is distrusted. */
static const uint64_t spool_max = 64ULL * SBA_KIB * SBA_MIB;

struct fork_job {
	struct sba_sandbox *parent;
	struct sba_fork_options o;
	struct sba_until until;
	struct sba_sandbox_options make; /* of every child but for the name */
	json_t *inspect;                 /* of the parent; lends to make */
	struct sba_strv allow, program, mounts;
	char ca_path[64];
	int ca_fd;
	atomic_int number; /* the next one for a name */
	/* what the children get */
	struct sba_image_changes changes;
	struct sba_owners owners; /* of an engine that does not tell them */
	int spool_fd;
	uint64_t spool_size;
	struct sba_fork_report report;
};

struct child {
	struct fork_job *job;
	size_t index;
	struct sba_sandbox *sandbox;
	int rc;
	struct sba_error err; /* of a failure only; what was tried before may be in it */
};

/* ---- the settings of the parent ---- */

static int read_words(const char *label, struct sba_strv *ret, struct sba_error *err)
{
	size_t i;
	json_t *word, *list = NULL;
	int rc = *label ? sba_json_parse(label, strlen(label), "label", &list, err) : 0;
	json_array_foreach(list, i, word)
	{
		const char *text = json_string_value(word);
		if (rc == 0)
			rc = text ? sba_strv_add(ret, text, err)
				  : sba_fail(err, SBA_EPROTO, "label '%s': not ours", label);
	}
	json_decref(list);
	return rc;
}

/* The bundle of the parent as a file here, without a name. */
static int copy_ca(struct fork_job *j, struct sba_error *err)
{
	SBA_BUF struct sba_buf ca = SBA_BUF_INIT(SBA_CONFIG_MAX);
	int rc = sba_sandbox_read_small(j->parent, SBA_CA_PATH, SBA_CONFIG_MAX, &ca, err);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc < 0)
		return rc;
	j->ca_fd = memfd_create("ca", MFD_CLOEXEC);
	if (j->ca_fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a file in memory");
	snprintf(j->ca_path, sizeof(j->ca_path), "/proc/self/fd/%d", j->ca_fd);
	j->make.ca_file = j->ca_path;
	return sba_write_all(j->ca_fd, ca.data ? ca.data : "", ca.len, err);
}

static const char *or_null(const char *s)
{
	return *s ? s : NULL;
}

/* The name may mean another image by now. */
static const char *image_of(struct fork_job *j)
{
	SBA_JSON json_t *image = NULL;
	const char *id = sba_json_str(j->inspect, "Image"), *name = j->parent->info.image;
	struct sba_until until = sba_engine_until(j->parent->engine, SBA_ENGINE_STEP_MS);
	if (sba_image_inspect(j->parent->engine, name, until, &image, NULL) < 0)
		return id;
	const char *now = sba_json_str(image, "Id");
	return id && (!now || strcmp(id, now) != 0) ? id : name;
}

static int read_settings(struct fork_job *j, struct sba_error *err)
{
	const struct sba_sandbox_info *i = &j->parent->info;
	int rc = sba_container_inspect(j->parent->engine, j->parent->container, j->until,
				       &j->inspect, err);
	if (rc == 0)
		rc = sba_label_words(i->allow, &j->allow, err);
	if (rc == 0)
		rc = read_words(i->program, &j->program, err);
	if (rc == 0)
		rc = read_words(i->mounts, &j->mounts, err);
	if (rc < 0)
		return rc;
	const json_t *host = json_object_get(j->inspect, "HostConfig");
	j->make = (struct sba_sandbox_options){
		.prefix = i->prefix,
		.image = image_of(j),
		.user = or_null(i->user),
		.agent = or_null(i->agent),
		.program = (const char *const *)j->program.v,
		.provider = or_null(i->provider),
		.base_url = or_null(i->base_url),
		.key_env = or_null(i->key_env),
		.model = or_null(i->model),
		.max_tokens = i->max_tokens,
		.max_requests = i->max_requests,
		.permissions = or_null(i->permissions),
		.mcp = or_null(i->mcp),
		.network = or_null(i->network),
		.env = j->o.env,
		.keepalive_ms = i->keepalive_ms ? i->keepalive_ms : -1,
		.max_lifetime_ms = i->max_lifetime_ms ? i->max_lifetime_ms : -1,
		.memory = sba_json_int(host, "Memory", 0),
		.cpus = (double)sba_json_int(host, "NanoCpus", 0) / 1e9,
		.pids = sba_json_int(host, "PidsLimit", 0),
		.max_sandboxes = j->o.max_sandboxes,
		.allow = (const char *const *)j->allow.v,
		.mounts = (const char *const *)j->mounts.v,
		.runtime =
			sba_engine_podman(j->parent->engine) ? NULL : sba_json_str(host, "Runtime"),
	};
	return copy_ca(j, err);
}

/* ---- what changed ---- */

struct archive_reader {
	struct sba_body *body;
	struct sba_until until;
};

static ssize_t read_archive(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct archive_reader *r = user;
	return sba_body_read(r->body, buf, size, r->until, err);
}

/* The name in the archive of the folder that holds `path`. */
static void parent_name(const char *path, char ret[SBA_INSIDE_PATH_MAX])
{
	snprintf(ret, SBA_INSIDE_PATH_MAX, "%s", path + 1);
	char *slash = strrchr(ret, '/');
	*(slash ? slash : ret) = '\0';
}

static int fetch_once(struct fork_job *j, struct sba_carry *carry, const char *path,
		      struct sba_error *err)
{
	char prefix[SBA_INSIDE_PATH_MAX];
	struct archive_reader r = { .until = j->until };
	int rc = sba_container_get(j->parent->engine, j->parent->container, path, r.until, &r.body,
				   err);
	if (rc < 0)
		return rc;
	parent_name(path, prefix);
	rc = sba_carry_tar(carry, prefix, read_archive, &r, err);
	sba_body_close(r.body);
	return rc;
}

/* A file that grows or goes while the engine packs it breaks the tar. */
static int fetch(struct fork_job *j, struct sba_carry *carry, const char *path,
		 struct sba_error *err)
{
	struct sba_error why = { 0 };
	int rc = -1;
	/* The kernel takes no such path, nor does the engine. */
	if (strlen(path) >= SBA_INSIDE_PATH_MAX) {
		j->report.left_out++;
		return 0;
	}
	for (int i = 0; rc < 0 && i < READS; i++) {
		rc = fetch_once(j, carry, path, &why);
		if (rc == SBA_ENOTFOUND) {
			j->report.left_out++;
			return 0;
		}
		if (rc != SBA_EPROTO && rc != SBA_ELOST)
			break;
	}
	if (rc < 0 && err)
		*err = why;
	return rc < 0 ? sba_wrap(err, rc, "copy %s", path) : 0;
}

/* Mode and owner of a folder of the image; what its user cannot see stays as the
 * image has it. */
static int note_folder(struct fork_job *j, struct sba_carry *carry, const char *path,
		       struct sba_error *err)
{
	struct sba_hold *hold = NULL;
	struct sba_channel_stat st;
	int rc = sba_session_hold(j->parent->session, -1, &hold, NULL);
	if (rc == 0)
		rc = sba_channel_file_stat(sba_hold_channel(hold), path, false, j->until, &st,
					   NULL);
	sba_hold_release(hold);
	if (rc < 0 || !S_ISDIR(st.mode))
		return 0;
	const struct sba_carry_directory dir = {
		.name = path + 1,
		.mode = st.mode & 07777,
		.uid = st.uid,
		.gid = st.gid,
		.mtime = st.mtime_ns / 1000000000,
	};
	return sba_carry_dir(carry, &dir, err);
}

/* Folders are noted, files fetched; what has gone is neither. */
static int settle_modified(struct fork_job *j, struct sba_error *err)
{
	struct sba_image_changes *c = &j->changes;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < c->modified.n; i++) {
		const char *path = c->modified.v[i];
		struct sba_path_stat st;
		rc = sba_container_stat(j->parent->engine, j->parent->container, path, j->until,
					&st, err);
		if (rc == SBA_ENOTFOUND)
			rc = 0;
		else if (rc == 0)
			rc = sba_strv_add(S_ISDIR(st.mode) ? &c->folders : &c->fetch, path, err);
	}
	return rc;
}

typedef int take_fn(struct fork_job *j, struct sba_carry *carry, const char *path,
		    struct sba_error *err);

static int take_each(struct fork_job *j, struct sba_carry *carry, const struct sba_strv *paths,
		     take_fn *take, struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < paths->n; i++)
		rc = take(j, carry, paths->v[i], err);
	return rc;
}

/* What the workspace was like: a child's changes are told against the same. Parents
 * of which nothing is kept are most. */
static int take_kept(struct fork_job *j, struct sba_carry *carry, struct sba_error *err)
{
	struct sba_path_stat st;
	int rc = sba_container_stat(j->parent->engine, j->parent->container, SBA_KEPT_DIR, j->until,
				    &st, NULL);
	return rc < 0 ? 0 : fetch(j, carry, SBA_KEPT_DIR, err);
}

/* Podman's archives (4.3 to 5.4) give every file to the container's user. */
static int learn_owners(struct fork_job *j, struct sba_carry *carry, struct sba_error *err)
{
	SBA_STRV struct sba_strv paths = { 0 };
	int rc = 0;
	if (!sba_engine_podman(j->parent->engine))
		return 0;
	for (size_t i = 0; rc == 0 && i < j->changes.fetch.n; i++)
		rc = sba_strv_add(&paths, j->changes.fetch.v[i], err);
	if (rc == 0)
		rc = sba_strv_add(&paths, SBA_KEPT_DIR, err);
	if (rc == 0)
		rc = sba_owners_ask(j->parent, &paths, &j->owners, err);
	if (rc == 0)
		sba_carry_set_owners(carry, sba_owners_tell, &j->owners);
	return rc;
}

static int fill_spool(struct fork_job *j, struct sba_error *err)
{
	struct sba_carry *carry = NULL;
	struct sba_carry_report r;
	const struct sba_image_changes *c = &j->changes;
	int rc = sba_carry_new(j->spool_fd, spool_max, &carry, err);
	if (rc < 0)
		return rc;
	rc = settle_modified(j, err);
	if (rc == 0)
		rc = learn_owners(j, carry, err);
	if (rc == 0)
		rc = take_each(j, carry, &c->folders, note_folder, err);
	if (rc == 0)
		rc = take_each(j, carry, &c->fetch, fetch, err);
	sba_carry_report_get(carry, &r);
	if (rc == 0)
		rc = take_kept(j, carry, err);
	if (rc == 0)
		rc = sba_carry_end(carry, &j->spool_size, err);
	sba_carry_free(carry);
	j->report.files = r.files;
	j->report.bytes = r.bytes;
	j->report.left_out += r.left_out;
	j->report.deleted = c->deleted.n;
	return rc;
}

/* A login is its sandbox's alone: as what is mounted, it is passed over. */
static int leave_login(const struct fork_job *j, const json_t *changes, struct sba_strv *passed,
		       struct sba_error *err)
{
	const char *login = j->parent->info.login;
	size_t i, len = strlen(login);
	const json_t *one;
	int rc = 0;
	json_array_foreach(changes, i, one)
	{
		const char *path = sba_json_str(one, "Path");
		size_t path_len = path ? strlen(path) : 0;
		if (rc == 0 && len && path_len > len && path[path_len - len - 1] == '/' &&
		    strcmp(path + path_len - len, login) == 0)
			rc = sba_strv_add(passed, path, err);
	}
	return rc;
}

/* One download for all children, in a file without a name. */
static int download(struct fork_job *j, struct sba_error *err)
{
	SBA_JSON json_t *list = NULL;
	SBA_STRV struct sba_strv mounted = { 0 };
	int rc = sba_container_changes(j->parent->engine, j->parent->container, j->until, &list,
				       err);
	if (rc == 0)
		rc = sba_mounts_paths(&j->mounts, &mounted, err);
	if (rc == 0)
		rc = leave_login(j, list, &mounted, err);
	if (rc == 0)
		rc = sba_image_changes_parse(list, (const char *const *)mounted.v, &j->changes,
					     err);
	if (rc < 0)
		return rc;
	rc = sba_open_unnamed(&j->spool_fd, err);
	return rc < 0 ? rc : fill_spool(j, err);
}

/* ---- one child ---- */

static bool name_child(struct child *c, char name[SBA_NAME_MAX])
{
	const struct sba_fork_options *o = &c->job->o;
	int n;
	if (o->name && o->count == 1)
		n = snprintf(name, SBA_NAME_MAX, "%s", o->name);
	else if (o->name)
		n = snprintf(name, SBA_NAME_MAX, "%s-%zu", o->name, c->index + 1);
	else
		n = snprintf(name, SBA_NAME_MAX, "%s-%d", c->job->parent->info.name,
			     atomic_fetch_add(&c->job->number, 1));
	return n > 0 && n < SBA_NAME_MAX;
}

/* Names that are taken are passed over, unless they were asked for. */
static void *make_child(void *user)
{
	struct child *c = user;
	struct fork_job *j = c->job;
	char name[SBA_NAME_MAX];
	struct sba_sandbox_options o = j->make;
	o.name = name;
	do {
		if (name_child(c, name))
			c->rc = sba_sandbox_create(j->parent->engine, &o, &c->sandbox, &c->err);
		else
			c->rc = sba_fail(&c->err, SBA_EINVAL, "name '%s…': too long", name);
	} while (c->rc == SBA_EEXIST && !j->o.name && atomic_load(&j->number) < NUMBERS_MAX);
	return NULL;
}

static void *fill_child(void *user)
{
	struct child *c = user;
	struct fork_job *j = c->job;
	struct sba_carry_reader r = { .fd = j->spool_fd, .size = j->spool_size };
	c->rc = sba_container_put(j->parent->engine, c->sandbox->container, "/", sba_carry_read, &r,
				  j->until, &c->err);
	if (c->rc == 0)
		c->rc = sba_image_changes_remove(c->sandbox, &j->changes.deleted, &c->err);
	if (c->rc < 0)
		sba_wrap(&c->err, c->rc, "sandbox '%s'", c->sandbox->info.name);
	return NULL;
}

/* ---- all of them ---- */

/* Runs it for each child on a thread of its own; `meanwhile` in this one. */
static int for_each(struct child *v, size_t n, void *(*run)(void *),
		    int (*meanwhile)(struct fork_job *j, struct sba_error *err),
		    struct sba_error *err)
{
	pthread_t threads[CHILDREN_MAX];
	bool started[CHILDREN_MAX] = { false };
	int rc = 0;
	for (size_t i = 0; i < n; i++)
		started[i] = sba_thread_start(&threads[i], run, &v[i], NULL) == 0;
	if (meanwhile)
		rc = meanwhile(v->job, err);
	for (size_t i = 0; i < n; i++) {
		if (started[i])
			pthread_join(threads[i], NULL);
		else
			run(&v[i]);
	}
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = v[i].rc;
		if (rc < 0 && err)
			*err = v[i].err;
	}
	return rc;
}

static void roll_back(struct child *v, size_t n, int rc, struct sba_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!v[i].sandbox)
			continue;
		if (sba_sandbox_remove(v[i].sandbox, NULL) < 0)
			sba_hint(err, rc,
				 "a child could not be removed; later:  sandbox-agent rm %s",
				 v[i].sandbox->info.name);
		sba_sandbox_close(v[i].sandbox);
	}
}

static int fork_all(struct fork_job *j, struct sba_sandbox **ret, struct sba_error *err)
{
	struct child v[CHILDREN_MAX] = { 0 };
	size_t n = j->o.count;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct child){ .job = j, .index = i };
	int rc = for_each(v, n, make_child, download, err);
	if (rc == 0)
		rc = for_each(v, n, fill_child, NULL, err);
	if (rc < 0) {
		roll_back(v, n, rc, err);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = v[i].sandbox;
	return 0;
}

static void job_fini(struct fork_job *j)
{
	sba_cleanup_close(&j->ca_fd);
	sba_cleanup_close(&j->spool_fd);
	sba_image_changes_fini(&j->changes);
	sba_owners_fini(&j->owners);
	sba_strv_fini(&j->allow);
	sba_strv_fini(&j->program);
	sba_strv_fini(&j->mounts);
	json_decref(j->inspect);
}

int sba_docker_fork(struct sba_sandbox *parent, const struct sba_fork_options *options,
		    struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		    struct sba_error *err)
{
	static const struct sba_fork_options defaults = { 0 };
	struct fork_job j = { .parent = parent, .ca_fd = -1, .spool_fd = -1, .number = 1 };
	j.o = options ? *options : defaults;
	j.o.count = j.o.count ? j.o.count : 1;
	j.until = sba_engine_until(parent->engine, j.o.timeout_ms ? j.o.timeout_ms : FORK_MS);
	int rc = sba_sandbox_check_whole(parent, err);
	if (rc == 0 && j.o.count > CHILDREN_MAX)
		rc = sba_fail(err, SBA_EINVAL, "%zu children: at most %d at a time", j.o.count,
			      CHILDREN_MAX);
	if (rc == 0)
		rc = sba_sandbox_check_alive(parent, "fork", err);
	if (rc == 0)
		rc = read_settings(&j, err);
	if (rc == 0)
		rc = fork_all(&j, ret, err);
	if (rc == 0 && ret_report)
		*ret_report = j.report;
	job_fini(&j);
	return rc < 0 ? sba_wrap(err, rc, "fork sandbox '%s'", parent->info.name) : 0;
}
