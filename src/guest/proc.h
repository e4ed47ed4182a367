/* SPDX-License-Identifier: MIT */
/*
 * The process table as /proc shows it: one open directory, one small file
 * read per process, no allocation. Knows nothing of what its callers look for.
 */
#ifndef SBA_GUEST_PROC_H
#define SBA_GUEST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sba_guest_stat {
	pid_t pid;
	pid_t ppid; /* 0: the parent is outside the namespace */
	pid_t pgrp;
	uint64_t start; /* clock ticks since boot; with pid, the name of a process */
	char state;
};

/* One line of /proc/PID/stat. False if the line is cut or is not one. */
bool sba_guest_stat_parse(const char *text, size_t len, struct sba_guest_stat *ret);

/* True for a process that has ended and only waits to be forgotten. */
bool sba_guest_stat_dead(const struct sba_guest_stat *stat);

typedef void sba_guest_visit(const struct sba_guest_stat *stat, void *arg);

/* A descriptor of /proc, or a negative errno. */
int sba_guest_proc_open(void);

/*
 * Calls visit for every process, in ascending order of pids. 0 if all that
 * lived throughout the scan were seen; else a negative errno, after visiting
 * what could be read. A process that goes while we look is no error.
 */
int sba_guest_proc_scan(int proc, sba_guest_visit *visit, void *arg);

/* Reads proc's PID/FILE. Returns the bytes read, or a negative errno. */
ssize_t sba_guest_proc_read(int proc, pid_t pid, const char *file, char *buffer, size_t size);

/* One process: 1 and *ret, 0 if it is gone, or a negative errno. */
int sba_guest_proc_stat(int proc, pid_t pid, struct sba_guest_stat *ret);

#endif
