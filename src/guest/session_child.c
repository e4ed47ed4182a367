/* SPDX-License-Identifier: MIT */
/*
 * Children of the session: the supervisors of commands, which are forks that
 * run `guest run`, and the children that serve a file. Orphans of both come
 * to the session too, and end with it.
 */
#include "guest/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/kill.h"
#include "guest/proc.h"
#include "guest/tree.h"

enum { STREAMS = 3 };

struct pipes {
	int child[STREAMS];
	int ours[STREAMS];
};

static void pipes_close(int fds[STREAMS])
{
	for (int i = 0; i < STREAMS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static bool pipes_open(struct pipes *pipes, int count)
{
	*pipes = (struct pipes){ { -1, -1, -1 }, { -1, -1, -1 } };
	for (int i = 0; i < count; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return false;
		pipes->child[i] = ends[i != STDIN_FILENO];
		pipes->ours[i] = ends[i == STDIN_FILENO];
		if (fcntl(pipes->ours[i], F_SETFL, O_NONBLOCK) < 0)
			return false;
	}
	return true;
}

static bool take_pipes(const struct pipes *pipes)
{
	for (int i = 0; i < STREAMS; i++) {
		if (pipes->child[i] >= 0 && dup2(pipes->child[i], i) < 0)
			return false;
	}
	return close_range(STDERR_FILENO + 1, ~0U, 0) == 0;
}

static int run_main(void)
{
	static char name[] = "run", id[] = "channel";
	char *argv[] = { name, id, NULL };

	return sba_guest_run(2, argv);
}

static int child_start(struct sba_session_stream *stream, int streams, int (*child_main)(void))
{
	struct pipes pipes;
	int error = 0;

	if (!pipes_open(&pipes, streams)) {
		error = errno;
	} else {
		stream->pid = fork();
		if (stream->pid == 0)
			_exit(take_pipes(&pipes) ? child_main() : EXIT_FAILURE);
		error = stream->pid < 0 ? errno : 0;
	}
	pipes_close(pipes.child);
	if (error) {
		stream->pid = 0;
		pipes_close(pipes.ours);
		return error;
	}
	stream->sink = pipes.ours[STDIN_FILENO];
	stream->source[0] = pipes.ours[STDOUT_FILENO];
	stream->source[1] = pipes.ours[STDERR_FILENO];
	return 0;
}

int sba_session_child_run(struct sba_session_stream *stream)
{
	return child_start(stream, STREAMS, run_main);
}

int sba_session_child_file(struct sba_session_stream *stream)
{
	return child_start(stream, STREAMS - 1, sba_session_file_serve);
}

/* A child that we started, not an orphan that came to us. */
static bool is_ours(const struct sba_session *session, pid_t pid)
{
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		if (session->streams[i].pid == pid)
			return true;
	}
	return false;
}

static void forget(struct sba_session *session, pid_t pid)
{
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		struct sba_session_stream *stream = &session->streams[i];

		if (stream->pid != pid)
			continue;
		stream->pid = 0;
		stream->gone = true;
		if (stream->paused && stream->id > 0) {
			stream->paused = false;
			nghttp2_session_resume_data(session->h2, stream->id);
		}
		return;
	}
}

void sba_session_reap(struct sba_session *session)
{
	struct signalfd_siginfo info[4];
	int status;
	pid_t pid;

	(void)!read(session->sigfd, info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		/* The supervisor itself may be in a scope that has no sandbox. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == SBA_GUEST_SURVIVORS &&
		    is_ours(session, pid))
			sba_guest_kill_sandbox();
		forget(session, pid);
	}
}

/* ---- the end of everything ---- */

static bool any_child(const struct sba_session *session)
{
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		if (session->streams[i].pid != 0)
			return true;
	}
	return false;
}

static void await_children(struct sba_session *session, int64_t limit)
{
	struct pollfd wait = { .fd = session->sigfd, .events = POLLIN };

	while (any_child(session)) {
		int64_t left = limit - sba_guest_now_ms(CLOCK_MONOTONIC);

		if (left <= 0)
			return;
		poll(&wait, 1, (int)left);
		sba_session_reap(session);
	}
}

/* Supervisors that were too slow, and orphans of commands that ended before. */
static void end_the_rest(const struct sba_session *session)
{
	struct sba_guest_tree rest = { .proc = sba_guest_proc_open() };

	if (rest.proc >= 0 && sba_guest_tree_kill(&rest, session->sigfd, SBA_SESSION_END_MS) > 0)
		sba_guest_kill_sandbox();
}

void sba_session_end_all(struct sba_session *session)
{
	int64_t limit = sba_guest_now_ms(CLOCK_MONOTONIC) + SBA_SESSION_END_MS;

	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		struct sba_session_stream *stream = &session->streams[i];

		if (stream->id != 0)
			sba_session_pump_close(session, stream, true);
	}
	await_children(session, limit);
	end_the_rest(session);
}
