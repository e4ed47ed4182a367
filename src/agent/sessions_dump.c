/* SPDX-License-Identifier: MIT */
/*
 * A session out of a sandbox into one file, and out of it into another sandbox.
 * All of a dump is read and checked before anything is changed, and what is
 * changed is taken back where the rest fails.
 */
#include "agent/sessions.h"
#include "engine/engine.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE = 256 * SBA_KIB,
	OWNER = 1000, /* of whom it is unpacked by hand; a sandbox makes it its user's */
};

/* ---- out ---- */

/* "2.1.332 (Claude Code)", as the CLI says it itself. */
static void ask_version(const struct sba_agent *a, const struct sba_inside *in, char *ret,
			size_t size)
{
	const char *const argv[] = { a->driver->binary, "--version", NULL };
	const struct sba_inside_run r = { .argv = argv };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	char said[SBA_SAID_MAX];
	int status = 0;
	size_t n = 0;
	ret[0] = '\0';
	if (!a->driver->binary || in->run(in, &r, &out, &status, said, NULL) < 0 || status != 0)
		return;
	for (; n < out.len && n + 1 < size && isprint((unsigned char)out.data[n]); n++)
		ret[n] = out.data[n];
	ret[n] = '\0';
}

static int to_spool(void *user, const void *data, size_t len, struct sba_error *err)
{
	return sba_write_all(*(int *)user, data, len, err);
}

/* As the engine gives it: beneath the folder's own name. */
static int fetch_workspace(struct sba_agent *a, int fd, uint64_t *ret_size, struct sba_error *err)
{
	int rc = sba_sandbox_download_tar(a->sandbox, sba_sandbox_workdir(a->sandbox), to_spool,
					  &fd, NULL, err);
	off_t size = rc == 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (size < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a temporary file");
	*ret_size = (uint64_t)size;
	return rc;
}

static int repack(struct sba_dump *d, const char *folder, int from, uint64_t size,
		  struct sba_error *err)
{
	const struct sba_pack_options o = {
		.fixed_mtime = -1, .beneath = strrchr(folder, '/') + 1, .uid = OWNER, .gid = OWNER
	};
	struct sba_carry_reader reader = { .fd = from, .size = size };
	SBA_FREE char *piece = malloc(PIECE);
	struct sba_repack *r = NULL;
	struct sba_pack_report report;
	ssize_t n =
		piece ? sba_repack_new(&o, sba_carry_read, &reader, &r, err) : sba_fail_nomem(err);
	if (n < 0)
		return (int)n;
	while ((n = sba_repack_read(r, piece, PIECE, err)) > 0) {
		int rc = sba_write_all(d->workspace_fd, piece, (size_t)n, err);
		n = rc < 0 ? rc : n;
		if (rc < 0)
			break;
		d->workspace_size += (uint64_t)n;
	}
	sba_repack_report_get(r, &report);
	sba_repack_free(r);
	d->info.left_out = report.left_out;
	return (int)n;
}

static int take_workspace(struct sba_agent *a, struct sba_dump *d, struct sba_error *err)
{
	SBA_CLOSE int raw = -1;
	uint64_t size = 0;
	int rc = sba_open_unnamed(&raw, err);
	if (rc == 0)
		rc = sba_open_unnamed(&d->workspace_fd, err);
	if (rc == 0)
		rc = fetch_workspace(a, raw, &size, err);
	if (rc == 0)
		rc = repack(d, sba_sandbox_workdir(a->sandbox), raw, size, err);
	d->info.workspace = true;
	return rc == 0 ? sba_dump_look(d->workspace_fd, d->workspace_size, &d->info.files, err)
		       : rc;
}

static int describe(struct sba_agent *a, const struct sba_inside *in, const char *id,
		    struct sba_dump *d, struct sba_error *err)
{
	const struct sba_sandbox_info *s = sba_sandbox_info(a->sandbox);
	struct sba_dump_info *i = &d->info;
	snprintf(i->agent, sizeof(i->agent), "%s", a->driver->name);
	snprintf(i->image, sizeof(i->image), "%.*s", (int)sizeof(i->image) - 1, s->image);
	snprintf(i->session, sizeof(i->session), "%s", id);
	snprintf(i->workdir, sizeof(i->workdir), "%s", in->workdir);
	i->created_ms = sba_unix_ms();
	ask_version(a, in, i->cli_version, sizeof(i->cli_version));
	return sba_agent_recall(a, id, &d->memory, err);
}

/* No turn is under way: what is half said is no session. */
static int collect(struct sba_agent *a, const struct sba_dump_options *o, struct sba_dump *d,
		   struct sba_error *err)
{
	struct sba_access x = { 0 };
	const char *id = NULL;
	int rc = sba_access_enter(a, true, &x, err);
	if (rc == 0)
		rc = sba_access_id(a, o->session, &id, err);
	if (rc == 0)
		rc = x.store->dump(x.store, &x.in, id, &d->parts, err);
	if (rc == 0)
		rc = describe(a, &x.in, id, d, err);
	if (rc == 0 && o->workspace)
		rc = take_workspace(a, d, err);
	sba_access_leave(&x);
	return rc;
}

int sba_sessions_dump(struct sba_agent *a, const struct sba_dump_options *options, int fd,
		      struct sba_error *err)
{
	static const struct sba_dump_options defaults = { 0 };
	struct sba_dump d;
	sba_dump_init(&d);
	int rc = collect(a, options ? options : &defaults, &d, err);
	if (rc == 0)
		rc = sba_dump_write(&d, fd, err);
	if (rc == 0)
		sba_agent_record_session(a, "dump", d.info.session, NULL);
	sba_dump_fini(&d);
	return sba_access_wrap(a, rc, "dump a session", err);
}

/* ---- in ---- */

struct source {
	int fd;
	struct sba_until until;
};

static ssize_t read_source(void *user, void *buf, size_t size, struct sba_error *err)
{
	const struct source *s = user;
	for (;;) {
		int rc = sba_wait_fd(s->fd, POLLIN, s->until, err);
		if (rc < 0)
			return rc;
		ssize_t n = read(s->fd, buf, size);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return sba_fail_errno(err, SBA_EIO, errno, "read the dump");
	}
}

/* How it was before, for when the rest fails. */
static int undo(const struct sba_access *x, const struct sba_parts *before, const char *id,
		struct sba_error *err)
{
	return before->n > 0 ? x->store->load(x->store, &x->in, before, id, id, err)
			     : x->store->remove(x->store, &x->in, id, err);
}

static int put_workspace(struct sba_agent *a, struct sba_dump *d, struct sba_error *err)
{
	struct sba_carry_reader reader = { .fd = d->workspace_fd, .size = d->workspace_size };
	struct sba_transfer_report report = { 0 };
	if (d->workspace_fd < 0)
		return 0;
	int rc = sba_sandbox_upload_tar(a->sandbox, sba_carry_read, &reader,
					sba_sandbox_workdir(a->sandbox), NULL, &report, err);
	d->info.left_out += report.refused;
	return rc;
}

/* The session first: it is the smaller, and can be taken back. */
static int put_in(struct sba_agent *a, const struct sba_access *x, struct sba_dump *d,
		  struct sba_error *err)
{
	const char *id = d->info.session;
	struct sba_parts before = { 0 };
	struct sba_error ignored;
	int rc = x->store->dump(x->store, &x->in, id, &before, err);
	d->info.replaced = rc == 0;
	if (rc == 0 || rc == SBA_ENOTFOUND)
		rc = x->store->load(x->store, &x->in, &d->parts, id, id, err);
	if (rc < 0) {
		sba_parts_fini(&before);
		return rc == SBA_EPROTO ? sba_fail(err, SBA_EREFUSED,
						   "what the dump holds is no session of %s",
						   a->driver->name)
					: rc;
	}
	rc = put_workspace(a, d, err);
	if (rc == 0)
		rc = sba_agent_set_session(a, id, &d->memory, err);
	if (rc < 0 && undo(x, &before, id, &ignored) < 0)
		sba_log("agent", "%s", ignored.text);
	sba_parts_fini(&before);
	return rc;
}

int sba_sessions_load(struct sba_agent *a, int fd, struct sba_dump_info *ret_info,
		      struct sba_error *err)
{
	int64_t ms = sba_engine_timeouts(sba_sandbox_engine(a->sandbox))->transfer_ms;
	struct source source = { fd, sba_sandbox_until(a->sandbox, ms) };
	struct sba_access x = { 0 };
	struct sba_dump d;
	sba_dump_init(&d);
	int rc = a->driver->store ? sba_dump_read(read_source, &source, a->driver->name, &d, err)
				  : 0;
	if (rc == 0)
		rc = sba_access_enter(a, true, &x, err);
	if (rc == 0)
		rc = put_in(a, &x, &d, err);
	sba_access_leave(&x);
	if (rc == 0)
		sba_agent_record_session(a, "load", d.info.session, NULL);
	if (rc == SBA_EREFUSED && err && !err->hint[0])
		sba_hint(err, rc, "a whole one:  sandbox-agent sessions dump NAME FILE");
	if (rc == 0 && ret_info)
		*ret_info = d.info;
	sba_dump_fini(&d);
	return sba_access_wrap(a, rc, "load a session", err);
}
