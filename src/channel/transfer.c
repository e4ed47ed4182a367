/* SPDX-License-Identifier: MIT */
/*
 * Files and trees through the guest, in parts (protocol.h), in constant memory.
 * Whatever the guest says is checked: it may be somebody else.
 */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ZEROS_MAX = 1024 * SBA_MIB }; /* told of at once */

/* ---- a stream of parts ---- */

struct parts {
	struct sba_channel_stream *stream;
	struct sba_buf in; /* taken from the stream */
	size_t at;
	struct sba_until until;
	const char *what; /* for errors, with path */
	bool into;        /* a folder that receives */
	char *path;
};

static struct sba_until step(const struct parts *p)
{
	return sba_until_sooner(p->until, SBA_TRANSFER_STALL_MS);
}

static int stalled(const struct parts *p, int rc, struct sba_error *err)
{
	if (rc == SBA_ETIMEOUT && sba_until_left(p->until) != 0)
		return sba_fail(err, SBA_ETIMEOUT, "%s '%.256s': nothing has moved for %d s",
				p->what, p->path, SBA_TRANSFER_STALL_MS / 1000);
	return rc < 0 ? sba_wrap(err, rc, "%s '%.256s'", p->what, p->path) : rc;
}

static void parts_close(struct parts *p)
{
	if (p->stream)
		sba_channel_stream_close(p->stream);
	p->stream = NULL;
	sba_buf_fini(&p->in);
	free(p->path);
	p->path = NULL;
}

static int parts_open(struct parts *p, struct sba_channel *c, const struct sba_file_request *q,
		      struct sba_until until, struct sba_error *err)
{
	*p = (struct parts){ .until = until,
			     .what = q->what,
			     .into = q->op == SBA_FILE_PUT,
			     .path = strdup(q->path) };
	sba_buf_init(&p->in, SBA_CHANNEL_BUFFERED_MAX);
	if (!p->path)
		return sba_fail_nomem(err);
	int rc = sba_channel_file_open(c, q, step(p), &p->stream, err);
	if (rc < 0)
		parts_close(p);
	return rc;
}

static size_t there(const struct parts *p)
{
	return p->in.len - p->at;
}

/* Some bytes are there: 1; 0 at the end of the stream. */
static int await_bytes(struct parts *p, struct sba_error *err)
{
	if (there(p) > 0)
		return 1;
	p->at = 0;
	return stalled(p, sba_channel_stream_take(p->stream, &p->in, step(p), err), err);
}

static int cut(const struct parts *p, struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "%s '%.256s': the guest's answer is cut", p->what,
			p->path);
}

static int take(struct parts *p, void *to, size_t len, struct sba_error *err)
{
	for (char *at = to; len > 0;) {
		int rc = await_bytes(p, err);
		if (rc <= 0)
			return rc < 0 ? rc : cut(p, err);
		size_t n = len < there(p) ? len : there(p);
		memcpy(at, p->in.data + p->at, n);
		p->at += n;
		at += n;
		len -= n;
	}
	return 0;
}

struct part {
	unsigned char kind;
	size_t len; /* not yet taken */
};

static int take_head(struct parts *p, struct part *ret, struct sba_error *err)
{
	unsigned char head[SBA_CHANNEL_PART_HEAD];
	int rc = take(p, head, sizeof(head), err);
	if (rc < 0)
		return rc;
	*ret = (struct part){ head[0], (size_t)sba_be_get(head + 1, 3) };
	if (ret->len > SBA_CHANNEL_PART_MAX)
		return sba_fail(err, SBA_EPROTO, "%s '%.256s': the guest sends nonsense", p->what,
				p->path);
	return 0;
}

static int with_errno(struct sba_error *err, int e, int rc)
{
	if (err)
		err->sys_errno = e;
	return rc;
}

/* What cannot come into a folder, and has not; `name` may be "". */
static int in_the_way(const struct parts *p, int e, const char *name, struct sba_error *err)
{
	static const struct {
		int e, code;
		const char *why;
	} ways[] = {
		{ EISDIR, SBA_EEXIST, "a directory is there, and a file comes" },
		{ ENOTDIR, SBA_EEXIST, "a file is there, and a directory comes" },
		{ EXDEV, SBA_EREFUSED,
		  "it is mounted; what is to go there must be copied by "
		  "itself" },
		{ EACCES, SBA_EREFUSED, "no writing in the folder that it is to go into" },
		{ EPERM, SBA_EREFUSED, "another's, in a folder where only he may replace it" },
	};
	if (!*name && e == ENOTDIR)
		return sba_fail(err, SBA_EEXIST, "'%.256s' is not a directory", p->path);
	for (size_t i = 0; *name && i < SBA_ARRAY_LEN(ways); i++) {
		if (ways[i].e == e)
			return with_errno(err, e,
					  sba_fail(err, ways[i].code, "'%.256s' in '%.256s': %s",
						   name, p->path, ways[i].why));
	}
	int rc = sba_file_refused(p->what, p->path, (uint64_t)e, err);
	return *name ? sba_wrap(err, rc, "%.256s", name) : rc;
}

/* What the guest says in the end; 0 if all went well. */
static int take_end(struct parts *p, size_t len, uint64_t *ret_kept, struct sba_error *err)
{
	char end[SBA_CHANNEL_PART_MAX + 1];
	int rc = len < SBA_CHANNEL_PART_END ? cut(p, err) : take(p, end, len, err);
	if (rc < 0)
		return rc;
	end[len] = '\0';
	uint64_t e = sba_be_get((const unsigned char *)end, 4);
	if (ret_kept)
		*ret_kept = sba_be_get((const unsigned char *)end + 4, 8);
	if (e == 0)
		return 0;
	SBA_FREE char *name =
		sba_visible(end + SBA_CHANNEL_PART_END, len - SBA_CHANNEL_PART_END, true);
	if (p->into)
		return in_the_way(p, (int)(e & 0xfff), name ? name : "", err);
	rc = sba_file_refused(p->what, p->path, e, err);
	return name && *name ? sba_wrap(err, rc, "%.256s", name) : rc;
}

static int put_part(struct parts *p, enum sba_part_kind kind, const void *data, size_t len,
		    struct sba_error *err)
{
	unsigned char head[SBA_CHANNEL_PART_HEAD] = { (unsigned char)kind };
	sba_be_put(head + 1, len, 3);
	int rc = sba_channel_stream_put_all(p->stream, head, sizeof(head), step(p), err);
	if (rc == 0 && len > 0)
		rc = sba_channel_stream_put_all(p->stream, data, len, step(p), err);
	return stalled(p, rc, err);
}

static int put_zeros(struct parts *p, uint64_t *zeros, struct sba_error *err)
{
	unsigned char count[SBA_CHANNEL_PART_ZEROS];
	uint64_t n = *zeros;
	sba_be_put(count, n, sizeof(count));
	*zeros = 0;
	return n ? put_part(p, SBA_PART_ZEROS, count, sizeof(count), err) : 0;
}

/* Zeros of a tar are gathered. */
static int put_piece(struct parts *p, const void *data, size_t len, uint64_t *zeros,
		     struct sba_error *err)
{
	if (p->into && sba_is_zero(data, len)) {
		*zeros += len;
		return *zeros < ZEROS_MAX ? sba_until_check(p->until, err)
					  : put_zeros(p, zeros, err);
	}
	int rc = put_zeros(p, zeros, err);
	return rc < 0 ? rc : put_part(p, SBA_PART_DATA, data, len, err);
}

/* All that the source has, and the word that this was it. */
static int put_source(struct parts *p, sba_channel_source_fn *source, void *user,
		      struct sba_error *err)
{
	SBA_FREE char *data = malloc(SBA_CHANNEL_PART_MAX);
	uint64_t zeros = 0;
	ssize_t n;
	if (!data)
		return sba_fail_nomem(err);
	while ((n = source(user, data, SBA_CHANNEL_PART_MAX, err)) > 0) {
		int rc = put_piece(p, data, (size_t)n, &zeros, err);
		if (rc < 0)
			return rc;
	}
	int rc = n < 0 ? (int)n : put_zeros(p, &zeros, err);
	return rc < 0 ? rc : put_part(p, SBA_PART_END, NULL, 0, err);
}

static int unexpected(const struct parts *p, const struct part *part, struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "%s '%.256s': the guest says 0x%02x out of turn", p->what,
			p->path, part->kind);
}

/* ---- one file out ---- */

int sba_channel_file_get(struct sba_channel *c, const struct sba_channel_get *g,
			 struct sba_until until, struct sba_error *err)
{
	const struct sba_file_request q = { .op = SBA_FILE_READ,
					    .path = g->path,
					    .size = g->max ? g->max : UINT64_MAX,
					    .what = "read" };
	unsigned char head[SBA_CHANNEL_FILE_ANSWER];
	struct parts p;
	int rc = parts_open(&p, c, &q, until, err);
	if (rc < 0)
		return rc;
	rc = take(&p, head, sizeof(head), err);
	uint64_t e = rc == 0 ? sba_be_get(head, 4) : 0;
	uint64_t left = rc == 0 ? sba_be_get(head + 4, 8) : 0;
	if (e)
		rc = sba_file_refused(q.what, g->path, e, err);
	while (rc == 0 && left > 0) {
		rc = await_bytes(&p, err);
		if (rc <= 0) {
			rc = rc < 0 ? rc : cut(&p, err);
			break;
		}
		size_t n = left < there(&p) ? (size_t)left : there(&p);
		rc = g->sink(g->user, p.in.data + p.at, n, err);
		p.at += n;
		left -= n;
	}
	parts_close(&p);
	return rc;
}

/* ---- one file in ---- */

static int put_dress(struct parts *p, const struct sba_channel_write *w, struct sba_error *err)
{
	unsigned char dress[SBA_CHANNEL_FILE_DRESS];
	const uint32_t none = SBA_CHANNEL_FILE_NO_MODE;
	unsigned char *to = sba_be_put(dress, w->set_owner ? w->uid : none, 4);
	to = sba_be_put(to, w->set_owner ? w->gid : none, 4);
	sba_be_put(to, w->set_mtime ? (uint64_t)w->mtime_ns : SBA_CHANNEL_FILE_NO_TIME, 8);
	return stalled(p, sba_channel_stream_put_all(p->stream, dress, sizeof(dress), step(p), err),
		       err);
}

static int await_outcome(struct parts *p, uint64_t *ret_kept, struct sba_error *err)
{
	struct part part;
	int rc = take_head(p, &part, err);
	if (rc < 0)
		return rc;
	return part.kind == SBA_PART_END ? take_end(p, part.len, ret_kept, err)
					 : unexpected(p, &part, err);
}

/* An older guest answers with an errno, which no part begins with. */
static int await_go(struct parts *p, struct part *ret, struct sba_error *err)
{
	int rc = take_head(p, ret, err);
	if (rc < 0 || ret->kind == SBA_PART_GO)
		return rc;
	if (ret->kind == SBA_PART_END) {
		rc = take_end(p, ret->len, NULL, err);
		return rc < 0 ? rc : unexpected(p, ret, err);
	}
	if (ret->kind == 0 && ret->len > 0)
		return sba_file_refused(p->what, p->path, ret->len, err);
	return unexpected(p, ret, err);
}

int sba_channel_file_write(struct sba_channel *c, const struct sba_channel_write *w,
			   struct sba_until until, bool *ret_asked, struct sba_error *err)
{
	const struct sba_file_request q = {
		.op = SBA_FILE_WRITE,
		.path = w->path,
		.mode = w->set_mode ? w->mode & 07777 : SBA_CHANNEL_FILE_NO_MODE,
		.what = "write",
	};
	struct part part;
	struct parts p;
	*ret_asked = false;
	int rc = parts_open(&p, c, &q, until, err);
	if (rc < 0)
		return rc;
	rc = put_dress(&p, w, err);
	if (rc == 0)
		rc = await_go(&p, &part, err);
	if (rc == 0) {
		*ret_asked = true;
		rc = put_source(&p, w->source, w->user, err);
	}
	if (rc == 0)
		rc = await_outcome(&p, NULL, err);
	parts_close(&p);
	return rc;
}

/* ---- a tree out ---- */

struct sba_channel_tar {
	struct parts parts;
	struct sba_channel_tar_options options;
	struct part part; /* what is left of a part of data */
	uint64_t zeros;   /* instead of it */
	bool ended;
};

/* `ask` follows the request. */
static int tar_open(struct sba_channel *c, const struct sba_file_request *q,
		    const struct sba_buf *ask, struct sba_until until, struct sba_channel_tar **ret,
		    struct sba_error *err)
{
	struct sba_channel_tar *t = calloc(1, sizeof(*t));
	if (!t)
		return sba_fail_nomem(err);
	int rc = parts_open(&t->parts, c, q, until, err);
	if (rc == 0 && ask->len > 0) {
		rc = sba_channel_stream_put_all(t->parts.stream, ask->data, ask->len,
						step(&t->parts), err);
		rc = stalled(&t->parts, rc, err);
	}
	if (rc < 0) {
		sba_channel_tar_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

int sba_channel_tar_open(struct sba_channel *c, const struct sba_channel_tar_options *o,
			 struct sba_until until, struct sba_channel_tar **ret,
			 struct sba_error *err)
{
	const struct sba_file_request q = { .op = SBA_FILE_TAR, .path = o->path, .what = "read" };
	int rc = tar_open(c, &q, &(const struct sba_buf){ 0 }, until, ret, err);
	if (rc == 0)
		(*ret)->options = *o;
	return rc;
}

static int give_list(struct parts *p, const struct sba_buf *list, struct sba_error *err)
{
	unsigned char len[SBA_CHANNEL_CHANGES_GIVEN];
	sba_be_put(len, list->len, sizeof(len));
	int rc = sba_channel_stream_put_all(p->stream, len, sizeof(len), step(p), err);
	if (rc == 0 && list->len > 0)
		rc = sba_channel_stream_put_all(p->stream, list->data, list->len, step(p), err);
	return stalled(p, rc, err);
}

int sba_channel_changes_open(struct sba_channel *c, const struct sba_channel_changes *q,
			     struct sba_until until, struct sba_channel_tar **ret,
			     struct sba_error *err)
{
	const struct sba_file_request request = {
		.op = SBA_FILE_CHANGES, .path = q->folder, .mode = q->flags, .what = "look through"
	};
	unsigned char bytes[SBA_CHANNEL_CHANGES_ASK];
	const struct sba_buf ask = { .data = (char *)bytes, .len = sizeof(bytes) };
	unsigned char *to = sba_be_put(bytes, q->last, 4);
	to = sba_be_put(sba_be_put(to, q->content_max, 8), q->contents_max, 8);
	sba_be_put(to, q->hash_max, 8);
	struct sba_channel_tar *t = NULL;
	int rc = tar_open(c, &request, &ask, until, &t, err);
	if (rc == 0 && q->flags & SBA_CHANGES_GIVEN)
		rc = give_list(&t->parts, q->given, err);
	if (rc < 0) {
		sba_channel_tar_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void sba_channel_tar_close(struct sba_channel_tar *t)
{
	if (!t)
		return;
	parts_close(&t->parts);
	free(t);
}

static int take_note(struct sba_channel_tar *t, struct sba_error *err)
{
	char note[SBA_CHANNEL_PART_MAX + 1];
	size_t len = t->part.len;
	int rc = len == 0 ? cut(&t->parts, err) : take(&t->parts, note, len, err);
	t->part.len = 0;
	if (rc < 0)
		return rc;
	note[len] = '\0';
	if (t->options.note)
		t->options.note(t->options.user, note + 1, note[0]);
	return 0;
}

static int take_zeros(struct sba_channel_tar *t, struct sba_error *err)
{
	unsigned char count[SBA_CHANNEL_PART_ZEROS];
	int rc = t->part.len == sizeof(count) ? take(&t->parts, count, sizeof(count), err)
					      : cut(&t->parts, err);
	t->part.len = 0;
	if (rc == 0)
		t->zeros = sba_be_get(count, sizeof(count));
	return rc;
}

/* Until there is data, or the end. */
static int next_data(struct sba_channel_tar *t, struct sba_error *err)
{
	while (t->part.len == 0 && t->zeros == 0 && !t->ended) {
		int rc = take_head(&t->parts, &t->part, err);
		if (rc < 0)
			return rc;
		if (t->part.kind == SBA_PART_NOTE) {
			rc = take_note(t, err);
		} else if (t->part.kind == SBA_PART_ZEROS) {
			rc = take_zeros(t, err);
		} else if (t->part.kind == SBA_PART_END) {
			rc = take_end(&t->parts, t->part.len, NULL, err);
			t->ended = true;
			t->part.len = 0;
		} else if (t->part.kind != SBA_PART_DATA) {
			rc = t->part.kind == 0 ? sba_file_refused(t->parts.what, t->parts.path,
								  t->part.len, err)
					       : unexpected(&t->parts, &t->part, err);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Nothing is waited for, so nobody else looks at the clock. */
static ssize_t read_zeros(struct sba_channel_tar *t, void *buf, size_t size, struct sba_error *err)
{
	int rc = stalled(&t->parts, sba_until_check(t->parts.until, err), err);
	size_t n = t->zeros < size ? (size_t)t->zeros : size;
	if (rc < 0)
		return rc;
	memset(buf, 0, n);
	t->zeros -= n;
	return (ssize_t)n;
}

ssize_t sba_channel_tar_read(struct sba_channel_tar *t, void *buf, size_t size,
			     struct sba_error *err)
{
	int rc = next_data(t, err);
	if (rc < 0 || t->ended)
		return rc;
	if (t->zeros > 0)
		return read_zeros(t, buf, size, err);
	rc = await_bytes(&t->parts, err);
	if (rc <= 0)
		return rc < 0 ? rc : cut(&t->parts, err);
	size_t n = size < t->part.len ? size : t->part.len;
	n = n < there(&t->parts) ? n : there(&t->parts);
	memcpy(buf, t->parts.in.data + t->parts.at, n);
	t->parts.at += n;
	t->part.len -= n;
	return (ssize_t)n;
}

/* ---- a tree in ---- */

struct sba_channel_put {
	struct parts parts;
	bool seen;
	bool ended; /* the guest has been told that all has come */
	char stage[SBA_CHANNEL_FILE_PATH_MAX + 1];
};

static int take_stage(struct sba_channel_put *p, struct sba_error *err)
{
	struct part part;
	unsigned char flags;
	int rc = await_go(&p->parts, &part, err);
	if (rc < 0)
		return rc;
	if (part.len < 2 || part.len > sizeof(p->stage))
		return cut(&p->parts, err);
	rc = take(&p->parts, &flags, 1, err);
	if (rc == 0)
		rc = take(&p->parts, p->stage, part.len - 1, err);
	if (rc < 0)
		return rc;
	p->stage[part.len - 1] = '\0';
	p->seen = !(flags & SBA_PLACE_OTHER_MOUNT);
	return p->stage[0] == '/' ? 0 : cut(&p->parts, err);
}

int sba_channel_put_open(struct sba_channel *c, const struct sba_channel_put_options *o,
			 struct sba_until until, struct sba_channel_put **ret,
			 struct sba_error *err)
{
	const struct sba_file_request q = {
		.op = SBA_FILE_PUT,
		.path = o->folder,
		.mode = (o->make ? SBA_PUT_MAKE : 0U) | (o->replace ? SBA_PUT_REPLACE : 0U) |
			(o->no_clobber ? SBA_PUT_NO_CLOBBER : 0U),
		.what = "put into",
	};
	struct sba_channel_put *p = calloc(1, sizeof(*p));
	if (!p)
		return sba_fail_nomem(err);
	int rc = parts_open(&p->parts, c, &q, until, err);
	if (rc == 0)
		rc = take_stage(p, err);
	if (rc < 0) {
		sba_channel_put_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

const char *sba_channel_put_stage(const struct sba_channel_put *p, bool *ret_seen)
{
	*ret_seen = p->seen;
	return p->stage;
}

int sba_channel_put_tar(struct sba_channel_put *p, sba_channel_source_fn *source, void *user,
			struct sba_until until, struct sba_error *err)
{
	p->parts.until = until;
	int rc = put_source(&p->parts, source, user, err);
	p->ended = rc == 0;
	return rc;
}

int sba_channel_put_commit(struct sba_channel_put *p, struct sba_until until, bool *ret_again,
			   uint64_t *ret_kept, struct sba_error *err)
{
	struct part part;
	*ret_again = false;
	p->parts.until = until;
	int rc = p->ended ? 0 : put_part(&p->parts, SBA_PART_END, NULL, 0, err);
	if (rc == 0)
		rc = take_head(&p->parts, &part, err);
	if (rc < 0)
		return rc;
	p->ended = part.kind != SBA_PART_AGAIN;
	if (part.kind == SBA_PART_AGAIN && part.len == 0) {
		*ret_again = true;
		return 0;
	}
	return part.kind == SBA_PART_END ? take_end(&p->parts, part.len, ret_kept, err)
					 : unexpected(&p->parts, &part, err);
}

void sba_channel_put_close(struct sba_channel_put *p)
{
	if (!p)
		return;
	parts_close(&p->parts);
	free(p);
}
