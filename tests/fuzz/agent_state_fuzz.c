/* SPDX-License-Identifier: MIT */
/* The file inside in which an agent's state is kept: what runs there may have written it. */
#include "agent/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sba_driver driver = { .name = "claude" };
	struct sba_agent a = { .driver = &driver };
	struct sba_error err = { 0 };
	const char *session;
	json_t *j;
	int rc = sba_agent_parse_state(&a, (const char *)data, size, &err);
	assert(rc == 0 || (rc == err.code && err.text[0]));
	if (rc == 0)
		assert(a.turns >= 0 && (!a.session[0] || sba_session_id_valid(a.session)));
	json_object_foreach(a.memory, session, j)
	{
		struct sba_memory m = { 0 };
		assert(sba_session_id_valid(session));
		assert(sba_agent_recall(&a, session, &m, &err) == 0);
		free(m.kept);
	}
	json_decref(a.memory);
	return 0;
}
