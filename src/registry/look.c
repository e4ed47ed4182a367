/* SPDX-License-Identifier: MIT */
/*
 * What a tag stands for: an index or a manifest, and the manifest and config of each
 * platform. Whatever was asked for by digest must have it, so that a registry cannot
 * tell one thing and hold another.
 */
#include "base/limits.h"
#include "registry/private.h"

#include <string.h>

static const char accepted[] = "Accept: application/vnd.oci.image.index.v1+json, "
			       "application/vnd.docker.distribution.manifest.list.v2+json, "
			       "application/vnd.oci.image.manifest.v1+json, "
			       "application/vnd.docker.distribution.manifest.v2+json";

struct look {
	struct sba_registry *r;
	const char *repository;
	struct sba_until until;
};

/* kind: "manifests" or "blobs"; `name` is a tag or a digest, which is then compared. */
static int fetch(const struct look *l, const char *kind, const char *name, json_t **ret,
		 char ret_digest[SBA_DIGEST_MAX], struct sba_error *err)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(SBA_REGISTRY_BODY_MAX);
	char path[700], scope[300], tried[420], hash[SBA_SHA256_HEX];
	snprintf(path, sizeof(path), "/v2/%s/%s/%s", l->repository, kind, name);
	snprintf(scope, sizeof(scope), "repository:%s:pull", l->repository);
	snprintf(tried, sizeof(tried), "%s%s%s", l->repository, sba_is_digest(name) ? "@" : ":",
		 name);
	const struct sba_registry_get get = {
		.path = path,
		.accept = strcmp(kind, "manifests") == 0 ? accepted : NULL,
		.scope = scope,
		.tried = tried,
	};
	int rc = sba_registry_get(l->r, &get, l->until, &body, err);
	if (rc < 0)
		return rc;
	if (sba_sha256_hex(body.data ? body.data : "", body.len, hash) < 0)
		return sba_fail_nomem(err);
	snprintf(ret_digest, SBA_DIGEST_MAX, "sha256:%s", hash);
	if (sba_is_digest(name) && strcmp(name, ret_digest) != 0)
		return sba_fail(err, SBA_EPROTO, "registry %s: %s: what it sends has digest %s",
				l->r->host, tried, ret_digest);
	rc = sba_json_parse(body.data ? body.data : "", body.len, tried, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "registry %s", l->r->host) : 0;
}

static int no_image(const struct look *l, const char *what, struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "registry %s: %s: %s", l->r->host, l->repository, what);
}

static int add_manifest(const struct look *l, const json_t *manifest, const char *digest,
			const json_t *platform, struct sba_remote_image *image,
			struct sba_error *err)
{
	struct sba_remote_platform *p = &image->v[image->n];
	const char *config = sba_json_str(manifest, "config.digest");
	SBA_JSON json_t *about = NULL;
	char ignored[SBA_DIGEST_MAX];
	if (!sba_is_digest(config))
		return no_image(l, "a manifest that names no config", err);
	int rc = platform ? 0 : fetch(l, "blobs", config, &about, ignored, err);
	if (rc < 0)
		return rc;
	const json_t *where = platform ? platform : about;
	const char *os = sba_json_str(where, "os"), *arch = sba_json_str(where, "architecture");
	if (!sba_is_word(os, "_.-", 30) || !sba_is_word(arch, "_.-", 30))
		return no_image(l, "a config that names no platform", err);
	snprintf(p->name, sizeof(p->name), "%s/%s", os, arch);
	snprintf(p->manifest, sizeof(p->manifest), "%s", digest);
	snprintf(p->config, sizeof(p->config), "%s", config);
	image->n++;
	return 0;
}

/* Builders put attestations beside images, for a platform "unknown". */
static bool is_image(const json_t *entry)
{
	const char *os = sba_json_str(entry, "platform.os");
	return os && strcmp(os, "unknown") != 0 && sba_is_digest(sba_json_str(entry, "digest"));
}

static int add_index(const struct look *l, const json_t *manifests, struct sba_remote_image *image,
		     struct sba_error *err)
{
	size_t i;
	json_t *entry;
	char digest[SBA_DIGEST_MAX];
	json_array_foreach(manifests, i, entry)
	{
		SBA_JSON json_t *manifest = NULL;
		if (!is_image(entry))
			continue;
		if (image->n == SBA_REMOTE_PLATFORMS_MAX)
			return no_image(l, "an index of too many platforms", err);
		int rc = fetch(l, "manifests", sba_json_str(entry, "digest"), &manifest, digest,
			       err);
		if (rc == 0)
			rc = add_manifest(l, manifest, digest, json_object_get(entry, "platform"),
					  image, err);
		if (rc < 0)
			return rc;
	}
	return image->n ? 0 : no_image(l, "an index without an image", err);
}

static const char *name_of(const struct sba_reference *ref)
{
	return *ref->digest ? ref->digest : ref->tag;
}

int sba_registry_digest(struct sba_registry *r, const struct sba_reference *ref,
			struct sba_until until, char ret[SBA_DIGEST_MAX], struct sba_error *err)
{
	const struct look l = { r, ref->repository, until };
	SBA_JSON json_t *document = NULL;
	return fetch(&l, "manifests", name_of(ref), &document, ret, err);
}

int sba_registry_look(struct sba_registry *r, const struct sba_reference *ref,
		      struct sba_until until, struct sba_remote_image *ret, struct sba_error *err)
{
	const struct look l = { r, ref->repository, until };
	struct sba_remote_image image = { 0 };
	SBA_JSON json_t *document = NULL;
	int rc = fetch(&l, "manifests", name_of(ref), &document, image.digest, err);
	if (rc < 0)
		return rc;
	const json_t *manifests = json_object_get(document, "manifests");
	rc = json_is_array(manifests) ? add_index(&l, manifests, &image, err)
				      : add_manifest(&l, document, image.digest, NULL, &image, err);
	if (rc == 0)
		*ret = image;
	return rc;
}
