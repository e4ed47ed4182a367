/* SPDX-License-Identifier: MIT */
/* Clocks, and the one way to wait: poll with a deadline and a cancel fd. */
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ms(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t sba_now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

int64_t sba_unix_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

int64_t sba_time_ns(int64_t seconds, int64_t ns)
{
	int64_t ret;
	if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ret) ||
	    __builtin_add_overflow(ret, ns, &ret))
		return seconds < 0 ? INT64_MIN : INT64_MAX;
	return ret;
}

struct sba_until sba_until_in(int64_t ms)
{
	return sba_until_sooner((struct sba_until){ SBA_NEVER, -1 }, ms);
}

struct sba_until sba_until_sooner(struct sba_until u, int64_t ms)
{
	int64_t at;
	if (__builtin_add_overflow(sba_now_ms(), ms, &at))
		at = SBA_NEVER;
	if (at < u.deadline_ms)
		u.deadline_ms = at;
	return u;
}

int sba_until_left(struct sba_until u)
{
	if (u.deadline_ms == SBA_NEVER)
		return -1;
	int64_t now = sba_now_ms(), left = u.deadline_ms > now ? u.deadline_ms - now : 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

int sba_wait_fd(int fd, short events, struct sba_until until, struct sba_error *err)
{
	struct pollfd p[2] = {
		{ .fd = fd, .events = events },
		{ .fd = until.cancel_fd, .events = POLLIN },
	};
	for (;;) {
		int left = sba_until_left(until);
		int n = poll(p, 2, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "poll");
		if (p[1].revents)
			return sba_fail(err, SBA_ECANCELED, "cancelled");
		if (p[0].revents)
			return p[0].revents;
		if (n == 0 && left != INT_MAX)
			return sba_fail(err, SBA_ETIMEOUT, "no answer in time");
	}
}

int sba_until_check(struct sba_until until, struct sba_error *err)
{
	struct pollfd p = { .fd = until.cancel_fd, .events = POLLIN };
	if (until.cancel_fd >= 0 && poll(&p, 1, 0) > 0)
		return sba_fail(err, SBA_ECANCELED, "cancelled");
	if (sba_until_left(until) == 0)
		return sba_fail(err, SBA_ETIMEOUT, "no answer in time");
	return 0;
}

void sba_event_fire(int event_fd)
{
	uint64_t one = 1;
	int e = errno;
	/* It fails only when it is readable already. */
	ssize_t n = write(event_fd, &one, sizeof(one));
	(void)n;
	errno = e;
}
