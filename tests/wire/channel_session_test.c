/* SPDX-License-Identifier: MIT */
/*
 * Both ends of the channel: the real `guest session` as a process of this
 * host, over a socketpair. What is only so inside a sandbox is tested on an
 * engine.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "wire/channel_peer.h"
#include "wire/channel_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static struct guest guest;
static char dir[64];

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	guest_start(&guest);
	test_folder(dir, sizeof(dir), "sba-channel");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	char command[128];
	struct guest again;
	guest_stop(&guest);
	guest_start(&again);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	command_ok(again.c, command);
	guest_stop(&again);
	return 0;
}

static const char *in_dir(const char *name)
{
	static char paths[8][128];
	static unsigned int turn;
	char *path = paths[turn++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* Waits until a path is there, or is not. */
static void await_path(const char *path, bool there)
{
	int64_t limit = sba_now_ms() + 20 * 1000;
	while ((access(path, F_OK) == 0) != there) {
		if (sba_now_ms() > limit)
			fail_msg("%s: %s", path, there ? "never came" : "never went");
		poll(NULL, 0, 5);
	}
}

static size_t open_streams(struct sba_channel *c)
{
	pthread_mutex_lock(&c->lock);
	size_t n = c->n_streams;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static void await_streams(struct sba_channel *c, size_t n)
{
	int64_t limit = sba_now_ms() + 20 * 1000;
	while (open_streams(c) != n) {
		if (sba_now_ms() > limit)
			fail_msg("%zu streams instead of %zu", open_streams(c), n);
		poll(NULL, 0, 5);
	}
}

/* ---- the hello ---- */

static void the_hello_says_who_it_is_and_where(void **state)
{
	(void)state;
	assert_int_equal(guest.hello.protocol, SBA_PROTOCOL_VERSION);
	assert_string_equal(guest.hello.program, sba_version());
	assert_string_equal(guest.hello.guest, sba_guest_hash());
	/* PID 1 of this host is no sidecar. */
	assert_false(guest.hello.sidecar_first);
}

static void a_second_stream_of_notices_is_refused(void **state)
{
	struct sba_channel_stream *s[2];
	struct sba_error err = { 0 };
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(sba_channel_stream_new(guest.c, SBA_STREAM_CALLER,
							SBA_CHANNEL_NOTICES, &s[i], NULL),
				 0);
	assert_int_equal(sba_channel_stream_await_answer(s[0], sba_until_in(PEER_WAIT_MS), &err),
			 0);
	assert_true(sba_channel_stream_await_answer(s[1], sba_until_in(PEER_WAIT_MS), &err) < 0);
	assert_int_equal(err.sys_errno, EBUSY);
	sba_channel_stream_close(s[1]);
	sba_channel_stream_close(s[0]);
	await_streams(guest.c, 0);
	/* The place is free again. */
	assert_int_equal(sba_channel_want_notices(guest.c, &err), 0);
	command_ok(guest.c, "true");
	await_streams(guest.c, 1);
}

/* ---- commands ---- */

static void a_command_says_what_it_says(void **state)
{
	struct command k;
	(void)state;
	command_sh(&k, guest.c, "echo out; echo err >&2; exit 3", false);
	assert_int_equal(command_wait(&k), SBA_END_EXIT);
	assert_int_equal(k.number, 3);
	command_said(&k, "out\n");
	assert_memory_equal(k.out[1].data, "err\n", 4);
	command_close(&k);
	await_streams(guest.c, 0);
}

static void a_stream_ends_with_its_command_though_a_child_holds_it(void **state)
{
	struct command k;
	char script[256];
	(void)state;
	snprintf(script, sizeof(script), "(sleep 1; echo late; touch %s) & exit 0", in_dir("late"));
	command_sh(&k, guest.c, script, false);
	command_wait(&k);
	while (command_read(&k, COMMAND_WAIT_MS) > 0)
		;
	assert_int_equal(k.err.code, 0);
	command_close(&k);
	/* Its late word goes nowhere, but does not kill it. */
	await_path(in_dir("late"), true);
}

static void many_commands_run_at_once(void **state)
{
	enum { COUNT = 50 };
	static struct command k[COUNT];
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		char script[32];
		snprintf(script, sizeof(script), "cat; exit %d", i);
		command_sh(&k[i], guest.c, script, true);
	}
	for (int i = COUNT - 1; i >= 0; i--) {
		command_send(&k[i], SBA_RUN_DATA, "hello", 5);
		command_send(&k[i], SBA_RUN_EOF, "", 0);
		assert_int_equal(command_wait(&k[i]), SBA_END_EXIT);
		assert_int_equal(k[i].number, i);
		command_said(&k[i], "hello");
	}
	for (int i = 0; i < COUNT; i++)
		command_close(&k[i]);
	await_streams(guest.c, 0);
}

static void the_streams_have_a_limit(void **state)
{
	static struct sba_channel_run *runs[SBA_CHANNEL_STREAMS_MAX];
	struct sba_channel_run *more;
	struct sba_error err;
	(void)state;
	for (size_t i = 0; i < SBA_CHANNEL_STREAMS_MAX; i++)
		assert_int_equal(sba_channel_run_open(guest.c, &runs[i], &err), 0);
	assert_int_equal(sba_channel_run_open(guest.c, &more, &err), SBA_ELIMIT);
	for (size_t i = 0; i < SBA_CHANNEL_STREAMS_MAX; i++)
		sba_channel_run_close(runs[i]);
	await_streams(guest.c, 0);
	command_ok(guest.c, "true");
}

/* Sends and takes at the same time; sums are of all bytes. */
static void both_directions_carry_every_byte(void **state)
{
	enum { STEP = 60000, SIZE = 500 * STEP, BEGUN = 47 };
	struct command k;
	SBA_BUF struct sba_buf block = SBA_BUF_INIT(2 * STEP);
	static unsigned char data[STEP];
	uint64_t sum = 0, sent = 0;
	(void)state;
	command_sh(&k, guest.c, "cat", true);
	while (command_read(&k, COMMAND_WAIT_MS) > 0 && k.bytes[0] < BEGUN)
		;
	k.count_only = true;
	for (size_t i = 0; i < STEP; i++)
		data[i] = (unsigned char)(i * 7 + i / 251);
	command_frame(&block, SBA_RUN_DATA, data, STEP);
	size_t at = 0;
	while (k.bytes[0] < BEGUN + SIZE) {
		if (sent < SIZE) {
			ssize_t n = sba_channel_run_write(k.run, block.data + at, block.len - at,
							  &k.err);
			assert_true(n >= 0);
			at += (size_t)n;
		}
		if (at == block.len) {
			at = 0;
			sent += STEP;
			for (size_t i = 0; i < STEP; i++)
				sum = sum * 31 + data[i];
		}
		ssize_t n;
		while ((n = command_read(&k, 0)) > 0)
			;
		assert_int_equal(n, SBA_ETIMEOUT);
		struct pollfd p = { sba_channel_run_fd(k.run), POLLIN, 0 };
		if (sent == SIZE && k.bytes[0] < BEGUN + sent)
			assert_true(poll(&p, 1, COMMAND_WAIT_MS) > 0);
	}
	assert_int_equal(k.sum, sum);
	command_send(&k, SBA_RUN_EOF, "", 0);
	command_wait(&k);
	command_close(&k);
}

static void readers_that_do_not_read_block_nobody(void **state)
{
	enum { COUNT = 20 };
	struct command stuck[COUNT], k;
	(void)state;
	for (int i = 0; i < COUNT; i++)
		command_sh(&stuck[i], guest.c, "cat /dev/zero", false);
	for (int i = 0; i < COUNT; i++) {
		struct pollfd p = { sba_channel_run_fd(stuck[i].run), POLLIN, 0 };
		assert_true(poll(&p, 1, COMMAND_WAIT_MS) > 0);
	}
	command_sh(&k, guest.c, "head -c 8000000 /dev/zero; exit 5", false);
	command_wait(&k);
	assert_int_equal(k.number, 5);
	assert_true(k.bytes[0] > 8000000);
	command_close(&k);
	for (int i = 0; i < COUNT; i++)
		command_close(&stuck[i]);
	await_streams(guest.c, 0);
	pthread_mutex_lock(&guest.c->lock);
	assert_int_equal(guest.c->buffered, 0);
	assert_int_equal(guest.c->spare, SBA_CHANNEL_BUFFERED_MAX / 2);
	pthread_mutex_unlock(&guest.c->lock);
}

static void commands_that_do_not_read_block_nobody(void **state)
{
	enum { COUNT = 20, STEP = 64 * 1024 };
	static char zeros[STEP];
	struct command stuck[COUNT];
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		SBA_BUF struct sba_buf block = SBA_BUF_INIT(2 * STEP);
		command_frame(&block, SBA_RUN_DATA, zeros, STEP);
		command_sh(&stuck[i], guest.c, "sleep 100", true);
		while (sba_channel_run_write(stuck[i].run, block.data, block.len, NULL) ==
		       (ssize_t)block.len)
			;
	}
	command_ok(guest.c, "test $(head -c 3000000 /dev/zero | wc -c) = 3000000");
	for (int i = 0; i < COUNT; i++)
		command_close(&stuck[i]);
	await_streams(guest.c, 0);
}

/* Whoever holds the fifo open lives: without a reader, opening it for writing fails. */
static void expect_nothing_left(const char *fifo)
{
	int64_t limit = sba_now_ms() + 10 * 1000;
	int fd;
	while ((fd = open(fifo, O_WRONLY | O_NONBLOCK)) >= 0) {
		close(fd);
		assert_true(sba_now_ms() < limit);
		poll(NULL, 0, 20);
	}
	assert_int_equal(errno, ENXIO);
}

static void closing_a_stream_ends_its_commands_tree(void **state)
{
	struct command k;
	char script[512];
	(void)state;
	mkfifo(in_dir("fifo"), 0600);
	snprintf(script, sizeof(script),
		 "trap '' TERM; exec 3<>%s; (setsid sh -c 'trap \"\" TERM HUP; touch %s; sleep "
		 "100') & sleep 100",
		 in_dir("fifo"), in_dir("runs"));
	command_sh(&k, guest.c, script, false);
	await_path(in_dir("runs"), true);
	command_close(&k);
	expect_nothing_left(in_dir("fifo"));
	command_ok(guest.c, "true");
}

/* ---- ends of the whole ---- */

static void start_daemon(struct command *k)
{
	char script[512];
	mkfifo(in_dir("fifo"), 0600);
	snprintf(script, sizeof(script),
		 "exec 3<>%s; (setsid sh -c 'trap \"\" TERM HUP; touch %s; sleep 100') & sleep 100",
		 in_dir("fifo"), in_dir("runs"));
	command_sh(k, guest.c, script, false);
	await_path(in_dir("runs"), true);
}

static void the_clients_end_is_the_end_of_all(void **state)
{
	struct command k;
	(void)state;
	start_daemon(&k);
	command_close(&k);
	guest_stop(&guest);
	expect_nothing_left(in_dir("fifo"));
	guest_start(&guest);
}

static void daemons_of_ended_commands_end_with_the_session(void **state)
{
	struct command k;
	char script[512];
	(void)state;
	mkfifo(in_dir("fifo"), 0600);
	snprintf(script, sizeof(script),
		 "exec 3<>%s; (setsid sh -c 'trap \"\" TERM HUP; touch %s; sleep 100') & exit 0",
		 in_dir("fifo"), in_dir("runs"));
	command_sh(&k, guest.c, script, false);
	command_wait(&k);
	command_close(&k);
	await_path(in_dir("runs"), true);
	guest_stop(&guest);
	expect_nothing_left(in_dir("fifo"));
	guest_start(&guest);
}

static void the_sessions_death_is_told_at_once(void **state)
{
	struct command k;
	(void)state;
	command_sh(&k, guest.c, "sleep 100", false);
	assert_true(command_read(&k, COMMAND_WAIT_MS) > 0);
	int64_t began = sba_now_ms();
	kill(guest.pid, SIGKILL);
	assert_int_equal(command_read(&k, COMMAND_WAIT_MS), SBA_ELOST);
	assert_true(sba_now_ms() - began < 2000);
	assert_int_equal(sba_channel_check(guest.c, NULL), SBA_ELOST);
	command_close(&k);
	guest_stop(&guest);
	guest_start(&guest);
}

/* ---- files ---- */

static struct sba_until soon(void)
{
	return sba_until_in(PEER_WAIT_MS);
}

struct bytes {
	const char *data;
	size_t left;
};

static ssize_t next_bytes(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct bytes *b = user;
	size_t n = b->left < size ? b->left : size;
	(void)err;
	if (n > 0)
		memcpy(buf, b->data, n);
	b->data += n;
	b->left -= n;
	return (ssize_t)n;
}

/* mode -1: none is asked for. */
static int write_file(const char *path, const void *data, size_t len, int mode,
		      struct sba_error *err)
{
	struct bytes b = { data, len };
	bool asked;
	const struct sba_channel_write w = {
		.path = path,
		.set_mode = mode >= 0,
		.mode = (uint32_t)mode,
		.source = next_bytes,
		.user = &b,
	};
	return sba_channel_file_write(guest.c, &w, soon(), &asked, err);
}

static void files_are_written_and_read(void **state)
{
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(SBA_MIB);
	SBA_FREE char *big = calloc(1, 700000);
	struct sba_channel_stat st;
	struct sba_error err = { 0 };
	const char *path = in_dir("a/b/file");
	(void)state;
	for (size_t i = 0; i < 700000; i++)
		big[i] = (char)(i * 13);
	assert_int_equal(write_file(path, big, 700000, -1, &err), 0);
	assert_int_equal(sba_channel_file_read(guest.c, path, SBA_MIB, soon(), &got, &err), 0);
	assert_int_equal(got.len, 700000);
	assert_memory_equal(got.data, big, 700000);
	assert_int_equal(sba_channel_file_stat(guest.c, path, true, soon(), &st, &err), 0);
	assert_int_equal(st.mode, S_IFREG | 0644);
	assert_int_equal(st.size, 700000);
	assert_in_range(st.mtime_ns / 1000000, sba_unix_ms() - 60000, sba_unix_ms() + 60000);
	assert_int_equal(write_file(path, "", 0, 0600, &err), 0);
	assert_int_equal(write_file(path, "x", 1, -1, &err), 0);
	assert_int_equal(sba_channel_file_stat(guest.c, path, true, soon(), &st, &err), 0);
	assert_int_equal(st.mode, S_IFREG | 0600);
	assert_int_equal(st.size, 1);
	await_streams(guest.c, 0);
}

static void names_are_listed_in_order(void **state)
{
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(SBA_MIB);
	static const char want[] = ".x\0a\0b\0c";
	struct sba_error err = { 0 };
	(void)state;
	for (const char *name = "c\0a\0.x\0b\0"; *name; name += strlen(name) + 1)
		assert_int_equal(write_file(in_dir(name), "", 0, -1, &err), 0);
	assert_int_equal(sba_channel_file_list(guest.c, dir, SBA_MIB, soon(), &got, &err), 0);
	assert_int_equal(got.len, sizeof(want));
	assert_memory_equal(got.data, want, sizeof(want));
	assert_int_equal(sba_channel_file_list(guest.c, dir, 3, soon(), &got, &err), SBA_ELIMIT);
}

static void what_is_no_file_is_refused_and_blocks_nobody(void **state)
{
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(SBA_MIB);
	const struct {
		const char *path;
		int code;
	} cases[] = {
		{ in_dir("fifo"), SBA_EREFUSED },
		{ dir, SBA_EREFUSED },
		{ "/dev/zero", SBA_EREFUSED },
		{ in_dir("none"), SBA_ENOTFOUND },
		{ "/proc/self/fd/0", SBA_EREFUSED },
		{ in_dir("large"), SBA_ELIMIT },
		{ "", SBA_EINVAL },
	};
	struct sba_error err = { 0 };
	(void)state;
	mkfifo(in_dir("fifo"), 0600);
	assert_int_equal(write_file(in_dir("large"), "12345678901", 11, -1, &err), 0);
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		int rc = sba_channel_file_read(guest.c, cases[i].path, 10, soon(), &got, &err);
		if (rc != cases[i].code)
			fail_msg("%s: %d %s", cases[i].path, rc, err.text);
	}
	assert_int_equal(write_file(in_dir("fifo"), "", 0, -1, &err), SBA_EREFUSED);
	assert_int_equal(write_file(dir, "", 0, -1, &err), SBA_EREFUSED);
}

static void a_link_is_followed_and_kept(void **state)
{
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(100);
	struct sba_channel_stat st;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(symlink("target", in_dir("link")), 0);
	assert_int_equal(write_file(in_dir("target"), "old", 3, -1, &err), 0);
	assert_int_equal(write_file(in_dir("link"), "new", 3, -1, &err), 0);
	assert_int_equal(sba_channel_file_read(guest.c, in_dir("target"), 10, soon(), &got, &err),
			 0);
	assert_string_equal(got.data, "new");
	assert_int_equal(sba_channel_file_stat(guest.c, in_dir("link"), false, soon(), &st, &err),
			 0);
	assert_true(S_ISLNK(st.mode));
	assert_int_equal(sba_channel_file_stat(guest.c, in_dir("link"), true, soon(), &st, &err),
			 0);
	assert_true(S_ISREG(st.mode));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(the_hello_says_who_it_is_and_where),
		TEST(a_second_stream_of_notices_is_refused),
		TEST(a_command_says_what_it_says),
		TEST(a_stream_ends_with_its_command_though_a_child_holds_it),
		TEST(many_commands_run_at_once),
		TEST(the_streams_have_a_limit),
		TEST(both_directions_carry_every_byte),
		TEST(readers_that_do_not_read_block_nobody),
		TEST(commands_that_do_not_read_block_nobody),
		TEST(closing_a_stream_ends_its_commands_tree),
		TEST(the_clients_end_is_the_end_of_all),
		TEST(daemons_of_ended_commands_end_with_the_session),
		TEST(the_sessions_death_is_told_at_once),
		TEST(files_are_written_and_read),
		TEST(names_are_listed_in_order),
		TEST(what_is_no_file_is_refused_and_blocks_nobody),
		TEST(a_link_is_followed_and_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
