/* SPDX-License-Identifier: MIT */
/*
 * ssh://: the user's own ssh program, with the user's own configuration. Each
 * connection is an ssh that runs `docker system dial-stdio` at the other end;
 * where there is no docker CLI, one ssh forwards the engine's socket for all of
 * them. The end of our descriptors, however we end, is the end of every ssh.
 */
#include "engine/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A socket's path is short: not in TMPDIR, wherever that is. */
#define FORWARD_PARENT   "/tmp"
#define FORWARD_NAME     "sandbox-agent-ssh."
#define FORWARD_TEMPLATE FORWARD_PARENT "/" FORWARD_NAME "XXXXXX"

enum {
	SSH_ARGS_MAX = 32,
	EXIT_MS = 500, /* for an ssh that has closed its output to end */
	TERM_MS = 200, /* for one that was told to */
	NOT_FOUND = 127,
	KILLED = 128,
	FORWARD_NEW_S = 60,
};

struct ssh_process {
	pid_t pid; /* 0: none */
	int words; /* its stderr; -1: none */
};

struct sba_ssh {
	struct sba_address address;
	bool asks;            /* there is a terminal that it may ask on */
	bool forwards;        /* one ssh for all connections, since the handle was opened */
	pthread_mutex_t lock; /* of the next two; their connections may be of several threads */
	bool no_docker;       /* the other end said so */
	struct ssh_process forward;
	int forward_fd;                        /* its stdin and stdout */
	struct sockaddr_un forward_to;         /* where it listens */
	char folder[sizeof(FORWARD_TEMPLATE)]; /* around that; "": none */
};

struct ssh_transport {
	struct sba_transport base; /* first: a transport is cast to this */
	struct sba_ssh *ssh;
	struct ssh_process own; /* none where the connection is forwarded */
	bool forwarded;
	bool heard;
};

/* ---- the program ---- */

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

/* `options` stand before the host, `command` behind it. */
static size_t command_line(const struct sba_ssh *ssh, const char *const *options,
			   const char *command, const char **argv)
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
	return n;
}

/* Its stdin and stdout are one socket, whose other end is *ret_fd. */
static int start(const struct sba_ssh *ssh, const char *const *options, const char *command,
		 struct ssh_process *ret, int *ret_fd, struct sba_error *err)
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
	*ret = (struct ssh_process){ pid, sba_move_fd(&said) };
	*ret_fd = sba_move_fd(&ours);
	return 0;
}

/* Waits for its end at most so long: the exit status, KILLED for a signal, -1. 0 also
 * where somebody else has collected it: our program may ignore SIGCHLD. */
static int reap(struct ssh_process *p, int64_t ms)
{
	int status = 0;
	int rc =
		p->pid > 0 ? sba_child_wait(p->pid, sba_until_in(ms), &status, NULL) : SBA_ETIMEOUT;
	if (rc == SBA_ETIMEOUT)
		return -1;
	p->pid = 0;
	if (rc < 0)
		return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}

static void end(struct ssh_process *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGTERM);
		if (reap(p, TERM_MS) < 0) {
			kill(p->pid, SIGKILL);
			reap(p, TERM_MS);
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

static void last_words(const struct ssh_process *p, struct sba_buf *ret)
{
	char text[4096];
	ssize_t n = p->words >= 0 ? read(p->words, text, sizeof(text)) : 0;
	sba_ssh_last_words(text, n > 0 ? (size_t)n : 0, ret);
}

/* What ssh says of itself it begins with its name. */
static const char *its_words(const struct sba_buf *words, int status)
{
	const char *own = "ssh: ";
	if (words->len == 0)
		return status == KILLED ? "it was killed" : "it ended without a word";
	return words->data + (sba_starts_with(words->data, own) ? strlen(own) : 0);
}

/* For people: nothing else hangs on how ssh words it. */
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
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strstr(words, known[i].said))
			return known[i].todo;
	}
	return "";
}

static int try_by_hand(const struct sba_address *a, const char *words, int rc,
		       struct sba_error *err)
{
	return sba_hint(err, rc, "%stry it by hand:  ssh%s%s%s%s %s docker%s%s version",
			remedy(words), a->user[0] ? " -l " : "", a->user, a->port[0] ? " -p " : "",
			a->port, a->host, a->path[0] ? " --host unix://" : "", a->path);
}

static int no_answer(struct sba_ssh *ssh, struct ssh_process *p, struct sba_error *err)
{
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(16 * SBA_KIB);
	char where[512];
	pthread_mutex_lock(&ssh->lock);
	int status = p->pid > 0 ? reap(p, EXIT_MS) : -1;
	ssh->no_docker |= status == NOT_FOUND;
	last_words(p, &words);
	pthread_mutex_unlock(&ssh->lock);
	sba_address_format(&ssh->address, where, sizeof(where));
	const char *said = its_words(&words, status);
	int rc = sba_fail(err, SBA_ECONNECT, "no engine answers at %s: ssh: %s", where, said);
	return try_by_hand(&ssh->address, said, rc, err);
}

/* The end of a connection is in order only if the ssh that carries it ends so too. */
static ssize_t end_of(struct ssh_transport *t, ssize_t n, struct sba_error *err)
{
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(16 * SBA_KIB);
	char where[512];
	int status = t->own.pid > 0 ? reap(&t->own, EXIT_MS) : -1;
	if (status <= 0)
		return n;
	last_words(&t->own, &words);
	sba_address_format(&t->ssh->address, where, sizeof(where));
	return sba_fail(err, SBA_ELOST, "the connection to %s broke: ssh: %s", where,
			its_words(&words, status));
}

/* ---- the transport ---- */

static ssize_t ssh_read(struct sba_transport *base, void *buf, size_t len, struct sba_error *err)
{
	struct ssh_transport *t = (struct ssh_transport *)base;
	ssize_t n = sba_plain_read(base, buf, len, err);
	t->heard |= n > 0;
	if (n != 0 && n != SBA_ELOST)
		return n;
	if (t->heard)
		return end_of(t, n, err);
	return no_answer(t->ssh, t->forwarded ? &t->ssh->forward : &t->own, err);
}

static void ssh_close(struct sba_transport *base)
{
	struct ssh_transport *t = (struct ssh_transport *)base;
	close(base->fd);
	end(&t->own);
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
	return start(t->ssh, options, command, &t->own, &t->base.fd, err);
}

static int join_forward(struct ssh_transport *t, struct sba_until until, struct sba_error *err)
{
	return sba_connect_unix(&t->ssh->address, &t->ssh->forward_to, until, &t->base.fd, err);
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
	t->forwarded = ssh->forwards;
	int rc = t->forwarded ? join_forward(t, until, err) : dial(t, err);
	if (rc < 0) {
		free(t);
		return rc;
	}
	*ret = &t->base;
	return 0;
}

/* ---- forwarding the engine's socket ---- */

bool sba_ssh_lacks_docker(const struct sba_ssh *ssh)
{
	return ssh->no_docker && !ssh->forwards;
}

/* What a killed client left: a folder whose socket nobody listens on. One that is
 * new may be about to get its socket. */
static void sweep(void)
{
	DIR *dir = opendir(FORWARD_PARENT);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		struct stat st;
		char path[sizeof(FORWARD_PARENT) + sizeof(entry->d_name)];
		if (!sba_starts_with(entry->d_name, FORWARD_NAME))
			continue;
		snprintf(path, sizeof(path), FORWARD_PARENT "/%s", entry->d_name);
		int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/engine", path);
		SBA_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (n < 0 || (size_t)n >= sizeof(at.sun_path) || lstat(path, &st) < 0 ||
		    st.st_uid != geteuid() || time(NULL) - st.st_mtime < FORWARD_NEW_S ||
		    connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EAGAIN)
			continue;
		unlink(at.sun_path);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

/* The forward listens before the command at the other end is asked for. */
static int await_forward(struct sba_ssh *ssh, struct sba_until until, struct sba_error *err)
{
	char said[64];
	int rc = sba_wait_fd(ssh->forward_fd, POLLIN, until, err);
	if (rc < 0)
		return rc;
	if (recv(ssh->forward_fd, said, sizeof(said), 0) <= 0)
		return no_answer(ssh, &ssh->forward, err);
	return 0;
}

int sba_ssh_forward(struct sba_ssh *ssh, struct sba_until until, struct sba_error *err)
{
	char way[sizeof(ssh->forward_to.sun_path) + sizeof(ssh->address.path) + 2];
	const char *const options[] = { "-L", way,
					"-o", "ExitOnForwardFailure=yes",
					"-o", "StreamLocalBindMask=0177",
					"-o", "ControlPath=none",
					NULL };
	sweep();
	snprintf(ssh->folder, sizeof(ssh->folder), "%s", FORWARD_TEMPLATE);
	if (!mkdtemp(ssh->folder)) {
		ssh->folder[0] = '\0';
		return sba_fail_errno(err, SBA_EIO, errno, "a folder for a forwarded socket");
	}
	ssh->forward_to.sun_family = AF_UNIX;
	snprintf(ssh->forward_to.sun_path, sizeof(ssh->forward_to.sun_path), "%s/engine",
		 ssh->folder);
	snprintf(way, sizeof(way), "%s:%s", ssh->forward_to.sun_path,
		 ssh->address.path[0] ? ssh->address.path : SBA_DEFAULT_SOCKET);
	int rc = start(ssh, options, "echo; exec cat", &ssh->forward, &ssh->forward_fd, err);
	if (rc == 0)
		rc = await_forward(ssh, until, err);
	ssh->forwards = rc == 0;
	return rc;
}

/* ---- the handle ---- */

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
	sba_cleanup_close(&ssh->forward_fd);
	end(&ssh->forward);
	if (ssh->folder[0]) {
		unlink(ssh->forward_to.sun_path);
		rmdir(ssh->folder);
	}
	pthread_mutex_destroy(&ssh->lock);
	free(ssh);
}
