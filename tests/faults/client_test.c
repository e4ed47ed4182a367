/* SPDX-License-Identifier: MIT */
/*
 * Clients that die: killed at random instants of what they do, stopped, their
 * terminal closed. Seconds later no command of theirs runs; within the keepalive
 * nothing that they started is left, on the engine or here.
 * SBA_FAULT_SEED repeats a run, SBA_FAULT_KILLS sets how many instants.
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
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	KILLS = 100,
	KEEPALIVE_S = 4,
	COMMAND_END_MS = 12 * 1000, /* a grace, a KILL, a machine with other work */
	LAG_MS = 15 * 1000,
	ROUND_S = 900,
	PAYLOAD = 48 * 1024 * 1024,
};

#define BOX    "deathbed"
#define PARENT "parent"
/* What every command of these clients is in the end; nobody else sleeps so long. */
#define COMMAND "sleep 4244"

static unsigned seed;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
}

static unsigned from_env(const char *name, unsigned otherwise)
{
	int64_t n;
	const char *text = getenv(name);
	return text && sba_parse_int(text, 0, INT32_MAX, &n) == 0 ? (unsigned)n : otherwise;
}

/* ---- what clients do ---- */

static char keepalive[16], box_path[64], from_box[160];
static const char *big_file, *landing;

#define STUBBORN "trap '' TERM HUP INT; setsid " COMMAND " & setsid setsid " COMMAND "; " COMMAND

static const char *const *argv_of(unsigned kind)
{
	static const char *argv[24];
	const char *const run[] = { "run",     "claude",          "--offline",
				    "--image", live_fake_image(), "--keepalive",
				    keepalive, "stubborn",        NULL };
	const char *const up[] = {
		"up",          "claude",  "--offline", "--image", live_fake_image(),
		"--keepalive", keepalive, NULL
	};
	const char *const exec[] = { "exec", BOX, "--", "sh", "-c", STUBBORN, NULL };
	const char *const cp_in[] = { "cp", big_file, box_path, NULL };
	const char *const cp_out[] = { "cp", from_box, landing, NULL };
	const char *const chat[] = { "chat", BOX, "stubborn", NULL };
	const char *const *const all[] = { run, up, exec, cp_in, cp_out, chat };
	size_t n = 0;
	for (const char *const *from = all[kind]; *from; from++)
		argv[n++] = *from;
	argv[n] = NULL;
	return argv;
}

enum { PROGRAMS = 6, FORK = PROGRAMS, KINDS };

/* How long each takes on its own, so that every part of it is hit. */
static const unsigned lasts_ms[KINDS] = { 2500, 1200, 600, 500, 500, 800, 1500 };

/* There is no program for it: a client of the library. */
static pid_t start_fork(void)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct sba_engine *e = NULL;
	struct sba_sandbox *parent = NULL, *children[2];
	const struct sba_fork_options o = { .count = 2, .max_sandboxes = -1 };
	int rc = sba_engine_open(NULL, &e, NULL);
	if (rc == 0)
		rc = sba_sandbox_open(e, live.prefix, PARENT, &parent, NULL);
	if (rc == 0)
		rc = sba_sandbox_fork(parent, &o, children, NULL, NULL);
	_exit(rc < 0);
}

/* ---- what is left of them ---- */

static bool command_somewhere(void)
{
	size_t i;
	json_t *one;
	SBA_JSON json_t *list = live_containers();
	json_array_foreach(list, i, one)
	{
		if (live_runs_inside(sba_json_str(one, "Id"), COMMAND))
			return true;
	}
	return false;
}

static bool no_command(void *user)
{
	(void)user;
	return !command_somewhere();
}

static bool a_command(void *user)
{
	(void)user;
	return command_somewhere();
}

static bool only_the_boxes(void *user)
{
	(void)user;
	return live_container_count() == 4;
}

/* ---- volumes, which have no name of ours ---- */

static struct sba_strv volumes;

static void note_volumes(void)
{
	size_t i, k;
	json_t *one, *mount;
	SBA_JSON json_t *list = live_containers();
	json_array_foreach(list, i, one)
	{
		json_array_foreach(json_object_get(one, "Mounts"), k, mount)
		{
			const char *name = sba_json_str(mount, "Name");
			if (name)
				assert_int_equal(sba_strv_add(&volumes, name, NULL), 0);
		}
	}
}

static bool volume_is_there(const char *name)
{
	char path[256];
	struct sba_error err = { 0 };
	snprintf(path, sizeof(path), "/volumes/%.200s", name);
	struct sba_request r = { .method = "GET", .path = path, .tried = "volume" };
	return sba_engine_call(live.engine, &r, sba_until_in(30000), NULL, &err) != SBA_ENOTFOUND;
}

static void the_volumes_are_gone(void)
{
	assert_true(volumes.n > 0);
	for (size_t i = 0; i < volumes.n; i++)
		assert_false(volume_is_there(volumes.v[i]));
	sba_strv_fini(&volumes);
}

/* Names in a folder that are not these two. */
static bool is_one_of(const char *name, const char *const *known)
{
	while (*known && strcmp(name, *known) != 0)
		known++;
	return *known != NULL;
}

static size_t others_in(const char *path, const char *const *known)
{
	size_t n = 0;
	DIR *d = opendir(path);
	const struct dirent *e;
	assert_non_null(d);
	while ((e = readdir(d))) {
		if (is_one_of(e->d_name, known))
			continue;
		print_error("left in %s: %s\n", path, e->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static void kill_program(unsigned kind, unsigned ms)
{
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){ .argv = argv_of(kind) });
	pause_ms(ms);
	kill(c.pid, SIGKILL);
	live_child_end(&c, 10000);
}

static void kill_fork(unsigned ms)
{
	pid_t pid = start_fork();
	assert_true(pid > 0);
	pause_ms(ms);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void kill_one_at_random(unsigned kind)
{
	unsigned ms = below(lasts_ms[kind]);
	if (kind == FORK)
		kill_fork(ms);
	else
		kill_program(kind, ms);
	note_volumes();
	int64_t deadline = sba_now_ms() + COMMAND_END_MS;
	while (!no_command(NULL)) {
		if (sba_now_ms() > deadline)
			fail_msg("kind %u killed after %u ms: its command still runs", kind, ms);
		pause_ms(50);
	}
}

/* What was created and never started goes with a command of any kind. */
static void any_command(void)
{
	LIVE_CHILD c;
	RUN(&c, "image", "ls");
	live_assert_says(&c, 0, NULL);
}

static struct sba_sandbox *make_box(void)
{
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .name = BOX,
							   .agent = "claude",
							   .provider = "scripted",
							   .image = live_fake_image(),
							   .keepalive_ms = -1 });
	free(live_sh_out(s, "head -c 48000000 /dev/urandom >/tmp/big"));
	return s;
}

/* Its children have its keepalive; it lives on as long as we hold it. */
static struct sba_sandbox *make_parent(void)
{
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .name = PARENT, .keepalive_ms = KEEPALIVE_S * 1000 });
	free(live_sh_out(s, "head -c 8000000 /dev/urandom >/tmp/some"));
	return s;
}

static void prepare(void)
{
	static char big[128], land[128];
	snprintf(keepalive, sizeof(keepalive), "%ds", KEEPALIVE_S);
	snprintf(box_path, sizeof(box_path), "%s:/tmp/in", BOX);
	snprintf(from_box, sizeof(from_box), "%s:/tmp/big", BOX);
	snprintf(big, sizeof(big), "%s/big", live.dir);
	snprintf(land, sizeof(land), "%s/land", live.dir);
	big_file = big;
	landing = land;
	SBA_FREE char *data = calloc(1, PAYLOAD);
	assert_non_null(data);
	live_write_file(big_file, data, PAYLOAD, 0600);
	assert_int_equal(mkdir(landing, 0700), 0);
}

static void clients_killed_at_random_instants_leave_nothing(void **state)
{
	(void)state;
	unsigned kills = from_env("SBA_FAULT_KILLS", KILLS);
	seed = from_env("SBA_FAULT_SEED", (unsigned)sba_unix_ms() % 100000);
	print_message("SBA_FAULT_SEED=%u, %u kills\n", seed, kills);
	alarm(ROUND_S);
	prepare();
	struct sba_sandbox *box = make_box(), *parent = make_parent();
	for (unsigned i = 0; i < kills; i++)
		kill_one_at_random(i % KINDS);
	any_command();
	live_await(only_the_boxes, NULL, KEEPALIVE_S * 1000 + LAG_MS);
	assert_true(no_command(NULL));
	SBA_FREE char *inside =
		live_sh_out(box, "find / -xdev -name '*.sba-*' 2>/dev/null; ls -A /.sandbox-agent");
	assert_string_equal(inside, "guest\n");
	/* Whole or not at all. */
	struct stat st;
	char landed[160];
	snprintf(landed, sizeof(landed), "%s/big", landing);
	static const char *const landed_names[] = { ".", "..", "big", NULL };
	assert_int_equal(others_in(landing, landed_names), 0);
	if (stat(landed, &st) == 0)
		assert_int_equal(st.st_size, 48000000);
	/* "audit": what the clients have recorded stays. */
	static const char *const our_names[] = { ".", "..", "big", "land", "audit", NULL };
	assert_int_equal(others_in(live.dir, our_names), 0);
	live_remove(box);
	live_remove(parent);
	the_volumes_are_gone();
}

/* ---- stopped ---- */

static void a_stopped_client_counts_as_gone_and_says_so_when_it_goes_on(void **state)
{
	(void)state;
	LIVE_CHILD c;
	snprintf(keepalive, sizeof(keepalive), "%ds", KEEPALIVE_S);
	live_start(&c, &(struct live_start){ .argv = argv_of(0) });
	live_child_await(&c, "working", 60000);
	/* It says so a moment before. */
	live_await(a_command, NULL, 10000);
	kill(c.pid, SIGSTOP);
	live_await(no_command, NULL, SBA_CHANNEL_GUEST_SILENCE_MS + COMMAND_END_MS);
	live_await_no_containers(KEEPALIVE_S * 1000 + LAG_MS);
	kill(c.pid, SIGCONT);
	live_child_end(&c, 60000);
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, NULL);
	assert_true(c.err.len > 0);
}

static void a_stopped_client_of_a_sandbox_that_stays_is_told_why_it_counts_as_gone(void **state)
{
	(void)state;
	LIVE_CHILD c;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = BOX });
	live_start(&c, &(struct live_start){ .argv = argv_of(2) });
	live_await(a_command, NULL, 20000);
	kill(c.pid, SIGSTOP);
	live_await(no_command, NULL, SBA_CHANNEL_GUEST_SILENCE_MS + COMMAND_END_MS);
	kill(c.pid, SIGCONT);
	live_child_end(&c, 60000);
	live_assert_says(&c, 125, "this program stood still for");
	live_remove(s);
}

/* ---- the terminal ---- */

/* The program as the leader of a terminal of its own. */
static pid_t on_a_terminal(const char *const *args, int *ret_master)
{
	char path[4096];
	const char *argv[24] = { "sandbox-agent" };
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/sandbox-agent");
	for (size_t i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	pid_t pid = forkpty(ret_master, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0) {
		execv(path, (char **)(uintptr_t)argv);
		_exit(98);
	}
	fcntl(*ret_master, F_SETFD, FD_CLOEXEC);
	return pid;
}

static void await_on_terminal(int master, const char *text)
{
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1024 * 1024);
	char piece[4096];
	while (!said.data || !strstr(said.data, text)) {
		assert_true(sba_wait_fd(master, POLLIN, sba_until_in(60000), NULL) > 0);
		ssize_t n = read(master, piece, sizeof(piece));
		if (n <= 0)
			fail_msg("it ended: %s", said.data ? said.data : "");
		sba_buf_put(&said, piece, (size_t)n);
	}
}

struct waiting {
	pid_t pid;
	int status;
};

static bool has_ended(void *user)
{
	struct waiting *w = user;
	return waitpid(w->pid, &w->status, WNOHANG) == w->pid;
}

static void closes_its_terminal(const char *const *argv, const char *text)
{
	int master;
	struct waiting w = { .pid = on_a_terminal(argv, &master) };
	await_on_terminal(master, text);
	live_await(a_command, NULL, 10000);
	close(master);
	live_await(has_ended, &w, 30000);
	assert_true(WIFEXITED(w.status) || WTERMSIG(w.status) == SIGHUP);
}

static void a_closed_terminal_ends_a_run_and_its_sandbox(void **state)
{
	(void)state;
	snprintf(keepalive, sizeof(keepalive), "%ds", KEEPALIVE_S);
	closes_its_terminal(argv_of(0), "working");
	live_await(no_command, NULL, COMMAND_END_MS);
	live_await_no_containers(KEEPALIVE_S * 1000 + LAG_MS);
}

static void a_closed_terminal_ends_a_command_in_a_sandbox_that_stays(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = BOX });
	const char *const argv[] = {
		"exec", BOX, "--", "sh", "-c", "echo rea''dy; " STUBBORN, NULL
	};
	closes_its_terminal(argv, "ready");
	live_await(no_command, NULL, COMMAND_END_MS);
	const char *const shell[] = { "shell", BOX, NULL };
	int master;
	struct waiting w = { .pid = on_a_terminal(shell, &master) };
	static const char typed[] = "trap '' HUP; echo he''re; " COMMAND "\n";
	assert_int_equal(sba_write_all(master, typed, strlen(typed), NULL), 0);
	await_on_terminal(master, "here");
	live_await(a_command, NULL, 10000);
	close(master);
	live_await(has_ended, &w, 30000);
	live_await(no_command, NULL, COMMAND_END_MS);
	assert_int_equal(live_container_count(), 2);
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(clients_killed_at_random_instants_leave_nothing),
		LIVE_TEST(a_stopped_client_counts_as_gone_and_says_so_when_it_goes_on),
		LIVE_TEST(a_stopped_client_of_a_sandbox_that_stays_is_told_why_it_counts_as_gone),
		LIVE_TEST(a_closed_terminal_ends_a_run_and_its_sandbox),
		LIVE_TEST(a_closed_terminal_ends_a_command_in_a_sandbox_that_stays),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
