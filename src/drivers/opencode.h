/* SPDX-License-Identifier: MIT */
/* What the two forms of opencode's stream share. Private to its driver. */
#ifndef SBA_DRIVERS_OPENCODE_H
#define SBA_DRIVERS_OPENCODE_H

#include "drivers/private.h"

struct opencode {
	char reason[32];   /* of the last step_finish; "" before it */
	unsigned unknown;  /* such steps in a row */
	char refused[256]; /* the last call's error, "" if it went well */
	char last_tool[64];
	char thinking[64]; /* the part whose deltas are no text; "": none */
};

/* A part, under the name that the first form's lines have ("step_start", "text",
 * "reasoning", "tool_use", "step_finish"). */
int sba_opencode_part(struct sba_stream *s, struct opencode *oc, const char *type,
		      const json_t *part);
int sba_opencode_error(struct sba_stream *s, const json_t *error);

/* An event of `opencode serve`. */
int sba_opencode_server_object(struct sba_stream *s, void *state, const json_t *event);

#endif
