/* SPDX-License-Identifier: MIT */
/* What the two forms of codex's stream share. Private to its driver. */
#ifndef SBA_DRIVERS_CODEX_H
#define SBA_DRIVERS_CODEX_H

#include "drivers/private.h"

struct codex {
	bool completed;
	unsigned waiting; /* lines in a row that say so */
};

/* One item, which has begun or ended. */
int sba_codex_item(struct sba_stream *s, const json_t *item, bool ended);
/* The session's running total: what is new in it is the turn's. */
int sba_codex_usage(struct sba_stream *s, const json_t *total);
/* The turn fails with these words of codex's. */
int sba_codex_failure(struct sba_stream *s, const char *text);

/* A line of `codex app-server`. */
int sba_codex_server_object(struct sba_stream *s, struct codex *c, const json_t *line);

#endif
