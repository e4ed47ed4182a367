/* SPDX-License-Identifier: MIT */
/*
 * The one way in. What is sent is staged in the folder that it goes to, and the
 * guest moves it in place once all of it has arrived: so nothing is ever half
 * there, and nothing is called done that is not there. The engine carries it
 * where it can reach that folder, else the guest does.
 */
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
	struct sba_channel *channel; /* the user's; NULL: none */
	struct sba_channel *root;    /* ours: where the user may not write */
	struct sba_channel_put *put;
	struct sba_pack *pack; /* of a cargo that is filled */
	struct sba_repack *repack;
	struct sba_pack_report report;
	uint64_t kept;
};

static bool no_clobber(const struct sending *j)
{
	return j->options && j->options->no_clobber;
}

/* ---- the cargo ---- */

static const char *left_out_words(const struct sending *j, enum sba_refusal why)
{
	if (why == SBA_REFUSED_SYMLINK)
		return "link that leads out";
	/* Of this host's files, all other kinds have names. */
	return why == SBA_REFUSED_OTHER && j->pack ? "socket" : sba_refusal_words(why);
}

static void on_left_out(void *user, const char *name, enum sba_refusal why)
{
	const struct sending *j = user;
	const struct sba_transfer_options *o = j->options;
	if (o && o->refused)
		o->refused(o->user, name, left_out_words(j, why));
}

static void on_progress(void *user, uint64_t bytes, uint64_t files)
{
	const struct sending *j = user;
	const struct sba_transfer_progress p = { bytes, files, j->cargo->total };
	if (j->options && j->options->progress)
		j->options->progress(j->options->user, &p);
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

static int load(struct sending *j, uint32_t uid, uint32_t gid, struct sba_error *err)
{
	const struct sba_cargo *c = j->cargo;
	const struct sba_pack_options options = {
		.uid = c->set_owner ? c->uid : uid,
		.gid = c->set_owner ? c->gid : gid,
		.fixed_mtime = -1,
		.set_id = j->options && j->options->set_id,
		.exclude = j->options ? j->options->exclude : NULL,
		.left_out = on_left_out,
		.progress = on_progress,
		.user = j,
	};
	unload(j);
	if (c->tar)
		return sba_repack_new(&options, c->tar, c->user, &j->repack, err);
	int rc = sba_pack_new(&options, &j->pack, err);
	return rc < 0 ? rc : c->fill(c->user, j->pack, err);
}

static ssize_t read_cargo(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct sending *j = user;
	return j->repack ? sba_repack_read(j->repack, buf, size, err)
			 : sba_pack_read(j->pack, buf, size, err);
}

static int put_by_engine(struct sending *j, const char *folder, struct sba_error *err)
{
	return sba_container_put(j->s->engine, j->s->container, folder, read_cargo, j, j->until,
				 err);
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

/* The user first; then with folders that root makes for him; then, for what is no
 * folder, by root. SBA_EPERM: none of it, and the engine must put it there itself. */
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
	}
	if (rc != SBA_EPERM || j->cargo->has_folders)
		return rc;
	/* A folder that is another's cannot be moved by a root without capabilities. */
	if (sba_channel_open(j->s->engine, j->s->container, "0", sba_small_until(j->s), NULL,
			     &j->root, NULL) < 0)
		return rc;
	return open_stage(j, j->root, true, err);
}

/* Whose the cargo will be: the staging folder is the user's. */
static int owner_of_stage(struct sending *j, const char *stage, uint32_t *uid, uint32_t *gid,
			  struct sba_error *err)
{
	struct sba_channel_stat st;
	if (j->root)
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
	int rc = load(j, 0, 0, err);
	if (rc == 0)
		rc = sba_channel_put_tar(j->put, read_cargo, j, j->until, err);
	return rc;
}

static int by_engine(struct sending *j, const char *stage, struct sba_error *err)
{
	uint32_t uid = 0, gid = 0;
	int rc = owner_of_stage(j, stage, &uid, &gid, err);
	if (rc == 0)
		rc = load(j, uid, gid, err);
	return rc < 0 ? rc : put_by_engine(j, stage, err);
}

static int staged(struct sending *j, struct sba_error *err)
{
	bool seen, again = false;
	const char *stage = sba_channel_put_stage(j->put, &seen);
	if (!seen && j->cargo->set_owner)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"'%s' is mounted: what comes is its user's, nobody else's",
				j->folder);
	int rc = seen ? by_engine(j, stage, err) : by_guest(j, err);
	if (rc == 0)
		rc = sba_channel_put_commit(j->put, j->until, &again, &j->kept, err);
	if (rc < 0 || !again)
		return rc;
	if (j->cargo->tar)
		return sba_fail(err, SBA_EENGINE,
				"the engine says that it is done, and nothing is "
				"there");
	rc = by_guest(j, err);
	if (rc == 0)
		rc = sba_channel_put_commit(j->put, j->until, &again, &j->kept, err);
	return rc == 0 && again ? sba_fail(err, SBA_EBROKEN, "nothing has arrived") : rc;
}

/* ---- straight into the folder, as root ---- */

static int check_arrival(struct sending *j, struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	struct sba_channel_place place;
	if (!j->channel || !j->cargo->leaf)
		return 0;
	int rc = sba_inside_join(path, j->folder, j->cargo->leaf, err);
	if (rc == 0)
		rc = sba_channel_place(j->channel, path, j->until, &place, err);
	return rc == SBA_ENOTFOUND ? sba_fail(err, SBA_EENGINE,
					      "the engine says that it is done, and nothing is at "
					      "'%s'",
					      path)
				   : rc;
}

static int check_reach(struct sending *j, struct sba_error *err)
{
	struct sba_channel_place place;
	if (no_clobber(j))
		return sba_fail(err, SBA_EUNSUPPORTED,
				"'%s': the sandbox's user may not write there, and the engine "
				"replaces what is there",
				j->folder);
	if (!j->channel)
		return sba_refuse_mounts(j->folder, err);
	int rc = sba_channel_place(j->channel, j->folder, j->until, &place, err);
	if (rc == 0 && place.other_mount)
		rc = sba_fail(err, SBA_EREFUSED,
			      "'%s' is mounted, and the sandbox's user may not write there",
			      j->folder);
	return rc;
}

static int straight(struct sending *j, struct sba_error *err)
{
	uint32_t uid, gid;
	int rc = check_reach(j, err);
	if (rc == 0 && !j->channel)
		rc = sba_sandbox_make_dir(j->s, j->folder, err);
	if (rc == 0)
		rc = sba_sandbox_owner(j->s, &uid, &gid, err);
	if (rc == 0)
		rc = load(j, uid, gid, err);
	if (rc == 0)
		rc = put_by_engine(j, j->folder, err);
	return rc < 0 ? rc : check_arrival(j, err);
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
	int rc = sba_files_channel(s, &j.hold, &j.channel, err);
	if (rc < 0)
		return rc;
	rc = j.channel ? find_stage(&j, err) : SBA_EPERM;
	if (rc == 0)
		rc = staged(&j, err);
	else if (rc == SBA_EPERM || rc == SBA_EUNSUPPORTED)
		rc = straight(&j, err);
	unload(&j);
	sba_channel_put_close(j.put);
	sba_channel_close(j.root);
	sba_hold_release(j.hold);
	if (rc == 0 && ret_report)
		tell(&j, ret_report);
	return rc;
}
