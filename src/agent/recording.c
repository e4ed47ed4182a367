/* SPDX-License-Identifier: MIT */
/* A recorded stream through a driver, without sandbox or process. */
#include "agent/private.h"

#include <stdlib.h>

struct sba_recording {
	struct sba_driver driver;
	struct sba_stream *stream;
	struct sba_event_queue events;
};

int sba_recording_open(const char *agent, struct sba_recording **ret, struct sba_error *err)
{
	const struct sba_driver *driver = sba_driver_find(agent);
	if (!driver)
		return sba_fail(err, SBA_ENOTFOUND, "there is no agent '%s'", agent);
	return sba_recording_open_driver(driver, ret, err);
}

int sba_recording_open_driver(const struct sba_driver *driver, struct sba_recording **ret,
			      struct sba_error *err)
{
	struct sba_recording *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	int rc = sba_driver_adopt(driver, &r->driver, err);
	if (rc == 0)
		rc = sba_stream_new(&(struct sba_stream_options){ .driver = &r->driver,
								  .fn = sba_event_queue_put,
								  .user = &r->events },
				    &r->stream, err);
	if (rc < 0) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int sba_recording_line(struct sba_recording *r, const char *line, size_t len, struct sba_error *err)
{
	return sba_stream_line(r->stream, line, len) ? sba_fail_nomem(err) : 0;
}

const struct sba_event *sba_recording_next(struct sba_recording *r)
{
	return sba_event_queue_take(&r->events);
}

void sba_recording_result(struct sba_recording *r, int exit_status, struct sba_turn_result *ret)
{
	struct sba_outcome o = { 0 };
	sba_stream_finish(r->stream, exit_status, "", &o);
	*ret = (struct sba_turn_result){
		.verdict = o.verdict,
		.session = o.session ? o.session : "",
		.text = o.text ? o.text : "",
		.http_status = o.http_status,
		.retryable = o.retryable,
		.usage = o.usage,
		.tools = o.tools,
		.unknown_lines = o.unknown_lines,
		.exit_status = exit_status,
	};
	if (o.verdict != SBA_VERDICT_OK)
		sba_fail(&ret->error, sba_verdict_code(o.verdict), "%s",
			 o.error ? o.error : "it failed");
}

void sba_recording_close(struct sba_recording *r)
{
	if (!r)
		return;
	sba_stream_free(r->stream);
	sba_event_queue_fini(&r->events);
	free(r);
}
