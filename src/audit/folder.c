/* SPDX-License-Identifier: MIT */
/*
 * Which folder is whose. One belongs to a session of one sandbox: the CLI inside
 * says the id, and must not get at another sandbox's record by it. A link beside
 * the folders, named by the sandbox, leads to its present one.
 */
#include "audit/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, LINK_MAX_LEN = 96 };

#define PENDING "pending-"

/* Lets go of folder and day, and keeps the root. */
static void leave(struct sba_audit_folder *f)
{
	sba_cleanup_close(&f->raw_fd);
	sba_cleanup_close(&f->fd);
	sba_cleanup_close(&f->day_fd);
	f->raw_fd = f->fd = f->day_fd = -1;
}

void sba_audit_folder_close(struct sba_audit_folder *f)
{
	leave(f);
	sba_cleanup_close(&f->root_fd);
	f->root_fd = -1;
}

static int enter(struct sba_audit_folder *f, const char *name)
{
	int fd = openat(f->day_fd, name, OPEN_DIR);
	if (fd < 0)
		return SBA_ENOTFOUND;
	sba_cleanup_close(&f->fd);
	f->fd = fd;
	snprintf(f->name, sizeof(f->name), "%s", name);
	return 0;
}

static int enter_day(struct sba_audit_folder *f, const char *day, bool make, struct sba_error *err)
{
	leave(f);
	snprintf(f->day, sizeof(f->day), "%s", day);
	return sba_audit_day_open(f->root_fd, day, make, &f->day_fd, err);
}

/* True once it is ours alone. A lock of an open file: one that can be asked about
 * without being taken. Where the file system knows none, it is ours. */
static bool hold(struct sba_audit_folder *f)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	SBA_CLOSE int fd =
		openat(f->fd, SBA_AUDIT_RAW,
		       O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0 || (fcntl(fd, F_OFD_SETLK, &lock) < 0 && (errno == EAGAIN || errno == EACCES)))
		return false;
	sba_cleanup_close(&f->raw_fd);
	f->raw_fd = sba_move_fd(&fd);
	return true;
}

bool sba_audit_folder_held(int folder_fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	SBA_CLOSE int fd =
		openat(folder_fd, SBA_AUDIT_RAW, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- the link of a sandbox ---- */

static void link_name(const struct sba_audit *a, char ret[LINK_MAX_LEN])
{
	snprintf(ret, LINK_MAX_LEN, ".sandbox-%s", a->who.sandbox_id);
}

static bool read_link(const struct sba_audit *a, int day_fd, char *ret, size_t size)
{
	char name[LINK_MAX_LEN];
	link_name(a, name);
	ssize_t n = readlinkat(day_fd, name, ret, size - 1);
	if (n <= 0 || (size_t)n >= size - 1)
		return false;
	ret[n] = '\0';
	return !strchr(ret, '/') && ret[0] != '.';
}

static int put_link(const struct sba_audit *a, const struct sba_audit_folder *f,
		    struct sba_error *err)
{
	char name[LINK_MAX_LEN], temp[LINK_MAX_LEN + 24], random[17];
	link_name(a, name);
	int rc = sba_random_hex(random, 8, err);
	if (rc < 0)
		return rc;
	snprintf(temp, sizeof(temp), "%s.%s", name, random);
	if (symlinkat(f->name, f->day_fd, temp) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "link the sandbox's folder");
	if (renameat(f->day_fd, temp, f->day_fd, name) < 0) {
		unlinkat(f->day_fd, temp, 0);
		return sba_fail_errno(err, SBA_EIO, errno, "link the sandbox's folder");
	}
	return 0;
}

/* The newest day that has one counts: those that are newer than f's go. */
static int point_at(const struct sba_audit *a, const struct sba_audit_folder *f,
		    struct sba_error *err)
{
	char name[LINK_MAX_LEN], path[LINK_MAX_LEN + SBA_AUDIT_DAY], now[SBA_AUDIT_NAME_MAX + 2];
	SBA_STRV struct sba_strv days = { 0 };
	if (!read_link(a, f->day_fd, now, sizeof(now)) || strcmp(now, f->name) != 0) {
		int rc = put_link(a, f, err);
		if (rc < 0)
			return rc;
	}
	link_name(a, name);
	int rc = sba_audit_days(f->root_fd, &days, err);
	for (size_t i = 0; rc == 0 && i < days.n && strcmp(days.v[i], f->day) > 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", days.v[i], name);
		unlinkat(f->root_fd, path, 0);
	}
	return rc;
}

/* ---- finding ---- */

static bool is_ours(const struct sba_audit *a, const struct sba_audit_folder *f, json_t **ret)
{
	json_t *status = NULL;
	if (sba_audit_status_load(f->fd, &status, NULL) < 0)
		return false;
	if (!sba_audit_status_is_of(status, a->who.sandbox_id)) {
		json_decref(status);
		return false;
	}
	json_decref(*ret);
	*ret = status;
	return true;
}

/* A link that leads nowhere: its folder is being renamed, or was and the one who did
 * it died. */
static bool look_through(const struct sba_audit *a, struct sba_audit_folder *f, json_t **status)
{
	SBA_STRV struct sba_strv names = { 0 };
	if (sba_audit_names(f->day_fd, &names, NULL) < 0)
		return false;
	for (size_t i = 0; i < names.n; i++) {
		if (enter(f, names.v[i]) == 0 && is_ours(a, f, status))
			return true;
	}
	return false;
}

static int find_present(const struct sba_audit *a, struct sba_audit_folder *f, json_t **status,
			struct sba_error *err)
{
	char name[SBA_AUDIT_NAME_MAX + 2];
	SBA_STRV struct sba_strv days = { 0 };
	int rc = sba_audit_days(f->root_fd, &days, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < days.n; i++) {
		if (enter_day(f, days.v[i], false, NULL) < 0 ||
		    !read_link(a, f->day_fd, name, sizeof(name)))
			continue;
		if ((enter(f, name) == 0 && is_ours(a, f, status)) || look_through(a, f, status))
			return 0;
	}
	leave(f);
	return SBA_ENOTFOUND;
}

/* "..", ".x" and "pending-x" are ids that the CLI may give, and no names of ours. */
static void name_for(const char *session, unsigned twin, char *ret, size_t size)
{
	bool bad = session[0] == '.' || sba_starts_with(session, PENDING);
	snprintf(ret, size, twin > 1 ? "%s%s+%u" : "%s%s", bad ? "_" : "", session, twin);
}

static int find_session(const struct sba_audit *a, const char *session, struct sba_audit_folder *f,
			json_t **status, struct sba_error *err)
{
	char name[SBA_AUDIT_NAME_MAX + 1];
	SBA_STRV struct sba_strv days = { 0 };
	int rc = find_present(a, f, status, err);
	if (rc == 0 && sba_audit_status_has(*status, session))
		return 0;
	if (rc == 0 || rc == SBA_ENOTFOUND)
		rc = sba_audit_days(f->root_fd, &days, err);
	for (size_t i = 0; rc == 0 && i < days.n; i++) {
		if (enter_day(f, days.v[i], false, NULL) < 0)
			continue;
		for (unsigned twin = 1; twin <= SBA_AUDIT_TWINS_MAX; twin++) {
			name_for(session, twin, name, sizeof(name));
			if (enter(f, name) < 0)
				break;
			if (is_ours(a, f, status))
				return 0;
		}
	}
	leave(f);
	return rc < 0 ? rc : SBA_ENOTFOUND;
}

/* ---- making ---- */

static int make_pending_name(char *ret, size_t size, struct sba_error *err)
{
	char time[SBA_AUDIT_TIME], random[9];
	int rc = sba_random_hex(random, 4, err);
	if (rc < 0)
		return rc;
	sba_audit_time(sba_unix_ms(), time);
	snprintf(ret, size, PENDING "%.2s%.2s%.2s-%s", time + 11, time + 14, time + 17, random);
	return 0;
}

static int make_dir(struct sba_audit_folder *f, const char *session, struct sba_error *err)
{
	char name[SBA_AUDIT_NAME_MAX + 1];
	for (unsigned twin = 1; twin <= SBA_AUDIT_TWINS_MAX; twin++) {
		int rc = 0;
		if (session)
			name_for(session, twin, name, sizeof(name));
		else
			rc = make_pending_name(name, sizeof(name), err);
		if (rc < 0)
			return rc;
		if (mkdirat(f->day_fd, name, 0700) == 0)
			return enter(f, name) == 0
				       ? 0
				       : sba_fail_errno(err, SBA_EIO, errno, "%s/%s", f->day, name);
		if (errno != EEXIST)
			return sba_fail_errno(err, SBA_EIO, errno, "make %s/%s", f->day, name);
	}
	return sba_fail(err, SBA_ELIMIT, "%s: too many of that id", session ? session : PENDING);
}

static int make_new(const struct sba_audit *a, const char *session, struct sba_audit_folder *f,
		    json_t **ret_status, struct sba_error *err)
{
	char day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	int rc = enter_day(f, day, true, err);
	if (rc == 0)
		rc = make_dir(f, session, err);
	if (rc < 0)
		return sba_wrap(err, rc, "%s", a->root);
	SBA_JSON json_t *status = sba_audit_status_new(a);
	if (!status || (session && sba_audit_status_add_session(status, session) < 0))
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = sba_audit_status_save(f->fd, status, err);
	if (rc < 0)
		return rc;
	f->pending = !session;
	json_decref(*ret_status);
	*ret_status = sba_move(&status);
	return 0;
}

/* ---- for others ---- */

/* What was recorded before the first turn of the sandbox begins its session. */
static bool begun_without_turns(const json_t *status)
{
	return json_is_null(json_object_get(status, "session")) &&
	       json_array_size(json_object_get(status, "turns")) == 0;
}

static int find_for_turn(const struct sba_audit *a, const char *session, bool aside,
			 struct sba_audit_folder *f, json_t **status, struct sba_error *err)
{
	int rc = session ? find_session(a, session, f, status, err) : SBA_ENOTFOUND;
	if (rc == SBA_ENOTFOUND && !aside) {
		rc = find_present(a, f, status, err);
		if (rc == 0 && !begun_without_turns(*status))
			rc = SBA_ENOTFOUND;
	}
	if (rc == 0 && !hold(f))
		rc = SBA_ENOTFOUND;
	return rc;
}

int sba_audit_folder_for_turn(struct sba_audit *a, const char *session, bool aside,
			      struct sba_audit_folder *ret, json_t **ret_status,
			      struct sba_error *err)
{
	struct sba_audit_folder f = SBA_AUDIT_FOLDER_INIT;
	SBA_JSON json_t *status = NULL;
	int rc = sba_audit_root_open(a->root, true, &f.root_fd, err);
	if (rc == 0)
		rc = find_for_turn(a, session, aside, &f, &status, err);
	if (rc == SBA_ENOTFOUND && f.root_fd >= 0) {
		rc = make_new(a, session, &f, &status, err);
		if (rc == 0 && !hold(&f))
			rc = sba_fail_errno(err, SBA_EIO, errno, "%s/%s/" SBA_AUDIT_RAW, f.day,
					    f.name);
	}
	f.pending = status && json_is_null(json_object_get(status, "session"));
	if (rc == 0 && f.pending && session)
		rc = sba_audit_folder_rename(a, &f, session, err);
	else if (rc == 0 && !aside)
		rc = point_at(a, &f, err);
	if (rc < 0) {
		sba_audit_folder_close(&f);
		return rc;
	}
	*ret = f;
	*ret_status = sba_move(&status);
	return 0;
}

int sba_audit_folder_for_sandbox(struct sba_audit *a, struct sba_audit_folder *ret,
				 struct sba_error *err)
{
	struct sba_audit_folder f = SBA_AUDIT_FOLDER_INIT;
	SBA_JSON json_t *status = NULL;
	int rc = sba_audit_root_open(a->root, true, &f.root_fd, err);
	if (rc == 0)
		rc = find_present(a, &f, &status, err);
	if (rc == SBA_ENOTFOUND && f.root_fd >= 0) {
		rc = make_new(a, NULL, &f, &status, err);
		if (rc == 0)
			rc = point_at(a, &f, err);
	}
	if (rc < 0) {
		sba_audit_folder_close(&f);
		return rc;
	}
	*ret = f;
	return 0;
}

/* RENAME_NOREPLACE: an empty folder of that name would be replaced. */
int sba_audit_folder_rename(struct sba_audit *a, struct sba_audit_folder *f, const char *session,
			    struct sba_error *err)
{
	char name[SBA_AUDIT_NAME_MAX + 1];
	int rc = -1;
	for (unsigned twin = 1; rc < 0 && twin <= SBA_AUDIT_TWINS_MAX; twin++) {
		name_for(session, twin, name, sizeof(name));
		rc = renameat2(f->day_fd, f->name, f->day_fd, name, RENAME_NOREPLACE);
		if (rc < 0 && errno != EEXIST)
			return sba_fail_errno(err, SBA_EIO, errno, "call %s/%s '%s'", f->day,
					      f->name, name);
	}
	if (rc < 0)
		return sba_fail(err, SBA_ELIMIT, "%s: too many of that id", session);
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->pending = false;
	return point_at(a, f, err);
}
