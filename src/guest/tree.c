/* SPDX-License-Identifier: MIT */
/*
 * Ends a command's processes; see tree.h. In a signal scope, one kill() of all
 * that may be signalled is one pass of the kernel over exactly the tree, and a
 * fork under way fails. Elsewhere nobody can be kept from forking while we look,
 * so it is done in passes over /proc. In each, whole process groups are killed:
 * that is atomic too, so a fork bomb that has not spread over many sessions ends
 * in the first pass.
 */
#include "guest/tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/proc.h"

enum {
	PASS_MAX = 65536,
	SCOPE_MS = 2000, /* a bomb of 500 takes 50 ms; then something is odd */
	/* Among the runnable processes of a bomb that has half a processor, ours gets a pass
	 * or two a second: so many are made in any case. */
	PASSES_MIN = 40,
};

struct pass {
	pid_t self;
	pid_t own_group;
	pid_t last_group;
	size_t count;
	pid_t members[PASS_MAX]; /* ascending, as /proc is */
};

size_t sba_guest_tree_reap(struct sba_guest_tree *tree)
{
	size_t reaped = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		reaped++;
		if (pid == tree->main) {
			tree->main_ended = true;
			tree->status = status;
		}
	}
	tree->empty = pid < 0 && errno == ECHILD;
	return reaped;
}

bool sba_guest_tree_signal(const struct sba_guest_tree *tree, int signo)
{
	return kill(-tree->main, signo) == 0 || errno != ESRCH;
}

static bool is_member(const struct pass *pass, pid_t pid)
{
	size_t low = 0;
	size_t high = pass->count;

	if (pid == pass->self)
		return true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pass->members[middle] == pid)
			return true;
		if (pass->members[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/*
 * A child with a lower pid than its parent is not found in this pass. It need
 * not be: once its parent is dead, it is a child of ours.
 *
 * The group of a member holds only members: the command began with setsid(),
 * and a group lies within one session.
 */
static void strike(const struct sba_guest_stat *stat, void *arg)
{
	struct pass *pass = arg;

	if (sba_guest_stat_dead(stat) || !is_member(pass, stat->ppid))
		return;
	if (pass->count < PASS_MAX)
		pass->members[pass->count++] = stat->pid;
	if (stat->pgrp > 1 && stat->pgrp != pass->own_group && stat->pgrp != pass->last_group) {
		pass->last_group = stat->pgrp;
		kill(-stat->pgrp, SIGKILL);
	}
	kill(stat->pid, SIGKILL);
}

static size_t strike_all(int proc)
{
	static struct pass pass;

	pass.self = getpid();
	pass.own_group = getpgrp();
	pass.last_group = 0;
	pass.count = 0;
	sba_guest_proc_scan(proc, strike, &pass);
	return pass.count;
}

static void await_child(int sigfd, int timeout_ms)
{
	struct pollfd wait = { .fd = sigfd, .events = POLLIN };
	struct signalfd_siginfo info;

	if (poll(&wait, 1, timeout_ms) > 0)
		(void)!read(sigfd, &info, sizeof(info));
}

static size_t strike_scope(int proc)
{
	(void)proc;
	return kill(-1, SIGKILL) == 0;
}

static size_t strike_until_empty(struct sba_guest_tree *tree, int sigfd, int64_t limit_ms,
				 size_t (*strike_once)(int proc))
{
	int64_t began = sba_guest_now_ms(CLOCK_MONOTONIC);

	for (int pass = 1;; pass++) {
		size_t left = strike_once(tree->proc);
		size_t reaped = sba_guest_tree_reap(tree);
		int64_t took = sba_guest_now_ms(CLOCK_MONOTONIC) - began;

		if (tree->empty)
			return 0;
		if (took >= limit_ms && (pass >= PASSES_MIN || took >= SBA_GUEST_KILL_LONG_MS))
			return left > 0 ? left : 1;
		/* While processes die there is no time to lose; else let them. */
		if (reaped == 0)
			await_child(sigfd, 1);
	}
}

size_t sba_guest_tree_kill(struct sba_guest_tree *tree, int sigfd, int64_t limit_ms)
{
	if (tree->scoped && strike_until_empty(tree, sigfd, SCOPE_MS, strike_scope) == 0)
		return 0;
	return strike_until_empty(tree, sigfd, limit_ms, strike_all);
}
