/* SPDX-License-Identifier: MIT */
/* Containers of an engine, as a backend: the table of what the files around are. */
#include "sandbox/snapshot.h"

static const char *workdir(const struct sba_sandbox *s)
{
	(void)s;
	return SBA_DEFAULT_WORKSPACE;
}

const struct sba_backend sba_backend_docker = {
	.version = SBA_BACKEND_VERSION,
	.name = "docker",
	.can = SBA_CAN_STDIN | SBA_CAN_TTY | SBA_CAN_SIGNAL | SBA_CAN_USER | SBA_CAN_DETACH |
	       SBA_CAN_LOCK | SBA_CAN_HOST_URL | SBA_CAN_PORT | SBA_CAN_TREES | SBA_CAN_FORK |
	       SBA_CAN_INSPECT | SBA_CAN_RUN_CODE,
	.workdir = workdir,
	.exec = sba_guest_exec,
	.read = sba_inside_read,
	.write = sba_inside_write,
	.stat = sba_inside_look,
	.host_url = sba_guest_host_url,
	.fork = sba_docker_fork,
	.close = sba_docker_remove,
	.snapshot = sba_guest_snapshot,
};
