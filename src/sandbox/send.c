/* SPDX-License-Identifier: MIT */
/*
 * The one way in. What is sent is staged in the folder that it goes to, and the
 * guest moves it in place once all of it has arrived: so nothing is ever half
 * there, and nothing is called done that is not there. The engine carries it
 * where it can reach that folder, else the guest does.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "sandbox/files.h"

/* One sending, and its cargo while it is on its way. */
struct sending {
	struct sba_sandbox *s;
	const char *folder;
	const struct sba_cargo *cargo;
	const struct sba_transfer_options *options;
	struct sba_until until;
	struct sba_hold *hold;
	struct sba_channel *channel; /* the user's */
	struct sba_channel *other;   /* of the folder's owner: where the user may not write */
	struct sba_channel_put *put;
	struct sba_pack *pack; /* of a cargo that is filled */
	struct sba_repack *repack;
	struct sba_pack_report report;
	const char *stage; /* that the engine unpacks into; NULL: the guest unpacks */
	bool begun;        /* some of the cargo has been read */
	uint64_t kept;
	uint32_t other_gid;
	struct sba_dress dress; /* of what the folder's owner moves in place */
};

enum {
	DIRS_MAX = 16 * SBA_MIB,
	ENGINE_HOLES_MAX = 16 * SBA_MIB, /* of a file: the engine fills them all */
};

static bool no_clobber(const struct sending *j)
{
	return j->options && j->options->no_clobber;
}

/* ---- the cargo ---- */

static void on_left_out(void *user, const char *name, enum sba_refusal why)
{
	const struct sending *j = user;
	const struct sba_transfer_options *o = j->options;
	if (o && o->refused)
		o->refused(o->user, name, why);
}

static void on_progress(void *user, uint64_t bytes, uint64_t files)
{
	const struct sending *j = user;
	const struct sba_transfer_progress p = { bytes, files, j->cargo->total };
	if (j->options && j->options->progress)
		j->options->progress(j->options->user, &p);
}

static void on_directory(void *user, const char *name, uint32_t mode, int64_t mtime)
{
	struct sending *j = user;
	sba_dress_note(&j->dress, name, mode, mtime);
}

static void unload(struct sending *j)
{
	if (j->pack)
		sba_pack_report_get(j->pack, &j->report);
	if (j->repack)
		sba_repack_report_get(j->repack, &j->report);
	sba_pack_free(sba_move(&j->pack));
	sba_repack_free(sba_move(&j->repack));
}

/* Where it could go instead. */
static int hint_elsewhere(const struct sending *j, int rc, struct sba_error *err)
{
	return sba_hint(err, rc, "the sandbox's user may write in %s and /tmp",
			sba_sandbox_workdir(j->s));
}

/* What the guest unpacks is its user's. */
static int check_guests_way(const struct sending *j, struct sba_error *err)
{
	if (j->other) {
		int rc = sba_fail(err, SBA_EREFUSED,
				  "'%s' is mounted, and the sandbox's user may not write there",
				  j->folder);
		return sba_hint(err, rc,
				"let him write there, by the folder's owner and mode on the host, "
				"or choose %s or /tmp",
				sba_sandbox_workdir(j->s));
	}
	if (j->cargo->set_owner)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"'%s' is mounted: what comes is its user's, nobody else's",
				j->folder);
	return 0;
}

/* The engine opens whole paths, and writes holes out. */
static void limit_to_engine(const struct sending *j, struct sba_pack_options *o)
{
	if (!j->stage)
		return;
	o->name_max = PATH_MAX - 1 - strlen(j->stage) - 1;
	if (check_guests_way(j, NULL) == 0)
		o->hole_max = ENGINE_HOLES_MAX;
}

static int load(struct sending *j, uint32_t uid, uint32_t gid, struct sba_error *err)
{
	const struct sba_cargo *c = j->cargo;
	struct sba_pack_options options = {
		.uid = c->set_owner ? c->uid : uid,
		.gid = c->set_owner ? c->gid : gid,
		.fixed_mtime = -1,
		.set_id = j->options && j->options->set_id,
		.exclude = j->options ? j->options->exclude : NULL,
		.left_out = on_left_out,
		.progress = on_progress,
		.set_dir_gid = j->other != NULL,
		.dir_gid = j->other_gid,
		.directory = j->other ? on_directory : NULL,
		.user = j,
	};
	unload(j);
	limit_to_engine(j, &options);
	sba_buf_reset(&j->dress.dirs);
	if (c->tar)
		return sba_repack_new(&options, c->tar, c->user, &j->repack, err);
	int rc = sba_pack_new(&options, &j->pack, err);
	return rc < 0 ? rc : c->fill(c->user, j->pack, err);
}

static ssize_t read_cargo(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct sending *j = user;
	j->begun = true;
	return j->repack ? sba_repack_read(j->repack, buf, size, err)
			 : sba_pack_read(j->pack, buf, size, err);
}

/* ---- staged ---- */

static int open_stage(struct sending *j, struct sba_channel *c, bool make, struct sba_error *err)
{
	const struct sba_channel_put_options o = {
		.folder = j->folder,
		.make = make,
		.replace = !no_clobber(j),
		.no_clobber = no_clobber(j),
	};
	return sba_channel_put_open(c, &o, j->until, &j->put, err);
}

/* Whose a folder is, for the one who may not write in it: mostly root. */
static void owner_of(struct sending *j, uint32_t *uid, uint32_t *gid)
{
	struct sba_channel_stat st = { 0 };
	if (sba_channel_file_stat(j->channel, j->folder, true, j->until, &st, NULL) < 0)
		st = (struct sba_channel_stat){ 0 };
	*uid = st.uid;
	*gid = st.gid;
}

static int open_other(struct sending *j, struct sba_error *err)
{
	char user[32];
	uint32_t uid;
	struct sba_error why = { 0 };
	owner_of(j, &uid, &j->other_gid);
	snprintf(user, sizeof(user), "%u:%u", uid, j->other_gid);
	int rc = sba_channel_open(j->s->engine, j->s->container, user, sba_small_until(j->s), NULL,
				  &j->other, err);
	if (rc < 0)
		return rc;
	rc = open_stage(j, j->other, true, &why);
	if (rc == SBA_EPERM) {
		rc = sba_fail_errno(
			err, SBA_EREFUSED, why.sys_errno,
			"'%s': neither the sandbox's user nor its owner may write there",
			j->folder);
		return why.sys_errno == EROFS
			       ? sba_hint(
					 err, rc,
					 "if it is a mount, make the sandbox without its ':ro'; or "
					 "choose %s or /tmp",
					 sba_sandbox_workdir(j->s))
			       : hint_elsewhere(j, rc, err);
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* The user first; then with folders that root makes for him; then the owner of the
 * folder. */
static int find_stage(struct sending *j, struct sba_error *err)
{
	struct sba_channel_place place;
	int rc = open_stage(j, j->channel, true, err);
	if (rc != SBA_EPERM && rc != SBA_ENOTFOUND)
		return rc;
	if (sba_channel_place(j->channel, j->folder, j->until, &place, NULL) == SBA_ENOTFOUND) {
		rc = sba_sandbox_make_dir(j->s, j->folder, err);
		if (rc == 0)
			rc = open_stage(j, j->channel, false, err);
	} else if (rc == SBA_ENOTFOUND) { /* as /proc answers */
		rc = sba_fail(err, SBA_EREFUSED, "'%s': nothing can be made there", j->folder);
		hint_elsewhere(j, rc, err);
	}
	return rc == SBA_EPERM && j->s->engine ? open_other(j, err) : rc;
}

/* Whose the cargo will be: the user's staging folder is his. */
static int owner_of_cargo(struct sending *j, const char *stage, uint32_t *uid, uint32_t *gid,
			  struct sba_error *err)
{
	struct sba_channel_stat st;
	if (j->other)
		return sba_sandbox_owner(j->s, uid, gid, err);
	int rc = sba_channel_file_stat(j->channel, stage, false, j->until, &st, err);
	if (rc < 0)
		return rc;
	*uid = st.uid;
	*gid = st.gid;
	return 0;
}

/* Owners are not set on this way: it is for folders of other mounts. */
static int by_guest(struct sending *j, struct sba_error *err)
{
	j->stage = NULL;
	int rc = load(j, 0, 0, err);
	if (rc == 0)
		rc = sba_channel_put_tar(j->put, read_cargo, j, j->until, err);
	return rc;
}

static int by_engine(struct sending *j, const char *stage, struct sba_dress_owner *ret,
		     struct sba_error *err)
{
	j->stage = stage;
	int rc = owner_of_cargo(j, stage, &ret->uid, &ret->gid, err);
	if (rc == 0)
		rc = load(j, ret->uid, ret->gid, err);
	if (rc == 0)
		rc = sba_container_put(j->s->engine, j->s->container, stage, read_cargo, j,
				       j->until, err);
	if (rc == 0 && j->other)
		rc = sba_dress_keep_new(&j->dress, j->other, j->folder, j->until, err);
	return rc;
}

static bool sent_nothing(const struct sending *j)
{
	return j->report.files + j->report.directories + j->report.symlinks == 0;
}

/* The engine says that it is done, and the guest has found nothing. */
static int once_more(struct sending *j, struct sba_error *err)
{
	bool again;
	if (j->cargo->tar && sent_nothing(j))
		return 0;
	if (j->cargo->tar)
		return sba_fail(err, SBA_EENGINE,
				"the engine says that it is done, and nothing is "
				"there");
	int rc = check_guests_way(j, err);
	if (rc == 0)
		rc = by_guest(j, err);
	if (rc == 0)
		rc = sba_channel_put_commit(j->put, j->until, &again, &j->kept, err);
	return rc == 0 && again ? sba_fail(err, SBA_EBROKEN, "nothing has arrived") : rc;
}

/* The engine has found no stage, which the guest has made. */
static int not_found(const struct sending *j, int rc, struct sba_error *err)
{
	rc = sba_fail(err, rc, "the engine does not see '%s', which is there", j->folder);
	return sba_hint_mounts(j->s, err, rc);
}

/* What the engine cannot do, the guest may; *err says what the engine could not. */
static int after_engine(struct sending *j, int failed, struct sba_error *err)
{
	unload(j);
	bool whole = !j->cargo->tar || !j->begun;
	if (failed != SBA_ENOTFOUND && !j->report.unfit)
		return failed;
	if (!whole || check_guests_way(j, NULL) < 0)
		return failed == SBA_ENOTFOUND ? not_found(j, failed, err) : failed;
	sba_channel_put_close(sba_move(&j->put)); /* with what the engine has unpacked */
	int rc = open_stage(j, j->channel, false, err);
	return rc < 0 ? rc : by_guest(j, err);
}

static int staged(struct sending *j, struct sba_error *err)
{
	bool seen, again = false;
	struct sba_dress_owner owner = { .until = j->until };
	const char *stage = sba_channel_put_stage(j->put, &seen);
	seen = seen && j->s->engine;
	int rc = seen ? 0 : check_guests_way(j, err);
	if (rc == 0)
		rc = seen ? by_engine(j, stage, &owner, err) : by_guest(j, err);
	if (rc < 0 && seen)
		rc = after_engine(j, rc, err);
	if (rc == 0)
		rc = sba_channel_put_commit(j->put, j->until, &again, &j->kept, err);
	if (rc == 0 && again)
		return once_more(j, err);
	return rc == 0 && j->other ? sba_dress_put(&j->dress, j->s, j->folder, &owner, err) : rc;
}

/* Neither channel nor engine: the backend's own way, else a program inside. */
static int by_table(struct sending *j, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(j->s);
	const struct sba_tree_options o = { .timeout_ms = sba_timeout_of(j->until, 0),
					    .no_clobber = no_clobber(j) };
	int rc = load(j, 0, 0, err);
	return rc < 0 ? rc
		      : (b->upload ? b->upload : sba_commands_put)(j->s, j->folder, read_cargo, j,
								   &o, err);
}

/* What is another's in a sticky folder, the folder's owner may replace; nothing has
 * moved yet. */
static int staged_by_either(struct sending *j, struct sba_error *err)
{
	struct sba_error why = { 0 };
	int rc = staged(j, &why);
	if (rc == SBA_EREFUSED && why.sys_errno == EPERM && !j->other && !j->cargo->tar) {
		sba_channel_put_close(sba_move(&j->put));
		rc = open_other(j, &why);
		if (rc == 0)
			rc = staged(j, &why);
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}

static int by_any(struct sending *j, struct sba_error *err)
{
	if (sba_backend_of(j->s)->upload)
		return by_table(j, err);
	int rc = sba_files_channel(j->s, &j->hold, &j->channel, err);
	if (rc == 0 && !j->channel && j->s->engine)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"there is no channel to it, and nobody else who could put it in "
				"place whole");
	if (rc == 0 && !j->channel)
		return by_table(j, err);
	if (rc == 0)
		rc = find_stage(j, err);
	return rc == 0 ? staged_by_either(j, err) : rc;
}

static void tell(const struct sending *j, struct sba_transfer_report *ret)
{
	*ret = (struct sba_transfer_report){
		.files = j->report.files,
		.directories = j->report.directories,
		.symlinks = j->report.symlinks,
		.bytes = j->report.bytes,
		.refused = j->report.left_out,
		.kept = j->kept,
	};
}

int sba_send(struct sba_sandbox *s, const char *folder, const struct sba_cargo *cargo,
	     const struct sba_transfer_options *o, struct sba_transfer_report *ret_report,
	     struct sba_error *err)
{
	struct sending j = {
		.s = s,
		.folder = folder,
		.cargo = cargo,
		.options = o,
		.until = sba_transfer_until(s, o ? o->timeout_ms : 0),
	};
	sba_buf_init(&j.dress.dirs, DIRS_MAX);
	int rc = sba_sandbox_check_path(s, folder, err);
	if (rc == 0)
		rc = by_any(&j, err);
	unload(&j);
	sba_channel_put_close(j.put);
	sba_channel_close(j.other);
	sba_hold_release(j.hold);
	sba_buf_fini(&j.dress.dirs);
	if (rc == 0 && ret_report)
		tell(&j, ret_report);
	return rc;
}
