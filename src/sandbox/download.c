/* SPDX-License-Identifier: MIT */
/*
 * Files and trees out of a sandbox. Where their tar comes from is tar_way.c's;
 * archive/ judges all of it alike.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "channel/protocol.h"
#include "sandbox/tar_way.h"

enum {
	NAMES_MAX = 64 * SBA_KIB, /* of sockets */
	TOTAL_MS = 2 * 1000,      /* to find out how much there is */
	SOCKETS_MS = 5 * 1000,
	TOLD_MAX = 256 * SBA_KIB, /* of names that have been told */
	HOLES_MIN = 64 * SBA_MIB, /* that are worth while to ask the guest */
};

/* ---- what lands ---- */

struct download {
	struct sba_sandbox *s;
	const struct sba_transfer_options *options;
	struct sba_tar_way *way;
	uint64_t total;
	uint64_t refused; /* what no tar tells */
	bool unread;      /* what was asked for: its user may not read it */
	struct sba_channel_ask *census;
	bool beyond;         /* there are paths that the engine does not open */
	bool sparse;         /* most of it is holes, which the engine sends as zeros */
	bool again;          /* it comes a second time, by the guest */
	struct sba_buf told; /* names of what was refused, each with its NUL */
};

static bool is_beyond(const struct sba_tar_way *w, uint64_t name_len)
{
	size_t above = strlen(w->path) - strlen(sba_base_name(w->path));
	return above + name_len >= PATH_MAX;
}

static bool was_told(const struct download *d, const char *name)
{
	for (size_t at = 0; d->again && at < d->told.len; at += strlen(d->told.data + at) + 1) {
		if (strcmp(d->told.data + at, name) == 0)
			return true;
	}
	return false;
}

/* Once, though it may come twice. */
static void tell_refused(struct download *d, const char *name, enum sba_refusal why)
{
	if (!d->options || !d->options->refused || was_told(d, name))
		return;
	if (!d->again && d->told.len + strlen(name) < d->told.max)
		sba_buf_put(&d->told, name, strlen(name) + 1);
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
	d->sparse = all.holes >= HOLES_MIN && all.holes > all.bytes / 2 && all.locked == 0;
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		tell_refused(d, names.data + at, SBA_REFUSED_SOCKET);
}

/* An engine's tar does not tell of sockets, of holes, nor how much is to come: the guest
 * does, meanwhile, or first where somebody looks on, or a file is large. */
static void begin_census(struct download *d)
{
	const struct sba_tar_way *w = d->way;
	d->total = S_ISREG(w->mode) ? w->size : 0;
	bool file = !S_ISDIR(w->mode);
	if (!w->channel || w->by_guest || (file && w->size < HOLES_MIN))
		return;
	if (sba_channel_census_begin(w->channel, w->path, NAMES_MAX, &d->census, NULL) < 0)
		d->census = NULL;
	if (file || (d->options && d->options->progress))
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
static bool is_better_by_guest(const struct download *d)
{
	return (d->beyond || d->sparse) && !d->again;
}

static ssize_t read_way(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct download *d = user;
	ssize_t n = is_better_by_guest(d) ? 0 : sba_tar_way_read(d->way, buf, size, err);
	if (n == 0 || (d->census && sba_channel_census_is_there(d->census)))
		end_census(d, sba_until_in(SOCKETS_MS));
	return n >= 0 && is_better_by_guest(d)
		       ? sba_fail(err, SBA_EUNSUPPORTED, "the engine is not up to it")
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
	d->again = true;
	d->refused = 0;
	return sba_tar_way_by_guest(d->way, f, until, err);
}

static int come(struct download *d, const struct sba_tar_find *f, const char *dest,
		struct sba_until until, struct sba_land_report *report, struct sba_error *err)
{
	begin_census(d);
	int rc = land(d, dest, report, err);
	if (rc < 0 && is_better_by_guest(d)) {
		rc = open_again(d, f, until, err);
		if (rc == 0)
			rc = land(d, dest, report, err);
	}
	sba_tar_way_stop(d->way);
	end_census(d, sba_until_in(0));
	return rc < 0 && d->unread ? sba_inside_refuse_read(d->s, f->path, err) : rc;
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
	struct download d = { .s = s, .options = o, .told = SBA_BUF_INIT(TOLD_MAX) };
	const struct sba_tar_find find = {
		.path = inside, .contents = o && o->contents, .note = on_note, .user = &d
	};
	struct sba_land_report report = { 0 };
	struct sba_until until = sba_transfer_until(s, o ? o->timeout_ms : 0);
	int rc = sba_sandbox_need(s, SBA_CAN_TREES, err);
	if (rc == 0)
		rc = sba_inside_path(path, inside, err);
	if (rc == 0)
		rc = sba_tar_way_open(s, &find, until, &d.way, err);
	if (rc < 0 || !d.way)
		return rc;
	rc = final_name(sba_base_name(inside), host_path, find.contents, &dest, err);
	if (rc == 0)
		rc = come(&d, &find, dest.data, until, &report, err);
	sba_tar_way_close(d.way);
	sba_buf_fini(&d.told);
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
	struct download d = { .s = s, .options = o, .told = SBA_BUF_INIT(TOLD_MAX) };
	const struct sba_tar_find find = {
		.path = inside,
		.contents = o && o->contents,
		.raw = true,
		.note = on_note,
		.user = &d,
	};
	struct sba_until until = sba_transfer_until(s, o ? o->timeout_ms : 0);
	SBA_FREE char *piece = malloc(64 * (size_t)SBA_KIB);
	ssize_t n = piece ? sba_sandbox_need(s, SBA_CAN_TREES, err) : sba_fail_nomem(err);
	if (n == 0)
		n = sba_inside_path(path, inside, err);
	if (n == 0)
		n = sba_tar_way_open(s, &find, until, &d.way, err);
	if (n < 0 || !d.way)
		return (int)n;
	begin_census(&d);
	end_census(&d, sba_until_in(TOTAL_MS));
	if (is_better_by_guest(&d))
		n = open_again(&d, &find, until, err);
	while (n >= 0 && (n = read_way(&d, piece, 64 * (size_t)SBA_KIB, err)) > 0)
		n = write(user, piece, (size_t)n, err);
	sba_tar_way_close(d.way);
	end_census(&d, sba_until_in(0));
	sba_buf_fini(&d.told);
	return n < 0 ? sba_wrap(err, (int)n, "read %s:%s", s->info.name, inside) : 0;
}
