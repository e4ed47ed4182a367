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
	const char *name; /* "images/claude/Dockerfile", "versions.json", "guest-amd64" */
	const void *data; /* a zero is behind it */
	size_t len;
};
/* NULL if there is none of that name. */
const struct sba_embedded *sba_embedded_find(const char *name);
/* The one behind `after`, the first for NULL; NULL at the end. */
const struct sba_embedded *sba_embedded_next(const struct sba_embedded *after);

/* The static program that runs inside, for one architecture. Lives for ever. */
struct sba_guest {
	const void *data;
	size_t len;
	const char *hash; /* 12 hex digits */
};
/* As images name architectures: "amd64"; NULL: this host's. SBA_EUNSUPPORTED: this
 * build has none for it. */
int sba_guest_find(const char *arch, struct sba_guest *ret, struct sba_error *err) SBA_MUST_CHECK;

/* What its package for that architecture must hash to, "sha512-…"; NULL: not pinned. */
const char *sba_images_integrity(const struct sba_images *i, const char *name, const char *arch);

/* Makes sure that the sidecar's image (from scratch, holding that guest alone) is on the
 * engine; *ret_ref is its reference. A new one sweeps old ones away. */
enum { SBA_REF_MAX = 256 };
/* Where the images of a plain installation are: local, in no registry. */
#define SBA_OWN_REPOSITORY "sandbox-agent"
int sba_image_sidecar(struct sba_engine *e, const char *repository, const struct sba_guest *guest,
		      char ret_ref[SBA_REF_MAX], struct sba_error *err) SBA_MUST_CHECK;
/* Removes the sidecars' images of other guests that are older than min_age_s and in use by
 * no container; only what carries our label. *ret_removed may be NULL. */
enum { SBA_SIDECAR_IMAGE_KEPT_S = 24 * 60 * 60 };
int sba_image_sweep(struct sba_engine *e, const char *repository, int64_t min_age_s,
		    int *ret_removed, struct sba_error *err) SBA_MUST_CHECK;

#endif
