/* SPDX-License-Identifier: MIT */
/* The program under test as a child: see live.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"
#include "support/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CHILD_OUTPUT_MAX = 64 * 1024 * 1024,
	LOOK_MS = 20,
	CHILD_ARGS_MAX = 64,
	DEFAULT_MS = 100 * 1000
};

/* build/asan/tests/KIND/X_test stands three folders below the program. */
void live_program_path(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	assert_true(n > 0);
	ret[n] = '\0';
	for (int i = 0; i < 3; i++) {
		char *slash = strrchr(ret, '/');
		assert_non_null(slash);
		*slash = '\0';
	}
	size_t len = strlen(ret);
	snprintf(ret + len, size - len, "/sandbox-agent");
}

static void put_env(const char *const *env)
{
	for (; env && *env; env++) {
		const char *eq = strchr(*env, '=');
		if (eq)
			putenv((char *)(uintptr_t)*env);
		else
			unsetenv(*env);
	}
}

static void become(const struct live_start *o, const char *path, const int fds[3])
{
	const char *argv[CHILD_ARGS_MAX] = { o->program ? o->program : "sandbox-agent" };
	for (size_t i = 0; o->argv[i] && i + 2 < CHILD_ARGS_MAX; i++)
		argv[i + 1] = o->argv[i];
	for (int i = 0; i < 3; i++)
		dup2(fds[i], i);
	if (o->stdout_to)
		dup2(open(o->stdout_to, O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	if (o->screen && (setsid() < 0 || ioctl(0, TIOCSCTTY, 0) < 0))
		_exit(97);
	put_env(o->env);
	signal(SIGPIPE, SIG_DFL);
	if (o->uid && (setgroups(0, NULL) < 0 || setgid(o->uid) < 0 || setuid(o->uid) < 0))
		_exit(99);
	if (o->program)
		execvp(o->program, (char **)(uintptr_t)argv);
	else
		execv(path, (char **)(uintptr_t)argv);
	_exit(98);
}

/* Both ends of a new terminal, the program's in ends[1]. */
static void open_terminal(int ends[2])
{
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(ends[0] >= 0);
	assert_int_equal(grantpt(ends[0]) | unlockpt(ends[0]), 0);
	ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(ends[1] >= 0);
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	assert_int_equal(ioctl(ends[1], TIOCSWINSZ, &size), 0);
}

void live_start(struct live_child *c, const struct live_start *o)
{
	char path[4096];
	int in[2] = { -1, -1 }, out[2], err[2];
	live_program_path(path, sizeof(path));
	*c = (struct live_child){
		.in = -1, .held_in = -1, .screen_fd = -1, .began_ms = sba_now_ms()
	};
	c->out.max = c->err.max = CHILD_OUTPUT_MAX;
	c->input = o->input;
	c->input_left = o->input ? (o->input_len ? o->input_len : strlen(o->input)) : 0;
	if (o->input || o->open_stdin)
		assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	else
		in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool terminal = o->terminal || o->screen;
	if (terminal)
		open_terminal(out);
	else
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0)
		become(o, path,
		       (int[]){ o->screen ? out[1] : in[0], out[1], terminal ? out[1] : err[1] });
	if (o->screen)
		c->screen_fd = fcntl(out[0], F_DUPFD_CLOEXEC, 0);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	*(o->open_stdin ? &c->held_in : &c->in) = in[1];
	c->out_fd = out[0];
	c->err_fd = err[0];
	if (o->close_stdout)
		sba_cleanup_close(&c->out_fd);
	if (c->in >= 0)
		sba_set_nonblock(c->in, true);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- moving bytes ---- */

static void feed(struct live_child *c)
{
	ssize_t n = write(c->in, c->input, c->input_left);
	if (n > 0) {
		c->input += n;
		c->input_left -= (size_t)n;
	}
	if (c->input_left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		sba_cleanup_close(&c->in);
	if (c->input_left == 0)
		c->in = -1;
}

static void drain(int *fd, struct sba_buf *b)
{
	char piece[65536];
	ssize_t n = read(*fd, piece, sizeof(piece));
	if (n > 0) {
		sba_buf_put(b, piece, (size_t)n);
	} else if (n == 0 || errno != EINTR) {
		sba_cleanup_close(fd);
		*fd = -1;
	}
}

/* False when both of its streams have ended. */
static bool move(struct live_child *c, int64_t deadline)
{
	struct pollfd p[] = { { .fd = c->out_fd, .events = POLLIN },
			      { .fd = c->err_fd, .events = POLLIN },
			      { .fd = c->in, .events = POLLOUT } };
	if (c->in >= 0 && c->input_left == 0) {
		close(c->in);
		c->in = p[2].fd = -1;
	}
	if (c->out_fd < 0 && c->err_fd < 0)
		return false;
	int64_t left = deadline - sba_now_ms();
	if (left <= 0 || poll(p, 3, (int)left) < 0)
		return true;
	if (p[0].revents)
		drain(&c->out_fd, &c->out);
	if (p[1].revents)
		drain(&c->err_fd, &c->err);
	if (p[2].revents)
		feed(c);
	return true;
}

static const char *text_of(const struct sba_buf *b)
{
	return b->data ? b->data : "";
}

static void tell(const struct live_child *c)
{
	print_error("status: %d\nstdout: %.4000s\nstderr: %.4000s\n", c->status, text_of(&c->out),
		    text_of(&c->err));
}

void live_child_await(struct live_child *c, const char *text, int64_t ms)
{
	int64_t deadline = sba_now_ms() + ms;
	while (!strstr(text_of(&c->out), text) && !strstr(text_of(&c->err), text)) {
		if (move(c, deadline) && sba_now_ms() < deadline)
			continue;
		tell(c);
		fail_msg("it never said '%s'", text);
	}
}

static bool ended(void *user)
{
	struct live_child *c = user;
	int status;
	if (waitpid(c->pid, &status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}

void live_child_end(struct live_child *c, int64_t ms)
{
	int64_t deadline = sba_now_ms() + ms;
	while (move(c, deadline)) {
		if (sba_now_ms() < deadline)
			continue;
		tell(c);
		fail_msg("the program did not end in %lld ms", (long long)ms);
	}
	live_await(ended, c, 5000);
	c->took_ms = sba_now_ms() - c->began_ms;
}

size_t live_child_watch_memory(struct live_child *c, int64_t ms)
{
	int64_t deadline = sba_now_ms() + ms;
	long most = 0;
	while (sba_now_ms() < deadline && move(c, sba_now_ms() + LOOK_MS)) {
		long now = bench_rss_anon(c->pid);
		most = now > most ? now : most;
		sba_buf_reset(&c->out);
	}
	return (size_t)most * 1024;
}

void live_child_fini(struct live_child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	sba_cleanup_close(&c->in);
	sba_cleanup_close(&c->out_fd);
	sba_cleanup_close(&c->err_fd);
	sba_cleanup_close(&c->held_in);
	sba_cleanup_close(&c->screen_fd);
	sba_buf_fini(&c->out);
	sba_buf_fini(&c->err);
}

void live_program(struct live_child *c, const char *const *argv)
{
	live_start(c, &(struct live_start){ .argv = argv });
	live_child_end(c, DEFAULT_MS);
}

/* ---- looking at what it said ---- */

void live_assert_says_(struct live_child *c, int status, const char *words, const char *file,
		       int line)
{
	bool sanitizer = strstr(text_of(&c->err), "Sanitizer") != NULL;
	if (c->status == status && !sanitizer && (!words || strstr(text_of(&c->err), words)))
		return;
	tell(c);
	print_error("expected: status %d, stderr with '%s'\n", status, words ? words : "");
	_fail(file, line);
}

json_t *live_json_lines(const struct live_child *c)
{
	json_t *lines = json_array();
	const char *at = text_of(&c->out);
	while (*at) {
		size_t len = strcspn(at, "\n");
		json_error_t why;
		json_t *one = json_loadb(at, len, 0, &why);
		if (!one) {
			print_error("%.*s\n", (int)(len < 2000 ? len : 2000), at);
			fail_msg("line %zu is no JSON: %s", json_array_size(lines) + 1, why.text);
		}
		json_array_append_new(lines, one);
		at += len + (at[len] == '\n');
	}
	assert_true(json_array_size(lines) > 0);
	assert_int_equal(sba_json_int(json_array_get(lines, 0), "v", 0), 1);
	return lines;
}

json_t *live_json_line(json_t *lines, const char *type)
{
	for (size_t i = json_array_size(lines); i > 0; i--) {
		json_t *one = json_array_get(lines, i - 1);
		const char *t = sba_json_str(one, "type"), *k = sba_json_str(one, "kind");
		if ((t && strcmp(t, type) == 0) || (k && strcmp(k, type) == 0))
			return one;
	}
	fail_msg("there is no line of type '%s'", type);
	return NULL;
}
