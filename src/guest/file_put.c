/* SPDX-License-Identifier: MIT */
/*
 * What is put into a folder comes into a staging folder first, by the engine or
 * in parts, and is moved in place once all of it has arrived. The staging
 * folder lies where it is to go, so that moving is renaming; this child holds a
 * lock on it, and removes it when the host goes.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define STAGE_MARK ".sandbox-agent-put-"

struct put {
	uint32_t flags;
	char real[PATH_MAX];
	char stage[sizeof(STAGE_MARK) + 24];
	int dir_fd, stage_fd;
	size_t seen; /* names looked at for a sweep */
};

/* ---- staging folders of others ---- */

static bool is_same(int dir_fd, const char *leaf, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dir_fd, leaf, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_uid == geteuid();
}

static int sweep_one(void *user, int dir_fd, const char *leaf)
{
	struct put *put = user;
	int fd;

	if (put->seen++ > SBA_FILE_SWEEP_MAX)
		return ECANCELED;
	if (strncmp(leaf, STAGE_MARK, strlen(STAGE_MARK)) != 0)
		return 0;
	fd = sba_file_open_dir(dir_fd, leaf);
	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(dir_fd, leaf, fd))
		sba_file_remove(dir_fd, leaf);
	close(fd);
	return 0;
}

/* ---- ours ---- */

static int make_stage(struct put *put)
{
	enum { TRIES = 100 };

	for (unsigned int i = 0; i < TRIES; i++) {
		snprintf(put->stage, sizeof(put->stage), STAGE_MARK "%d-%u", (int)getpid(), i);
		if (mkdirat(put->dir_fd, put->stage, 0700) < 0) {
			if (errno == EEXIST)
				continue;
			return errno;
		}
		put->stage_fd = sba_file_open_dir(put->dir_fd, put->stage);
		if (put->stage_fd >= 0 && flock(put->stage_fd, LOCK_EX | LOCK_NB) == 0 &&
		    is_same(put->dir_fd, put->stage, put->stage_fd))
			return 0;
		close(put->stage_fd);
	}
	return EEXIST;
}

static int open_folder(struct put *put, struct sba_file_request *request)
{
	size_t len = strlen(request->path);
	int error = 0;

	if (put->flags & SBA_PUT_MAKE && len + 2 <= sizeof(request->path)) {
		memcpy(request->path + len, "/.", 3);
		error = sba_file_make_parents(request->path);
		request->path[len] = '\0';
	}
	if (error)
		return error;
	if (!realpath(request->path, put->real))
		return errno;
	put->dir_fd = open(put->real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return put->dir_fd < 0 ? errno : 0;
}

static bool say_go(const struct put *put)
{
	uint8_t go[1 + PATH_MAX + sizeof(put->stage)];
	int len = snprintf((char *)go + 1, sizeof(go) - 1, "%s/%s",
			   strcmp(put->real, "/") == 0 ? "" : put->real, put->stage);

	go[0] = sba_file_mounts(put->real) & SBA_PLACE_OTHER_MOUNT;
	return sba_file_part_write(SBA_PART_GO, go, 1 + (size_t)len);
}

/* ---- what comes ---- */

static int something(void *user, int dir_fd, const char *leaf)
{
	(void)user;
	(void)dir_fd;
	(void)leaf;
	return EEXIST;
}

static int receive(const struct put *put, const char **ret_name)
{
	static struct sba_file_part part;

	if (!sba_file_part_read(&part))
		return ECANCELED;
	if (part.kind == SBA_PART_END && sba_file_each(put->stage_fd, something, NULL) == 0) {
		/* The engine has put it elsewhere: beneath a mount, most likely. */
		if (!sba_file_part_write(SBA_PART_AGAIN, "", 0) || !sba_file_part_read(&part))
			return ECANCELED;
	}
	if (part.kind == SBA_PART_DATA || part.kind == SBA_PART_ZEROS)
		return sba_file_unpack(put->stage_fd, &part, ret_name);
	return part.kind == SBA_PART_END ? 0 : EPROTO;
}

int sba_file_serve_put(struct sba_file_request *request)
{
	static struct put put;
	const char *name = "";
	uint64_t kept = 0;
	int error;

	put.flags = request->mode;
	put.dir_fd = put.stage_fd = -1;
	error = open_folder(&put, request);
	if (!error) {
		sba_file_each(put.dir_fd, sweep_one, &put);
		error = make_stage(&put);
	}
	if (error)
		return sba_file_part_end(error, 0, "");
	if (!say_go(&put))
		error = ECANCELED;
	if (!error)
		error = receive(&put, &name);
	if (!error)
		error = sba_file_move_all(put.stage_fd, put.dir_fd, put.flags, &kept, &name);
	sba_file_remove(put.dir_fd, put.stage);
	return sba_file_part_end(error, kept, name);
}
