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

/* In a sticky directory only what is one's own, or in one's own, may be replaced. */
static bool is_others(int dir_fd, const struct stat *there)
{
	struct stat dir;

	return fstat(dir_fd, &dir) == 0 && dir.st_mode & S_ISVTX && dir.st_uid != geteuid() &&
	       there->st_uid != geteuid();
}

static int check_pair(const struct move *move, const struct stat *from, const struct stat *to)
{
	if (S_ISDIR(to->st_mode))
		return EISDIR;
	if (S_ISDIR(from->st_mode))
		return ENOTDIR;
	if (move->flags & SBA_PUT_NO_CLOBBER)
		return 0;
	if (!(move->flags & SBA_PUT_REPLACE))
		return EEXIST;
	return is_others(move->to_fd, to) ? EPERM : 0;
}

/* Or could, by giving oneself the right. */
static bool may_write(int dir_fd)
{
	struct stat dir;

	return faccessat(dir_fd, ".", W_OK | X_OK, 0) == 0 ||
	       (fstat(dir_fd, &dir) == 0 && dir.st_uid == geteuid());
}

/* Whether it could be moved, as far as that can be told before. */
static int check(const struct move *move, const struct stat *from, const struct stat *to)
{
	int error = to ? check_pair(move, from, to) : 0;
	bool stays = to && move->flags & SBA_PUT_NO_CLOBBER;

	if (!error && !stays && !may_write(move->to_fd))
		error = EACCES;
	return error;
}

/* What is mounted below cannot be renamed into; every bind mount is one of its own. */
static bool is_other_mount(int a, int b)
{
	struct statx one, two;
	const unsigned int want = STATX_INO | STATX_MNT_ID;

	if (statx(a, "", AT_EMPTY_PATH, want, &one) < 0 ||
	    statx(b, "", AT_EMPTY_PATH, want, &two) < 0)
		return false;
	if (one.stx_mask & two.stx_mask & STATX_MNT_ID)
		return one.stx_mnt_id != two.stx_mnt_id;
	return one.stx_dev_major != two.stx_dev_major || one.stx_dev_minor != two.stx_dev_minor;
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

/* All that is in one directory, into the other, whose mode is left as it was. */
static int descend(struct move *move, int from, int to, const struct stat *was)
{
	int above = move->to_fd, error;
	bool locked = !move->check && was->st_uid == geteuid() &&
		      (was->st_mode & (S_IWUSR | S_IXUSR)) != (S_IWUSR | S_IXUSR);

	if (locked && fchmodat(to, ".", was->st_mode | S_IRWXU, 0) < 0)
		return errno;
	if (!move->check)
		(void)!fchmod(from, S_IRWXU | S_IRWXG);
	move->depth++;
	move->to_fd = to;
	error = sba_file_each(from, one, move);
	move->to_fd = above;
	move->depth--;
	if (locked && fchmodat(to, ".", was->st_mode & 07777, 0) < 0 && !error)
		error = errno;
	return error;
}

static int both_directories(struct move *move, int from_fd, const char *leaf,
			    const struct stat *was)
{
	int error;
	int from = sba_file_open_dir(from_fd, leaf);
	int to = openat(move->to_fd, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0 || to < 0)
		return errno;
	if (move->depth == SBA_FILE_DEPTH_MAX)
		return ELOOP;
	if (is_other_mount(from, to))
		return EXDEV;
	error = descend(move, from, to, was);
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
		error = both_directories(move, from_fd, leaf, &to);
	else if (move->check)
		error = check(move, &from, there ? &to : NULL);
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
