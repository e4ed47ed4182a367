/* SPDX-License-Identifier: MIT */
/*
 * The judge of what may land: every name, type, size and count in a tar that
 * a sandbox has made is taken for an attack until it has been checked here.
 * How things are created is place.c's.
 */
#include "archive/private.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	MODE_KEPT = 0777, /* no set-id, no sticky */
	TELL_BYTES = SBA_MIB,
	TELL_FILES = 64,
};
static const uint64_t BYTES_DEFAULT = 64ULL << 30;
static const uint64_t ENTRIES_DEFAULT = 4000000;

struct landing {
	struct sba_land_options options; /* with the defaults filled in */
	struct sba_tar_in *in;
	struct sba_place place;
	struct sba_land_report report, told;
	uint64_t entries;
	bool matched; /* something bore the asked name */
	enum sba_refusal last_refusal;
	char rel[SBA_LAND_PATH_MAX];  /* of the current entry */
	char link[SBA_LAND_PATH_MAX]; /* of what its hard link names */
};

/* Refusing one entry is no failure: always 0. */
static int refuse(struct landing *l, struct archive_entry *entry, enum sba_refusal why)
{
	const char *name = archive_entry_pathname(entry);
	l->report.refused[why]++;
	l->last_refusal = why;
	if (l->options.refused)
		l->options.refused(l->options.user, name ? name : "", why);
	return 0;
}

static void tell(struct landing *l, bool now)
{
	const struct sba_land_report *r = &l->report;
	bool due = r->bytes - l->told.bytes >= TELL_BYTES || r->files - l->told.files >= TELL_FILES;
	if (!l->options.progress || !(due || now))
		return;
	l->told = *r;
	l->options.progress(l->options.user, r->bytes, r->files);
}

/* ---- names ---- */

/* Whether a name in the tar is, or lies beneath, the asked one. */
static bool is_asked(const struct landing *l, const char *name)
{
	size_t n = strlen(l->options.source_name);
	return strncmp(name, l->options.source_name, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

/* Strips the asked name and, for directories, one '/' at the end. */
static bool relative(const struct landing *l, const char *name, char ret[SBA_LAND_PATH_MAX])
{
	char whole[SBA_LAND_PATH_MAX];
	size_t len = strnlen(name, sizeof(whole));
	if (len == sizeof(whole) || !is_asked(l, name))
		return false;
	if (len > 0 && name[len - 1] == '/')
		len--;
	memcpy(whole, name, len);
	whole[len] = '\0';
	int components = sba_path_components(whole);
	if (components == 0 || components - 1 > l->options.max_depth)
		return false;
	const char *rel = whole + strlen(l->options.source_name);
	rel += *rel == '/';
	memcpy(ret, rel, strlen(rel) + 1);
	return true;
}

/* ---- one entry ---- */

static struct sba_attributes attributes_of(struct archive_entry *entry)
{
	struct sba_attributes a = {
		.mode = archive_entry_perm(entry) & MODE_KEPT,
		.mtime = { .tv_nsec = UTIME_OMIT },
	};
	long nsec = archive_entry_mtime_nsec(entry);
	if (archive_entry_mtime_is_set(entry)) {
		a.mtime.tv_sec = archive_entry_mtime(entry);
		a.mtime.tv_nsec = nsec >= 0 && nsec < 1000000000L ? nsec : 0;
	}
	return a;
}

/* For errors: the top has no name beneath itself. */
static const char *name_of(const struct landing *l)
{
	return *l->rel ? l->rel : l->options.source_name;
}

static int no_place(const struct landing *l, int e, struct sba_error *err)
{
	int rc = sba_fail_errno(err, e == ENOMEM ? SBA_ENOMEM : SBA_EIO, e, "create '%s'",
				*l->rel ? l->rel : l->options.dest);
	if (e == EACCES || e == EPERM)
		return sba_hint(err, rc, "choose a folder that you may write in");
	if (e == EROFS || e == ENOSPC || e == EDQUOT)
		return sba_hint(err, rc, "choose a folder of another file system");
	return rc;
}

/* What creating has answered: a reason to refuse the entry, or a failure. */
static int not_created(struct landing *l, struct archive_entry *entry, int e, struct sba_error *err)
{
	switch (e) {
	case EEXIST:
	case ENOTDIR: /* a file where a directory is needed */
	case ELOOP:   /* a link there: another process has been at it */
		return refuse(l, entry, SBA_REFUSED_DUPLICATE);
	case ENAMETOOLONG:
	case EILSEQ:
	case EINVAL: /* this file system cannot hold the name */
		return refuse(l, entry, SBA_REFUSED_NAME);
	case E2BIG:
		return sba_fail(err, SBA_ELIMIT, "too many directories");
	default:
		return no_place(l, e, err);
	}
}

static int check_budget(const struct landing *l, uint64_t size, struct sba_error *err)
{
	if (size > l->options.max_bytes - l->report.bytes)
		return sba_fail(err, SBA_ELIMIT, "'%s': more than %llu bytes in all", name_of(l),
				(unsigned long long)l->options.max_bytes);
	return 0;
}

static int receive(struct landing *l, int fd, uint64_t size, struct sba_error *err)
{
	struct sba_tar_piece piece;
	const uint64_t before = l->report.bytes;
	uint64_t end = 0;
	int rc;
	while ((rc = sba_tar_in_data(l->in, size, &piece, err)) > 0) {
		rc = sba_content_write(fd, &piece, &end, err);
		if (rc < 0)
			return sba_wrap(err, rc, "'%s'", name_of(l));
		l->report.bytes = before + piece.offset + piece.len;
		tell(l, false);
	}
	if (rc < 0)
		return rc;
	/* A hole at the end has no piece. */
	if (end != size && ftruncate(fd, (off_t)size) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "set the size of '%s'", name_of(l));
	l->report.bytes = before + size;
	return 0;
}

static int land_file(struct landing *l, struct archive_entry *entry, struct sba_error *err)
{
	la_int64_t size = archive_entry_size(entry);
	if (size < 0)
		return sba_fail(err, SBA_EPROTO, "broken tar: '%s' has a negative size",
				name_of(l));
	int rc = check_budget(l, (uint64_t)size, err);
	if (rc < 0)
		return rc;
	SBA_CLOSE int fd = sba_place_file(&l->place, l->rel);
	if (fd < 0)
		return not_created(l, entry, -fd, err);
	rc = receive(l, fd, (uint64_t)size, err);
	if (rc < 0)
		return rc;
	l->report.files++;
	const struct sba_attributes a = attributes_of(entry);
	return sba_place_file_done(&l->place, l->rel, fd, &a, err);
}

static int land_copy(struct landing *l, struct archive_entry *entry, int from, uint64_t size,
		     struct sba_error *err)
{
	int rc = check_budget(l, size, err);
	if (rc < 0)
		return rc;
	SBA_CLOSE int fd = sba_place_file(&l->place, l->rel);
	if (fd < 0)
		return not_created(l, entry, -fd, err);
	rc = sba_content_copy(from, fd, size, err);
	if (rc < 0)
		return sba_wrap(err, rc, "'%s'", name_of(l));
	l->report.bytes += size;
	l->report.files++;
	const struct sba_attributes a = attributes_of(entry);
	return sba_place_file_done(&l->place, l->rel, fd, &a, err);
}

/* A hard link lands as a copy of the file that it names, if that has landed
 * from this very archive; content that comes with it is not looked at. */
static int land_hard_link(struct landing *l, struct archive_entry *entry, struct sba_error *err)
{
	struct stat st;
	if (!relative(l, archive_entry_hardlink(entry), l->link) || l->link[0] == '\0')
		return refuse(l, entry, SBA_REFUSED_OTHER);
	SBA_CLOSE int from = sba_place_reopen(&l->place, l->link, &st);
	if (from < 0)
		return refuse(l, entry, SBA_REFUSED_OTHER);
	return land_copy(l, entry, from, (uint64_t)st.st_size, err);
}

static int land_directory(struct landing *l, struct archive_entry *entry, struct sba_error *err)
{
	const struct sba_attributes a = attributes_of(entry);
	int rc = sba_place_directory(&l->place, l->rel, &a);
	if (rc < 0)
		return not_created(l, entry, -rc, err);
	l->report.directories++;
	return 0;
}

static int land_entry(struct landing *l, struct archive_entry *entry, struct sba_error *err)
{
	const char *name = archive_entry_pathname(entry);
	if (++l->entries > l->options.max_entries)
		return sba_fail(err, SBA_ELIMIT, "more than %llu entries",
				(unsigned long long)l->options.max_entries);
	if (name && is_asked(l, name))
		l->matched = true;
	if (!name || !relative(l, name, l->rel))
		return refuse(l, entry, SBA_REFUSED_NAME);
	bool is_dir = archive_entry_filetype(entry) == AE_IFDIR;
	if (sba_exclude_path(l->options.exclude, l->rel, is_dir))
		return 0;
	if (archive_entry_hardlink(entry))
		return land_hard_link(l, entry, err);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return land_file(l, entry, err);
	case AE_IFDIR:
		return land_directory(l, entry, err);
	case AE_IFLNK:
		return refuse(l, entry, SBA_REFUSED_SYMLINK);
	case AE_IFCHR:
	case AE_IFBLK:
		return refuse(l, entry, SBA_REFUSED_DEVICE);
	case AE_IFIFO:
		return refuse(l, entry, SBA_REFUSED_FIFO);
	default:
		return refuse(l, entry, SBA_REFUSED_OTHER);
	}
}

/* ---- the whole ---- */

static int land_all(struct landing *l, struct sba_error *err)
{
	struct archive_entry *entry;
	int rc;
	while ((rc = sba_tar_in_next(l->in, &entry, err)) > 0) {
		rc = land_entry(l, entry, err);
		if (rc < 0)
			return rc;
		tell(l, false);
	}
	if (rc < 0 || l->place.top != SBA_TOP_NONE)
		return rc;
	if (l->matched)
		return sba_fail(err, SBA_EREFUSED, "'%s' may not land here: %s",
				l->options.source_name, sba_refusal_text(l->last_refusal));
	return sba_fail(err, SBA_ENOTFOUND, "nothing named '%s' has come", l->options.source_name);
}

/* Found out before a byte is fetched; the rename checks once more. */
static int check_dest(const struct landing *l, struct sba_error *err)
{
	struct stat st;
	if (l->place.into)
		return 0;
	if (fstatat(l->place.dir_fd, l->place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			       ? 0
			       : sba_fail_errno(err, SBA_EIO, errno, "'%s'", l->options.dest);
	if ((l->options.replace || l->options.no_clobber) && S_ISREG(st.st_mode))
		return 0;
	return sba_fail(err, SBA_EEXIST, "'%s' is there%s", l->options.dest,
			S_ISREG(st.st_mode) ? "" : ", and no regular file");
}

static int landing_init(struct landing *l, const struct sba_land_options *options,
			struct sba_error *err)
{
	*l = (struct landing){ .options = *options };
	struct sba_land_options *o = &l->options;
	o->max_bytes = o->max_bytes ? o->max_bytes : BYTES_DEFAULT;
	o->max_entries = o->max_entries ? o->max_entries : ENTRIES_DEFAULT;
	o->max_depth = o->max_depth > 0 ? o->max_depth : SBA_LAND_DEPTH_MAX;
	int rc = sba_place_open(&l->place, o->dest, o->merge, err);
	/* For tests: an old kernel lacks both. */
	l->place.no_openat2 = l->place.no_renameat2 = o->no_openat2;
	if (rc == 0 && sba_path_components(o->source_name) != 1)
		rc = sba_fail(err, SBA_EINVAL, "'%s' is no base name", o->source_name);
	return rc < 0 ? rc : check_dest(l, err);
}

int sba_land(const struct sba_land_options *options, sba_tar_read_fn *read, void *read_user,
	     struct sba_land_report *ret, struct sba_error *err)
{
	struct landing l;
	int rc = landing_init(&l, options, err);
	if (rc == 0)
		rc = sba_tar_in_new(read, read_user, &l.in, err);
	if (rc == 0)
		rc = land_all(&l, err);
	const struct sba_publish publish = { l.options.replace, l.options.no_clobber };
	if (rc == 0)
		rc = sba_place_publish(&l.place, &publish, &l.report.kept, err);
	sba_tar_in_free(l.in);
	sba_place_close(&l.place);
	if (rc < 0)
		return rc;
	tell(&l, true);
	if (ret)
		*ret = l.report;
	return 0;
}
