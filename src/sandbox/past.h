/* SPDX-License-Identifier: MIT */
/* What the engine's events still tell of sandboxes whose containers are gone. */
#ifndef SBA_SANDBOX_PAST_H
#define SBA_SANDBOX_PAST_H

#include "sandbox/private.h"

/* The sandboxes of a label filter "k=v" that ended since a UNIX time: appended
 * to `found` unless it has them; info.state is "gone", info.reason says why. What never
 * began is left out. */
int sba_past_add(struct sba_engine *e, const char *label, int64_t since_unix_s,
		 struct sba_found *found, struct sba_error *err) SBA_MUST_CHECK;
int sba_past_add_until(struct sba_engine *e, const char *label, int64_t since_unix_s,
		       struct sba_until until, struct sba_found *found,
		       struct sba_error *err) SBA_MUST_CHECK;
/* A sentence for a reason: "it ended itself: …". */
const char *sba_past_words(const char *reason);

#endif
