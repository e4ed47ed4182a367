/* SPDX-License-Identifier: MIT */
/*
 * `guest kill`: ends supervisors, which end their commands; and the end of the
 * whole sandbox. Only processes that the engine itself started count; what else
 * is inside may call itself what it likes.
 */
#include "guest/kill.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/guest.h"
#include "guest/parse.h"
#include "guest/proc.h"
#include "guest/supervise.h"

enum {
	BATCH = 256,
	/* A supervisor killed before it is done would leave its tree behind. */
	WAIT_MS = SBA_GUEST_GRACE_MS + SBA_GUEST_KILL_LONG_MS + SBA_GUEST_FLUSH_MS,
	CMDLINE_MAX = sizeof(SBA_GUEST_PATH) + sizeof("run") + SBA_RUN_ID_MAX + 1,
};

struct search {
	int proc;
	const char *id; /* NULL: all */
	size_t count;
	struct pollfd found[BATCH]; /* of pidfds */
};

bool sba_guest_is_supervisor(const char *cmdline, size_t len, const char *id)
{
	static const char head[] = SBA_GUEST_PATH "\0run"; /* and its NUL */
	size_t id_len = id ? strlen(id) : 0;

	if (len <= sizeof(head) || memcmp(cmdline, head, sizeof(head)) != 0 ||
	    cmdline[len - 1] != '\0')
		return false;
	cmdline += sizeof(head);
	len -= sizeof(head) + 1;
	if (memchr(cmdline, '\0', len))
		return false;
	return !id || (len == id_len && memcmp(cmdline, id, len) == 0);
}

static bool has_cmdline(int proc, pid_t pid, const char *wanted, size_t len)
{
	char cmdline[CMDLINE_MAX];
	ssize_t got = sba_guest_proc_read(proc, pid, "cmdline", cmdline, sizeof(cmdline));

	return got == (ssize_t)len && memcmp(cmdline, wanted, len) == 0;
}

static bool is_main(int proc, const struct sba_guest_stat *stat)
{
	static const char idle[] = SBA_GUEST_PATH "\0idle"; /* and its NUL */

	return stat->ppid == 0 && stat->pid != 1 &&
	       has_cmdline(proc, stat->pid, idle, sizeof(idle));
}

/* By the engine, or by the main process, which has no other child. */
static bool was_started(int proc, const struct sba_guest_stat *stat)
{
	struct sba_guest_stat parent;

	return stat->ppid == 0 ||
	       (sba_guest_proc_stat(proc, stat->ppid, &parent) == 1 && is_main(proc, &parent));
}

/* A supervisor that a session has forked bears the session's name still; its
 * command has another parent. */
static bool is_of_session(const struct search *search, const struct sba_guest_stat *stat)
{
	static const char session[] = SBA_GUEST_PATH "\0session"; /* and its NUL */
	struct sba_guest_stat parent;

	return has_cmdline(search->proc, stat->pid, session, sizeof(session)) &&
	       sba_guest_proc_stat(search->proc, stat->ppid, &parent) == 1 &&
	       was_started(search->proc, &parent) &&
	       has_cmdline(search->proc, stat->ppid, session, sizeof(session));
}

static bool is_wanted(const struct search *search, const struct sba_guest_stat *stat)
{
	char cmdline[CMDLINE_MAX];
	ssize_t len;

	if (stat->pid == 1 || sba_guest_stat_dead(stat))
		return false;
	if (stat->ppid != 0)
		return !search->id && is_of_session(search, stat);
	len = sba_guest_proc_read(search->proc, stat->pid, "cmdline", cmdline, sizeof(cmdline));
	return len > 0 && sba_guest_is_supervisor(cmdline, (size_t)len, search->id);
}

static void consider(const struct sba_guest_stat *stat, void *arg)
{
	struct search *search = arg;
	struct sba_guest_stat again;
	int fd;

	if (search->count == BATCH || !is_wanted(search, stat))
		return;
	fd = pidfd_open(stat->pid, 0);
	if (fd < 0)
		return;
	/* The pid may be another's by now; behind the pidfd it can not become so. */
	if (sba_guest_proc_stat(search->proc, stat->pid, &again) == 1 && again.start == stat->start)
		search->found[search->count++] = (struct pollfd){ fd, POLLIN, 0 };
	else
		close(fd);
}

static void signal_all(const struct search *search, int signo)
{
	for (size_t i = 0; i < search->count; i++) {
		if (search->found[i].fd >= 0)
			pidfd_send_signal(search->found[i].fd, signo, NULL, 0);
	}
}

/* True if all have gone. */
static bool await_all(struct search *search, int64_t limit_ms)
{
	int64_t limit = sba_guest_now_ms(CLOCK_MONOTONIC) + limit_ms;
	size_t gone = 0;

	while (gone < search->count) {
		int64_t left = limit - sba_guest_now_ms(CLOCK_MONOTONIC);

		if (left <= 0 || poll(search->found, search->count, (int)left) < 0)
			return false;
		gone = 0;
		for (size_t i = 0; i < search->count; i++) {
			if (search->found[i].fd >= 0 && search->found[i].revents) {
				close(search->found[i].fd);
				search->found[i].fd = -1;
			}
			gone += search->found[i].fd < 0;
		}
	}
	return true;
}

static void end_found(struct search *search)
{
	signal_all(search, SIGTERM);
	signal_all(search, SIGCONT);
	if (await_all(search, WAIT_MS))
		return;
	signal_all(search, SIGKILL);
	await_all(search, SBA_GUEST_FLUSH_MS);
}

static void kill_main(const struct sba_guest_stat *stat, void *arg)
{
	const int *proc = arg;

	if (is_main(*proc, stat))
		kill(stat->pid, SIGKILL);
}

void sba_guest_kill_sandbox(void)
{
	int proc = sba_guest_proc_open();

	if (proc < 0)
		return;
	sba_guest_proc_scan(proc, kill_main, &proc);
	close(proc);
}

int sba_guest_kill(int argc, char **argv)
{
	static struct search search;
	bool all = argc == 2 && strcmp(argv[1], "--all") == 0;
	bool ended = false;
	bool more = true;

	if (argc != 2 || (!all && !sba_guest_parse_id(argv[1])))
		return SBA_GUEST_USAGE;
	search.proc = sba_guest_proc_open();
	search.id = all ? NULL : argv[1];
	while (more) {
		search.count = 0;
		if (search.proc < 0 || sba_guest_proc_scan(search.proc, consider, &search) < 0)
			return SBA_GUEST_FAILED;
		ended |= search.count > 0;
		more = search.count == BATCH;
		end_found(&search);
	}
	return ended ? SBA_GUEST_OK : SBA_GUEST_NO_MATCH;
}
