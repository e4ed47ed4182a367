/* SPDX-License-Identifier: MIT */
/*
 * The records; see end.h.
 */
#include "guest/end.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/held.h"

static void write_record(int fd, const char *nonce, struct sba_guest_end record)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	char text[SBA_RECORD_MAX];
	int len = snprintf(text, sizeof(text), "%c" SBA_RECORD_PREFIX "%s:%c:%llu:%c", 0, nonce,
			   (char)record.kind, (unsigned long long)record.number, 0);

	/* Shorter than PIPE_BUF, so it goes out whole or not at all. The command
	 * may have made the shared stream non-blocking: hence the poll. */
	while (write(fd, text, (size_t)len) < 0) {
		if (errno == EAGAIN)
			poll(&wait, 1, -1);
		else if (errno != EINTR)
			return;
	}
}

void sba_guest_begun_write(const char *nonce)
{
	write_record(STDOUT_FILENO, nonce,
		     (struct sba_guest_end){ SBA_RECORD_BEGUN, SBA_PROTOCOL_VERSION });
}

void sba_guest_held_write(const char *nonce)
{
	write_record(STDOUT_FILENO, nonce,
		     (struct sba_guest_end){ SBA_RECORD_HELD, SBA_GUEST_HELD_MS });
}

static void write_note(const char *nonce, enum sba_record_kind kind, int64_t rise)
{
	if (rise > 0)
		write_record(STDOUT_FILENO, nonce, (struct sba_guest_end){ kind, (uint64_t)rise });
}

void sba_guest_end_write(const char *nonce, struct sba_guest_end end,
			 const struct sba_guest_pressure *rose)
{
	write_note(nonce, SBA_NOTE_OOM_KILLS, rose->oom_kills);
	write_note(nonce, SBA_NOTE_PIDS_REFUSED, rose->pids_refused);
	write_record(STDOUT_FILENO, nonce, end);
	write_record(STDERR_FILENO, nonce, end);
}
