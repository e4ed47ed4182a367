/* SPDX-License-Identifier: MIT */
/* Programs of this host: started without what is ours, heard out, and waited for under a
 * deadline. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOOK_MS = 10 }; /* where the kernel has no pidfd (before 5.3), or keeps it from us */

/* ---- starting ---- */

static int set_stream(posix_spawn_file_actions_t *files, int fd, int as)
{
	if (fd == SBA_SPAWN_OURS)
		return 0;
	if (fd == SBA_SPAWN_NULL)
		return posix_spawn_file_actions_addopen(files, as, "/dev/null", O_RDWR, 0);
	return posix_spawn_file_actions_adddup2(files, fd, as);
}

static int set_files(posix_spawn_file_actions_t *files, const struct sba_spawn *s)
{
	int e = set_stream(files, s->in, STDIN_FILENO);
	if (e == 0)
		e = set_stream(files, s->out, STDOUT_FILENO);
	return e ? e : set_stream(files, s->err, STDERR_FILENO);
}

/* What the program handles or ignores must not come to another's mind. */
static int set_attributes(posix_spawnattr_t *attr, const struct sba_spawn *s)
{
	sigset_t blocked, all;
	sigemptyset(&blocked);
	sigfillset(&all);
	for (const int *n = s->blocked; n && *n; n++)
		sigaddset(&blocked, *n);
	int e = posix_spawnattr_setsigmask(attr, &blocked);
	if (e == 0)
		e = posix_spawnattr_setsigdefault(attr, &all);
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	return e ? e
		 : posix_spawnattr_setflags(
			   attr, (short)(s->new_session ? flags | POSIX_SPAWN_SETSID : flags));
}

int sba_child_spawn(const struct sba_spawn *s, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int e = posix_spawn_file_actions_init(&files);
	if (e)
		return e;
	e = posix_spawnattr_init(&attr);
	if (e == 0) {
		e = set_files(&files, s);
		if (e == 0)
			e = set_attributes(&attr, s);
		if (e == 0)
			e = posix_spawnp(ret, s->argv[0], &files, &attr,
					 (char **)(uintptr_t)s->argv, s->env ? s->env : environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return e;
}

/* ---- ending ---- */

void sba_child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int sba_child_wait(pid_t pid, struct sba_until until, int *ret_status, struct sba_error *err)
{
	SBA_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (;;) {
		int status;
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid) {
			*ret_status = status;
			return 0;
		}
		if (got < 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "wait");
		int rc = sba_until_check(until, err);
		if (rc == 0 && fd >= 0)
			rc = sba_wait_fd(fd, POLLIN, until, err);
		else if (rc == 0)
			(void)!sba_wait_fd(-1, 0, sba_until_sooner(until, LOOK_MS), NULL);
		if (rc < 0)
			return rc;
	}
}

/* ---- running one ---- */

/* Whole before it starts: one that does not read its stdin blocks nobody. */
static int open_input(const char *input, struct sba_error *err)
{
	SBA_CLOSE int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "memfd");
	int rc = sba_write_all(fd, input, strlen(input), err);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = sba_fail_errno(err, SBA_EIO, errno, "lseek");
	return rc < 0 ? rc : sba_move_fd(&fd);
}

static int read_all(int fd, struct sba_buf *b, struct sba_until until, struct sba_error *err)
{
	for (;;) {
		char piece[4096];
		int rc = sba_wait_fd(fd, POLLIN, until, err);
		if (rc < 0)
			return rc;
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n > 0)
			sba_buf_put(b, piece, (size_t)n);
		explicit_bzero(piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "read");
		if (n == 0)
			return 0;
		rc = sba_buf_check(b, "its output", err);
		if (rc < 0)
			return rc;
	}
}

static int hear(const struct sba_spawn *program, int out, struct sba_until until,
		struct sba_buf *output, int *ret_status, struct sba_error *err)
{
	pid_t pid;
	int failed = sba_child_spawn(program, &pid);
	close(program->out);
	if (failed)
		return sba_fail_errno(err, SBA_ENOTFOUND, failed, "it cannot be run");
	int rc = read_all(out, output, until, err);
	if (rc == 0)
		rc = sba_child_wait(pid, until, ret_status, err);
	if (rc < 0)
		sba_child_kill(pid);
	return rc;
}

int sba_child_run(const char *const *argv, const char *input, struct sba_until until,
		  struct sba_buf *output, int *ret_status, struct sba_error *err)
{
	int ends[2];
	SBA_CLOSE int in = input ? open_input(input, err) : -1;
	if (input && in < 0)
		return in;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "pipe");
	SBA_CLOSE int out = ends[0];
	const struct sba_spawn program = {
		.argv = argv,
		.in = input ? in : SBA_SPAWN_NULL,
		.out = ends[1],
		.err = SBA_SPAWN_OURS,
	};
	return hear(&program, out, until, output, ret_status, err);
}
