/* SPDX-License-Identifier: MIT */
/* Changes to a folder here: all of them or none, nothing through a link, nothing left. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], outside[32];

static const char *in_dir(const char *name)
{
	static char path[4][300];
	static unsigned turn;
	char *to = path[turn++ % 4];
	snprintf(to, sizeof(path[0]), "%s/%s", dir, name);
	return to;
}

static void put(const char *name, const char *content)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static void assert_content(const char *name, const char *expected)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1000);
	struct sba_error err = { 0 };
	if (sba_read_file(in_dir(name), 1000, &b, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(b.data ? b.data : "", expected);
}

static bool is_there(const char *name)
{
	struct stat st;
	return lstat(in_dir(name), &st) == 0;
}

static int count_names(void)
{
	DIR *d = opendir(dir);
	int n = 0;
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int begin(void **state)
{
	(void)state;
	snprintf(outside, sizeof(outside), "/tmp/sba-edit-XXXXXX");
	if (!mkdtemp(outside))
		return -1;
	snprintf(dir, sizeof(dir), "%s/top", outside);
	return mkdir(dir, 0755);
}

static void remove_all(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	while (d && (e = readdir(d))) {
		char child[600];
		struct stat st;
		snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || lstat(child, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			remove_all(child);
		else
			unlink(child);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static int end(void **state)
{
	(void)state;
	remove_all(outside);
	return 0;
}

static void write_file(struct sba_edit *e, const char *path, const char *content)
{
	int fd;
	struct sba_error err = { 0 };
	if (sba_edit_file(e, path, 0644, &fd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

static struct sba_edit *open_edit(void)
{
	struct sba_edit *e = NULL;
	assert_int_equal(sba_edit_open(dir, &e, NULL), 0);
	return e;
}

static void what_is_asked_for_happens(void **state)
{
	(void)state;
	mkdir(in_dir("d"), 0755);
	put("d/gone", "1");
	put("old", "2");
	put("mode", "3");
	struct sba_edit *e = open_edit();
	write_file(e, "old", "new");
	write_file(e, "a/b/c", "made");
	assert_int_equal(sba_edit_remove(e, "d/gone", NULL), 0);
	assert_int_equal(sba_edit_mode(e, "mode", 0755, NULL), 0);
	assert_int_equal(sba_edit_link(e, "a/link", "b/c", NULL), 0);
	assert_false(is_there("a"));
	assert_content("old", "2");
	assert_int_equal(sba_edit_commit(e, NULL), 0);
	sba_edit_close(e);
	assert_content("old", "new");
	assert_content("a/b/c", "made");
	assert_content("a/link", "made");
	assert_false(is_there("d"));
	struct stat st;
	assert_int_equal(stat(in_dir("mode"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(count_names(), 3);
}

static void without_a_commit_nothing_happens(void **state)
{
	(void)state;
	put("old", "2");
	struct sba_edit *e = open_edit();
	write_file(e, "old", "new");
	write_file(e, "x/y", "made");
	assert_int_equal(sba_edit_remove(e, "old", NULL), 0);
	sba_edit_close(e);
	assert_content("old", "2");
	assert_int_equal(count_names(), 1);
}

static void a_failure_in_the_middle_puts_everything_back(void **state)
{
	struct sba_error err = { 0 };
	(void)state;
	put("one", "1");
	put("two", "2");
	put("three", "3");
	mkdir(in_dir("d"), 0755);
	put("d/f", "4");
	struct sba_edit *e = open_edit();
	assert_int_equal(sba_edit_remove(e, "d/f", NULL), 0);
	write_file(e, "one", "changed");
	write_file(e, "new/file", "made");
	write_file(e, "d", "a file where the folder was");
	assert_int_equal(sba_edit_mode(e, "three", 0700, NULL), 0);
	write_file(e, "two", "changed");
	put("two", "somebody was faster");
	assert_int_equal(sba_edit_commit(e, &err), SBA_ECONFLICT);
	assert_non_null(strstr(err.text, "two"));
	sba_edit_close(e);
	assert_content("one", "1");
	assert_content("two", "somebody was faster");
	assert_content("d/f", "4");
	assert_false(is_there("new"));
	struct stat st;
	assert_int_equal(stat(in_dir("three"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(count_names(), 4);
}

static void a_file_that_appears_meanwhile_is_a_conflict(void **state)
{
	(void)state;
	struct sba_edit *e = open_edit();
	write_file(e, "new", "ours");
	put("new", "theirs");
	assert_int_equal(sba_edit_commit(e, NULL), SBA_ECONFLICT);
	sba_edit_close(e);
	assert_content("new", "theirs");
	assert_int_equal(count_names(), 1);
}

static void a_folder_whose_files_go_gives_way_to_a_file(void **state)
{
	(void)state;
	mkdir(in_dir("d"), 0755);
	put("d/f", "4");
	struct sba_edit *e = open_edit();
	assert_int_equal(sba_edit_remove(e, "d/f", NULL), 0);
	write_file(e, "d", "file");
	assert_int_equal(sba_edit_commit(e, NULL), 0);
	sba_edit_close(e);
	assert_content("d", "file");
}

static void folders_within_it_give_way_with_it(void **state)
{
	(void)state;
	mkdir(in_dir("d"), 0755);
	mkdir(in_dir("d/e"), 0755);
	mkdir(in_dir("d/empty"), 0755);
	put("d/e/f", "4");
	struct sba_edit *e = open_edit();
	assert_int_equal(sba_edit_link(e, "d", "other", NULL), 0);
	assert_int_equal(sba_edit_remove(e, "d/e/f", NULL), 0);
	assert_int_equal(sba_edit_commit(e, NULL), 0);
	sba_edit_close(e);
	assert_int_equal(readlink(in_dir("d"), (char[8]){ 0 }, 8), 5);
	assert_int_equal(count_names(), 1);
}

static void a_folder_with_more_in_it_stays_whole(void **state)
{
	struct stat before, after;
	(void)state;
	mkdir(in_dir("d"), 0755);
	mkdir(in_dir("d/e"), 0700);
	put("d/e/f", "4");
	put("d/e/mine", "5");
	assert_int_equal(stat(in_dir("d/e"), &before), 0);
	struct sba_edit *e = open_edit();
	write_file(e, "d", "file");
	assert_int_equal(sba_edit_remove(e, "d/e/f", NULL), 0);
	assert_int_equal(sba_edit_commit(e, NULL), SBA_ECONFLICT);
	sba_edit_close(e);
	assert_content("d/e/f", "4");
	assert_content("d/e/mine", "5");
	assert_int_equal(stat(in_dir("d/e"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(count_names(), 1);
}

static void a_file_gives_way_to_a_folder(void **state)
{
	(void)state;
	put("d", "file");
	struct sba_edit *e = open_edit();
	write_file(e, "d/f", "below");
	assert_int_equal(sba_edit_remove(e, "d", NULL), 0);
	assert_int_equal(sba_edit_commit(e, NULL), 0);
	sba_edit_close(e);
	assert_content("d/f", "below");
}

static void nothing_goes_through_a_link(void **state)
{
	struct sba_edit_seen seen;
	struct sba_error err = { 0 };
	int fd;
	(void)state;
	assert_int_equal(symlink(outside, in_dir("out")), 0);
	struct sba_edit *e = open_edit();
	assert_int_equal(sba_edit_look(e, "out/x", true, &seen, &err), SBA_EREFUSED);
	assert_int_equal(sba_edit_file(e, "out/x", 0644, &fd, &err), SBA_EREFUSED);
	assert_int_equal(sba_edit_remove(e, "out/top", &err), SBA_EREFUSED);
	assert_int_equal(sba_edit_look(e, "out", true, &seen, &err), 0);
	assert_true(S_ISLNK(seen.mode));
	assert_string_equal(seen.link, outside);
	sba_edit_close(e);
}

static void paths_and_links_that_lead_out_are_refused(void **state)
{
	static const char *const targets[] = { "/etc/passwd", "../x", "a/../../x", "a/..", "" };
	struct sba_edit_seen seen;
	(void)state;
	struct sba_edit *e = open_edit();
	for (size_t i = 0; i < SBA_ARRAY_LEN(targets); i++)
		assert_int_equal(sba_edit_link(e, "l", targets[i], NULL), SBA_EREFUSED);
	assert_int_equal(sba_edit_link(e, "a/l", "../x", NULL), 0);
	assert_int_equal(sba_edit_look(e, "../top", true, &seen, NULL), SBA_EINVAL);
	assert_int_equal(sba_edit_look(e, "/etc/passwd", true, &seen, NULL), SBA_EINVAL);
	assert_int_equal(sba_edit_look(e, "", true, &seen, NULL), SBA_EINVAL);
	sba_edit_close(e);
}

static void a_look_tells_what_is_there(void **state)
{
	struct sba_edit_seen seen;
	char expected[SBA_SHA256_HEX], hex[SBA_SHA256_HEX];
	(void)state;
	put("f", "content");
	struct sba_edit *e = open_edit();
	assert_int_equal(sba_edit_look(e, "f", true, &seen, NULL), 0);
	assert_int_equal(seen.size, 7);
	assert_true(S_ISREG(seen.mode));
	assert_int_equal(sba_sha256_hex("content", 7, expected), 0);
	sba_hex(hex, seen.sha256, sizeof(seen.sha256));
	assert_string_equal(hex, expected);
	assert_int_equal(sba_edit_look(e, "no", true, &seen, NULL), 0);
	assert_int_equal(seen.mode, 0);
	assert_int_equal(sba_edit_look(e, "f/below", true, &seen, NULL), 0);
	assert_int_equal(seen.mode, 0);
	sba_edit_close(e);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(what_is_asked_for_happens),
		IN_DIR(without_a_commit_nothing_happens),
		IN_DIR(a_failure_in_the_middle_puts_everything_back),
		IN_DIR(a_file_that_appears_meanwhile_is_a_conflict),
		IN_DIR(a_folder_whose_files_go_gives_way_to_a_file),
		IN_DIR(folders_within_it_give_way_with_it),
		IN_DIR(a_folder_with_more_in_it_stays_whole),
		IN_DIR(a_file_gives_way_to_a_folder),
		IN_DIR(nothing_goes_through_a_link),
		IN_DIR(paths_and_links_that_lead_out_are_refused),
		IN_DIR(a_look_tells_what_is_there),
	};
	umask(022);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
