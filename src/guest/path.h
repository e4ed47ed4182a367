/* SPDX-License-Identifier: MIT */
/*
 * Looks a program up as execvp() does, but in the PATH of the command's own
 * environment, not of ours.
 */
#ifndef SBA_GUEST_PATH_SEARCH_H
#define SBA_GUEST_PATH_SEARCH_H

#define SBA_GUEST_PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Tries one file; returns an errno, or 0 when there is nothing more to try. */
typedef int sba_guest_attempt(const char *file, void *arg);

/*
 * Attempts the files that program may mean, in order, until one returns 0 or
 * an error that another directory cannot cure. path NULL means the default.
 * An EACCES on the way is the result if nothing better is found, else ENOENT.
 */
int sba_guest_path_search(const char *program, const char *path, sba_guest_attempt *attempt,
			  void *arg);

#endif
