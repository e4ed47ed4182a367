/* SPDX-License-Identifier: MIT */
/*
 * A container that is not ours, as a sandbox: what the engine's own exec and archives give,
 * and nothing that would need something of ours inside or beside it. It is borrowed: never
 * changed but by what is asked for, never removed.
 */
#include "sandbox/container.h"

#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "sandbox/files.h"

static struct sba_container *container_of(const struct sba_sandbox *s)
{
	return sba_sandbox_self(s);
}

/* ---- files: by commands inside, and by the engine where there is no shell ---- */

struct reading {
	struct sba_body *body;
	struct sba_until until;
};

static ssize_t read_body(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct reading *r = user;
	return sba_body_read(r->body, buf, size, r->until, err);
}

static int read_by_engine(const struct sba_container *c, const char *path, struct sba_until until,
			  sba_write_fn *write, void *user, struct sba_error *err)
{
	struct reading r = { .until = until };
	int rc = sba_container_get(c->engine, c->id, path, until, &r.body, err);
	if (rc == SBA_ENOTFOUND)
		return sba_fail(err, rc, "%s:%s: no such file", c->name, path);
	if (rc < 0)
		return rc;
	rc = sba_tar_one_stream(read_body, &r, write, user, err);
	sba_body_close(r.body);
	return rc < 0 ? sba_wrap(err, rc, "%s:%s", c->name, path) : 0;
}

static int read_file(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		     sba_write_fn *write, void *user, struct sba_error *err)
{
	const struct sba_container *c = container_of(s);
	int rc = sba_commands_read(s, path, timeout_ms, write, user, err);
	if (rc == SBA_EUNSUPPORTED)
		rc = read_by_engine(c, path,
				    timeout_ms > 0 ? sba_engine_until(c->engine, timeout_ms)
						   : sba_transfer_until(s, 0),
				    write, user, err);
	return rc;
}

static int stat_file(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		     struct sba_error *err)
{
	const struct sba_container *c = container_of(s);
	struct sba_path_stat st;
	int rc = sba_commands_stat(s, path, ret, err);
	if (rc != SBA_EUNSUPPORTED)
		return rc;
	rc = sba_container_stat(c->engine, c->id, path, sba_small_until(s), &st, err);
	if (rc == 0)
		*ret = sba_stat_of_engine(&st);
	return rc;
}

/* ---- the table ---- */

static int exec(struct sba_sandbox *s, const struct sba_exec_options *o, struct sba_process **ret,
		struct sba_error *err)
{
	return sba_container_exec(container_of(s), o, ret, err);
}

static const char *workdir(const struct sba_sandbox *s)
{
	return container_of(s)->workdir;
}

static int refuse_close(struct sba_sandbox *s, struct sba_error *err)
{
	return sba_hint(
		err,
		sba_fail(err, SBA_EREFUSED, "container '%s' is not ours: it stays", s->info.name),
		"whoever made it ends it, as in:  docker rm -f %s", s->info.name);
}

static void free_container(struct sba_container *c)
{
	free(c->name);
	free(c->workdir);
	free(c);
}

static void let_go(struct sba_sandbox *s)
{
	free_container(container_of(s));
}

static const struct sba_backend container_backend = {
	.version = SBA_BACKEND_VERSION,
	.name = "container",
	.can = SBA_CAN_STDIN | SBA_CAN_TTY | SBA_CAN_SIGNAL | SBA_CAN_USER | SBA_CAN_TREES,
	.workdir = workdir,
	.exec = exec,
	.read = read_file,
	.stat = stat_file,
	.close = refuse_close,
	.free = let_go,
};

/* ---- opening ---- */

/* Half of a sandbox has a keepalive that a foreign exec would upset. */
static int check_not_ours(const json_t *j, const char *name, struct sba_error *err)
{
	SBA_JSON json_t *labels = json_copy(sba_json_get(j, "Config.Labels"));
	if (!json_is_object(labels) || json_object_set_new(labels, "name", json_string(name)) < 0 ||
	    !sba_ours_event(labels))
		return 0;
	const char *box = name + strlen(sba_label_get(labels, "prefix")) + 1;
	size_t len = strlen(box);
	if (sba_ends_with(box, SBA_SIDECAR_SUFFIX))
		len -= strlen(SBA_SIDECAR_SUFFIX);
	return sba_hint(err, sba_fail(err, SBA_EREFUSED, "container '%s' is a sandbox's", name),
			"by the sandbox's name:  sandbox-agent exec %.*s", (int)len, box);
}

static int check_state(const json_t *j, const char *name, struct sba_error *err)
{
	const char *state = sba_json_str(j, "State.Status");
	if (sba_json_bool(j, "State.Paused", false))
		return sba_hint(err, sba_fail(err, SBA_EBROKEN, "container '%s' is paused", name),
				"go on with it:  docker unpause %s", name);
	if (sba_json_bool(j, "State.Running", false))
		return 0;
	return sba_hint(err,
			sba_fail(err, SBA_EBROKEN, "container '%s' does not run (%s)", name,
				 state ? state : "?"),
			"start it:  docker start %s", name);
}

static int make(struct sba_engine *e, const json_t *j, struct sba_container **ret,
		struct sba_error *err)
{
	const char *id = sba_json_str(j, "Id"), *name = sba_json_str(j, "Name");
	const char *folder = sba_json_str(j, "Config.WorkingDir");
	if (!id || strlen(id) >= SBA_ID_MAX || !name)
		return sba_fail(err, SBA_EPROTO, "the engine does not say which it is");
	name += name[0] == '/'; /* Podman has none in front */
	int rc = check_not_ours(j, name, err);
	if (rc == 0)
		rc = check_state(j, name, err);
	if (rc < 0)
		return rc;
	struct sba_container *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->engine = e;
	memcpy(c->id, id, strlen(id) + 1);
	c->name = strdup(name);
	c->workdir = strdup(folder && folder[0] == '/' ? folder : "/");
	if (!c->name || !c->workdir) {
		free_container(c);
		return sba_fail_nomem(err);
	}
	*ret = c;
	return 0;
}

/* What is shown of it; the rest is the engine's to tell. */
static int describe(struct sba_sandbox *s, const json_t *j)
{
	const struct {
		const char *label, *path;
	} words[] = { { SBA_LABEL "id", "Id" },
		      { SBA_LABEL "image", "Config.Image" },
		      { SBA_LABEL "user", "Config.User" } };
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		const char *value = sba_json_str(j, words[i].path);
		if (json_object_set_new(s->labels, words[i].label,
					json_string(value ? value : "")) < 0)
			return SBA_ENOMEM;
	}
	const char *state = s->info.state, *reason = s->info.reason;
	int64_t created = s->info.created;
	sba_labels_read(s->labels, &s->info);
	s->info.state = state;
	s->info.reason = reason;
	s->info.created = created;
	return 0;
}

static int give(struct sba_container *take_c, const json_t *j, struct sba_sandbox **ret,
		struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = sba_sandbox_new_of(&container_backend, take_c->name, NULL, &s, err);
	if (rc < 0) {
		free_container(take_c);
		return rc;
	}
	s->self = take_c;
	if (describe(s, j) < 0) {
		sba_sandbox_close(s);
		return sba_fail_nomem(err);
	}
	*ret = s;
	return 0;
}

int sba_sandbox_open_container(struct sba_engine *e, const char *name, struct sba_sandbox **ret,
			       struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_container *c = NULL;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return sba_fail(err, SBA_EINVAL, "container '%s': no such name", name);
	int rc = sba_container_inspect(e, name, sba_engine_until(e, SBA_ENGINE_STEP_MS), &j, err);
	if (rc == SBA_ENOTFOUND)
		return sba_hint(err, sba_fail(err, rc, "there is no container '%s'", name),
				"what there is:  docker ps");
	if (rc == 0)
		rc = make(e, j, &c, err);
	return rc < 0 || !c ? rc : give(c, j, ret, err);
}
