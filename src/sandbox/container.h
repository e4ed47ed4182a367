/* SPDX-License-Identifier: MIT */
/* What the files of a container that is not ours share. */
#ifndef SBA_SANDBOX_CONTAINER_H
#define SBA_SANDBOX_CONTAINER_H

#include "sandbox/private.h"

struct sba_container {
	struct sba_engine *engine; /* lent */
	char id[SBA_ID_MAX];
	char *name, *workdir;
};

/* ---- container_exec.c ---- */

/* A command by the engine's own exec. What is not in its capabilities is not asked for. */
int sba_container_exec(struct sba_container *c, const struct sba_exec_options *o,
		       struct sba_process **ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- container_end.c: what the engine has no request for ---- */

#define SBA_EXEC_MARK "SANDBOX_AGENT_EXEC"

/* Signals every process of `user` (NULL: the container's) whose environment holds the mark;
 * for SIGKILL until none is left. By a shell inside: SBA_EUNSUPPORTED where there is none,
 * SBA_EBROKEN where some are left. The handle's cancel does not end it. */
int sba_container_signal(struct sba_container *c, const char *user, const char *mark, int signal,
			 struct sba_error *err) SBA_MUST_CHECK;
/* What a runtime says in place of a command's output, as its end; or why it was none. */
int sba_container_explain(const char *words, struct sba_exit *ret,
			  struct sba_error *err) SBA_MUST_CHECK;

#endif
