/* SPDX-License-Identifier: MIT */
/*
 * Finds the guest's records (channel/protocol.h) in a command's output, which
 * comes in pieces cut anywhere. Pure; unit-tested at every cut.
 */
#ifndef SBA_SANDBOX_RECORD_H
#define SBA_SANDBOX_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel/protocol.h"

enum { SBA_RECORD_MARK_LEN = 1 + 8 + SBA_RUN_NONCE_LEN + 1 };

struct sba_record_scan {
	char mark[SBA_RECORD_MARK_LEN]; /* NUL "sba-run:" NONCE ":" */
	char held[SBA_RECORD_MAX];      /* what may be the beginning of a record */
	size_t held_len;
	char flushed[SBA_RECORD_MAX]; /* was held, and was none */
};

/* A record that was found. */
struct sba_record {
	char kind; /* 0: none in this step */
	int64_t number;
};

void sba_record_scan_init(struct sba_record_scan *s, const char nonce[SBA_RUN_NONCE_LEN]);

/* One step: consumes from data; *out, *out_len tell output to pass on (inside data
 * or inside s, lent until the next step; maybe empty); *record what was found
 * after it. Call again with the rest until all is consumed. */
size_t sba_record_scan_step(struct sba_record_scan *s, const char *data, size_t len,
			    const char **out, size_t *out_len, struct sba_record *record);
/* At the end of the stream: what was held back after all. */
size_t sba_record_scan_rest(struct sba_record_scan *s, const char **out);

#endif
