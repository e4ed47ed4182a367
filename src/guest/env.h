/* SPDX-License-Identifier: MIT */
/*
 * The environment of a command: the exec's own with the host's on top.
 */
#ifndef SBA_GUEST_ENV_H
#define SBA_GUEST_ENV_H

/*
 * A new array, ended by NULL, of the strings of base and over, which it lends:
 * of each name the last one, in the place of the first. Strings without '='
 * are left out. NULL when memory is short; the caller frees the array only.
 */
char **sba_guest_env_merge(char *const *base, char *const *over);

/* The value of name, lent by env, or NULL. */
const char *sba_guest_env_get(char *const *env, const char *name);

/*
 * A user whom the image does not know has "/" for HOME (Docker 20.10) or none, and may
 * not write there: then it becomes /tmp/home-UID of ours, if that is his alone.
 */
void sba_guest_env_settle_home(void);

#endif
