/* SPDX-License-Identifier: MIT */
/* A sandbox under construction: what is asked for, what the engine is told, and
 * whether it did that. */
#ifndef SBA_SANDBOX_MAKING_H
#define SBA_SANDBOX_MAKING_H

#include "image/image.h"
#include "sandbox/guest.h"
#include "sandbox/private.h"

#include "channel/protocol.h"

/* Every engine makes /etc, whatever the image has. */
#define SBA_CA_DIR  "/etc/sandbox-agent"
#define SBA_CA_PATH SBA_CA_DIR "/ca.crt"

struct sba_making {
	struct sba_engine *engine;
	struct sba_sandbox_options o; /* every default resolved */
	struct sba_until until;
	char made_name[SBA_NAME_MAX];
	char id[SBA_SANDBOX_ID_LEN + 1];
	char image_id[96];
	char pool[SBA_POOL_SPEC_LEN + 1]; /* what a member of the pool is for */
	size_t members;                   /* at most so many of them; 0: it is no member */
	char sidecar_ref[SBA_REF_MAX];
	struct sba_guest guest; /* for the engine's architecture */
	char workdir[4096];     /* of the image; "": none */
	bool as_root;           /* the image's user is root */
	char host_address[64];  /* what the host's name inside stands for */
	json_t *labels;
	struct sba_strv mounts; /* as o.mounts, resolved */
	struct sba_buf ca;
	struct sba_sandbox *sandbox;
	/* the sidecar's start, on a thread of its own */
	int start_rc;
	struct sba_error start_err;
};

/* ---- create.c ---- */

/* Resolves the options and looks at the image. m owns its sandbox until that is
 * taken out of it; always end with sba_making_fini(). */
int sba_making_init(struct sba_making *m, struct sba_engine *e,
		    const struct sba_sandbox_options *options,
		    struct sba_error *err) SBA_MUST_CHECK;
void sba_making_fini(struct sba_making *m);
/* The two containers. On failure nothing is left. */
int sba_making_make(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
/* A channel to it, which stays for the first command: only the guest can say that the main
 * container runs in the sidecar's process namespace. */
int sba_making_confirm(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EEXIST, in words. */
int sba_making_name_taken(const struct sba_making *m, struct sba_error *err);

/* ---- workdir.c ---- */

/* SBA_EREFUSED: it is under /proc. */
int sba_workdir_take(struct sba_making *m, const char *workdir,
		     struct sba_error *err) SBA_MUST_CHECK;
/* The same of what its parts lead to, in the main container, which has not been started. */
int sba_workdir_check(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;

/* ---- pool.c ---- */

/* 1: m has claimed a member of the pool that suits it; 0: there is none. */
int sba_member_take(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
/* What a member must have been made for to suit m: a hash. */
int sba_member_spec(const struct sba_making *m, char ret[SBA_POOL_SPEC_LEN + 1],
		    struct sba_error *err) SBA_MUST_CHECK;

/* ---- room.c ---- */

/* Once both containers exist: SBA_ELIMIT if there are more of this prefix (or
 * members of the pool like it) than may be, in the order in which the engine made
 * them, so that of several clients at once exactly those beyond the limit give
 * way. Sweeps litter by the way. */
int sba_room_check(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
/* For a claimed one, which is older than it counts: whether there is room besides
 * all others. At the limit claims at once may all be refused. */
int sba_room_check_claimed(const struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
/* The same of a list that was got already. */
int sba_room_left(const struct sba_making *m, const struct sba_found *f,
		  struct sba_error *err) SBA_MUST_CHECK;

/* ---- mounts.c ---- */

/* Fills m->mounts from m->o.mounts, which it takes the place of. SBA_EREFUSED: what would
 * bring an engine's socket in, or hide what a sandbox needs. */
int sba_mounts_resolve(struct sba_making *m, struct sba_error *err) SBA_MUST_CHECK;
int sba_mounts_add(const struct sba_making *m, json_t *host_config,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Where they are inside. */
int sba_mounts_paths(const struct sba_strv *mounts, struct sba_strv *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Whether what was told (HostConfig.Mounts) is what the engine says that it made. */
bool sba_mounts_hold(const json_t *wanted, const json_t *made) SBA_MUST_CHECK;

/* ---- volume.c ---- */

/* A volume for the sidecar, with its guest in it, that its sandbox takes it from. */
int sba_volume_offer(const struct sba_making *m, json_t *spec) SBA_MUST_CHECK;

/* ---- spec.c ---- */

/* Whether the main process's stdin is open for one client to attach to. */
bool sba_spec_attachable(const struct sba_making *m);
/* NULL when out of memory. */
json_t *sba_spec_sidecar(const struct sba_making *m);
int sba_spec_sandbox(const struct sba_making *m, json_t **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Compares what the engine made of a spec with it: engines drop fields that they
 * do not know without a word, and a sandbox that is less confined than it was
 * asked to be must not be used. */
int sba_spec_verify(const struct sba_making *m, const char *id, const json_t *spec,
		    struct sba_error *err) SBA_MUST_CHECK;

#endif
