/* SPDX-License-Identifier: MIT */
/* What git says of a folder on this host. */
#ifndef SBA_SANDBOX_GIT_H
#define SBA_SANDBOX_GIT_H

#include "base/base.h"

/* Runs git in dir and keeps its output (with its complaints if it fails).
 * Returns its exit status. SBA_ENOTFOUND: there is no git here. Nothing that a
 * repository could name is executed. */
int sba_git_run(const char *dir, const char *const *args, struct sba_until until,
		struct sba_buf *ret, struct sba_error *err) SBA_MUST_CHECK;
/* The same with a descriptor, lent, as its stdin. */
int sba_git_feed(const char *dir, const char *const *args, int in_fd, struct sba_until until,
		 struct sba_buf *ret, struct sba_error *err) SBA_MUST_CHECK;

/* The configuration of a repository as it has it inside: format, identity, names of
 * remotes; appended (git_config.c). What git does not tell is left out. */
int sba_git_config_make(const char *dir, struct sba_until until, struct sba_buf *config,
			struct sba_error *err) SBA_MUST_CHECK;

/* The files of the work tree at dir that are tracked or not ignored, those of
 * nested repositories included, relative to dir: 1; 0 where there is no
 * repository. SBA_EREFUSED: there is one, and git does not tell. */
int sba_git_files(const char *dir, struct sba_until until, struct sba_strv *ret,
		  struct sba_error *err) SBA_MUST_CHECK;

/* What `git ls-files -z` in dir says: names of files and of nested repositories, each
 * ended by NUL. Adds those that are there, beneath `prefix` ("" or "folder/"), of nested
 * repositories what git says of them. `depth` counts the nesting. */
int sba_git_take_names(const char *dir, const char *prefix, const struct sba_buf *names, int depth,
		       struct sba_until until, struct sba_strv *ret,
		       struct sba_error *err) SBA_MUST_CHECK;

#endif
