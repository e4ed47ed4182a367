/* SPDX-License-Identifier: MIT */
/*
 * `guest owners`: who owns the absolute paths that come on stdin, each ended by a
 * NUL, and all that is in them, for engines whose archives do not tell. On stdout
 * "UID:GID PATH", each ended by a NUL: of each path that came, and of what is below
 * it where it belongs to another than the folder that it is in. What cannot be
 * looked at is not told.
 */
#include "guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/paths_in.h"

enum { IDS_MAX = 32 };

static struct owners {
	uid_t uid; /* of the folder that is looked through */
	gid_t gid;
	dev_t dev; /* other file systems are no part of it */
	int depth;
	struct sba_file_name name;
	size_t have;
	char out[SBA_FILE_STEP];
} owners;

static int flush(void)
{
	bool done = sba_file_write_whole(STDOUT_FILENO, owners.out, owners.have);

	owners.have = 0;
	return done ? 0 : ECANCELED;
}

static int tell(const struct stat *stat)
{
	size_t len = owners.name.len + 1;
	int error = owners.have + IDS_MAX + len > sizeof(owners.out) ? flush() : 0;

	owners.have += (size_t)snprintf(owners.out + owners.have, IDS_MAX, "%u:%u ", stat->st_uid,
					stat->st_gid);
	memcpy(owners.out + owners.have, owners.name.text, len);
	owners.have += len;
	return error;
}

static int look(void *user, int dir_fd, const char *leaf);

static int look_below(int dir_fd, const char *leaf, const struct stat *stat)
{
	const uid_t uid = owners.uid;
	const gid_t gid = owners.gid;
	int fd = sba_file_open_dir(dir_fd, leaf);
	int error = 0;

	if (fd < 0)
		return 0;
	owners.uid = stat->st_uid;
	owners.gid = stat->st_gid;
	owners.depth++;
	/* A folder that ends early has told what it could; a host that is gone ends all. */
	if (sba_file_each(fd, look, NULL) == ECANCELED)
		error = ECANCELED;
	owners.depth--;
	owners.uid = uid;
	owners.gid = gid;
	close(fd);
	return error;
}

static int look(void *user, int dir_fd, const char *leaf)
{
	bool top = owners.depth == 0;
	struct stat stat;
	size_t before;
	int error = 0;

	(void)user;
	if (fstatat(dir_fd, leaf, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
	    sba_file_name_push(&owners.name, leaf, &before))
		return 0;
	if (top)
		owners.dev = stat.st_dev;
	if (top || stat.st_uid != owners.uid || stat.st_gid != owners.gid)
		error = tell(&stat);
	if (!error && S_ISDIR(stat.st_mode) && stat.st_dev == owners.dev &&
	    owners.depth < SBA_FILE_DEPTH_MAX)
		error = look_below(dir_fd, leaf, &stat);
	sba_file_name_pop(&owners.name, before);
	return error;
}

static bool look_at_path(const char *path)
{
	return look(NULL, AT_FDCWD, path) == 0;
}

int sba_guest_owners(int argc, char **argv)
{
	int rc;

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	rc = sba_guest_each_path(look_at_path);
	return flush() == 0 ? rc : SBA_GUEST_FAILED;
}
