/* SPDX-License-Identifier: MIT */
/* C-44: a command that says nothing for longer than any usual time limit. Here the clock
 * is the test's, and six minutes pass in a moment. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_peer.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

enum { STEP_S = 5, QUIET_S = 370 };

static atomic_int passed_s;

/* In the place of the C library's, for the library under test. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long rc = syscall(SYS_clock_gettime, clock, ret);
	if (rc == 0 && clock == CLOCK_MONOTONIC)
		ret->tv_sec += atomic_load(&passed_s);
	return (int)rc;
}

/* The host's next ping, which is answered. */
static bool answer_ping(struct peer *p)
{
	for (;;) {
		unsigned char head[9], payload[64];
		if (!peer_read(p, head, sizeof(head)) || head[0] || head[1] ||
		    head[2] > sizeof(payload) || (head[2] && !peer_read(p, payload, head[2])))
			return false;
		if (head[3] != NGHTTP2_PING || head[4] != 0)
			continue;
		peer_frame(p, NGHTTP2_PING, 1, 0, payload, head[2]);
		return true;
	}
}

/* Our own ping only wakes it, to see that time has passed. */
static void play_quiet(struct peer *p)
{
	peer_hello(p);
	uint32_t stream = peer_await(p, NGHTTP2_HEADERS);
	peer_answer(p, stream);
	for (int s = 0; s < QUIET_S; s += STEP_S) {
		atomic_fetch_add(&passed_s, STEP_S);
		peer_frame(p, NGHTTP2_PING, 0, 0, "12345678", 8);
		if (!answer_ping(p))
			return;
	}
	peer_frame(p, NGHTTP2_DATA, H2_END_STREAM, stream, "\1\0\0\4done", 8);
	peer_drain(p);
}

static void six_silent_minutes_are_no_end_of_a_command(void **state)
{
	struct peer p = { .play = play_quiet };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error err = { 0 };
	const struct sba_until ever = { SBA_NEVER, -1 };
	const char *data;
	int stream;
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	ssize_t n = sba_channel_run_read(r, &stream, &data, ever, &err);
	if (n != 4)
		fail_msg("%zd %s", n, err.text);
	assert_memory_equal(data, "done", 4);
	assert_true(atomic_load(&passed_s) >= QUIET_S);
	assert_int_equal(sba_channel_run_read(r, &stream, &data, ever, &err), 0);
	sba_channel_run_close(r);
	sba_channel_close(c);
	peer_close(&p);
}

static int limit_time(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(six_silent_minutes_are_no_end_of_a_command, limit_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
