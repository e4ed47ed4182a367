/* SPDX-License-Identifier: MIT */
/*
 * The records and the OOM killer's counter; see end.h.
 */
#include "guest/end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/held.h"
#include "guest/parse.h"

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

void sba_guest_end_write(const char *nonce, struct sba_guest_end end)
{
	write_record(STDOUT_FILENO, nonce, end);
	write_record(STDERR_FILENO, nonce, end);
}

int64_t sba_guest_oom_parse(const char *text, size_t len)
{
	static const char key[] = "oom_kill ";
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((stop ? stop : end) - text);
		uint64_t count;

		if (line >= sizeof(key) - 1 && memcmp(text, key, sizeof(key) - 1) == 0)
			return sba_guest_parse_number(text + sizeof(key) - 1,
						      line - (sizeof(key) - 1), INT64_MAX, &count)
				       ? (int64_t)count
				       : -1;
		text += line + 1;
	}
	return -1;
}

int64_t sba_guest_oom_count(void)
{
	static const char *const files[] = {
		"/sys/fs/cgroup/memory.events",
		"/sys/fs/cgroup/memory/memory.oom_control",
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		ssize_t len;

		if (fd < 0)
			continue;
		len = read(fd, text, sizeof(text));
		close(fd);
		if (len > 0)
			return sba_guest_oom_parse(text, (size_t)len);
	}
	return -1;
}
