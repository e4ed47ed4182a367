/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/inside_here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(const struct sba_inside_run *r, int out)
{
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(r->argv[0], (char *const *)(uintptr_t)r->argv);
	_exit(127);
}

static int run(const struct sba_inside *in, const struct sba_inside_run *r, struct sba_buf *ret_out,
	       int *ret_status, char ret_said[SBA_SAID_MAX], struct sba_error *err)
{
	int pipe_fd[2], status;
	char piece[4096];
	ssize_t n;
	(void)in;
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(r, pipe_fd[1]);
	close(pipe_fd[1]);
	while ((n = read(pipe_fd[0], piece, sizeof(piece))) > 0)
		sba_buf_put(ret_out, piece, (size_t)n);
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	ret_said[0] = '\0';
	return sba_buf_check(ret_out, "output", err);
}

static int read_here(const struct sba_inside *in, const char *path, size_t max, struct sba_buf *ret,
		     struct sba_error *err)
{
	(void)in;
	return sba_read_file(path, max, ret, err);
}

static void make_parents(const char *path)
{
	char part[PATH_MAX];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(part, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static int write_here(const struct sba_inside *in, const char *path, const void *data, size_t len,
		      uint32_t mode, struct sba_error *err)
{
	(void)in;
	make_parents(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	int rc = sba_write_all(fd, data, len, err);
	close(fd);
	return rc;
}

void inside_here_begin(struct inside_here *h)
{
	test_folder(h->home, sizeof(h->home), "sba-inside");
	h->in = (struct sba_inside){ .run = run,
				     .read = read_here,
				     .write = write_here,
				     .home = h->home,
				     .workdir = "/workspace",
				     .user = h };
}

void inside_here_end(struct inside_here *h)
{
	test_folder_remove(h->home);
}

void inside_here_file(struct inside_here *h, const char *path, const char *content)
{
	char whole[PATH_MAX];
	snprintf(whole, sizeof(whole), "%s/%s", h->home, path);
	assert_int_equal(write_here(&h->in, whole, content, strlen(content), 0600, NULL), 0);
}

char *inside_here_read(struct inside_here *h, const char *path)
{
	char whole[PATH_MAX];
	struct sba_buf b = SBA_BUF_INIT(1 << 20);
	snprintf(whole, sizeof(whole), "%s/%s", h->home, path);
	if (sba_read_file(whole, 1 << 20, &b, NULL) < 0)
		return NULL;
	return sba_buf_take(&b);
}
