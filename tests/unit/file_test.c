/* SPDX-License-Identifier: MIT */
/* Whole files in and out, and what is too large or not there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_file_is_read_whole_or_not_at_all(void **state)
{
	(void)state;
	char dir[64], path[80];
	test_folder(dir, sizeof(dir), "sba-file");
	snprintf(path, sizeof(path), "%s/x", dir);
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	SBA_FREE char *data = calloc(1, 50000);
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(10);
	struct sba_error err = { 0 };
	assert_int_equal(sba_write_all(fd, data, 50000, &err), 0);
	sba_buf_puts(&got, "before");
	assert_int_equal(sba_read_file(path, 49999, &got, &err), SBA_ELIMIT);
	assert_string_equal(got.data, "before");
	assert_int_equal(sba_read_file(path, 50000, &got, &err), 0);
	assert_int_equal(got.len, 50000);
	unlink(path);
	assert_int_equal(sba_read_file(path, 50000, &got, &err), SBA_ENOTFOUND);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(sba_read_file("/", 50000, &got, &err), SBA_EIO);
	assert_int_equal(got.len, 50000);
	test_folder_remove(dir);
}

static void a_file_that_does_not_know_its_size_is_read_too(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf got = SBA_BUF_INIT(10);
	assert_int_equal(sba_read_file("/proc/self/status", 1 << 20, &got, NULL), 0);
	assert_non_null(strstr(got.data, "\nPid:"));
}

static void a_file_without_a_name_has_none(void **state)
{
	(void)state;
	SBA_CLOSE int fd = -1;
	struct stat st;
	assert_int_equal(sba_open_unnamed(&fd, NULL), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

struct reader {
	int fd;
	size_t all;
};

static void *drain(void *arg)
{
	struct reader *r = arg;
	char buf[4096];
	ssize_t n;
	while ((n = read(r->fd, buf, sizeof(buf))) > 0)
		r->all += (size_t)n;
	return NULL;
}

/* What would block is waited for. */
static void all_is_written_to_a_pipe_that_is_full_at_times(void **state)
{
	(void)state;
	enum { LEN = 1 << 20 };
	struct reader reader = { 0 };
	int ends[2];
	pthread_t thread;
	SBA_FREE char *data = calloc(1, LEN);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(sba_set_nonblock(ends[1], true), 0);
	assert_true(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	reader.fd = ends[0];
	assert_int_equal(pthread_create(&thread, NULL, drain, &reader), 0);
	assert_int_equal(sba_write_all(ends[1], data, LEN, NULL), 0);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	assert_int_equal(reader.all, LEN);
}

static void a_full_disk_and_a_closed_descriptor_are_errors(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	SBA_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(sba_write_all(full, "x", 1, &err), SBA_EIO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_int_equal(sba_write_all(full, "x", 0, &err), 0);
	assert_int_equal(sba_set_nonblock(-1, true), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
		cmocka_unit_test(a_file_that_does_not_know_its_size_is_read_too),
		cmocka_unit_test(a_file_without_a_name_has_none),
		cmocka_unit_test(all_is_written_to_a_pipe_that_is_full_at_times),
		cmocka_unit_test(a_full_disk_and_a_closed_descriptor_are_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
