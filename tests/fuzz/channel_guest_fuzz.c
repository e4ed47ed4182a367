/* SPDX-License-Identifier: MIT */
/*
 * What a host sends, to a session that gets no descriptors: it parses and
 * answers everything, but can start and connect nothing.
 */
#include "guest/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void allow_descriptors(bool allowed)
{
	static struct rlimit before;
	struct rlimit none;

	if (allowed) {
		setrlimit(RLIMIT_NOFILE, &before);
		return;
	}
	if (getrlimit(RLIMIT_NOFILE, &before) < 0)
		abort();
	none = (struct rlimit){ 0, before.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		abort();
}

static void send_all(struct sba_session *session)
{
	do {
		session->out.at = session->out.len = 0;
		if (nghttp2_session_send(session->h2) != 0)
			return;
	} while (session->out.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char magic[] = NGHTTP2_CLIENT_MAGIC;
	static struct sba_session session;
	size_t cut = size > 0 && data[0] ? data[0] : size;
	bool good;

	memset(&session, 0, sizeof(session));
	if (size == 0 || !sba_session_h2_open(&session))
		return 0;
	allow_descriptors(false);
	good = sba_session_h2_feed(&session, (const uint8_t *)magic, sizeof(magic) - 1);
	for (size_t at = 1; good && at < size; at += cut) {
		good = sba_session_h2_feed(&session, data + at, size - at < cut ? size - at : cut);
		sba_session_notice_tick(&session, (int64_t)at * 1000);
		send_all(&session);
	}
	allow_descriptors(true);
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		if (session.streams[i].id != 0)
			sba_session_pump_close(&session, &session.streams[i], true);
	}
	nghttp2_session_del(session.h2);
	return 0;
}
