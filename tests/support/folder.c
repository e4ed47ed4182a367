/* SPDX-License-Identifier: MIT */
#include "support/folder.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/base.h"
#include "base/limits.h"

enum { FOLDERS_MAX = 256, PATH_LEN = 64, PARENT_LEN_MAX = 32, SHELL_MS = 120 * 1000 };

static struct {
	pthread_mutex_t lock;
	pid_t owner; /* a child of the program leaves its folders alone */
	size_t n;
	char path[FOLDERS_MAX][PATH_LEN]; /* "": removed */
} made = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void remove_all(void)
{
	for (size_t i = 0; getpid() == made.owner && i < made.n; i++) {
		if (made.path[i][0])
			sba_remove_tree(AT_FDCWD, made.path[i]);
	}
}

static void note(const char *path)
{
	pthread_mutex_lock(&made.lock);
	if (made.owner == 0) {
		made.owner = getpid();
		(void)atexit(remove_all);
	}
	size_t i = 0;
	while (i < made.n && made.path[i][0])
		i++;
	if (i < FOLDERS_MAX && made.owner == getpid()) {
		snprintf(made.path[i], PATH_LEN, "%s", path);
		made.n = i == made.n ? i + 1 : made.n;
	}
	pthread_mutex_unlock(&made.lock);
}

void test_folder(char *ret, size_t size, const char *word)
{
	const char *parent = getenv("TMPDIR");
	if (!parent || parent[0] != '/' || strlen(parent) > PARENT_LEN_MAX)
		parent = "/tmp";
	int n = snprintf(ret, size, "%s/%s-XXXXXX", parent, word);
	assert_true(n > 0 && (size_t)n < size && n < PATH_LEN);
	assert_non_null(mkdtemp(ret));
	note(ret);
}

void test_folder_remove(const char *path)
{
	sba_remove_tree(AT_FDCWD, path);
	pthread_mutex_lock(&made.lock);
	for (size_t i = 0; i < made.n; i++) {
		if (strcmp(made.path[i], path) == 0)
			made.path[i][0] = '\0';
	}
	pthread_mutex_unlock(&made.lock);
}

const char *test_folder_path(const char *folder, const char *name)
{
	static char path[300];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_true(n > 0 && (size_t)n < sizeof(path));
	return path;
}

int test_folder_sh(const char *path, const char *script)
{
	char command[4000];
	snprintf(command, sizeof(command),
		 "set -e; cd '%s'; export GIT_CONFIG_NOSYSTEM=1 HOME='%s' GIT_AUTHOR_NAME=a "
		 "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; %s",
		 path, path, script);
	const char *const argv[] = { "sh", "-c", command, NULL };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_MIB);
	struct sba_error err = { 0 };
	int status = -1;
	if (sba_child_run(argv, NULL, sba_until_in(SHELL_MS), &out, &status, &err) < 0)
		fail_msg("%s", err.text);
	return status;
}

void test_folder_must_sh(const char *path, const char *script)
{
	if (test_folder_sh(path, script) != 0)
		fail_msg("failed: %s", script);
}
