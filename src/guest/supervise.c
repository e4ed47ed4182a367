/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's loop; see supervise.h. The command's own end leaves its
 * background processes alone. Every other end is the end of the whole tree:
 * TERM to the command's group, a grace, KILL to everything.
 */
#include "guest/supervise.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/parse.h"

enum { SIGNAL_MAX = 64 };

enum { POLL_HOST = SBA_GUEST_STREAM_POLLS, POLL_SIGNALS, POLLS };

static void begin_end(struct sba_guest_command *command, enum sba_record_kind kind, uint64_t number)
{
	if (command->ending)
		return;
	if (command->tree.main_ended) {
		/* It came first; only its last output was still on the way. */
		sba_guest_streams_drop(&command->streams);
		command->held.until = 1;
		return;
	}
	command->ending = true;
	command->end = (struct sba_guest_end){ kind, number };
	command->grace_end = sba_guest_now_ms(CLOCK_MONOTONIC) + SBA_GUEST_GRACE_MS;
	sba_guest_tree_signal(&command->tree, SIGTERM);
	/* What is stopped would see the TERM too late. */
	sba_guest_tree_signal(&command->tree, SIGCONT);
}

static bool take_signal(struct sba_guest_command *command)
{
	uint64_t signo;

	if (!sba_guest_parse_number(command->control, command->control_len, SIGNAL_MAX, &signo))
		return false;
	if (signo == 0)
		return false;
	if (signo == SIGKILL)
		command->killed_by_host = true;
	if (!command->tree.main_ended)
		sba_guest_tree_signal(&command->tree, (int)signo);
	return true;
}

static bool take_resize(struct sba_guest_command *command)
{
	struct winsize size;

	if (!sba_guest_parse_size(command->control, command->control_len, &size))
		return false;
	if (command->streams.terminal >= 0)
		ioctl(command->streams.terminal, TIOCSWINSZ, &size);
	return true;
}

static bool take_control(struct sba_guest_command *command, const struct sba_guest_piece *piece)
{
	if (piece->length > sizeof(command->control))
		return false;
	if (piece->first)
		command->control_len = 0;
	memcpy(command->control + command->control_len, piece->data, piece->len);
	command->control_len += piece->len;
	if (!piece->last)
		return true;
	return piece->type == SBA_RUN_SIGNAL ? take_signal(command) : take_resize(command);
}

static bool take_piece(struct sba_guest_command *command, const struct sba_guest_piece *piece)
{
	switch (piece->type) {
	case SBA_RUN_DATA:
		if (command->streams.ending_input)
			return false;
		sba_guest_streams_put(&command->streams, piece->data, piece->len);
		return true;
	case SBA_RUN_EOF:
		sba_guest_streams_end_input(&command->streams);
		return piece->length == 0;
	case SBA_RUN_SIGNAL:
	case SBA_RUN_RESIZE:
		return take_control(command, piece);
	case SBA_RUN_CANCEL:
		begin_end(command, SBA_END_CANCELED, 0);
		return piece->length == 0;
	default:
		return false;
	}
}

static void take_frames(struct sba_guest_command *command)
{
	struct sba_guest_piece piece;
	enum sba_guest_decoded rc;

	do {
		rc = sba_guest_input_next(&command->input,
					  sba_guest_streams_room(&command->streams), &piece);
		if (rc == SBA_DECODED_TOO_LONG ||
		    (rc == SBA_DECODED_PIECE && !take_piece(command, &piece))) {
			begin_end(command, SBA_END_PROTOCOL, piece.type);
			sba_guest_input_abandon(&command->input);
			return;
		}
	} while (rc == SBA_DECODED_PIECE);
}

static void read_host(struct sba_guest_command *command)
{
	sba_guest_input_read(&command->input);
	if (!command->input.ended)
		return;
	if (command->start->detach)
		sba_guest_streams_end_input(&command->streams);
	else
		begin_end(command, SBA_END_CANCELED, 0);
}

static void read_signals(struct sba_guest_command *command)
{
	struct signalfd_siginfo info[4];
	ssize_t got = read(command->sigfd, info, sizeof(info));
	bool term = false;

	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(info[0]); i++)
		term |= info[i].ssi_signo == SIGTERM;
	sba_guest_tree_reap(&command->tree);
	if (command->tree.main_ended && !command->ending)
		sba_guest_streams_last_call(&command->streams);
	/* Only the group was told to end; nothing else is worth a grace. */
	if (command->ending && !sba_guest_tree_signal(&command->tree, 0))
		command->grace_end = 0;
	if (term)
		begin_end(command, SBA_END_CANCELED, 0);
}

static int64_t next_time(const struct sba_guest_command *command)
{
	if (command->ending)
		return command->grace_end;
	if (command->held.until > 0)
		return sba_guest_now_ms(CLOCK_MONOTONIC) + SBA_GUEST_HELD_LOOK_MS;
	return command->deadline;
}

static void await(struct sba_guest_command *command)
{
	int64_t until = next_time(command);
	int64_t left = until - sba_guest_now_ms(CLOCK_MONOTONIC);
	bool hungry = sba_guest_input_hungry(&command->input);
	struct pollfd polls[POLLS];
	struct timespec timeout = { 0 };

	if (left > 0)
		timeout = (struct timespec){ left / 1000, left % 1000 * 1000000 };
	sba_guest_streams_poll(&command->streams, polls);
	polls[POLL_HOST] = (struct pollfd){ hungry ? STDIN_FILENO : -1, POLLIN, 0 };
	polls[POLL_SIGNALS] = (struct pollfd){ command->sigfd, POLLIN, 0 };
	if (ppoll(polls, POLLS, until < 0 ? NULL : &timeout, NULL) < 0)
		return;
	/* First of all the command's own end: it wins over all that ends it. */
	if (polls[POLL_SIGNALS].revents)
		read_signals(command);
	sba_guest_streams_move(&command->streams, polls);
	if (polls[POLL_HOST].revents)
		read_host(command);
}

static bool is_over(struct sba_guest_command *command)
{
	if (command->ending)
		return command->tree.empty ||
		       sba_guest_now_ms(CLOCK_MONOTONIC) >= command->grace_end;
	if (!command->tree.main_ended || !sba_guest_streams_drained(&command->streams))
		return false;
	return command->start->detach || !sba_guest_held_waits(&command->held, &command->tree);
}

static void check_deadline(struct sba_guest_command *command)
{
	if (command->deadline >= 0 && sba_guest_now_ms(CLOCK_MONOTONIC) >= command->deadline)
		begin_end(command, SBA_END_DEADLINE, (uint64_t)command->start->deadline_ms);
}

static struct sba_guest_end finish_tree(struct sba_guest_command *command)
{
	size_t left = 0;

	if (!command->tree.empty)
		left = sba_guest_tree_kill(&command->tree, command->sigfd, SBA_GUEST_KILL_MS);
	sba_guest_streams_flush(&command->streams, command->input.ended ? 0 : SBA_GUEST_FLUSH_MS);
	return left > 0 ? (struct sba_guest_end){ SBA_END_SURVIVORS, left } : command->end;
}

static struct sba_guest_end own_end(const struct sba_guest_command *command)
{
	int status = command->tree.status;
	int signo;

	if (WIFEXITED(status))
		return (struct sba_guest_end){ SBA_END_EXIT, (uint64_t)WEXITSTATUS(status) };
	signo = WTERMSIG(status);
	if (signo == SIGKILL && !command->killed_by_host &&
	    sba_guest_pressure_since(&command->before).oom_kills > 0)
		return (struct sba_guest_end){ SBA_END_OOM, SIGKILL };
	return (struct sba_guest_end){ SBA_END_SIGNAL, (uint64_t)signo };
}

struct sba_guest_end sba_guest_supervise(struct sba_guest_command *command)
{
	for (;;) {
		take_frames(command);
		if (is_over(command))
			break;
		await(command);
		check_deadline(command);
	}
	return command->ending ? finish_tree(command) : own_end(command);
}
