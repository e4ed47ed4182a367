/* SPDX-License-Identifier: MIT */
/*
 * How the guest finds what changed: hashes, .gitignore, the walk by several threads,
 * and the lists that the host keeps, as both sides read and write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/ignore.h"
#include "guest/known.h"
#include "guest/sha256.h"
#include "guest/walk.h"
#include "sandbox/records.h"

static int top = -1;

static int make_top(void **state)
{
	char path[] = "/tmp/sba-guest-changes-XXXXXX";

	(void)state;
	if (!mkdtemp(path))
		return -1;
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top < 0 ? -1 : 0;
}

static int drop_top(void **state)
{
	char link[40], path[200];
	ssize_t len;

	(void)state;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", top);
	len = readlink(link, path, sizeof(path) - 1);
	close(top);
	if (len <= 0)
		return -1;
	path[len] = '\0';
	sba_file_remove(AT_FDCWD, path);
	return 0;
}

static void put_file(const char *path, const void *data, size_t len)
{
	int fd = openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* ---- hashes ---- */

static void hash_in_two(const uint8_t *data, size_t len, char ret[SBA_SHA256_HEX])
{
	struct sba_guest_sha256 sha;
	uint8_t bytes[SBA_GUEST_SHA256_SIZE];

	sba_guest_sha256_init(&sha);
	sba_guest_sha256_put(&sha, data, len / 3);
	sba_guest_sha256_put(&sha, data + len / 3, len - len / 3);
	sba_guest_sha256_end(&sha, bytes);
	sba_hex(ret, bytes, sizeof(bytes));
}

static void hashes_are_those_of_openssl_for_every_length(void **state)
{
	uint8_t data[1000];
	char ours[SBA_SHA256_HEX], theirs[SBA_SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	for (int plain = 0; plain < 2; plain++) {
		for (size_t len = 0; len <= sizeof(data); len += len < 200 ? 1 : 37) {
			hash_in_two(data, len, ours);
			assert_int_equal(sba_sha256_hex(data, len, theirs), 0);
			assert_string_equal(ours, theirs);
		}
		sba_guest_sha256_plain();
	}
}

/* ---- .gitignore ---- */

static void patterns_name_what_git_says_that_they_name(void **state)
{
	static const struct {
		const char *lines, *path;
		bool folder, named;
	} cases[] = {
		{ "*.o", "a.o", false, true },
		{ "*.o", "deep/down/a.o", false, true },
		{ "*.o", "a.oo", false, false },
		{ "build/", "build", true, true },
		{ "build/", "build", false, false },
		{ "build/", "x/build", true, true },
		{ "/build", "x/build", true, false },
		{ "/build", "build", false, true },
		{ "a/b", "a/b", false, true },
		{ "a/b", "x/a/b", false, false },
		{ "**/b", "x/y/b", false, true },
		{ "**/b", "b", false, true },
		{ "a/**", "a/x/y", false, true },
		{ "a/**", "a", true, false },
		{ "a/**/z", "a/z", false, true },
		{ "a/**/z", "a/b/c/z", false, true },
		{ "a/*/z", "a/b/c/z", false, false },
		{ "*.o\n!keep.o", "keep.o", false, false },
		{ "!keep.o\n*.o", "keep.o", false, true },
		{ "# *.o", "a.o", false, false },
		{ "\\#x", "#x", false, true },
		{ "\\!x", "!x", false, true },
		{ "a?c", "abc", false, true },
		{ "a?c", "a/c", false, false },
		{ "[a-c]x", "bx", false, true },
		{ "[!a-c]x", "bx", false, false },
		{ "[!a-c]x", "dx", false, true },
		{ "[]]x", "]x", false, true },
		{ "[x", "[x", false, true },
		{ "x   ", "x", false, true },
		{ "x\\ ", "x ", false, true },
		{ "x\r\ny", "x", false, true },
		{ "", "x", false, false },
		{ "/", "x", false, false },
		{ "*", "x", false, true },
		{ "a*b*c", "aXXbYYc", false, true },
		{ "a*b*c", "aXX/bYYc", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sba_ignore *ignore =
			sba_ignore_text(NULL, "", cases[i].lines, strlen(cases[i].lines));

		assert_non_null(ignore);
		if (sba_ignore_names(ignore, cases[i].path, cases[i].folder) != cases[i].named)
			fail_msg("'%s' and '%s'", cases[i].lines, cases[i].path);
		sba_ignore_free(ignore);
	}
}

static void the_nearest_file_of_patterns_has_the_last_word(void **state)
{
	const struct sba_ignore *above = sba_ignore_text(NULL, "", "*.log\n", 6);
	const struct sba_ignore *near = sba_ignore_text(above, "sub", "!*.log\n/x\n", 10);

	(void)state;
	assert_true(sba_ignore_names(above, "a.log", false));
	assert_false(sba_ignore_names(near, "sub/a.log", false));
	assert_true(sba_ignore_names(near, "sub/x", false));
	assert_false(sba_ignore_names(near, "sub/y/x", false));
	sba_ignore_free(near);
	sba_ignore_free(above);
}

static void a_pattern_of_many_stars_ends(void **state)
{
	static const char pattern[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
	const struct sba_ignore *ignore = sba_ignore_text(NULL, "", pattern, strlen(pattern));
	char name[200];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_false(sba_ignore_names(ignore, name, false));
	sba_ignore_free(ignore);
}

/* ---- the walk ---- */

struct seen {
	atomic_int files, folders, failed;
};

static const void *enter(void *user, const struct sba_guest_walk_folder *folder)
{
	struct seen *seen = user;

	(void)folder;
	atomic_fetch_add(&seen->folders, 1);
	return NULL;
}

static bool descend(void *user, const struct sba_guest_walk_folder *in, const char *path,
		    const char *leaf)
{
	(void)user;
	(void)in;
	(void)path;
	return strcmp(leaf, "passed") != 0;
}

static void file(void *user, const struct sba_guest_walk_folder *in, const char *path, size_t len,
		 const struct stat *stat)
{
	assert_int_equal(strlen(path), len);
	struct seen *seen = user;

	(void)in;
	assert_true(S_ISREG(stat->st_mode) || S_ISLNK(stat->st_mode));
	assert_true(path[0] != '/');
	atomic_fetch_add(&seen->files, 1);
}

static void failed(void *user, const char *path, int error)
{
	struct seen *seen = user;

	(void)path;
	(void)error;
	atomic_fetch_add(&seen->failed, 1);
}

static void a_walk_sees_every_file_once_and_follows_no_link(void **state)
{
	struct seen seen = { 0 };
	const struct sba_guest_walk_visitor visitor = { enter, descend, file, failed, &seen };
	char path[64];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "d%d", i);
		assert_int_equal(mkdirat(top, path, 0755), 0);
		snprintf(path, sizeof(path), "d%d/f", i);
		put_file(path, "x", 1);
	}
	assert_int_equal(mkdirat(top, "d3/passed", 0755), 0);
	put_file("d3/passed/x", "", 0);
	assert_int_equal(symlinkat("/", top, "root"), 0);
	assert_int_equal(mkfifoat(top, "fifo", 0644), 0);
	for (int threads = 1; threads <= 4; threads++) {
		memset(&seen, 0, sizeof(seen));
		assert_int_equal(sba_guest_walk(top, threads, &visitor), 0);
		assert_int_equal(atomic_load(&seen.files), 21);
		assert_int_equal(atomic_load(&seen.folders), 21);
		assert_int_equal(atomic_load(&seen.failed), 0);
	}
}

static void nothing_is_opened_through_a_link(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("/etc", top, "out"), 0);
	assert_int_equal(sba_guest_walk_open(top, "out/passwd", O_RDONLY), -1);
	assert_int_equal(sba_guest_walk_open(top, "../..", O_RDONLY), -1);
}

/* ---- lists ---- */

static void put_list(const char *name, const struct sba_buf *list)
{
	put_file(name, list->data, list->len);
}

static struct sba_file_entry entry_of(uint64_t size)
{
	return (struct sba_file_entry){
		.mode = S_IFREG | 0640,
		.size = size,
		.inode = 77,
		.mtime_ns = -5,
		.ctime_ns = 1234567890123456789,
		.flags = SBA_ENTRY_HASHED | SBA_ENTRY_KEPT,
		.sha = { 1, 2, 3, 255 },
		.pack = 1,
		.offset = 4,
	};
}

static int load(struct sba_known *known, uint32_t last)
{
	return sba_known_load(
		known, &(const struct sba_known_source){
			       .dir_fd = top, .last = last, .hashes_fd = -1, .folders = true });
}

static void lists_are_folded_as_the_host_has_written_them(void **state)
{
	SBA_BUF struct sba_buf first = SBA_BUF_INIT(65536), second = SBA_BUF_INIT(65536);
	struct sba_file_entry file_entry = entry_of(3), link = { .mode = S_IFLNK | 0777 };
	struct sba_known known;
	uint8_t content[3];

	(void)state;
	link.link = "to/there";
	sba_record_put(&first, "a/b/file", &file_entry);
	sba_record_put(&first, "gone", &file_entry);
	sba_record_put(&first, "late", &file_entry);
	sba_record_put(&second, "gone", NULL);
	sba_record_put(&second, "a/link", &link);
	put_list("1-0e", &first);
	put_list("2-1b", &second);
	put_file("1.pack", "....abc", 7);
	put_file("no-list", "junk", 4);
	assert_int_equal(load(&known, UINT32_MAX), 0);
	assert_null(sba_known_find(&known, "gone", 4));
	assert_null(sba_known_find(&known, "other", 5));
	assert_non_null(sba_known_find(&known, "late", 4));
	assert_true(sba_known_has_folder(&known, "a/b", 3));
	assert_true(sba_known_has_folder(&known, "a", 1));
	assert_false(sba_known_has_folder(&known, "a/b/file", 8));

	const struct sba_known_file *found = sba_known_find(&known, "a/b/file", 8);
	assert_non_null(found);
	struct sba_entry entry = sba_known_entry(found);
	assert_int_equal(entry.mode, S_IFREG | 0640);
	assert_int_equal(entry.size, 3);
	assert_int_equal(entry.inode, 77);
	assert_int_equal(entry.mtime_ns, -5);
	assert_int_equal(entry.ctime_ns, 1234567890123456789);
	assert_memory_equal(entry.sha, file_entry.sha, sizeof(entry.sha));
	assert_true(sba_known_content(&known, &entry, content));
	assert_memory_equal(content, "abc", 3);
	entry.offset = 5;
	assert_false(sba_known_content(&known, &entry, content));

	entry = sba_known_entry(sba_known_find(&known, "a/link", 6));
	assert_int_equal(entry.link_len, 8);
	assert_memory_equal(entry.link, "to/there", 8);
	sba_known_free(&known);
}

static void hashes_spare_reading_and_keep_nothing(void **state)
{
	SBA_BUF struct sba_buf kept = SBA_BUF_INIT(65536), hashes = SBA_BUF_INIT(65536);
	struct sba_file_entry old = entry_of(3), fresh = entry_of(9);
	const struct sba_known_source source = {
		.dir_fd = top, .last = 1, .hashes_fd = top, .name = "hashes", .folders = true
	};
	struct sba_known known;

	(void)state;
	sba_record_put(&kept, "both", &old);
	sba_record_put(&kept, "gone", &old);
	sba_record_put(&kept, "gone", NULL);
	sba_record_put(&hashes, "both", &fresh);
	sba_record_put(&hashes, "gone", &fresh);
	sba_record_put(&hashes, "new/one", &fresh);
	sba_record_put(&hashes, "cut", &fresh);
	put_list("1-0e", &kept);
	put_file("hashes", hashes.data, hashes.len - 1);
	assert_int_equal(sba_known_load(&known, &source), 0);
	assert_int_equal(sba_known_entry(sba_known_find(&known, "both", 4)).size, 9);
	assert_false(sba_known_find(&known, "both", 4)->hashed_only);
	assert_true(sba_known_find(&known, "gone", 4)->hashed_only);
	assert_true(sba_known_find(&known, "new/one", 7)->hashed_only);
	assert_false(sba_known_has_folder(&known, "new", 3));
	assert_null(sba_known_find(&known, "cut", 3));
	sba_known_free(&known);
}

static void lists_after_the_last_one_do_not_count(void **state)
{
	SBA_BUF struct sba_buf first = SBA_BUF_INIT(65536), second = SBA_BUF_INIT(65536);
	const struct sba_file_entry entry = entry_of(3);
	struct sba_known known;

	(void)state;
	sba_record_put(&first, "x", &entry);
	sba_record_put(&second, "x", NULL);
	put_list("9-0e", &first);
	put_list("10-1e", &second);
	assert_int_equal(load(&known, 9), 0);
	assert_non_null(sba_known_find(&known, "x", 1));
	sba_known_free(&known);
	assert_int_equal(load(&known, 10), 0);
	assert_null(sba_known_find(&known, "x", 1));
	sba_known_free(&known);
	assert_int_equal(load(&known, 0), 0);
	assert_null(sba_known_find(&known, "x", 1));
}

static void a_list_that_is_cut_anywhere_is_refused(void **state)
{
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(65536);
	const struct sba_file_entry entry = entry_of(3);
	struct sba_known known;

	(void)state;
	sba_record_put(&list, "some/path", &entry);
	for (size_t len = 1; len < list.len; len++) {
		put_file("1-0e", list.data, len);
		assert_int_not_equal(load(&known, 1), 0);
		sba_known_free(&known);
	}
}

#define IN_TOP(test) cmocka_unit_test_setup_teardown(test, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_openssl_for_every_length),
		cmocka_unit_test(patterns_name_what_git_says_that_they_name),
		cmocka_unit_test(the_nearest_file_of_patterns_has_the_last_word),
		cmocka_unit_test(a_pattern_of_many_stars_ends),
		IN_TOP(a_walk_sees_every_file_once_and_follows_no_link),
		IN_TOP(nothing_is_opened_through_a_link),
		IN_TOP(lists_are_folded_as_the_host_has_written_them),
		IN_TOP(lists_after_the_last_one_do_not_count),
		IN_TOP(hashes_spare_reading_and_keep_nothing),
		IN_TOP(a_list_that_is_cut_anywhere_is_refused),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
