/* SPDX-License-Identifier: MIT */
/*
 * The pinned images. versions.json names the repository, a declared date and
 * the version of each CLI; every tag is derived from it and from nothing else.
 * What is read from a handle may be read by any number of threads at once.
 */
#ifndef SANDBOX_AGENT_IMAGE_H
#define SANDBOX_AGENT_IMAGE_H

#include <sandbox-agent/engine.h>
#include <sandbox-agent/files.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_images;

/* Reads versions.json text; NULL: the copy built into the library. `name` is
 * what errors call it. SBA_ECONFIG: broken, and where. */
SBA_API int sba_images_open(const char *json, const char *name, struct sba_images **ret,
			    struct sba_error *err);
SBA_API void sba_images_close(struct sba_images *i); /* NULL is allowed */

/* The same images in another repository than docker_repository, as "HOST/TEAM/NAME":
 * before any reference is asked for. SBA_EINVAL: it cannot be one. */
SBA_API int sba_images_set_repository(struct sba_images *i, const char *repository,
				      struct sba_error *err);

/* The reference of "base" or of an agent's image, lent: "repo:claude-2.1.332-20261129".
 * NULL if there is no image of that name. */
SBA_API const char *sba_images_ref(const struct sba_images *i, const char *name);
/* "1.2.3" of the agent; NULL if it has none. Lent. */
SBA_API const char *sba_images_version(const struct sba_images *i, const char *name);
/* The names that have an image, NULL-ended, "base" first; lent. */
SBA_API const char *const *sba_images_names(const struct sba_images *i);

/* Progress of a build or pull, for people: which image, one line of what is
 * going on now. `detail` lines are the build's own output. */
struct sba_progress {
	const char *image;
	const char *text;
	bool detail;
	int64_t done, total; /* of bytes or steps; total 0: not known */
};
/* Called by the thread that builds or pulls; `progress` is lent for the call. */
typedef void sba_image_progress_fn(void *user, const struct sba_progress *progress);

/* Zero means the default everywhere. */
struct sba_image_options {
	const char
		*ca_file; /* PEM bundle for the build's downloads; leaves no trace in the image */
	bool no_cache;
	bool rebuild; /* build even if the tag is there */
	/* The folder of docker's config.json, where the credentials for registries are
	 * (helpers that it names are run); NULL: we are nobody there. */
	const char *docker_config;
	sba_image_progress_fn *progress;
	void *user;
	uint64_t reserved[8];
};

/* Builds one image (and the base it stands on, if that is missing) through the
 * engine. An image that is there is left alone without `rebuild`.
 * SBA_EIMAGE: a step failed; its output is in the text. */
SBA_API int sba_image_make(struct sba_engine *e, const struct sba_images *i, const char *name,
			   const struct sba_image_options *options, struct sba_error *err);

/* Makes what the recipe of an agent has in common with others, so that builds side by
 * side find it instead of each making its own. */
SBA_API int sba_image_warm(struct sba_engine *e, const struct sba_images *i, const char *name,
			   const struct sba_image_options *options, struct sba_error *err);

/* ---- the lock: which digests the tags stand for ---- */

struct sba_image_lock;
/* Reads the text of a lock file; NULL: an empty one. `name` is what errors call it.
 * SBA_ECONFIG: broken, and where. */
SBA_API int sba_image_lock_open(const char *json, const char *name, struct sba_image_lock **ret,
				struct sba_error *err);
SBA_API void sba_image_lock_close(struct sba_image_lock *l); /* NULL is allowed */
/* As it belongs into a file; the same for the same content. The caller frees; NULL when
 * out of memory. */
SBA_API char *sba_image_lock_text(const struct sba_image_lock *l);
/* The digest that a reference is locked to; NULL: it is not. Lent until it is added again. */
SBA_API const char *sba_image_lock_digest(const struct sba_image_lock *l, const char *ref);
/* Asks the registry what the tag stands for now, for each platform, and keeps it. */
SBA_API int sba_image_lock_add(struct sba_image_lock *l, const char *ref,
			       const struct sba_image_options *options, struct sba_error *err);
/* Whether the registry has what is locked: SBA_ENOTFOUND: no such tag there;
 * SBA_EIMAGE: another digest, or the reference is not locked. */
SBA_API int sba_image_lock_verify(const struct sba_image_lock *l, const char *ref,
				  const struct sba_image_options *options, struct sba_error *err);

/* ---- an image to start ---- */

/* missing: pull only if it is not here; always; never: SBA_EIMAGE if it is not
 * here. A reference without a registry is never pulled: SBA_EIMAGE with a hint. */
enum sba_pull { SBA_PULL_MISSING, SBA_PULL_NEVER, SBA_PULL_ALWAYS };
/* The image is on the engine when this returns 0. SBA_EIMAGE: why not, in the registry's
 * words. */
SBA_API int sba_image_ensure(struct sba_engine *e, const char *ref, enum sba_pull pull,
			     const struct sba_image_options *options, struct sba_error *err);

/* What is wanted, and of which lock (NULL: none). */
struct sba_image_wanted {
	const char *ref;
	enum sba_pull pull;
	const struct sba_image_lock *lock;
	bool locked; /* nothing but what the lock has */
	const struct sba_image_options *options;
	uint64_t reserved[8];
};
/* What came of it. */
struct sba_image_settled {
	char ref[256];   /* to make sandboxes of: an id where the lock has it */
	bool built_here; /* the lock has another: this one was built on this engine */
	uint64_t reserved[8];
};
/* Makes sure that it is here, pulled by its digest where it is locked. SBA_EREFUSED: what
 * is here under that name is not what the lock has, and was not built here. */
SBA_API int sba_image_settle(struct sba_engine *e, const struct sba_image_wanted *wanted,
			     struct sba_image_settled *ret, struct sba_error *err);

/* ---- publishing ---- */

/* Bytes, with the NUL at its end. */
enum { SBA_IMAGE_DIGEST_MAX = 72 };
/* The digest that the tag stands for in the registry. SBA_ENOTFOUND: it has no such tag. */
SBA_API int sba_image_published(const char *ref, const struct sba_image_options *options,
				char ret[SBA_IMAGE_DIGEST_MAX], struct sba_error *err);
/* Pushes what is here under that name, and looks into the registry whether it is what
 * the tag stands for now. The lock (may be NULL) has it then. SBA_EEXIST: the registry
 * has that tag already, unless `force`. */
SBA_API int sba_image_publish(struct sba_engine *e, const char *ref, struct sba_image_lock *lock,
			      bool force, const struct sba_image_options *options,
			      struct sba_error *err);

/* One of them; strings are lent with the list. */
struct sba_image_info {
	const char *ref;
	const char *id;
	int64_t size;    /* bytes */
	int64_t created; /* UNIX seconds */
};
struct sba_image_list;
/* What of our repository is on the engine. The caller frees with sba_image_list_free(). */
SBA_API int sba_images_list(struct sba_engine *e, const struct sba_images *i,
			    struct sba_image_list **ret, struct sba_error *err);
SBA_API size_t sba_image_list_count(const struct sba_image_list *l);
/* Lent with the list; NULL behind its end. */
SBA_API const struct sba_image_info *sba_image_list_at(const struct sba_image_list *l, size_t n);
SBA_API void sba_image_list_free(struct sba_image_list *l); /* NULL is allowed */

/* ---- what is on the engine ---- */

/* Whether a reference is of our repository and of something that has an image there,
 * of whatever version and date. */
SBA_API bool sba_images_own(const struct sba_images *i, const char *ref);
/* Bytes, with the NUL at its end. */
enum { SBA_IMAGE_ID_MAX = 80 };
/* The id of an image that is there. SBA_ENOTFOUND: it is not. */
SBA_API int sba_image_id(struct sba_engine *e, const char *ref, char ret[SBA_IMAGE_ID_MAX],
			 struct sba_error *err);
/* Takes the name away, and the image with its last one. SBA_EREFUSED: not of ours;
 * SBA_EBUSY: a container is made of it; SBA_ENOTFOUND. */
SBA_API int sba_image_delete(struct sba_engine *e, const struct sba_images *i, const char *ref,
			     struct sba_error *err);

/* Removes what builds of our images left without a name more than a day ago, and no
 * container is made of; the progress tells each by its id. */
SBA_API int sba_images_sweep(struct sba_engine *e, const struct sba_image_options *options,
			     struct sba_error *err);

/* One tar of all of them (NULL-ended), in the format of `docker save`. SBA_EIMAGE: one
 * is not there. */
SBA_API int sba_images_save(struct sba_engine *e, const char *const *refs, sba_write_fn *write,
			    void *user, struct sba_error *err);
/* Takes such a tar in; the progress tells each name. SBA_EIMAGE: it is none. */
SBA_API int sba_images_load(struct sba_engine *e, sba_read_fn *read, void *user,
			    const struct sba_image_options *options, struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
