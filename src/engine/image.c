/* SPDX-License-Identifier: MIT */
/* Images: what is there, builds, imports, pulls. */
#include "engine/private.h"

#include <string.h>

static void put_image(struct sba_buf *b, const char *ref, const char *what)
{
	sba_buf_puts(b, "/images/");
	sba_buf_put_url(b, ref);
	sba_buf_puts(b, what);
}

int sba_image_inspect(struct sba_engine *e, const char *ref, struct sba_until until, json_t **ret,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	char tried[160];
	snprintf(tried, sizeof(tried), "inspect image '%s'", ref);
	put_image(&path, ref, "/json");
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "GET", .path = path.data, .tried = tried };
	return sba_engine_call(e, &r, until, ret, err);
}

int sba_image_list_by(struct sba_engine *e, const json_t *filters, struct sba_until until,
		      json_t **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_JSON json_t *list = NULL;
	sba_buf_puts(&path, "/images/json");
	if (filters)
		sba_query_put_json(&path, "filters", filters);
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "GET", .path = path.data, .tried = "list images" };
	rc = sba_engine_call(e, &r, until, &list, err);
	if (rc < 0)
		return rc;
	if (!json_is_array(list))
		return sba_fail(err, SBA_EPROTO, "list images: not a JSON array");
	*ret = sba_move(&list);
	return 0;
}

int sba_image_list(struct sba_engine *e, const char *reference, struct sba_until until,
		   json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *filters = reference ? json_pack("{s:[s]}", "reference", reference) : NULL;
	if (reference && !filters)
		return sba_fail_nomem(err);
	return sba_image_list_by(e, filters, until, ret, err);
}

int sba_image_remove(struct sba_engine *e, const char *ref, struct sba_until until,
		     struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	struct sba_error why;
	char tried[160];
	snprintf(tried, sizeof(tried), "remove image '%s'", ref);
	put_image(&path, ref, "");
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "DELETE", .path = path.data, .tried = tried };
	rc = sba_engine_call(e, &r, until, NULL, &why);
	if (rc == SBA_EEXIST) /* 409: in use, no name that is taken */
		rc = why.code = SBA_EENGINE;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* ---- imports, builds and pulls ---- */

/* Sends a tar to `path`, lends its progress to p. */
static int run_tar(struct sba_engine *e, const struct sba_buf *path, const char *tried,
		   sba_source_fn *source, void *user, struct sba_image_work *p,
		   struct sba_until until, struct sba_error *err)
{
	int rc = sba_buf_check(path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "POST", .path = path->data, .tried = tried };
	struct sba_exchange x = {
		.request = &r,
		.content_type = "application/x-tar",
		.source = source,
		.user = user,
	};
	return sba_image_run(e, &x, p, until, err);
}

int sba_image_import(struct sba_engine *e, const char *repo, const char *tag,
		     const char *const *changes, sba_source_fn *source, void *user,
		     struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(64 * (size_t)SBA_KIB);
	struct sba_image_work p = { 0 };
	char tried[160];
	snprintf(tried, sizeof(tried), "import image '%s:%s'", repo, tag);
	sba_buf_puts(&path, "/images/create?fromSrc=-");
	sba_query_put(&path, "repo", repo);
	/* As one with the name: Podman 4.3 imports without regard to a `tag` beside it. */
	sba_buf_puts(&path, "%3A");
	sba_buf_put_url(&path, tag);
	for (; changes && *changes; changes++)
		sba_query_put(&path, "changes", *changes);
	return run_tar(e, &path, tried, source, user, &p, until, err);
}

int sba_image_build(struct sba_engine *e, const struct sba_image_build *build,
		    sba_source_fn *source, void *user, sba_progress_fn *progress,
		    void *progress_user, struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(256 * (size_t)SBA_KIB);
	struct sba_image_work p = { .fn = progress, .user = progress_user };
	char tried[160];
	snprintf(tried, sizeof(tried), "build image '%s'", build->tag ? build->tag : build->target);
	sba_buf_puts(&path, "/build?rm=1&forcerm=1");
	sba_query_put(&path, "t", build->tag);
	sba_query_put(&path, "target", build->target);
	sba_query_put_json(&path, "buildargs", build->build_args);
	sba_query_put_json(&path, "labels", build->labels);
	sba_query_put(&path, "nocache", build->no_cache ? "1" : NULL);
	sba_query_put(&path, "pull", build->pull ? "1" : NULL);
	int rc = run_tar(e, &path, tried, source, user, &p, until, err);
	if (rc == 0 && !p.built)
		return sba_fail(err, SBA_EIMAGE, "%s: the engine names no image at its end", tried);
	return rc;
}

/* Where no TLS is needed only Podman's own endpoint can be told so. */
static void put_pull(struct sba_buf *path, const struct sba_engine *e, const char *name,
		     const char *tag)
{
	if (!sba_image_untrusted(e, name)) {
		sba_buf_puts(path, "/images/create");
		sba_query_put(path, "fromImage", name);
		sba_query_put(path, "tag", tag);
		return;
	}
	sba_buf_puts(path, "/libpod/images/pull?tlsVerify=false");
	sba_query_put(path, "reference", name);
	sba_buf_puts(path, strchr(tag, ':') ? "%40" : "%3A"); /* a digest, or a tag */
	sba_buf_put_url(path, tag);
}

int sba_image_pull(struct sba_engine *e, const char *ref, const char *auth,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(SBA_KIB);
	struct sba_image_work p = { .fn = progress, .user = progress_user };
	const char *tag;
	char tried[160];
	snprintf(tried, sizeof(tried), "pull image '%s'", ref);
	int rc = sba_image_split_ref(ref, &name, &tag, err);
	if (rc < 0)
		return rc;
	put_pull(&path, e, name.data, tag);
	rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = {
		.method = "POST", .path = path.data, .registry_auth = auth, .tried = tried
	};
	struct sba_exchange x = { .request = &r };
	return sba_image_run(e, &x, &p, until, err);
}
