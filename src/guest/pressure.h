/* SPDX-License-Identifier: MIT */
/*
 * What the sandbox's limits have cost it so far: the counters of its cgroup.
 * They are the sandbox's, not a command's.
 */
#ifndef SBA_GUEST_PRESSURE_H
#define SBA_GUEST_PRESSURE_H

#include <stddef.h>
#include <stdint.h>

/* -1 where nobody says. */
struct sba_guest_pressure {
	int64_t oom_kills;    /* processes that the OOM killer took */
	int64_t pids_refused; /* forks that the limit of processes refused */
};

struct sba_guest_pressure sba_guest_pressure_now(void);

/* By how much they rose; 0 where that is not known. */
struct sba_guest_pressure sba_guest_pressure_since(const struct sba_guest_pressure *before);

/* The number behind `key` in lines of "KEY NUMBER"; -1: there is none. */
int64_t sba_guest_pressure_parse(const char *text, size_t len, const char *key);

/* The path of this process in the unified hierarchy, from /proc/self/cgroup: into ret,
 * which takes size bytes. 0, or -1: there is none, or it is too long. */
int sba_guest_pressure_path(const char *text, size_t len, char *ret, size_t size);

#endif
