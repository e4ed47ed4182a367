/* SPDX-License-Identifier: MIT */
/*
 * The packer: a queue of entries that becomes a tar while it is read. Nothing
 * is opened before its turn, and content goes from the file straight into the
 * reader's buffer.
 */
#include "archive/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	HEADER_MAX = 16 * SBA_TAR_BLOCK + 4 * SBA_LAND_PATH_MAX,
	TELL_BYTES = SBA_MIB,
	TELL_FILES = 64,
	HOLES_MIN = SBA_MIB, /* of a file that is looked at for holes */
};

enum kind { BYTES, DIRECTORY, PATH };

/* An entry in the queue. */
struct item {
	struct item *next;
	enum kind kind;
	char *name;
	uint32_t mode, uid, gid;
	int64_t mtime;
	const char *data; /* BYTES */
	size_t len;
	char *copy;           /* of them, or NULL */
	char *host_path;      /* PATH */
	struct sba_strv only; /* PATH, if listed */
	bool listed;
};

struct sba_pack {
	struct sba_pack_options options;
	struct item *first, **last;
	int64_t now; /* the mtime of entries that are no files here */
	/* What is being sent, in this order: head, then content of one file or of
	 * one item in memory, then padding. */
	struct sba_buf head;
	size_t head_at;
	int fd;
	uint64_t at;        /* in it */
	bool sparse;        /* it has holes */
	char *file;         /* its name, for errors */
	const char *memory; /* lent by the first item */
	uint64_t left;
	size_t padding;
	bool started;          /* the first item has its header out */
	struct sba_walk *walk; /* of the first item, if a PATH */
	bool ended;
	struct sba_error failed; /* code 0: not */
	struct sba_pack_report report;
	struct sba_pack_report told;
};

/* ---- the queue ---- */

static void item_free(struct item *i)
{
	if (!i)
		return;
	free(i->name);
	free(i->copy);
	free(i->host_path);
	sba_strv_fini(&i->only);
	free(i);
}

int sba_pack_new(const struct sba_pack_options *options, struct sba_pack **ret,
		 struct sba_error *err)
{
	struct sba_pack *p = calloc(1, sizeof(*p));
	if (!p)
		return sba_fail_nomem(err);
	p->options = *options;
	p->last = &p->first;
	p->fd = -1;
	p->now = time(NULL);
	sba_buf_init(&p->head, HEADER_MAX);
	*ret = p;
	return 0;
}

static void drop_first(struct sba_pack *p)
{
	struct item *i = p->first;
	p->first = i->next;
	p->started = false;
	p->memory = NULL;
	if (!p->first)
		p->last = &p->first;
	item_free(i);
}

void sba_pack_free(struct sba_pack *p)
{
	if (!p)
		return;
	while (p->first)
		drop_first(p);
	sba_walk_free(p->walk);
	sba_cleanup_close(&p->fd);
	free(p->file);
	sba_buf_fini(&p->head);
	free(p);
}

/* An item with a checked name; the caller fills in the rest and appends it. */
static int item_new(const struct sba_pack *p, enum kind kind, const char *name, struct item **ret,
		    struct sba_error *err)
{
	/* A tree may be packed without a name of its own. */
	if (sba_path_components(name) == 0 && !(kind == PATH && name[0] == '\0'))
		return sba_fail(err, SBA_EINVAL, "'%s' is no name for an archive's entry", name);
	struct item *i = calloc(1, sizeof(*i));
	if (!i || !(i->name = strdup(name))) {
		item_free(i);
		return sba_fail_nomem(err);
	}
	i->kind = kind;
	i->uid = p->options.uid;
	i->gid = p->options.gid;
	i->mtime = p->now;
	*ret = i;
	return 0;
}

static void append(struct sba_pack *p, struct item *take_i)
{
	*p->last = take_i;
	p->last = &take_i->next;
}

int sba_pack_lent(struct sba_pack *p, const char *name, const void *data, size_t len, uint32_t mode,
		  struct sba_error *err)
{
	struct item *i;
	int rc = item_new(p, BYTES, name, &i, err);
	if (rc < 0)
		return rc;
	i->data = data;
	i->len = len;
	i->mode = mode;
	append(p, i);
	return 0;
}

int sba_pack_bytes(struct sba_pack *p, const char *name, const void *data, size_t len,
		   uint32_t mode, struct sba_error *err)
{
	SBA_FREE char *copy = malloc(len ? len : 1);
	if (!copy)
		return sba_fail_nomem(err);
	if (len > 0)
		memcpy(copy, data, len);
	struct item **last = p->last;
	int rc = sba_pack_lent(p, name, copy, len, mode, err);
	if (rc == 0)
		(*last)->copy = sba_move(&copy);
	return rc;
}

int sba_pack_dir(struct sba_pack *p, const char *name, uint32_t mode, struct sba_error *err)
{
	return sba_pack_dir_at(p, name, mode, -1, err);
}

int sba_pack_dir_at(struct sba_pack *p, const char *name, uint32_t mode, int64_t mtime,
		    struct sba_error *err)
{
	struct item *i;
	int rc = item_new(p, DIRECTORY, name, &i, err);
	if (rc < 0)
		return rc;
	i->mode = mode;
	if (mtime >= 0)
		i->mtime = mtime;
	append(p, i);
	return 0;
}

static void on_left_out(void *user, const char *name, enum sba_refusal why)
{
	struct sba_pack *p = user;
	p->report.left_out++;
	if (p->options.left_out)
		p->options.left_out(p->options.user, name, why);
}

static int walk_of(struct sba_pack *p, const struct item *i, struct sba_walk **ret,
		   struct sba_error *err)
{
	/* An empty list is a list: nothing, not everything. */
	static const char *const nothing[] = { NULL };
	const char *const *only = i->only.v ? (const char *const *)i->only.v : nothing;
	const struct sba_walk_options o = {
		.name = i->name,
		.host_path = i->host_path,
		.only = i->listed ? only : NULL,
		.exclude = p->options.exclude,
		.set_id = p->options.set_id,
		.left_out = on_left_out,
		.user = p,
	};
	return sba_walk_new(&o, ret, err);
}

int sba_pack_paths(struct sba_pack *p, const char *name, const char *host_path,
		   const char *const *relative, struct sba_error *err)
{
	struct item *i;
	int rc = item_new(p, PATH, name, &i, err);
	if (rc < 0)
		return rc;
	i->listed = relative != NULL;
	i->host_path = strdup(host_path);
	if (!i->host_path)
		rc = sba_fail_nomem(err);
	for (size_t n = 0; rc == 0 && relative && relative[n]; n++)
		rc = sba_strv_add(&i->only, relative[n], err);
	/* Opened and let go, so that a wrong path is told before anything is sent. */
	struct sba_walk *probe = NULL;
	if (rc == 0)
		rc = walk_of(p, i, &probe, err);
	sba_walk_free(probe);
	if (rc < 0) {
		item_free(i);
		return rc;
	}
	append(p, i);
	return 0;
}

int sba_pack_path(struct sba_pack *p, const char *name, const char *host_path,
		  struct sba_error *err)
{
	return sba_pack_paths(p, name, host_path, NULL, err);
}

void sba_pack_owner(struct sba_pack *p, uint32_t uid, uint32_t gid)
{
	p->options.uid = uid;
	p->options.gid = gid;
}

void sba_pack_report_get(const struct sba_pack *p, struct sba_pack_report *ret)
{
	*ret = p->report;
}

/* ---- from the queue to headers and content ---- */

static int64_t mtime_of(const struct sba_pack *p, int64_t own)
{
	return p->options.fixed_mtime >= 0 ? p->options.fixed_mtime : own;
}

static int put_header(struct sba_pack *p, const struct sba_tar_entry *e, struct sba_error *err)
{
	sba_buf_reset(&p->head);
	p->head_at = 0;
	sba_tar_put_dressed(&p->head, e, &p->options);
	p->left = e->size;
	p->padding = sba_tar_padding(e->size);
	switch (e->type) {
	case '0':
		p->report.files++;
		break;
	case '2':
		p->report.symlinks++;
		break;
	default:
		p->report.directories++;
	}
	return sba_buf_check(&p->head, "a tar header", err);
}

static int check_holes(struct sba_pack *p, const struct sba_walk_entry *e, struct sba_error *err)
{
	enum { BLOCK = 512 }; /* of st_blocks, whatever the file system's are */
	struct stat st;
	p->sparse = false;
	if (e->type != '0' || e->size < HOLES_MIN || fstat(e->fd, &st) < 0)
		return 0;
	uint64_t there = (uint64_t)st.st_blocks * BLOCK;
	p->sparse = there < e->size;
	if (p->options.hole_max == 0 || !p->sparse || e->size - there <= p->options.hole_max)
		return 0;
	p->report.unfit = true;
	return sba_fail(err, SBA_EUNSUPPORTED, "'%s': its holes would be filled", e->name);
}

static int start_walked(struct sba_pack *p, const struct item *i, const struct sba_walk_entry *e,
			struct sba_error *err)
{
	p->fd = e->fd;
	p->at = 0;
	int rc = sba_tar_check_name(e->name, &p->options, &p->report.unfit, err);
	if (rc == 0)
		rc = check_holes(p, e, err);
	if (rc < 0)
		return rc;
	free(p->file);
	p->file = strdup(e->name);
	if (!p->file)
		return sba_fail_nomem(err);
	const struct sba_tar_entry header = {
		.name = e->name,
		.link = e->link,
		.type = e->type,
		.mode = e->mode,
		.uid = i->uid,
		.gid = i->gid,
		.size = e->size,
		.mtime = mtime_of(p, e->mtime),
	};
	return put_header(p, &header, err);
}

static int step_path(struct sba_pack *p, struct item *i, struct sba_error *err)
{
	int rc = 0;
	struct sba_walk_entry e;
	if (!p->walk)
		rc = walk_of(p, i, &p->walk, err);
	if (rc == 0)
		rc = sba_walk_next(p->walk, &e, err);
	if (rc < 0)
		return sba_wrap(err, rc, "pack '%s'", i->host_path);
	if (rc > 0)
		return start_walked(p, i, &e, err);
	sba_walk_free(sba_move(&p->walk));
	drop_first(p);
	return 0;
}

static int step_item(struct sba_pack *p, struct item *i, struct sba_error *err)
{
	if (i->kind == PATH)
		return step_path(p, i, err);
	if (p->started) {
		drop_first(p);
		return 0;
	}
	const struct sba_tar_entry header = {
		.name = i->name,
		.type = i->kind == DIRECTORY ? '5' : '0',
		.mode = i->mode,
		.uid = i->uid,
		.gid = i->gid,
		.size = i->len,
		.mtime = mtime_of(p, i->mtime),
	};
	p->started = true;
	p->memory = i->data;
	return put_header(p, &header, err);
}

static void end(struct sba_pack *p)
{
	static const char trailer[2 * SBA_TAR_BLOCK];
	sba_buf_reset(&p->head);
	p->head_at = 0;
	sba_buf_put(&p->head, trailer, sizeof(trailer));
	p->ended = true;
}

/* ---- reading ---- */

static void tell(struct sba_pack *p)
{
	if (!p->options.progress || (p->report.bytes - p->told.bytes < TELL_BYTES &&
				     p->report.files - p->told.files < TELL_FILES && !p->ended))
		return;
	p->told = p->report;
	p->options.progress(p->options.user, p->report.bytes, p->report.files);
}

static size_t smaller(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

/* How much of a hole comes next. */
static size_t hole_here(const struct sba_pack *p, size_t max)
{
	struct stat st;
	off_t data = p->sparse ? lseek(p->fd, (off_t)p->at, SEEK_DATA) : (off_t)p->at;
	if (data >= 0)
		return smaller((uint64_t)data - p->at, max);
	return errno == ENXIO && fstat(p->fd, &st) == 0 && p->at + max <= (uint64_t)st.st_size ? max
											       : 0;
}

static ssize_t read_file(struct sba_pack *p, char *buf, size_t size, struct sba_error *err)
{
	ssize_t n = (ssize_t)hole_here(p, size);
	memset(buf, 0, (size_t)n);
	if (n > 0)
		return n;
	do {
		n = pread(p->fd, buf, size, (off_t)p->at);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read '%s'", p->file);
	/* The header has promised more, and a tar cannot take that back. */
	if (n == 0)
		return sba_fail(err, SBA_EIO, "'%s' became shorter while it was read", p->file);
	return n;
}

static ssize_t read_content(struct sba_pack *p, char *buf, size_t size, struct sba_error *err)
{
	ssize_t n = (ssize_t)smaller(p->left, size);
	if (p->fd >= 0) {
		n = read_file(p, buf, (size_t)n, err);
		if (n < 0)
			return n;
		p->at += (uint64_t)n;
	} else {
		memcpy(buf, p->memory, (size_t)n);
		p->memory += n;
	}
	p->left -= (uint64_t)n;
	p->report.bytes += (uint64_t)n;
	return n;
}

/* Some bytes of what is being sent, or 0 when the next item is due. */
static ssize_t read_some(struct sba_pack *p, char *buf, size_t size, struct sba_error *err)
{
	if (p->head_at < p->head.len) {
		size_t n = smaller(p->head.len - p->head_at, size);
		memcpy(buf, p->head.data + p->head_at, n);
		p->head_at += n;
		return (ssize_t)n;
	}
	if (p->left > 0)
		return read_content(p, buf, size, err);
	sba_cleanup_close(&p->fd);
	size_t n = smaller(p->padding, size);
	memset(buf, 0, n);
	p->padding -= n;
	return (ssize_t)n;
}

static ssize_t fill(struct sba_pack *p, char *buf, size_t size, struct sba_error *err)
{
	size_t len = 0;
	while (len < size) {
		ssize_t n = read_some(p, buf + len, size - len, err);
		if (n < 0)
			return n;
		len += (size_t)n;
		if (n > 0)
			continue;
		tell(p);
		if (p->ended)
			break;
		int rc = 0;
		if (p->first)
			rc = step_item(p, p->first, err);
		else
			end(p);
		if (rc < 0)
			return rc;
	}
	return (ssize_t)len;
}

ssize_t sba_pack_read(void *pack, void *buf, size_t size, struct sba_error *err)
{
	struct sba_pack *p = pack;
	ssize_t n = p->failed.code;
	if (n == 0) {
		n = fill(p, buf, size, &p->failed);
		tell(p);
	}
	if (n < 0 && err)
		*err = p->failed;
	return n;
}
