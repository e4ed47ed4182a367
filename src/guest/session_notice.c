/* SPDX-License-Identifier: MIT */
/*
 * Notices to the host: that a counter of the sandbox's cgroup rose. Nobody tells of
 * that here (the files cannot be polled in version 1), so it is looked for, once a
 * second and only while the host wants to know. However often a counter rises, what
 * waits to be sent is one number of each kind.
 */
#include "guest/session.h"

enum { PERIOD_MS = 1000 };

bool sba_session_notice_begin(struct sba_session *session, struct sba_session_stream *stream)
{
	struct sba_session_notices *notices = &session->notices;

	if (notices->stream)
		return false;
	*notices = (struct sba_session_notices){
		.stream = stream,
		.seen = sba_guest_pressure_now(),
	};
	return true;
}

void sba_session_notice_end(struct sba_session *session, const struct sba_session_stream *stream)
{
	if (session->notices.stream == stream)
		session->notices.stream = NULL;
}

static void add(uint32_t *pending, int64_t rise)
{
	*pending = rise < UINT32_MAX - *pending ? *pending + (uint32_t)rise : UINT32_MAX;
}

static void look(struct sba_session *session)
{
	struct sba_session_notices *notices = &session->notices;
	struct sba_guest_pressure rose = sba_guest_pressure_since(&notices->seen);

	notices->seen.oom_kills += rose.oom_kills;
	notices->seen.pids_refused += rose.pids_refused;
	add(&notices->oom_kills, rose.oom_kills);
	add(&notices->pids_refused, rose.pids_refused);
	if (!notices->stream->paused || (notices->oom_kills == 0 && notices->pids_refused == 0))
		return;
	notices->stream->paused = false;
	nghttp2_session_resume_data(session->h2, notices->stream->id);
}

int64_t sba_session_notice_tick(struct sba_session *session, int64_t now)
{
	struct sba_session_notices *notices = &session->notices;

	if (!notices->stream)
		return INT64_MAX;
	if (now >= notices->next_look) {
		notices->next_look = now + PERIOD_MS;
		look(session);
	}
	return notices->next_look;
}

static uint8_t *put(uint8_t *to, enum sba_channel_notice kind, uint32_t *pending)
{
	if (*pending == 0)
		return to;
	*to++ = (uint8_t)kind;
	for (int shift = 24; shift >= 0; shift -= 8)
		*to++ = (uint8_t)(*pending >> shift);
	*pending = 0;
	return to;
}

ssize_t sba_session_notice_source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
				  uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct sba_session *session = user;
	struct sba_session_notices *notices = &session->notices;
	uint8_t *end = buf;

	(void)h2;
	(void)id;
	(void)flags;
	(void)source;
	if (length >= 2 * SBA_CHANNEL_NOTICE_SIZE) {
		end = put(end, SBA_NOTICE_OOM_KILLS, &notices->oom_kills);
		end = put(end, SBA_NOTICE_PIDS_REFUSED, &notices->pids_refused);
	}
	if (end > buf)
		return end - buf;
	notices->stream->paused = true;
	return NGHTTP2_ERR_DEFERRED;
}
