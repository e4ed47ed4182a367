/* SPDX-License-Identifier: MIT */
/*
 * What is in a folder, copied into one that is there already: "DIR/." of
 * docker. The library copies whole trees under a name of their own; here they
 * are taken apart on the one side or put together on the other.
 */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int too_long(const char *path, struct sba_error *err)
{
	return cli_fail(err, SBA_EINVAL, NULL, "'%.100s...': the path is too long", path);
}

static int join(char ret[PATH_MAX], const char *dir, const char *name, struct sba_error *err)
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);
	return n < 0 || n >= PATH_MAX ? too_long(dir, err) : 0;
}

/* The names in a folder, one after the other; what it says ends it. */
static int each_name(const char *dir, int (*one)(void *, const char *, struct sba_error *),
		     void *user, struct sba_error *err)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int rc = 0;
	if (!d)
		return cli_fail(err, SBA_EIO, NULL, "open %s: %s", dir, strerror(errno));
	while (rc == 0 && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = one(user, e->d_name, err);
	}
	closedir(d);
	return rc;
}

/* ---- out ---- */

struct move {
	const char *from, *to;
};

static int move_one(void *user, const char *name, struct sba_error *err)
{
	const struct move *m = user;
	char from[PATH_MAX], to[PATH_MAX];
	struct stat a, b;
	int rc = join(from, m->from, name, err);
	if (rc == 0)
		rc = join(to, m->to, name, err);
	if (rc < 0)
		return rc;
	/* Not followed: a link here leads to a place that nobody has named. */
	bool there = lstat(to, &b) == 0;
	if (lstat(from, &a) == 0 && there && S_ISDIR(a.st_mode) && S_ISDIR(b.st_mode))
		return each_name(from, move_one, &(struct move){ from, to }, err);
	if (there && S_ISDIR(a.st_mode) != S_ISDIR(b.st_mode))
		return cli_fail(err, SBA_EEXIST, NULL, "'%s' is %s", to,
				S_ISDIR(b.st_mode) ? "a folder" : "not a folder");
	if (rename(from, to) < 0)
		return cli_fail(err, SBA_EIO, NULL, "put '%s' in place: %s", to, strerror(errno));
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int cli_download_contents(struct sba_sandbox *s, const char *path, const char *dir,
			  const struct sba_transfer_options *o, struct sba_transfer_report *report,
			  struct sba_error *err)
{
	enum { FDS = 16 };
	char temp[PATH_MAX], landed[PATH_MAX];
	int rc = join(temp, dir, ".sandbox-agent-XXXXXX", err);
	if (rc < 0)
		return rc;
	if (!mkdtemp(temp))
		return cli_fail(err, SBA_EIO, NULL, "make a folder in '%s': %s", dir,
				strerror(errno));
	rc = join(landed, temp, "x", err);
	if (rc == 0)
		rc = sba_sandbox_download(s, path, landed, o, report, err);
	struct stat st;
	if (rc == 0 && (lstat(landed, &st) < 0 || !S_ISDIR(st.st_mode)))
		rc = cli_fail(err, SBA_ENOTFOUND, NULL, "'%s' is not a folder", path);
	if (rc == 0)
		rc = each_name(landed, move_one, &(struct move){ landed, dir }, err);
	nftw(temp, remove_one, FDS, FTW_DEPTH | FTW_PHYS);
	return rc;
}

/* ---- in ---- */

struct send {
	struct sba_sandbox *s;
	const char *dir, *path;
	const struct sba_transfer_options *options;
	struct sba_transfer_report *report;
};

static int send_one(void *user, const char *name, struct sba_error *err)
{
	const struct send *to = user;
	struct sba_transfer_report one = { 0 };
	char from[PATH_MAX];
	int rc = join(from, to->dir, name, err);
	if (rc == 0)
		rc = sba_sandbox_upload(to->s, from, to->path, to->options, &one, err);
	to->report->files += one.files;
	to->report->directories += one.directories;
	to->report->symlinks += one.symlinks;
	to->report->bytes += one.bytes;
	to->report->refused += one.refused;
	return rc;
}

int cli_upload_contents(struct sba_sandbox *s, const char *dir, const char *path,
			const struct sba_transfer_options *o, struct sba_transfer_report *report,
			struct sba_error *err)
{
	return each_name(dir, send_one, &(struct send){ s, dir, path, o, report }, err);
}
