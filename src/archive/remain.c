/* SPDX-License-Identifier: MIT */
/* What is left in a tree of this host that is to give way: folders alone, or more. */
#include "archive/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct looking {
	bool (*goes)(void *user, const char *path);
	void *user;
	char *path; /* SBA_LAND_PATH_MAX */
};

static int look_into(struct looking *l, int dir_fd, const char *name, unsigned depth);

static int look_at(struct looking *l, int dir_fd, const char *name, unsigned depth)
{
	struct stat st;
	size_t len = strlen(l->path);
	int n = snprintf(l->path + len, SBA_LAND_PATH_MAX - len, "/%s", name);
	if (n < 0 || (size_t)n >= SBA_LAND_PATH_MAX - len)
		return -ENAMETOOLONG;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	int rc = S_ISDIR(st.st_mode) ? look_into(l, dir_fd, name, depth + 1)
				     : !l->goes || !l->goes(l->user, l->path);
	if (rc == 0)
		l->path[len] = '\0';
	return rc;
}

static int look_into(struct looking *l, int dir_fd, const char *name, unsigned depth)
{
	enum { DEPTH_MAX = 256 }; /* a descriptor each */
	const struct dirent *d;
	int rc = 0;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		rc = -errno;
		sba_cleanup_close(&fd);
		return rc;
	}
	while (rc == 0 && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			rc = look_at(l, dirfd(dir), d->d_name, depth);
	}
	closedir(dir);
	return rc;
}

int sba_files_remain(int dir_fd, const char *name, bool (*goes)(void *user, const char *path),
		     void *user, char path[SBA_LAND_PATH_MAX])
{
	struct looking l = { goes, user, path };
	return look_into(&l, dir_fd, name, 0);
}
