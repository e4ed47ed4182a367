/* SPDX-License-Identifier: MIT */
/*
 * An image's working directory. The runtime enters it before anything of ours could look:
 * under /proc it would reach what an older runc leaves open (CVE-2024-21626).
 */
#include "sandbox/files.h"
#include "sandbox/making.h"

#include <string.h>

static int refuse(const struct sba_making *m, const char *workdir, struct sba_error *err)
{
	return sba_fail(err, SBA_EREFUSED,
			"image '%s': its working directory '%s' is refused, as it is under /proc",
			m->o.image, workdir);
}

int sba_workdir_take(struct sba_making *m, const char *workdir, struct sba_error *err)
{
	if (!workdir || strlen(workdir) >= SBA_INSIDE_PATH_MAX)
		return 0; /* longer than any path that could be entered */
	if (sba_inside_under_proc(workdir))
		return refuse(m, workdir, err);
	snprintf(m->workdir, sizeof(m->workdir), "%s", workdir);
	return 0;
}

/* Where the first `len` bytes of it lead, with what follows them; what is not there the
 * engine makes. */
static int look(struct sba_making *m, size_t len, char ret[2 * SBA_INSIDE_PATH_MAX],
		struct sba_error *err)
{
	char path[SBA_INSIDE_PATH_MAX];
	struct sba_path_stat found = { 0 };
	snprintf(path, sizeof(path), "%.*s", (int)len, m->workdir);
	int rc = sba_container_stat(m->engine, m->sandbox->container, path,
				    sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), &found, err);
	if (rc == 0)
		snprintf(ret, 2 * SBA_INSIDE_PATH_MAX, "%s%s", found.link, m->workdir + len);
	return rc == 0 && !*found.link ? SBA_ENOTFOUND : rc;
}

int sba_workdir_check(struct sba_making *m, struct sba_error *err)
{
	char real[2 * SBA_INSIDE_PATH_MAX];
	struct sba_error why = { 0 };
	for (size_t at = strspn(m->workdir, "/"); m->workdir[at];
	     at += strspn(m->workdir + at, "/")) {
		at += strcspn(m->workdir + at, "/");
		int rc = look(m, at, real, &why);
		if (rc == 0 && sba_inside_under_proc(real))
			return refuse(m, m->workdir, err);
		/* Engine 20.10 answers 500 for a path through a file. */
		if (rc < 0 && rc != SBA_ENOTFOUND && rc != SBA_EENGINE) {
			if (err)
				*err = why;
			return rc;
		}
	}
	return 0;
}
