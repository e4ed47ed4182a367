/* SPDX-License-Identifier: MIT */
/* The front matter of a SKILL.md, which a list reads out of a sandbox. */
#include "agent/skill.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sba_skill_head h = { 0 };
	if (sba_skill_head_parse((const char *)data, size, &h, NULL) < 0)
		return 0;
	if (!h.name || !*h.name || !h.description || !*h.description)
		abort();
	sba_skill_head_fini(&h);
	return 0;
}
