/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C and its kin: the first stops what is going on, a turn by its CLI's own
 * means; the second does so at once. Cleaning up then takes its time; only one
 * more after ten seconds ends us there and then.
 * Handlers are global by nature, so this is the one file with state of its own.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 10 };

static volatile sig_atomic_t caught, hard;
static time_t caught_at;
static pthread_t main_thread;
static int wake[2] = { -1, -1 };
static bool on_terminal;
static struct sba_cancel *cancel;
static struct sba_turn *volatile turn;
static struct sba_process *volatile process;

static void first(int number)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	caught_at = now.tv_sec;
	caught = number;
	/* The terminal has just echoed ^C: what follows begins a line of its own. */
	ssize_t n = on_terminal && number == SIGINT ? write(STDERR_FILENO, "\n", 1) : 0;
	/* What a turn needs for an end of its own must go on working. */
	if (turn)
		sba_turn_cancel(turn);
	else
		sba_cancel_fire(cancel);
	if (process)
		sba_process_cancel(process);
	n = write(wake[1], "", 1);
	(void)n;
}

static void harder(void)
{
	static const char text[] = "\nending it at once\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)n;
	sba_turn_kill(turn);
}

static void again(int number)
{
	static const char text[] = "\nstill cleaning up; once more after ten seconds ends it\n";
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (turn && !hard) {
		hard = true;
		harder();
		return;
	}
	if (now.tv_sec - caught_at < PATIENCE_S) {
		ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
		(void)n;
		return;
	}
	cli_term_restore();
	signal(number, SIG_DFL);
	raise(number);
}

/* The library has threads of its own; what the main thread lends to us may
 * only be looked at while that thread stands still, which it does in a
 * handler of its own. */
static void handle(int number)
{
	int saved = errno;
	if (!pthread_equal(pthread_self(), main_thread))
		pthread_kill(main_thread, number);
	else if (!caught)
		first(number);
	else
		again(number);
	errno = saved;
}

int cli_signals_init(struct sba_cancel *what, struct sba_error *err)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	cancel = what;
	main_thread = pthread_self();
	on_terminal = isatty(STDERR_FILENO);
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
		return cli_fail(err, SBA_EIO, NULL, "pipe: %s", strerror(errno));
	struct sigaction action = { .sa_handler = handle };
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < CLI_LEN(numbers); i++)
		sigaddset(&action.sa_mask, numbers[i]);
	for (size_t i = 0; i < CLI_LEN(numbers); i++) {
		struct sigaction old;
		/* nohup's SIGHUP and a background job's SIGINT stay ignored. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

void cli_signals_turn(struct sba_turn *t)
{
	turn = t;
	if (t && caught)
		sba_turn_cancel(t);
	/* The turn has had its end: nothing else waits any longer. */
	if (!t && caught)
		sba_cancel_fire(cancel);
}

void cli_signals_process(struct sba_process *p)
{
	process = p;
	if (p && caught)
		sba_process_cancel(p);
}

int cli_signals_caught(void)
{
	return caught;
}

int cli_signals_fd(void)
{
	return wake[0];
}

int cli_signals_exit(struct cli *cli, int rc, const char *what)
{
	if (!caught)
		return rc;
	const char *how = caught == SIGTERM  ? "terminated"
			  : caught == SIGHUP ? "hung up"
					     : "interrupted";
	cli_note(cli, "%s; %s", how, what);
	return 128 + caught;
}
