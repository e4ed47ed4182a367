/* SPDX-License-Identifier: MIT */
/* Small files inside: one stream for each request. */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct request {
	enum sba_channel_file_op op;
	const char *path;
	uint32_t mode;
	uint64_t size;
	const void *content; /* of size bytes, to write */
	const char *what;    /* for errors */
};

static unsigned char *put_number(unsigned char *to, uint64_t n, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(n >> 8 * (len - 1 - i));
	return to + len;
}

static uint64_t get_number(const unsigned char *from, size_t len)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++)
		n = n << 8 | from[i];
	return n;
}

/* The errno is the guest's word: an unknown one is an ordinary failure. */
static int refused(const struct request *q, uint64_t e, struct sba_error *err)
{
	static const struct {
		int e;
		int code;
	} codes[] = {
		{ ENOENT, SBA_ENOTFOUND },    { ENOTDIR, SBA_ENOTFOUND }, { EACCES, SBA_EPERM },
		{ EPERM, SBA_EPERM },         { EROFS, SBA_EPERM },       { EFBIG, SBA_ELIMIT },
		{ EISDIR, SBA_EREFUSED },     { ELOOP, SBA_EREFUSED },    { ENXIO, SBA_EREFUSED },
		{ EOPNOTSUPP, SBA_EREFUSED },
	};
	int code = SBA_EBROKEN;
	for (size_t i = 0; i < SBA_ARRAY_LEN(codes); i++) {
		if (codes[i].e == (int)e)
			code = codes[i].code;
	}
	if (e == EOPNOTSUPP)
		return sba_fail(err, code, "%s '%.256s': not a regular file", q->what, q->path);
	return sba_fail_errno(err, code, (int)(e & 0xfff), "%s '%.256s'", q->what, q->path);
}

static int send_request(struct sba_channel_stream *s, const struct request *q,
			struct sba_until until, struct sba_error *err)
{
	unsigned char head[SBA_CHANNEL_FILE_HEAD];
	size_t len = strlen(q->path);
	head[0] = (unsigned char)q->op;
	put_number(put_number(put_number(head + 1, q->mode, 4), q->size, 8), len, 4);
	int rc = sba_channel_stream_put_all(s, head, sizeof(head), until, err);
	if (rc == 0)
		rc = sba_channel_stream_put_all(s, q->path, len, until, err);
	if (rc == 0 && q->content)
		rc = sba_channel_stream_put_all(s, q->content, (size_t)q->size, until, err);
	return rc;
}

/* The content into ret, unless *ret_errno says why there is none. */
static int read_answer(struct sba_channel_stream *s, struct sba_until until, struct sba_buf *ret,
		       uint64_t *ret_errno, struct sba_error *err)
{
	SBA_BUF struct sba_buf piece = SBA_BUF_INIT(SBA_CHANNEL_BUFFERED_MAX);
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ret->max + SBA_CHANNEL_FILE_ANSWER);
	int rc;
	while ((rc = sba_channel_stream_take(s, &piece, until, err)) > 0 && !answer.failed)
		sba_buf_put(&answer, piece.data, piece.len);
	if (rc < 0)
		return rc;
	rc = sba_buf_check(&answer, "the guest's answer", err);
	if (rc < 0)
		return rc;
	if (answer.len < SBA_CHANNEL_FILE_ANSWER)
		return sba_fail(err, SBA_EPROTO, "the guest's answer is cut");
	const unsigned char *head = (const unsigned char *)answer.data;
	*ret_errno = get_number(head, 4);
	if (get_number(head + 4, 8) != answer.len - SBA_CHANNEL_FILE_ANSWER)
		return sba_fail(err, SBA_EPROTO, "the guest's answer is cut");
	sba_buf_drop(&answer, SBA_CHANNEL_FILE_ANSWER);
	sba_buf_put(ret, answer.data, answer.len);
	return sba_buf_check(ret, "content", err);
}

static int check_path(const char *path, struct sba_error *err)
{
	size_t len = strlen(path);
	if (len == 0 || len > SBA_CHANNEL_FILE_PATH_MAX)
		return sba_fail(err, SBA_EINVAL, "a path of %zu bytes", len);
	return 0;
}

/* The answer is at most what ret may hold. */
static int ask(struct sba_channel *c, const struct request *q, struct sba_until until,
	       struct sba_buf *ret, struct sba_error *err)
{
	struct sba_channel_stream *s;
	uint64_t e = 0;
	int rc = check_path(q->path, err);
	if (rc == 0)
		rc = sba_channel_stream_new(c, SBA_STREAM_CALLER, SBA_CHANNEL_FILE, &s, err);
	if (rc == 0) {
		rc = send_request(s, q, until, err);
		if (rc == 0)
			rc = read_answer(s, until, ret, &e, err);
		sba_channel_stream_close(s);
	}
	if (rc < 0)
		return sba_wrap(err, rc, "%s '%.256s'", q->what, q->path);
	return e ? refused(q, e, err) : 0;
}

int sba_channel_file_read(struct sba_channel *c, const char *path, size_t max,
			  struct sba_until until, struct sba_buf *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf content = SBA_BUF_INIT(max);
	const struct request q = { .op = SBA_FILE_READ, .path = path, .size = max, .what = "read" };
	int rc = ask(c, &q, until, &content, err);
	if (rc < 0)
		return rc;
	sba_buf_put(ret, content.data, content.len);
	return sba_buf_check(ret, "content", err);
}

int sba_channel_file_write(struct sba_channel *c, const char *path, const void *data, size_t len,
			   int64_t mode, struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf none = SBA_BUF_INIT(0);
	if (mode > 07777)
		return sba_fail(err, SBA_EINVAL, "write '%.256s': mode %llo", path,
				(unsigned long long)mode);
	const struct request q = {
		.op = SBA_FILE_WRITE,
		.path = path,
		.mode = mode < 0 ? SBA_CHANNEL_FILE_NO_MODE : (uint32_t)mode,
		.size = len,
		.content = data,
		.what = "write",
	};
	return ask(c, &q, until, &none, err);
}

int sba_channel_file_stat(struct sba_channel *c, const char *path, bool follow,
			  struct sba_until until, struct sba_channel_stat *ret,
			  struct sba_error *err)
{
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(SBA_CHANNEL_FILE_STAT);
	const struct request q = { .op = follow ? SBA_FILE_STAT : SBA_FILE_LSTAT,
				   .path = path,
				   .what = "stat" };
	int rc = ask(c, &q, until, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.len != SBA_CHANNEL_FILE_STAT)
		return sba_fail(err, SBA_EPROTO, "stat '%.256s': %zu bytes", path, answer.len);
	const unsigned char *at = (const unsigned char *)answer.data;
	*ret = (struct sba_channel_stat){
		.mode = (uint32_t)get_number(at, 4),
		.uid = (uint32_t)get_number(at + 4, 4),
		.gid = (uint32_t)get_number(at + 8, 4),
		.size = (int64_t)get_number(at + 12, 8),
		.mtime_ns = (int64_t)get_number(at + 20, 8),
	};
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted here: the guest's word for the order is not taken. */
static int sort_names(const struct sba_buf *names, struct sba_buf *ret, struct sba_error *err)
{
	size_t n = 0, i = 0;
	for (size_t at = 0; at < names->len; at++)
		n += names->data[at] == '\0';
	if (names->len > 0 && names->data[names->len - 1] != '\0')
		return sba_fail(err, SBA_EPROTO, "the last name has no end");
	SBA_FREE const char **v = calloc(n + 1, sizeof(*v));
	if (!v)
		return sba_fail_nomem(err);
	for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1)
		v[i++] = names->data + at;
	qsort(v, n, sizeof(*v), by_name);
	for (i = 0; i < n; i++)
		sba_buf_put(ret, v[i], strlen(v[i]) + 1);
	return sba_buf_check(ret, "names", err);
}

int sba_channel_file_list(struct sba_channel *c, const char *path, size_t max,
			  struct sba_until until, struct sba_buf *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(max);
	const struct request q = { .op = SBA_FILE_LIST, .path = path, .size = max, .what = "list" };
	int rc = ask(c, &q, until, &names, err);
	if (rc == 0)
		rc = sort_names(&names, ret, err);
	return rc;
}
