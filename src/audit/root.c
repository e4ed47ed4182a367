/* SPDX-License-Identifier: MIT */
/*
 * The root and its days. It may lie in a folder where everybody writes: what is
 * not ours alone is refused, and nothing is reached by way of a link.
 */
#include "audit/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* ---- the root ---- */

static int make_above(const char *path, struct sba_error *err)
{
	SBA_FREE char *copy = strdup(path);
	if (!copy)
		return sba_fail_nomem(err);
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return sba_fail_errno(err, SBA_EIO, errno, "make %s", copy);
		*slash = '/';
	}
	return 0;
}

static int refuse(const char *path, const char *why, struct sba_error *err)
{
	return sba_hint(err, sba_fail(err, SBA_EREFUSED, "%s: %s", path, why),
			"audit_root in the configuration names another");
}

static int check_ours(int fd, const char *path, struct sba_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "%s", path);
	if (st.st_uid != geteuid())
		return refuse(path, "it belongs to somebody else", err);
	if (st.st_mode & 077)
		return refuse(path, "it is open to others (chmod 700)", err);
	return 0;
}

int sba_audit_root_open(const char *path, bool make, int *ret_fd, struct sba_error *err)
{
	if (path[0] != '/')
		return sba_fail(err, SBA_EINVAL, "%s: not an absolute path", path);
	SBA_CLOSE int fd = open(path, OPEN_DIR);
	if (fd < 0 && errno == ENOENT && make) {
		int rc = make_above(path, err);
		if (rc < 0)
			return rc;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return sba_fail_errno(err, SBA_EIO, errno, "make %s", path);
		fd = open(path, OPEN_DIR);
	}
	if (fd < 0 && errno == ENOENT)
		return sba_fail(err, SBA_ENOTFOUND, "%s: not there", path);
	/* With O_DIRECTORY a link is not ELOOP but ENOTDIR. */
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse(path, "a link or a file, not a folder", err);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "%s", path);
	int rc = check_ours(fd, path, err);
	if (rc < 0)
		return rc;
	*ret_fd = sba_move_fd(&fd);
	return 0;
}

/* ---- time ---- */

static char *put_digits(char *to, unsigned n, unsigned value)
{
	for (unsigned i = n; i > 0; i--, value /= 10)
		to[i - 1] = (char)('0' + value % 10);
	return to + n;
}

/* By hand: each event has one, and the C library takes longer for it than all the rest
 * of a line takes. */
void sba_audit_time(int64_t unix_ms, char ret[SBA_AUDIT_TIME])
{
	time_t s = (time_t)(unix_ms / 1000);
	struct tm tm = { 0 };
	gmtime_r(&s, &tm);
	const struct {
		int value;
		unsigned digits;
		char end;
	} parts[] = {
		{ tm.tm_year + 1900, 4, '-' },    { tm.tm_mon + 1, 2, '-' }, { tm.tm_mday, 2, 'T' },
		{ tm.tm_hour, 2, ':' },           { tm.tm_min, 2, ':' },     { tm.tm_sec, 2, '.' },
		{ (int)(unix_ms % 1000), 3, 'Z' }
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(parts); i++) {
		ret = put_digits(ret, parts[i].digits, (unsigned)parts[i].value);
		*ret++ = parts[i].end;
	}
	*ret = '\0';
}

int64_t sba_audit_time_parse(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	int64_t ms;
	if (!rest || rest[0] != '.' || strlen(rest) != 5 || rest[4] != 'Z')
		return 0;
	const char digits[] = { rest[1], rest[2], rest[3], '\0' };
	return sba_parse_int(digits, 0, 999, &ms) < 0 ? 0 : (int64_t)timegm(&tm) * 1000 + ms;
}

/* People look for today's where their clock says that it is today. */
void sba_audit_day_of(int64_t unix_ms, char ret[SBA_AUDIT_DAY])
{
	time_t s = (time_t)(unix_ms / 1000);
	struct tm tm = { 0 };
	localtime_r(&s, &tm);
	strftime(ret, SBA_AUDIT_DAY, "%Y%m%d", &tm);
}

bool sba_audit_is_day(const char *name)
{
	char again[SBA_AUDIT_DAY];
	struct tm tm = { 0 };
	if (strlen(name) != 8 || strspn(name, "0123456789") != 8 || name[0] == '0')
		return false;
	if (!strptime(name, "%Y%m%d", &tm))
		return false;
	timegm(&tm);
	strftime(again, sizeof(again), "%Y%m%d", &tm);
	return strcmp(name, again) == 0;
}

/* ---- days ---- */

/* Retention may have taken it away between opening and holding it. */
static bool still_there(int root_fd, const char *day, int fd)
{
	struct stat by_name, by_fd;
	return fstatat(root_fd, day, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino &&
	       by_name.st_dev == by_fd.st_dev;
}

int sba_audit_day_open(int root_fd, const char *day, bool make, int *ret_fd, struct sba_error *err)
{
	for (int tries = 0; tries < 3; tries++) {
		if (make && mkdirat(root_fd, day, 0700) < 0 && errno != EEXIST)
			return sba_fail_errno(err, SBA_EIO, errno, "make %s", day);
		SBA_CLOSE int fd = openat(root_fd, day, OPEN_DIR);
		if (fd < 0 && errno != ENOENT)
			return sba_fail_errno(err, SBA_EIO, errno, "%s", day);
		bool held = fd >= 0 && (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK);
		if (held && still_there(root_fd, day, fd)) {
			*ret_fd = sba_move_fd(&fd);
			return 0;
		}
		if (!make)
			break;
	}
	return sba_fail(err, SBA_ENOTFOUND, "%s: not there", day);
}

static int newest_first(const void *a, const void *b)
{
	return strcmp(*(const char *const *)b, *(const char *const *)a);
}

/* Descriptors of folders have one position: a copy of its own for each walk. */
static int walk(int dir_fd, bool (*wanted)(const char *), struct sba_strv *ret,
		struct sba_error *err)
{
	int fd = openat(dir_fd, ".", OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;
	if (!dir) {
		rc = sba_fail_errno(err, SBA_EIO, errno, "read a folder of the audit");
		sba_cleanup_close(&fd);
		return rc;
	}
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
		if (wanted(e->d_name))
			rc = sba_strv_add(ret, e->d_name, err);
	}
	closedir(dir);
	if (rc == 0 && ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), newest_first);
	return rc;
}

int sba_audit_days(int root_fd, struct sba_strv *ret, struct sba_error *err)
{
	return walk(root_fd, sba_audit_is_day, ret, err);
}

static bool no_dot(const char *name)
{
	return name[0] != '.';
}

int sba_audit_names(int day_fd, struct sba_strv *ret, struct sba_error *err)
{
	return walk(day_fd, no_dot, ret, err);
}
