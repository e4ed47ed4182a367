/* SPDX-License-Identifier: MIT */
/* What everything that gets at an agent's sessions begins and ends with. */
#ifndef SBA_AGENT_SESSIONS_H
#define SBA_AGENT_SESSIONS_H

#include "agent/private.h"

#include <sandbox-agent/session.h>

struct sba_access {
	const struct sba_store *store;
	struct sba_inside in;
	struct sba_lock *lock; /* NULL for one that only looks */
};
/* change: nothing else changes the sessions until it is left. SBA_EUNSUPPORTED: the
 * driver has no store. */
int sba_access_enter(struct sba_agent *a, bool change, struct sba_access *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
void sba_access_leave(struct sba_access *x);
/* rc, with "sandbox 'NAME': what: " in front of the error. */
int sba_access_wrap(const struct sba_agent *a, int rc, const char *what, struct sba_error *err);
/* The session that is meant; NULL: the main one, lent from the agent. */
int sba_access_id(const struct sba_agent *a, const char *id, const char **ret,
		  struct sba_error *err) SBA_MUST_CHECK;

#endif
