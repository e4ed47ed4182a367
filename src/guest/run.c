/* SPDX-License-Identifier: MIT */
/*
 * `guest run ID`: one command of one client, from the frames on stdin to the
 * end record. The id is only there to be found by `guest kill`.
 */
#include "guest/guest.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/confine.h"
#include "guest/kill.h"
#include "guest/lock.h"
#include "guest/parse.h"
#include "guest/proc.h"
#include "guest/supervise.h"

enum {
	LIFE_MIN_MS = 400,   /* longer than the reaper's period */
	LOCK_RETRY_MS = 100, /* where a lock's holder cannot be watched */
};

static bool prepare(void)
{
	/* What the engine leaves open is not for the command. */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	       prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 &&
	       signal(SIGCHLD, SIG_DFL) != SIG_ERR && signal(SIGPIPE, SIG_IGN) != SIG_ERR;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* False: *ret_end says what is wrong with what the host wants. */
static bool read_start(struct sba_guest_input *input, struct sba_guest_start *start,
		       struct sba_guest_end *ret_end)
{
	enum sba_guest_step step = SBA_STEP_MORE;
	struct sba_guest_piece piece;

	while (step == SBA_STEP_MORE) {
		enum sba_guest_decoded rc = sba_guest_input_next(input, SIZE_MAX, &piece);

		if (rc == SBA_DECODED_PIECE) {
			step = sba_guest_start_feed(start, &piece);
		} else if (rc == SBA_DECODED_TOO_LONG) {
			step = SBA_STEP_BAD;
		} else if (input->ended) {
			*ret_end = (struct sba_guest_end){ SBA_END_CANCELED, 0 };
			return false;
		} else {
			sba_guest_input_read(input);
		}
	}
	*ret_end = (struct sba_guest_end){ SBA_END_PROTOCOL, piece.type };
	return step == SBA_STEP_GO;
}

/* One round of waiting for the holder's end; false: there is no reason to go on. */
static bool await_holder(struct sba_guest_command *command, int64_t limit,
			 struct sba_guest_end *ret_end)
{
	int64_t left = limit - sba_guest_now_ms(CLOCK_MONOTONIC);
	int watch = sba_guest_lock_watch(command->start->lock, command->start->lock_key);
	bool hungry = sba_guest_input_hungry(&command->input);
	struct pollfd polls[] = { { watch, 0, 0 },
				  { STDIN_FILENO, hungry ? POLLIN : 0, 0 },
				  { command->sigfd, POLLIN, 0 } };

	if (left > (watch < 0 ? LOCK_RETRY_MS : INT_MAX))
		left = watch < 0 ? LOCK_RETRY_MS : INT_MAX;
	poll(polls, sizeof(polls) / sizeof(polls[0]), (int)left);
	if (watch >= 0)
		close(watch);
	if (hungry && polls[1].revents)
		sba_guest_input_read(&command->input);
	*ret_end = (struct sba_guest_end){ SBA_END_CANCELED, 0 };
	return !command->input.ended && !(polls[1].revents & (POLLHUP | POLLERR)) &&
	       !polls[2].revents;
}

static bool take_lock(struct sba_guest_command *command, struct sba_guest_end *ret_end)
{
	const struct sba_guest_start *start = command->start;
	int64_t limit = sba_guest_now_ms(CLOCK_MONOTONIC) + start->lock_wait_ms;

	while (start->lock[0] != '\0' &&
	       (command->lock = sba_guest_lock_take(start->lock, start->lock_key)) < 0) {
		if (errno != EADDRINUSE) {
			*ret_end = (struct sba_guest_end){ SBA_END_CANNOT, (uint64_t)errno };
			return false;
		}
		if (sba_guest_now_ms(CLOCK_MONOTONIC) >= limit) {
			*ret_end = (struct sba_guest_end){ SBA_END_LOCKED, 0 };
			return false;
		}
		if (!await_holder(command, limit, ret_end))
			return false;
	}
	return true;
}

/* All that comes before the command's first word; false: *ret_end says why not. */
static bool get_ready(struct sba_guest_command *command, struct sba_guest_start *start,
		      struct sba_guest_end *ret_end)
{
	bool wanted = read_start(&command->input, start, ret_end);

	command->start = start;
	command->sigfd = open_signals();
	if (wanted && command->sigfd < 0) {
		*ret_end = (struct sba_guest_end){ SBA_END_CANNOT, (uint64_t)errno };
		wanted = false;
	}
	/* Without its lock it does not begin. */
	if (wanted && !take_lock(command, ret_end))
		return false;
	sba_guest_begun_write(start->nonce);
	return wanted;
}

static struct sba_guest_end run_command(struct sba_guest_command *command,
					struct sba_guest_start *start)
{
	struct sba_guest_end end;
	struct sba_guest_child child;

	if (!get_ready(command, start, &end))
		return end;
	command->deadline = start->deadline_ms > 0
				    ? sba_guest_now_ms(CLOCK_MONOTONIC) + start->deadline_ms
				    : -1;
	command->tree.proc = sba_guest_proc_open();
	command->before = sba_guest_pressure_now();
	command->tree.scoped = !start->signal_others && sba_guest_scope_enter();
	if (!sba_guest_child_start(start, command->tree.scoped, &child, &end))
		return end;
	command->tree.main = child.pid;
	sba_guest_streams_init(&command->streams, &child);
	return sba_guest_supervise(command);
}

void sba_guest_linger(int64_t began)
{
	int64_t left = began + LIFE_MIN_MS - sba_guest_now_ms(CLOCK_MONOTONIC);
	struct timespec pause = { .tv_nsec = left * 1000000 };

	if (left > 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

int sba_guest_run(int argc, char **argv)
{
	static struct sba_guest_command command;
	int64_t began = sba_guest_now_ms(CLOCK_MONOTONIC);
	struct sba_guest_start start;
	struct sba_guest_end end;
	struct sba_guest_pressure rose;

	if (argc != 2 || !sba_guest_parse_id(argv[1]))
		return SBA_GUEST_USAGE;
	if (!prepare())
		return SBA_GUEST_FAILED;
	sba_guest_start_init(&start);
	command.before = (struct sba_guest_pressure){ -1, -1 };
	end = run_command(&command, &start);
	/* Whoever hears of the end may want the name at once. */
	if (command.lock > 0)
		close(command.lock);
	if (command.held.told)
		sba_guest_held_write(start.nonce);
	rose = sba_guest_pressure_since(&command.before);
	sba_guest_end_write(start.nonce, end, &rose);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	if (end.kind == SBA_END_SURVIVORS) {
		sba_guest_kill_sandbox();
		_exit(SBA_GUEST_SURVIVORS);
	}
	/* Where our parent is within sight there is no reaper, or the session lingers. */
	if (getppid() == 0)
		sba_guest_linger(began);
	_exit(SBA_GUEST_OK);
}
