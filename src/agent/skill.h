/* SPDX-License-Identifier: MIT */
/* What a skill is: the front matter of its SKILL.md, and the name of its folder. */
#ifndef SBA_AGENT_SKILL_H
#define SBA_AGENT_SKILL_H

#include "agent/private.h"

#include <sandbox-agent/session.h>

struct sba_skill_head {
	char *name, *description; /* NULL until known */
};
void sba_skill_head_fini(struct sba_skill_head *h);
/* The lines between two of "---" at the beginning of a SKILL.md: "name:" and
 * "description:", plain, quoted, or a block that is indented. SBA_EINVAL says what is
 * missing. */
int sba_skill_head_parse(const char *text, size_t len, struct sba_skill_head *ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* UTF-8 without control characters, not hidden, no path. */
bool sba_skill_name_valid(const char *folder);

#endif
