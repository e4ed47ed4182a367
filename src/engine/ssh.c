/* SPDX-License-Identifier: MIT */
/*
 * ssh://: the user's own ssh program, with the user's own configuration. Each
 * connection is an ssh that runs `docker system dial-stdio` at the other end, or one
 * by a forwarded socket (ssh_forward.c). Which of the two has failed, ssh or the engine
 * behind it, is told apart here, and a lost connection from one at its end.
 */
#include "engine/ssh.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ssh_transport {
	struct sba_transport base; /* first: a transport is cast to this */
	struct sba_ssh *ssh;
	struct sba_ssh_process own; /* none where the connection is forwarded */
	unsigned forward;           /* the number of that forward; 0: not forwarded */
	bool heard;
};

/* ---- what went wrong ---- */

enum side {
	SIDE_SSH,    /* ssh itself */
	SIDE_DOCKER, /* the docker program at the other end */
	SIDE_SOCKET, /* the socket there that is forwarded */
};

/* For people: nothing else hangs on how they word it. */
static const char *remedy(const char *words)
{
	static const struct {
		const char *said, *todo;
	} known[] = {
		{ "Host key verification failed",
		  "the host's key is not known here, or is another now: by hand ssh asks, or "
		  "warns\n" },
		{ "Permission denied",
		  "it takes no key that is here: ssh-add, ssh-copy-id, or IdentityFile in "
		  "~/.ssh/config\n" },
		{ "permission denied",
		  "the user there may not use it: sudo usermod -aG docker USER, over there\n" },
		{ "kex_exchange_identification",
		  "its sshd takes no more connections from here for now (MaxStartups, "
		  "PerSourcePenalties); with ControlMaster in ~/.ssh/config there is only one\n" },
		{ "administratively prohibited",
		  "its sshd forwards no sockets (AllowStreamLocalForwarding), and there is no "
		  "docker program there\n" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strstr(words, known[i].said))
			return known[i].todo;
	}
	return "";
}

static int hint(const struct sba_ssh *ssh, enum side side, const char *words, int rc,
		struct sba_error *err)
{
	const struct sba_address *a = &ssh->address;
	char ssh_to[512], docker[256] = "true";
	snprintf(ssh_to, sizeof(ssh_to), "ssh%s%s%s%s %s", a->user[0] ? " -l " : "", a->user,
		 a->port[0] ? " -p " : "", a->port, a->host);
	if (!ssh->no_docker)
		snprintf(docker, sizeof(docker), "docker%s%s version",
			 a->path[0] ? " --host unix://" : "", a->path);
	const char *known = remedy(words);
	if (side == SIDE_SSH || *known)
		return sba_hint(err, rc, "%stry it by hand:  %s %s", known, ssh_to, docker);
	return sba_hint(err, rc,
			"start it there:  %s sudo systemctl start docker\n"
			"or use another: -H, DOCKER_HOST, docker context use",
			ssh_to);
}

static enum side side_of(const struct sba_ssh *ssh, const struct sba_ssh_process *p)
{
	if (p == &ssh->forward)
		return p->status == SBA_SSH_RUNS ? SIDE_SOCKET : SIDE_SSH;
	return p->status >= SBA_SSH_FAILED || p->status == SBA_SSH_RUNS ? SIDE_SSH : SIDE_DOCKER;
}

/* "channel 2: open failed: connect failed: open failed" */
static const char *of_channel(const char *words)
{
	const char *failed = "open failed: ", *at = strstr(words, failed);
	return at ? at + strlen(failed) : words;
}

int sba_ssh_no_answer(struct sba_ssh *ssh, struct sba_ssh_process *p, struct sba_error *err)
{
	char where[512];
	int rc;
	ssh->no_docker |= p != &ssh->forward && p->status == SBA_SSH_NOT_FOUND;
	enum side side = side_of(ssh, p);
	const char *said = side == SIDE_SOCKET ? of_channel(sba_ssh_said(p)) : sba_ssh_last_said(p);
	sba_address_format(&ssh->address, where, sizeof(where));
	if (side == SIDE_SOCKET)
		rc = sba_fail(err, SBA_ECONNECT,
			      "no engine answers at %s: %s there takes no connection%s%s", where,
			      sba_ssh_socket(ssh), *said ? ": " : "", said);
	else
		rc = sba_fail(err, SBA_ECONNECT, "no engine answers at %s: %s: %s", where,
			      side == SIDE_SSH ? "ssh" : "docker there", said);
	return hint(ssh, side, said, rc, err);
}

static int lost(const struct sba_ssh *ssh, enum side side, const char *said, struct sba_error *err)
{
	char where[512];
	sba_address_format(&ssh->address, where, sizeof(where));
	int rc = sba_fail(err, SBA_ELOST, "the connection to %s broke: %s: %s", where,
			  side == SIDE_SSH ? "ssh" : "docker there", said);
	return hint(ssh, side, said, rc, err);
}

/* The end of a connection is in order only if what carries it has not failed: bytes that
 * merely stop would look like an answer that is over. */
static ssize_t end_of_dial(struct ssh_transport *t, ssize_t n, struct sba_error *err)
{
	int status = sba_ssh_wait(&t->own, SBA_SSH_EXIT_MS);
	if (!t->heard)
		return sba_ssh_no_answer(t->ssh, &t->own, err);
	if (status == SBA_SSH_RUNS || status == 0)
		return n;
	return lost(t->ssh, side_of(t->ssh, &t->own), sba_ssh_last_said(&t->own), err);
}

static ssize_t end_of_forwarded(struct ssh_transport *t, ssize_t n, struct sba_error *err)
{
	struct sba_ssh *ssh = t->ssh;
	const char *said = "it does not answer any more";
	if (sba_ssh_carries(ssh, t->forward))
		return t->heard ? n : sba_ssh_no_answer(ssh, &ssh->forward, err);
	if (t->forward == ssh->forward_number &&
	    sba_ssh_wait(&ssh->forward, SBA_SSH_EXIT_MS) != SBA_SSH_RUNS)
		said = sba_ssh_last_said(&ssh->forward);
	return lost(ssh, SIDE_SSH, said, err);
}

/* ---- the transport ---- */

static ssize_t ssh_read(struct sba_transport *base, void *buf, size_t len, struct sba_error *err)
{
	struct ssh_transport *t = (struct ssh_transport *)base;
	ssize_t n = sba_plain_read(base, buf, len, err);
	t->heard |= n > 0;
	if (n != 0 && n != SBA_ELOST)
		return n;
	pthread_mutex_lock(&t->ssh->lock);
	n = t->forward ? end_of_forwarded(t, n, err) : end_of_dial(t, n, err);
	pthread_mutex_unlock(&t->ssh->lock);
	return n;
}

static void ssh_close(struct sba_transport *base)
{
	struct ssh_transport *t = (struct ssh_transport *)base;
	close(base->fd);
	sba_ssh_end(&t->own);
	free(t);
}

static const struct sba_transport_ops ssh_ops = {
	.read = ssh_read,
	.write = sba_plain_write,
	.shutdown_write = sba_plain_shutdown,
	.close = ssh_close,
};

static int dial(struct ssh_transport *t, struct sba_error *err)
{
	static const char *const options[] = { "-o", "ClearAllForwardings=yes", NULL };
	const char *path = t->ssh->address.path;
	char command[sizeof(t->ssh->address.path) + 64];
	/* sba_address_parse() lets no character pass that a shell would see. */
	snprintf(command, sizeof(command), "docker%s%s system dial-stdio",
		 path[0] ? " --host unix://" : "", path);
	return sba_ssh_start(t->ssh, options, command, &t->own, &t->base.fd, err);
}

int sba_ssh_connect(struct sba_ssh *ssh, struct sba_until until, struct sba_transport **ret,
		    struct sba_error *err)
{
	struct ssh_transport *t = calloc(1, sizeof(*t));
	if (!t)
		return sba_fail_nomem(err);
	t->base = (struct sba_transport){ &ssh_ops, -1, POLLIN, POLLOUT };
	t->own.words = -1;
	t->ssh = ssh;
	int rc = ssh->forwards ? sba_ssh_join(ssh, until, &t->forward, &t->base.fd, err)
			       : dial(t, err);
	if (rc < 0) {
		free(t);
		return rc;
	}
	*ret = &t->base;
	return 0;
}

/* ---- the handle ---- */

bool sba_ssh_lacks_docker(const struct sba_ssh *ssh)
{
	return ssh->no_docker && !ssh->forwards;
}

int sba_ssh_new(const struct sba_address *a, struct sba_ssh **ret, struct sba_error *err)
{
	struct sba_ssh *ssh = calloc(1, sizeof(*ssh));
	SBA_CLOSE int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (!ssh)
		return sba_fail_nomem(err);
	ssh->address = *a;
	ssh->asks = terminal >= 0;
	ssh->forward.words = ssh->forward_fd = -1;
	pthread_mutex_init(&ssh->lock, NULL);
	*ret = ssh;
	return 0;
}

void sba_ssh_free(struct sba_ssh *ssh)
{
	if (!ssh)
		return;
	sba_ssh_forward_end(ssh);
	pthread_mutex_destroy(&ssh->lock);
	free(ssh);
}
