/* SPDX-License-Identifier: MIT */
/*
 * Puts what has been staged in place: directories that are there receive what
 * comes, files are replaced or stay as asked for, and neither ever gives way to
 * the other. All of it is checked before anything moves.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct move {
	uint32_t flags;
	uint64_t kept;
	bool check; /* the first of the two passes */
	int to_fd;
	int depth;
	struct sba_file_name name;
};

static int check_pair(const struct move *move, const struct stat *from, const struct stat *to)
{
	if (S_ISDIR(to->st_mode))
		return EISDIR;
	if (S_ISDIR(from->st_mode))
		return ENOTDIR;
	return move->flags & (SBA_PUT_REPLACE | SBA_PUT_NO_CLOBBER) ? 0 : EEXIST;
}

/* A directory that its owner may not write cannot be moved by him either. */
static int move_locked(int from_fd, const char *leaf, int to_fd, mode_t mode)
{
	int error = 0;

	if (fchmodat(from_fd, leaf, mode | S_IRWXU, 0) < 0)
		return EACCES;
	if (renameat2(from_fd, leaf, to_fd, leaf, RENAME_NOREPLACE) < 0)
		error = errno;
	else if (fchmodat(to_fd, leaf, mode & 07777, 0) < 0)
		error = errno;
	return error;
}

static int move_new(const struct move *move, int from_fd, const char *leaf, const struct stat *from)
{
	bool replace = !S_ISDIR(from->st_mode) && move->flags & SBA_PUT_REPLACE;

	if (renameat2(from_fd, leaf, move->to_fd, leaf, replace ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EACCES && S_ISDIR(from->st_mode))
		return move_locked(from_fd, leaf, move->to_fd, from->st_mode);
	return errno;
}

static int one(void *user, int from_fd, const char *leaf);

static int both_directories(struct move *move, int from_fd, const char *leaf)
{
	int to_fd = move->to_fd, error;
	int from = sba_file_open_dir(from_fd, leaf);
	int to = openat(to_fd, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0 || to < 0)
		return errno;
	if (move->depth == SBA_FILE_DEPTH_MAX)
		return ELOOP;
	move->depth++;
	move->to_fd = to;
	error = sba_file_each(from, one, move);
	move->to_fd = to_fd;
	move->depth--;
	close(from);
	close(to);
	return error;
}

static int one(void *user, int from_fd, const char *leaf)
{
	struct move *move = user;
	struct stat from, to;
	size_t before;
	bool there;
	int error = sba_file_name_push(&move->name, leaf, &before);

	if (error)
		return error;
	if (fstatat(from_fd, leaf, &from, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	there = fstatat(move->to_fd, leaf, &to, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && S_ISDIR(from.st_mode) && S_ISDIR(to.st_mode))
		error = both_directories(move, from_fd, leaf);
	else if (move->check)
		error = there ? check_pair(move, &from, &to) : 0;
	else if (there && move->flags & SBA_PUT_NO_CLOBBER)
		move->kept++;
	else
		error = move_new(move, from_fd, leaf, &from);
	if (!error)
		sba_file_name_pop(&move->name, before);
	return error;
}

int sba_file_move_all(int from_fd, int to_fd, uint32_t flags, uint64_t *ret_kept,
		      const char **ret_name)
{
	static struct move move;
	int error;

	move.flags = flags;
	move.to_fd = to_fd;
	move.check = true;
	*ret_name = move.name.text;
	error = sba_file_each(from_fd, one, &move);
	move.check = false;
	if (!error)
		error = sba_file_each(from_fd, one, &move);
	*ret_kept = move.kept;
	return error;
}
