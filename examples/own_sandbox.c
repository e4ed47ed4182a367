/* SPDX-License-Identifier: MIT */
/*
 * A sandbox of your own: here a folder of this host and plain processes in it, with nothing
 * that confines them. The table has what it must; files are made of commands by the library.
 *     own_sandbox /tmp/work command "hello" tr a-z A-Z
 */
#define _GNU_SOURCE
#include <sandbox-agent/sandbox-agent.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A command: a process group, known by its pidfd. */
struct command {
	pid_t pid;
	int pidfd;
};

static int command_signal(void *user, int number, struct sba_error *err)
{
	(void)err;
	return kill(-((struct command *)user)->pid, number);
}

static void command_kill(void *user)
{
	command_signal(user, SIGKILL, NULL);
}

static int command_wait(void *user, int64_t wait_ms, struct sba_exit *ret, struct sba_error *err)
{
	struct command *c = user;
	siginfo_t how;
	(void)err;
	if (poll(&(struct pollfd){ c->pidfd, POLLIN, 0 }, 1, (int)wait_ms) <= 0)
		return SBA_ETIMEOUT;
	/* Left a zombie until it is freed, so that its process group is nobody else's. */
	if (waitid(P_PID, (id_t)c->pid, &how, WEXITED | WNOWAIT) < 0)
		return SBA_EIO;
	ret->kind = how.si_code != CLD_EXITED ? SBA_SIGNALED
		    : how.si_status == 127    ? SBA_NOT_FOUND
					      : SBA_EXITED;
	ret->number = how.si_status;
	return 0;
}

static void command_free(void *user)
{
	waitpid(((struct command *)user)->pid, NULL, 0);
	close(((struct command *)user)->pidfd);
	free(user);
}

static const struct sba_pipes_ops command_ops = { .send_signal = command_signal,
						  .kill = command_kill,
						  .wait = command_wait,
						  .free = command_free };

/* The sandbox: its self is the folder's path. */
static const char *my_workdir(const struct sba_sandbox *s)
{
	return sba_sandbox_self(s);
}

_Noreturn static void become(const struct sba_exec_options *o, const char *folder, int p[3][2])
{
	for (size_t i = 0; o->env && o->env[i]; i++)
		putenv((char *)(uintptr_t)o->env[i]);
	if (chdir(o->workdir ? o->workdir : folder) == 0 && dup2(p[0][0], 0) >= 0 &&
	    dup2(p[1][1], 1) >= 0 && dup2(p[2][1], 2) >= 0 && setpgid(0, 0) == 0)
		execvp(o->argv[0], (char *const *)(uintptr_t)o->argv);
	_exit(127);
}

static int my_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		   struct sba_process **ret, struct sba_error *err)
{
	struct command *c = malloc(sizeof(*c));
	int p[3][2];
	if (!c || pipe2(p[0], O_CLOEXEC) || pipe2(p[1], O_CLOEXEC) || pipe2(p[2], O_CLOEXEC))
		abort(); /* an example */
	c->pid = fork();
	if (c->pid == 0)
		become(o, sba_sandbox_self(s), p);
	setpgid(c->pid, c->pid); /* whoever of the two is first */
	c->pidfd = pidfd_open(c->pid, 0);
	for (int i = 0; i < 3; i++)
		close(p[i][i > 0]);
	const struct sba_pipes mine = { p[0][1],      p[1][0], p[2][0], dup(c->pidfd),
					&command_ops, c,       { 0 } };
	return sba_process_of_pipes(&mine, o, ret, err);
}

static int my_host_url(struct sba_sandbox *s, uint16_t port, char *ret, size_t size,
		       struct sba_error *err)
{
	(void)s, (void)err;
	snprintf(ret, size, "http://127.0.0.1:%u", (unsigned)port);
	return 0;
}

static int my_close(struct sba_sandbox *s, struct sba_error *err)
{
	(void)s, (void)err;
	return 0; /* every command ends with its handle */
}

const struct sba_backend own_sandbox = {
	.version = SBA_BACKEND_VERSION,
	.name = "own",
	.can = SBA_CAN_STDIN | SBA_CAN_SIGNAL | SBA_CAN_HOST_URL | SBA_CAN_TREES | SBA_CAN_RUN_CODE,
	.workdir = my_workdir,
	.exec = my_exec,
	.host_url = my_host_url,
	.close = my_close,
};

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	const struct sba_sandbox_options lodger = { .agent = argv[2],
						    .program = (const char *const *)argv + 4 };
	const struct sba_agent_options model = { .offline = argc == 4 };
	const struct sba_turn_options turn = { .prompt = argv[3] };
	struct sba_turn_result r = { .text = "" };
	struct sba_sandbox *s = NULL;
	struct sba_agent *a = NULL;
	struct sba_turn *t = NULL;
	struct sba_error err = { 0 };
	char *folder = realpath(argv[1], NULL);
	int bad = !folder || sba_sandbox_adopt(&own_sandbox, folder, "mine", &s, &err) ||
		  sba_agent_move_in(s, &lodger, &err) || sba_agent_open(s, &model, &a, &err) ||
		  sba_turn_begin(a, &turn, &t, &err);
	if (t)
		sba_turn_result(t, &r);
	err = r.error.code ? r.error : err;
	printf("%s%s\n%s", r.text, err.text, err.hint);
	sba_turn_free(t);
	sba_agent_close(a);
	sba_sandbox_close(s);
	return bad || err.code;
}
