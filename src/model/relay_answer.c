/* SPDX-License-Identifier: MIT */
/*
 * Upstream's answer on its way to the client: piece by piece as it arrives,
 * without the key, counted before it is passed on, so that a client which has
 * seen its end finds it in the budget.
 */
#include "base/limits.h"
#include "model/relay_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STAGE = 64 * SBA_KIB };

struct passage {
	struct sba_relay *relay;
	struct sba_http_response *up;
	struct sba_relay_count *count; /* NULL: its tokens are not told */
	struct sba_usage told;
	struct sba_relay_redact redact;
	size_t begin; /* of redact.out, what has not passed */
	bool over;
	char stage[STAGE];
};

static void settle(struct passage *p)
{
	struct sba_usage now = sba_relay_count_usage(p->count);
	sba_relay_spend(p->relay, &p->told, &now, p->count->estimated);
	p->told = now;
}

static void count_up(struct passage *p, size_t len)
{
	if (!p->count)
		return;
	sba_relay_count_feed(p->count, p->stage, len);
	if (p->over)
		sba_relay_count_end(p->count);
	settle(p);
}

static int refill(struct passage *p, int stop_fd)
{
	struct sba_until until = { .deadline_ms = SBA_NEVER, .cancel_fd = stop_fd };
	ssize_t n = sba_http_response_read(p->up, p->stage, STAGE,
					   sba_until_sooner(until, SBA_RELAY_SILENCE_MS), NULL);
	if (n < 0)
		return -1;
	p->over = n == 0;
	count_up(p, (size_t)n);
	sba_buf_reset(&p->redact.out);
	p->begin = 0;
	return p->over ? sba_relay_redact_end(&p->redact)
		       : sba_relay_redact_feed(&p->redact, p->stage, (size_t)n);
}

static ssize_t passage_read(void *user, char *buf, size_t size, int stop_fd)
{
	struct passage *p = user;
	while (p->begin == p->redact.out.len && !p->over)
		if (refill(p, stop_fd) < 0)
			return -1;
	size_t n = p->redact.out.len - p->begin;
	if (n > size)
		n = size;
	if (n)
		memcpy(buf, p->redact.out.data + p->begin, n);
	p->begin += n;
	return (ssize_t)n;
}

static void passage_free(void *user)
{
	struct passage *p = user;
	if (p->count && !p->over) {
		sba_relay_count_end(p->count);
		settle(p);
	}
	sba_http_response_close(p->up);
	if (p->count)
		sba_relay_count_fini(p->count);
	free(p->count);
	sba_relay_redact_fini(&p->redact);
	free(p);
}

static bool is_stream(const struct passage *p)
{
	const char *type = sba_http_response_header(p->up, "content-type");
	return type && !strncasecmp(type, "text/event-stream", 17);
}

/* Only a success costs tokens. */
static int start_count(struct passage *p, const struct sba_relay_route *route, size_t request_bytes,
		       struct sba_error *err)
{
	if (!route->generates || sba_http_response_status(p->up) / 100 != 2)
		return 0;
	p->count = malloc(sizeof(*p->count));
	if (!p->count)
		return sba_fail_nomem(err);
	sba_relay_count_init(p->count, route->counted_as, is_stream(p), request_bytes);
	return 0;
}

int sba_relay_answer(struct sba_relay *r, const struct sba_relay_route *route, size_t request_bytes,
		     struct sba_http_response *take_up, struct sba_http_answer *answer,
		     struct sba_error *err)
{
	SBA_STRV struct sba_strv headers = { 0 };
	struct passage *p = calloc(1, sizeof(*p));
	if (!p) {
		sba_http_response_close(take_up);
		return sba_fail_nomem(err);
	}
	p->relay = r;
	p->up = take_up;
	sba_relay_redact_init(&p->redact, r->secret, is_stream(p));
	int rc = sba_relay_answer_headers(r, sba_http_response_headers(take_up), &headers, err);
	if (rc == 0)
		rc = start_count(p, route, request_bytes, err);
	if (rc < 0) {
		passage_free(p);
		return rc;
	}
	answer->status = sba_http_response_status(take_up);
	sba_relay_note(r, answer->status, false);
	answer->headers = headers;
	headers = (struct sba_strv){ 0 };
	answer->stream = passage_read;
	answer->stream_user = p;
	answer->stream_free = passage_free;
	return 0;
}
