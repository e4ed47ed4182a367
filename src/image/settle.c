/* SPDX-License-Identifier: MIT */
/*
 * The image that a sandbox is made of: the one that the lock has, by whatever way it came
 * to the engine, or one that was built there.
 */
#include "image/private.h"

#include <string.h>

struct settling {
	struct sba_engine *engine;
	const struct sba_image_wanted *wanted;
	const char *locked; /* the digest */
};

int sba_image_by_digest(const char *ref, const char *digest, char ret[SBA_REF_MAX],
			struct sba_error *err)
{
	const char *slash = strrchr(ref, '/');
	const char *last = slash ? slash : ref;
	int len = (int)(last - ref) + (int)strcspn(last, ":@");
	if ((size_t)snprintf(ret, SBA_REF_MAX, "%.*s@%s", len, ref, digest) >= SBA_REF_MAX)
		return sba_fail(err, SBA_EINVAL, "image '%s': name too long", ref);
	return 0;
}

/* Whether it was built on this engine: a builder leaves the step before as its parent,
 * what was pulled, pushed or loaded has a digest of a repository, or no parent. Podman
 * (4.3 to 5.4) gives a digest to all, and a parent to what was pulled, too. */
static bool is_built_here(const json_t *image)
{
	const char *parent = sba_json_str(image, "Parent");
	return parent && *parent && json_array_size(json_object_get(image, "RepoDigests")) == 0;
}

static int refuse(const struct settling *s, const json_t *image, struct sba_error *err)
{
	const char *id = sba_json_str(image, "Id");
	const char *blind = sba_engine_podman(s->engine) && !s->wanted->locked
				    ? "Podman does not tell what was built on it: "
				    : "";
	int rc = sba_fail(err, SBA_EREFUSED,
			  "image '%s' is not the one that is locked: it is %.80s, "
			  "and the lock has %s",
			  s->wanted->ref, id ? id : "?", s->locked);
	return sba_image_ref_has_registry(s->wanted->ref)
		       ? sba_hint(err, rc, "%s--pull always gets the locked one", blind)
		       : sba_hint(err, rc,
				  "%simage load brings the locked one; image rm ends this one",
				  blind);
}

static int take_id(const json_t *image, struct sba_image_settled *ret, struct sba_error *err)
{
	const char *id = sba_json_str(image, "Id");
	if (!id || strlen(id) >= sizeof(ret->ref))
		return sba_fail(err, SBA_EPROTO, "the engine tells no id of an image");
	snprintf(ret->ref, sizeof(ret->ref), "%s", id);
	return 0;
}

static int judge(const struct settling *s, const json_t *image, struct sba_image_settled *ret,
		 struct sba_error *err)
{
	if (sba_image_lock_matches(s->wanted->lock, s->wanted->ref, image))
		return take_id(image, ret, err);
	if (s->wanted->locked || !is_built_here(image))
		return refuse(s, image, err);
	ret->built_here = true;
	return take_id(image, ret, err);
}

/* By its digest, so that it does not matter what the tag means by now. */
static int pull(const struct settling *s, json_t **ret_image, struct sba_error *err)
{
	char ref[SBA_REF_MAX];
	struct sba_error why;
	int rc = sba_image_by_digest(s->wanted->ref, s->locked, ref, err);
	if (rc == 0)
		rc = sba_image_fetch(s->engine, ref, s->wanted->ref, s->wanted->options, err);
	if (rc == 0)
		rc = sba_image_get(s->engine, ref, ret_image, err);
	/* The tag is for people: image ls would call it <none>. */
	if (rc == 0 && sba_image_name(s->engine, ref, s->wanted->ref,
				      sba_engine_until(s->engine, SBA_IMAGE_LOOK_MS), &why) < 0)
		sba_log("image", "%s", why.text);
	return rc;
}

static int missing(const struct settling *s, struct sba_error *err)
{
	int rc = sba_fail(err, SBA_EIMAGE, "image '%s' is not on the engine", s->wanted->ref);
	return sba_hint(err, rc, "sandbox-agent image pull, load or build brings it");
}

static int settle_locked(const struct settling *s, struct sba_image_settled *ret,
			 struct sba_error *err)
{
	const struct sba_image_wanted *w = s->wanted;
	SBA_JSON json_t *image = NULL;
	char digest[SBA_REF_MAX];
	int rc = sba_image_by_digest(w->ref, s->locked, digest, err);
	if (rc < 0)
		return rc;
	rc = SBA_ENOTFOUND;
	if (w->pull != SBA_PULL_ALWAYS)
		rc = sba_image_get(s->engine, w->ref, &image, err);
	if (rc == SBA_ENOTFOUND && w->pull != SBA_PULL_ALWAYS)
		rc = sba_image_get(s->engine, digest, &image, err);
	if (rc == SBA_ENOTFOUND)
		rc = w->pull == SBA_PULL_NEVER || !sba_image_ref_has_registry(w->ref)
			     ? missing(s, err)
			     : pull(s, &image, err);
	return rc == 0 ? judge(s, image, ret, err) : rc;
}

int sba_image_settle(struct sba_engine *e, const struct sba_image_wanted *wanted,
		     struct sba_image_settled *ret, struct sba_error *err)
{
	struct sba_image_settled settled = { 0 };
	struct settling s = { e, wanted, sba_image_lock_digest(wanted->lock, wanted->ref) };
	int rc;
	if (s.locked) {
		rc = settle_locked(&s, &settled, err);
	} else if (wanted->locked) {
		rc = sba_fail(err, SBA_EREFUSED, "image '%s' is not in the lock file", wanted->ref);
		return sba_hint(err, rc, "sandbox-agent image lock puts it there");
	} else {
		rc = sba_image_ensure(e, wanted->ref, wanted->pull, wanted->options, err);
		if (rc == 0 && (size_t)snprintf(settled.ref, sizeof(settled.ref), "%s",
						wanted->ref) >= sizeof(settled.ref))
			rc = sba_fail(err, SBA_EINVAL, "image '%s': name too long", wanted->ref);
	}
	if (rc == 0)
		*ret = settled;
	return rc;
}
