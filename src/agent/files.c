/* SPDX-License-Identifier: MIT */
/*
 * The driver's files in the sandbox: once, by one upload, and again only when
 * another version of the library brings others.
 */
#include "agent/private.h"

#include <string.h>

enum { FILES_MAX = 16 };

int sba_agent_place_files(struct sba_agent *a, struct sba_error *err)
{
	char mark[SBA_FILES_MARK];
	struct sba_small_file files[FILES_MAX];
	size_t n = 0;
	sba_driver_files_mark(a->driver, mark);
	if (strcmp(mark, a->files) == 0)
		return 0;
	for (const struct sba_driver_file *f = a->driver->files; f && f->path; f++) {
		if (n == FILES_MAX)
			return sba_fail(err, SBA_EINVAL, "more than %d files", (int)FILES_MAX);
		files[n++] =
			(struct sba_small_file){ f->path, f->content, strlen(f->content), f->mode };
	}
	int rc = sba_sandbox_write_files(a->sandbox, files, n, err);
	if (rc < 0)
		return sba_wrap(err, rc, "place its files");
	memcpy(a->files, mark, sizeof(mark));
	return 0;
}

int sba_agent_workdir(struct sba_agent *a, struct sba_error *err)
{
	int rc = a->workdir_known
			 ? 0
			 : sba_sandbox_make_dir(a->sandbox, sba_sandbox_workdir(a->sandbox), err);
	a->workdir_known = rc == 0;
	return rc;
}
