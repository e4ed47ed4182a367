/* SPDX-License-Identifier: MIT */
/*
 * Pushing images. A tag is pushed once: what it means may be in use, so that one that the
 * registry has is left alone unless forced, and what was pushed is looked at there.
 */
#include "image/private.h"

#include <stdlib.h>
#include <string.h>

int sba_image_published(const char *ref, const struct sba_image_options *options,
			char ret[SBA_IMAGE_DIGEST_MAX], struct sba_error *err)
{
	SBA_ACCOUNT struct sba_image_account a;
	int rc = sba_image_account_open(ref, options, &a, err);
	return rc == 0 ? sba_registry_digest(a.registry, &a.ref, sba_until_in(SBA_IMAGE_ASK_MS),
					     ret, err)
		       : rc;
}

struct push {
	const struct sba_image_options *options;
	const char *ref;
	char digest[SBA_DIGEST_MAX]; /* as the engine tells it */
	char last[160];
};

static int push_line(void *user, const json_t *line)
{
	struct push *p = user;
	const char *digest = sba_json_str(line, "aux.Digest"), *layer = sba_json_str(line, "id");
	const char *status = sba_json_str(line, "status");
	char text[160];
	if (sba_is_digest(digest))
		snprintf(p->digest, sizeof(p->digest), "%s", digest);
	if (!status || !p->options || !p->options->progress)
		return 0;
	snprintf(text, sizeof(text), "%.60s%s%.90s", layer ? layer : "", layer ? ": " : "", status);
	int64_t total = sba_json_int(line, "progressDetail.total", 0);
	if (total == 0 && strcmp(text, p->last) == 0)
		return 0;
	memcpy(p->last, text, sizeof(text));
	const struct sba_progress progress = {
		.image = p->ref,
		.text = text,
		.done = sba_json_int(line, "progressDetail.current", 0),
		.total = total,
	};
	p->options->progress(p->options->user, &progress);
	return 0;
}

static int push(struct sba_engine *e, const struct sba_image_account *a, struct push *p,
		struct sba_error *err)
{
	char *auth = NULL;
	int rc = sba_credentials_header(&a->credentials, a->ref.host, &auth, err);
	if (rc == 0)
		rc = sba_image_push(e, p->ref, auth, push_line, p,
				    sba_engine_until(e, SBA_IMAGE_WORK_MS), err);
	if (auth)
		explicit_bzero(auth, strlen(auth));
	free(auth);
	return sba_image_advise(p->ref, rc, err);
}

/* The tag may be somebody else's by now. */
static int compare(const struct push *p, const struct sba_remote_image *there,
		   struct sba_error *err)
{
	bool same = !*p->digest || strcmp(p->digest, there->digest) == 0;
	for (size_t i = 0; !same && i < there->n; i++)
		same = strcmp(p->digest, there->v[i].manifest) == 0;
	return same ? 0
		    : sba_fail(err, SBA_EIMAGE, "push image '%s': %s was pushed, and the tag is %s",
			       p->ref, p->digest, there->digest);
}

static int refuse_taken(struct sba_image_account *a, const char *ref, struct sba_error *err)
{
	char digest[SBA_DIGEST_MAX];
	int rc = sba_registry_digest(a->registry, &a->ref, sba_until_in(SBA_IMAGE_ASK_MS), digest,
				     err);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc < 0)
		return rc;
	rc = sba_fail(err, SBA_EEXIST, "image '%s' is in the registry already: %s", ref, digest);
	return sba_hint(err, rc,
			"a changed image has a new image_date in versions.json; --force replaces "
			"this one");
}

int sba_image_publish(struct sba_engine *e, const char *ref, struct sba_image_lock *lock,
		      bool force, const struct sba_image_options *options, struct sba_error *err)
{
	SBA_ACCOUNT struct sba_image_account a;
	struct push p = { .options = options, .ref = ref };
	struct sba_remote_image there;
	int rc = sba_image_account_open(ref, options, &a, err);
	if (rc == 0)
		rc = sba_image_ensure(e, ref, SBA_PULL_NEVER, NULL, err);
	if (rc == 0 && !force)
		rc = refuse_taken(&a, ref, err);
	if (rc == 0)
		rc = push(e, &a, &p, err);
	if (rc == 0)
		rc = sba_registry_look(a.registry, &a.ref, sba_until_in(SBA_IMAGE_ASK_MS), &there,
				       err);
	if (rc == 0)
		rc = compare(&p, &there, err);
	return rc == 0 && lock ? sba_image_lock_set(lock, ref, &there, err) : rc;
}
