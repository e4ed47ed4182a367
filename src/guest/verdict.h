/* SPDX-License-Identifier: MIT */
/*
 * The rules by which a sandbox ends, without clocks, files or sleep: what a
 * scan showed goes in with the time, a reason to end comes out.
 */
#ifndef SBA_GUEST_VERDICT_H
#define SBA_GUEST_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/parse.h"
#include "guest/proc.h"

enum {
	SBA_REAPER_BEGIN_MS = 60 * 1000, /* for the main process to appear */
	SBA_REAPER_BLIND_MS = 10 * 1000, /* of nothing but failed scans */
	SBA_REAPER_FIRST_MS = 10 * 1000, /* at least, for the first use to come */
};

/* Milliseconds of the two clocks: keepalive must not count a suspended host's
 * sleep, the lifetime must. */
struct sba_reaper_time {
	int64_t monotonic;
	int64_t boottime;
};

struct sba_reaper {
	struct sba_guest_limits limits;
	struct sba_reaper_time began;
	int64_t last_used;
	int64_t blind_since; /* of the first of a row of failed scans; -1: none */
	bool main_known;
	bool used;
	struct sba_guest_stat main;
	/* of the scan under way */
	bool main_alive;
	bool busy;
};

void sba_reaper_init(struct sba_reaper *reaper, const struct sba_guest_limits *limits,
		     struct sba_reaper_time now);

/* Before each scan. */
void sba_reaper_begin_scan(struct sba_reaper *reaper);

/* For each process of a scan; an sba_guest_visit, arg is the reaper. */
void sba_reaper_see(const struct sba_guest_stat *stat, void *arg);

/* After each scan: 0 to go on, or the sba_reaper_exit to end with. */
int sba_reaper_judge(struct sba_reaper *reaper, bool complete, struct sba_reaper_time now);

#endif
