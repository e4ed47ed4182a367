/* SPDX-License-Identifier: MIT */
/*
 * An engine that is killed and comes back: one that this test starts for itself,
 * in namespaces of its own, so that nobody else's is harmed and all of it ends
 * with the test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/protocol.h"
#include "support/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 60 * 1000, LOAD_MS = 100 * 1000, ENGINE_LOST = 3 };

#define FAKE_TURN "--offline", "--image", live_fake_image(), "--network", "sealed"

extern char **environ;

/* Its keeper is PID 1 of a namespace: when our end of its stdin closes, however
 * that comes about, the kernel ends everything in it. */
static struct {
	char dir[48], socket[80], host[96], cgroup[48];
	pid_t keeper;
	int orders;
} own;

/* A default bridge in the host's own network namespace would be the first
 * engine's: hence one of its own. */
static const char keeper[] =
	"ip link set lo up; while read -r order; do case $order in "
	"start) dockerd --data-root $1/data --exec-root $1/exec --pidfile $1/pid -H unix://$2 "
	"--cgroup-parent $3 >>$1/log 2>&1 & pid=$! ;; "
	"kill) kill -9 $pid; wait $pid ;; esac; done";

static void order(const char *what)
{
	assert_int_equal(sba_write_all(own.orders, what, strlen(what), NULL), 0);
}

static bool answers(void *user)
{
	(void)user;
	struct sba_engine *e = NULL;
	const struct sba_engine_options o = { .host = own.host };
	if (sba_engine_open(&o, &e, NULL) < 0)
		return false;
	const struct sba_engine_info *info;
	int rc = sba_engine_info(e, &info, NULL);
	sba_engine_close(e);
	return rc == 0;
}

static bool silent(void *user)
{
	return !answers(user);
}

static void engine_start(void)
{
	order("start\n");
	live_await(answers, NULL, START_MS);
}

static void engine_kill(void)
{
	order("kill\n");
	live_await(silent, NULL, 10000);
}

static int hire_keeper(void)
{
	int in[2];
	posix_spawn_file_actions_t actions;
	const char *const argv[] = { "unshare", "--mount",      "--net",        "--pid",
				     "--fork",  "--kill-child", "--mount-proc", "--propagation",
				     "private", "sh",           "-c",           keeper,
				     "keeper",  own.dir,        own.socket,     own.cgroup,
				     NULL };
	if (pipe2(in, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	int e = posix_spawnp(&own.keeper, "unshare", &actions, NULL, (char **)(uintptr_t)argv,
			     environ);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	own.orders = in[1];
	return e ? -1 : 0;
}

/* ---- its images ---- */

struct copying {
	struct sba_body *body;
	struct sba_until until;
};

static ssize_t read_body(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct copying *c = user;
	return sba_body_read(c->body, buf, size, c->until, err);
}

static int copy_image(struct sba_engine *from, struct sba_engine *to, const char *ref,
		      struct sba_error *err)
{
	struct copying c = { .until = sba_until_in(LOAD_MS) };
	struct sba_body *answer = NULL;
	char path[300], piece[4096];
	snprintf(path, sizeof(path), "/images/%s/get", ref);
	const struct sba_request get = { .method = "GET", .path = path, .tried = "save" };
	const struct sba_request put = { .method = "POST",
					 .path = "/images/load",
					 .tried = "load" };
	int rc = sba_engine_stream(from, &get, NULL, NULL, NULL, c.until, &c.body, err);
	if (rc < 0)
		return rc;
	rc = sba_engine_stream(to, &put, "application/x-tar", read_body, &c, c.until, &answer, err);
	ssize_t n = rc;
	while (rc == 0 && (n = sba_body_read(answer, piece, sizeof(piece), c.until, err)) > 0)
		;
	if (rc == 0)
		sba_body_close(answer);
	sba_body_close(c.body);
	return n < 0 ? (int)n : 0;
}

static int bring_image(struct sba_error *err)
{
	static const char ref[] = "sandbox-agent:debian-bookworm-local";
	const char *asked = getenv("SANDBOX_AGENT_TEST_IMAGE");
	const struct sba_engine_options o = { .host = own.host };
	struct sba_engine *from = NULL, *to = NULL;
	int rc = sba_engine_open(NULL, &from, err);
	if (rc == 0)
		rc = sba_engine_open(&o, &to, err);
	if (rc == 0)
		rc = copy_image(from, to, asked && *asked ? asked : ref, err);
	sba_engine_close(from);
	sba_engine_close(to);
	return rc;
}

/* ---- the fixture ---- */

static int remove_node(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	remove(path);
	return 0;
}

static int remove_cgroup(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (kind == FTW_DP)
		rmdir(path);
	return 0;
}

static int begin(void **state)
{
	struct sba_error err = { 0 };
	char hex[9];
	const char *word = getenv("SBA_TEST_WORD");
	alarm(2 * LOAD_MS / 1000);
	word = word && *word ? word : "sbafault";
	snprintf(own.dir, sizeof(own.dir), "/tmp/%.12s-XXXXXX", word);
	if (!mkdtemp(own.dir) || sba_random_hex(hex, 4, &err) < 0)
		return -1;
	snprintf(own.socket, sizeof(own.socket), "%s/engine.sock", own.dir);
	snprintf(own.host, sizeof(own.host), "unix://%s", own.socket);
	snprintf(own.cgroup, sizeof(own.cgroup), "/%.12s-%s", word, hex);
	if (hire_keeper() < 0)
		return -1;
	engine_start();
	if (bring_image(&err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	/* From here on it is the only one: for the fixture, its janitor, the program. */
	setenv("DOCKER_HOST", own.host, 1);
	return live_begin(state);
}

static int end(void **state)
{
	glob_t groups;
	char pattern[96];
	int rc = live_end(state);
	close(own.orders);
	waitpid(own.keeper, NULL, 0);
	nftw(own.dir, remove_node, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup/*%s", own.cgroup);
	if (glob(pattern, 0, NULL, &groups) == 0) {
		for (size_t i = 0; i < groups.gl_pathc; i++)
			nftw(groups.gl_pathv[i], remove_cgroup, 16, FTW_DEPTH | FTW_PHYS);
		globfree(&groups);
	}
	return rc;
}

/* ---- what is left, without asking an engine ---- */

/* Of one of our engine's containers: others may run the same. */
static bool is_of_our_engine(const char *cmdline)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "%.*s/cgroup", (int)(strrchr(cmdline, '/') - cmdline),
		 cmdline);
	SBA_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	return strstr(text, own.cgroup) != NULL;
}

/* Processes whose command line begins with it. */
static size_t processes_with(const char *line)
{
	size_t n = 0;
	glob_t files;
	assert_int_equal(glob("/proc/[0-9]*/cmdline", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		char text[256];
		SBA_CLOSE int fd = open(files.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		for (ssize_t at = 0; at < len - 1; at++)
			text[at] = text[at] ? text[at] : ' ';
		text[len > 0 ? len : 0] = '\0';
		n += sba_starts_with(text, line) && is_of_our_engine(files.gl_pathv[i]);
	}
	globfree(&files);
	return n;
}

static bool no_command(void *user)
{
	return processes_with(user) == 0;
}

static bool a_command(void *user)
{
	return processes_with(user) > 0;
}

#define COMMAND_OF_STUBBORN "sleep 4244"
#define REAPER              SBA_GUEST_PATH " reaper --keepalive 3 "

static void start_turn(struct live_child *c, const char *keepalive)
{
	const char *const argv[] = { "run",     "claude",   FAKE_TURN, "--keepalive",
				     keepalive, "stubborn", NULL };
	live_start(c, &(struct live_start){ .argv = argv });
	live_child_await(c, "working", 60000);
	live_await(a_command, (void *)COMMAND_OF_STUBBORN, 10000);
}

/* ---- tests ---- */

static void a_turn_is_told_that_its_engine_went_and_the_host_is_clean(void **state)
{
	(void)state;
	LIVE_CHILD c;
	start_turn(&c, "3s");
	engine_kill();
	live_child_end(&c, 60000);
	live_assert_says(&c, ENGINE_LOST, "engine");
	assert_null(strstr(c.err.data, "nothing is left running"));
	engine_start();
	live_await_no_containers(30000);
	assert_int_equal(processes_with(COMMAND_OF_STUBBORN), 0);
}

/* No engine is needed for a sandbox to end. */
static void a_sandbox_ends_itself_while_the_engine_is_away(void **state)
{
	(void)state;
	LIVE_CHILD c;
	size_t before = processes_with(REAPER);
	start_turn(&c, "3s");
	assert_int_equal(processes_with(REAPER), before + 1);
	engine_kill();
	/* Its containers' shims keep the streams open: only the silence tells. */
	live_await(no_command, (void *)COMMAND_OF_STUBBORN, SBA_CHANNEL_GUEST_SILENCE_MS + 15000);
	int64_t deadline = sba_now_ms() + 15000;
	while (processes_with(REAPER) > before) {
		assert_true(sba_now_ms() < deadline);
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
	}
	live_child_end(&c, 60000);
	engine_start();
	live_await_no_containers(30000);
}

static void a_command_is_told_that_its_engine_went(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .network = "sealed", .keepalive_ms = 3000 });
	const char *const argv[] = { "sh", "-c", "echo begun; sleep 4246", NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	struct sba_exit how;
	enum sba_output which;
	const char *data;
	assert_int_equal(sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err),
			 0);
	assert_int_equal(sba_process_read(p, 30000, &which, &data, &err), 6);
	engine_kill();
	int rc = sba_process_wait(p, 30000, &how, &err);
	if (rc != SBA_ELOST && rc != SBA_ECONNECT)
		fail_msg("%d: %s", rc, err.text);
	/* A new one is refused as well, with the engine named. */
	struct sba_process *none = NULL;
	rc = sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &none, &err);
	if (rc != SBA_ELOST && rc != SBA_ECONNECT)
		fail_msg("%d: %s", rc, err.text);
	sba_process_free(p);
	sba_sandbox_close(s);
	engine_start();
	live_await(no_command, (void *)"sleep 4246", 15000);
	live_await_no_containers(30000);
}

static void an_idle_sandbox_is_gone_after_a_restart_and_that_is_said(void **state)
{
	(void)state;
	LIVE_CHILD up, c;
	RUN(&up, "up", "claude", FAKE_TURN, "--name", "restarted");
	live_assert_says(&up, 0, NULL);
	engine_kill();
	engine_start();
	live_await_no_containers(30000);
	RUN(&c, "exec", "restarted", "--", "true");
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, "restarted");
}

struct creation {
	pthread_t thread;
	int rc;
	struct sba_error err;
};

static void *create_one(void *user)
{
	struct creation *c = user;
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = live.image,
					       .network = "sealed",
					       .keepalive_ms = 3000 };
	c->rc = sba_engine_open(NULL, &e, &c->err);
	if (c->rc == 0)
		c->rc = sba_sandbox_create(e, &o, &s, &c->err);
	sba_sandbox_close(s);
	sba_engine_close(e);
	return NULL;
}

static bool first_is_there(void *user)
{
	(void)user;
	return live_container_count() > 0;
}

static bool swept(void *user)
{
	(void)user;
	struct sba_error err = { 0 };
	assert_int_equal(sba_gc(live.engine, live.prefix, NULL, &err), 0);
	return live_container_count() == 0;
}

static void an_engine_that_goes_in_the_middle_of_a_creation_leaves_nothing(void **state)
{
	(void)state;
	struct creation c = { 0 };
	assert_int_equal(pthread_create(&c.thread, NULL, create_one, &c), 0);
	live_await(first_is_there, NULL, 20000);
	engine_kill();
	pthread_join(c.thread, NULL);
	/* It may just have been done. */
	if (c.rc < 0 && c.rc != SBA_ELOST && c.rc != SBA_ECONNECT)
		fail_msg("%d: %s", c.rc, c.err.text);
	engine_start();
	live_await(swept, NULL, 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_turn_is_told_that_its_engine_went_and_the_host_is_clean),
		LIVE_TEST(a_sandbox_ends_itself_while_the_engine_is_away),
		LIVE_TEST(a_command_is_told_that_its_engine_went),
		LIVE_TEST(an_idle_sandbox_is_gone_after_a_restart_and_that_is_said),
		LIVE_TEST(an_engine_that_goes_in_the_middle_of_a_creation_leaves_nothing),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, end);
}
