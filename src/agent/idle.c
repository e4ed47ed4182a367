/* SPDX-License-Identifier: MIT */
/* When a turn is idle: neither a byte from its CLI nor CPU used in its sandbox. */
#include "agent/turn.h"

enum {
	LOOKS = 5, /* within the limit */
	LOOK_MIN_MS = 100,
	LOOK_MAX_MS = 10 * 1000,
	/* Of one CPU; a runtime that only waits has timers and a garbage collector. */
	BUSY_PERCENT = 5,
	NS_PER_MS = 1000 * 1000,
};

static int64_t look_ms(const struct sba_turn *t)
{
	int64_t ms = t->idle_ms / LOOKS;
	return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

/* What cannot be known counts as unused. The first look has nothing to compare with. */
static bool computes(struct sba_turn *t, int64_t now)
{
	int64_t used, span = now - t->cpu.at_ms;
	if (sba_sandbox_cpu(t->agent->sandbox, &used, NULL) < 0)
		return false;
	int64_t more = used - t->cpu.used_ns;
	bool first = t->cpu.at_ms == 0;
	t->cpu.at_ms = now;
	t->cpu.used_ns = used;
	return !first && more / NS_PER_MS * 100 >= span * BUSY_PERCENT;
}

bool sba_turn_is_idle(struct sba_turn *t, int64_t now, int64_t *ret_next)
{
	int64_t look = look_ms(t);
	if (t->cpu.next_ms < t->last_use_ms + look)
		t->cpu.next_ms = t->last_use_ms + look;
	if (now >= t->cpu.next_ms) {
		t->cpu.next_ms = now + look;
		if (computes(t, now))
			t->last_use_ms = now;
	}
	int64_t end = t->last_use_ms + t->idle_ms;
	*ret_next = end < t->cpu.next_ms ? end : t->cpu.next_ms;
	return now >= end;
}
