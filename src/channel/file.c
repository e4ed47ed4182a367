/* SPDX-License-Identifier: MIT */
/* Requests for files inside that are answered at once; one stream for each. */
#include "channel/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sba_channel_stat sba_file_get_stat(const unsigned char *from)
{
	return (struct sba_channel_stat){
		.mode = (uint32_t)sba_be_get(from, 4),
		.uid = (uint32_t)sba_be_get(from + 4, 4),
		.gid = (uint32_t)sba_be_get(from + 8, 4),
		.size = (int64_t)sba_be_get(from + 12, 8),
		.mtime_ns = (int64_t)sba_be_get(from + 20, 8),
	};
}

int sba_file_refused(const char *what, const char *path, uint64_t e, struct sba_error *err)
{
	static const struct {
		int e;
		int code;
	} codes[] = {
		{ ENOENT, SBA_ENOTFOUND },    { ENOTDIR, SBA_ENOTFOUND },
		{ EACCES, SBA_EPERM },        { EPERM, SBA_EPERM },
		{ EROFS, SBA_EPERM },         { EFBIG, SBA_ELIMIT },
		{ EISDIR, SBA_EREFUSED },     { ELOOP, SBA_EREFUSED },
		{ ENXIO, SBA_EREFUSED },      { EEXIST, SBA_EEXIST },
		{ EOPNOTSUPP, SBA_EREFUSED }, { ENOSYS, SBA_EUNSUPPORTED },
		{ ENOSPC, SBA_EIO },          { EDQUOT, SBA_EIO },
	};
	int code = SBA_EBROKEN;
	for (size_t i = 0; i < SBA_ARRAY_LEN(codes); i++) {
		if (codes[i].e == (int)e)
			code = codes[i].code;
	}
	if (e == EOPNOTSUPP)
		return sba_fail(err, code, "%s '%.256s': not a regular file", what, path);
	return sba_fail_errno(err, code, (int)(e & 0xfff), "%s '%.256s'", what, path);
}

static int check_path(const char *path, struct sba_error *err)
{
	size_t len = strlen(path);
	if (len == 0 || len > SBA_CHANNEL_FILE_PATH_MAX)
		return sba_fail(err, SBA_EINVAL, "a path of %zu bytes", len);
	return 0;
}

static int send_request(struct sba_channel_stream *s, const struct sba_file_request *q,
			struct sba_until until, struct sba_error *err)
{
	unsigned char head[SBA_CHANNEL_FILE_HEAD];
	size_t len = strlen(q->path);
	head[0] = (unsigned char)q->op;
	sba_be_put(sba_be_put(sba_be_put(head + 1, q->mode, 4), q->size, 8), len, 4);
	int rc = sba_channel_stream_put_all(s, head, sizeof(head), until, err);
	return rc < 0 ? rc : sba_channel_stream_put_all(s, q->path, len, until, err);
}

int sba_channel_file_open(struct sba_channel *c, const struct sba_file_request *q,
			  struct sba_until until, struct sba_channel_stream **ret,
			  struct sba_error *err)
{
	struct sba_channel_stream *s = NULL;
	int rc = check_path(q->path, err);
	if (rc == 0)
		rc = sba_channel_stream_new(c, SBA_STREAM_CALLER, SBA_CHANNEL_FILE, &s, err);
	if (rc == 0) {
		rc = send_request(s, q, until, err);
		if (rc < 0)
			sba_channel_stream_close(s);
	}
	if (rc < 0)
		return sba_wrap(err, rc, "%s '%.256s'", q->what, q->path);
	*ret = s;
	return 0;
}

/* What comes until the end; SBA_ETIMEOUT can be tried again. */
static int gather(struct sba_channel_stream *s, struct sba_until until, struct sba_buf *answer,
		  struct sba_error *err)
{
	SBA_BUF struct sba_buf piece = SBA_BUF_INIT(SBA_CHANNEL_BUFFERED_MAX);
	int rc;
	while ((rc = sba_channel_stream_take(s, &piece, until, err)) > 0 && !answer->failed)
		sba_buf_put(answer, piece.data, piece.len);
	return rc < 0 ? rc : sba_buf_check(answer, "the guest's answer", err);
}

/* The content into ret, unless *ret_errno says why there is none. */
static int open_answer(struct sba_buf *answer, struct sba_buf *ret, uint64_t *ret_errno,
		       struct sba_error *err)
{
	if (answer->len < SBA_CHANNEL_FILE_ANSWER)
		return sba_fail(err, SBA_EPROTO, "the guest's answer is cut");
	const unsigned char *head = (const unsigned char *)answer->data;
	*ret_errno = sba_be_get(head, 4);
	if (sba_be_get(head + 4, 8) != answer->len - SBA_CHANNEL_FILE_ANSWER)
		return sba_fail(err, SBA_EPROTO, "the guest's answer is cut");
	sba_buf_drop(answer, SBA_CHANNEL_FILE_ANSWER);
	sba_buf_put(ret, answer->data, answer->len);
	return sba_buf_check(ret, "content", err);
}

static int judge_answer(const struct sba_file_request *q, uint64_t e, int rc, struct sba_error *err)
{
	if (rc < 0)
		return sba_wrap(err, rc, "%s '%.256s'", q->what, q->path);
	return e ? sba_file_refused(q->what, q->path, e, err) : 0;
}

int sba_file_answer(struct sba_channel_stream *take_s, const struct sba_file_request *q,
		    struct sba_until until, struct sba_buf *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ret->max + SBA_CHANNEL_FILE_ANSWER);
	uint64_t e = 0;
	int rc = gather(take_s, until, &answer, err);
	if (rc == 0)
		rc = open_answer(&answer, ret, &e, err);
	sba_channel_stream_close(take_s);
	return judge_answer(q, e, rc, err);
}

static int ask(struct sba_channel *c, const struct sba_file_request *q, struct sba_until until,
	       struct sba_buf *ret, struct sba_error *err)
{
	struct sba_channel_stream *s;
	int rc = sba_channel_file_open(c, q, until, &s, err);
	return rc < 0 ? rc : sba_file_answer(s, q, until, ret, err);
}

int sba_channel_file_read(struct sba_channel *c, const char *path, size_t max,
			  struct sba_until until, struct sba_buf *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf content = SBA_BUF_INIT(max);
	const struct sba_file_request q = {
		.op = SBA_FILE_READ, .path = path, .size = max, .what = "read"
	};
	int rc = ask(c, &q, until, &content, err);
	if (rc < 0)
		return rc;
	sba_buf_put(ret, content.data, content.len);
	return sba_buf_check(ret, "content", err);
}

int sba_channel_file_stat(struct sba_channel *c, const char *path, bool follow,
			  struct sba_until until, struct sba_channel_stat *ret,
			  struct sba_error *err)
{
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(SBA_CHANNEL_FILE_STAT);
	const struct sba_file_request q = { .op = follow ? SBA_FILE_STAT : SBA_FILE_LSTAT,
					    .path = path,
					    .what = "stat" };
	int rc = ask(c, &q, until, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.len != SBA_CHANNEL_FILE_STAT)
		return sba_fail(err, SBA_EPROTO, "stat '%.256s': %zu bytes", path, answer.len);
	*ret = sba_file_get_stat((const unsigned char *)answer.data);
	return 0;
}

/* ---- where a path leads ---- */

int sba_channel_place(struct sba_channel *c, const char *path, struct sba_until until,
		      struct sba_channel_place *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf answer =
		SBA_BUF_INIT(SBA_CHANNEL_FILE_PLACE + SBA_CHANNEL_FILE_PATH_MAX);
	const struct sba_file_request q = { .op = SBA_FILE_PLACE, .path = path, .what = "find" };
	int rc = ask(c, &q, until, &answer, err);
	if (rc < 0)
		return rc;
	size_t len = answer.len - SBA_CHANNEL_FILE_PLACE;
	if (answer.len <= SBA_CHANNEL_FILE_PLACE || len >= sizeof(ret->path) ||
	    memchr(answer.data + SBA_CHANNEL_FILE_PLACE, '\0', len) ||
	    answer.data[SBA_CHANNEL_FILE_PLACE] != '/')
		return sba_fail(err, SBA_EPROTO, "find '%.256s': the guest's answer is no place",
				path);
	int flags = (unsigned char)answer.data[SBA_CHANNEL_FILE_STAT];
	*ret = (struct sba_channel_place){
		.stat = sba_file_get_stat((const unsigned char *)answer.data),
		.unseen = flags & SBA_PLACE_UNSEEN,
		.other_mount = flags & SBA_PLACE_OTHER_MOUNT,
		.mounts_below = flags & SBA_PLACE_MOUNTS_BELOW,
	};
	memcpy(ret->path, answer.data + SBA_CHANNEL_FILE_PLACE, len + 1);
	return 0;
}

/* ---- how much there is ---- */

struct sba_channel_ask {
	struct sba_channel_stream *stream;
	struct sba_file_request request;
	char *path;
	struct sba_buf come; /* of the answer */
};

static void ask_free(struct sba_channel_ask *a)
{
	free(a->path);
	sba_buf_fini(&a->come);
	free(a);
}

int sba_channel_census_begin(struct sba_channel *c, const char *path, size_t max_names,
			     struct sba_channel_ask **ret, struct sba_error *err)
{
	struct sba_channel_ask *a = calloc(1, sizeof(*a));
	if (!a || !(a->path = strdup(path))) {
		free(a);
		return sba_fail_nomem(err);
	}
	a->request = (struct sba_file_request){
		.op = SBA_FILE_CENSUS,
		.path = a->path,
		.size = max_names + SBA_CHANNEL_FILE_CENSUS,
		.what = "look through",
	};
	sba_buf_init(&a->come, (size_t)a->request.size + SBA_CHANNEL_FILE_ANSWER);
	int rc = sba_channel_file_open(c, &a->request, sba_until_in(SBA_TRANSFER_STALL_MS),
				       &a->stream, err);
	if (rc < 0) {
		ask_free(a);
		return rc;
	}
	*ret = a;
	return 0;
}

bool sba_channel_census_is_there(struct sba_channel_ask *a)
{
	return gather(a->stream, sba_until_in(0), &a->come, NULL) != SBA_ETIMEOUT;
}

int sba_channel_census_end(struct sba_channel_ask *take_a, struct sba_until until,
			   struct sba_channel_census *ret, struct sba_buf *names,
			   struct sba_error *err)
{
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT((size_t)take_a->request.size);
	uint64_t e = 0;
	int rc = gather(take_a->stream, until, &take_a->come, err);
	if (rc == 0)
		rc = open_answer(&take_a->come, &answer, &e, err);
	sba_channel_stream_close(take_a->stream);
	rc = judge_answer(&take_a->request, e, rc, err);
	ask_free(take_a);
	if (rc == 0 && answer.len < SBA_CHANNEL_FILE_CENSUS)
		rc = sba_fail(err, SBA_EPROTO, "the guest's answer is cut");
	if (rc < 0)
		return rc;
	const unsigned char *at = (const unsigned char *)answer.data;
	*ret = (struct sba_channel_census){
		.bytes = sba_be_get(at, 8),
		.entries = sba_be_get(at + 8, 8),
		.sockets = sba_be_get(at + 16, 8),
		.longest = sba_be_get(at + 24, 8),
		.holes = sba_be_get(at + 32, 8),
		.locked = sba_be_get(at + 40, 8),
	};
	/* Its last byte is a NUL that ends a name, or there is none. */
	if (names && answer.data[answer.len - 1] == '\0' && answer.len > SBA_CHANNEL_FILE_CENSUS)
		sba_buf_put(names, answer.data + SBA_CHANNEL_FILE_CENSUS,
			    answer.len - SBA_CHANNEL_FILE_CENSUS);
	return names ? sba_buf_check(names, "names", err) : 0;
}

/* ---- lists ---- */

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
	const struct sba_file_request q = {
		.op = SBA_FILE_LIST, .path = path, .size = max, .what = "list"
	};
	int rc = ask(c, &q, until, &names, err);
	if (rc == 0)
		rc = sort_names(&names, ret, err);
	return rc;
}
