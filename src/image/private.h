/* SPDX-License-Identifier: MIT */
/* What the files of this module share. */
#ifndef SBA_IMAGE_PRIVATE_H
#define SBA_IMAGE_PRIVATE_H

#include "engine/engine.h"
#include "image/image.h"
#include "registry/registry.h"

struct sba_images {
	json_t *json;           /* versions.json, checked */
	const char *repository; /* lent from json */
	struct sba_strv names;  /* "base", "claude", … */
	struct sba_strv refs;   /* in the same order */
};

enum {
	SBA_IMAGE_LOOK_MS = 30 * 1000,
	SBA_IMAGE_ASK_MS = 2 * 60 * 1000,   /* what a registry says of one image */
	SBA_IMAGE_WHY_MS = 10 * 1000,       /* the same, only to say why something failed */
	SBA_IMAGE_WORK_MS = 60 * 60 * 1000, /* a build or pull on a slow line */
};

enum { SBA_STAGE_KEPT_S = 24 * 60 * 60 }; /* a build may be at it */

/* Whether it is on the engine: 1, 0 or an error. */
int sba_image_present(struct sba_engine *e, const char *ref, struct sba_error *err) SBA_MUST_CHECK;
/* An image as the engine has it: SBA_ENOTFOUND where it has not. */
int sba_image_get(struct sba_engine *e, const char *ref, json_t **ret,
		  struct sba_error *err) SBA_MUST_CHECK;
/* Pulls it with the credentials that the options lead to; progress calls it `shown`. */
int sba_image_fetch(struct sba_engine *e, const char *ref, const char *shown,
		    const struct sba_image_options *options, struct sba_error *err) SBA_MUST_CHECK;
/* "host/repo@sha256:…" of "host/repo:tag", or of one with another digest. */
int sba_image_by_digest(const char *ref, const char *digest, char ret[SBA_REF_MAX],
			struct sba_error *err) SBA_MUST_CHECK;
/* True if a reference names a registry, so that it can be pulled at all. */
bool sba_image_ref_has_registry(const char *ref);
/* Progress of one image; NULL-safe. */
void sba_image_tell(const struct sba_image_options *options, const char *image, const char *text,
		    bool detail);

/* A conversation with a reference's registry, and who we are to it (account.c). */
struct sba_image_account {
	struct sba_reference ref;
	struct sba_credentials credentials;
	struct sba_registry *registry;
};
/* SBA_EINVAL: the reference names no registry. `a` is to be ended also after a failure. */
int sba_image_account_open(const char *ref, const struct sba_image_options *options,
			   struct sba_image_account *a, struct sba_error *err) SBA_MUST_CHECK;
void sba_image_account_close(struct sba_image_account *a);
#define SBA_ACCOUNT __attribute__((cleanup(sba_image_account_close)))
/* rc, with what a user can do about what the engine says of a registry. */
int sba_image_advise(const char *ref, int rc, struct sba_error *err);

/* The lock's entry of a reference is what the registry has: SBA_EIMAGE otherwise. */
int sba_image_lock_set(struct sba_image_lock *l, const char *ref,
		       const struct sba_remote_image *image, struct sba_error *err) SBA_MUST_CHECK;
/* Whether an inspected image is what the lock has for that reference, by whichever of
 * its digests an engine keeps. */
bool sba_image_lock_matches(const struct sba_image_lock *l, const char *ref, const json_t *image);

#endif
