/* SPDX-License-Identifier: MIT */
/*
 * A repository whose objects are partly another's (objects/info/alternates). The paths
 * that it names lead nowhere inside, and all that lies there may be more than this
 * repository has ever shown: so git packs what is reached from here.
 */
#include "sandbox/borrowed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "sandbox/git.h"

bool sba_git_borrows(const char *common)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	struct stat st;
	sba_buf_printf(&path, "%s/objects/info/alternates", common);
	return !path.failed && stat(path.data, &st) == 0 && st.st_size > 0;
}

/* What is in /tmp may be in memory. */
static int make_folder(char ret[SBA_BORROWED_PATH], struct sba_error *err)
{
	static const char *const folders[] = { "/var/tmp", "/tmp" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(folders); i++) {
		snprintf(ret, SBA_BORROWED_PATH, "%s/sandbox-agent-git-XXXXXX", folders[i]);
		if (mkdtemp(ret))
			return 0;
	}
	return sba_fail_errno(err, SBA_EIO, errno, "a temporary folder in /var/tmp or /tmp");
}

int sba_borrowed_pack(const char *dir, struct sba_until until, char ret[SBA_BORROWED_PATH],
		      struct sba_error *err)
{
	char folder[SBA_BORROWED_PATH], within[SBA_BORROWED_PATH + 8], base[sizeof(within) + 8];
	int rc = make_folder(folder, err);
	if (rc < 0)
		return rc;
	snprintf(within, sizeof(within), "%s/pack", folder);
	snprintf(base, sizeof(base), "%s/pack", within);
	/* Of a partial clone what is missing here is missing inside as well. Without a window
	 * what is packed stays as it is. */
	const char *const args[] = { "pack-objects", "-q",
				     "--all",        "--reflog",
				     "--window=0",   "--indexed-objects",
				     "--non-empty",  "--missing=allow-any",
				     base,           NULL };
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(4 * SBA_RUN_IO_CHUNK);
	if (mkdir(within, 0755) < 0)
		rc = sba_fail_errno(err, SBA_EIO, errno, "%s", within);
	if (rc == 0)
		rc = sba_git_run(dir, args, until, &said, err);
	if (rc > 0) {
		rc = sba_fail(err, SBA_EREFUSED,
			      "'%s' borrows objects from another repository, and git does not pack "
			      "them: %.300s",
			      dir, said.data ? said.data : "");
		sba_hint(err, rc, "does it work here?  git -C %s fsck", dir);
	}
	if (rc < 0) {
		sba_borrowed_remove(folder);
		return rc;
	}
	memcpy(ret, folder, sizeof(folder));
	return 0;
}

void sba_borrowed_remove(const char *folder)
{
	sba_remove_tree(AT_FDCWD, folder);
}
