/* SPDX-License-Identifier: MIT */
/*
 * The commands of the guest, the one static program that runs inside. Each
 * returns the exit code of the process and is called once, by main().
 * The guest knows nothing of the library: it shares channel/protocol.h only.
 */
#ifndef SBA_GUEST_H
#define SBA_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
	SBA_GUEST_OK = 0,
	SBA_GUEST_FAILED = 1,
	SBA_GUEST_USAGE = 2,
	SBA_GUEST_NO_MATCH = 3,  /* `guest kill`: nothing of that id runs */
	SBA_GUEST_SURVIVORS = 4, /* `guest run`: a process of the command could not be ended */
};

/* PID 1 of the sandbox's process namespace: decides when the sandbox ends. */
int sba_guest_reaper(int argc, char **argv);
/* The sandbox's main process: waits for SIGTERM or SIGINT. */
int sba_guest_idle(int argc, char **argv);
/* Supervises one command as channel/protocol.h says. */
int sba_guest_run(int argc, char **argv);
/* The guest's end of the channel of one client: docs/channel.md. */
int sba_guest_session(int argc, char **argv);
/* Ends the supervisors of one id, or all of them. */
int sba_guest_kill(int argc, char **argv);

/* Removes the paths that come on stdin. */
int sba_guest_remove(int argc, char **argv);
/* Tells the owners of those that come on stdin. */
int sba_guest_owners(int argc, char **argv);

/*
 * However short a command or a channel was, a scan of the reaper has to see
 * that the sandbox was used.
 */
void sba_guest_linger(int64_t began);

static inline int64_t sba_guest_now_ms(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
