/* SPDX-License-Identifier: MIT */
/*
 * The small pure parts of the guest: options and numbers, environment, PATH,
 * the byte queue, the cgroup's counters, how supervisor and sidecar are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/end.h"
#include "guest/env.h"
#include "guest/identity.h"
#include "guest/kill.h"
#include "guest/parse.h"
#include "guest/path.h"
#include "guest/pressure.h"
#include "guest/ring.h"

static void limits_are_parsed(void **state)
{
	char *args[] = { "reaper", "--keepalive", "30", "--max-lifetime", "7200" };
	struct sba_guest_limits limits;

	(void)state;
	assert_true(sba_guest_parse_limits(5, args, &limits));
	assert_int_equal(limits.keepalive, 30);
	assert_int_equal(limits.max_lifetime, 7200);
	assert_true(sba_guest_parse_limits(1, args, &limits));
	assert_int_equal(limits.keepalive, 0);
	assert_int_equal(limits.max_lifetime, 0);
}

static void wrong_limits_are_refused(void **state)
{
	static char *const wrong[][3] = {
		{ "reaper", "--keepalive", "" },   { "reaper", "--keepalive", "-1" },
		{ "reaper", "--keepalive", "1s" }, { "reaper", "--keepalive", "99999999999999" },
		{ "reaper", "--keepalive", " 1" }, { "reaper", "--keepalive", "0x10" },
		{ "reaper", "--unknown", "1" },    { "reaper", "", "1" },
	};
	struct sba_guest_limits limits;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(sba_guest_parse_limits(3, (char **)wrong[i], &limits));
	assert_false(sba_guest_parse_limits(2, (char **)wrong[0], &limits));
}

static void number_stops_at_its_maximum(void **state)
{
	uint64_t value;

	(void)state;
	assert_true(sba_guest_parse_number("18446744073709551615", 20, UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_false(sba_guest_parse_number("18446744073709551616", 20, UINT64_MAX, &value));
	assert_false(sba_guest_parse_number("65", 2, 64, &value));
	assert_true(sba_guest_parse_number("00064", 5, 64, &value));
}

static void ids_are_plain_words(void **state)
{
	char longest[SBA_RUN_ID_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[SBA_RUN_ID_MAX + 1] = '\0';
	assert_false(sba_guest_parse_id(longest));
	longest[SBA_RUN_ID_MAX] = '\0';
	assert_true(sba_guest_parse_id(longest));
	assert_true(sba_guest_parse_id("0af-1_b.c"));
	assert_false(sba_guest_parse_id(""));
	assert_false(sba_guest_parse_id("--all"));
	assert_false(sba_guest_parse_id("a b"));
	assert_false(sba_guest_parse_id("a/b"));
}

static void last_variable_of_a_name_wins_in_the_first_place(void **state)
{
	char *base[] = { "PATH=/bin", "A=1", "NOEQ", "B=2", "A=3", NULL };
	char *over[] = { "C=4", "B=5\n6", "PATH=", "AB=7", "C=8", NULL };
	char **env = sba_guest_env_merge(base, over);
	static const char *const expected[] = { "PATH=", "A=3", "B=5\n6", "C=8", "AB=7" };

	(void)state;
	assert_non_null(env);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(env[i], expected[i]);
	assert_null(env[5]);
	assert_string_equal(sba_guest_env_get(env, "B"), "5\n6");
	assert_string_equal(sba_guest_env_get(env, "PATH"), "");
	assert_null(sba_guest_env_get(env, "PAT"));
	free(env);
}

struct attempts {
	const int *results;
	size_t count;
	char files[8][32];
};

static int record(const char *file, void *arg)
{
	struct attempts *attempts = arg;

	assert_true(attempts->count < 8);
	assert_true(strlen(file) < sizeof(attempts->files[0]));
	memcpy(attempts->files[attempts->count], file, strlen(file) + 1);
	return attempts->results[attempts->count++];
}

static int search(struct attempts *attempts, const char *program, const char *path,
		  const int *results)
{
	*attempts = (struct attempts){ .results = results };
	return sba_guest_path_search(program, path, record, attempts);
}

static void path_is_searched_in_order(void **state)
{
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "x", "/a:/b:/c", (int[]){ ENOENT, ENOTDIR, 0 }), 0);
	assert_int_equal(attempts.count, 3);
	assert_string_equal(attempts.files[0], "/a/x");
	assert_string_equal(attempts.files[2], "/c/x");
}

static void permission_is_remembered_over_absence(void **state)
{
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "x", "/a:/b", (int[]){ EACCES, ENOENT }), EACCES);
	assert_int_equal(attempts.count, 2);
	assert_int_equal(search(&attempts, "x", "/a:/b", (int[]){ ENOENT, ENOENT }), ENOENT);
}

static void error_of_a_found_program_ends_the_search(void **state)
{
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "x", "/a:/b", (int[]){ E2BIG, 0 }), E2BIG);
	assert_int_equal(attempts.count, 1);
	assert_int_equal(search(&attempts, "x", "/a:/b", (int[]){ ENOEXEC, 0 }), ENOEXEC);
}

static void empty_path_element_is_the_working_directory(void **state)
{
	static const int missing[] = { ENOENT, ENOENT, ENOENT };
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "x", ":/a:", missing), ENOENT);
	assert_int_equal(attempts.count, 3);
	assert_string_equal(attempts.files[0], "./x");
	assert_string_equal(attempts.files[1], "/a/x");
	assert_string_equal(attempts.files[2], "./x");
	assert_int_equal(search(&attempts, "x", "", missing), ENOENT);
	assert_int_equal(attempts.count, 1);
}

static void program_with_a_slash_is_not_searched(void **state)
{
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "./x", "/a:/b", (int[]){ ENOENT }), ENOENT);
	assert_int_equal(attempts.count, 1);
	assert_string_equal(attempts.files[0], "./x");
	assert_int_equal(search(&attempts, "", "/a", NULL), ENOENT);
}

static void overlong_path_element_is_passed_over(void **state)
{
	static char path[8192];
	struct attempts attempts;

	(void)state;
	memset(path, 'd', sizeof(path));
	memcpy(path + sizeof(path) - 4, ":/b", 4);
	assert_int_equal(search(&attempts, "x", path, (int[]){ 0 }), 0);
	assert_string_equal(attempts.files[0], "/b/x");
}

static void no_path_means_the_default(void **state)
{
	struct attempts attempts;

	(void)state;
	assert_int_equal(search(&attempts, "x", NULL, (int[]){ 0 }), 0);
	assert_string_equal(attempts.files[0], "/usr/local/sbin/x");
}

static void ring_keeps_bytes_in_order_around_its_end(void **state)
{
	static struct sba_guest_ring ring;
	static uint8_t block[SBA_GUEST_RING_SIZE - 1000];
	uint8_t next_in = 0;
	uint8_t next_out = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	for (int round = 0; round < 40; round++) {
		size_t n = sba_guest_ring_room(&ring);

		n = n < sizeof(block) ? n : sizeof(block);
		for (size_t i = 0; i < n; i++)
			block[i] = next_in++;
		sba_guest_ring_put(&ring, block, n);
		for (int i = 0; i < 3; i++) {
			ssize_t put = sba_guest_ring_write(&ring, ends[1]);

			assert_true(put > 0);
			assert_int_equal(read(ends[0], block, (size_t)put), put);
			for (ssize_t k = 0; k < put; k++)
				assert_int_equal(block[k], next_out++);
			if (ring.len == 0)
				break;
		}
	}
	close(ends[0]);
	close(ends[1]);
}

static int64_t counter(const char *text, const char *key)
{
	return sba_guest_pressure_parse(text, strlen(text), key);
}

static void oom_counter_is_found_in_both_versions(void **state)
{
	(void)state;
	assert_int_equal(counter("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), 3);
	assert_int_equal(
		counter("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n", "oom_kill"),
		1);
	assert_int_equal(counter("oom_kill 12", "oom_kill"), 12);
	assert_int_equal(counter("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), -1);
	assert_int_equal(counter("oom_kill x\n", "oom_kill"), -1);
	assert_int_equal(counter("oom_kill\n", "oom_kill"), -1);
	assert_int_equal(counter("", "oom_kill"), -1);
}

static void pids_counter_is_found_in_both_versions(void **state)
{
	(void)state;
	assert_int_equal(counter("max 41\n", "max"), 41);
	assert_int_equal(counter("max 7\nmax.imposed 9\n", "max"), 7);
	assert_int_equal(counter("maximum 7\n", "max"), -1);
}

static void group_is_found_in_the_unified_hierarchy_alone(void **state)
{
	static const char v1[] = "12:memory:/docker/ab\n1:name=systemd:/docker/ab\n";
	static const char hybrid[] = "12:memory:/docker/ab\n0::/system.slice/docker-ab.scope\n";
	char path[64] = "unchanged";
	char small[8] = "kept";

	(void)state;
	assert_int_equal(sba_guest_pressure_path(v1, sizeof(v1) - 1, path, sizeof(path)), -1);
	assert_string_equal(path, "unchanged");
	assert_int_equal(sba_guest_pressure_path(hybrid, sizeof(hybrid) - 1, path, sizeof(path)),
			 0);
	assert_string_equal(path, "/system.slice/docker-ab.scope");
	assert_int_equal(sba_guest_pressure_path(hybrid, sizeof(hybrid) - 1, small, sizeof(small)),
			 -1);
	assert_string_equal(small, "kept");
	assert_int_equal(sba_guest_pressure_path("0::/", 4, path, sizeof(path)), 0);
	assert_string_equal(path, "/");
}

static void unknown_counters_do_not_rise(void **state)
{
	static const struct sba_guest_pressure unknown = { -1, -1 };
	struct sba_guest_pressure rose = sba_guest_pressure_since(&unknown);

	(void)state;
	assert_int_equal(rose.oom_kills, 0);
	assert_int_equal(rose.pids_refused, 0);
}

static void sidecar_is_known_by_its_command_line(void **state)
{
	static const char own[] = SBA_GUEST_PATH "\0reaper\0--keepalive\0001";
	static const char idle[] = SBA_GUEST_PATH "\0idle";
	static const char longer[] = SBA_GUEST_PATH "\0reapers";

	(void)state;
	assert_true(sba_guest_is_sidecar(own, sizeof(own)));
	assert_true(sba_guest_is_sidecar(own, sizeof(SBA_GUEST_PATH "\0reaper")));
	assert_false(sba_guest_is_sidecar(own, sizeof(SBA_GUEST_PATH "\0reaper") - 1));
	assert_false(sba_guest_is_sidecar(idle, sizeof(idle)));
	assert_false(sba_guest_is_sidecar(longer, sizeof(longer)));
}

static bool is_supervisor(const char *cmdline, size_t size, const char *id)
{
	return sba_guest_is_supervisor(cmdline, size, id);
}

static void supervisor_is_known_by_its_whole_command_line(void **state)
{
	static const char run[] = SBA_GUEST_PATH "\0run\0abc";
	static const char longer[] = SBA_GUEST_PATH "\0run\0abc\0d";
	static const char other[] = SBA_GUEST_PATH "\0kill\0abc";
	static const char foreign[] = "/tmp" SBA_GUEST_PATH "\0run\0abc";
	static const char none[] = SBA_GUEST_PATH "\0run";

	(void)state;
	assert_true(is_supervisor(run, sizeof(run), "abc"));
	assert_true(is_supervisor(run, sizeof(run), NULL));
	assert_false(is_supervisor(run, sizeof(run), "ab"));
	assert_false(is_supervisor(run, sizeof(run), "abcd"));
	assert_false(is_supervisor(run, sizeof(run) - 1, "abc"));
	assert_false(is_supervisor(longer, sizeof(longer), "abc"));
	assert_false(is_supervisor(longer, sizeof(longer), NULL));
	assert_false(is_supervisor(other, sizeof(other), "abc"));
	assert_false(is_supervisor(foreign, sizeof(foreign), "abc"));
	assert_false(is_supervisor(none, sizeof(none), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_parsed),
		cmocka_unit_test(wrong_limits_are_refused),
		cmocka_unit_test(number_stops_at_its_maximum),
		cmocka_unit_test(ids_are_plain_words),
		cmocka_unit_test(last_variable_of_a_name_wins_in_the_first_place),
		cmocka_unit_test(path_is_searched_in_order),
		cmocka_unit_test(permission_is_remembered_over_absence),
		cmocka_unit_test(error_of_a_found_program_ends_the_search),
		cmocka_unit_test(empty_path_element_is_the_working_directory),
		cmocka_unit_test(program_with_a_slash_is_not_searched),
		cmocka_unit_test(overlong_path_element_is_passed_over),
		cmocka_unit_test(no_path_means_the_default),
		cmocka_unit_test(ring_keeps_bytes_in_order_around_its_end),
		cmocka_unit_test(oom_counter_is_found_in_both_versions),
		cmocka_unit_test(pids_counter_is_found_in_both_versions),
		cmocka_unit_test(group_is_found_in_the_unified_hierarchy_alone),
		cmocka_unit_test(unknown_counters_do_not_rise),
		cmocka_unit_test(sidecar_is_known_by_its_command_line),
		cmocka_unit_test(supervisor_is_known_by_its_whole_command_line),
	};

	alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
