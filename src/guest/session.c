/* SPDX-License-Identifier: MIT */
/*
 * `guest session`: one client's hold on the sandbox. Its loop, its clock and
 * its end: when the host says goodbye, dies or falls silent, everything that
 * was started over this channel ends.
 */
#include "guest/session.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/identity.h"

enum {
	POLLS_PER_STREAM = 3,
	POLL_HOST_IN = 0,
	POLL_HOST_OUT,
	POLL_CHILDREN,
	POLL_STREAMS,
	POLLS = POLL_STREAMS + POLLS_PER_STREAM * SBA_SESSION_SLOTS + SBA_SESSION_DRAINS,
	PIPE_WIDE = 1024 * 1024,
	MUCH = 32 * 1024,      /* taken from sources at once: they are left to fill */
	STILL_MUCH = 8 * 1024, /* when they were */
	MOMENT_NS = 200 * 1000,
};

/* Who a pollfd belongs to. */
struct wait {
	size_t count;
	struct pollfd polls[POLLS];
	struct sba_session_stream *owner[POLLS];
};

static bool prepare(struct sba_session *session)
{
	sigset_t set;

	close_range(STDERR_FILENO + 1, ~0U, 0);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
	    signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		return false;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return false;
	session->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Best effort: the engine's pipes are 64 KiB. */
	fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE_WIDE);
	fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_WIDE);
	return session->sigfd >= 0 && fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0 &&
	       fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) == 0;
}

/* ---- what to wait for ---- */

static void add(struct wait *wait, struct sba_session_stream *owner, int fd, short events)
{
	wait->polls[wait->count] = (struct pollfd){ fd, events, 0 };
	wait->owner[wait->count++] = owner;
}

static void add_sink(struct wait *wait, struct sba_session_stream *stream)
{
	if (stream->connecting || stream->queue.at < stream->queue.len)
		add(wait, stream, stream->sink, POLLOUT);
}

/* Only of use while there is room for what a source says. */
static void add_sources(struct sba_session *session, struct wait *wait,
			struct sba_session_stream *stream)
{
	if (!stream->paused)
		return;
	if (stream->kind == SBA_KIND_LISTEN && !sba_session_pump_accepts(session))
		return;
	for (int i = 0; i < 2; i++) {
		if (stream->source[i] >= 0)
			add(wait, stream, stream->source[i], POLLIN);
	}
}

static void gather(struct sba_session *session, struct wait *wait)
{
	size_t room;

	sba_session_out_tail(&session->out, &room);
	wait->count = 0;
	add(wait, NULL, STDIN_FILENO, POLLIN);
	add(wait, NULL, session->out.at < session->out.len ? STDOUT_FILENO : -1, POLLOUT);
	add(wait, NULL, session->sigfd, POLLIN);
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		if (session->streams[i].id == 0)
			continue;
		add_sink(wait, &session->streams[i]);
		if (room >= SBA_SESSION_FRAME_ROOM)
			add_sources(session, wait, &session->streams[i]);
	}
	for (size_t i = 0; i < session->n_drains; i++)
		add(wait, NULL, session->drains[i], POLLIN);
}

/* ---- what came ---- */

static void serve_stream(struct sba_session *session, struct sba_session_stream *stream, int fd)
{
	if (stream->id == 0)
		return;
	if (stream->connecting) {
		sba_session_stream_connected(session, stream);
	} else if (fd == stream->sink && stream->queue.at < stream->queue.len) {
		sba_session_pump_flush(session, stream);
	}
	if (stream->paused && (fd == stream->source[0] || fd == stream->source[1])) {
		stream->paused = false;
		nghttp2_session_resume_data(session->h2, stream->id);
	}
}

static void drain(struct sba_session *session, int fd)
{
	static uint8_t nowhere[16 * 1024];

	if (read(fd, nowhere, sizeof(nowhere)) > 0)
		return;
	for (size_t i = 0; i < session->n_drains; i++) {
		if (session->drains[i] != fd)
			continue;
		session->drains[i] = session->drains[--session->n_drains];
		close(fd);
		return;
	}
}

static bool serve(struct sba_session *session, const struct wait *wait)
{
	for (size_t i = POLL_STREAMS; i < wait->count; i++) {
		if (wait->polls[i].revents == 0)
			continue;
		if (wait->owner[i])
			serve_stream(session, wait->owner[i], wait->polls[i].fd);
		else
			drain(session, wait->polls[i].fd);
	}
	if (wait->polls[POLL_CHILDREN].revents)
		sba_session_reap(session);
	return !wait->polls[POLL_HOST_IN].revents || sba_session_h2_read(session);
}

/* ---- the clock ---- */

static bool tick(struct sba_session *session)
{
	int64_t now = sba_guest_now_ms(CLOCK_MONOTONIC);
	uint8_t payload[8];

	sba_session_waiting_expire(session, now);
	if (now - session->heard >= SBA_CHANNEL_GUEST_SILENCE_MS)
		return false;
	if (now >= session->next_ping) {
		session->next_ping = now + SBA_CHANNEL_PING_MS;
		memcpy(payload, &now, sizeof(payload));
		nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE, payload);
	}
	return true;
}

/* Milliseconds until something is due. */
static int time_left(const struct sba_session *session, int64_t next_look)
{
	int64_t next = session->next_ping < next_look ? session->next_ping : next_look;
	int64_t left = next - sba_guest_now_ms(CLOCK_MONOTONIC);

	return left > 0 ? (int)left : 0;
}

/* Sources that bring much are left to fill for a moment, and stdout to empty: every piece
 * that wakes us, or whom we wake with it, costs more than to move it does. */
static void rest(struct sba_session *session)
{
	static const struct timespec moment = { .tv_nsec = MOMENT_NS };
	struct pollfd polls[] = {
		{ STDIN_FILENO, POLLIN, 0 },
		{ session->sigfd, POLLIN, 0 },
	};

	session->rests = session->took >= (size_t)(session->rests ? STILL_MUCH : MUCH);
	session->took = 0;
	if (session->rests)
		ppoll(polls, sizeof(polls) / sizeof(polls[0]), &moment, NULL);
}

static void live(struct sba_session *session)
{
	static struct wait wait;

	while (!session->failed && tick(session)) {
		int64_t next_look =
			sba_session_notice_tick(session, sba_guest_now_ms(CLOCK_MONOTONIC));

		/* The host speaks first: the answer to its hello goes with our settings,
		 * which saves the engine one of two pieces to pass on. */
		if (session->greeted)
			sba_session_h2_write(session);
		rest(session);
		gather(session, &wait);
		if (poll(wait.polls, wait.count, time_left(session, next_look)) > 0 &&
		    !serve(session, &wait))
			return;
	}
}

int sba_guest_session(int argc, char **argv)
{
	static struct sba_session session;
	int64_t began = sba_guest_now_ms(CLOCK_MONOTONIC);

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	if (!prepare(&session) || !sba_session_h2_open(&session))
		return SBA_GUEST_FAILED;
	session.heard = began;
	session.next_ping = began + SBA_CHANNEL_PING_MS;
	live(&session);
	sba_session_end_all(&session);
	if (getppid() == 0 || sba_guest_sidecar_is_first())
		sba_guest_linger(began);
	return SBA_GUEST_OK;
}
