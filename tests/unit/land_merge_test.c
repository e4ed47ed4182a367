/* SPDX-License-Identifier: MIT */
/*
 * Landing into a directory that is there, what stays behind by pattern, paths
 * beyond PATH_MAX, and what a killed client has left. Every test runs with
 * openat2, as on a kernel from before it, and with openat2 blocked.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/private.h"
#include "support/land_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static bool old_kernel;

static struct world *begin(void)
{
	static struct world w;
	world_open(&w, old_kernel);
	w.options.merge = true;
	w.options.replace = true;
	return &w;
}

static void make_dir(const struct world *w, const char *name)
{
	char path[512];
	world_path(path, sizeof(path), "%s/work/%s", w->root, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_file(const struct world *w, const char *name, const char *content)
{
	char path[512];
	world_path(path, sizeof(path), "%s/work/%s", w->root, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static void lands(struct world *w)
{
	int rc = world_land(w);
	if (rc < 0)
		fail_msg("%s", w->err.text);
}

/* ---- into a directory ---- */

static void fill_merge(struct world *w)
{
	make_dir(w, "out");
	make_dir(w, "out/d");
	make_file(w, "out/d/both", "old");
	make_file(w, "out/d/mine", "mine");
	tar_dir(&w->tar, "s");
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s/d", .mode = 0700 });
	tar_file(&w->tar, "s/d/both", "new");
	tar_file(&w->tar, "s/d/new", "new");
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s/locked", .mode = 0500 });
	tar_file(&w->tar, "s/locked/f", "x");
}

static void a_tree_is_merged_into_a_directory_that_is_there(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_merge(w);
	lands(w);
	world_assert_content(w, "out/d/both", "new");
	world_assert_content(w, "out/d/mine", "mine");
	world_assert_content(w, "out/d/new", "new");
	world_assert_content(w, "out/locked/f", "x");
	assert_int_equal(world_stat(w, "out/locked").st_mode & 07777, 0500);
	assert_int_equal(world_stat(w, "out/d").st_mode & 07777, 0755);
	world_close(w);
}

static void no_clobber_keeps_and_counts_the_files_that_are_there(void **state)
{
	(void)state;
	struct world *w = begin();
	w->options.no_clobber = true;
	fill_merge(w);
	lands(w);
	world_assert_content(w, "out/d/both", "old");
	world_assert_content(w, "out/d/new", "new");
	assert_int_equal(w->report.kept, 1);
	world_close(w);
}

static void no_clobber_keeps_a_single_file(void **state)
{
	(void)state;
	struct world *w = begin();
	w->options.no_clobber = true;
	make_file(w, "out", "old");
	tar_file(&w->tar, "s", "new");
	lands(w);
	world_assert_content(w, "out", "old");
	assert_int_equal(w->report.kept, 1);
	world_close(w);
}

static void without_replace_a_file_that_is_there_stops_it_all(void **state)
{
	(void)state;
	struct world *w = begin();
	w->options.replace = false;
	fill_merge(w);
	assert_int_equal(world_land(w), SBA_EEXIST);
	assert_non_null(strstr(w->err.text, "d/both"));
	assert_false(world_has(w, "out/d/new"));
	world_close(w);
}

static void expect_conflict(struct world *w)
{
	tar_file(&w->tar, "s/zzz", "x");
	assert_int_equal(world_land(w), SBA_EEXIST);
	assert_false(world_has(w, "out/zzz"));
	world_close(w);
}

static void a_directory_is_not_replaced_by_a_file_nor_anything_moved_then(void **state)
{
	(void)state;
	struct world *w = begin();
	make_dir(w, "out");
	make_dir(w, "out/x");
	tar_file(&w->tar, "s/aaa", "a");
	tar_file(&w->tar, "s/x", "file");
	expect_conflict(w);
}

static void a_file_is_not_replaced_by_a_directory_nor_anything_moved_then(void **state)
{
	(void)state;
	struct world *w = begin();
	make_dir(w, "out");
	make_file(w, "out/x", "file");
	tar_file(&w->tar, "s/aaa", "a");
	tar_dir(&w->tar, "s/x");
	expect_conflict(w);
}

static void a_directory_of_the_outside_is_not_merged_into_through_a_link(void **state)
{
	(void)state;
	struct world *w = begin();
	char path[200];
	make_dir(w, "out");
	world_path(path, sizeof(path), "%s/work/out/x", w->root);
	assert_int_equal(symlink(w->outside, path), 0);
	tar_file(&w->tar, "s/x/victim", "evil");
	expect_conflict(w);
}

static void a_link_that_is_there_is_neither_followed_nor_replaced_by_a_file(void **state)
{
	(void)state;
	struct world *w = begin();
	char path[200];
	make_dir(w, "out");
	world_path(path, sizeof(path), "%s/work/out/x", w->root);
	assert_int_equal(symlink("../../outside/victim", path), 0);
	tar_file(&w->tar, "s/x", "evil");
	expect_conflict(w);
}

static void a_file_does_not_merge_into_a_directory(void **state)
{
	(void)state;
	struct world *w = begin();
	make_dir(w, "out");
	tar_file(&w->tar, "s", "file");
	assert_true(world_land(w) < 0);
	assert_int_equal(world_stat(w, "out").st_mode & S_IFMT, S_IFDIR);
	world_close(w);
}

static void a_merge_that_is_cut_changes_nothing(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_merge(w);
	struct tar_feed feed = tar_feed_of(&w->tar);
	feed.fail_at = w->tar.len - 100;
	assert_int_equal(world_land_from(w, &feed), SBA_ELOST);
	world_assert_content(w, "out/d/both", "old");
	assert_false(world_has(w, "out/d/new"));
	world_close(w);
}

/* ---- patterns ---- */

static void patterns_match_as_lines_of_a_gitignore(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *rel;
		bool is_dir, match;
	} cases[] = {
		{ "*.o", "a.o", false, true },
		{ "*.o", "x/y/a.o", false, true },
		{ "*.o", "a.out", false, false },
		{ "*.o", "a.o/inside", false, true },
		{ "build/", "build", true, true },
		{ "build/", "build", false, false },
		{ "build/", "x/build/y", false, true },
		{ "/build", "build", true, true },
		{ "/build", "x/build", true, false },
		{ "a/b", "a/b", false, true },
		{ "a/b", "x/a/b", false, false },
		{ "**/b/c", "x/y/b/c", false, true },
		{ "a/**", "a/x/y", false, true },
		{ "a/**", "a", true, false },
		{ "a/**/z", "a/z", false, true },
		{ "a/**/z", "a/1/2/3/z", false, true },
		{ "a/**/z", "a/1/2/3/y", false, false },
		{ "a/*/z", "a/1/2/z", false, false },
		{ "[ab]?", "b1", false, true },
		{ "", "x", false, false },
		{ "/", "x", true, false },
		{ "*", ".hidden", false, true },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		const char *const patterns[] = { cases[i].pattern, NULL };
		if (sba_exclude_path(patterns, cases[i].rel, cases[i].is_dir) != cases[i].match)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].rel);
	}
	assert_false(sba_exclude_path(NULL, "x", false));
}

static void what_a_pattern_names_does_not_land(void **state)
{
	(void)state;
	struct world *w = begin();
	static const char *const patterns[] = { "*.o", "tmp/", NULL };
	w->options.exclude = patterns;
	tar_file(&w->tar, "s/a.o", "x");
	tar_file(&w->tar, "s/a.c", "x");
	tar_dir(&w->tar, "s/tmp");
	tar_file(&w->tar, "s/tmp/x", "x");
	tar_file(&w->tar, "s/d/tmp/x", "x");
	lands(w);
	assert_true(world_has(w, "out/a.c"));
	assert_false(world_has(w, "out/a.o"));
	assert_false(world_has(w, "out/tmp"));
	assert_false(world_has(w, "out/d"));
	assert_int_equal(world_refused(w), 0);
	world_close(w);
}

/* ---- long paths ---- */

static char *long_path(const char *top, int levels)
{
	char *path = malloc(4 + (size_t)levels * 251);
	size_t n = (size_t)snprintf(path, 4, "%s", top);
	for (int i = 0; i < levels; i++) {
		path[n++] = '/';
		memset(path + n, 'a' + i % 26, 250);
		n += 250;
	}
	path[n] = '\0';
	return path;
}

/* Opens from level to level, as no whole path can. */
static int open_levels(const struct world *w, int levels)
{
	int fd = open(w->dest, O_PATH | O_CLOEXEC);
	for (int i = 0; i < levels && fd >= 0; i++) {
		char name[251];
		memset(name, 'a' + i % 26, 250);
		name[250] = '\0';
		int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	return fd;
}

static void paths_beyond_path_max_land_with_mode_and_hard_link(void **state)
{
	(void)state;
	enum { LEVELS = 40 };
	struct world *w = begin();
	char *path = long_path("s", LEVELS), *other = long_path("s", LEVELS + 1);
	struct stat st;
	tar_pax(&w->tar, "path", path);
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "x", .mode = 0750 });
	tar_pax(&w->tar, "path", other);
	tar_file(&w->tar, "x", "deep");
	tar_pax(&w->tar, "linkpath", other);
	tar_add(&w->tar, &(struct tar_entry){ .type = '1', .name = "s/link", .link = "x" });
	free(path);
	free(other);
	lands(w);
	assert_int_equal(world_refused(w), 0);
	int fd = open_levels(w, LEVELS);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	close(fd);
	fd = open_levels(w, LEVELS + 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 4);
	close(fd);
	world_assert_content(w, "out/link", "deep");
	int dir = open(w->root, O_PATH | O_CLOEXEC);
	sba_remove_tree(dir, "work/out");
	close(dir);
	world_close(w);
}

static void a_thousand_directories_deep_lands_and_is_removed(void **state)
{
	(void)state;
	enum { LEVELS = 1000 };
	struct world *w = begin();
	char path[2 * LEVELS + 8] = "s";
	for (int i = 0; i < LEVELS; i++)
		memcpy(path + 1 + 2 * i, "/d", 3);
	tar_pax(&w->tar, "path", path);
	tar_dir(&w->tar, "x");
	lands(w);
	assert_int_equal(world_refused(w), 0);
	int dir = open(w->root, O_PATH | O_CLOEXEC);
	sba_remove_tree(dir, "work/out");
	assert_int_equal(faccessat(dir, "work/out", F_OK, 0), -1);
	close(dir);
	world_close(w);
}

/* ---- what a killed client has left ---- */

struct stuck {
	struct tar_feed feed;
	int told;
};

/* Says that a landing is under way, and never goes on. */
static ssize_t stuck_read(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct stuck *s = user;
	if (s->feed.at < s->feed.len)
		return tar_feed_read(&s->feed, buf, size, err);
	assert_int_equal(write(s->told, "!", 1), 1);
	for (;;)
		pause();
}

/* A client in the middle of a landing. */
static pid_t start_client(struct world *w)
{
	int fds[2];
	char c;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct stuck s = { tar_feed_of(&w->tar), fds[1] };
		alarm(30);
		_exit(sba_land(&w->options, stuck_read, &s, &w->report, &w->err));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static int count_names(const char *dir)
{
	DIR *d = opendir(dir);
	int n = -2; /* "." and ".." */
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void a_killed_clients_folder_goes_with_the_next_transfer(void **state)
{
	(void)state;
	struct world *w = begin();
	int status;
	tar_file(&w->tar, "s/d/f", "x");
	pid_t pid = start_client(w);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	lands(w); /* world_close() finds it if it has stayed */
	assert_true(world_has(w, "out/d/f"));
	world_close(w);
}

static void a_living_clients_folder_stays_his(void **state)
{
	(void)state;
	struct world *w = begin();
	char dest[200];
	int status;
	tar_file(&w->tar, "s/d/f", "x");
	pid_t pid = start_client(w);
	world_path(dest, sizeof(dest), "%s/work/other", w->root);
	w->options.dest = dest;
	lands(w);
	assert_true(world_has(w, "other/d/f"));
	char work[200];
	world_path(work, sizeof(work), "%s/work", w->root);
	int dir = open(work, O_RDONLY | O_CLOEXEC);
	/* It is there yet: a client of its own kind keeps it. */
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(count_names(work), 2); /* other, and the temporary one */
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	sba_temp_sweep(dir);
	assert_int_equal(count_names(work), 1);
	close(dir);
	world_close(w);
}

static void a_sweep_takes_nothing_that_only_looks_alike(void **state)
{
	(void)state;
	struct world *w = begin();
	char work[200];
	make_file(w, ".x.sandbox-agent-", "mine");
	make_file(w, ".x.sandbox-agent-0123456789abcdeg", "mine");
	make_file(w, "x.sandbox-agent-0123456789abcdef", "mine");
	world_path(work, sizeof(work), "%s/work", w->root);
	int dir = open(work, O_RDONLY | O_CLOEXEC);
	sba_temp_sweep(dir);
	assert_true(world_has(w, ".x.sandbox-agent-"));
	assert_true(world_has(w, ".x.sandbox-agent-0123456789abcdeg"));
	assert_true(world_has(w, "x.sandbox-agent-0123456789abcdef"));
	close(dir);
	w->raced = true;
	world_close(w);
}

static int run_all(const char *name, bool without_openat2)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_merged_into_a_directory_that_is_there),
		cmocka_unit_test(no_clobber_keeps_and_counts_the_files_that_are_there),
		cmocka_unit_test(no_clobber_keeps_a_single_file),
		cmocka_unit_test(without_replace_a_file_that_is_there_stops_it_all),
		cmocka_unit_test(a_directory_is_not_replaced_by_a_file_nor_anything_moved_then),
		cmocka_unit_test(a_file_is_not_replaced_by_a_directory_nor_anything_moved_then),
		cmocka_unit_test(a_directory_of_the_outside_is_not_merged_into_through_a_link),
		cmocka_unit_test(a_link_that_is_there_is_neither_followed_nor_replaced_by_a_file),
		cmocka_unit_test(a_file_does_not_merge_into_a_directory),
		cmocka_unit_test(a_merge_that_is_cut_changes_nothing),
		cmocka_unit_test(patterns_match_as_lines_of_a_gitignore),
		cmocka_unit_test(what_a_pattern_names_does_not_land),
		cmocka_unit_test(paths_beyond_path_max_land_with_mode_and_hard_link),
		cmocka_unit_test(a_thousand_directories_deep_lands_and_is_removed),
		cmocka_unit_test(a_killed_clients_folder_goes_with_the_next_transfer),
		cmocka_unit_test(a_living_clients_folder_stays_his),
		cmocka_unit_test(a_sweep_takes_nothing_that_only_looks_alike),
	};
	old_kernel = without_openat2;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	int failed = run_all("merge", false);
	failed += run_all("merge, as before openat2", true);
	world_block_openat2();
	return failed + run_all("merge, openat2 blocked", false);
}
