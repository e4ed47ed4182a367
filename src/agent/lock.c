/* SPDX-License-Identifier: MIT */
/*
 * One turn of an agent at a time, across clients and machines: two of the CLIs
 * lose or corrupt their history otherwise.
 */
#include "agent/private.h"

int sba_agent_lock(struct sba_agent *a, int64_t wait_ms, struct sba_lock **ret,
		   struct sba_error *err)
{
	char name[SBA_DRIVER_NAME_MAX + 8];
	snprintf(name, sizeof(name), "turn.%s", a->driver->name);
	int rc = sba_sandbox_lock(a->sandbox, name, wait_ms, ret, err);
	if (rc == SBA_EBUSY)
		return sba_hint(err,
				sba_fail(err, SBA_EBUSY,
					 "a turn of %s in sandbox '%s' is under way",
					 a->driver->name, sba_sandbox_info(a->sandbox)->name),
				"chat --wait waits for its end; sandbox-agent stop %s ends it",
				sba_sandbox_info(a->sandbox)->name);
	/* Another client's turn may have been the last. */
	if (rc == 0)
		a->state_known = a->one_turn;
	return rc;
}
