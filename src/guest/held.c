/* SPDX-License-Identifier: MIT */
/*
 * Looks for our own stdout and stderr among the descriptors of the processes
 * below us; see held.h.
 */
#include "guest/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/proc.h"

enum { MEMBERS_MAX = 256 }; /* of a larger tree only so many are looked at */

struct search {
	pid_t self;
	size_t count;
	pid_t members[MEMBERS_MAX]; /* below us */
};

static bool is_below(const struct search *search, pid_t pid)
{
	for (size_t i = 0; i < search->count; i++) {
		if (search->members[i] == pid)
			return true;
	}
	return pid == search->self;
}

static void collect(const struct sba_guest_stat *stat, void *arg)
{
	struct search *search = arg;

	if (!sba_guest_stat_dead(stat) && search->count < MEMBERS_MAX &&
	    is_below(search, stat->ppid))
		search->members[search->count++] = stat->pid;
}

static bool is_ours(const struct stat *theirs)
{
	static const int outputs[] = { STDOUT_FILENO, STDERR_FILENO };
	struct stat own;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (fstat(outputs[i], &own) == 0 && own.st_dev == theirs->st_dev &&
		    own.st_ino == theirs->st_ino)
			return true;
	}
	return false;
}

/* What may not be looked at does not hold anything up. */
static bool holds(int proc, pid_t pid)
{
	char path[32];
	bool found = false;
	const struct dirent *entry;
	struct stat theirs;
	int fd;
	DIR *dir;

	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && fstatat(fd, entry->d_name, &theirs, 0) == 0 &&
			S_ISFIFO(theirs.st_mode) && is_ours(&theirs);
	closedir(dir);
	return found;
}

static bool anybody_holds(int proc)
{
	static struct search search;

	search.self = getpid();
	search.count = 0;
	sba_guest_proc_scan(proc, collect, &search);
	for (size_t i = 0; i < search.count; i++) {
		if (holds(proc, search.members[i]))
			return true;
	}
	return false;
}

bool sba_guest_held_waits(struct sba_guest_held *held, const struct sba_guest_tree *tree)
{
	int64_t now = sba_guest_now_ms(CLOCK_MONOTONIC);

	if (tree->empty || held->told || !anybody_holds(tree->proc))
		return false;
	if (held->until == 0)
		held->until = now + SBA_GUEST_HELD_MS;
	held->told = now >= held->until;
	return !held->told;
}
