/* SPDX-License-Identifier: MIT */
/* What files.c and workspace.c share: places inside a sandbox and uploads to them. */
#ifndef SBA_SANDBOX_FILES_H
#define SBA_SANDBOX_FILES_H

#include "archive/archive.h"
#include "sandbox/private.h"

enum { SBA_INSIDE_PATH_MAX = 4096 };

/* A path whose leaf is to be written: the deepest folder that exists, the
 * missing ones below it, the leaf. */
struct sba_inside_place {
	char parent[SBA_INSIDE_PATH_MAX];
	char missing[SBA_INSIDE_PATH_MAX]; /* "a/b" or "" */
	char leaf[256];
};

struct sba_until sba_transfer_until(const struct sba_sandbox *s,
				    const struct sba_transfer_options *o);
/* Absolute, without trailing slashes. */
int sba_inside_path(const char *path, char ret[SBA_INSIDE_PATH_MAX],
		    struct sba_error *err) SBA_MUST_CHECK;
int sba_inside_place(struct sba_sandbox *s, const char *path, struct sba_inside_place *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* The ids of the sandbox's user. */
int sba_sandbox_owner(struct sba_sandbox *s, uint32_t *uid, uint32_t *gid,
		      struct sba_error *err) SBA_MUST_CHECK;
/* A pack with the missing folders queued, owned by that user; ret_name (of
 * 2 * SBA_INSIDE_PATH_MAX) is the leaf's name in it. */
int sba_inside_pack(struct sba_sandbox *s, const struct sba_inside_place *place,
		    const struct sba_transfer_options *o, struct sba_pack **ret, char *ret_name,
		    struct sba_error *err) SBA_MUST_CHECK;
/* Sends and frees the pack. */
int sba_inside_send(struct sba_sandbox *s, const struct sba_inside_place *place,
		    struct sba_pack *take_pack, const struct sba_transfer_options *o,
		    struct sba_transfer_report *ret_report, struct sba_error *err) SBA_MUST_CHECK;

#endif
