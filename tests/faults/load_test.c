/* SPDX-License-Identifier: MIT */
/*
 * A lot at once, and resources that run out: thirty sandboxes, two hundred
 * connections on one channel, bombs under a deadline, no memory, no room on the
 * disk where a download is to land.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/http_client.h"
#include "support/live_attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CROWD = 30, CONNECTIONS = 200, MIB = 1024 * 1024, DISK_MIB = 8 };

extern char **environ;

/* ---- thirty at once ---- */

struct guest {
	pthread_t thread;
	int n, rc;
	struct sba_error err;
	char said[16];
};

/* Each as a program of its own would: a handle, a sandbox, a command, the end. */
static int live_and_die(struct guest *g, struct sba_engine *e)
{
	char name[16], script[32];
	snprintf(name, sizeof(name), "crowd-%d", g->n);
	snprintf(script, sizeof(script), "echo %d", g->n);
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = live.image,
					       .name = name,
					       .max_sandboxes = -1,
					       .keepalive_ms = 60 * 1000 };
	struct sba_sandbox *s = NULL;
	LIVE_RESULT r = { .rc = -1 };
	int rc = sba_sandbox_create(e, &o, &s, &g->err);
	if (rc < 0)
		return rc;
	live_sh(s, script, &r);
	if (r.rc < 0)
		g->err = r.err;
	snprintf(g->said, sizeof(g->said), "%s", r.out.data ? r.out.data : "");
	rc = sba_sandbox_remove(s, &g->err);
	sba_sandbox_close(s);
	return r.rc < 0 ? r.rc : rc;
}

static void *be_guest(void *user)
{
	struct guest *g = user;
	struct sba_engine *e = NULL;
	g->rc = sba_engine_open(NULL, &e, &g->err);
	if (g->rc == 0)
		g->rc = live_and_die(g, e);
	sba_engine_close(e);
	return NULL;
}

static void thirty_sandboxes_at_once_all_work(void **state)
{
	(void)state;
	static struct guest guests[CROWD];
	for (int i = 0; i < CROWD; i++) {
		guests[i] = (struct guest){ .n = i };
		assert_int_equal(pthread_create(&guests[i].thread, NULL, be_guest, &guests[i]), 0);
	}
	for (int i = 0; i < CROWD; i++)
		pthread_join(guests[i].thread, NULL);
	for (int i = 0; i < CROWD; i++) {
		char expected[16];
		if (guests[i].rc < 0)
			fail_msg("%d: %s", i, guests[i].err.text);
		snprintf(expected, sizeof(expected), "%d\n", i);
		assert_string_equal(guests[i].said, expected);
	}
}

/* ---- two hundred connections ---- */

struct echo {
	int listener;
	pthread_t thread;
};

static void *echo_one(void *user)
{
	int fd = (int)(intptr_t)user;
	char piece[16384];
	ssize_t n;
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		client_send(fd, piece, (size_t)n);
	close(fd);
	return NULL;
}

static void *echo_all(void *user)
{
	struct echo *e = user;
	int fd;
	while ((fd = accept(e->listener, NULL, NULL)) >= 0) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, echo_one, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	}
	return NULL;
}

/* All are open before the first is used; each carries bytes of its own, twice. */
static const char many[] =
	"use IO::Socket::INET; use strict; my ($port, $n) = @ARGV; my @s;\n"
	"for my $i (1..$n) { my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',\n"
	"  PeerPort => $port) or die \"connect $i: $!\"; push @s, $s; }\n"
	"for my $round (1..2) { for my $i (0..$n-1) {\n"
	"  my $b = sprintf('%05d', $i * $round) x 4000; my $s = $s[$i]; my $got = '';\n"
	"  print $s $b; $s->flush;\n"
	"  while (length($got) < length($b)) { my $r = sysread($s, $got, 65536, length $got);\n"
	"    die \"read $i: $!\" unless $r; }\n"
	"  die \"wrong $i\" unless $got eq $b; } }\n"
	"print \"right\\n\";\n";

static void two_hundred_connections_on_one_channel_carry_their_own(void **state)
{
	(void)state;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	struct echo echo = { .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	char url[64], port[8], n[8];
	struct sba_error err = { 0 };
	LIVE_RESULT r;
	assert_int_equal(bind(echo.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(echo.listener, CONNECTIONS), 0);
	assert_int_equal(getsockname(echo.listener, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(pthread_create(&echo.thread, NULL, echo_all, &echo), 0);
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .network = "sealed" });
	if (sba_sandbox_host_url(s, ntohs(a.sin_port), url, sizeof(url), &err) < 0)
		fail_msg("%s", err.text);
	snprintf(port, sizeof(port), "%s", strrchr(url, ':') + 1);
	snprintf(n, sizeof(n), "%d", CONNECTIONS);
	const char *const argv[] = { "perl", "-e", many, port, n, NULL };
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .timeout_ms = 90000 }, &r);
	live_assert_exit(&r, 0);
	assert_string_equal(r.out.data, "right\n");
	live_remove(s);
	shutdown(echo.listener, SHUT_RDWR);
	pthread_join(echo.thread, NULL);
	close(echo.listener);
}

/* ---- bombs under a deadline ---- */

/* Either the whole tree is ended, or the sandbox is, and that is said. */
static void bomb_ends_at_its_deadline(const char *kind, const char *user)
{
	struct sba_sandbox *s =
		attacked_sandbox((struct sba_sandbox_options){ .user = user, .pids = 300 });
	const char *const argv[] = { ATTACKER, kind, "pause", NULL };
	LIVE_RESULT r;
	int64_t began = sba_now_ms();
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .timeout_ms = 1500 }, &r);
	int64_t took = sba_now_ms() - began;
	if (r.rc < 0)
		fail_msg("%s as %s: %s", kind, user, r.err.text);
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	if (took > 1500 + 15000)
		fail_msg("%s as %s took %lld ms", kind, user, (long long)took);
	assert_false(live_runs_inside(sba_sandbox_container(s), ATTACKER));
	SBA_FREE char *after = live_sh_out(s, "echo after");
	assert_string_equal(after, "after\n");
	live_remove(s);
}

static void fork_bombs_of_three_kinds_end_at_their_deadline(void **state)
{
	(void)state;
	static const char *const kinds[] = { "bomb", "bomb-sessions", "comets" };
	static const char *const users[] = { "1000:1000", "0:0" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++) {
		for (size_t k = 0; k < SBA_ARRAY_LEN(users); k++)
			bomb_ends_at_its_deadline(kinds[i], users[k]);
	}
}

/* ---- no memory ---- */

static void a_crowd_that_eats_all_memory_is_told_as_such(void **state)
{
	(void)state;
	struct sba_sandbox *s = attacked_sandbox(
		(struct sba_sandbox_options){ .user = "1000:1000", .memory = 128 * MIB });
	struct sba_process *p[8];
	int struck = 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(p); i++)
		p[i] = attack_start(s, (const char *const[]){ ATTACKER, "eat", "64", NULL });
	for (size_t i = 0; i < SBA_ARRAY_LEN(p); i++) {
		struct sba_exit end;
		struct sba_error err = { 0 };
		if (sba_process_wait(p[i], 60000, &end, &err) < 0)
			fail_msg("%s", err.text);
		assert_true(end.kind == SBA_OUT_OF_MEMORY || sba_exit_status(&end) == 0);
		struck += end.kind == SBA_OUT_OF_MEMORY;
		sba_process_free(p[i]);
	}
	print_message("%d of %zu were out of memory\n", struck, SBA_ARRAY_LEN(p));
	SBA_FREE char *after = live_sh_out(s, "echo after");
	assert_string_equal(after, "after\n");
	live_remove(s);
}

/* ---- no room ---- */

static int run_quietly(const char *const *argv)
{
	int status;
	pid_t pid;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	int e = posix_spawnp(&pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* A file system of a few megabytes in a file, or, without loop devices, in memory. */
static bool mount_small(const char *at)
{
	const char *file = live_path("disk");
	SBA_CLOSE int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, DISK_MIB * MIB), 0);
	assert_int_equal(mkdir(at, 0700), 0);
	const char *const make[] = { "mkfs.ext4", "-q", "-F", "-m", "0", file, NULL };
	const char *const put[] = { "mount", "-o", "loop", file, at, NULL };
	if (run_quietly(make) == 0 && run_quietly(put) == 0)
		return true;
	print_message("no loop device here: a tmpfs instead\n");
	return mount("tmpfs", at, "tmpfs", 0, "size=8m") == 0;
}

static size_t names_in(const char *path)
{
	size_t n = 0;
	DIR *d = opendir(path);
	const struct dirent *e;
	assert_non_null(d);
	while ((e = readdir(d))) {
		bool own = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			   strcmp(e->d_name, "lost+found") == 0;
		n += !own;
	}
	closedir(d);
	return n;
}

static void download_finds_no_room(struct sba_sandbox *s, const char *from, const char *disk)
{
	char to[4200];
	struct sba_error err = { 0 };
	snprintf(to, sizeof(to), "%s/landed", disk);
	int rc = sba_sandbox_download(s, from, to, NULL, NULL, &err);
	if (rc != SBA_EIO || err.sys_errno != ENOSPC || !strstr(err.text, strerror(ENOSPC)))
		fail_msg("%d: %s", rc, err.text);
	assert_int_equal(names_in(disk), 0);
}

static void a_full_disk_is_told_and_nothing_half_written_stays(void **state)
{
	(void)state;
	char disk[4096];
	snprintf(disk, sizeof(disk), "%s", live_path("small"));
	if (!mount_small(disk)) {
		print_message("SKIPPED %s: nothing can be mounted here\n", __func__);
		skip();
	}
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	free(live_sh_out(s, "mkdir /tmp/tree; for i in 1 2 3 4 5 6; do "
			    "head -c 3000000 /dev/urandom >/tmp/tree/$i; done; "
			    "cat /tmp/tree/* >/tmp/one; echo small >/tmp/fits"));
	download_finds_no_room(s, "/tmp/one", disk);
	download_finds_no_room(s, "/tmp/tree", disk);
	LIVE_CHILD c;
	char from[64], to[4200];
	snprintf(from, sizeof(from), "%s:/tmp/one", sba_sandbox_info(s)->name);
	snprintf(to, sizeof(to), "%s/landed", disk);
	RUN(&c, "cp", from, to);
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, "No space left");
	assert_int_equal(names_in(disk), 0);
	/* What fits lands all the same. */
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_download(s, "/tmp/fits", to, NULL, NULL, &err), 0);
	live_remove(s);
	assert_int_equal(umount2(disk, 0), 0);
}

/* The sandbox is not broken by it, and that is not said. */
static void a_full_file_system_inside_is_told_and_nothing_half_written_stays(void **state)
{
	(void)state;
	size_t size = 80 * MIB; /* of the 64 that an engine gives to it */
	SBA_FREE char *data = malloc(size);
	assert_non_null(data);
	memset(data, 'x', size); /* of zeros a hole would be made */
	const char *file = live_path("too-big");
	live_write_file(file, data, size, 0600);
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "small" });
	LIVE_CHILD cp, write;
	const char *const argv[] = { "write", "small", "/dev/shm/file", NULL };
	RUN(&cp, "cp", file, "small:/dev/shm");
	live_assert_says(&cp, 1, "No space left");
	live_start(&write, &(struct live_start){ .argv = argv, .input = data, .input_len = size });
	live_child_end(&write, 60000);
	live_assert_says(&write, 1, "No space left");
	SBA_FREE char *left = live_sh_out(s, "ls -A /dev/shm; echo alive");
	assert_string_equal(left, "alive\n");
	live_remove(s);
}

/* A test that failed in the middle leaves it mounted. */
static int end(void **state)
{
	umount2(live_path("small"), MNT_DETACH);
	return live_end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(thirty_sandboxes_at_once_all_work),
		LIVE_TEST(two_hundred_connections_on_one_channel_carry_their_own),
		LIVE_TEST(fork_bombs_of_three_kinds_end_at_their_deadline),
		LIVE_TEST(a_crowd_that_eats_all_memory_is_told_as_such),
		LIVE_TEST(a_full_disk_is_told_and_nothing_half_written_stays),
		LIVE_TEST(a_full_file_system_inside_is_told_and_nothing_half_written_stays),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, end);
}
