/* SPDX-License-Identifier: MIT */
/*
 * What the files that move files share: paths inside (paths.c), owners
 * (owner.c), and the one way in (send.c, dress.c). The one way out is tar_way.h's.
 */
#ifndef SBA_SANDBOX_FILES_H
#define SBA_SANDBOX_FILES_H

#include "archive/archive.h"
#include "channel/channel.h"
#include "sandbox/private.h"
#include "sandbox/session.h"

enum {
	SBA_INSIDE_PATH_MAX = 4096,
};

/* ---- paths.c ---- */

struct sba_until sba_transfer_until(const struct sba_sandbox *s, int64_t timeout_ms);
/* For what is small. */
struct sba_until sba_small_until(const struct sba_sandbox *s);
/* What is left of it as a timeout_ms of options: 1 at least; `none` where it has no end. */
int64_t sba_timeout_of(struct sba_until until, int64_t none);
/* What an engine tells of a path; owners it does not. */
struct sba_file_stat sba_stat_of_engine(const struct sba_path_stat *st);
/* Absolute, without trailing slashes. */
int sba_inside_path(const char *path, char ret[SBA_INSIDE_PATH_MAX],
		    struct sba_error *err) SBA_MUST_CHECK;
/* Whether it leads there, however it is written: "//proc", "/tmp/../proc/self". As a working
 * directory it would reach what an older runc leaves open (CVE-2024-21626). */
bool sba_inside_under_proc(const char *path);
/* "folder/leaf". */
int sba_inside_join(char ret[SBA_INSIDE_PATH_MAX], const char *folder, const char *leaf,
		    struct sba_error *err) SBA_MUST_CHECK;
/* The folder that a path other than "/" lies in, and its name there (lent). */
const char *sba_inside_split(const char *path, char ret_folder[SBA_INSIDE_PATH_MAX]);
const char *sba_base_name(const char *path);
/* Whether a folder, and no link to one, is there. */
bool sba_inside_is_folder(struct sba_sandbox *s, const char *path);
/* By the engine's own look at its files. */
int sba_inside_stat(struct sba_sandbox *s, const char *path, struct sba_path_stat *ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* Whether the engine finds nothing at all in it. Docker (20.10 at least) does not where
 * the source of a mount is gone. */
bool sba_inside_is_unseen(struct sba_sandbox *s);
/* Adds to rc, which it returns, which mounts it may be. */
int sba_hint_mounts(const struct sba_sandbox *s, struct sba_error *err, int rc);
/* What neither the user nor the engine can read. */
int sba_inside_refuse_read(const struct sba_sandbox *s, const char *path, struct sba_error *err);
/* What is always mounted, for when there is nobody inside to ask. */
int sba_refuse_mounts(const char *path, struct sba_error *err) SBA_MUST_CHECK;
/* The channel, for as long as the hold lasts; NULL (and 0) where there is none to be
 * had. */
int sba_files_channel(struct sba_sandbox *s, struct sba_hold **ret_hold, struct sba_channel **ret,
		      struct sba_error *err) SBA_MUST_CHECK;
void sba_cleanup_hold(struct sba_hold **h);
#define SBA_HOLD __attribute__((cleanup(sba_cleanup_hold)))

/* ---- owner.c ---- */

/* The ids of the sandbox's user. */
int sba_sandbox_owner(struct sba_sandbox *s, uint32_t *uid, uint32_t *gid,
		      struct sba_error *err) SBA_MUST_CHECK;
/* Those of "USER[:GROUP]", names or numbers. */
int sba_sandbox_ids(struct sba_sandbox *s, const char *owner, uint32_t *uid, uint32_t *gid,
		    struct sba_error *err) SBA_MUST_CHECK;

/* ---- send.c ---- */

/* What goes into a folder: a pack that is filled anew for each try, or a tar that
 * can be read once. */
struct sba_cargo {
	int (*fill)(void *user, struct sba_pack *p, struct sba_error *err);
	sba_tar_read_fn *tar; /* instead of fill */
	void *user;
	bool set_owner;
	uint32_t uid, gid;
	uint64_t total; /* for progress; 0: not known */
};
/* Into a folder inside, which is made where it is missing; in place once it is
 * whole. */
int sba_send(struct sba_sandbox *s, const char *folder, const struct sba_cargo *cargo,
	     const struct sba_transfer_options *o, struct sba_transfer_report *ret_report,
	     struct sba_error *err) SBA_MUST_CHECK;

/* ---- dress.c ---- */

/* The folders of a sending, as they are to be in the end. */
struct sba_dress {
	struct sba_buf dirs;
};
struct sba_dress_owner {
	uint32_t uid, gid;
	struct sba_until until;
};
void sba_dress_note(struct sba_dress *d, const char *name, uint32_t mode, int64_t mtime);
/* Forgets those that are in the folder already. */
int sba_dress_keep_new(struct sba_dress *d, struct sba_channel *c, const char *folder,
		       struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* Owner, mode and time, by the engine. */
int sba_dress_put(const struct sba_dress *d, struct sba_sandbox *s, const char *folder,
		  const struct sba_dress_owner *owner, struct sba_error *err) SBA_MUST_CHECK;

#endif
