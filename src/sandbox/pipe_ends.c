/* SPDX-License-Identifier: MIT */
/*
 * The pipes of a command that a thread of ours carries: its ends for the thread, the others
 * for the process that the library makes of them.
 */
#include <sandbox-agent/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/base.h"
#include "sandbox/sandbox.h"

int sba_pipe_ends_open(const struct sba_pipe_ends *ours, struct sba_pipes *p, struct sba_error *err)
{
	int rc = sba_pipe_open(ours->out, &p->out, true, err);
	if (rc == 0 && ours->err)
		rc = sba_pipe_open(ours->err, &p->err, true, err);
	if (rc == 0 && ours->in)
		rc = sba_pipe_open(ours->in, &p->in, false, err);
	if (rc < 0)
		return rc;
	p->ended = fcntl(ours->ended_fd, F_DUPFD_CLOEXEC, 0);
	return p->ended < 0 ? sba_fail_errno(err, SBA_EIO, errno, "command: descriptors") : 0;
}

int sba_pipe_ends_await(int ended_fd, int64_t wait_ms, struct sba_error *err)
{
	struct sba_until until = { SBA_NEVER, -1 };
	return sba_wait_fd(ended_fd, POLLIN, wait_ms < 0 ? until : sba_until_sooner(until, wait_ms),
			   err);
}

void sba_pipe_ends_close(struct sba_pipes *p)
{
	int *const fds[] = { &p->in, &p->out, &p->err, &p->ended };
	for (size_t i = 0; i < SBA_ARRAY_LEN(fds); i++) {
		sba_cleanup_close(fds[i]);
		*fds[i] = -1;
	}
}
