/* SPDX-License-Identifier: MIT */
/* The channel over an exec of a real engine, into a sandbox. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "support/live.h"
#include "wire/channel_command.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sba_sandbox *box;

static struct sba_until soon(void)
{
	return sba_until_in(30 * 1000);
}

static struct sba_channel *open_channel(struct sba_engine *e)
{
	struct sba_channel *c;
	struct sba_error err;
	if (sba_channel_open(e, sba_sandbox_container(box), NULL, soon(), NULL, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	box = live_sandbox((struct sba_sandbox_options){ .name = "channel" });
	return 0;
}

static void remove_box(void **state)
{
	(void)state;
	live_remove(box);
}

/* ---- commands ---- */

/* C-01. */
static void five_hundred_commands_one_after_the_other(void **state)
{
	struct sba_channel *c = open_channel(live.engine);
	(void)state;
	for (int i = 0; i < 500; i++)
		command_ok(c, "true");
	sba_channel_close(c);
}

static void fifty_commands_at_once(void **state)
{
	enum { COUNT = 50 };
	static struct command k[COUNT];
	struct sba_channel *c = open_channel(live.engine);
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		char script[64];
		snprintf(script, sizeof(script), "read line; echo \"$line\"; exit %d", i);
		command_sh(&k[i], c, script, true);
	}
	for (int i = COUNT - 1; i >= 0; i--) {
		command_send(&k[i], SBA_RUN_DATA, "hello\n", 6);
		assert_int_equal(command_wait(&k[i]), SBA_END_EXIT);
		assert_int_equal(k[i].number, i);
		command_said(&k[i], "hello\n");
		command_close(&k[i]);
	}
	sba_channel_close(c);
}

/* 256 MiB up and the same down at once, the sums of both ends compared. */
static void a_quarter_of_a_gibibyte_both_ways(void **state)
{
	enum { STEP = 64 * 1024, BEGUN = 47 };
	static const uint64_t size = 256ULL * 1024 * 1024;
	static unsigned char data[STEP];
	SBA_BUF struct sba_buf block = SBA_BUF_INIT(2 * STEP);
	struct sba_channel *c = open_channel(live.engine);
	struct command k;
	uint64_t sent = 0, sum = 0;
	size_t at = 0;
	(void)state;
	command_sh(&k, c, "exec cat", true);
	while (k.bytes[0] < BEGUN)
		assert_true(command_read(&k, COMMAND_WAIT_MS) > 0);
	k.count_only = true;
	for (size_t i = 0; i < STEP; i++)
		data[i] = (unsigned char)(i * 7 + i / 251);
	command_frame(&block, SBA_RUN_DATA, data, STEP);
	while (k.bytes[0] < BEGUN + size) {
		ssize_t n = 0;
		if (sent < size)
			n = sba_channel_run_write(k.run, block.data + at, block.len - at, &k.err);
		assert_true(n >= 0);
		at += (size_t)n;
		if (at == block.len) {
			at = 0;
			sent += STEP;
			for (size_t i = 0; i < STEP; i++)
				sum = sum * 31 + data[i];
		}
		ssize_t got = command_read(&k, n > 0 ? 0 : 10);
		assert_true(got > 0 || got == SBA_ETIMEOUT);
	}
	assert_int_equal(k.sum, sum);
	command_send(&k, SBA_RUN_EOF, "", 0);
	assert_int_equal(command_wait(&k), SBA_END_EXIT);
	command_close(&k);
	sba_channel_close(c);
}

static void a_reader_that_does_not_read_blocks_nobody(void **state)
{
	enum { COUNT = 8 };
	struct command stuck[COUNT];
	struct sba_channel *c = open_channel(live.engine);
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		command_sh(&stuck[i], c, "exec cat /dev/zero", false);
		/* Some are read for a while, so that their windows grow. */
		for (int j = 0; i < COUNT / 2 && j < 200; j++)
			assert_true(command_read(&stuck[i], COMMAND_WAIT_MS) > 0);
	}
	command_ok(c, "head -c 20000000 /dev/zero >&2 2>&1 | cat; exit 0");
	for (int i = 0; i < COUNT; i++)
		command_close(&stuck[i]);
	command_ok(c, "true");
	sba_channel_close(c);
}

/* ---- connections ---- */

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 256), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* bash opens /dev/tcp itself: no tool is needed inside. */
static void two_hundred_connections_from_inside(void **state)
{
	enum { COUNT = 200 };
	struct sba_channel *c = open_channel(live.engine);
	uint16_t port, inside;
	struct sba_error err;
	struct command k;
	char script[512];
	int fds[COUNT];
	(void)state;
	int listener = listen_here(&port);
	assert_int_equal(sba_channel_forward(c, port, 0, soon(), &inside, &err), 0);
	snprintf(script, sizeof(script),
		 "for i in $(seq %d); do exec {fd}<>/dev/tcp/127.0.0.1/%u || exit 9; fds+=($fd); "
		 "echo $i >&$fd; done; n=0; for fd in ${fds[@]}; do read x <&$fd; "
		 "n=$((n+x)); done; test $n = %d",
		 COUNT, inside, COUNT * (COUNT + 1));
	const char *const argv[] = { "bash", "-c", script, NULL };
	command_start(&k, c, argv, false);
	for (int i = 0; i < COUNT; i++)
		assert_true((fds[i] = accept(listener, NULL, NULL)) >= 0);
	for (int i = 0; i < COUNT; i++) {
		char text[16] = "";
		for (size_t n = 0; !strchr(text, '\n'); n++)
			assert_int_equal(recv(fds[i], text + n, 1, 0), 1);
		int len = snprintf(text, sizeof(text), "%d\n", 2 * atoi(text));
		assert_int_equal(send(fds[i], text, (size_t)len, 0), len);
		close(fds[i]);
	}
	assert_int_equal(command_wait(&k), SBA_END_EXIT);
	assert_int_equal(k.number, 0);
	command_close(&k);
	close(listener);
	sba_channel_close(c);
}

/* ---- ends ---- */

/* A process that holds a channel with a command on it; what it does with it. */
static pid_t start_client(const char *script)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct sba_engine *e = NULL;
		struct command k;
		close(live.lifeline);
		alarm(100);
		if (sba_engine_open(NULL, &e, NULL) < 0)
			_exit(1);
		command_sh(&k, open_channel(e), script, false);
		while (command_read(&k, COMMAND_WAIT_MS) > 0)
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static const char everlasting[] =
	"trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM HUP; sleep 4242') & sleep 4243";

static void await_gone(int64_t ms)
{
	live_await_inside(sba_sandbox_container(box), "sleep 424", false, ms);
}

static void a_killed_client_leaves_nothing_running(void **state)
{
	int status;
	(void)state;
	pid_t pid = start_client(everlasting);
	live_await_inside(sba_sandbox_container(box), "sleep 4242", true, 10000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	await_gone(8000);
}

static void a_stopped_client_counts_as_gone(void **state)
{
	int status;
	(void)state;
	pid_t pid = start_client(everlasting);
	live_await_inside(sba_sandbox_container(box), "sleep 4242", true, 10000);
	kill(pid, SIGSTOP);
	await_gone(SBA_CHANNEL_GUEST_SILENCE_MS + 15000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void a_session_killed_inside_is_told_at_once(void **state)
{
	struct sba_channel *c = open_channel(live.engine);
	struct command k;
	LIVE_RESULT killer;
	(void)state;
	command_sh(&k, c, "sleep 4244", false);
	assert_true(command_read(&k, COMMAND_WAIT_MS) > 0);
	int64_t began = sba_now_ms();
	/* Sessions have their parent outside; ours is the parent's parent. */
	const char *const argv[] = {
		"sh", "-c",
		"mine=$(awk '{print $4}' /proc/$PPID/stat); "
		"for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in "
		"'" SBA_GUEST_PATH " session ') "
		"test $(awk '{print $4}' $p/stat) = 0 -a $p != /proc/$mine && "
		"kill -9 ${p#/proc/};; esac; done; true",
		NULL
	};
	live_exec(box, &(struct sba_exec_options){ .argv = argv, .signal_others = true }, &killer);
	live_assert_exit(&killer, 0);
	assert_int_equal(command_read(&k, COMMAND_WAIT_MS), SBA_ELOST);
	assert_true(sba_now_ms() - began < 5000);
	command_close(&k);
	sba_channel_close(c);
	await_gone(8000);
}

/* ---- the first client, which needs no exec ---- */

static int clients_of(struct sba_sandbox *s)
{
	struct sba_list_options o = { .prefix = live.prefix, .name = sba_sandbox_info(s)->name };
	struct sba_sandbox_list *l = NULL;
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, NULL), 0);
	assert_int_equal(sba_sandbox_list_count(l), 1);
	const struct sba_sandbox_info *i = sba_sandbox_list_at(l, 0);
	int n = i->commands;
	assert_string_equal(i->state, n > 0 ? "working" : "idle");
	sba_sandbox_list_free(l);
	return n;
}

static bool has_no_client(void *user)
{
	return clients_of(user) == 0;
}

/* On Podman the first client has one, too. */
static size_t execs_of(struct sba_sandbox *s)
{
	SBA_JSON json_t *j = live_inspect(sba_sandbox_container(s));
	return json_array_size(json_object_get(j, "ExecIDs")) -
	       (sba_engine_podman(live.engine) > 0);
}

static void the_first_client_needs_no_exec_and_shows(void **state)
{
	struct sba_sandbox *s, *other;
	struct sba_error err;
	(void)state;
	s = live_sandbox((struct sba_sandbox_options){ .name = "first" });
	SBA_FREE char *by_first = live_sh_out(s, "echo $PWD $HOME; id; grep Cap /proc/self/status");
	assert_int_equal(execs_of(s), 0);
	assert_int_equal(clients_of(s), 1);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "first", &other, &err), 0);
	SBA_FREE char *by_other =
		live_sh_out(other, "echo $PWD $HOME; id; grep Cap /proc/self/status");
	assert_string_equal(by_first, by_other);
	assert_int_equal(execs_of(s), 1);
	assert_int_equal(clients_of(s), 2);
	sba_sandbox_close(s);
	SBA_FREE char *still = live_sh_out(other, "echo still here");
	assert_string_equal(still, "still here\n");
	live_remove(other);
}

/* The same as of an exec; its stream's end comes another way. */
static void a_first_session_that_is_killed_is_told_at_once(void **state)
{
	static const char kill_first[] =
		"for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in "
		"'" SBA_GUEST_PATH " session ') "
		"test $(awk '{print $5}' $p/stat) = ${p#/proc/} && kill -9 ${p#/proc/};; "
		"esac; done; true";
	struct sba_error err = { 0 };
	struct sba_exit end;
	LIVE_RESULT after;
	const char *const argv[] = { "sh", "-c", kill_first, NULL };
	struct sba_process *p;
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "struck" });
	const struct sba_exec_options o = { .argv = argv, .signal_others = true };
	int64_t began = sba_now_ms();
	assert_int_equal(sba_sandbox_exec(s, &o, &p, &err), 0);
	assert_int_equal(sba_process_wait(p, 30000, &end, &err), SBA_ELOST);
	assert_true(sba_now_ms() - began < SBA_CHANNEL_SILENCE_MS / 2);
	sba_process_free(p);
	live_sh(s, "echo on", &after);
	live_assert_exit(&after, 0);
	live_remove(s);
}

static bool is_made(void *user)
{
	struct sba_sandbox **ret = user;
	if (sba_sandbox_open(live.engine, live.prefix, "orphan", ret, NULL) < 0)
		return false;
	if (strcmp(sba_sandbox_info(*ret)->state, "idle") == 0)
		return true;
	sba_sandbox_close(*ret);
	return false;
}

/* Makes a sandbox, and is killed while a command of its runs. */
static void a_killed_first_client_leaves_nothing_running(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo up; trap '' TERM; sleep 4242 & sleep 4243",
				     NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_sandbox *s = NULL;
	int status;
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct sba_sandbox_options box_options = { .name = "orphan",
								 .prefix = live.prefix,
								 .image = live.image,
								 .keepalive_ms = 60000 };
		struct sba_engine *e;
		struct sba_process *p;
		close(live.lifeline);
		alarm(100);
		_exit(sba_engine_open(NULL, &e, NULL) < 0 ||
		      sba_sandbox_create(e, &box_options, &s, NULL) < 0 ||
		      sba_sandbox_exec(s, &o, &p, NULL) < 0 || pause());
	}
	live_await(is_made, &s, 30000);
	live_await_inside(sba_sandbox_container(s), "sleep 4242", true, 30000);
	assert_int_equal(execs_of(s), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	live_await_inside(sba_sandbox_container(s), "sleep 424", false, 8000);
	if (!sba_engine_podman(live.engine)) /* it forgets execs late */
		live_await(has_no_client, s, 8000);
	SBA_FREE char *said = live_sh_out(s, "echo still here");
	assert_string_equal(said, "still here\n");
	live_remove(s);
}

static void no_guest_is_told_apart(void **state)
{
	struct sba_channel *c;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(
		sba_channel_open(live.engine, "sbatest-no-such", NULL, soon(), NULL, &c, &err),
		SBA_ENOTFOUND);
	assert_int_equal(sba_channel_open(live.engine, sba_sandbox_container(box), "no-such-user",
					  soon(), NULL, &c, &err),
			 SBA_ENOTFOUND);
}

/* ---- guests of other versions ---- */

/* Root's guest is the sidecar's to keep. */
static void place(struct sba_sandbox *s, bool root, const char *path)
{
	struct sba_error err = { 0 };
	char sidecar[SBA_ID_MAX];
	size_t len = 0;
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	SBA_FREE char *guest = live_read_file(path, &len);
	assert_non_null(guest);
	live_sidecar_of(s, sidecar);
	assert_int_equal(sba_pack_new(&options, &pack, &err), 0);
	assert_int_equal(sba_pack_bytes(pack, "guest", guest, len, 0711, &err), 0);
	if (sba_container_put(live.engine, root ? sidecar : sba_sandbox_container(s), SBA_GUEST_DIR,
			      sba_pack_read, pack, soon(), &err) < 0)
		fail_msg("%s", err.text);
	sba_pack_free(pack);
}

static struct sba_sandbox *another_handle(struct sba_sandbox *s)
{
	struct sba_sandbox *other = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, sba_sandbox_info(s)->id, &other, &err) < 0)
		fail_msg("%s", err.text);
	return other;
}

static void hello_of(struct sba_sandbox *s, struct sba_channel_hello *ret)
{
	struct sba_channel *c = NULL;
	struct sba_error err = { 0 };
	if (sba_channel_open(live.engine, sba_sandbox_container(s), NULL, soon(), ret, &c, &err) <
		    0 &&
	    ret->protocol == 0)
		fail_msg("%s", err.text);
	sba_channel_close(c);
}

static void the_hello_confirms_the_shared_namespace(void **state)
{
	struct sba_channel_hello hello;
	(void)state;
	hello_of(box, &hello);
	assert_true(hello.sidecar_first);
	assert_string_equal(hello.guest, sba_guest_hash());
}

static const char *const users[] = { "0", "1000" };

static void an_older_guest_gives_way_to_ours(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(users); i++) {
		struct sba_sandbox *s =
			live_sandbox((struct sba_sandbox_options){ .user = users[i] });
		struct sba_channel_hello hello;
		place(s, i == 0, "build/guest/guest-older");
		hello_of(s, &hello);
		assert_int_equal(hello.protocol, 1);
		struct sba_sandbox *other = another_handle(s);
		SBA_FREE char *out = live_sh_out(other, "echo renewed");
		assert_string_equal(out, "renewed\n");
		hello_of(s, &hello);
		assert_string_equal(hello.guest, sba_guest_hash());
		SBA_FREE char *mode = live_sh_out(s, "stat -c '%u %a' " SBA_GUEST_PATH);
		assert_string_equal(mode, "0 711\n");
		sba_sandbox_close(other);
		live_remove(s);
	}
}

static void a_newer_guest_stays_and_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(users); i++) {
		struct sba_sandbox *s =
			live_sandbox((struct sba_sandbox_options){ .user = users[i] });
		struct sba_channel_hello hello;
		LIVE_RESULT r;
		place(s, i == 0, "build/guest/guest-newer");
		struct sba_sandbox *other = another_handle(s);
		live_sh(other, "true", &r);
		assert_int_equal(r.rc, SBA_EREFUSED);
		assert_non_null(strstr(r.err.text, "newer sandbox-agent (99.0.0)"));
		sba_sandbox_close(other);
		hello_of(s, &hello);
		assert_int_equal(hello.protocol, 99);
		/* Whoever was there before is not disturbed. */
		SBA_FREE char *out = live_sh_out(s, "echo still here");
		assert_string_equal(out, "still here\n");
		live_remove(s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		LIVE_STEP(five_hundred_commands_one_after_the_other),
		LIVE_STEP(fifty_commands_at_once),
		LIVE_STEP(a_quarter_of_a_gibibyte_both_ways),
		LIVE_STEP(a_reader_that_does_not_read_blocks_nobody),
		LIVE_STEP(two_hundred_connections_from_inside),
		LIVE_STEP(a_killed_client_leaves_nothing_running),
		LIVE_STEP(a_stopped_client_counts_as_gone),
		LIVE_STEP(a_session_killed_inside_is_told_at_once),
		LIVE_STEP(the_first_client_needs_no_exec_and_shows),
		LIVE_STEP(a_first_session_that_is_killed_is_told_at_once),
		LIVE_STEP(a_killed_first_client_leaves_nothing_running),
		LIVE_STEP(no_guest_is_told_apart),
		LIVE_STEP(the_hello_confirms_the_shared_namespace),
		LIVE_STEP(an_older_guest_gives_way_to_ours),
		LIVE_STEP(a_newer_guest_stays_and_is_told),
		LIVE_STEP(remove_box),
		LIVE_STEP(live_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
