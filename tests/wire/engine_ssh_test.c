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
#include <sys/prctl.h>
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

static int say(const char *words, int status)
{
	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		return 1;
	return status;
}

/* As the real one with -L and `cat` at the other end. A connection goes with it. */
static int forward(const char *way, const char *target, const char *refusal)
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
	while (poll(p, 2, -1) > 0 && (!p[1].revents || carry(STDIN_FILENO, STDOUT_FILENO))) {
		if (!p[0].revents)
			continue;
		int fd = accept(listener, NULL, NULL);
		int engine = refusal ? -1 : connect_to(target);
		pid_t us = getpid();
		if (engine < 0)
			say(refusal ? refusal
				    : "channel 2: open failed: connect failed: open failed\r\n",
			    0);
		else if (fork() == 0) {
			close(listener);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(getppid() == us ? pump(fd, fd, engine) : 1);
		}
		close(fd);
		close(engine);
	}
	return 0;
}

/* What a row of the table below makes it say, and how it ends. */
static int fail_as_told(const char *mode)
{
	static const struct {
		const char *mode, *words;
		int status;
	} known[] = {
		{ "unknown", "Host key verification failed.\r\n", 255 },
		{ "unreachable", "ssh: connect to host far port 22: Connection refused\r\n", 255 },
		{ "deny", "Warning: a key was added\ndev@far: Permission denied (publickey).\n",
		  255 },
		{ "crowd", "kex_exchange_identification: read: Connection reset by peer\r\n", 255 },
		{ "silent", "", 255 },
		{ "no engine", "dial unix /run/x.sock: connect: connection refused\n", 1 },
		{ "no right", "dial unix /run/x.sock: connect: permission denied\n", 1 },
		{ "no docker", "sh: 1: docker: not found\n", 127 },
		{ "no way", "sh: 1: docker: not found\n", 127 },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strcmp(mode, known[i].mode) == 0)
			return say(known[i].words, known[i].status);
	}
	return -1;
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
	int failed = way ? -1 : fail_as_told(mode);
	if (failed >= 0)
		return failed;
	bool second = before == 1;
	if (second && (!strcmp(mode, "ssh breaks") || !strcmp(mode, "docker breaks"))) {
		pump(STDIN_FILENO, STDOUT_FILENO, connect_to(target));
		return mode[0] == 's' ? say("client_loop: send disconnect: Broken pipe\r\n", 255)
				      : say("read unix @->/run/x: connection reset by peer\n", 1);
	}
	if (!strcmp(mode, "stubborn"))
		signal(SIGTERM, SIG_IGN);
	if (way)
		return forward(way, target,
			       strcmp(mode, "no way") ? NULL
						      : "channel 2: open failed: administratively "
							"prohibited: open failed\r\n");
	return pump(STDIN_FILENO, STDOUT_FILENO, connect_to(target));
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
	if (w->f)
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

#define UPGRADED                                                                                   \
	"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"                                         \
	"Upgrade: tcp\r\n\r\n"
#define HELLO "\1\0\0\0\0\0\0\5hello"
static const char upgraded[] = UPGRADED, hello[] = HELLO, upgraded_hello[] = UPGRADED HELLO;

#define CREATE_EXEC                                                                                \
	{                                                                                          \
		.method = "POST", .path = "/containers/c/exec ",                                   \
		.answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\"}"), .then = FAKE_CLOSE      \
	}
/* Says hello and closes, or hears its input out before. */
#define START_HELLO                                                                                \
	{                                                                                          \
		.method = "POST", .path = "/exec/feed/start ", .answer = upgraded_hello,           \
		.answer_len = sizeof(upgraded_hello) - 1, .then = FAKE_CLOSE                       \
	}
#define START_CAT                                                                                  \
	{                                                                                          \
		.method = "POST", .path = "/exec/feed/start ", .answer = upgraded, .after = hello, \
		.after_len = sizeof(hello) - 1, .then = FAKE_SWALLOW                               \
	}

static struct sba_exec *start_cat(struct world *w)
{
	static const char *const argv[] = { "cat", NULL };
	struct sba_exec_spec spec = { .container = "c", .argv = argv };
	struct sba_error err = { 0 };
	struct sba_exec *exec = NULL;
	if (sba_exec_open(w->e, &spec, sba_until_in(20000), &exec, &err) < 0)
		fail_msg("%s", err.text);
	return exec;
}

/* 0 at its end. */
static ssize_t read_exec(struct sba_exec *exec, struct sba_error *err)
{
	enum sba_exec_stream which;
	const char *data;
	return sba_exec_read(exec, &which, &data, sba_until_in(20000), err);
}

static void an_exec_hears_the_end_of_its_input(void **state)
{
	struct world *w = *state;
	const struct fake_exchange x[] = { CREATE_EXEC, START_CAT };
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "dial", "ssh://far", x, 2, &err), 0);
	struct sba_exec *exec = start_cat(w);
	assert_int_equal(sba_exec_write(exec, "input", 5, &err), 5);
	sba_exec_shutdown(exec);
	assert_int_equal(read_exec(exec, &err), 5);
	assert_int_equal(read_exec(exec, &err), 0);
	assert_int_equal(fake_engine_swallowed(w->f), 5);
	sba_exec_close(exec);
	end(w);
}

/* ---- what goes wrong ---- */

#define FAR "no engine answers at ssh://dev@far/run/x.sock: "

/* Which of the two has failed, ssh or the engine behind it, and what to do. */
static void who_has_failed_is_told_with_what_to_do(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *mode, *text, *hint, *by_hand;
	} rows[] = {
		{ "unknown", FAR "ssh: Host key verification failed.", "by hand ssh asks",
		  "ssh -l dev far docker --host unix:///run/x.sock version" },
		{ "unreachable", FAR "ssh: connect to host far port 22: Connection refused",
		  "try it by hand", "ssh -l dev far docker --host unix:///run/x.sock version" },
		{ "deny", FAR "ssh: dev@far: Permission denied (publickey).", "ssh-add",
		  "ssh -l dev far docker" },
		{ "crowd", FAR "ssh: kex_exchange_identification: read: Connection reset by peer",
		  "ControlMaster", "ssh -l dev far docker" },
		{ "silent", FAR "ssh: it ended without a word", "try it by hand",
		  "ssh -l dev far docker" },
		{ "no engine",
		  FAR "docker there: dial unix /run/x.sock: connect: connection refused",
		  "start it there", "ssh -l dev far sudo systemctl start docker" },
		{ "no right", FAR "docker there: dial unix /run/x.sock: connect: permission denied",
		  "usermod -aG docker", "ssh -l dev far docker" },
		{ "no way",
		  FAR
		  "/run/x.sock there takes no connection: administratively prohibited: open failed",
		  "AllowStreamLocalForwarding", "ssh -l dev far true" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		struct sba_error err = { 0 };
		assert_int_equal(
			open_engine(w, rows[i].mode, "ssh://dev@far/run/x.sock", NULL, 0, &err),
			SBA_ECONNECT);
		assert_string_equal(err.text, rows[i].text);
		assert_non_null(strstr(err.hint, rows[i].hint));
		assert_non_null(strstr(err.hint, rows[i].by_hand));
		end(w);
	}
}

/* The ssh that forwards lives: it is the engine that does not. */
static void a_forwarded_socket_without_an_engine_is_the_engines_end(void **state)
{
	struct world *w = *state;
	struct sba_error err = { 0 };
	json_t *j = NULL;
	assert_int_equal(open_engine(w, "no docker", "ssh://far/run/x.sock", NULL, 0, &err), 0);
	fake_engine_stop(w->f);
	assert_int_equal(sba_container_inspect(w->e, "c", sba_until_in(20000), &j, &err),
			 SBA_ECONNECT);
	assert_string_equal(err.text, "no engine answers at ssh://far/run/x.sock: /run/x.sock "
				      "there takes no connection: connect failed: open failed");
	assert_non_null(strstr(err.hint, "ssh far sudo systemctl start docker"));
	w->f = NULL;
	end(w);
}

/* An orderly end of the bytes alone would look like an answer that is over. */
static void lost_in_the_middle(struct world *w, const char *mode, const char *words)
{
	const struct fake_exchange x[] = { CREATE_EXEC, START_HELLO };
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, mode, "ssh://far", x, 2, &err), 0);
	struct sba_exec *exec = start_cat(w);
	assert_int_equal(read_exec(exec, &err), 5);
	assert_int_equal(read_exec(exec, &err), SBA_ELOST);
	assert_non_null(strstr(err.text, words));
	sba_exec_close(exec);
	end(w);
}

static void a_connection_whose_ssh_fails_is_lost(void **state)
{
	lost_in_the_middle(*state, "ssh breaks", "ssh://far broke: ssh: client_loop: send disc");
}

static void a_connection_that_docker_there_lost_is_told_as_such(void **state)
{
	lost_in_the_middle(*state, "docker breaks",
			   "ssh://far broke: docker there: read unix @->/run/x: connection reset");
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

/* The pid of the ssh that was called last. */
static pid_t last_ssh(const struct world *w)
{
	SBA_FREE char *seen = calls(w);
	seen[strlen(seen) - 1] = '\0';
	const char *line = strrchr(seen, '\n');
	return (pid_t)strtol(line ? line + 1 : seen, NULL, 10);
}

static void a_stream_by_a_forward_that_lives_ends_in_order(void **state)
{
	struct world *w = *state;
	const struct fake_exchange x[] = { CREATE_EXEC, START_HELLO };
	struct sba_error err = { 0 };
	assert_int_equal(open_engine(w, "no docker", "ssh://far", x, 2, &err), 0);
	struct sba_exec *exec = start_cat(w);
	assert_int_equal(read_exec(exec, &err), 5);
	assert_int_equal(read_exec(exec, &err), 0);
	sba_exec_close(exec);
	end(w);
}

static void streams_whose_forward_goes_are_lost_and_the_next_begins_another(void **state)
{
	struct world *w = *state;
	const struct fake_exchange x[] = { CREATE_EXEC, START_CAT, CREATE_EXEC, START_CAT,
					   INSPECT };
	struct sba_error err = { 0 };
	struct sba_exec *execs[2];
	assert_int_equal(open_engine(w, "no docker", "ssh://far", x, 5, &err), 0);
	execs[0] = start_cat(w);
	execs[1] = start_cat(w);
	kill(last_ssh(w), SIGKILL);
	assert_int_equal(read_exec(execs[0], &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "ssh://far broke: ssh: it was killed"));
	inspect(w);
	/* Nor does the new one speak for what the old one carried. */
	assert_int_equal(read_exec(execs[1], &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "ssh://far broke: ssh: "));
	sba_exec_close(execs[0]);
	sba_exec_close(execs[1]);
	end(w);
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
		TEST(who_has_failed_is_told_with_what_to_do),
		TEST(a_forwarded_socket_without_an_engine_is_the_engines_end),
		TEST(a_connection_whose_ssh_fails_is_lost),
		TEST(a_connection_that_docker_there_lost_is_told_as_such),
		TEST(without_an_ssh_program_that_is_said),
		TEST(where_there_is_no_docker_program_its_socket_is_forwarded),
		TEST(a_stream_by_a_forward_that_lives_ends_in_order),
		TEST(streams_whose_forward_goes_are_lost_and_the_next_begins_another),
		TEST(what_a_killed_client_left_of_a_forward_is_swept),
		TEST(an_ssh_that_does_not_want_to_end_is_ended),
		TEST(kill_9_of_us_ends_every_ssh),
	};
	if (getenv("FAKE_SSH_DIR") && strcmp(argv[0], "ssh") == 0)
		return be_ssh(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
