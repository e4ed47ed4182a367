/* SPDX-License-Identifier: MIT */
/*
 * The three standard streams as a whole: that they are there when the program
 * begins, and that what was printed has arrived when it ends.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void cli_stdio_open(void)
{
	/* A socket to the engine must never become stdout. Stdin and stdout that were closed
	 * stay unusable, and whoever needs them says so; what goes to stderr is dropped. */
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR };
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", modes[fd]); /* the lowest that is free: fd */
	}
}

/* A pipe that nobody reads any more: poll() tells it when errno is long gone. */
static bool reader_is_gone(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	return poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP);
}

int cli_stdio_close(struct cli *cli, int rc)
{
	struct sba_error err;
	int why = fflush(stdout) != 0 ? errno : 0;
	if (!why && !ferror(stdout))
		return rc;
	if (rc != 0 && cli->reported)
		return rc;
	if (why != EPIPE && !reader_is_gone()) {
		cli_fail(&err, SBA_EIO, "what was printed is not whole: give it another place",
			 "write to stdout: %s",
			 why ? strerror(why) : "not everything could be written");
		rc = cli_report(cli, &err);
	}
	return rc ? rc : 1;
}
