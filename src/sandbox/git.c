/* SPDX-License-Identifier: MIT */
/* Asking git; see git.h. */
#include "sandbox/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"

extern char **environ;

enum {
	GIT_OUTPUT_MAX = 256 * SBA_MIB,
	GIT_ARGS_MAX = 20,
	GIT_NESTED_MAX = 8,
};

static int read_all(int fd, struct sba_until until, struct sba_buf *ret, struct sba_error *err)
{
	for (;;) {
		int rc = sba_wait_fd(fd, POLLIN, until, err);
		if (rc < 0)
			return rc;
		char *at = sba_buf_reserve(ret, SBA_RUN_IO_CHUNK);
		if (!at)
			return sba_buf_check(ret, "git's answer", err);
		ssize_t n = read(fd, at, SBA_RUN_IO_CHUNK);
		if (n < 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "git: read");
		if (n == 0)
			return 0;
		ret->len += n > 0 ? (size_t)n : 0;
		ret->data[ret->len] = '\0';
	}
}

/* Ours without git's: started from a hook of git, GIT_DIR and others name another
 * repository. Of a partial clone git would fetch what is missing, by a program that the
 * repository's configuration can name: no protocol is allowed, whatever that says. */
static int clean_environment(struct sba_strv *ret, struct sba_error *err)
{
	static const char *const own[] = { "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
					   "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1" };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(own); i++)
		rc = sba_strv_add(ret, own[i], err);
	for (char **v = environ; rc == 0 && v && *v; v++) {
		if (!sba_starts_with(*v, "GIT_") && !sba_starts_with(*v, "LC_ALL="))
			rc = sba_strv_add(ret, *v, err);
	}
	return rc;
}

static int spawn(const char *const *argv, int in_fd, int out_fd, pid_t *ret, struct sba_error *err)
{
	SBA_STRV struct sba_strv env = { 0 };
	int rc = clean_environment(&env, err);
	if (rc < 0)
		return rc;
	const struct sba_spawn git = {
		.argv = argv, .env = env.v, .in = in_fd, .out = out_fd, .err = out_fd
	};
	int e = sba_child_spawn(&git, ret);
	return e ? sba_fail_errno(err, e == ENOENT ? SBA_ENOTFOUND : SBA_EIO, e, "git") : 0;
}

/* The exit status; a program that ignores SIGCHLD has none for us. */
static int reap(pid_t pid)
{
	int status = 0;
	pid_t got;
	while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int sba_git_feed(const char *dir, const char *const *args, int in_fd, struct sba_until until,
		 struct sba_buf *ret, struct sba_error *err)
{
	/* The caller named this folder: whose it is does not matter, but no program
	 * that its configuration names is run. */
	const char *argv[GIT_ARGS_MAX] = { "git",
					   "-C",
					   dir,
					   "-c",
					   "safe.directory=*",
					   "-c",
					   "core.fsmonitor=false",
					   "-c",
					   "core.hooksPath=/dev/null" };
	size_t n = 9;
	for (size_t i = 0; args[i] && n + 1 < GIT_ARGS_MAX; i++)
		argv[n++] = args[i];
	int pipe_fd[2];
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "git: pipe");
	pid_t pid;
	int rc = spawn(argv, in_fd, pipe_fd[1], &pid, err);
	close(pipe_fd[1]);
	if (rc == 0) {
		rc = read_all(pipe_fd[0], until, ret, err);
		if (rc < 0)
			kill(pid, SIGKILL);
		int status = reap(pid);
		rc = rc < 0 ? rc : status;
	}
	close(pipe_fd[0]);
	return rc;
}

int sba_git_run(const char *dir, const char *const *args, struct sba_until until,
		struct sba_buf *ret, struct sba_error *err)
{
	return sba_git_feed(dir, args, SBA_SPAWN_NULL, until, ret, err);
}

/* ---- files ---- */

/* A repository begins here or in a folder above. */
static bool has_repository(const char *dir)
{
	SBA_FREE char *path = realpath(dir, NULL);
	while (path && *path) {
		SBA_BUF struct sba_buf git = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
		struct stat st;
		sba_buf_printf(&git, "%s/.git", path);
		if (!git.failed && lstat(git.data, &st) == 0)
			return true;
		*strrchr(path, '/') = '\0';
	}
	return false;
}

static int list(const char *dir, const char *prefix, int depth, struct sba_until until,
		struct sba_strv *ret, struct sba_error *err);

/* One name of git's: a file, or a repository within (its name may end in '/'). */
static int add_name(const char *dir, const char *prefix, const char *name, int depth,
		    struct sba_until until, struct sba_strv *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	SBA_BUF struct sba_buf relative = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	size_t len = strlen(name);
	if (len > 0 && name[len - 1] == '/')
		len--;
	sba_buf_printf(&path, "%s/%.*s", dir, (int)len, name);
	sba_buf_printf(&relative, "%s%.*s", prefix, (int)len, name);
	int rc = sba_buf_check(&path, "path", err);
	if (rc == 0)
		rc = sba_buf_check(&relative, "path", err);
	struct stat st;
	if (rc < 0 || lstat(path.data, &st) < 0)
		return rc;
	if (!S_ISDIR(st.st_mode))
		return sba_strv_add(ret, relative.data, err);
	/* A submodule that was never checked out: an empty folder of its parent's. */
	size_t path_len = path.len;
	sba_buf_puts(&path, "/.git");
	if (sba_buf_check(&path, "path", err) < 0)
		return path.failed;
	if (lstat(path.data, &st) < 0)
		return sba_strv_add(ret, relative.data, err);
	path.data[path_len] = '\0';
	if (depth == GIT_NESTED_MAX)
		return sba_fail(err, SBA_ELIMIT, "'%s': more than %d repositories in each other",
				path.data, GIT_NESTED_MAX);
	sba_buf_putc(&relative, '/');
	rc = sba_buf_check(&relative, "path", err);
	return rc < 0 ? rc : list(path.data, relative.data, depth + 1, until, ret, err);
}

static int list(const char *dir, const char *prefix, int depth, struct sba_until until,
		struct sba_strv *ret, struct sba_error *err)
{
	static const char *const args[] = {
		"ls-files",      "-z", "--cached", "--others", "--exclude-standard",
		"--deduplicate", NULL
	};
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(GIT_OUTPUT_MAX);
	int rc = sba_git_run(dir, args, until, &names, err);
	if (rc < 0)
		return rc;
	if (rc > 0)
		return sba_fail(err, SBA_EREFUSED, "git does not list the files of '%s': %.200s",
				dir, names.data ? names.data : "");
	return sba_git_take_names(dir, prefix, &names, depth, until, ret, err);
}

int sba_git_take_names(const char *dir, const char *prefix, const struct sba_buf *names, int depth,
		       struct sba_until until, struct sba_strv *ret, struct sba_error *err)
{
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < names->len; at += strlen(names->data + at) + 1)
		rc = add_name(dir, prefix, names->data + at, depth, until, ret, err);
	return rc;
}

int sba_git_files(const char *dir, struct sba_until until, struct sba_strv *ret,
		  struct sba_error *err)
{
	static const char *const ask[] = { "rev-parse", "--is-inside-work-tree", NULL };
	if (!has_repository(dir))
		return 0;
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(2 * SBA_RUN_IO_CHUNK);
	int rc = sba_git_run(dir, ask, until, &answer, err);
	if (rc == SBA_ENOTFOUND)
		return sba_hint(
			err,
			sba_fail(err, SBA_EREFUSED,
				 "'%s' is a git repository, and there is no git here to say "
				 "which of its files are to go along",
				 dir),
			"install git");
	if (rc < 0)
		return rc;
	const char *text = answer.data ? answer.data : "";
	if (rc == 0 && sba_starts_with(text, "false"))
		return 0; /* a bare repository, or inside .git */
	if (rc > 0)
		return sba_fail(err, SBA_EREFUSED,
				"'%s' is a git repository, but git does not answer: %.300s", dir,
				text);
	rc = list(dir, "", 0, until, ret, err);
	return rc < 0 ? rc : 1;
}
