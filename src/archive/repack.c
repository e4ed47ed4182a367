/* SPDX-License-Identifier: MIT */
/*
 * A tar that a user gives, made anew while it is read: names stay within it,
 * owners are the sandbox's, and nothing special comes along. What the other
 * side gets is only ever what our own packer writes.
 */
#include "archive/private.h"

#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPACK_HEAD_MAX = 16 * SBA_TAR_BLOCK + 4 * SBA_LAND_PATH_MAX };

struct sba_repack {
	struct sba_pack_options options;
	sba_tar_read_fn *read;
	void *read_user;
	struct sba_tar_in *in;
	struct sba_buf head; /* header, padding or trailer on its way out */
	size_t head_at;
	struct sba_tar_piece piece; /* of content, what is left of it */
	uint64_t size, sent;        /* of the entry's content */
	bool in_entry, ended;
	struct archive_entry *waiting; /* for the directories above it */
	char type;                     /* its */
	struct sba_seen directories;
	struct sba_error failed; /* code 0: not */
	struct sba_pack_report report, told;
	char name[SBA_LAND_PATH_MAX], link[SBA_LAND_PATH_MAX];
};

int sba_repack_new(const struct sba_pack_options *options, sba_tar_read_fn *read, void *user,
		   struct sba_repack **ret, struct sba_error *err)
{
	struct sba_repack *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	r->options = *options;
	r->read = read;
	r->read_user = user;
	sba_buf_init(&r->head, REPACK_HEAD_MAX);
	*ret = r;
	return 0;
}

void sba_repack_free(struct sba_repack *r)
{
	if (!r)
		return;
	sba_tar_in_free(r->in);
	sba_seen_fini(&r->directories);
	sba_buf_fini(&r->head);
	free(r);
}

void sba_repack_report_get(const struct sba_repack *r, struct sba_pack_report *ret)
{
	*ret = r->report;
}

/* Without the "./" and "/" that packers put in front, and "/" at the end; ""
 * for the top itself. False: it leads out, or is no name. */
static bool clean(const char *name, char ret[SBA_LAND_PATH_MAX])
{
	while (*name == '/' || (name[0] == '.' && (name[1] == '/' || name[1] == '\0')))
		name++;
	size_t len = strnlen(name, SBA_LAND_PATH_MAX);
	if (len == SBA_LAND_PATH_MAX)
		return false;
	memcpy(ret, name, len + 1);
	while (len > 0 && ret[len - 1] == '/')
		ret[--len] = '\0';
	return len == 0 || sba_path_components(ret) > 0;
}

/* Takes the folder off that everything lies in; false: this does not. */
static bool take_off(const char *beneath, char name[SBA_LAND_PATH_MAX])
{
	size_t len = beneath ? strlen(beneath) : 0;
	if (len == 0 || name[0] == '\0')
		return true;
	if (strncmp(name, beneath, len) != 0 || (name[len] != '/' && name[len] != '\0'))
		return false;
	len += name[len] == '/';
	memmove(name, name + len, strlen(name + len) + 1);
	return true;
}

static void leave_out(struct sba_repack *r, const char *name, enum sba_refusal why)
{
	r->report.left_out++;
	if (r->options.left_out)
		r->options.left_out(r->options.user, name ? name : "", why);
}

static enum sba_refusal kind_of(struct archive_entry *e)
{
	switch (archive_entry_filetype(e)) {
	case AE_IFIFO:
		return SBA_REFUSED_FIFO;
	case AE_IFCHR:
	case AE_IFBLK:
		return SBA_REFUSED_DEVICE;
	default:
		return SBA_REFUSED_OTHER;
	}
}

/* '\0': it does not go along, for *why. */
static char type_of(struct sba_repack *r, struct archive_entry *e, enum sba_refusal *why)
{
	*why = SBA_REFUSED_NAME;
	if (archive_entry_hardlink(e))
		return clean(archive_entry_hardlink(e), r->link) &&
				       take_off(r->options.beneath, r->link) && r->link[0]
			       ? '1'
			       : '\0';
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return '0';
	case AE_IFDIR:
		return '5';
	case AE_IFLNK:
		*why = SBA_REFUSED_LEAVING;
		if (!archive_entry_symlink(e) ||
		    !sba_link_stays_inside(r->name, archive_entry_symlink(e)))
			return '\0';
		snprintf(r->link, sizeof(r->link), "%s", archive_entry_symlink(e));
		return '2';
	default:
		*why = kind_of(e);
		return '\0';
	}
}

static void count(struct sba_pack_report *report, char type)
{
	report->files += type == '0' || type == '1';
	report->symlinks += type == '2';
	report->directories += type == '5';
}

static int put_header(struct sba_repack *r, const struct sba_tar_entry *header,
		      struct sba_error *err)
{
	sba_tar_put_dressed(&r->head, header, &r->options);
	r->size = header->size;
	r->sent = 0;
	r->piece = (struct sba_tar_piece){ 0 };
	r->in_entry = true;
	count(&r->report, header->type);
	return sba_buf_check(&r->head, "a tar header", err);
}

/* Whether it goes along; it then waits for the directories above it. */
static void judge(struct sba_repack *r, struct archive_entry *e)
{
	const char *path = archive_entry_pathname(e);
	enum sba_refusal why;
	if (!path || !clean(path, r->name) || !take_off(r->options.beneath, r->name)) {
		leave_out(r, path, SBA_REFUSED_NAME);
		return;
	}
	r->type = type_of(r, e, &why);
	if (r->name[0] == '\0' || sba_exclude_path(r->options.exclude, r->name, r->type == '5'))
		return;
	if (r->type == '\0')
		leave_out(r, path, why);
	else
		r->waiting = e;
}

/* Those that a tar does not name an engine makes too, but as root's. 1: one has been
 * put; 0: all are there. */
static int put_above(struct sba_repack *r, struct sba_error *err)
{
	for (char *slash = strchr(r->name, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct sba_tar_entry header = {
			.name = r->name,
			.type = '5',
			.mode = 0755,
			.uid = r->options.uid,
			.gid = r->options.gid,
			.mtime = time(NULL),
		};
		*slash = '\0';
		int rc = sba_seen_add(&r->directories, r->name, err);
		if (rc > 0 && put_header(r, &header, err) < 0)
			rc = SBA_ENOMEM;
		*slash = '/';
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int put_entry(struct sba_repack *r, struct archive_entry *e, struct sba_error *err)
{
	int64_t size = archive_entry_size(e);
	const struct sba_tar_entry header = {
		.name = r->name,
		.link = r->type == '1' || r->type == '2' ? r->link : NULL,
		.type = r->type,
		.mode = (uint32_t)archive_entry_perm(e) & (r->options.set_id ? 06777 : 0777),
		.uid = r->options.uid,
		.gid = r->options.gid,
		.size = r->type == '0' && size > 0 ? (uint64_t)size : 0,
		.mtime = archive_entry_mtime(e),
	};
	int rc = r->type == '5' ? sba_seen_add(&r->directories, r->name, err) : 0;
	return rc < 0 ? rc : put_header(r, &header, err);
}

/* Its name first: engines may take minutes to make a thousand folders in each other. */
static int put_waiting(struct sba_repack *r, struct sba_error *err)
{
	int rc = sba_tar_check_name(r->name, &r->options, &r->report.unfit, err);
	if (rc == 0)
		rc = put_above(r, err);
	return rc != 0 ? rc : put_entry(r, sba_move(&r->waiting), err);
}

/* The next header, or the trailer. */
static int advance(struct sba_repack *r, struct sba_error *err)
{
	static const char trailer[2 * SBA_TAR_BLOCK];
	struct archive_entry *e = NULL;
	int rc = r->in ? 0 : sba_tar_in_new(r->read, r->read_user, &r->in, err);
	sba_buf_reset(&r->head);
	r->head_at = 0;
	if (rc == 0 && r->waiting)
		return put_waiting(r, err);
	if (rc == 0)
		rc = sba_tar_in_next(r->in, &e, err);
	if (rc < 0)
		return rc;
	if (rc > 0) {
		judge(r, e);
		return 0;
	}
	sba_buf_put(&r->head, trailer, sizeof(trailer));
	r->ended = true;
	return sba_buf_check(&r->head, "a tar", err);
}

static void end_entry(struct sba_repack *r)
{
	static const char zeros[SBA_TAR_BLOCK];
	sba_buf_reset(&r->head);
	r->head_at = 0;
	sba_buf_put(&r->head, zeros, sba_tar_padding(r->size));
	r->in_entry = false;
}

/* Content, with its holes filled in. */
static ssize_t read_content(struct sba_repack *r, char *buf, size_t size, struct sba_error *err)
{
	if (r->piece.len == 0) {
		int rc = sba_tar_in_data(r->in, r->size, &r->piece, err);
		if (rc < 0)
			return rc;
		if (rc == 0)
			r->piece = (struct sba_tar_piece){ .offset = r->size };
	}
	if (r->piece.offset < r->sent)
		return sba_fail(err, SBA_EPROTO, "broken tar: '%s' goes backwards", r->name);
	uint64_t hole = r->piece.offset - r->sent;
	uint64_t here = hole ? hole : r->piece.len;
	size_t n = here < size ? (size_t)here : size;
	if (hole) {
		memset(buf, 0, n);
	} else {
		memcpy(buf, r->piece.data, n);
		r->piece.data = (const char *)r->piece.data + n;
		r->piece.len -= n;
		r->piece.offset += n;
	}
	r->sent += n;
	r->report.bytes += n;
	return (ssize_t)n;
}

static void tell(struct sba_repack *r)
{
	if (r->options.progress && r->report.bytes - r->told.bytes >= SBA_MIB) {
		r->told = r->report;
		r->options.progress(r->options.user, r->report.bytes, r->report.files);
	}
}

static ssize_t fill(struct sba_repack *r, char *buf, size_t size, struct sba_error *err)
{
	size_t len = 0;
	while (len < size) {
		if (r->head_at < r->head.len) {
			size_t n = r->head.len - r->head_at;
			n = n < size - len ? n : size - len;
			memcpy(buf + len, r->head.data + r->head_at, n);
			r->head_at += n;
			len += n;
		} else if (r->in_entry && r->sent < r->size) {
			ssize_t n = read_content(r, buf + len, size - len, err);
			if (n < 0)
				return n;
			len += (size_t)n;
		} else if (r->in_entry) {
			end_entry(r);
		} else if (r->ended) {
			break;
		} else {
			int rc = advance(r, err);
			if (rc < 0)
				return rc;
		}
	}
	tell(r);
	return (ssize_t)len;
}

ssize_t sba_repack_read(void *repack, void *buf, size_t size, struct sba_error *err)
{
	struct sba_repack *r = repack;
	ssize_t n = r->failed.code;
	if (n == 0)
		n = fill(r, buf, size, &r->failed);
	if (n < 0 && err)
		*err = r->failed;
	return n;
}
