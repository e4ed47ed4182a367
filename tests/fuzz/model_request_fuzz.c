/* SPDX-License-Identifier: MIT */
/*
 * Any request body, through the built-in script, to the last byte of the
 * answer. The first byte chooses the wire.
 */
#include "model/private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sba_model_wire *const wires[] = {
	&sba_model_wire_chat,
	&sba_model_wire_messages,
	&sba_model_wire_responses,
};

static void drain(const struct sba_model_wire *wire, struct sba_model_answer *a)
{
	char buf[512];
	/* Only the pace is left out. */
	a->delay_ms = a->stall_ms = 0;
	struct sba_model_stream *s = sba_model_stream_new(wire, a);
	while (s && sba_model_stream_read(s, buf, sizeof(buf), -1) > 0)
		;
	sba_model_stream_free(s);
}

static void answer(const json_t *script, const struct sba_model_request *r)
{
	struct sba_model_answer a;
	if (sba_model_plan(script, r, &a, NULL) == 0) {
		json_t *j =
			a.status == 200 ? r->wire->whole(&a) : r->wire->error(a.status, a.message);
		if (!j)
			abort();
		json_decref(j);
		drain(r->wire, &a);
	}
	sba_model_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static json_t *script;
	struct sba_model_request r;
	if (!size || (!script && sba_model_script_parse(sba_model_builtin_script, &script, NULL)))
		return 0;
	const struct sba_model_wire *wire = wires[data[0] % SBA_ARRAY_LEN(wires)];
	if (sba_model_request_parse(&r, wire, (const char *)data + 1, size - 1, NULL) == 0)
		answer(script, &r);
	sba_model_request_fini(&r);
	return 0;
}
