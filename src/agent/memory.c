/* SPDX-License-Identifier: MIT */
/* What is remembered of a session, as JSON that may have been changed by anyone. */
#include <stdlib.h>
#include <string.h>

#include "agent/dump.h"

static const int64_t count_max = 1000000000000000; /* exact in every JSON reader */

json_t *sba_memory_json(const struct sba_memory *m)
{
	const struct sba_usage *u = &m->usage;
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:s*}", "turns", (json_int_t)m->turns,
			      "input", (json_int_t)u->input, "cached_input",
			      (json_int_t)u->cached_input, "output", (json_int_t)u->output,
			      "reasoning", (json_int_t)u->reasoning, "kept", m->kept);
	if (j && *m->parent)
		json_object_set_new(j, "parent", json_string(m->parent));
	if (j && u->cost_usd > 0)
		json_object_set_new(j, "cost_usd", json_real(u->cost_usd));
	return j;
}

static int64_t count(const json_t *j, const char *key)
{
	int64_t n = sba_json_int(j, key, 0);
	return n < 0 || n > count_max ? 0 : n;
}

int sba_memory_parse(const json_t *j, struct sba_memory *ret, struct sba_error *err)
{
	const char *kept = sba_json_str(j, "kept");
	double cost = json_number_value(json_object_get(j, "cost_usd"));
	struct sba_memory m = {
		.turns = count(j, "turns"),
		.usage = {
			.input = count(j, "input"),
			.cached_input = count(j, "cached_input"),
			.output = count(j, "output"),
			.reasoning = count(j, "reasoning"),
			.cost_usd = cost > 0 && cost < 1e12 ? cost : 0,
		},
	};
	const char *parent = sba_json_str(j, "parent");
	if (parent && sba_session_id_valid(parent))
		snprintf(m.parent, sizeof(m.parent), "%s", parent);
	if (kept && strlen(kept) <= SBA_KEPT_MAX && !(m.kept = strdup(kept)))
		return sba_fail_nomem(err);
	*ret = m;
	return 0;
}
