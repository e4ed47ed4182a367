/* SPDX-License-Identifier: MIT */
/* Snapshots: the ways to look through a folder, as members of a table. */
#ifndef SBA_SANDBOX_SNAPSHOT_H
#define SBA_SANDBOX_SNAPSHOT_H

#include "sandbox/kept.h"

/* By the guest, with what is known of earlier looks; by commands where there is none. */
int sba_guest_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
		       sba_snapshot_fn *tell, void *user, struct sba_error *err) SBA_MUST_CHECK;
/* By the guest, with what earlier looks through this handle have told: `hashes` is kept by this
 * side, where nothing inside is root's. */
struct sba_hashes;
int sba_hashes_snapshot(struct sba_sandbox *s, struct sba_hashes *hashes,
			const struct sba_snapshot_options *options, sba_snapshot_fn *tell,
			void *user, struct sba_error *err) SBA_MUST_CHECK;
int sba_hashes_new(struct sba_hashes **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_hashes_free(struct sba_hashes *h); /* NULL is allowed */

/* What both share (snapshot_guest.c): what the guest is asked for; a list of what was found, for
 * the next look to be spared what was read in this one; how many files were read; and telling of
 * all. */
uint32_t sba_snapshot_flags(const struct sba_snapshot_options *o);
void sba_snapshot_list(const struct sba_records *r, struct sba_buf *ret);
size_t sba_snapshot_read(const struct sba_records *r);
int sba_snapshot_tell(const struct sba_records *r, sba_snapshot_fn *tell, void *user,
		      struct sba_error *err) SBA_MUST_CHECK;

/* By find and sha256sum inside. */
int sba_commands_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
			  sba_snapshot_fn *tell, void *user, struct sba_error *err) SBA_MUST_CHECK;

/* A file or folder that could not be looked at; NULL behind the end. */
const char *sba_snapshot_left_out_at(const struct sba_snapshot *n, size_t i);

#endif
