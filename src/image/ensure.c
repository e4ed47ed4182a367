/* SPDX-License-Identifier: MIT */
/*
 * Making an image be there: looking and pulling; and the list of what of ours is
 * there.
 */
#include "image/private.h"

#include <stdlib.h>
#include <string.h>

int sba_image_get(struct sba_engine *e, const char *ref, json_t **ret, struct sba_error *err)
{
	return sba_image_inspect(e, ref, sba_engine_until(e, SBA_IMAGE_LOOK_MS), ret, err);
}

int sba_image_present(struct sba_engine *e, const char *ref, struct sba_error *err)
{
	SBA_JSON json_t *found = NULL;
	struct sba_error why;
	int rc = sba_image_get(e, ref, &found, &why);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc < 0) {
		if (err)
			*err = why;
		return rc;
	}
	return 1;
}

bool sba_image_ref_has_registry(const char *ref)
{
	const char *slash = strchr(ref, '/');
	if (!slash)
		return false;
	size_t len = (size_t)(slash - ref);
	return memchr(ref, '.', len) || memchr(ref, ':', len) ||
	       (len == 9 && memcmp(ref, "localhost", 9) == 0);
}

void sba_image_tell(const struct sba_image_options *options, const char *image, const char *text,
		    bool detail)
{
	if (!options || !options->progress)
		return;
	struct sba_progress p = { .image = image, .text = text, .detail = detail };
	options->progress(options->user, &p);
}

struct pull {
	const struct sba_image_options *options;
	const char *ref;
	char last[128];
};

static int pull_line(void *user, const json_t *line)
{
	struct pull *pull = user;
	const char *status = sba_json_str(line, "status");
	if (!status || !pull->options || !pull->options->progress)
		return 0;
	const char *layer = sba_json_str(line, "id");
	char text[128];
	snprintf(text, sizeof(text), "%s%s%s", layer ? layer : "", layer ? ": " : "", status);
	int64_t total = sba_json_int(line, "progressDetail.total", 0);
	if (total == 0 && strcmp(text, pull->last) == 0)
		return 0;
	memcpy(pull->last, text, sizeof(text));
	struct sba_progress p = {
		.image = pull->ref,
		.text = text,
		.done = sba_json_int(line, "progressDetail.current", 0),
		.total = total,
	};
	pull->options->progress(pull->options->user, &p);
	return 0;
}

/* The engine's words may say nothing at all ("unknown: no"): the registry's own answer,
 * asked for the same, does. */
static int advise_by_asking(const struct sba_image_account *a, int rc, struct sba_error *err)
{
	char digest[SBA_DIGEST_MAX];
	struct sba_error why;
	if (rc != SBA_EIMAGE || !err || *err->hint || !a->registry ||
	    sba_registry_digest(a->registry, &a->ref, sba_until_in(SBA_IMAGE_WHY_MS), digest,
				&why) == 0)
		return rc;
	return sba_hint(err, rc, "%s", *why.hint ? why.hint : why.text);
}

int sba_image_fetch(struct sba_engine *e, const char *ref, const char *shown,
		    const struct sba_image_options *options, struct sba_error *err)
{
	SBA_ACCOUNT struct sba_image_account a;
	struct pull p = { .options = options, .ref = shown };
	char *auth = NULL;
	int rc = sba_image_account_open(ref, options, &a, err);
	if (rc == 0)
		rc = sba_credentials_header(&a.credentials, a.ref.host, &auth, err);
	if (rc == 0)
		rc = sba_image_pull(e, ref, auth, pull_line, &p,
				    sba_engine_until(e, SBA_IMAGE_WORK_MS), err);
	if (auth)
		explicit_bzero(auth, strlen(auth));
	free(auth);
	rc = sba_image_advise(ref, rc, err);
	return advise_by_asking(&a, rc, err);
}

/* Debian's and other official images have no registry in their name, yet docker
 * pulls them; only a name in our own repository is surely local. */
static bool never_pulled(const char *ref)
{
	return !strchr(ref, '/') && sba_starts_with(ref, SBA_OWN_REPOSITORY ":");
}

int sba_image_ensure(struct sba_engine *e, const char *ref, enum sba_pull pull,
		     const struct sba_image_options *options, struct sba_error *err)
{
	int here = pull == SBA_PULL_ALWAYS ? 0 : sba_image_present(e, ref, err);
	if (here != 0)
		return here < 0 ? here : 0;
	if (pull == SBA_PULL_NEVER || !sba_image_ref_has_registry(ref)) {
		int rc = sba_fail(err, SBA_EIMAGE, "image '%s' is not on the engine", ref);
		if (never_pulled(ref))
			return sba_hint(err, rc, "build it:  sandbox-agent image build");
		return sba_hint(err, rc, "get it:  docker pull %s", ref);
	}
	return sba_image_fetch(e, ref, ref, options, err);
}

struct sba_image_list {
	json_t *json;
	size_t n;
	struct sba_image_info *v;
};

int sba_images_list(struct sba_engine *e, const struct sba_images *i, struct sba_image_list **ret,
		    struct sba_error *err)
{
	char filter[SBA_REF_MAX];
	snprintf(filter, sizeof(filter), "%s:*", i->repository);
	struct sba_image_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = sba_image_list(e, filter, sba_engine_until(e, SBA_IMAGE_LOOK_MS), &l->json, err);
	size_t tags = 0, at;
	json_t *image, *ref;
	if (rc == 0)
		json_array_foreach(l->json, at, image) tags +=
			json_array_size(json_object_get(image, "RepoTags"));
	if (rc == 0 && !(l->v = calloc(tags + 1, sizeof(*l->v))))
		rc = sba_fail_nomem(err);
	if (rc < 0) {
		sba_image_list_free(l);
		return rc;
	}
	json_array_foreach(l->json, at, image)
	{
		size_t t;
		json_array_foreach(json_object_get(image, "RepoTags"), t, ref)
		{
			const char *name = json_string_value(ref), *id = sba_json_str(image, "Id");
			if (name && id)
				l->v[l->n++] = (struct sba_image_info){
					.ref = name,
					.id = id,
					.size = sba_json_int(image, "Size", 0),
					.created = sba_json_int(image, "Created", 0),
				};
		}
	}
	*ret = l;
	return 0;
}

size_t sba_image_list_count(const struct sba_image_list *l)
{
	return l->n;
}

const struct sba_image_info *sba_image_list_at(const struct sba_image_list *l, size_t n)
{
	return n < l->n ? &l->v[n] : NULL;
}

void sba_image_list_free(struct sba_image_list *l)
{
	if (!l)
		return;
	json_decref(l->json);
	free(l->v);
	free(l);
}
