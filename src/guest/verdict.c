/* SPDX-License-Identifier: MIT */
/*
 * The rules by which a sandbox ends; see verdict.h. Whoever is inside may
 * name, stop, trace and kill its own processes as it likes: none of that may
 * prolong the sandbox, and what cannot be seen counts as neither use nor rest.
 */
#include "guest/verdict.h"

#include <string.h>

#include "channel/protocol.h"

void sba_reaper_init(struct sba_reaper *reaper, const struct sba_guest_limits *limits,
		     struct sba_reaper_time now)
{
	*reaper = (struct sba_reaper){
		.limits = *limits,
		.began = now,
		.last_used = now.monotonic,
		.blind_since = -1,
	};
}

void sba_reaper_begin_scan(struct sba_reaper *reaper)
{
	reaper->main_alive = false;
	reaper->busy = false;
	if (!reaper->main_known)
		reaper->main = (struct sba_guest_stat){ 0 };
}

/* Stopped and traced supervisors do not work for anybody: an agent could stop
 * its own to keep the sandbox for ever. */
static bool in_progress(const struct sba_guest_stat *stat)
{
	return memchr("RSDI", stat->state, 4) != NULL;
}

static bool older(const struct sba_guest_stat *a, const struct sba_guest_stat *b)
{
	return a->start < b->start || (a->start == b->start && a->pid < b->pid);
}

/* Until a main process is known, main holds the best candidate of the scan. */
static void consider_candidate(struct sba_reaper *reaper, const struct sba_guest_stat *stat)
{
	bool any = reaper->main.pid != 0;

	if (any && !older(stat, &reaper->main)) {
		reaper->busy |= in_progress(stat);
		return;
	}
	reaper->busy |= any && in_progress(&reaper->main);
	reaper->main = *stat;
	reaper->main_alive = !sba_guest_stat_dead(stat);
}

/* The main process has no other child, and nobody else's becomes one: of those that
 * lose their parent it is not the subreaper. As long as nobody has attached, it waits
 * in the main process's group. */
static bool is_first_session(const struct sba_reaper *reaper, const struct sba_guest_stat *stat)
{
	return reaper->main_known && stat->ppid == reaper->main.pid && stat->pgrp == stat->pid &&
	       in_progress(stat);
}

void sba_reaper_see(const struct sba_guest_stat *stat, void *arg)
{
	struct sba_reaper *reaper = arg;

	if (is_first_session(reaper, stat))
		reaper->busy = true;
	if (stat->ppid != 0 || stat->pid == 1)
		return;
	if (!reaper->main_known)
		consider_candidate(reaper, stat);
	else if (stat->pid == reaper->main.pid && stat->start == reaper->main.start)
		reaper->main_alive = !sba_guest_stat_dead(stat);
	else if (in_progress(stat))
		reaper->busy = true;
}

static int judge_blind(struct sba_reaper *reaper, int64_t now)
{
	if (reaper->blind_since < 0)
		reaper->blind_since = now;
	return now - reaper->blind_since >= SBA_REAPER_BLIND_MS ? SBA_REAPER_TAMPERED : 0;
}

static bool passed(int64_t seconds, int64_t since, int64_t now)
{
	return seconds > 0 && now - since >= seconds * 1000;
}

/* Whoever made it uses it at once; on an engine that has other work even that can take
 * longer than a short keepalive. */
static bool unused_for_long(const struct sba_reaper *reaper, int64_t now)
{
	return passed(reaper->limits.keepalive, reaper->last_used, now) &&
	       (reaper->used || now - reaper->last_used >= SBA_REAPER_FIRST_MS);
}

int sba_reaper_judge(struct sba_reaper *reaper, bool complete, struct sba_reaper_time now)
{
	if (passed(reaper->limits.max_lifetime, reaper->began.boottime, now.boottime))
		return SBA_REAPER_LIFETIME;
	if (!complete)
		return judge_blind(reaper, now.monotonic);
	reaper->blind_since = -1;
	if (!reaper->main_known && reaper->main.pid == 0)
		return now.monotonic - reaper->began.monotonic >= SBA_REAPER_BEGIN_MS
			       ? SBA_REAPER_NEVER_BEGAN
			       : 0;
	/* On a busy engine the way here takes its time: nobody could use it before. */
	if (!reaper->main_known)
		reaper->last_used = now.monotonic;
	reaper->main_known = true;
	if (!reaper->main_alive)
		return SBA_REAPER_MAIN_GONE;
	if (reaper->busy) {
		reaper->used = true;
		reaper->last_used = now.monotonic;
	}
	return unused_for_long(reaper, now.monotonic) ? SBA_REAPER_KEEPALIVE : 0;
}
