/* SPDX-License-Identifier: MIT */
/*
 * Process table: lines of /proc/PID/stat as an adversary would shape them,
 * and one scan of the real /proc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "guest/proc.h"

#define TAIL " 0 -1 4194304 10 20 0 0 1 2 0 0 20 0 1 0 123456 1000 2 18446744073709551615"

static bool parse(const char *line, struct sba_guest_stat *stat)
{
	return sba_guest_stat_parse(line, strlen(line), stat);
}

static void plain_line_is_parsed(void **state)
{
	struct sba_guest_stat stat;

	(void)state;
	assert_true(parse("42 (sh) S 7 40 39" TAIL "\n", &stat));
	assert_int_equal(stat.pid, 42);
	assert_int_equal(stat.ppid, 7);
	assert_int_equal(stat.pgrp, 40);
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.start, 123456);
}

static void comm_cannot_forge_a_parent(void **state)
{
	static const char *const lines[] = {
		"37 () 0 (x) R 5 30 30" TAIL "\n",
		"37 () S 0 1 1 () R 5 30 30" TAIL "\n",
		"37 (a\nb) S 0 0 0) R 5 30 30" TAIL "\n",
		"37 ()) R 5 30 30" TAIL "\n",
		"37 (() R 5 30 30" TAIL "\n",
		"37 ( ) R 5 30 30" TAIL "\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct sba_guest_stat stat;

		assert_true(parse(lines[i], &stat));
		assert_int_equal(stat.pid, 37);
		assert_int_equal(stat.ppid, 5);
		assert_int_equal(stat.state, 'R');
	}
}

static void every_truncation_is_refused(void **state)
{
	static const char line[] =
		"42 (s) h) S 7 40 39 0 -1 4194304 10 20 0 0 1 2 0 0 20 0 1 0 123456";
	struct sba_guest_stat stat;

	(void)state;
	for (size_t len = 0; len < sizeof(line); len++)
		assert_false(sba_guest_stat_parse(line, len, &stat));
}

static void nonsense_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"()",
		")(",
		"1(sh) S 0 1 1" TAIL "\n",
		" (sh) S 0 1 1" TAIL "\n",
		"x (sh) S 0 1 1" TAIL "\n",
		"1 (sh) SS 0 1 1" TAIL "\n",
		"1 (sh) S x 1 1" TAIL "\n",
		"1 (sh) S 99999999999 1 1" TAIL "\n",
		"1 (sh) S  0 1 1" TAIL "\n",
	};
	struct sba_guest_stat stat;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(parse(lines[i], &stat));
}

static void released_process_shows_a_negative_group(void **state)
{
	struct sba_guest_stat stat;

	(void)state;
	assert_true(parse("9 (gone) R 0 -1 -1" TAIL "\n", &stat));
	assert_int_equal(stat.pgrp, -1);
}

static void note_self(const struct sba_guest_stat *stat, void *arg)
{
	struct sba_guest_stat *self = arg;

	assert_true(stat->pid > 0);
	if (stat->pid == getpid())
		*self = *stat;
}

static void scan_finds_this_process(void **state)
{
	int proc = sba_guest_proc_open();

	(void)state;
	assert_true(proc >= 0);
	for (int i = 0; i < 2; i++) {
		struct sba_guest_stat self = { 0 };
		struct sba_guest_stat direct;

		assert_int_equal(sba_guest_proc_scan(proc, note_self, &self), 0);
		assert_int_equal(self.ppid, getppid());
		assert_int_equal(self.pgrp, getpgrp());
		assert_int_equal(sba_guest_proc_stat(proc, getpid(), &direct), 1);
		assert_true(direct.start == self.start);
	}
	close(proc);
}

static void scan_without_descriptors_is_an_error(void **state)
{
	struct sba_guest_stat self = { 0 };

	(void)state;
	assert_true(sba_guest_proc_scan(-1, note_self, &self) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_line_is_parsed),
		cmocka_unit_test(comm_cannot_forge_a_parent),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(released_process_shows_a_negative_group),
		cmocka_unit_test(scan_finds_this_process),
		cmocka_unit_test(scan_without_descriptors_is_an_error),
	};

	alarm(10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
