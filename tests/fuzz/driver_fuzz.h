/* SPDX-License-Identifier: MIT */
/*
 * What a container writes on stdout, as lines of one driver; the last byte is the
 * exit status. Each driver's target is this with its name.
 */
#ifndef TESTS_FUZZ_DRIVER_FUZZ_H
#define TESTS_FUZZ_DRIVER_FUZZ_H

#include "drivers/drivers.h"

#include <assert.h>
#include <string.h>

static void check_text(const char *text)
{
	assert(!text || sba_utf8_valid(text, strlen(text)));
}

static int on_event(void *user, const struct sba_event *e)
{
	(void)user;
	check_text(e->text);
	check_text(e->tool);
	check_text(e->tool_native);
	check_text(e->call_id);
	check_text(e->input);
	check_text(e->summary);
	check_text(e->output);
	check_text(e->path);
	assert(e->raw);
	return 0;
}

static int fuzz_driver(const char *name, const uint8_t *data, size_t size)
{
	struct sba_stream *s;
	struct sba_outcome o;
	const char *at = (const char *)data, *end = at + size;
	int status = size ? data[size - 1] : 0;
	const struct sba_stream_options options = { .driver = sba_driver_find(name),
						    .fn = on_event };
	if (sba_stream_new(&options, &s, NULL) < 0)
		return 0;
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl ? nl : end;
		int rc = sba_stream_line(s, at, (size_t)(stop - at));
		assert(rc == 0);
		at = nl ? nl + 1 : end;
	}
	int rc = sba_stream_finish(s, status, "\x1b[1mstderr\x1b[0m", &o);
	assert(rc == 0);
	check_text(o.text);
	check_text(o.error);
	assert((o.verdict == SBA_VERDICT_OK) == (o.error == NULL));
	sba_stream_free(s);
	return 0;
}

#endif
