/* SPDX-License-Identifier: MIT */
/* A snapshot of a sandbox that has only commands: what find and sha256sum say, of any names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#undef _GNU_SOURCE /* the example has its own */
int own_sandbox_main(int argc, char **argv);
#define main own_sandbox_main
#include "../../examples/own_sandbox.c"
#undef main

#include "base/base.h"
#include "support/folder.h"

#include <string.h>
#include <sys/stat.h>

static char folder[200];
static struct sba_sandbox *box;

static void must(int rc, const struct sba_error *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static const char *in(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *content, mode_t mode)
{
	SBA_CLOSE int fd = open(in(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, content, strlen(content), NULL), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int begin(void **state)
{
	struct sba_error err = { 0 };
	(void)state;
	test_folder(folder, sizeof(folder), "snapshot");
	must(sba_sandbox_adopt(&own_sandbox, folder, "own", &box, &err), &err);
	assert_int_equal(mkdir(in("sub"), 0755), 0);
	assert_int_equal(mkdir(in("node_modules"), 0755), 0);
	put("-", "dash\n", 0644);
	put("a\nb 'c\" \\ \377", "odd\n", 0600);
	put("node_modules/x", "x\n", 0644);
	put("sub/run", "", 0755);
	put("sub/large", "more than ten bytes\n", 0644);
	assert_int_equal(symlink("../-", in("sub/link")), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sba_sandbox_close(box);
	test_folder_remove(folder);
	return 0;
}

static void assert_file(const struct sba_snapshot *n, size_t i, const char *path,
			const char *content, uint32_t mode)
{
	char expected[SBA_SHA256_HEX] = "";
	const struct sba_snapshot_file *f = sba_snapshot_at(n, i);
	assert_non_null(f);
	assert_string_equal(f->path, path);
	if (content)
		assert_int_equal(sba_sha256_hex(content, strlen(content), expected), 0);
	assert_string_equal(f->sha256, expected);
	assert_int_equal(f->mode, mode);
	assert_true(f->mtime_ns > 0);
}

static void every_file_is_told_whatever_its_name(void **state)
{
	const struct sba_snapshot_options o = { .max_file_size = 10 };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	must(sba_sandbox_snapshot(box, &o, &n, &err), &err);
	assert_int_equal(sba_snapshot_count(n), 5);
	assert_int_equal(sba_snapshot_left_out(n), 0);
	assert_file(n, 0, "-", "dash\n", S_IFREG | 0644);
	assert_file(n, 1, "a\nb 'c\" \\ \377", "odd\n", S_IFREG | 0600);
	assert_file(n, 2, "sub/large", NULL, S_IFREG | 0644);
	assert_file(n, 3, "sub/link", NULL, S_IFLNK | 0777);
	assert_string_equal(sba_snapshot_at(n, 3)->link, "../-");
	assert_file(n, 4, "sub/run", "", S_IFREG | 0755);
	sba_snapshot_free(n);
}

static void what_is_passed_over_is_there_when_it_is_asked_for(void **state)
{
	const struct sba_snapshot_options o = { .everything = true };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	must(sba_sandbox_snapshot(box, &o, &n, &err), &err);
	assert_int_equal(sba_snapshot_count(n), 6);
	sba_snapshot_free(n);
}

static void a_size_that_none_exceeds_leaves_every_hash(void **state)
{
	const struct sba_snapshot_options o = { .max_file_size = UINT64_MAX };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	must(sba_sandbox_snapshot(box, &o, &n, &err), &err);
	assert_int_equal(sba_snapshot_left_out(n), 0);
	assert_file(n, 2, "sub/large", "more than ten bytes\n", S_IFREG | 0644);
	sba_snapshot_free(n);
}

static void set_time(const char *name, time_t seconds)
{
	const struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };
	assert_int_equal(utimensat(AT_FDCWD, in(name), times, 0), 0);
}

static void a_file_may_be_of_any_time(void **state)
{
	static const int64_t seconds[] = { -86400, 9000000000 };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(seconds); i++) {
		struct sba_snapshot *n = NULL;
		struct sba_file_stat st;
		struct sba_error err = { 0 };
		set_time("-", seconds[i]);
		must(sba_sandbox_snapshot(box, NULL, &n, &err), &err);
		assert_int_equal(sba_snapshot_at(n, 0)->mtime_ns, seconds[i] * 1000000000);
		sba_snapshot_free(n);
		must(sba_sandbox_stat(box, in("-"), &st, &err), &err);
		assert_int_equal(st.mtime_ns, seconds[i] * 1000000000);
	}
	set_time("-", 1);
}

static void what_it_cannot_do_is_said(void **state)
{
	const struct sba_snapshot_options ignore = { .gitignore = true };
	const struct sba_snapshot_options nowhere = { .folder = "/no/such" };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_sandbox_snapshot(box, &ignore, &n, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, ".gitignore"));
	assert_int_equal(sba_sandbox_snapshot(box, &nowhere, &n, &err), SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "/no/such"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_is_told_whatever_its_name),
		cmocka_unit_test(what_is_passed_over_is_there_when_it_is_asked_for),
		cmocka_unit_test(a_size_that_none_exceeds_leaves_every_hash),
		cmocka_unit_test(a_file_may_be_of_any_time),
		cmocka_unit_test(what_it_cannot_do_is_said),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
