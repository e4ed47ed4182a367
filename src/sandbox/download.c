/* SPDX-License-Identifier: MIT */
/*
 * Files and trees out of a sandbox. The engine yields most of it, as root; what
 * it does not see (tmpfs, volumes, /proc) comes from the guest, as the
 * sandbox's user. archive/ judges all of it alike.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "channel/protocol.h"
#include "sandbox/files.h"

enum {
	NAMES_MAX = 64 * SBA_KIB, /* of sockets */
	TOTAL_MS = 2 * 1000,      /* to find out how much there is */
	SOCKETS_MS = 5 * 1000,
};

/* ---- where it comes from ---- */

struct sba_tar_way {
	struct sba_hold *hold;
	struct sba_channel *channel; /* may be NULL */
	bool by_guest;
	struct sba_channel_tar *tar;
	struct sba_ahead *ahead;
	struct sba_commands_tar inside; /* where there is neither */
	uint32_t mode;
	uint64_t size;
	char path[SBA_INSIDE_PATH_MAX]; /* real */
};

static int not_there(const struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	return sba_fail(err, SBA_ENOTFOUND, "%s:%s: no such file or directory", s->info.name, path);
}

static int judge_place(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
		       struct sba_error *err)
{
	if (S_ISLNK(w->mode))
		return sba_hint(
			err,
			sba_fail(err, SBA_EREFUSED, "%s:%s is a symbolic link", s->info.name, path),
			"copy what it leads to: %s:%s/.", s->info.name, path);
	if (!S_ISREG(w->mode) && !S_ISDIR(w->mode))
		return sba_fail(err, SBA_EREFUSED, "%s:%s: only files and directories are copied",
				s->info.name, path);
	return strcmp(w->path, "/")
		       ? 0
		       : sba_fail(err, SBA_EREFUSED, "the sandbox's whole root is not copied");
}

static int look_by_engine(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
			  struct sba_error *err)
{
	struct sba_path_stat st = { 0 };
	int rc = w->channel ? 0 : sba_refuse_mounts(path, err);
	if (rc == 0)
		rc = sba_inside_stat(s, path, &st, err);
	if (rc < 0)
		return rc;
	w->mode = st.mode;
	w->size = (uint64_t)st.size;
	return 0;
}

static int look_by_commands(struct sba_sandbox *s, struct sba_tar_way *w, const char *path,
			    struct sba_error *err)
{
	struct sba_file_stat st;
	int rc = sba_sandbox_stat(s, path, &st, err);
	if (rc < 0)
		return rc;
	w->mode = st.mode;
	w->size = (uint64_t)st.size;
	return 0;
}

static int look(struct sba_sandbox *s, struct sba_tar_way *w, const char *path, bool contents,
		struct sba_error *err)
{
	struct sba_channel_place place;
	char asked[SBA_INSIDE_PATH_MAX];
	snprintf(w->path, sizeof(w->path), "%s", path);
	int rc = contents ? sba_inside_join(asked, path, ".", err) : 0;
	if (rc == 0)
		rc = sba_files_channel(s, &w->hold, &w->channel, err);
	if (rc < 0)
		return rc;
	if (!w->channel && !s->engine)
		return look_by_commands(s, w, path, err);
	if (!w->channel)
		return look_by_engine(s, w, path, err);
	rc = sba_channel_place(w->channel, contents ? asked : path, sba_small_until(s), &place,
			       err);
	if (s->engine && (rc == SBA_EUNSUPPORTED || (rc == 0 && place.unseen)))
		return look_by_engine(s, w, path, err);
	if (rc < 0)
		return rc;
	snprintf(w->path, sizeof(w->path), "%s", place.path);
	w->mode = place.stat.mode;
	w->size = (uint64_t)place.stat.size;
	w->by_guest = !s->engine || place.other_mount || (place.mounts_below && S_ISDIR(w->mode));
	return 0;
}

static int open_by_engine(struct sba_sandbox *s, struct sba_tar_way *w, const char *tar_path,
			  struct sba_until until, struct sba_error *err)
{
	struct sba_body *body;
	int rc = sba_container_get(s->engine, s->container, tar_path,
				   sba_until_sooner(until, SBA_TRANSFER_STALL_MS), &body, err);
	return rc < 0 ? rc : sba_ahead_open(body, until, &w->ahead, err);
}

static int open_by_guest(struct sba_tar_way *w, const char *tar_path, const struct sba_tar_find *f,
			 struct sba_until until, struct sba_error *err)
{
	const struct sba_channel_tar_options o = { tar_path, f->note, f->user };
	return sba_channel_tar_open(w->channel, &o, until, &w->tar, err);
}

static int open_tar(struct sba_sandbox *s, struct sba_tar_way *w, const struct sba_tar_find *f,
		    struct sba_until until, struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	int rc = 0;
	snprintf(path, sizeof(path), "%s", w->path);
	if (f->contents && f->raw)
		rc = sba_inside_join(path, w->path, ".", err);
	if (rc == 0 && !w->channel && !s->engine)
		return sba_commands_tar(s, path, &w->inside, err);
	if (rc == 0 && !w->by_guest) {
		rc = open_by_engine(s, w, path, until, err);
		/* The guest has seen it: some engines know fewer mounts than others. */
		w->by_guest = rc == SBA_ENOTFOUND && w->channel;
	}
	if (w->by_guest && (rc == 0 || rc == SBA_ENOTFOUND))
		rc = open_by_guest(w, path, f, until, err);
	return rc;
}

int sba_tar_way_open(struct sba_sandbox *s, const struct sba_tar_find *f, struct sba_until until,
		     struct sba_tar_way **ret, struct sba_error *err)
{
	struct sba_tar_way *w = calloc(1, sizeof(*w));
	if (!w)
		return sba_fail_nomem(err);
	int rc = sba_sandbox_check_path(s, f->path, err);
	if (rc == 0)
		rc = look(s, w, f->path, f->contents, err);
	if (rc == SBA_ENOTFOUND)
		rc = not_there(s, f->path, err);
	if (rc == 0)
		rc = judge_place(s, w, f->path, err);
	if (rc == 0 && f->contents && !S_ISDIR(w->mode))
		rc = sba_fail(err, SBA_ENOTFOUND, "%s:%s is not a directory", s->info.name,
			      f->path);
	if (rc == 0)
		rc = open_tar(s, w, f, until, err);
	if (rc < 0) {
		sba_tar_way_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

ssize_t sba_tar_way_read(void *way, void *buf, size_t size, struct sba_error *err)
{
	struct sba_tar_way *w = way;
	if (w->inside.process)
		return sba_commands_tar_read(&w->inside, buf, size, err);
	return w->tar ? sba_channel_tar_read(w->tar, buf, size, err)
		      : sba_ahead_read(w->ahead, buf, size, err);
}

/* At once, also in the middle: until then the engine locks the container. */
static void stop(struct sba_tar_way *w)
{
	sba_ahead_close(sba_move(&w->ahead));
	sba_channel_tar_close(sba_move(&w->tar));
	sba_process_free(sba_move(&w->inside.process));
}

void sba_tar_way_close(struct sba_tar_way *w)
{
	if (!w)
		return;
	stop(w);
	sba_hold_release(w->hold);
	free(w);
}

/* ---- what lands ---- */

struct download {
	struct sba_sandbox *s;
	const struct sba_transfer_options *options;
	struct sba_tar_way *way;
	uint64_t total;
	uint64_t refused; /* what no tar tells */
	bool unread;      /* what was asked for: its user may not read it */
	struct sba_channel_ask *census;
	bool beyond; /* there are paths that the engine does not open */
	bool again;  /* it comes a second time, by the guest */
};

static bool is_beyond(const struct sba_tar_way *w, uint64_t name_len)
{
	size_t above = strlen(w->path) - strlen(sba_base_name(w->path));
	return above + name_len >= PATH_MAX;
}

static void tell_refused(struct download *d, const char *name, enum sba_refusal why)
{
	/* The engine's tar has told of the others before. */
	if (d->again && why != SBA_REFUSED_UNREADABLE && !is_beyond(d->way, strlen(name)))
		return;
	if (d->options && d->options->refused)
		d->options->refused(d->options->user, name, why);
}

static void on_refused(void *user, const char *name, enum sba_refusal why)
{
	tell_refused(user, name, why);
}

static void on_note(void *user, const char *name, int why)
{
	struct download *d = user;
	d->refused++;
	d->unread |= why == SBA_NOTE_UNREADABLE && strcmp(name, sba_base_name(d->way->path)) == 0;
	tell_refused(d, name, why == SBA_NOTE_SOCKET ? SBA_REFUSED_SOCKET : SBA_REFUSED_UNREADABLE);
}

static void on_progress(void *user, uint64_t bytes, uint64_t files)
{
	const struct download *d = user;
	/* What has grown meanwhile is not more than all. */
	const struct sba_transfer_progress p = { bytes, files,
						 d->total && bytes > d->total ? bytes : d->total };
	d->options->progress(d->options->user, &p);
}

static void end_census(struct download *d, struct sba_until until)
{
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(NAMES_MAX);
	struct sba_channel_census all;
	if (!d->census ||
	    sba_channel_census_end(sba_move(&d->census), until, &all, &names, NULL) < 0)
		return;
	d->total = all.bytes;
	d->refused += all.sockets;
	d->beyond = is_beyond(d->way, all.longest);
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		tell_refused(d, names.data + at, SBA_REFUSED_SOCKET);
}

/* An engine's tar does not tell of sockets, nor how much is to come: the guest
 * does, meanwhile, or first where somebody looks on. */
static void begin_census(struct download *d)
{
	const struct sba_tar_way *w = d->way;
	d->total = S_ISREG(w->mode) ? w->size : 0;
	if (!w->channel || w->by_guest || !S_ISDIR(w->mode))
		return;
	if (sba_channel_census_begin(w->channel, w->path, NAMES_MAX, &d->census, NULL) < 0)
		d->census = NULL;
	if (d->options && d->options->progress)
		end_census(d, sba_until_in(TOTAL_MS));
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An existing folder receives what comes under its own name, as cp does. */
static int final_name(const char *name, const char *host_path, bool contents, struct sba_buf *ret,
		      struct sba_error *err)
{
	sba_buf_puts(ret, host_path);
	if (!contents && is_directory(host_path)) {
		if (!sba_ends_with(host_path, "/"))
			sba_buf_putc(ret, '/');
		sba_buf_puts(ret, name);
	}
	return sba_buf_check(ret, "path", err);
}

/* Docker (20.10 at least) leaves out without a word what lies too deep to be opened by
 * its whole path. */
static ssize_t read_way(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct download *d = user;
	ssize_t n = d->beyond && !d->again ? 0 : sba_tar_way_read(d->way, buf, size, err);
	if (n == 0)
		end_census(d, sba_until_in(SOCKETS_MS));
	return n == 0 && d->beyond && !d->again
		       ? sba_fail(err, SBA_EUNSUPPORTED, "there are paths too long for the engine")
		       : n;
}

static int land(struct download *d, const char *dest, struct sba_land_report *report,
		struct sba_error *err)
{
	const struct sba_transfer_options *o = d->options;
	const struct sba_tar_way *w = d->way;
	struct sba_land_options options = {
		.source_name = sba_base_name(w->path),
		.dest = dest,
		.merge = S_ISDIR(w->mode),
		.refused = on_refused,
		.user = d,
	};
	if (o) {
		options.replace = o->replace;
		options.no_clobber = o->no_clobber;
		options.exclude = o->exclude;
		options.max_bytes = o->max_bytes;
		options.max_entries = o->max_entries;
		options.max_depth = o->max_depth;
		options.progress = o->progress ? on_progress : NULL;
	}
	return sba_land(&options, read_way, d, report, err);
}

/* The guest opens one folder after the other. */
static int open_again(struct download *d, const struct sba_tar_find *f, struct sba_until until,
		      struct sba_error *err)
{
	stop(d->way);
	d->again = d->way->by_guest = true;
	d->refused = 0;
	return open_tar(d->s, d->way, f, until, err);
}

static int come(struct download *d, const struct sba_tar_find *f, const char *dest,
		struct sba_until until, struct sba_land_report *report, struct sba_error *err)
{
	begin_census(d);
	int rc = land(d, dest, report, err);
	if (rc < 0 && d->beyond) {
		rc = open_again(d, f, until, err);
		if (rc == 0)
			rc = land(d, dest, report, err);
	}
	stop(d->way);
	end_census(d, sba_until_in(0));
	return rc < 0 && d->unread
		       ? sba_fail(err, SBA_EREFUSED,
				  "the sandbox's user may not read it, and the engine does not "
				  "see it")
		       : rc;
}

static void fill_report(const struct download *d, const struct sba_land_report *r,
			struct sba_transfer_report *ret)
{
	*ret = (struct sba_transfer_report){
		.files = r->files,
		.directories = r->directories,
		.bytes = r->bytes,
		.refused = d->refused,
		.kept = r->kept,
	};
	for (size_t i = 0; i < SBA_REFUSED_KINDS; i++)
		ret->refused += r->refused[i];
}

int sba_sandbox_download(struct sba_sandbox *s, const char *path, const char *host_path,
			 const struct sba_transfer_options *o,
			 struct sba_transfer_report *ret_report, struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	SBA_BUF struct sba_buf dest = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	struct download d = { .s = s, .options = o };
	const struct sba_tar_find find = {
		.path = inside, .contents = o && o->contents, .note = on_note, .user = &d
	};
	struct sba_land_report report = { 0 };
	struct sba_until until = sba_transfer_until(s, o ? o->timeout_ms : 0);
	int rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = sba_tar_way_open(s, &find, until, &d.way, err);
	if (rc < 0 || !d.way)
		return rc;
	rc = final_name(sba_base_name(inside), host_path, find.contents, &dest, err);
	if (rc == 0)
		rc = come(&d, &find, dest.data, until, &report, err);
	sba_tar_way_close(d.way);
	if (rc < 0)
		return sba_wrap(err, rc, "copy %s:%s to '%s'", s->info.name, inside, dest.data);
	if (ret_report)
		fill_report(&d, &report, ret_report);
	return 0;
}

int sba_sandbox_download_tar(struct sba_sandbox *s, const char *path, sba_write_fn *write,
			     void *user, const struct sba_transfer_options *o,
			     struct sba_error *err)
{
	char inside[SBA_INSIDE_PATH_MAX];
	struct download d = { .s = s, .options = o };
	const struct sba_tar_find find = {
		.path = inside,
		.contents = o && o->contents,
		.raw = true,
		.note = on_note,
		.user = &d,
	};
	struct sba_until until = sba_transfer_until(s, o ? o->timeout_ms : 0);
	SBA_FREE char *piece = malloc(64 * (size_t)SBA_KIB);
	ssize_t n = piece ? sba_inside_path(path, inside, err) : sba_fail_nomem(err);
	if (n == 0)
		n = sba_tar_way_open(s, &find, until, &d.way, err);
	if (n < 0 || !d.way)
		return (int)n;
	begin_census(&d);
	end_census(&d, sba_until_in(TOTAL_MS));
	if (d.beyond)
		n = open_again(&d, &find, until, err);
	while (n >= 0 && (n = read_way(&d, piece, 64 * (size_t)SBA_KIB, err)) > 0)
		n = write(user, piece, (size_t)n, err);
	sba_tar_way_close(d.way);
	end_census(&d, sba_until_in(0));
	return n < 0 ? sba_wrap(err, (int)n, "read %s:%s", s->info.name, inside) : 0;
}
