/* SPDX-License-Identifier: MIT */
/*
 * Writes one file inside: to a temporary name beside it, then renamed. Whether
 * it may be written at all is known before its content is asked for.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODE_MASK = 07777, NAME_ROOM = 32, TRIES = 100, NS = 1000000000 };

struct write {
	struct sba_file_request *request;
	uint32_t uid, gid; /* all ones: not given */
	uint64_t time;
	bool there;
	struct stat old;
	int fd;
	char temporary[SBA_CHANNEL_FILE_PATH_MAX + 1 + NAME_ROOM];
};

static bool read_dress(struct write *write)
{
	uint8_t dress[SBA_CHANNEL_FILE_DRESS];

	if (!sba_file_read_whole(STDIN_FILENO, dress, sizeof(dress)))
		return false;
	write->uid = (uint32_t)sba_file_get(dress, 4);
	write->gid = (uint32_t)sba_file_get(dress + 4, 4);
	write->time = sba_file_get(dress + 8, 8);
	return true;
}

/* A symbolic link is followed: what it leads to is replaced, not the link. */
static int follow(struct sba_file_request *request)
{
	char real[PATH_MAX];

	if (!realpath(request->path, real))
		return errno == ENOENT ? 0 : errno;
	if (strlen(real) >= sizeof(request->path))
		return ENAMETOOLONG;
	memcpy(request->path, real, strlen(real) + 1);
	return 0;
}

static int look(struct write *write)
{
	write->there = lstat(write->request->path, &write->old) == 0;
	if (!write->there)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISREG(write->old.st_mode))
		return S_ISDIR(write->old.st_mode) ? EISDIR : EOPNOTSUPP;
	return 0;
}

static int open_temporary(struct write *write)
{
	const char *path = write->request->path;
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash - path + 1) : 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		snprintf(write->temporary, sizeof(write->temporary), "%.*s.sba-%d-%u", directory,
			 path, (int)getpid(), i);
		write->fd = sba_session_file_open(write->temporary,
						  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
		if (write->fd >= 0)
			return 0;
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

/* Whose it will be: as asked for, else as the file that is there. */
static int own(const struct write *write)
{
	const uint32_t none = SBA_CHANNEL_FILE_NO_MODE;
	uid_t uid = write->there ? write->old.st_uid : geteuid();
	gid_t gid = write->there ? write->old.st_gid : getegid();

	uid = write->uid != none ? write->uid : uid;
	gid = write->gid != none ? write->gid : gid;
	if (uid == geteuid() && gid == getegid())
		return 0;
	return fchown(write->fd, uid, gid) < 0 ? errno : 0;
}

static int copy_content(const struct write *write)
{
	static struct sba_file_part part;

	for (;;) {
		/* A client that died half-way changes nothing. */
		if (!sba_file_part_read(&part))
			return ECANCELED;
		if (part.kind == SBA_PART_END)
			return 0;
		if (part.kind != SBA_PART_DATA)
			return EPROTO;
		if (!sba_file_write_whole(write->fd, part.data, part.len))
			return errno;
	}
}

static int dress(const struct write *write)
{
	mode_t mode = write->there ? write->old.st_mode & MODE_MASK : 0644;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	if (write->request->mode != SBA_CHANNEL_FILE_NO_MODE)
		mode = write->request->mode & MODE_MASK;
	if (fchmod(write->fd, mode) < 0)
		return errno;
	if (write->time == SBA_CHANNEL_FILE_NO_TIME)
		return 0;
	times[1].tv_sec = (time_t)((int64_t)write->time / NS);
	times[1].tv_nsec = (long)((int64_t)write->time % NS);
	return futimens(write->fd, times) < 0 ? errno : 0;
}

static int finish(struct write *write)
{
	int error = copy_content(write);

	if (!error)
		error = dress(write);
	if (close(write->fd) < 0 && !error)
		error = errno;
	write->fd = -1;
	if (!error && rename(write->temporary, write->request->path) < 0)
		error = errno;
	return error;
}

int sba_file_serve_write(struct sba_file_request *request)
{
	static struct write write;
	int error;

	write.request = request;
	write.fd = -1;
	if (!read_dress(&write))
		return 1;
	error = sba_file_make_parents(request->path);
	if (!error)
		error = follow(request);
	if (!error)
		error = look(&write);
	if (!error)
		error = open_temporary(&write);
	if (error)
		return sba_file_part_end(error, 0, "");
	error = own(&write);
	if (!error && !sba_file_part_write(SBA_PART_GO, "", 0))
		error = ECANCELED;
	if (!error)
		error = finish(&write);
	if (error)
		unlink(write.temporary);
	return sba_file_part_end(error, 0, "");
}
