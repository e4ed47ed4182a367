/* SPDX-License-Identifier: MIT */
/*
 * Images on their way to and from an engine. A build, pull or push that fails
 * answers 200 and tells of it in a line of its stream: only the lines decide.
 */
#include "engine/private.h"

#include <string.h>

/* ---- streams of progress ---- */

static int line_error(const struct sba_image_work *p, const json_t *line, struct sba_error *err)
{
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(8 * (size_t)SBA_ENGINE_LINE_MAX);
	const char *text = sba_json_str(line, "errorDetail.message");
	if (!text)
		text = sba_json_str(line, "error");
	if (!text)
		text = "failed without a word";
	sba_buf_put_visible(&words, text, strlen(text), true);
	return sba_fail(err, SBA_EIMAGE, "%s: %s", p->tried, words.data ? words.data : text);
}

static int progress_line(void *user, const json_t *line, struct sba_error *err)
{
	struct sba_image_work *p = user;
	if (p->fn) {
		int rc = p->fn(p->user, line);
		if (rc < 0)
			return sba_fail(err, rc, "%s: broken off", p->tried);
	}
	if (json_object_get(line, "errorDetail") || json_object_get(line, "error"))
		return line_error(p, line, err);
	if (sba_json_str(line, "aux.ID"))
		p->built = true;
	return 0;
}

/* What is wrong with an image comes as any status but a good one. */
static int image_error(struct sba_error *why, int rc, struct sba_error *err)
{
	if (why->http_status >= 400 && rc != SBA_EUNSUPPORTED)
		rc = why->code = SBA_EIMAGE;
	if (err)
		*err = *why;
	return rc;
}

/* Sends the request, reads all lines; failing is SBA_EIMAGE however told. */
int sba_image_run(struct sba_engine *e, const struct sba_exchange *x, struct sba_image_work *p,
		  struct sba_until until, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	struct sba_error why;
	p->tried = x->request->tried;
	until = sba_engine_limit(e, until);
	int rc = sba_engine_exchange(e, x, until, &body, &why);
	if (rc < 0)
		return image_error(&why, rc, err);
	return sba_body_lines(body, progress_line, p, until, err);
}

/* ---- names ---- */

/* "host:5000/a/b:tag@sha256:…": the name, and tag or digest (which wins). The
 * engine pulls every tag of a name that has neither. */
int sba_image_split_ref(const char *ref, struct sba_buf *name, const char **tag,
			struct sba_error *err)
{
	const char *digest = strchr(ref, '@');
	size_t len = digest ? (size_t)(digest - ref) : strlen(ref);
	const char *slash = memrchr(ref, '/', len);
	const char *last = slash ? slash + 1 : ref;
	const char *colon = memchr(last, ':', len - (size_t)(last - ref));
	*tag = digest ? digest + 1 : colon ? colon + 1 : "";
	sba_buf_put(name, ref, colon ? (size_t)(colon - ref) : len);
	if (!**tag || name->len == 0)
		return sba_fail(err, SBA_EINVAL, "image '%s' has no tag and no digest", ref);
	return sba_buf_check(name, "the image's name", err);
}

/* ---- registries ---- */

/* Podman (4.3 to 5.4) wants TLS of a registry on this machine, unless it is told not to;
 * Docker does not. */
bool sba_image_untrusted(const struct sba_engine *e, const char *name)
{
	return e->podman && strchr(name, '/') && sba_is_this_machine(name);
}

int sba_image_push(struct sba_engine *e, const char *ref, const char *auth,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_KIB);
	struct sba_image_work w = { .fn = progress, .user = progress_user };
	const char *tag;
	char tried[160];
	snprintf(tried, sizeof(tried), "push image '%s'", ref);
	int rc = sba_image_split_ref(ref, &name, &tag, err);
	if (rc < 0)
		return rc;
	sba_buf_puts(&path, "/images/");
	sba_buf_put_url(&path, name.data);
	sba_buf_puts(&path, "/push");
	sba_query_put(&path, "tag", tag);
	if (sba_image_untrusted(e, name.data))
		sba_query_put(&path, "tlsVerify", "false");
	rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	/* Without the header Docker 20.10 answers 400: e30= is {}, for nobody. */
	struct sba_request r = { .method = "POST",
				 .path = path.data,
				 .registry_auth = auth ? auth : "e30=",
				 .tried = tried };
	struct sba_exchange x = { .request = &r };
	return sba_image_run(e, &x, &w, until, err);
}

int sba_image_name(struct sba_engine *e, const char *id, const char *ref, struct sba_until until,
		   struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_KIB);
	const char *tag;
	char tried[160];
	snprintf(tried, sizeof(tried), "name image '%s'", ref);
	int rc = sba_image_split_ref(ref, &name, &tag, err);
	if (rc < 0)
		return rc;
	sba_buf_puts(&path, "/images/");
	sba_buf_put_url(&path, id);
	sba_buf_puts(&path, "/tag");
	sba_query_put(&path, "repo", name.data);
	sba_query_put(&path, "tag", tag);
	rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "POST", .path = path.data, .tried = tried };
	return sba_engine_call(e, &r, until, NULL, err);
}

/* ---- archives ---- */

int sba_image_save(struct sba_engine *e, const char *const *refs, struct sba_until until,
		   struct sba_body **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(16 * (size_t)SBA_KIB);
	sba_buf_puts(&path, "/images/get");
	for (; *refs; refs++)
		sba_query_put(&path, "names", *refs);
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "GET", .path = path.data, .tried = "save images" };
	return sba_engine_stream(e, &r, NULL, NULL, NULL, until, ret, err);
}

int sba_image_load(struct sba_engine *e, sba_source_fn *source, void *user,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err)
{
	struct sba_image_work w = { .fn = progress, .user = progress_user };
	struct sba_request r = { .method = "POST",
				 .path = "/images/load?quiet=1",
				 .tried = "load images" };
	struct sba_exchange x = {
		.request = &r, .content_type = "application/x-tar", .source = source, .user = user
	};
	return sba_image_run(e, &x, &w, until, err);
}
