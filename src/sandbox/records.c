/* SPDX-License-Identifier: MIT */
/* Records taken apart, checked, and made; see records.h. */
#include "sandbox/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* The longest one: two entries with links, two contents. */
	RECORD_MAX =
		SBA_RECORD_HEAD + SBA_RECORD_PATH_MAX +
		2 * (SBA_ENTRY_SIZE + SBA_RECORD_LINK_MAX + SBA_CONTENT_HEAD + SBA_CONTENT_MAX),
	IN_MAX = RECORD_MAX + SBA_MIB,
	NAME_LEN_MAX = 255,
};

void sba_records_init(struct sba_records *r)
{
	*r = (struct sba_records){ .old_fd = -1, .fresh_fd = -1, .in = SBA_BUF_INIT(IN_MAX) };
}

void sba_records_fini(struct sba_records *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free((void *)(uintptr_t)r->v[i].path);
		free((void *)(uintptr_t)r->v[i].old.entry.link);
		free((void *)(uintptr_t)r->v[i].fresh.entry.link);
	}
	free(r->v);
	sba_cleanup_close(&r->old_fd);
	sba_cleanup_close(&r->fresh_fd);
	sba_buf_fini(&r->in);
	sba_records_init(r);
}

/* ---- numbers ---- */

static void put_number(struct sba_buf *b, uint64_t n, size_t len)
{
	unsigned char bytes[sizeof(n)];
	sba_be_put(bytes, n, len);
	sba_buf_put(b, bytes, len);
}

/* ---- one record taken apart ---- */

/* What is left of the bytes, and what is wrong with them. */
struct scan {
	const unsigned char *at;
	size_t len;
	size_t need;       /* bytes, from the beginning, that are missing; 0: none is */
	size_t taken;      /* so far */
	const char *wrong; /* NULL: nothing */
};

/* NULL: there are not so many yet, or something was wrong before. */
static const unsigned char *take(struct scan *s, size_t len)
{
	if (s->wrong || s->need)
		return NULL;
	if (s->len < len) {
		s->need = s->taken + len;
		return NULL;
	}
	const unsigned char *at = s->at;
	s->at += len;
	s->len -= len;
	s->taken += len;
	return at;
}

static void complain(struct scan *s, const char *wrong)
{
	if (!s->wrong)
		s->wrong = wrong;
}

bool sba_record_path_ok(const char *path, size_t len)
{
	if (len == 0 || len > SBA_RECORD_PATH_MAX || memchr(path, '\0', len))
		return false;
	for (size_t at = 0; at <= len;) {
		const char *part = path + at, *slash = memchr(part, '/', len - at);
		size_t n = slash ? (size_t)(slash - part) : len - at;
		bool dots = (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0);
		/* Hooks in a repository of ours would run here. */
		bool git = n == 4 && strncasecmp(part, ".git", 4) == 0;
		if (n == 0 || n > NAME_LEN_MAX || dots || git)
			return false;
		at += n + 1;
	}
	return path[len - 1] != '/';
}

struct piece {
	const char *data;
	size_t len;
};

static void check_entry(struct scan *s, const struct sba_file_entry *e, struct piece link)
{
	if (!S_ISREG(e->mode) && !S_ISLNK(e->mode))
		complain(s, "neither a file nor a link");
	if (S_ISLNK(e->mode) != (link.len > 0) || link.len > SBA_RECORD_LINK_MAX ||
	    (link.len > 0 && memchr(link.data, '\0', link.len)))
		complain(s, "an impossible link");
	if (e->size > INT64_MAX || e->offset > INT64_MAX)
		complain(s, "an impossible size");
}

static struct piece take_entry(struct scan *s, struct sba_file_entry *ret)
{
	struct piece link = { "", 0 };
	const unsigned char *p = take(s, SBA_ENTRY_SIZE);
	if (!p)
		return link;
	*ret = (struct sba_file_entry){
		.mode = (uint32_t)sba_be_get(p, 4),
		.size = sba_be_get(p + 4, 8),
		.mtime_ns = (int64_t)sba_be_get(p + 12, 8),
		.ctime_ns = (int64_t)sba_be_get(p + 20, 8),
		.inode = sba_be_get(p + 28, 8),
		.flags = p[36],
		.pack = (uint32_t)sba_be_get(p + 69, 4),
		.offset = sba_be_get(p + 73, 8),
	};
	memcpy(ret->sha, p + 37, sizeof(ret->sha));
	size_t len = (size_t)sba_be_get(p + 81, 2);
	p = take(s, len);
	if (p)
		link = (struct piece){ (const char *)p, len };
	if (p)
		check_entry(s, ret, link);
	return link;
}

static struct piece take_content(struct scan *s, struct sba_record_side *side)
{
	struct piece content = { NULL, 0 };
	const unsigned char *p = take(s, SBA_CONTENT_HEAD);
	if (!p)
		return content;
	uint64_t size = sba_be_get(p + 1, 8);
	side->why = (enum sba_content)p[0];
	if (p[0] > SBA_CONTENT_LINK || size != side->entry.size)
		complain(s, "an impossible content");
	if (p[0] != SBA_CONTENT_SENT)
		return content;
	if (size > SBA_CONTENT_MAX || !(side->entry.flags & SBA_ENTRY_HASHED) ||
	    !S_ISREG(side->entry.mode))
		complain(s, "a content that was not asked for");
	p = take(s, (size_t)size);
	if (p)
		content = (struct piece){ (const char *)p, (size_t)size };
	return content;
}

/* The pieces of a record, as they lie in the input. */
struct pieces {
	struct piece path, old_link, fresh_link, old_content, fresh_content;
};

static void take_record(struct scan *s, struct sba_record *one, struct pieces *p)
{
	const unsigned char *head = take(s, SBA_RECORD_HEAD);
	if (!head)
		return;
	size_t len = (size_t)sba_be_get(head + 1, 2);
	one->kind = (enum sba_change_record)head[0];
	p->path = (struct piece){ (const char *)take(s, len), len };
	bool left_out = one->kind == SBA_RECORD_LEFT_OUT;
	/* What is left out may be the folder itself. */
	if (p->path.data && !(left_out && len == 0) && !sba_record_path_ok(p->path.data, len) &&
	    !(left_out && !memchr(p->path.data, '\0', len)))
		complain(s, "an impossible path");
	switch (one->kind) {
	case SBA_RECORD_MODIFIED:
	case SBA_RECORD_DELETED:
		p->old_link = take_entry(s, &one->old.entry);
		p->old_content = take_content(s, &one->old);
		break;
	case SBA_RECORD_LEFT_OUT:
		head = take(s, 1);
		one->left_out = head ? (enum sba_left_out)head[0] : 0;
		break;
	case SBA_RECORD_ADDED:
	case SBA_RECORD_TOUCHED:
		break;
	default:
		complain(s, "a record of an unknown kind");
		break;
	}
	if (one->kind == SBA_RECORD_ADDED || one->kind == SBA_RECORD_MODIFIED ||
	    one->kind == SBA_RECORD_TOUCHED)
		p->fresh_link = take_entry(s, &one->fresh.entry);
	if (one->kind == SBA_RECORD_ADDED || one->kind == SBA_RECORD_MODIFIED)
		p->fresh_content = take_content(s, &one->fresh);
}

/* ---- keeping it ---- */

static int keep_text(struct sba_records *r, struct piece text, const char **ret,
		     struct sba_error *err)
{
	r->kept_bytes += text.len + 1;
	if (r->kept_bytes > SBA_CHANGED_BYTES_MAX)
		return sba_fail(err, SBA_ELIMIT, "the paths are more than %d MiB",
				SBA_CHANGED_BYTES_MAX / SBA_MIB);
	char *copy = strndup(text.len ? text.data : "", text.len);
	if (!copy)
		return sba_fail_nomem(err);
	*ret = copy;
	return 0;
}

static int keep_content(int *fd, uint64_t *len, struct piece content, struct sba_record_side *side,
			struct sba_error *err)
{
	unsigned char sha[SBA_SHA256_SIZE];
	if (side->why != SBA_CONTENT_SENT || !content.data)
		return 0;
	if (*len + content.len > SBA_CONTENTS_MAX)
		return sba_fail(err, SBA_EPROTO, "the guest sends more than was asked for");
	if (sba_sha256(content.data, content.len, sha) < 0)
		return sba_fail_nomem(err);
	if (memcmp(sha, side->entry.sha, sizeof(sha)) != 0)
		return sba_fail(err, SBA_EPROTO, "the guest sends another content than it says");
	int rc = *fd < 0 ? sba_open_unnamed(fd, err) : 0;
	if (rc == 0)
		rc = sba_write_all(*fd, content.data, content.len, err);
	side->at = *len;
	*len += content.len;
	return rc;
}

static struct sba_record *new_record(struct sba_records *r, struct sba_error *err)
{
	if (r->n == SBA_CHANGED_FILES_MAX) {
		sba_fail(err, SBA_ELIMIT, "more than %d files", SBA_CHANGED_FILES_MAX);
		return NULL;
	}
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct sba_record *grown = realloc(r->v, cap * sizeof(*grown));
		if (!grown) {
			sba_fail_nomem(err);
			return NULL;
		}
		r->v = grown;
		r->cap = cap;
	}
	return &r->v[r->n];
}

static int keep(struct sba_records *r, const struct sba_record *one, const struct pieces *p,
		struct sba_error *err)
{
	struct sba_error why = { .code = SBA_ENOMEM };
	struct sba_record *to = new_record(r, &why);
	if (!to) {
		if (err)
			*err = why;
		return why.code;
	}
	*to = *one;
	r->n++; /* what it has is freed with the others from here on */
	int rc = keep_text(r, p->path, &to->path, err);
	if (rc == 0 && p->old_link.len)
		rc = keep_text(r, p->old_link, &to->old.entry.link, err);
	if (rc == 0 && p->fresh_link.len)
		rc = keep_text(r, p->fresh_link, &to->fresh.entry.link, err);
	if (rc == 0)
		rc = keep_content(&r->old_fd, &r->old_len, p->old_content, &to->old, err);
	if (rc == 0)
		rc = keep_content(&r->fresh_fd, &r->fresh_len, p->fresh_content, &to->fresh, err);
	return rc;
}

static struct piece piece_of(const char *text)
{
	return (struct piece){ text, text ? strlen(text) : 0 };
}

int sba_records_add(struct sba_records *r, const struct sba_record *one, struct sba_error *err)
{
	const struct pieces p = { .path = piece_of(one->path),
				  .old_link = piece_of(one->old.entry.link),
				  .fresh_link = piece_of(one->fresh.entry.link) };
	struct sba_record copy = *one;
	copy.path = copy.old.entry.link = copy.fresh.entry.link = NULL;
	return keep(r, &copy, &p, err);
}

int sba_records_add_content(struct sba_records *r, struct sba_record *one, const char *data,
			    size_t len, struct sba_error *err)
{
	struct sba_record_side side = one->fresh;
	side.why = SBA_CONTENT_SENT;
	int rc = keep_content(&r->fresh_fd, &r->fresh_len, (struct piece){ data, len }, &side, err);
	if (rc == 0)
		one->fresh = side;
	return rc;
}

/* 1: one was taken; 0: more bytes are needed. */
static int take_one(struct sba_records *r, size_t *at, struct sba_error *err)
{
	struct sba_record one = { 0 };
	struct pieces p = { 0 };
	struct scan s = { .at = (const unsigned char *)r->in.data + *at, .len = r->in.len - *at };
	take_record(&s, &one, &p);
	if (s.wrong)
		return sba_fail(err, SBA_EPROTO, "the guest tells of %s", s.wrong);
	if (s.need) {
		r->need = s.need;
		return 0;
	}
	*at += s.taken;
	r->need = 0;
	int rc = keep(r, &one, &p, err);
	return rc < 0 ? rc : 1;
}

int sba_records_feed(struct sba_records *r, const void *data, size_t len, struct sba_error *err)
{
	size_t at = 0;
	int rc = 1;
	sba_buf_put(&r->in, data, len);
	if (sba_buf_check(&r->in, "a record", err) < 0)
		return r->in.failed;
	while (rc > 0 && r->in.len > at && r->in.len - at >= r->need)
		rc = take_one(r, &at, err);
	sba_buf_drop(&r->in, at);
	return rc < 0 ? rc : 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sba_record *)a)->path, ((const struct sba_record *)b)->path);
}

int sba_records_end(struct sba_records *r, struct sba_error *err)
{
	if (r->in.len > 0)
		return sba_fail(err, SBA_EPROTO, "the guest's last record is cut");
	if (r->n > 0)
		qsort(r->v, r->n, sizeof(*r->v), by_path);
	for (size_t i = 1; i < r->n; i++) {
		bool left_out = r->v[i].kind == SBA_RECORD_LEFT_OUT ||
				r->v[i - 1].kind == SBA_RECORD_LEFT_OUT;
		if (!left_out && strcmp(r->v[i - 1].path, r->v[i].path) == 0)
			return sba_fail(err, SBA_EPROTO, "the guest tells of a file twice");
	}
	return 0;
}

int sba_records_content(const struct sba_records *r, const struct sba_record *one, bool old,
			char **ret, struct sba_error *err)
{
	const struct sba_record_side *side = old ? &one->old : &one->fresh;
	int fd = old ? r->old_fd : r->fresh_fd;
	size_t len = (size_t)side->entry.size, have = 0;
	SBA_FREE char *data = malloc(len + 1);
	if (!data)
		return sba_fail_nomem(err);
	while (have < len) {
		ssize_t n = pread(fd, data + have, len - have, (off_t)(side->at + have));
		if (n <= 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, n < 0 ? errno : 0,
					      "read a temporary file");
		have += n > 0 ? (size_t)n : 0;
	}
	data[len] = '\0';
	*ret = sba_move(&data);
	return 0;
}

/* ---- a list ---- */

void sba_record_put(struct sba_buf *list, const char *path, const struct sba_file_entry *e)
{
	size_t link_len = e && e->link ? strlen(e->link) : 0;
	sba_buf_putc(list, e ? SBA_RECORD_ADDED : SBA_RECORD_DELETED);
	put_number(list, strlen(path), 2);
	sba_buf_puts(list, path);
	if (!e)
		return;
	put_number(list, e->mode, 4);
	put_number(list, e->size, 8);
	put_number(list, (uint64_t)e->mtime_ns, 8);
	put_number(list, (uint64_t)e->ctime_ns, 8);
	put_number(list, e->inode, 8);
	sba_buf_putc(list, (char)e->flags);
	sba_buf_put(list, e->sha, sizeof(e->sha));
	put_number(list, e->pack, 4);
	put_number(list, e->offset, 8);
	put_number(list, link_len, 2);
	sba_buf_put(list, e->link ? e->link : "", link_len);
}
