/* SPDX-License-Identifier: MIT */
/* Waiting for a program of this host that we started, under a deadline. */
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 10 }; /* where the kernel has no pidfd (before 5.3), or keeps it from us */

int sba_child_wait(pid_t pid, struct sba_until until, int *ret_status, struct sba_error *err)
{
	SBA_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (;;) {
		int status;
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid) {
			*ret_status = status;
			return 0;
		}
		if (got < 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "wait");
		int rc = sba_until_check(until, err);
		if (rc == 0 && fd >= 0)
			rc = sba_wait_fd(fd, POLLIN, until, err);
		else if (rc == 0)
			(void)!sba_wait_fd(-1, 0, sba_until_sooner(until, LOOK_MS), NULL);
		if (rc < 0)
			return rc;
	}
}
