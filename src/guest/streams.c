/* SPDX-License-Identifier: MIT */
/*
 * Moves bytes between host and command; see streams.h.
 */
#include "guest/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "guest/guest.h"

static const uint8_t tty_eof = 0x04;

enum { TTY_EOF_ROOM = 2 }; /* kept free, so that the end always fits */

enum { TO_COMMAND, FROM_TERMINAL, TO_HOST };

void sba_guest_streams_init(struct sba_guest_streams *streams, const struct sba_guest_child *child)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	streams->input = child->input;
	streams->terminal = child->terminal;
	streams->last_byte = '\n';
	if (child->terminal >= 0 && flags >= 0)
		fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
}

size_t sba_guest_streams_room(const struct sba_guest_streams *streams)
{
	size_t room = sba_guest_ring_room(&streams->to_command);

	if (streams->input < 0)
		return SIZE_MAX;
	return room > TTY_EOF_ROOM ? room - TTY_EOF_ROOM : 0;
}

void sba_guest_streams_put(struct sba_guest_streams *streams, const void *data, size_t len)
{
	if (streams->input < 0 || len == 0)
		return;
	sba_guest_ring_put(&streams->to_command, data, len);
	streams->last_byte = ((const uint8_t *)data)[len - 1];
}

static void close_input(struct sba_guest_streams *streams)
{
	if (streams->input >= 0 && streams->input != streams->terminal)
		close(streams->input);
	streams->input = -1;
	streams->to_command.len = 0;
}

/*
 * A terminal has no end of its own; the character for it means "end" only at
 * the beginning of a line, and "now" elsewhere.
 */
static void put_tty_eof(struct sba_guest_streams *streams)
{
	if (streams->last_byte != '\n' && streams->last_byte != tty_eof)
		sba_guest_ring_put(&streams->to_command, &tty_eof, 1);
	sba_guest_ring_put(&streams->to_command, &tty_eof, 1);
}

void sba_guest_streams_end_input(struct sba_guest_streams *streams)
{
	if (streams->ending_input || streams->input < 0)
		return;
	streams->ending_input = true;
	if (streams->terminal >= 0)
		put_tty_eof(streams);
	else if (streams->to_command.len == 0)
		close_input(streams);
}

static void feed_command(struct sba_guest_streams *streams)
{
	ssize_t put = sba_guest_ring_write(&streams->to_command, streams->input);

	if (put < 0 && put != -EAGAIN && put != -EINTR)
		close_input(streams);
	else if (streams->to_command.len == 0 && streams->ending_input)
		close_input(streams);
}

/* The descriptor stays until we end: closed, it hangs up on a command that has closed its
 * terminal, as many do just before their end, and is still there. */
static void leave_terminal(struct sba_guest_streams *streams)
{
	if (streams->input == streams->terminal)
		close_input(streams);
	streams->terminal = -1;
}

static void read_terminal(struct sba_guest_streams *streams)
{
	ssize_t got = sba_guest_ring_read(&streams->from_terminal, streams->terminal);
	size_t *left = &streams->last_call;

	if (got == -EINTR || (got == -EAGAIN && *left == 0))
		return;
	if (got <= 0 || (*left > 0 && (size_t)got >= *left))
		leave_terminal(streams);
	else if (*left > 0)
		*left -= (size_t)got;
}

static void write_host(struct sba_guest_streams *streams)
{
	ssize_t put = sba_guest_ring_write(&streams->from_terminal, STDOUT_FILENO);

	if (put < 0 && put != -EAGAIN && put != -EINTR)
		streams->from_terminal.len = 0;
}

void sba_guest_streams_poll(const struct sba_guest_streams *streams,
			    struct pollfd polls[SBA_GUEST_STREAM_POLLS])
{
	bool feeds = streams->to_command.len > 0;
	bool reads = sba_guest_ring_room(&streams->from_terminal) > 0;

	polls[TO_COMMAND] = (struct pollfd){ feeds ? streams->input : -1, POLLOUT, 0 };
	polls[FROM_TERMINAL] = (struct pollfd){ reads ? streams->terminal : -1, POLLIN, 0 };
	polls[TO_HOST] =
		(struct pollfd){ streams->from_terminal.len > 0 ? STDOUT_FILENO : -1, POLLOUT, 0 };
}

void sba_guest_streams_move(struct sba_guest_streams *streams,
			    const struct pollfd polls[SBA_GUEST_STREAM_POLLS])
{
	if (polls[TO_HOST].revents)
		write_host(streams);
	if (polls[FROM_TERMINAL].revents)
		read_terminal(streams);
	if (polls[TO_COMMAND].revents && streams->to_command.len > 0)
		feed_command(streams);
	if (streams->last_call > 0)
		sba_guest_streams_last_call(streams);
}

void sba_guest_streams_last_call(struct sba_guest_streams *streams)
{
	if (streams->last_call == 0)
		streams->last_call = SBA_GUEST_LAST_CALL;
	while (streams->terminal >= 0 && sba_guest_ring_room(&streams->from_terminal) > 0)
		read_terminal(streams);
}

bool sba_guest_streams_drained(const struct sba_guest_streams *streams)
{
	return streams->terminal < 0 && streams->from_terminal.len == 0;
}

void sba_guest_streams_flush(struct sba_guest_streams *streams, int64_t limit_ms)
{
	int64_t limit = sba_guest_now_ms(CLOCK_MONOTONIC) + limit_ms;
	struct pollfd polls[SBA_GUEST_STREAM_POLLS];

	sba_guest_streams_last_call(streams);
	while (!sba_guest_streams_drained(streams)) {
		int64_t left = limit - sba_guest_now_ms(CLOCK_MONOTONIC);

		sba_guest_streams_poll(streams, polls);
		if (left <= 0 || poll(polls, SBA_GUEST_STREAM_POLLS, (int)left) < 0)
			return;
		sba_guest_streams_move(streams, polls);
	}
}

void sba_guest_streams_drop(struct sba_guest_streams *streams)
{
	streams->from_terminal.len = 0;
	if (streams->terminal >= 0)
		leave_terminal(streams);
}
