/* SPDX-License-Identifier: MIT */
/*
 * The state of a stream, shared by stream.c (lines in), report.c (events out)
 * and outcome.c (the end). Drivers see it through private.h only.
 */
#ifndef SBA_DRIVERS_STREAM_H
#define SBA_DRIVERS_STREAM_H

#include "drivers/private.h"

#include "base/limits.h"

struct sba_stream {
	const struct sba_driver *driver;
	const char *mcp; /* names of servers; NULL: none */
	void *state;     /* the driver's */
	sba_event_fn *fn;
	void *user;

	const char *raw; /* the line in progress */
	size_t raw_len;

	char session[SBA_SESSION_ID_MAX + 1]; /* "" until known */
	struct sba_buf answer;
	struct sba_buf shown_text; /* by deltas of the block in progress */
	struct sba_buf shown_thinking;
	json_t *open_calls; /* call id -> [native name, common name] */

	struct sba_usage usage;
	uint64_t tools;
	uint64_t unknown_lines;

	bool failed; /* failure holds; its text is failure_text */
	struct sba_failure failure;
	struct sba_buf failure_text;

	struct sba_buf error; /* the outcome's words */
	char resumes[SBA_SESSION_ID_MAX + 1];
	char new_session[SBA_SESSION_ID_MAX + 1];
	char kept[SBA_KEPT_MAX + 1];
	bool keeps; /* kept is set */
	bool done;
	bool stuck;
};

#endif
