/* SPDX-License-Identifier: MIT */
/*
 * Locks inside a sandbox: a command that does nothing while its supervisor
 * holds a name. Whatever ends the client ends the command, and lets the name go.
 */
#include <stdlib.h>

#include "sandbox/process.h"
#include "sandbox/sandbox.h"

enum { RELEASE_MS = 3000 };

struct sba_lock {
	struct sba_process *process;
};

/* A year: longer than any sandbox lives. */
static const int64_t for_ever_ms = 365LL * 24 * 3600 * 1000;

static int await(struct sba_process *p, struct sba_error *err)
{
	struct sba_exit end;
	int rc = sba_process_await_begin(p, err);
	if (rc < 0 || !p->over)
		return rc;
	rc = sba_process_wait(p, -1, &end, err);
	if (rc < 0)
		return rc;
	if (end.kind == SBA_LOCKED)
		return sba_fail(err, SBA_EBUSY, "another holds it");
	if (end.kind == SBA_WAS_CANCELED)
		return sba_fail(err, SBA_ECANCELED, "interrupted");
	return sba_fail(err, SBA_EBROKEN, "its holder ended at once, with %d",
			sba_exit_status(&end));
}

int sba_sandbox_lock(struct sba_sandbox *s, const char *name, int64_t wait_ms,
		     struct sba_lock **ret, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "idle", NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .lock = name,
					    .lock_wait_ms = wait_ms < 0 ? for_ever_ms : wait_ms };
	struct sba_lock *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = sba_sandbox_exec(s, &o, &l->process, err);
	if (rc == 0)
		rc = await(l->process, err);
	if (rc < 0) {
		sba_lock_free(l);
		return sba_wrap(err, rc, "lock '%s' in sandbox '%s'", name, s->info.name);
	}
	*ret = l;
	return 0;
}

void sba_lock_free(struct sba_lock *l)
{
	struct sba_exit end;
	if (!l)
		return;
	/* The next one who asks shall find the name free. */
	if (l->process && !l->process->over) {
		sba_process_cancel(l->process);
		(void)sba_process_wait(l->process, RELEASE_MS, &end, &(struct sba_error){ 0 });
	}
	sba_process_free(l->process);
	free(l);
}
