/* SPDX-License-Identifier: MIT */
/*
 * The sandbox's main process, in place of the image's entrypoint. It only has
 * to exist: when it goes, the reaper ends the sandbox. Where there is no reaper,
 * because the runtime gave us a process namespace of our own, it does not: nothing
 * would end what is left running.
 *
 * A child of it becomes the session of whoever first attaches to the container,
 * which costs the engine a tenth of what an exec does. Engines do not tell that client
 * of the session's end: main does, on stderr.
 */
#include "guest/guest.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/confine.h"
#include "guest/identity.h"

enum { STEP_NS = 10 * 1000 * 1000, STEPS = 300 };

/* Whoever could turn a link, or write where it leads, could have code of its own
 * run as the guest. Engines mount and unpack through links of the image; before
 * anything else runs is the time to see. */
static bool is_well_placed(void)
{
	struct stat found;

	return lstat(SBA_GUEST_DIR, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == 0 &&
	       (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Where nobody can attach stdin is no pipe. */
static bool is_attachable(void)
{
	struct stat found;

	return fstat(STDIN_FILENO, &found) == 0 && S_ISFIFO(found.st_mode);
}

/* In a process group of its own it counts as use; the reaper looks at that. */
static void become_session(const sigset_t *mask)
{
	static char *const argv[] = { SBA_GUEST_PATH, "session", NULL };
	struct pollfd polls[] = { { STDIN_FILENO, POLLIN, 0 } };

	if (poll(polls, 1, -1) == 1 && (polls[0].revents & POLLIN) && setsid() >= 0 &&
	    sigprocmask(SIG_SETMASK, mask, NULL) == 0)
		execv(argv[0], argv);
	_exit(SBA_GUEST_FAILED);
}

/* 0: there is none; -1: it cannot be made. The capabilities are its alone. */
static pid_t fork_session(const sigset_t *mask)
{
	pid_t pid;

	if (!is_attachable())
		return 0;
	pid = fork();
	if (pid == 0)
		become_session(mask);
	if (pid > 0) {
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
	}
	return pid;
}

static void bury(pid_t session)
{
	static const char ended[] = SBA_SESSION_ENDED;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (pid == session)
			(void)!write(STDERR_FILENO, ended, sizeof(ended) - 1);
	}
}

static bool live(pid_t session, const sigset_t *awaited)
{
	for (;;) {
		int signo = sigwaitinfo(awaited, NULL);

		if (signo == SIGCHLD)
			bury(session);
		else if (signo > 0)
			return true;
		else if (errno != EINTR)
			return false;
	}
}

/* The engine starts us as soon as its runtime lets the sidecar go, which on a busy machine
 * is a moment before that has become what it is. Whoever is first itself has none. */
static bool await_sidecar(void)
{
	static const struct timespec step = { .tv_nsec = STEP_NS };
	int i;

	for (i = 0; i < STEPS; i++) {
		if (sba_guest_sidecar_is_first())
			return true;
		if (getpid() == 1)
			return false;
		nanosleep(&step, NULL);
	}
	return false;
}

int sba_guest_idle(int argc, char **argv)
{
	sigset_t awaited, before;
	pid_t session;

	(void)argv;
	if (argc != 1)
		return SBA_GUEST_USAGE;
	if (!is_well_placed() || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return SBA_GUEST_FAILED;
	if (!await_sidecar())
		return SBA_IDLE_ALONE;
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &awaited, &before) < 0)
		return SBA_GUEST_FAILED;
	session = fork_session(&before);
	if (session < 0 || !sba_guest_capabilities_drop() || chdir("/") < 0)
		return SBA_GUEST_FAILED;
	return live(session, &awaited) ? SBA_GUEST_OK : SBA_GUEST_FAILED;
}
