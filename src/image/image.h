/* SPDX-License-Identifier: MIT */
/*
 * Images: versions.json and the tags derived from it, building, pulling, and
 * the files that the library carries (recipes, the guest). It knows the
 * engine, and nothing of sandboxes.
 */
#ifndef SBA_IMAGE_H
#define SBA_IMAGE_H

#include <sandbox-agent/image.h>
#include <sandbox-agent/version.h>

#include "base/base.h"

/* A file built into the library (ci/embed). */
struct sba_embedded {
	const char *name; /* "images/claude/Dockerfile", "versions.json", "guest" */
	const void *data;
	size_t len;
};
/* NULL if there is none of that name. */
const struct sba_embedded *sba_embedded_find(const char *name);
/* The one behind `after`, the first for NULL; NULL at the end. */
const struct sba_embedded *sba_embedded_next(const struct sba_embedded *after);

/* "1.2.3" of the agent in versions.json; NULL if it has none. */
const char *sba_images_version(const struct sba_images *i, const char *name);

/* Makes sure that the sidecar's image (from scratch, holding the guest alone)
 * is on the engine; *ret_ref is its reference. */
enum { SBA_REF_MAX = 256 };
/* Where the images of a plain installation are: local, in no registry. */
#define SBA_OWN_REPOSITORY "sandbox-agent"
int sba_image_sidecar(struct sba_engine *e, const char *repository, char ret_ref[SBA_REF_MAX],
		      struct sba_error *err) SBA_MUST_CHECK;

#endif
