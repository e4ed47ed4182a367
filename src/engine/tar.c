/* SPDX-License-Identifier: MIT */
/*
 * Files of a container as tar streams. While one is open and not moving, the
 * engine holds that container's lock (20.10 to 24.0 at least): read it
 * quickly, close it at once when giving up, and ask nothing else about the
 * container meanwhile.
 */
#include "engine/private.h"

#include <string.h>
#include <sys/stat.h>

struct archive_call {
	struct sba_buf path;
	char tried[160];
	struct sba_request request;
};

static int prepare(struct archive_call *c, const char *method, const char *what, const char *id,
		   const char *path, struct sba_error *err)
{
	sba_buf_init(&c->path, 16 * (size_t)SBA_KIB);
	snprintf(c->tried, sizeof(c->tried), "%s '%.64s' in container '%.12s'", what, path, id);
	sba_buf_puts(&c->path, "/containers/");
	sba_buf_put_url(&c->path, id);
	sba_buf_puts(&c->path, "/archive");
	sba_query_put(&c->path, "path", path);
	if (strcmp(method, "PUT") == 0)
		sba_query_put(&c->path, "noOverwriteDirNonDir", "1");
	c->request =
		(struct sba_request){ .method = method, .path = c->path.data, .tried = c->tried };
	return sba_buf_check(&c->path, "the request's path", err);
}

/* ---- stat ---- */

/* Go's FileMode has permission bits where st_mode has them, the rest not. */
static uint32_t mode_from_go(uint64_t go)
{
	static const struct {
		uint32_t go, st;
	} types[] = {
		{ 0x80000000, S_IFDIR },  { 0x08000000, S_IFLNK }, { 0x02000000, S_IFIFO },
		{ 0x01000000, S_IFSOCK }, { 0x00200000, S_IFCHR }, { 0x04000000, S_IFBLK },
	};
	static const struct {
		uint32_t go, st;
	} bits[] = {
		{ 0x00800000, S_ISUID },
		{ 0x00400000, S_ISGID },
		{ 0x00100000, S_ISVTX },
	};
	uint32_t mode = (uint32_t)go & 0777;
	uint32_t type = S_IFREG;
	for (size_t i = SBA_ARRAY_LEN(types); i-- > 0;) {
		if (go & types[i].go)
			type = types[i].st;
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(bits); i++)
		mode |= go & bits[i].go ? bits[i].st : 0;
	return mode | type;
}

/* RFC 3339 in UTC or with an offset: only the seconds are kept. */
static int64_t unix_time(const char *s)
{
	struct tm tm = { 0 };
	const char *rest = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest)
		return 0;
	int64_t t = timegm(&tm);
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	int h, m;
	if ((*rest == '+' || *rest == '-') && sscanf(rest + 1, "%2d:%2d", &h, &m) == 2)
		t -= (*rest == '+' ? 60 : -60) * (int64_t)(h * 60 + m);
	return t;
}

int sba_path_stat_parse(const char *header, struct sba_path_stat *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_HTTP_HEAD_MAX);
	SBA_JSON json_t *j = NULL;
	if (!header || sba_base64_decode(header, strlen(header), false, &text) < 0)
		return sba_fail(err, SBA_EPROTO, "no file status in the engine's answer");
	int rc = sba_json_parse(text.data ? text.data : "", text.len, "file status", &j, err);
	if (rc < 0)
		return rc;
	const char *name = sba_json_str(j, "name"), *link = sba_json_str(j, "linkTarget");
	if (link && strlen(link) >= sizeof(ret->link))
		return sba_fail(err, SBA_EPROTO, "file status: a link that is too long");
	*ret = (struct sba_path_stat){
		.size = sba_json_int(j, "size", 0),
		.mode = mode_from_go((uint64_t)sba_json_int(j, "mode", 0)),
		.mtime = unix_time(sba_json_str(j, "mtime")),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", name ? name : "");
	snprintf(ret->link, sizeof(ret->link), "%s", link ? link : "");
	return 0;
}

int sba_container_stat(struct sba_engine *e, const char *id, const char *path,
		       struct sba_until until, struct sba_path_stat *ret, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	struct archive_call c;
	int rc = prepare(&c, "HEAD", "stat", id, path, err);
	struct sba_exchange x = { .request = &c.request };
	if (rc == 0)
		rc = sba_engine_exchange(e, &x, sba_engine_limit(e, until), &body, err);
	sba_buf_fini(&c.path);
	if (rc == SBA_ENOTFOUND) /* the answer to HEAD has no words */
		return sba_fail(err, rc, "%s: no such file or container", c.tried);
	if (rc < 0)
		return rc;
	rc = sba_path_stat_parse(sba_http_head_get(&body->head, "x-docker-container-path-stat"),
				 ret, err);
	return rc < 0 ? sba_wrap(err, rc, "%s", c.tried) : 0;
}

/* ---- contents ---- */

int sba_container_get(struct sba_engine *e, const char *id, const char *path,
		      struct sba_until until, struct sba_body **ret, struct sba_error *err)
{
	struct archive_call c;
	int rc = prepare(&c, "GET", "read", id, path, err);
	if (rc == 0)
		rc = sba_engine_stream(e, &c.request, NULL, NULL, NULL, until, ret, err);
	sba_buf_fini(&c.path);
	return rc;
}

int sba_container_put(struct sba_engine *e, const char *id, const char *path, sba_source_fn *source,
		      void *user, struct sba_until until, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(SBA_ENGINE_ERROR_MAX);
	struct archive_call c;
	int rc = prepare(&c, "PUT", "write to", id, path, err);
	const struct sba_exchange x = {
		.request = &c.request,
		.content_type = "application/x-tar",
		.source = source,
		.user = user,
		.answer_ms = SBA_TRANSFER_STALL_MS,
	};
	if (rc == 0)
		rc = sba_engine_exchange(e, &x, sba_engine_limit(e, until), &body, err);
	if (rc == 0)
		rc = sba_body_read_all(body, &answer, sba_engine_limit(e, until), err);
	sba_buf_fini(&c.path);
	return rc;
}
