/* SPDX-License-Identifier: MIT */
/* A channel that a command of the backend carries. */
#ifndef SBA_SANDBOX_CARRIED_H
#define SBA_SANDBOX_CARRIED_H

#include "sandbox/session.h"

/* An sba_session_open_fn; user is the sandbox, whose backend has SBA_CAN_STDIN. */
int sba_carried_open(void *sandbox, struct sba_until until, struct sba_channel **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* After the channel was closed; ends the guest. NULL is allowed. */
void sba_carried_free(struct sba_carried *c);

#endif
