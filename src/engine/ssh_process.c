/* SPDX-License-Identifier: MIT */
/*
 * The user's ssh program, run towards one address: its command line, its end, and
 * what it said. The end of our descriptors, however we end, is the end of it.
 */
#include "engine/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SSH_ARGS_MAX = 32,
	TERM_MS = 200, /* for one that was told to end */
};

/* ---- starting ---- */

/* Ctrl-C is for us: an ssh that it ends could clean nothing up any more. One that
 * may ask needs our terminal, so the signals are kept from it there. */
static int spawn(const char *const *argv, int fd, int words, bool asks, pid_t *ret)
{
	static const int kept[] = { SIGINT, SIGQUIT, SIGTSTP, SIGHUP, 0 };
	const struct sba_spawn ssh = {
		.argv = argv,
		.in = fd,
		.out = fd,
		.err = words,
		.blocked = asks ? kept : NULL,
		.new_session = !asks,
	};
	return sba_child_spawn(&ssh, ret);
}

static void command_line(const struct sba_ssh *ssh, const char *const *options, const char *command,
			 const char **argv)
{
	const struct sba_address *a = &ssh->address;
	const char *const fixed[] = { "ssh", "-T",
				      "-x",  "-a",
				      "-o",  "ConnectTimeout=15",
				      "-o",  "ServerAliveInterval=15",
				      "-o",  ssh->asks ? "BatchMode=no" : "BatchMode=yes" };
	size_t n = 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(fixed); i++)
		argv[n++] = fixed[i];
	for (; *options; options++)
		argv[n++] = *options;
	if (a->user[0]) {
		argv[n++] = "-l";
		argv[n++] = a->user;
	}
	if (a->port[0]) {
		argv[n++] = "-p";
		argv[n++] = a->port;
	}
	argv[n++] = "--";
	argv[n++] = a->host;
	argv[n++] = command;
	argv[n] = NULL;
}

int sba_ssh_start(const struct sba_ssh *ssh, const char *const *options, const char *command,
		  struct sba_ssh_process *ret, int *ret_fd, struct sba_error *err)
{
	const char *argv[SSH_ARGS_MAX];
	int pair[2], words[2];
	command_line(ssh, options, command, argv);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "ssh: socket");
	SBA_CLOSE int ours = pair[0], theirs = pair[1];
	/* Without blocking: an ssh whose words nobody reads must not stand still. */
	if (pipe2(words, O_CLOEXEC | O_NONBLOCK) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "ssh: pipe");
	SBA_CLOSE int said = words[0], says = words[1];
	if (sba_set_nonblock(ours, true) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "ssh: socket");
	pid_t pid;
	int e = spawn(argv, theirs, says, ssh->asks, &pid);
	if (e) {
		int rc = sba_fail_errno(err, SBA_ECONNECT, e, "cannot run the ssh program");
		return sba_hint(err, rc, "an engine at ssh:// is reached through it: install it");
	}
	*ret = (struct sba_ssh_process){ pid, sba_move_fd(&said), SBA_SSH_RUNS, "" };
	*ret_fd = sba_move_fd(&ours);
	return 0;
}

/* ---- ending ---- */

/* 0 also where somebody else has collected it: our program may ignore SIGCHLD. */
int sba_ssh_wait(struct sba_ssh_process *p, int64_t ms)
{
	int status = 0;
	if (p->pid == 0)
		return p->status;
	int rc = sba_child_wait(p->pid, sba_until_in(ms), &status, NULL);
	if (rc == SBA_ETIMEOUT)
		return SBA_SSH_RUNS;
	p->pid = 0;
	p->status = rc < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : SBA_SSH_KILLED;
	return p->status;
}

void sba_ssh_end(struct sba_ssh_process *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGTERM);
		if (sba_ssh_wait(p, TERM_MS) == SBA_SSH_RUNS) {
			kill(p->pid, SIGKILL);
			sba_ssh_wait(p, TERM_MS);
		}
	}
	sba_cleanup_close(&p->words);
	p->words = -1;
}

/* ---- what it says ---- */

void sba_ssh_last_words(const char *text, size_t len, struct sba_buf *ret)
{
	size_t end_at = len;
	while (end_at > 0 && strchr("\r\n ", text[end_at - 1]))
		end_at--;
	size_t at = end_at;
	while (at > 0 && text[at - 1] != '\n')
		at--;
	sba_buf_put_visible(ret, text + at, end_at - at, true);
}

const char *sba_ssh_said(struct sba_ssh_process *p)
{
	SBA_BUF struct sba_buf last = SBA_BUF_INIT(16 * SBA_KIB);
	char text[4096];
	ssize_t n = p->words >= 0 ? read(p->words, text, sizeof(text)) : 0;
	if (n > 0)
		sba_ssh_last_words(text, (size_t)n, &last);
	/* What ssh says of itself it begins with its name. */
	const char *own = "ssh: ";
	if (last.len > 0)
		snprintf(p->said, sizeof(p->said), "%s",
			 last.data + (sba_starts_with(last.data, own) ? strlen(own) : 0));
	return p->said;
}

const char *sba_ssh_last_said(struct sba_ssh_process *p)
{
	const char *said = sba_ssh_said(p);
	if (*said)
		return said;
	if (p->status == SBA_SSH_RUNS)
		return "it closed the connection without a word";
	return p->status == SBA_SSH_KILLED ? "it was killed" : "it ended without a word";
}
