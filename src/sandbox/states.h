/* SPDX-License-Identifier: MIT */
/*
 * What a workspace was, kept by the handle: for sandboxes in which nothing is root's. It is
 * looked at by the guest or by commands, and the content of smaller files is fetched.
 */
#ifndef SBA_SANDBOX_STATES_H
#define SBA_SANDBOX_STATES_H

#include "sandbox/change_list.h"

/* As it is now, as a turn begins, or as a workspace came in (turn 0). Two are kept: the
 * first one, and the last. */
int sba_states_keep(struct sba_sandbox *s, const char *folder, int64_t turn,
		    struct sba_error *err) SBA_MUST_CHECK;
/* What has changed since that turn began; 0: since the first state. SBA_ENOTFOUND: nothing
 * is kept of that. */
int sba_states_changes(struct sba_sandbox *s, int64_t turn, struct sba_changes **ret,
		       struct sba_error *err) SBA_MUST_CHECK;
void sba_states_free(struct sba_states *states); /* NULL is allowed */

/* The contents of files that the records tell of as new or changed, by one command
 * (contents.c); not those of large ones, nor of what has changed since. */
int sba_contents_fetch(struct sba_sandbox *s, const char *folder, struct sba_until until,
		       struct sba_records *r, struct sba_error *err) SBA_MUST_CHECK;

#endif
