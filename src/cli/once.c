/* SPDX-License-Identifier: MIT */
/*
 * What is said once for each engine, and again when it changes: one small file for each in
 * the user's state folder holds what was found last. Where none can be kept it is said again.
 */
#include "cli.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_LEN = 200, VALUE_MAX = 128 };

/* XDG: a relative path there is to be ignored. NULL: there is no such folder. */
static char *folder(void)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	if (xdg && *xdg == '/')
		return asprintf(&path, "%s/sandbox-agent/engines", xdg) < 0 ? NULL : path;
	if (home && *home == '/')
		return asprintf(&path, "%s/.local/state/sandbox-agent/engines", home) < 0 ? NULL
											  : path;
	return NULL;
}

/* An engine's address, as a name of a file. */
static char *place_of(const char *host)
{
	CLI_FREE char *in = folder();
	char *path = NULL;
	if (!in || asprintf(&path, "%s/%.*s", in, NAME_MAX_LEN, host) < 0)
		return NULL;
	for (char *p = path + strlen(in) + 1; *p; p++) {
		if (!isalnum((unsigned char)*p) && *p != '-' && (*p != '.' || p[-1] == '/'))
			*p = '_';
	}
	return path;
}

static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
}

static bool read_kept(const char *path, char ret[VALUE_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, ret, VALUE_MAX - 1);
	close(fd);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return n >= 0;
}

/* Whole or not at all: another of us may be at it too. */
static void keep(char *path, const char *value)
{
	char *fresh = NULL;
	make_folders(path);
	if (asprintf(&fresh, "%s.%d", path, (int)getpid()) < 0)
		return;
	int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		size_t len = strlen(value);
		bool whole = write(fd, value, len) == (ssize_t)len && write(fd, "\n", 1) == 1;
		if (close(fd) < 0 || !whole || rename(fresh, path) < 0)
			unlink(fresh);
	}
	free(fresh);
}

bool cli_runc_is_old(const struct sba_engine_info *i)
{
	int major, minor, patch;
	return sscanf(i->runc, "%9d.%9d.%9d", &major, &minor, &patch) == 3 &&
	       (major < 1 || (major == 1 && (minor < 1 || (minor == 1 && patch < 12))));
}

void cli_warn_of_runc(struct cli *cli, bool is_asked_anyway)
{
	const struct sba_engine_info *i;
	char kept[VALUE_MAX] = "", now[VALUE_MAX];
	if (cli->quiet || cli->json)
		return;
	CLI_FREE char *path = place_of(sba_engine_host(cli->engine));
	bool known = path && read_kept(path, kept);
	if ((known && !is_asked_anyway && !cli->verbose) ||
	    sba_engine_info(cli->engine, &i, NULL) < 0)
		return;
	snprintf(now, sizeof(now), "runc %.100s", i->runc);
	bool same = known && !strcmp(kept, now);
	if (cli_runc_is_old(i) && (!same || cli->verbose))
		cli_note(cli, "warning: runc " CLI_RUNC_OLD, i->runc);
	if (path && !same)
		keep(path, now);
}
