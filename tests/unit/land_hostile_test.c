/* SPDX-License-Identifier: MIT */
/*
 * Archives and neighbours that mean harm. world_close() checks after every
 * test that nothing has got out and that the victim is as it was. Every test
 * runs three times: with openat2, as on a kernel from before it, and with openat2
 * blocked by seccomp.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/land_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool old_kernel;

static struct world *begin(void)
{
	static struct world w;
	world_open(&w, old_kernel);
	return &w;
}

/* Lands what is in the tar, plus one good file that must come along. */
static void lands_all_but(struct world *w, enum sba_refusal why, uint64_t n)
{
	tar_file(&w->tar, "s/good", "good");
	assert_int_equal(world_land(w), 0);
	world_assert_content(w, "out/good", "good");
	assert_int_equal(w->report.refused[why], n);
	assert_int_equal(world_refused(w), n);
	assert_int_equal(w->told, n);
}

static void add_link(struct world *w, char type, const char *name, const char *link)
{
	tar_add(&w->tar, &(struct tar_entry){ .type = type, .name = name, .link = link });
}

/* ---- names ---- */

static void names_that_lead_out_or_are_no_names_are_refused(void **state)
{
	(void)state;
	struct world *w = begin();
	static const char *const bad[] = {
		"../outside/x",
		"s/../../outside/x",
		"s/a/../../../outside/x",
		"/s/x",
		"//s/x",
		"s/..",
		"s/.",
		"s/./x",
		"s//x",
		"./s/x",
		"sx",
		"other/x",
		"../s/x",
		"s/a/..",
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		tar_file(&w->tar, bad[i], "evil");
	lands_all_but(w, SBA_REFUSED_NAME, SBA_ARRAY_LEN(bad));
	world_close(w);
}

static void an_absolute_name_of_the_outside_is_refused(void **state)
{
	(void)state;
	struct world *w = begin();
	char path[256];
	world_path(path, sizeof(path), "%s/x", w->outside);
	tar_file(&w->tar, path, "evil");
	world_path(path, sizeof(path), "%s/victim", w->outside);
	tar_file(&w->tar, path, "evil");
	lands_all_but(w, SBA_REFUSED_NAME, 2);
	world_close(w);
}

static void an_archive_under_another_name_lands_nothing(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_dir(&w->tar, "t/");
	tar_file(&w->tar, "t/x", "evil");
	tar_file(&w->tar, "sibling", "evil");
	assert_int_equal(world_land(w), SBA_ENOTFOUND);
	assert_int_equal(w->told, 3);
	assert_false(world_has(w, "out"));
	world_close(w);
}

static void names_too_long_or_too_deep_are_refused(void **state)
{
	(void)state;
	struct world *w = begin();
	static char path[SBA_LAND_PATH_MAX + 100];
	memcpy(path, "s/", 2);
	memset(path + 2, 'n', 256);
	tar_pax(&w->tar, "path", path);
	tar_file(&w->tar, "s/long", "x");
	path[1] = '\0';
	w->options.max_depth = 64;
	for (int i = 0; i < 65; i++)
		memcpy(path + 1 + 2 * i, "/d", 3);
	tar_pax(&w->tar, "path", path);
	tar_file(&w->tar, "s/deep", "x");
	for (size_t i = 1; i < sizeof(path) - 1; i++)
		path[i] = i % 100 == 1 ? '/' : 'p';
	tar_pax(&w->tar, "path", path);
	tar_file(&w->tar, "s/path", "x");
	lands_all_but(w, SBA_REFUSED_NAME, 3);
	world_close(w);
}

static void the_second_of_two_equal_names_is_refused(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/f", "first");
	tar_file(&w->tar, "s/f", "second");
	tar_dir(&w->tar, "s/f/");
	tar_dir(&w->tar, "s/d/");
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s/d/", .mode = 0700 });
	tar_file(&w->tar, "s/d", "file");
	tar_file(&w->tar, "s/f/x", "a file is no directory");
	lands_all_but(w, SBA_REFUSED_DUPLICATE, 5);
	world_assert_content(w, "out/f", "first");
	assert_int_equal(world_stat(w, "out/d").st_mode & 07777, 0755);
	world_close(w);
}

static void nothing_follows_a_top_that_is_a_file(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s", "first");
	tar_file(&w->tar, "s/x", "beneath");
	tar_dir(&w->tar, "s");
	tar_file(&w->tar, "s", "second");
	assert_int_equal(world_land(w), 0);
	world_assert_content(w, "out", "first");
	assert_int_equal(w->report.refused[SBA_REFUSED_DUPLICATE], 3);
	world_close(w);
}

/* ---- links ---- */

static void symlinks_never_land(void **state)
{
	(void)state;
	struct world *w = begin();
	add_link(w, '2', "s/shadow", "/etc/shadow");
	add_link(w, '2', "s/up", "../../outside");
	add_link(w, '2', "s/harmless", "good");
	add_link(w, '2', "s/dangling", "nowhere");
	lands_all_but(w, SBA_REFUSED_SYMLINK, 4);
	assert_false(world_has(w, "out/harmless"));
	world_close(w);
}

static void an_asked_name_that_is_a_symlink_is_refused_with_words(void **state)
{
	(void)state;
	struct world *w = begin();
	add_link(w, '2', "s", "../outside/victim");
	assert_int_equal(world_land(w), SBA_EREFUSED);
	assert_non_null(strstr(w->err.text, "symbolic link"));
	assert_false(world_has(w, "out"));
	world_close(w);
}

static void a_file_through_a_symlink_lands_beneath(void **state)
{
	(void)state;
	struct world *w = begin();
	add_link(w, '2', "s/dir", w->outside);
	tar_file(&w->tar, "s/dir/x", "inside");
	lands_all_but(w, SBA_REFUSED_SYMLINK, 1);
	world_assert_content(w, "out/dir/x", "inside");
	world_close(w);
}

/* CVE-2021-31566: the mode of the directory would go to the link's target. */
static void a_directory_is_not_replaced_by_a_symlink(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_add(&w->tar,
		&(struct tar_entry){ .type = '5', .name = "s/d", .mode = 0711, .mtime = 7 });
	add_link(w, '2', "s/d", w->outside);
	lands_all_but(w, SBA_REFUSED_SYMLINK, 1);
	assert_int_equal(world_stat(w, "out/d").st_mode, S_IFDIR | 0711);
	world_close(w);
}

/* A cache of checked prefixes must not outlive what it has checked. */
static void a_link_does_not_slip_in_behind_a_checked_parent(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/aaa/bbb/ccc", "x");
	add_link(w, '2', "s/aaa", w->outside);
	add_link(w, '2', "s/aaa/bbb", w->outside);
	tar_file(&w->tar, "s/aaa/bbb/x", "inside");
	lands_all_but(w, SBA_REFUSED_SYMLINK, 2);
	world_assert_content(w, "out/aaa/bbb/x", "inside");
	world_close(w);
}

static void hard_links_to_anything_else_are_refused(void **state)
{
	(void)state;
	struct world *w = begin();
	char victim[256];
	world_path(victim, sizeof(victim), "%s/victim", w->outside);
	tar_dir(&w->tar, "s/d/");
	add_link(w, '1', "s/a", victim);
	add_link(w, '1', "s/b", "../outside/victim");
	add_link(w, '1', "s/c", "s/../../outside/victim");
	add_link(w, '1', "s/e", "s/not-there");
	add_link(w, '1', "s/f", "s/f");
	add_link(w, '1', "s/g", "s/d");
	add_link(w, '1', "s/h", "s");
	add_link(w, '1', "s/i", "");
	tar_pax(&w->tar, "comment", "with data, as pax allows");
	tar_add(&w->tar,
		&(struct tar_entry){
			.type = '1', .name = "s/j", .link = victim, .data = "evil", .size = 4 });
	tar_file(&w->tar, "s/good", "good");
	assert_int_equal(world_land(w), 0);
	world_assert_content(w, "out/good", "good");
	assert_false(world_has(w, "out/a"));
	assert_false(world_has(w, "out/j"));
	assert_true(w->report.refused[SBA_REFUSED_OTHER] >= 8);
	world_close(w);
}

/* ---- types ---- */

static void devices_and_fifos_never_land(void **state)
{
	(void)state;
	struct world *w = begin();
	add_link(w, '3', "s/null", NULL);
	add_link(w, '4', "s/disk", NULL);
	add_link(w, '6', "s/fifo", NULL);
	tar_file(&w->tar, "s/good", "good");
	assert_int_equal(world_land(w), 0);
	assert_int_equal(w->report.refused[SBA_REFUSED_DEVICE], 2);
	assert_int_equal(w->report.refused[SBA_REFUSED_FIFO], 1);
	assert_string_equal(w->last_refused, "s/fifo");
	assert_int_equal(w->report.files, 1);
	world_close(w);
}

/* ---- budgets ---- */

static void expect_limit(struct world *w)
{
	assert_int_equal(world_land(w), SBA_ELIMIT);
	assert_false(world_has(w, "out"));
	world_close(w);
}

static void a_sparse_file_of_a_tebibyte_is_over_budget(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_sparse(&w->tar, "s/bomb", 1ULL << 40, 0, "x");
	expect_limit(w);
}

static void a_pax_size_is_not_believed_past_the_budget(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_pax(&w->tar, "size", "999999999999");
	tar_file(&w->tar, "s/f", "x");
	expect_limit(w);
}

static void a_pax_size_within_the_budget_must_be_filled(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_pax(&w->tar, "size", "999999999999");
	tar_file(&w->tar, "s/f", "x");
	w->options.max_bytes = 1ULL << 50;
	assert_int_equal(world_land(w), SBA_EPROTO);
	assert_false(world_has(w, "out"));
	world_close(w);
}

static void bytes_are_counted_over_all_files(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/a", "12345");
	tar_file(&w->tar, "s/b", "12345");
	w->options.max_bytes = 9;
	expect_limit(w);
}

static void copies_of_hard_links_count(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/a", "12345");
	add_link(w, '1', "s/b", "s/a");
	w->options.max_bytes = 9;
	expect_limit(w);
}

static void entries_are_counted_refused_ones_too(void **state)
{
	(void)state;
	struct world *w = begin();
	for (int i = 0; i < 11; i++)
		add_link(w, '2', "s/l", "x");
	w->options.max_entries = 10;
	expect_limit(w);
}

static void a_tar_that_never_ends_is_broken(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s", "x");
	for (int i = 0; i <= SBA_LAND_TRAIL_MAX / 512 + 2048; i++)
		tar_end(&w->tar);
	assert_int_equal(world_land(w), SBA_EPROTO);
	world_close(w);
}

/* ---- what is there already ---- */

static void a_symlink_at_the_destination_is_neither_followed_nor_replaced(void **state)
{
	(void)state;
	struct world *w = begin();
	assert_int_equal(symlink("../outside", w->dest), 0);
	tar_file(&w->tar, "s/victim", "evil");
	assert_int_equal(world_land(w), SBA_EEXIST);
	assert_true(S_ISLNK(world_stat(w, "out").st_mode));
	world_close(w);
}

/* ---- a neighbour who races ---- */

struct racer {
	const struct world *w;
	atomic_bool stop;
};

static int find_tmp(const char *work, char *ret, size_t size)
{
	DIR *d = opendir(work);
	int found = -1;
	for (const struct dirent *e; d && found < 0 && (e = readdir(d));) {
		if (strstr(e->d_name, ".sandbox-agent-"))
			found = snprintf(ret, size, "%s/%s", work, e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

/* Swaps the directory `a` for a link to the outside, and back. */
static void *race(void *arg)
{
	struct racer *r = arg;
	char work[128], tmp[512], a[600], held[600];
	world_path(work, sizeof(work), "%s/work", r->w->root);
	while (!atomic_load(&r->stop)) {
		if (find_tmp(work, tmp, sizeof(tmp)) < 0)
			continue;
		world_path(a, sizeof(a), "%s/a", tmp);
		world_path(held, sizeof(held), "%s/held", tmp);
		for (int i = 0; i < 20; i++) {
			rename(a, held);
			if (symlink(r->w->outside, a) == 0)
				unlink(a);
			rename(held, a);
		}
	}
	return NULL;
}

static void fill_race(struct world *w)
{
	char name[64];
	tar_dir(&w->tar, "s/");
	for (int i = 0; i < 40; i++) {
		world_path(name, sizeof(name), "s/a/%d", i);
		tar_file(&w->tar, name, "x");
		world_path(name, sizeof(name), "s/a/d%d/e/f", i);
		tar_file(&w->tar, name, "x");
		world_path(name, sizeof(name), "s/a/l%d", i);
		add_link(w, '1', name, "s/a/victim");
	}
	tar_end(&w->tar);
}

static void swapping_a_directory_for_a_link_lets_nothing_out(void **state)
{
	(void)state;
	enum { ROUNDS = 20, RACERS = 1, ENOUGH_MS = 1500 };
	const int64_t enough = sba_now_ms() + ENOUGH_MS;
	struct world *w = begin();
	struct racer r = { .w = w };
	pthread_t threads[RACERS];
	char dest[200];
	w->raced = true;
	w->options.dest = dest;
	fill_race(w);
	for (int i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race, &r), 0);
	for (int i = 0; i < ROUNDS && sba_now_ms() < enough; i++) {
		struct tar_feed feed = tar_feed_of(&w->tar);
		world_path(dest, sizeof(dest), "%s-%d", w->dest, i);
		int rc = world_land_from(w, &feed);
		assert_true(rc == 0 || rc == SBA_EIO);
	}
	atomic_store(&r.stop, true);
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	world_close(w);
}

static int run_all(const char *name, bool without_openat2)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_lead_out_or_are_no_names_are_refused),
		cmocka_unit_test(an_absolute_name_of_the_outside_is_refused),
		cmocka_unit_test(an_archive_under_another_name_lands_nothing),
		cmocka_unit_test(names_too_long_or_too_deep_are_refused),
		cmocka_unit_test(the_second_of_two_equal_names_is_refused),
		cmocka_unit_test(nothing_follows_a_top_that_is_a_file),
		cmocka_unit_test(symlinks_never_land),
		cmocka_unit_test(an_asked_name_that_is_a_symlink_is_refused_with_words),
		cmocka_unit_test(a_file_through_a_symlink_lands_beneath),
		cmocka_unit_test(a_directory_is_not_replaced_by_a_symlink),
		cmocka_unit_test(a_link_does_not_slip_in_behind_a_checked_parent),
		cmocka_unit_test(hard_links_to_anything_else_are_refused),
		cmocka_unit_test(devices_and_fifos_never_land),
		cmocka_unit_test(a_sparse_file_of_a_tebibyte_is_over_budget),
		cmocka_unit_test(a_pax_size_is_not_believed_past_the_budget),
		cmocka_unit_test(a_pax_size_within_the_budget_must_be_filled),
		cmocka_unit_test(bytes_are_counted_over_all_files),
		cmocka_unit_test(copies_of_hard_links_count),
		cmocka_unit_test(entries_are_counted_refused_ones_too),
		cmocka_unit_test(a_tar_that_never_ends_is_broken),
		cmocka_unit_test(a_symlink_at_the_destination_is_neither_followed_nor_replaced),
		cmocka_unit_test(swapping_a_directory_for_a_link_lets_nothing_out),
	};
	old_kernel = without_openat2;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	int failed = run_all("hostile", false);
	failed += run_all("hostile, as before openat2", true);
	world_block_openat2();
	return failed + run_all("hostile, openat2 blocked", false);
}
