/* SPDX-License-Identifier: MIT */
/*
 * Engines at ssh://, by an `ssh` on the PATH that is this program itself: it
 * runs the other end here, or fails as the real one does.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "support/folder.h"
#include "support/fake_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the other side of the program: an ssh ---- */

static int connect_to(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

/* One direction: false at its end. */
static bool carry(int from, int to)
{
	char piece[65536];
	ssize_t n = read(from, piece, sizeof(piece));
	return n > 0 && sba_write_all(to, piece, (size_t)n, NULL) == 0;
}

static int pump(int in, int out, int engine)
{
	struct pollfd p[2] = { { .fd = in, .events = POLLIN }, { .fd = engine, .events = POLLIN } };
	while (p[1].fd >= 0 && poll(p, 2, -1) > 0) {
		if (p[0].revents && !carry(in, engine)) {
			shutdown(engine, SHUT_WR);
			p[0].fd = -1;
		}
		if (p[1].revents && !carry(engine, out))
			p[1].fd = -1;
	}
	return 0;
}

/* As the real one with -L: one connection after the other is enough here. */
static int forward(const char *way, const char *target)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%.*s", (int)strcspn(way, ":"), way);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 8) < 0)
		return 255;
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		return 255;
	struct pollfd p[2] = { { .fd = listener, .events = POLLIN },
			       { .fd = STDIN_FILENO, .events = POLLIN } };
	while (poll(p, 2, -1) > 0 && !p[1].revents) {
		int fd = accept(listener, NULL, NULL);
		if (fork() == 0)
			_exit(pump(fd, fd, connect_to(target)));
		close(fd);
	}
	return 0;
}

static int say(const char *words, int status)
{
	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		return 1;
	return status;
}

static int be_ssh(int argc, char **argv)
{
	const char *mode = getenv("FAKE_SSH"), *target = getenv("FAKE_SSH_TARGET"), *way = NULL;
	char file[256];
	snprintf(file, sizeof(file), "%s/called", getenv("FAKE_SSH_DIR"));
	FILE *log = fopen(file, "a+");
	if (!log)
		return 1;
	int before = 0;
	for (int c; (c = fgetc(log)) != EOF;)
		before += c == '\n';
	fprintf(log, "%d", (int)getpid());
	for (int i = 1; i < argc; i++) {
		fprintf(log, " %s", argv[i]);
		way = strcmp(argv[i - 1], "-L") == 0 ? argv[i] : way;
	}
	fprintf(log, "\n");
	fclose(log);
	if (!strcmp(mode, "unknown"))
		return say("Host key verification failed.\r\n", 255);
	if (!strcmp(mode, "unreachable"))
		return say("ssh: connect to host far port 22: Connection refused\r\n", 255);
	if (!strcmp(mode, "deny"))
		return say("Warning: a key was added\ndev@far: Permission denied (publickey).\n",
			   255);
	if (!strcmp(mode, "no docker") && !way)
		return say("sh: 1: docker: not found\n", 127);
	if (!strcmp(mode, "second breaks") && before == 1) {
		pump(STDIN_FILENO, STDOUT_FILENO, connect_to(target));
		return say("client_loop: send disconnect: Broken pipe\r\n", 255);
	}
	if (!strcmp(mode, "stubborn"))
		signal(SIGTERM, SIG_IGN);
	return way ? forward(way, target) : pump(STDIN_FILENO, STDOUT_FILENO, connect_to(target));
}

/* ---- what is shared ---- */

struct world {
	char dir[64];
	struct fake_engine *f;
	struct sba_engine *e;
};

static int prepare(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char path[128], self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(w && n > 0);
	self[n] = '\0';
	test_folder(w->dir, sizeof(w->dir), "engine-ssh");
	snprintf(path, sizeof(path), "%s/ssh", w->dir);
	assert_int_equal(symlink(self, path), 0);
	setenv("PATH", w->dir, 1);
	setenv("FAKE_SSH_DIR", w->dir, 1);
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;
	test_folder_remove(w->dir);
	free(w);
	return 0;
}

static int open_engine(struct world *w, const char *mode, const char *host,
		       const struct fake_exchange *x, size_t n, struct sba_error *err)
{
	w->f = fake_engine_start("1.41", x, n);
	setenv("FAKE_SSH", mode, 1);
	setenv("FAKE_SSH_TARGET", fake_engine_host(w->f) + strlen("unix://"), 1);
	struct sba_engine_options o = { .host = host };
	return sba_engine_open(&o, &w->e, err);
}

/* Every ssh that was started has ended and was collected. */
static void end(struct world *w)
{
	sba_engine_close(w->e);
	fake_engine_stop(w->f);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* What the ssh was called with, one a line. */
static char *calls(const struct world *w)
{
	char path[128];
	struct sba_buf b = SBA_BUF_INIT(65536);
	struct sba_error err;
	snprintf(path, sizeof(path), "%s/called", w->dir);
	assert_int_equal(sba_read_file(path, 65536, &b, &err), 0);
	return sba_buf_take(&b);
}

static void inspect(struct world *w)
{
	struct sba_error err = { 0 };
	json_t *j = NULL;
	int rc = sba_container_inspect(w->e, "c", sba_until_in(20000), &j, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	json_decref(j);
}

#define INSPECT                                                                                    \
	{                                                                                          \
		.method = "GET", .path = "/containers/c/json ",                                    \
		.answer = FAKE_ANSWER("200 OK", "{\"Id\":\"c\"}"), .then = FAKE_CLOSE              \
	}

/* ---- tests ---- */

static void docker_at_the_other_end_carries_each_connection(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	const struct fake_exchange x[] = { INSPECT };
	assert_int_equal(open_engine(w, "dial", "ssh://dev@far:2222/run/my.sock", x, 1, &err), 0);
	inspect(w);
	SBA_FREE char *seen = calls(w);
	assert_non_null(strstr(seen, " -l dev -p 2222 -- far docker --host unix:///run/my.sock "
				     "system dial-stdio\n"));
	assert_non_null(strstr(seen, " BatchMode="));
	assert_non_null(strstr(seen, " -T "));
	end(w);
}

static void the_default_socket_is_left_to_the_docker_over_there(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "dial", "ssh://far/", NULL, 0, &err), 0);
	SBA_FREE char *seen = calls(w);
	assert_non_null(strstr(seen, " -- far docker system dial-stdio\n"));
	assert_null(strstr(seen, " -l "));
	assert_null(strstr(seen, " -p "));
	end(w);
}

static void an_exec_hears_the_end_of_its_input(void **state)
{
	struct world *w = *state;
	static const char *const argv[] = { "cat", NULL };
	static const char upgraded[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"
				       "Upgrade: tcp\r\n\r\n";
	static const char output[] = "\1\0\0\0\0\0\0\5hello";
	const struct fake_exchange x[] = {
		{ .method = "POST",
		  .path = "/containers/c/exec ",
		  .answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"),
		  .then = FAKE_CLOSE },
		{ .method = "POST",
		  .path = "/exec/feed/start ",
		  .answer = upgraded,
		  .after = output,
		  .after_len = sizeof(output) - 1,
		  .then = FAKE_SWALLOW },
	};
	struct sba_exec_spec spec = { .container = "c", .argv = argv };
	struct sba_error err = { 0 };
	struct sba_exec *exec = NULL;
	enum sba_exec_stream which;
	const char *data;
	assert_int_equal(open_engine(w, "dial", "ssh://far", x, 2, &err), 0);
	assert_int_equal(sba_exec_open(w->e, &spec, sba_until_in(20000), &exec, &err), 0);
	assert_int_equal(sba_exec_write(exec, "input", 5, &err), 5);
	sba_exec_shutdown(exec);
	assert_int_equal(sba_exec_read(exec, &which, &data, sba_until_in(20000), &err), 5);
	assert_memory_equal(data, "hello", 5);
	assert_int_equal(sba_exec_read(exec, &which, &data, sba_until_in(20000), &err), 0);
	assert_int_equal(fake_engine_swallowed(w->f), 5);
	sba_exec_close(exec);
	end(w);
}

static void what_ssh_says_is_in_the_error(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "deny", "ssh://dev@far", NULL, 0, &err), SBA_ECONNECT);
	assert_string_equal(err.text,
			    "no engine answers at ssh://dev@far: ssh: dev@far: Permission "
			    "denied (publickey).");
	assert_non_null(strstr(err.hint, "ssh-add"));
	assert_non_null(strstr(err.hint, "ssh -l dev far docker version"));
	end(w);
}

static void an_unknown_host_is_to_be_asked_about_by_hand(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "unknown", "ssh://far/run/x.sock", NULL, 0, &err),
			 SBA_ECONNECT);
	assert_string_equal(err.text, "no engine answers at ssh://far/run/x.sock: ssh: Host key "
				      "verification failed.");
	assert_non_null(strstr(err.hint, "by hand ssh asks"));
	assert_non_null(strstr(err.hint, "ssh far docker --host unix:///run/x.sock version"));
	end(w);
}

static void a_host_that_cannot_be_reached_is_said_once(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "unreachable", "ssh://far", NULL, 0, &err), SBA_ECONNECT);
	assert_string_equal(err.text, "no engine answers at ssh://far: ssh: connect to host far "
				      "port 22: Connection refused");
	end(w);
}

/* An orderly end of the bytes alone would look like an answer that is over. */
static void a_connection_whose_ssh_fails_is_lost(void **state)
{
	struct world *w = *state;
	static const char *const argv[] = { "cat", NULL };
	static const char upgraded[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"
				       "Upgrade: tcp\r\n\r\n";
	const struct fake_exchange x[] = {
		{ .method = "POST",
		  .path = "/containers/c/exec ",
		  .answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"),
		  .then = FAKE_CLOSE },
		{ .method = "POST",
		  .path = "/exec/feed/start ",
		  .answer = upgraded,
		  .then = FAKE_CLOSE },
	};
	struct sba_exec_spec spec = { .container = "c", .argv = argv };
	struct sba_error err = { 0 };
	struct sba_exec *exec = NULL;
	enum sba_exec_stream which;
	const char *data;
	assert_int_equal(open_engine(w, "second breaks", "ssh://far", x, 2, &err), 0);
	assert_int_equal(sba_exec_open(w->e, &spec, sba_until_in(20000), &exec, &err), 0);
	assert_int_equal(sba_exec_read(exec, &which, &data, sba_until_in(20000), &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "ssh://far broke: ssh: client_loop: send disconnect"));
	sba_exec_close(exec);
	end(w);
}

static void without_an_ssh_program_that_is_said(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(open_engine(w, "dial", "ssh://far", NULL, 0, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.text, "cannot run the ssh program"));
	end(w);
}

static void where_there_is_no_docker_program_its_socket_is_forwarded(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	const struct fake_exchange x[] = { INSPECT, INSPECT };
	assert_int_equal(open_engine(w, "no docker", "ssh://far/run/my.sock", x, 2, &err), 0);
	inspect(w);
	inspect(w);
	SBA_FREE char *seen = calls(w);
	const char *way = strstr(seen, "-L ");
	assert_non_null(way);
	assert_non_null(strstr(way, ":/run/my.sock "));
	char *folder = strndup(way + 3, strcspn(way + 3, ":") - strlen("/engine"));
	assert_int_equal(access(folder, F_OK), 0);
	end(w);
	assert_int_equal(access(folder, F_OK), -1);
	free(folder);
}

static void what_a_killed_client_left_of_a_forward_is_swept(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	char left[] = "/tmp/sandbox-agent-ssh.XXXXXX", fresh[] = "/tmp/sandbox-agent-ssh.XXXXXX";
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	assert_true(mkdtemp(left) && mkdtemp(fresh));
	assert_int_equal(utimensat(AT_FDCWD, left, old, 0), 0);
	assert_int_equal(open_engine(w, "no docker", "ssh://far", NULL, 0, &err), 0);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(rmdir(fresh), 0);
	end(w);
}

static void an_ssh_that_does_not_want_to_end_is_ended(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	const struct fake_exchange x[] = { INSPECT };
	assert_int_equal(open_engine(w, "stubborn", "ssh://far", x, 1, &err), 0);
	inspect(w);
	end(w);
}

static bool is_gone(pid_t pid)
{
	char path[64], state = 'Z';
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	if (f)
		fclose(f);
	return state == 'Z';
}

static void kill_9_of_us_ends_every_ssh(void **state)
{
	struct world *w = *state;
	int ready[2];
	char byte;
	w->f = fake_engine_start("1.41", NULL, 0);
	setenv("FAKE_SSH", "dial", 1);
	setenv("FAKE_SSH_TARGET", fake_engine_host(w->f) + strlen("unix://"), 1);
	assert_int_equal(pipe(ready), 0);
	pid_t client = fork();
	if (client == 0) {
		struct sba_engine_options o = { .host = "ssh://far" };
		struct sba_error err;
		if (sba_engine_open(&o, &w->e, &err) == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	SBA_FREE char *seen = calls(w);
	pid_t ssh = (pid_t)strtol(seen, NULL, 10);
	assert_false(is_gone(ssh));
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	struct sba_until until = sba_until_in(10000);
	while (!is_gone(ssh) && sba_until_check(until, NULL) == 0)
		assert_int_equal(sba_wait_fd(-1, 0, sba_until_in(5), NULL), SBA_ETIMEOUT);
	assert_true(is_gone(ssh));
	w->e = NULL;
	end(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, drop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(docker_at_the_other_end_carries_each_connection),
		TEST(the_default_socket_is_left_to_the_docker_over_there),
		TEST(an_exec_hears_the_end_of_its_input),
		TEST(what_ssh_says_is_in_the_error),
		TEST(an_unknown_host_is_to_be_asked_about_by_hand),
		TEST(a_host_that_cannot_be_reached_is_said_once),
		TEST(a_connection_whose_ssh_fails_is_lost),
		TEST(without_an_ssh_program_that_is_said),
		TEST(where_there_is_no_docker_program_its_socket_is_forwarded),
		TEST(what_a_killed_client_left_of_a_forward_is_swept),
		TEST(an_ssh_that_does_not_want_to_end_is_ended),
		TEST(kill_9_of_us_ends_every_ssh),
	};
	if (getenv("FAKE_SSH_DIR") && strcmp(argv[0], "ssh") == 0)
		return be_ssh(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
