/* SPDX-License-Identifier: MIT */
/* The terminal that we run in: raw mode, size, changes of size. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

static struct termios before, during;
static volatile sig_atomic_t raw;

void cli_term_restore(void)
{
	if (raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	raw = 0;
}

/* ---- no end and no stop leaves the terminal raw ---- */

static void on_end(int number)
{
	cli_term_restore();
	signal(number, SIG_DFL);
	raise(number);
}

static void on_stop(int number)
{
	int saved = errno;
	bool was_raw = raw;
	(void)number;
	cli_term_restore();
	raise(SIGSTOP);
	if (was_raw && tcsetattr(STDIN_FILENO, TCSANOW, &during) == 0)
		raw = 1;
	errno = saved;
}

/* What has a handler already, or is ignored, stays as it is. */
static void guard(int number, void (*handler)(int))
{
	struct sigaction old;
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigemptyset(&action.sa_mask);
	if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(number, &action, NULL);
}

static void guard_all(void)
{
	static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGKILL, SIGSTOP };
	static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };
	for (size_t i = 0; i < CLI_LEN(stops); i++)
		guard(stops[i], on_stop);
	for (int number = 1; number <= SIGRTMAX; number++) {
		bool skip = number > SIGSYS && number < SIGRTMIN;
		for (size_t i = 0; i < CLI_LEN(harmless); i++)
			skip |= number == harmless[i];
		if (!skip)
			guard(number, on_end);
	}
}

int cli_term_raw(struct sba_error *err)
{
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return cli_fail(err, SBA_EIO, NULL, "stdin is no terminal: %s", strerror(errno));
	during = before;
	cfmakeraw(&during);
	atexit(cli_term_restore);
	guard_all();
	raw = 1;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &during) == 0)
		return 0;
	raw = 0;
	return cli_fail(err, SBA_EIO, NULL, "set the terminal: %s", strerror(errno));
}

void cli_term_size(unsigned short *ret_rows, unsigned short *ret_columns)
{
	static const int fds[] = { STDERR_FILENO, STDOUT_FILENO, STDIN_FILENO };
	struct winsize size = { 0 };
	for (size_t i = 0; i < CLI_LEN(fds) && size.ws_col == 0; i++)
		ioctl(fds[i], TIOCGWINSZ, &size);
	*ret_rows = size.ws_row ? size.ws_row : 24;
	*ret_columns = size.ws_col ? size.ws_col : 80;
}

/* Blocked, the signal cannot slip in between looking and waiting. */
int cli_term_winch_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void cli_term_winch_drain(int fd)
{
	struct signalfd_siginfo info;
	while (read(fd, &info, sizeof(info)) > 0)
		;
}
