/* SPDX-License-Identifier: MIT */
/* What the files of the local backend share: environment, confinement, private folder. */
#ifndef SBA_SANDBOX_LOCAL_H
#define SBA_SANDBOX_LOCAL_H

#include "sandbox/private.h"

/* ---- local_env.c ---- */

/* What is left of the options' environment, with their own on top and these folders. */
int sba_local_env(const struct sba_local_options *o, const char *folder, const char *own,
		  struct sba_strv *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- local_confine.c ---- */

/* Rules for sba_local_confine(): writing beneath these folders and to devices that are
 * nobody's. -1 in *ret_fd: the kernel has no Landlock. */
int sba_local_rules(const char *folder, const char *own, int *ret_fd,
		    struct sba_error *err) SBA_MUST_CHECK;
/* In a child after fork(): async-signal-safe. */
bool sba_local_confine(int rules_fd);

/* ---- local_own.c: a folder for one handle ---- */

/* Makes it, with home/ and tmp/ in it, and removes what dead programs have left. It is ours
 * while *ret_fd is open. */
int sba_local_own_open(char **ret_path, int *ret_fd, struct sba_error *err) SBA_MUST_CHECK;
void sba_local_own_close(const char *path, int take_fd);

#endif
