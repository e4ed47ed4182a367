/* SPDX-License-Identifier: MIT */
/* Snapshots: the ways to look through a folder, as members of a table. */
#ifndef SBA_SANDBOX_SNAPSHOT_H
#define SBA_SANDBOX_SNAPSHOT_H

#include "sandbox/kept.h"

/* By the guest, with what is known of earlier looks; by commands where there is none. */
int sba_guest_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
		       sba_snapshot_fn *tell, void *user, struct sba_error *err) SBA_MUST_CHECK;
/* By find and sha256sum inside. */
int sba_commands_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
			  sba_snapshot_fn *tell, void *user, struct sba_error *err) SBA_MUST_CHECK;

/* A file or folder that could not be looked at; NULL behind the end. */
const char *sba_snapshot_left_out_at(const struct sba_snapshot *n, size_t i);

#endif
