/* SPDX-License-Identifier: MIT */
/*
 * The lock file: for each tag the digest that it stood for when it was published, and for
 * each platform the digest of its manifest and of its config. Engines keep different ones:
 * the repository's digest after a pull or push, the config's as the image's id, the
 * manifest's or the index's as id in a containerd store.
 */
#include "image/private.h"

#include <stdlib.h>
#include <string.h>

struct sba_image_lock {
	json_t *images; /* reference → { digest, platforms } */
};

static int check_platform(const char *file, const char *ref, const char *name,
			  const json_t *platform, struct sba_error *err)
{
	static const char *const keys[] = { "manifest", "config" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(keys); i++) {
		if (!sba_is_digest(sba_json_str(platform, keys[i])))
			return sba_fail(err, SBA_ECONFIG,
					"%s: images.'%s'.platforms.'%s': no digest '%s'", file, ref,
					name, keys[i]);
	}
	return 0;
}

static int check_image(const char *file, const char *ref, const json_t *image,
		       struct sba_error *err)
{
	struct sba_reference parts;
	struct sba_error why;
	const char *name;
	json_t *platform, *platforms = json_object_get(image, "platforms");
	if (sba_reference_parse(ref, &parts, &why) < 0)
		return sba_fail(err, SBA_ECONFIG, "%s: images: %s", file, why.text);
	if (!sba_is_digest(sba_json_str(image, "digest")))
		return sba_fail(err, SBA_ECONFIG, "%s: images.'%s': no digest", file, ref);
	if (!json_is_object(platforms) || json_object_size(platforms) == 0)
		return sba_fail(err, SBA_ECONFIG, "%s: images.'%s': no platforms", file, ref);
	json_object_foreach(platforms, name, platform)
	{
		int rc = check_platform(file, ref, name, platform, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check(const char *file, json_t *j, struct sba_error *err)
{
	const char *ref;
	json_t *image, *images = json_object_get(j, "images");
	if (sba_json_int(j, "v", 0) != 1)
		return sba_fail(err, SBA_ECONFIG, "%s: not a lock of version 1", file);
	if (!json_is_object(images))
		return sba_fail(err, SBA_ECONFIG, "%s: images: not an object", file);
	json_object_foreach(images, ref, image)
	{
		int rc = check_image(file, ref, image, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sba_image_lock_open(const char *json, const char *name, struct sba_image_lock **ret,
			struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = json ? sba_json_parse(json, strlen(json), name, &j, err) : 0;
	if (rc == 0 && json)
		rc = check(name, j, err);
	if (rc < 0)
		return rc == SBA_ENOMEM || !err ? rc : (err->code = SBA_ECONFIG);
	struct sba_image_lock *l = calloc(1, sizeof(*l));
	if (l)
		l->images = json ? json_incref(json_object_get(j, "images")) : json_object();
	if (!l || !l->images) {
		free(l);
		return sba_fail_nomem(err);
	}
	*ret = l;
	return 0;
}

void sba_image_lock_close(struct sba_image_lock *l)
{
	if (!l)
		return;
	json_decref(l->images);
	free(l);
}

char *sba_image_lock_text(const struct sba_image_lock *l)
{
	SBA_JSON json_t *j = json_pack("{s:i, s:O}", "v", 1, "images", l->images);
	char *text = j ? json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
	char *line = NULL;
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

static const json_t *entry_of(const struct sba_image_lock *l, const char *ref)
{
	return l ? json_object_get(l->images, ref) : NULL;
}

const char *sba_image_lock_digest(const struct sba_image_lock *l, const char *ref)
{
	return json_string_value(json_object_get(entry_of(l, ref), "digest"));
}

int sba_image_lock_set(struct sba_image_lock *l, const char *ref,
		       const struct sba_remote_image *image, struct sba_error *err)
{
	SBA_JSON json_t *platforms = json_object();
	for (size_t i = 0; i < image->n; i++) {
		const struct sba_remote_platform *p = &image->v[i];
		if (json_object_set_new(platforms, p->name,
					json_pack("{s:s, s:s}", "manifest", p->manifest, "config",
						  p->config)) < 0)
			return sba_fail_nomem(err);
	}
	json_t *entry = json_pack("{s:s, s:O}", "digest", image->digest, "platforms", platforms);
	return json_object_set_new(l->images, ref, entry) < 0 ? sba_fail_nomem(err) : 0;
}

/* ---- an image on an engine ---- */

static bool is_digest_of(const json_t *entry, const char *digest)
{
	const char *name;
	json_t *platform, *platforms = json_object_get(entry, "platforms");
	if (strcmp(sba_json_str(entry, "digest"), digest) == 0)
		return true;
	json_object_foreach(platforms, name, platform)
	{
		if (strcmp(sba_json_str(platform, "manifest"), digest) == 0 ||
		    strcmp(sba_json_str(platform, "config"), digest) == 0)
			return true;
	}
	return false;
}

/* "repo@sha256:…": the same manifest in another repository is the same image. */
static bool has_digest_of(const json_t *entry, const json_t *image)
{
	size_t i;
	json_t *name;
	json_array_foreach(json_object_get(image, "RepoDigests"), i, name)
	{
		const char *s = json_string_value(name), *at = s ? strrchr(s, '@') : NULL;
		if (at && is_digest_of(entry, at + 1))
			return true;
	}
	return false;
}

/* Podman's ids come without "sha256:". */
bool sba_image_lock_matches(const struct sba_image_lock *l, const char *ref, const json_t *image)
{
	const json_t *entry = entry_of(l, ref);
	const char *id = sba_json_str(image, "Id");
	char digest[SBA_DIGEST_MAX] = "";
	if (!entry)
		return false;
	if (id)
		snprintf(digest, sizeof(digest), "%s%s", strchr(id, ':') ? "" : "sha256:", id);
	return is_digest_of(entry, digest) || has_digest_of(entry, image);
}

/* ---- the registry ---- */

int sba_image_lock_add(struct sba_image_lock *l, const char *ref,
		       const struct sba_image_options *options, struct sba_error *err)
{
	SBA_ACCOUNT struct sba_image_account a;
	struct sba_remote_image image;
	int rc = sba_image_account_open(ref, options, &a, err);
	if (rc == 0)
		rc = sba_registry_look(a.registry, &a.ref, sba_until_in(SBA_IMAGE_ASK_MS), &image,
				       err);
	return rc == 0 ? sba_image_lock_set(l, ref, &image, err) : rc;
}

int sba_image_lock_verify(const struct sba_image_lock *l, const char *ref,
			  const struct sba_image_options *options, struct sba_error *err)
{
	const char *locked = sba_image_lock_digest(l, ref);
	char digest[SBA_DIGEST_MAX];
	if (!locked) {
		int rc = sba_fail(err, SBA_EIMAGE, "image '%s' is not in the lock file", ref);
		return sba_hint(err, rc, "sandbox-agent image push, or image lock, puts it there");
	}
	int rc = sba_image_published(ref, options, digest, err);
	if (rc == SBA_ENOTFOUND) {
		sba_fail(err, rc, "image '%s' is not in the registry", ref);
		return sba_hint(err, rc, "images come first:  ci/build-images --push");
	}
	if (rc == 0 && strcmp(locked, digest) != 0) {
		rc = sba_fail(err, SBA_EIMAGE,
			      "image '%s' is locked to %s, and the registry has %s", ref, locked,
			      digest);
		return sba_hint(err, rc,
				"somebody has pushed another one; sandbox-agent image lock takes "
				"it over");
	}
	return rc;
}
