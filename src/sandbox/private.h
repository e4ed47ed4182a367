/* SPDX-License-Identifier: MIT */
/* What the files of this module share: a sandbox, its labels, its name, lists. */
#ifndef SBA_SANDBOX_PRIVATE_H
#define SBA_SANDBOX_PRIVATE_H

#include <sandbox-agent/backend.h>

#include "engine/engine.h"
#include "sandbox/sandbox.h"

#include <pthread.h>

#define SBA_LABEL          "io.sandbox-agent."
#define SBA_LABEL_SCHEMA   1
#define SBA_SIDECAR_SUFFIX "-sidecar"
/* What the sandbox calls the host on the engine's bridge. */
#define SBA_HOST_NAME         "host.docker.internal"
#define SBA_DEFAULT_WORKSPACE "/workspace"

enum {
	SBA_NAME_MAX = 64,
	SBA_FILTER_MAX = 2 * SBA_NAME_MAX, /* "LABEL=VALUE" */
	SBA_SANDBOX_ID_LEN = 32,
	SBA_POOL_SPEC_LEN = 32,
	SBA_ENGINE_STEP_MS = 60 * 1000, /* one request of the engine, busy or not */
};

struct sba_session;
struct sba_carried;
struct sba_states;

/* One sandbox as the engine lists it, and a handle on it. */
struct sba_sandbox {
	struct sba_engine *engine;    /* NULL: there is none */
	json_t *labels;               /* of the main container, else of the sidecar */
	char container[SBA_ID_MAX];   /* "" if there is none */
	char sidecar[SBA_ID_MAX];     /* "" if there is none */
	struct sba_session *session;  /* of a handle; NULL in lists */
	json_t *resident;             /* an agent that moved in; NULL: none is known of */
	const char *sidecar_state;    /* as info.state, a literal */
	bool claimed;                 /* a member of the pool that is somebody's */
	bool unattached;              /* ours alone, and nobody has had a channel to it */
	struct sba_sandbox_info info; /* strings lent from labels, or from resident */
	/* Of those without an engine: */
	const struct sba_backend *backend; /* NULL: docker */
	struct sba_backend older;          /* that, where the table is of an earlier version */
	void *self;                        /* the backend's */
	struct sba_cancel *cancel;         /* ends every wait; NULL: nothing does */
	pthread_mutex_t lock;              /* of what follows */
	bool closed;
	/* May be NULL: whether the files of a path are the sandbox's. */
	int (*check_path)(struct sba_sandbox *s, const char *path, struct sba_error *err);
	bool carries;                /* its channel is one of carried.c: files go without it */
	struct sba_carried *carried; /* the last one */
	struct sba_lock *locks;      /* that are held */
	pthread_cond_t unlocked;
	struct sba_states *states; /* of the workspace; NULL: none is kept here */
	char *root; /* what is root's own elsewhere lies beneath it; NULL: not asked yet */
};

/* SBA_EBROKEN where one half of it was missing when the handle was opened: it is being
 * made, or it is ending, and why is told; or it is paused. SBA_EREFUSED: one of the pool. */
int sba_sandbox_check_whole(const struct sba_sandbox *s, struct sba_error *err) SBA_MUST_CHECK;

/* sba_sandbox_check_alive() that goes on no longer than `until`. */
int sba_sandbox_check_alive_until(struct sba_sandbox *s, const char *tried, struct sba_until until,
				  struct sba_error *err) SBA_MUST_CHECK;

/* ---- table.c: the backend's table ---- */

const struct sba_backend *sba_backend_of(const struct sba_sandbox *s);
/* SBA_EUNSUPPORTED that names the first capability which is missing. */
int sba_sandbox_need(const struct sba_sandbox *s, unsigned capabilities,
		     struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EBROKEN after sba_sandbox_remove(), where there is no engine to ask. */
int sba_sandbox_check_open(struct sba_sandbox *s, struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EREFUSED: a path that the sandbox is not let at. */
int sba_sandbox_check_path(struct sba_sandbox *s, const char *path,
			   struct sba_error *err) SBA_MUST_CHECK;
/* What makes no sense in any sandbox. */
int sba_exec_options_check(const struct sba_exec_options *o, struct sba_error *err) SBA_MUST_CHECK;

/* ---- docker.c, process_start.c, one_file.c, paths.c: members of its table ---- */

extern const struct sba_backend sba_backend_docker;
/* By the channel, and by the engine where that does not do. */
int sba_inside_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		    sba_write_fn *write, void *user, struct sba_error *err) SBA_MUST_CHECK;
int sba_inside_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		     const struct sba_write_options *options, struct sba_error *err) SBA_MUST_CHECK;
int sba_inside_look(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		    struct sba_error *err) SBA_MUST_CHECK;
int sba_docker_fork(struct sba_sandbox *parent, const struct sba_fork_options *options,
		    struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		    struct sba_error *err) SBA_MUST_CHECK;
int sba_docker_remove(struct sba_sandbox *s, struct sba_error *err) SBA_MUST_CHECK;
/* As root, by the engine. */
int sba_docker_read_small(struct sba_sandbox *s, const char *path, size_t max, struct sba_buf *ret,
			  struct sba_error *err) SBA_MUST_CHECK;
int sba_docker_write_files(struct sba_sandbox *s, const struct sba_small_file *files, size_t n,
			   struct sba_error *err) SBA_MUST_CHECK;
int sba_docker_make_dir(struct sba_sandbox *s, const char *path,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- commands.c: made of `exec` and of what most images have ---- */

int sba_commands_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		       const struct sba_write_options *options,
		       struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_stat(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		      struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_which(struct sba_sandbox *s, const char *program, char **ret,
		       struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_tempdir(struct sba_sandbox *s, char **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_make_dir(struct sba_sandbox *s, const char *path,
			  struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_home(struct sba_sandbox *s, char **ret, struct sba_error *err) SBA_MUST_CHECK;
/* As the members of a table: by tar and cp, by way of another folder beside it. */
int sba_commands_put(struct sba_sandbox *s, const char *folder, sba_read_fn *read, void *user,
		     const struct sba_tree_options *options, struct sba_error *err) SBA_MUST_CHECK;
int sba_commands_tar(struct sba_sandbox *s, const char *path,
		     const struct sba_tree_options *options, struct sba_tree *ret,
		     struct sba_error *err) SBA_MUST_CHECK;

/* ---- labels.c ---- */

/* What labels say of a new sandbox; `options` with every default resolved. `pool`:
 * what a member of the pool is made for, else NULL. */
int sba_labels_make(const struct sba_sandbox_options *options, const char *id, const char *pool,
		    json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* A copy with role=sidecar or role=sandbox. */
json_t *sba_labels_with_role(const json_t *labels, const char *role);
/* A copy that says another name: that of a claimed member is its container's. */
json_t *sba_labels_with_name(const json_t *labels, const char *name);
/* Fills info with strings lent from labels. */
void sba_labels_read(const json_t *labels, struct sba_sandbox_info *info);
const char *sba_label_get(const json_t *labels, const char *name);
/* What the engine filters by for all of a prefix (NULL: the default); returns buf. */
const char *sba_label_of_prefix(char buf[SBA_FILTER_MAX], const char *prefix);
/* Adds what a label holds with spaces between: the rules of --allow. */
int sba_label_words(const char *value, struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;
/* True if whoever made it is surely dead: same machine, boot and pid namespace
 * as ours, and no such process any more. */
bool sba_label_creator_dead(const json_t *labels);

/* ---- names.c ---- */

int sba_name_check(const char *what, const char *name, struct sba_error *err) SBA_MUST_CHECK;
int sba_name_make(char ret[SBA_NAME_MAX], struct sba_error *err) SBA_MUST_CHECK;

/* ---- ours.c ---- */

/* A pool member's name is SBA_MEMBER and eight hex digits. Once it is claimed its
 * main container has the claimer's name, and its sidecar for ever that with
 * SBA_CLAIMED_SUFFIX. */
#define SBA_MEMBER         "pool-"
#define SBA_CLAIMED_SUFFIX "-claimed" SBA_SIDECAR_SUFFIX
/* Whether a name begins as those of members do, which are theirs alone. */
bool sba_member_name(const char *name);

/* Whether a container that carries labels of ours is the one that they were made
 * for; one from a committed image of ours carries them too. */
bool sba_ours_sidecar(const json_t *container, bool *ret_claimed) SBA_MUST_CHECK;
/* `list`: all containers with these labels. *ret_name is lent with the container. */
bool sba_ours_main(const json_t *list, const json_t *container,
		   const char **ret_name) SBA_MUST_CHECK;
/* The same of an event's attributes, as far as they tell: the labels and the name. A
 * container of a committed image is told apart unless that is of a pool's member. */
bool sba_ours_event(const json_t *attributes) SBA_MUST_CHECK;
/* In the pool, ready or on its way there or away: nobody's sandbox yet. */
bool sba_member_unclaimed(const struct sba_sandbox *s);

/* ---- describe.c ---- */

/* How many clients hold a running container, which was just inspected. An exec that the
 * engine tells nothing of until then counts. */
int sba_sandbox_held(const struct sba_sandbox *s, const json_t *container, struct sba_until until);

/* ---- pool.c ---- */

/* Claimed by somebody who died before he gave it a name, a minute ago or more. */
bool sba_claim_abandoned(const struct sba_sandbox *s);

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
/* Those of a prefix; NULL: the default. */
int sba_found_get_prefix(struct sba_engine *e, const char *prefix, struct sba_found *ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* Half-made or broken, and surely nobody's work under way. */
bool sba_found_is_litter(const struct sba_sandbox *s);
/* What died half-made goes with the next command of any kind, which does not fail for it.
 * What is asked for by name (may be NULL) stays, for the answer. */
void sba_found_sweep(struct sba_engine *e, struct sba_found *f, const char *asked_for);
void sba_found_fini(struct sba_found *f);
/* A new entry at its end, empty; NULL when out of memory. */
struct sba_sandbox *sba_found_new(struct sba_found *f, struct sba_engine *e);

/* ---- list.c ---- */

struct sba_sandbox_list {
	struct sba_found found;
};
/* Whether the options of a list want it, whatever its prefix is. */
bool sba_list_wants(const struct sba_sandbox *s, const struct sba_list_options *o);
/* Newest first. */
void sba_list_sort(struct sba_sandbox_list *l);

/* ---- lock.c ---- */

/* What a sandbox's names are locked by (SBA_LOCK_KEY_LEN hex digits): made of its id, which
 * nobody inside knows. */
int sba_lock_key(const char *id, char *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- volume.c ---- */

/* Removes the volumes of a prefix that no container has; how many. */
int sba_volumes_sweep(struct sba_engine *e, const char *prefix, struct sba_until until,
		      int *ret_removed, struct sba_error *err) SBA_MUST_CHECK;

/* ---- remove.c ---- */

/* Both containers of one sandbox, main last in name but first in death: the
 * sidecar's end ends everything in it. */
int sba_sandbox_remove_both(struct sba_engine *e, const char *sidecar, const char *container,
			    struct sba_error *err) SBA_MUST_CHECK;

#endif
