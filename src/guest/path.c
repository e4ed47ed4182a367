/* SPDX-License-Identifier: MIT */
/*
 * The PATH search; see path.h. Unlike execvp() it does not hand a file that
 * the kernel cannot execute to a shell: a binary of another machine would come
 * out as a syntax error.
 */
#include "guest/path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool try_elsewhere(int err)
{
	return err == ENOENT || err == ENOTDIR || err == EACCES || err == ESTALE || err == ENODEV ||
	       err == ETIMEDOUT || err == ENAMETOOLONG || err == ELOOP;
}

/* An empty element of PATH is the working directory. */
static int attempt_in(const char *dir, size_t dir_len, const char *program,
		      sba_guest_attempt *attempt, void *arg)
{
	char file[PATH_MAX];
	int len;

	if (dir_len >= sizeof(file))
		return ENAMETOOLONG;
	len = snprintf(file, sizeof(file), "%.*s%s%s", (int)dir_len, dir, dir_len > 0 ? "/" : "./",
		       program);
	if (len < 0 || (size_t)len >= sizeof(file))
		return ENAMETOOLONG;
	return attempt(file, arg);
}

int sba_guest_path_search(const char *program, const char *path, sba_guest_attempt *attempt,
			  void *arg)
{
	bool denied = false;

	if (program[0] == '\0')
		return ENOENT;
	if (strchr(program, '/'))
		return attempt(program, arg);
	if (!path)
		path = SBA_GUEST_PATH_DEFAULT;
	for (;;) {
		size_t len = strcspn(path, ":");
		int err = attempt_in(path, len, program, attempt, arg);

		if (!try_elsewhere(err))
			return err;
		denied |= err == EACCES;
		if (path[len] == '\0')
			return denied ? EACCES : ENOENT;
		path += len + 1;
	}
}
