/* SPDX-License-Identifier: MIT */
/*
 * The images of ours that an engine has: what is one, its removal, and tars of them
 * for hosts without a registry.
 */
#include "image/private.h"

#include <string.h>

/* What Podman puts before the name of an image of no registry. */
#define PODMANS "localhost/"

bool sba_images_own(const struct sba_images *i, const char *ref)
{
	size_t len = strlen(i->repository);
	if (sba_starts_with(ref, PODMANS) && !sba_starts_with(i->repository, PODMANS))
		ref += strlen(PODMANS);
	if (strncmp(ref, i->repository, len) != 0 || ref[len] != ':')
		return false;
	const char *tag = ref + len + 1;
	for (size_t n = 0; n < i->names.n; n++) {
		size_t name = strlen(i->names.v[n]);
		if (strncmp(tag, i->names.v[n], name) == 0 && tag[name] == '-')
			return true;
	}
	return false;
}

int sba_image_delete(struct sba_engine *e, const struct sba_images *i, const char *ref,
		     struct sba_error *err)
{
	struct sba_error why;
	if (!sba_images_own(i, ref))
		return sba_fail(err, SBA_EREFUSED, "'%s' is no image of %s's agents", ref,
				i->repository);
	int rc = sba_image_remove(e, ref, sba_engine_until(e, SBA_IMAGE_LOOK_MS), &why);
	if (rc == 0)
		return 0;
	if (why.http_status == 409) {
		rc = sba_fail(err, SBA_EBUSY, "image '%s' is in use: %.600s", ref, why.text);
		return sba_hint(err, rc, "what uses it:  sandbox-agent ps -a, docker ps -a");
	}
	if (rc == SBA_ENOTFOUND)
		return sba_fail(err, rc, "image '%s' is not on the engine", ref);
	if (err)
		*err = why;
	return rc;
}

/* ---- what builds leave ---- */

/* The recipes say so of each stage that is in no image; the first builder's are
 * untagged images of their own, and the cache of the next build. */
#define LABEL_STAGE "io.sandbox-agent.role=build-stage"

int sba_images_sweep(struct sba_engine *e, const struct sba_image_options *options,
		     struct sba_error *err)
{
	SBA_JSON json_t *list = NULL;
	SBA_JSON json_t *filters =
		json_pack("{s:[s], s:[s]}", "dangling", "true", "label", LABEL_STAGE);
	struct sba_until until = sba_engine_until(e, SBA_IMAGE_LOOK_MS);
	if (!filters)
		return sba_fail_nomem(err);
	int rc = sba_image_list_by(e, filters, until, &list, err);
	if (rc < 0)
		return sba_wrap(err, rc, "what old builds have left");
	int64_t before = sba_unix_ms() / 1000 - SBA_STAGE_KEPT_S;
	size_t i;
	json_t *image;
	json_array_foreach(list, i, image)
	{
		struct sba_error why;
		const char *id = sba_json_str(image, "Id");
		if (!id || sba_json_int(image, "Created", INT64_MAX) > before)
			continue;
		if (sba_image_remove(e, id, sba_engine_until(e, SBA_IMAGE_LOOK_MS), &why) == 0)
			sba_image_tell(options, id, "removed", false);
		else
			sba_log("image", "%s", why.text);
	}
	return 0;
}

/* ---- tars ---- */

int sba_images_save(struct sba_engine *e, const char *const *refs, sba_write_fn *write, void *user,
		    struct sba_error *err)
{
	struct sba_body *body = NULL;
	char piece[64 * 1024];
	struct sba_until until = sba_engine_until(e, SBA_IMAGE_WORK_MS);
	ssize_t n = 1;
	int rc = 0;
	for (size_t r = 0; rc == 0 && refs[r]; r++)
		rc = sba_image_ensure(e, refs[r], SBA_PULL_NEVER, NULL, err);
	if (rc == 0)
		rc = sba_image_save(e, refs, until, &body, err);
	while (rc == 0 && n > 0) {
		n = sba_body_read(body, piece, sizeof(piece), until, err);
		rc = n < 0 ? (int)n : n > 0 ? write(user, piece, (size_t)n, err) : 0;
	}
	if (body)
		sba_body_close(body);
	return rc < 0 ? sba_wrap(err, rc, "save images") : 0;
}

struct load {
	const struct sba_image_options *options;
	bool any;
};

static int loaded(void *user, const json_t *line)
{
	struct load *l = user;
	static const char word[] = "Loaded image: ";
	const char *text = sba_json_str(line, "stream");
	if (!text || !sba_starts_with(text, word))
		return 0;
	char ref[SBA_REF_MAX];
	text += strlen(word);
	snprintf(ref, sizeof(ref), "%.*s", (int)strcspn(text, "\r\n"), text);
	l->any = true;
	sba_image_tell(l->options, ref, "loaded", false);
	return 0;
}

int sba_images_load(struct sba_engine *e, sba_read_fn *read, void *user,
		    const struct sba_image_options *options, struct sba_error *err)
{
	struct load l = { .options = options };
	int rc = sba_image_load(e, read, user, loaded, &l, sba_engine_until(e, SBA_IMAGE_WORK_MS),
				err);
	if (rc == 0 && !l.any)
		rc = sba_fail(err, SBA_EIMAGE, "load images: there is no named image in it");
	if (rc == SBA_EIMAGE)
		return sba_hint(err, rc, "made by:  sandbox-agent image save -o FILE");
	return rc;
}

int sba_image_id(struct sba_engine *e, const char *ref, char ret[SBA_IMAGE_ID_MAX],
		 struct sba_error *err)
{
	SBA_JSON json_t *image = NULL;
	int rc = sba_image_get(e, ref, &image, err);
	const char *id = rc == 0 ? sba_json_str(image, "Id") : NULL;
	if (rc == 0)
		snprintf(ret, SBA_IMAGE_ID_MAX, "%s", id ? id : "");
	return rc;
}
