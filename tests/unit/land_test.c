/* SPDX-License-Identifier: MIT */
/*
 * What lands, and how: content, names, modes, times, holes, hard links, the
 * final name, all or nothing. Every test runs three times: with openat2, as
 * on a kernel from before it, and with openat2 blocked by seccomp.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/land_world.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool old_kernel;

static struct world *begin(void)
{
	static struct world w;
	world_open(&w, old_kernel);
	return &w;
}

static void assert_lands(struct world *w)
{
	int rc = world_land(w);
	if (rc < 0)
		print_error("%s\n", w->err.text);
	assert_int_equal(rc, 0);
}

static void one_file_lands_under_the_final_name(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_add(&w->tar, &(struct tar_entry){ .name = "s",
					      .data = "hello",
					      .size = 5,
					      .mode = 0644,
					      .mtime = 1234567890 });
	assert_lands(w);
	world_assert_content(w, "out", "hello");
	struct stat st = world_stat(w, "out");
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_mtim.tv_sec, 1234567890);
	assert_int_equal(w->report.files, 1);
	assert_int_equal(w->report.bytes, 5);
	world_close(w);
}

static void a_tree_lands_with_modes_and_times_of_directories_too(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_add(&w->tar,
		&(struct tar_entry){ .type = '5', .name = "s/", .mode = 0700, .mtime = 1000 });
	tar_add(&w->tar,
		&(struct tar_entry){ .type = '5', .name = "s/d/", .mode = 0500, .mtime = 2000 });
	tar_add(&w->tar,
		&(struct tar_entry){
			.name = "s/d/f", .data = "x", .size = 1, .mode = 0400, .mtime = 3000 });
	tar_file(&w->tar, "s/empty", "");
	assert_lands(w);
	assert_int_equal(world_stat(w, "out").st_mode & 07777, 0700);
	assert_int_equal(world_stat(w, "out").st_mtim.tv_sec, 1000);
	assert_int_equal(world_stat(w, "out/d").st_mode & 07777, 0500);
	assert_int_equal(world_stat(w, "out/d").st_mtim.tv_sec, 2000);
	assert_int_equal(world_stat(w, "out/d/f").st_mode & 07777, 0400);
	assert_int_equal(world_stat(w, "out/d/f").st_mtim.tv_sec, 3000);
	assert_int_equal(world_stat(w, "out/empty").st_size, 0);
	assert_int_equal(w->report.files, 2);
	assert_int_equal(w->report.directories, 2);
	world_close(w);
}

static void set_id_and_sticky_bits_are_dropped_and_all_others_kept(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s", .mode = 07777 });
	tar_add(&w->tar, &(struct tar_entry){ .name = "s/f", .mode = 06777, .data = "" });
	assert_lands(w);
	assert_int_equal(world_stat(w, "out").st_mode & 07777, 0777);
	assert_int_equal(world_stat(w, "out/f").st_mode & 07777, 0777);
	world_close(w);
}

static void fill_locked_tree(struct world *w)
{
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s", .mode = 01000 });
	tar_add(&w->tar, &(struct tar_entry){ .type = '5', .name = "s/d", .mode = 01000 });
	tar_add(&w->tar,
		&(struct tar_entry){ .name = "s/d/f", .mode = 0200, .data = "abc", .size = 3 });
	tar_add(&w->tar,
		&(struct tar_entry){ .type = '1', .name = "s/d/g", .link = "s/d/f", .mode = 0200 });
}

/* Runs in a process without root's powers; tells by its status. */
static int in_child(void (*fn)(struct world *w), struct world *w)
{
	int status;
	char work[128];
	world_path(work, sizeof(work), "%s/work", w->root);
	assert_int_equal(chmod(w->root, 0755), 0);
	assert_int_equal(chmod(work, 0777), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		fn(w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void land_or_exit(struct world *w)
{
	if (world_land(w) < 0)
		_exit(1);
}

static void modes_that_lock_the_owner_out_come_last(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_locked_tree(w);
	assert_int_equal(in_child(land_or_exit, w), 0);
	assert_int_equal(world_stat(w, "out").st_mode & 07777, 0);
	if (geteuid() == 0) {
		assert_int_equal(world_stat(w, "out/d").st_mode & 07777, 0);
		assert_int_equal(world_stat(w, "out/d/g").st_mode & 07777, 0200);
		world_assert_content(w, "out/d/g", "abc");
	}
	world_close(w);
}

static void fail_or_exit(struct world *w)
{
	if (world_land(w) != SBA_EEXIST)
		_exit(1);
}

static void a_locked_tree_is_removed_when_the_name_is_taken_late(void **state)
{
	(void)state;
	struct world *w = begin();
	char dest[256];
	world_path(dest, sizeof(dest), "%s/work/file", w->root);
	close(open(dest, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	w->options.dest = dest;
	w->options.replace = true; /* a file may be; a tree cannot replace it */
	fill_locked_tree(w);
	assert_int_equal(in_child(fail_or_exit, w), 0);
	world_close(w);
}

static void parents_without_an_entry_are_made_and_may_be_named_later(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/a/b/f", "x");
	tar_add(&w->tar,
		&(struct tar_entry){ .type = '5', .name = "s/a", .mode = 0711, .mtime = 5 });
	assert_lands(w);
	assert_int_equal(world_stat(w, "out").st_mode & 07777, 0755);
	assert_int_equal(world_stat(w, "out/a").st_mode & 07777, 0711);
	assert_int_equal(world_stat(w, "out/a").st_mtim.tv_sec, 5);
	assert_int_equal(world_stat(w, "out/a/b").st_mode & 07777, 0755);
	assert_int_equal(world_refused(w), 0);
	world_close(w);
}

static void a_hard_link_lands_as_a_copy_of_its_own(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s/reg", "content");
	tar_add(&w->tar, &(struct tar_entry){ .type = '1', .name = "s/hard", .link = "s/reg" });
	tar_pax(&w->tar, "comment", "with data, as pax allows");
	tar_add(&w->tar, &(struct tar_entry){ .type = '1',
					      .name = "s/hard2",
					      .link = "s/reg",
					      .data = "CONTENT",
					      .size = 7 });
	tar_file(&w->tar, "s/after", "still in step");
	assert_lands(w);
	world_assert_content(w, "out/hard", "content");
	world_assert_content(w, "out/hard2", "content");
	world_assert_content(w, "out/after", "still in step");
	assert_int_equal(world_stat(w, "out/reg").st_nlink, 1);
	assert_int_equal(w->report.files, 4);
	assert_int_equal(w->report.bytes, 3 * 7 + 13);
	world_close(w);
}

/* ---- names ---- */

static void lands_names(struct world *w)
{
	static const char *const names[] = { "s/\xE6\x97\xA5", "s/\xFF\xFE", "s/new\nline",
					     "s/e\x1B[2J", "s/-rf" };
	/* The same in both normal forms: two names, two files. */
	tar_pax(&w->tar, "path", "s/u\xCC\x88");
	tar_file(&w->tar, "x", "decomposed");
	tar_pax(&w->tar, "path", "s/\xC3\xBC");
	tar_file(&w->tar, "x", "composed");
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		tar_file(&w->tar, names[i], "x");
	tar_pax(&w->tar, "path", "s/pax\xFF");
	tar_file(&w->tar, "x", "raw");
	assert_lands(w);
	world_assert_content(w, "out/u\xCC\x88", "decomposed");
	world_assert_content(w, "out/\xC3\xBC", "composed");
	world_assert_content(w, "out/pax\xFF", "raw");
	world_assert_content(w, "out/new\nline", "x");
	world_assert_content(w, "out/\xFF\xFE", "x");
	assert_int_equal(world_refused(w), 0);
}

/* C-29. */
static void names_are_bytes_in_the_c_locale(void **state)
{
	(void)state;
	struct world *w = begin();
	setlocale(LC_ALL, "C");
	lands_names(w);
	world_close(w);
}

static void names_are_bytes_in_a_utf8_locale(void **state)
{
	(void)state;
	struct world *w = begin();
	assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
	lands_names(w);
	assert_string_equal(setlocale(LC_CTYPE, NULL), "C.UTF-8");
	setlocale(LC_ALL, "C");
	world_close(w);
}

static void names_of_255_bytes_and_64_directories_deep_land(void **state)
{
	(void)state;
	struct world *w = begin();
	char path[400] = "s/";
	memset(path + 2, 'n', 255);
	tar_pax(&w->tar, "path", path);
	tar_file(&w->tar, "x", "long");
	memcpy(path, "s", 2);
	for (int i = 0; i < 63; i++)
		memcpy(path + 1 + 2 * i, "/d", 3);
	memcpy(path + 1 + 2 * 63, "/f", 3);
	tar_pax(&w->tar, "path", path);
	tar_file(&w->tar, "x", "deep");
	assert_lands(w);
	assert_int_equal(world_refused(w), 0);
	assert_int_equal(w->report.files, 2);
	world_close(w);
}

static void five_thousand_files_in_one_directory_land(void **state)
{
	(void)state;
	struct world *w = begin();
	char name[32];
	for (int i = 0; i < 5000; i++) {
		world_path(name, sizeof(name), "s/%d", i);
		tar_file(&w->tar, name, name);
	}
	assert_lands(w);
	assert_int_equal(w->report.files, 5000);
	world_assert_content(w, "out/4999", "s/4999");
	world_close(w);
}

/* ---- holes ---- */

static void a_sparse_file_stays_sparse(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_sparse(&w->tar, "s/hole", 1ULL << 30, 512ULL << 20, "middle");
	tar_add(&w->tar, &(struct tar_entry){ .type = '1', .name = "s/copy", .link = "s/hole" });
	assert_lands(w);
	for (int i = 0; i < 2; i++) {
		struct stat st = world_stat(w, i ? "out/copy" : "out/hole");
		assert_int_equal(st.st_size, 1 << 30);
		assert_true(st.st_blocks < 1024);
	}
	world_close(w);
}

static void zeros_become_holes_and_stay_zeros(void **state)
{
	(void)state;
	struct world *w = begin();
	const size_t size = 8 << 20;
	char *data = calloc(1, size);
	data[5000] = 'a';
	data[size - 1] = 'z';
	tar_add(&w->tar, &(struct tar_entry){ .name = "s", .data = data, .size = size });
	tar_end(&w->tar);
	struct tar_feed feed = tar_feed_of(&w->tar);
	feed.piece = 1000; /* pieces that fit no block */
	assert_int_equal(world_land_from(w, &feed), 0);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(16 << 20);
	assert_int_equal(sba_read_file(w->dest, 16 << 20, &b, NULL), 0);
	assert_int_equal(b.len, size);
	assert_memory_equal(b.data, data, size);
	assert_true(world_stat(w, "out").st_blocks < 256);
	free(data);
	world_close(w);
}

/* ---- the final name ---- */

static void expect_taken(struct world *w)
{
	tar_file(&w->tar, "s", "new");
	assert_int_equal(world_land(w), SBA_EEXIST);
}

static void an_existing_directory_or_link_is_never_replaced(void **state)
{
	(void)state;
	struct world *w = begin();
	assert_int_equal(mkdir(w->dest, 0755), 0);
	w->options.replace = true;
	expect_taken(w);
	assert_int_equal(rmdir(w->dest), 0);
	assert_int_equal(symlink("../outside/victim", w->dest), 0);
	expect_taken(w);
	world_close(w);
}

static void an_existing_file_is_replaced_only_when_asked(void **state)
{
	(void)state;
	struct world *w = begin();
	int fd = open(w->dest, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	expect_taken(w);
	world_assert_content(w, "out", "old");
	w->options.replace = true;
	sba_buf_reset(&w->tar);
	tar_file(&w->tar, "s", "new");
	assert_lands(w);
	world_assert_content(w, "out", "new");
	world_close(w);
}

static void a_destination_without_parent_or_name_is_an_error(void **state)
{
	(void)state;
	struct world *w = begin();
	char dest[256];
	tar_file(&w->tar, "s", "x");
	world_path(dest, sizeof(dest), "%s/none/out", w->root);
	w->options.dest = dest;
	assert_int_equal(world_land(w), SBA_ENOTFOUND);
	static const char *const bad[] = { "", "/", ".", "..", "x/.." };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		w->options.dest = bad[i];
		assert_int_equal(world_land(w), SBA_EINVAL);
	}
	w->options.dest = w->dest;
	w->options.source_name = "a/b";
	assert_int_equal(world_land(w), SBA_EINVAL);
	world_close(w);
}

/* Nobody makes files in /sys, root included. */
static void a_destination_that_may_not_be_written_comes_with_a_remedy(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s", "x");
	w->options.dest = "/sys/kernel/out";
	assert_int_equal(world_land(w), SBA_EIO);
	assert_non_null(strstr(w->err.text, "create '/sys/kernel/out'"));
	assert_true(sba_starts_with(w->err.hint, "choose a folder"));
	world_close(w);
}

static void a_destination_of_255_bytes_works(void **state)
{
	(void)state;
	struct world *w = begin();
	char dest[400];
	world_path(dest, sizeof(dest), "%s/work/", w->root);
	size_t n = strlen(dest);
	memset(dest + n, 'n', 255);
	dest[n + 255] = '\0';
	w->options.dest = dest;
	tar_file(&w->tar, "s", "x");
	assert_lands(w);
	assert_true(world_has(w, dest + n));
	world_close(w);
}

/* ---- all or nothing ---- */

static void fill_some(struct world *w)
{
	static const char big[100000];
	tar_dir(&w->tar, "s/");
	tar_file(&w->tar, "s/a/b/f", "x");
	tar_add(&w->tar, &(struct tar_entry){ .name = "s/big", .data = big, .size = sizeof(big) });
	tar_file(&w->tar, "s/z", "zzz");
}

static void an_error_of_the_transport_comes_through_and_leaves_nothing(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_some(w);
	tar_end(&w->tar);
	for (size_t at = 1; at <= w->tar.len; at += at < 4096 ? 256 : 9973) {
		struct tar_feed feed = tar_feed_of(&w->tar);
		feed.fail_at = at;
		assert_int_equal(world_land_from(w, &feed), SBA_ELOST);
		assert_string_equal(w->err.text, "the engine went away");
		assert_false(world_has(w, "out"));
	}
	world_close(w);
}

static void a_tar_cut_anywhere_is_an_error_and_leaves_nothing(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_some(w);
	tar_end(&w->tar);
	for (size_t len = 0; len < w->tar.len; len += len < 4096 ? 128 : 4999) {
		struct tar_feed feed = tar_feed_of(&w->tar);
		feed.len = len;
		assert_int_equal(world_land_from(w, &feed), SBA_EPROTO);
		assert_false(world_has(w, "out"));
	}
	world_close(w);
}

static void a_tar_without_its_trailer_is_cut(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_dir(&w->tar, "s/");
	tar_file(&w->tar, "s/f", "x");
	struct tar_feed feed = tar_feed_of(&w->tar);
	assert_int_equal(world_land_from(w, &feed), SBA_EPROTO);
	assert_false(world_has(w, "out"));
	world_close(w);
}

static void padding_after_the_trailer_is_read_to_its_end(void **state)
{
	(void)state;
	struct world *w = begin();
	tar_file(&w->tar, "s", "x");
	for (int i = 0; i < 20; i++)
		tar_end(&w->tar);
	struct tar_feed feed = tar_feed_of(&w->tar);
	assert_int_equal(world_land_from(w, &feed), 0);
	assert_int_equal(feed.at, feed.len);
	world_close(w);
}

static void every_cut_of_the_transport_lands_the_same(void **state)
{
	(void)state;
	struct world *w = begin();
	fill_some(w);
	tar_end(&w->tar);
	struct tar_feed feed = tar_feed_of(&w->tar);
	feed.piece = 1;
	assert_int_equal(world_land_from(w, &feed), 0);
	world_assert_content(w, "out/z", "zzz");
	assert_int_equal(w->report.bytes, 100000 + 4);
	world_close(w);
}

static void nothing_of_the_asked_name_is_not_found(void **state)
{
	(void)state;
	struct world *w = begin();
	assert_int_equal(world_land(w), SBA_ENOTFOUND);
	sba_buf_reset(&w->tar);
	tar_file(&w->tar, "other", "x");
	assert_int_equal(world_land(w), SBA_ENOTFOUND);
	assert_int_equal(w->told, 1);
	world_close(w);
}

static void garbage_is_a_broken_tar(void **state)
{
	(void)state;
	struct world *w = begin();
	sba_buf_puts(&w->tar, "HTTP/1.1 500 Internal Server Error\r\n\r\n");
	assert_int_equal(world_land(w), SBA_EPROTO);
	world_close(w);
}

static int run_all(const char *name, bool without_openat2)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_file_lands_under_the_final_name),
		cmocka_unit_test(a_tree_lands_with_modes_and_times_of_directories_too),
		cmocka_unit_test(set_id_and_sticky_bits_are_dropped_and_all_others_kept),
		cmocka_unit_test(modes_that_lock_the_owner_out_come_last),
		cmocka_unit_test(a_locked_tree_is_removed_when_the_name_is_taken_late),
		cmocka_unit_test(parents_without_an_entry_are_made_and_may_be_named_later),
		cmocka_unit_test(a_hard_link_lands_as_a_copy_of_its_own),
		cmocka_unit_test(names_are_bytes_in_the_c_locale),
		cmocka_unit_test(names_are_bytes_in_a_utf8_locale),
		cmocka_unit_test(names_of_255_bytes_and_64_directories_deep_land),
		cmocka_unit_test(five_thousand_files_in_one_directory_land),
		cmocka_unit_test(a_sparse_file_stays_sparse),
		cmocka_unit_test(zeros_become_holes_and_stay_zeros),
		cmocka_unit_test(an_existing_directory_or_link_is_never_replaced),
		cmocka_unit_test(an_existing_file_is_replaced_only_when_asked),
		cmocka_unit_test(a_destination_without_parent_or_name_is_an_error),
		cmocka_unit_test(a_destination_that_may_not_be_written_comes_with_a_remedy),
		cmocka_unit_test(a_destination_of_255_bytes_works),
		cmocka_unit_test(an_error_of_the_transport_comes_through_and_leaves_nothing),
		cmocka_unit_test(a_tar_cut_anywhere_is_an_error_and_leaves_nothing),
		cmocka_unit_test(a_tar_without_its_trailer_is_cut),
		cmocka_unit_test(padding_after_the_trailer_is_read_to_its_end),
		cmocka_unit_test(every_cut_of_the_transport_lands_the_same),
		cmocka_unit_test(nothing_of_the_asked_name_is_not_found),
		cmocka_unit_test(garbage_is_a_broken_tar),
	};
	old_kernel = without_openat2;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	int failed = run_all("land", false);
	failed += run_all("land, as before openat2", true);
	world_block_openat2();
	return failed + run_all("land, openat2 blocked", false);
}
