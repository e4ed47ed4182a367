/* SPDX-License-Identifier: MIT */
/* `guest owners`: what it says of a tree, run in a child as the host runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guest.h"
#include "support/folder.h"

enum { SAID_MAX = 256 * 1024 };

static char top[64];
static char said[SAID_MAX];
static size_t said_len;

static int make_top(void **state)
{
	(void)state;
	alarm(60);
	test_folder(top, sizeof(top), "guest-owners");
	return 0;
}

static int drop_top(void **state)
{
	(void)state;
	test_folder_remove(top);
	return 0;
}

static void make(const char *name, bool folder, uid_t uid, gid_t gid)
{
	char path[512];

	if (geteuid() != 0) {
		print_message("only root can give files away\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s%s", top, name);
	if (folder)
		assert_int_equal(mkdir(path, 0755), 0);
	else
		assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(lchown(path, uid, gid), 0);
}

/* Its exit code; what it has said is in `said`. */
static int owners(const char *paths, size_t len)
{
	char *argv[] = { "owners", NULL };
	int in[2], out[2], status;
	ssize_t got;
	pid_t pid;

	assert_true(pipe(in) == 0 && pipe(out) == 0);
	pid = fork();
	if (pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		_exit(sba_guest_owners(1, argv));
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(write(in[1], paths, len), len);
	close(in[1]);
	said_len = 0;
	while ((got = read(out[0], said + said_len, sizeof(said) - said_len)) > 0)
		said_len += (size_t)got;
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int owners_of(const char *name)
{
	char path[512];
	int len = snprintf(path, sizeof(path), "%s%s", top, name);

	return owners(path, (size_t)len + 1);
}

static size_t lines(void)
{
	size_t n = 0;

	for (size_t i = 0; i < said_len; i++)
		n += said[i] == '\0';
	return n;
}

static bool has(const char *ids, const char *name)
{
	char line[1024];
	size_t len;

	snprintf(line, sizeof(line), "%s %s%s", ids, top, name);
	for (size_t at = 0; at < said_len; at += len + 1) {
		len = strlen(said + at);
		if (strcmp(said + at, line) == 0)
			return true;
	}
	return false;
}

static void only_those_are_named_that_are_not_their_folders_owners(void **state)
{
	(void)state;
	make("/a", true, 5, 6);
	make("/a/same", true, 5, 6);
	make("/a/same/other", false, 7, 6);
	make("/a/group", true, 5, 9);
	make("/a/group/same", true, 5, 9);
	assert_int_equal(owners_of("/a"), SBA_GUEST_OK);
	assert_int_equal(lines(), 3);
	assert_true(has("5:6", "/a"));
	assert_true(has("7:6", "/a/same/other"));
	assert_true(has("5:9", "/a/group"));
}

static void a_link_is_told_of_and_not_followed(void **state)
{
	char path[128];

	(void)state;
	make("/t", true, 1, 1);
	make("/t/in", false, 2, 2);
	snprintf(path, sizeof(path), "%s/l", top);
	assert_int_equal(symlink("t", path), 0);
	assert_int_equal(lchown(path, 3, 3), 0);
	assert_int_equal(owners_of("/l"), SBA_GUEST_OK);
	assert_int_equal(lines(), 1);
	assert_true(has("3:3", "/l"));
}

static void what_is_not_there_is_passed_over(void **state)
{
	char paths[256];
	int len;

	(void)state;
	make("/b", true, 1, 2);
	len = snprintf(paths, sizeof(paths), "/nowhere/at/all%crelative%c/%c%s/b%c", 0, 0, 0, top,
		       0);
	assert_int_equal(owners(paths, (size_t)len), SBA_GUEST_OK);
	assert_int_equal(lines(), 1);
	assert_true(has("1:2", "/b"));
}

static void a_last_path_without_its_end_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(owners("/tmp", strlen("/tmp")), SBA_GUEST_FAILED);
	assert_int_equal(said_len, 0);
}

static void more_is_told_than_is_held_at_once(void **state)
{
	char name[300];

	(void)state;
	make("/many", true, 1, 1);
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "/many/%0250d", i);
		make(name, false, 2, 2);
	}
	assert_int_equal(owners_of("/many"), SBA_GUEST_OK);
	assert_int_equal(lines(), 401);
	assert_true(has("2:2", name));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_those_are_named_that_are_not_their_folders_owners),
		TEST(a_link_is_told_of_and_not_followed),
		TEST(what_is_not_there_is_passed_over),
		TEST(a_last_path_without_its_end_is_an_error),
		TEST(more_is_told_than_is_held_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
