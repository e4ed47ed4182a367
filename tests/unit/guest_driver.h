/* SPDX-License-Identifier: MIT */
/*
 * Drives a real `guest run` over pipes, as the host does. After every test
 * nothing of its command may be left, so this process is a child subreaper:
 * whatever survives comes to it. For the guest_*_test.c files only.
 */
#ifndef GUEST_DRIVER_H
#define GUEST_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel/protocol.h"

#define NONCE "0123456789abcdef0123456789abcdef"

enum { TEXT_MAX = 40 * 1024 * 1024, TEST_SECONDS = 60 };

struct stream {
	int fd;
	bool ended; /* its end record has come, or it is closed */
	size_t len;
	char *text;
};

struct guest {
	pid_t pid;
	int in;
	struct stream out;
	struct stream err;
	/* still to be sent by collect() */
	const char *backlog;
	size_t backlog_len;
};

static int guest_file = -1;
static pid_t bomber_uid; /* 0: as we are */
static bool old_kernel;  /* as if it had no signal scopes */

static inline int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void become_bomber(void)
{
	struct rlimit limit = { 200, 200 };

	if (setrlimit(RLIMIT_NPROC, &limit) < 0 || setgid((gid_t)bomber_uid) < 0 ||
	    setuid((uid_t)bomber_uid) < 0)
		_exit(99);
}

static inline void become_old(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(steps) / sizeof(steps[0]), steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(97);
}

static inline void open_guest(struct guest *guest)
{
	char *args[] = { "guest", "run", "test", NULL };
	int in[2];
	int out[2];
	int err[2];

	*guest = (struct guest){ 0 };
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	guest->pid = fork();
	if (guest->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		if (bomber_uid != 0)
			become_bomber();
		if (old_kernel)
			become_old();
		fexecve(guest_file, args, environ);
		_exit(98);
	}
	assert_true(guest->pid > 0);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	guest->in = in[1];
	guest->out = (struct stream){ .fd = out[0], .text = malloc(TEXT_MAX) };
	guest->err = (struct stream){ .fd = err[0], .text = malloc(TEXT_MAX) };
	guest->out.text[0] = '\0';
	guest->err.text[0] = '\0';
}

static inline void send_all(struct guest *guest, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t put = write(guest->in, at, len);

		if (put < 0)
			return; /* it has ended: the record says how */
		at += put;
		len -= (size_t)put;
	}
}

static inline void put_head(char *head, char type, size_t len)
{
	head[0] = type;
	head[1] = (char)(len >> 24);
	head[2] = (char)(len >> 16);
	head[3] = (char)(len >> 8);
	head[4] = (char)len;
}

static inline void say_bytes(struct guest *guest, char type, const void *data, size_t len)
{
	char head[SBA_RUN_FRAME_HEAD];

	put_head(head, type, len);
	send_all(guest, head, sizeof(head));
	send_all(guest, data, len);
}

static inline void say(struct guest *guest, char type, const char *text)
{
	say_bytes(guest, type, text, strlen(text));
}

static inline void say_shell(struct guest *guest, const char *script)
{
	say(guest, SBA_RUN_NONCE, NONCE);
	say(guest, SBA_RUN_ARG, "sh");
	say(guest, SBA_RUN_ARG, "-c");
	say(guest, SBA_RUN_ARG, script);
	say(guest, SBA_RUN_GO, "");
}

static inline void open_shell(struct guest *guest, const char *script)
{
	open_guest(guest);
	say_shell(guest, script);
}

/* The record at the end of what came, or NULL. */
static inline char *end_record(const struct stream *stream)
{
	static const char head[] = "\0" SBA_RECORD_PREFIX NONCE ":";
	char *found = NULL;
	char *at = stream->text;

	if (stream->len > 200)
		at += stream->len - 200;
	while ((at = memmem(at, (size_t)(stream->text + stream->len - at), head,
			    sizeof(head) - 1))) {
		if (at[sizeof(head) - 1] != SBA_RECORD_BEGUN)
			found = at;
		at++;
	}
	return found;
}

static inline void read_stream(struct stream *stream)
{
	ssize_t got = read(stream->fd, stream->text + stream->len, TEXT_MAX - stream->len - 1);

	if (got > 0)
		stream->len += (size_t)got;
	stream->text[stream->len] = '\0';
	stream->ended = got <= 0 || end_record(stream) != NULL;
}

static inline void send_backlog(struct guest *guest)
{
	ssize_t put = write(guest->in, guest->backlog, guest->backlog_len);

	if (put < 0 && errno != EAGAIN)
		put = (ssize_t)guest->backlog_len;
	if (put > 0) {
		guest->backlog += put;
		guest->backlog_len -= (size_t)put;
	}
}

static inline void exchange(struct guest *guest)
{
	struct pollfd polls[] = {
		{ guest->out.ended ? -1 : guest->out.fd, POLLIN, 0 },
		{ guest->err.ended ? -1 : guest->err.fd, POLLIN, 0 },
		{ guest->backlog_len > 0 ? guest->in : -1, POLLOUT, 0 },
	};

	assert_true(poll(polls, 3, TEST_SECONDS * 1000) > 0);
	if (polls[0].revents)
		read_stream(&guest->out);
	if (polls[1].revents)
		read_stream(&guest->err);
	if (polls[2].revents)
		send_backlog(guest);
}

/* Reads until text has come out of the command. */
static inline void await_text(struct guest *guest, const char *text)
{
	while (!memmem(guest->out.text, guest->out.len, text, strlen(text))) {
		assert_false(guest->out.ended);
		exchange(guest);
	}
}

#define DIGITS_(n) #n
#define DIGITS(n)  DIGITS_(n)

/* What came between the records, as text. */
static inline const char *output(struct guest *guest)
{
	static const char begun[] =
		"\0" SBA_RECORD_PREFIX NONCE ":b:" DIGITS(SBA_PROTOCOL_VERSION) ":\0";

	assert_true(guest->out.len >= sizeof(begun) - 1);
	assert_memory_equal(guest->out.text, begun, sizeof(begun) - 1);
	return guest->out.text + sizeof(begun) - 1;
}

static inline void close_guest(struct guest *guest)
{
	int status;

	if (guest->in >= 0)
		close(guest->in);
	close(guest->out.fd);
	close(guest->err.fd);
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	assert_int_equal(status, 0);
	free(guest->out.text);
	free(guest->err.text);
}

static inline void assert_nothing_left(void)
{
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
}

/* Takes all there is to come and holds the end against kind and number. */
static inline void collect(struct guest *guest, char kind, unsigned long number)
{
	char expected[128];
	int len = snprintf(expected, sizeof(expected), "%c" SBA_RECORD_PREFIX NONCE ":%c:%lu:%c", 0,
			   kind, number, 0);
	struct stream *streams[] = { &guest->out, &guest->err };

	while (!guest->out.ended || !guest->err.ended)
		exchange(guest);
	for (int i = 0; i < 2; i++) {
		char *record = end_record(streams[i]);

		assert_non_null(record);
		assert_string_equal(record + 1, expected + 1);
		assert_int_equal(record + len - streams[i]->text, streams[i]->len);
		*record = '\0';
	}
}

static inline void expect(struct guest *guest, char kind, unsigned long number)
{
	collect(guest, kind, number);
	close_guest(guest);
	assert_nothing_left();
}

static inline int begin_test(void **state)
{
	old_kernel = *state != NULL;
	alarm(TEST_SECONDS);
	return 0;
}

#define RUN_TEST(test) cmocka_unit_test_setup(test, begin_test)
/* Again, without signal scopes. */
#define RUN_TEST_OLD(test)                                                                         \
	{                                                                                          \
#test "_on_an_old_kernel", test, begin_test, NULL, (void *)(uintptr_t)1            \
	}

/* Finds the program; false if there is none. */
static inline bool prepare_driver(void)
{
	const char *path = getenv("SBA_GUEST");

	if (!path)
		path = "build/guest/guest";
	guest_file = open(path, O_RDONLY | O_CLOEXEC);
	if (guest_file < 0) {
		perror(path);
		return false;
	}
	signal(SIGPIPE, SIG_IGN);
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

#endif
