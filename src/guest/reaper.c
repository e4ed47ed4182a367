/* SPDX-License-Identifier: MIT */
/*
 * PID 1 of the sandbox's process namespace: when it exits, the kernel ends
 * everything inside. Makes itself untouchable, then scans /proc and lets
 * verdict.c decide. No signal handlers: without one, the kernel drops every
 * signal that comes from inside.
 */
#include "guest/guest.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/parse.h"
#include "guest/proc.h"
#include "guest/verdict.h"

/*
 * prlimit() on a process is allowed to whoever has the same uid and gid as all
 * three of its ids, dumpable or not. Three different ids are nobody's.
 */
enum { ID_REAL = 61001, ID_EFFECTIVE = 61002, ID_SAVED = 61003 };

enum {
	PERIOD_MIN_MS = 250,
	PERIOD_EARLY_MS = 10, /* a main process that dies unseen would be waited for */
	PERIOD_PER_COST = 20, /* a crowded process table may take 5 % of one core, no more */
};

static bool has_no_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		if (data[i].permitted != 0 || data[i].effective != 0)
			return false;
	}
	return true;
}

static bool become_nobody(void)
{
	return setgroups(0, NULL) == 0 && setresgid(ID_REAL, ID_EFFECTIVE, ID_SAVED) == 0 &&
	       setresuid(ID_REAL, ID_EFFECTIVE, ID_SAVED) == 0 && has_no_capabilities() &&
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

static struct sba_reaper_time now(void)
{
	return (struct sba_reaper_time){
		.monotonic = sba_guest_now_ms(CLOCK_MONOTONIC),
		.boottime = sba_guest_now_ms(CLOCK_BOOTTIME),
	};
}

static int scan_and_judge(int proc, struct sba_reaper *reaper)
{
	int rc;

	sba_reaper_begin_scan(reaper);
	rc = sba_guest_proc_scan(proc, sba_reaper_see, reaper);
	return sba_reaper_judge(reaper, rc == 0, now());
}

/* CPU time, not wall time: a crowd inside must not be able to slow the scans
 * down by more than their true cost. */
static void rest(int64_t cost_ms, int64_t at_least_ms)
{
	int64_t period = cost_ms * PERIOD_PER_COST;
	struct timespec pause;

	if (period < at_least_ms)
		period = at_least_ms;
	pause = (struct timespec){ .tv_sec = period / 1000, .tv_nsec = period % 1000 * 1000000 };
	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int watch(int proc, struct sba_reaper *reaper)
{
	for (;;) {
		int64_t before = sba_guest_now_ms(CLOCK_PROCESS_CPUTIME_ID);
		int verdict = scan_and_judge(proc, reaper);

		/* A command that has begun since the scan keeps its sandbox. */
		if (verdict == SBA_REAPER_KEEPALIVE)
			verdict = scan_and_judge(proc, reaper);
		if (verdict != 0)
			return verdict;
		rest(sba_guest_now_ms(CLOCK_PROCESS_CPUTIME_ID) - before,
		     reaper->main_known ? PERIOD_MIN_MS : PERIOD_EARLY_MS);
	}
}

int sba_guest_reaper(int argc, char **argv)
{
	struct sba_guest_limits limits;
	struct sba_reaper reaper;
	int proc;

	if (!sba_guest_parse_limits(argc, argv, &limits))
		return SBA_GUEST_USAGE;
	if (!become_nobody())
		return SBA_REAPER_SETUP;
	/* Orphans come to PID 1; ignoring SIGCHLD lets the kernel bury them. */
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return SBA_REAPER_SETUP;
	proc = sba_guest_proc_open();
	if (proc < 0)
		return SBA_REAPER_SETUP;
	sba_reaper_init(&reaper, &limits, now());
	return watch(proc, &reaper);
}
