/* SPDX-License-Identifier: MIT */
/*
 * The sandbox's main process, in place of the image's entrypoint. It only has
 * to exist: when it goes, the reaper ends the sandbox. Where there is no reaper,
 * because the runtime gave us a process namespace of our own, it does not: nothing
 * would end what is left running.
 */
#include "guest/guest.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/confine.h"
#include "guest/identity.h"

/* Whoever could turn a link, or write where it leads, could have code of its own
 * run as the guest. Engines mount and unpack through links of the image; before
 * anything else runs is the time to see. */
static bool is_well_placed(void)
{
	struct stat found;

	return lstat(SBA_GUEST_DIR, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == 0 &&
	       (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int sba_guest_idle(int argc, char **argv)
{
	sigset_t ends;

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	if (!is_well_placed() || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    !sba_guest_capabilities_drop() || chdir("/") < 0)
		return SBA_GUEST_FAILED;
	if (!sba_guest_sidecar_is_first())
		return SBA_IDLE_ALONE;
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
		return SBA_GUEST_FAILED;
	while (sigwaitinfo(&ends, NULL) < 0) {
		if (errno != EINTR)
			return SBA_GUEST_FAILED;
	}
	return SBA_GUEST_OK;
}
