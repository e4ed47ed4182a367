/* SPDX-License-Identifier: MIT */
#ifndef SBA_SANDBOX_PRIVATE_H
#define SBA_SANDBOX_PRIVATE_H

#include "engine/engine.h"
#include "sandbox/sandbox.h"

#define SBA_LABEL          "io.sandbox-agent."
#define SBA_LABEL_SCHEMA   1
#define SBA_SIDECAR_SUFFIX "-sidecar"
/* What the sandbox calls the host on the engine's bridge. */
#define SBA_HOST_NAME         "host.docker.internal"
#define SBA_DEFAULT_WORKSPACE "/workspace"

enum {
	SBA_NAME_MAX = 64,
	SBA_SANDBOX_ID_LEN = 32,
	SBA_ENGINE_STEP_MS = 60 * 1000, /* one request of the engine, busy or not */
	SBA_REMOVE_MS = 30 * 1000,
};

struct sba_session;

/* One sandbox as the engine lists it, and a handle on it. */
struct sba_sandbox {
	struct sba_engine *engine;
	json_t *labels;               /* of the main container, else of the sidecar */
	char container[SBA_ID_MAX];   /* "" if there is none */
	char sidecar[SBA_ID_MAX];     /* "" if there is none */
	struct sba_session *session;  /* of a handle; NULL in lists */
	const char *sidecar_state;    /* as info.state, a literal */
	struct sba_sandbox_info info; /* strings lent from labels */
};

/* SBA_EBROKEN for what is only good for removal: one half of it is missing. */
int sba_sandbox_check_whole(const struct sba_sandbox *s, struct sba_error *err) SBA_MUST_CHECK;

/* ---- labels.c ---- */

/* What labels say of a new sandbox; `options` with every default resolved. */
int sba_labels_make(const struct sba_sandbox_options *options, const char *id, json_t **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* A copy with role=sidecar or role=sandbox. */
json_t *sba_labels_with_role(const json_t *labels, const char *role);
/* Fills info with strings lent from labels. */
void sba_labels_read(const json_t *labels, struct sba_sandbox_info *info);
const char *sba_label_get(const json_t *labels, const char *name);
/* True if whoever made it is surely dead: same machine, boot and pid namespace
 * as ours, and no such process any more. */
bool sba_label_creator_dead(const json_t *labels);

/* ---- names.c ---- */

int sba_name_check(const char *what, const char *name, struct sba_error *err) SBA_MUST_CHECK;
int sba_name_make(char ret[SBA_NAME_MAX], struct sba_error *err) SBA_MUST_CHECK;

/* ---- find.c ---- */

/* Groups what is on the engine into sandboxes: by our labels, main container
 * and sidecar together. Frees with sba_found_fini(). */
struct sba_found {
	struct sba_sandbox *v;
	size_t n;
};
int sba_found_get(struct sba_engine *e, const char *const *labels, struct sba_found *ret,
		  struct sba_error *err) SBA_MUST_CHECK;
int sba_found_get_until(struct sba_engine *e, const char *const *labels, struct sba_until until,
			struct sba_found *ret, struct sba_error *err) SBA_MUST_CHECK;
/* Half-made or broken, and surely nobody's work under way. */
bool sba_found_is_litter(const struct sba_sandbox *s);
void sba_found_fini(struct sba_found *f);
/* A new entry at its end, empty; NULL when out of memory. */
struct sba_sandbox *sba_found_new(struct sba_found *f, struct sba_engine *e);

/* ---- remove.c ---- */

/* Both containers of one sandbox, main last in name but first in death: the
 * sidecar's end ends everything in it. */
int sba_sandbox_remove_both(struct sba_engine *e, const char *sidecar, const char *container,
			    struct sba_error *err) SBA_MUST_CHECK;

#endif
