/* SPDX-License-Identifier: MIT */
/* What ssh.c, ssh_process.c and ssh_forward.c share. */
#ifndef SBA_ENGINE_SSH_H
#define SBA_ENGINE_SSH_H

#include "engine/private.h"

#include <sys/un.h>

/* A socket's path is short: not in TMPDIR, wherever that is. */
#define SBA_SSH_FORWARD_PARENT   "/tmp"
#define SBA_SSH_FORWARD_NAME     "sandbox-agent-ssh."
#define SBA_SSH_FORWARD_TEMPLATE SBA_SSH_FORWARD_PARENT "/" SBA_SSH_FORWARD_NAME "XXXXXX"

/* ---- one ssh program (ssh_process.c) ---- */

enum {
	SBA_SSH_RUNS = -1,
	SBA_SSH_NOT_FOUND = 127, /* of the shell there: no such command */
	SBA_SSH_FAILED = 255,    /* ssh itself; anything below is the command's */
	SBA_SSH_KILLED = 256,    /* by a signal */
	SBA_SSH_EXIT_MS = 500,   /* for an ssh that has closed its output to end */
};

struct sba_ssh_process {
	pid_t pid;  /* 0: none, or it has ended */
	int words;  /* its stderr; -1: none */
	int status; /* of its end, or SBA_SSH_RUNS */
	char said[512];
};

/* Runs it towards the address: `options` stand before the host, `command` behind it.
 * Its stdin and stdout are one socket, whose other end is *ret_fd. */
int sba_ssh_start(const struct sba_ssh *ssh, const char *const *options, const char *command,
		  struct sba_ssh_process *ret, int *ret_fd, struct sba_error *err) SBA_MUST_CHECK;
/* Waits for its end at most so long: how it ended, or SBA_SSH_RUNS. */
int sba_ssh_wait(struct sba_ssh_process *p, int64_t ms);
void sba_ssh_end(struct sba_ssh_process *p);
/* The last that it has said, lent; "" if nothing. */
const char *sba_ssh_said(struct sba_ssh_process *p);
/* The same, or how it ended. */
const char *sba_ssh_last_said(struct sba_ssh_process *p);

/* ---- the handle ---- */

struct sba_ssh {
	struct sba_address address;
	bool asks;            /* there is a terminal that it may ask on */
	bool forwards;        /* one ssh for all connections, since the handle was opened */
	pthread_mutex_t lock; /* of what follows; connections may be of several threads */
	bool no_docker;       /* the other end said so */
	struct sba_ssh_process forward;
	unsigned forward_number;       /* which one it is: another is begun when it has gone */
	int forward_fd;                /* its stdin and stdout */
	unsigned char echo;            /* what was last sent there, to come back */
	struct sockaddr_un forward_to; /* where it listens */
	char folder[sizeof(SBA_SSH_FORWARD_TEMPLATE)]; /* around that; "": none */
};

/* Why a connection was never answered, by what `p` said; with the lock held. */
int sba_ssh_no_answer(struct sba_ssh *ssh, struct sba_ssh_process *p, struct sba_error *err);

/* ---- a forwarded socket (ssh_forward.c) ---- */

/* The engine's socket over there. */
const char *sba_ssh_socket(const struct sba_ssh *ssh);
/* A connection by the forward, which is begun anew if it has gone. */
int sba_ssh_join(struct sba_ssh *ssh, struct sba_until until, unsigned *ret_number, int *ret_fd,
		 struct sba_error *err) SBA_MUST_CHECK;
/* With the lock held: whether the forward of that number still carries anything. What
 * comes back from the other end is the only proof. */
bool sba_ssh_carries(struct sba_ssh *ssh, unsigned number);
void sba_ssh_forward_end(struct sba_ssh *ssh);

#endif
