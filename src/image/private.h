/* SPDX-License-Identifier: MIT */
/* What the files of this module share. */
#ifndef SBA_IMAGE_PRIVATE_H
#define SBA_IMAGE_PRIVATE_H

#include "engine/engine.h"
#include "image/image.h"

struct sba_images {
	json_t *json;           /* versions.json, checked */
	const char *repository; /* lent from json */
	struct sba_strv names;  /* "base", "claude", … */
	struct sba_strv refs;   /* in the same order */
};

enum {
	SBA_IMAGE_LOOK_MS = 30 * 1000,
	SBA_IMAGE_WORK_MS = 60 * 60 * 1000, /* a build or pull on a slow line */
};

/* Whether it is on the engine: 1, 0 or an error. */
int sba_image_present(struct sba_engine *e, const char *ref, struct sba_error *err) SBA_MUST_CHECK;
/* True if a reference names a registry, so that it can be pulled at all. */
bool sba_image_ref_has_registry(const char *ref);
/* Progress of one image; NULL-safe. */
void sba_image_tell(const struct sba_image_options *options, const char *image, const char *text,
		    bool detail);

#endif
