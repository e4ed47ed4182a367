/* SPDX-License-Identifier: MIT */
/*
 * The sandbox's main process, in place of the image's entrypoint. It only has
 * to exist: when it goes, the reaper ends the sandbox.
 */
#include "guest/guest.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest/confine.h"

int sba_guest_idle(int argc, char **argv)
{
	sigset_t ends;

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || !sba_guest_capabilities_drop() ||
	    chdir("/") < 0)
		return SBA_GUEST_FAILED;
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
