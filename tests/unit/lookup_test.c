/* SPDX-License-Identifier: MIT */
/* A resolver that hangs holds up nobody for longer than they want to wait. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SOON_MS = 1000 };

static int gate_fd, gone_fd; /* of a resolver that hangs, and that ended */

static int hang(void *user, const char *host, uint16_t port, struct sba_addresses *ret,
		struct sba_error *err)
{
	struct pollfd p = { .fd = gate_fd, .events = POLLIN };
	(void)user;
	(void)host;
	(void)port;
	poll(&p, 1, -1);
	ret->n = 0;
	sba_event_fire(gone_fd);
	return sba_fail(err, SBA_ENOTFOUND, "too late");
}

static struct sba_lookup *start(void)
{
	struct sba_lookup *l = NULL;
	alarm(20);
	gate_fd = eventfd(0, EFD_CLOEXEC);
	gone_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(sba_lookup_start(hang, NULL, "slow.test", 80, &l, NULL), 0);
	return l;
}

static void let_go(struct sba_lookup *l)
{
	struct pollfd p = { .fd = gone_fd, .events = POLLIN };
	int64_t began = sba_now_ms();
	sba_lookup_end(l, (struct sba_until){ 0, -1 });
	assert_true(sba_now_ms() - began < SOON_MS);
	sba_event_fire(gate_fd);
	assert_int_equal(poll(&p, 1, 10000), 1);
}

static void deadline_ends_the_wait_for_a_resolver(void **state)
{
	struct sba_addresses all;
	struct sba_error err;
	struct sba_lookup *l = start();
	(void)state;
	assert_int_equal(sba_lookup_wait(l, sba_until_in(30), &all, &err), SBA_ETIMEOUT);
	assert_non_null(strstr(err.text, "look up slow.test"));
	let_go(l);
}

static void wish_to_stop_ends_the_wait_for_a_resolver(void **state)
{
	struct sba_addresses all;
	struct sba_lookup *l = start();
	int stop = eventfd(1, EFD_CLOEXEC);
	(void)state;
	const struct sba_until until = { SBA_NEVER, stop };
	assert_int_equal(sba_lookup_wait(l, until, &all, NULL), SBA_ECANCELED);
	let_go(l);
	sba_cleanup_close(&stop);
}

static void numbers_are_not_looked_up(void **state)
{
	struct sba_addresses all;
	(void)state;
	/* No time at all, and none is needed. */
	assert_int_equal(sba_lookup("127.0.0.1", 80, sba_until_in(0), &all, NULL), 0);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.v[0].ss_family, AF_INET);
	assert_int_equal(sba_lookup("::1", 80, sba_until_in(0), &all, NULL), 0);
	assert_int_equal(all.v[0].ss_family, AF_INET6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline_ends_the_wait_for_a_resolver),
		cmocka_unit_test(wish_to_stop_ends_the_wait_for_a_resolver),
		cmocka_unit_test(numbers_are_not_looked_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
