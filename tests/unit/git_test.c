/* SPDX-License-Identifier: MIT */
/* What is asked of the git of this host about a folder that may be anybody's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/git.h"
#include "support/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 120 * 1000 };

static char folder[200];

static int begin(void **state)
{
	(void)state;
	test_folder(folder, sizeof(folder), "git");
	setenv("HOME", folder, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void tracked_and_new_files_are_listed_and_ignored_ones_not(void **state)
{
	(void)state;
	SBA_STRV struct sba_strv files = { 0 };
	struct sba_error err = { 0 };
	test_folder_must_sh(folder, "git init -q plain; cd plain; echo '*.o' > .gitignore; "
				    "touch a.c a.o new.c; git add a.c .gitignore");
	if (sba_git_files(test_folder_path(folder, "plain"), sba_until_in(LIMIT_MS), &files,
			  &err) != 1)
		fail_msg("%s", err.text);
	assert_int_equal(files.n, 3);
	assert_string_equal(files.v[0], "new.c");
	assert_string_equal(files.v[1], ".gitignore");
	assert_string_equal(files.v[2], "a.c");
}

/* Each of these makes the file `ran` where git runs it. The last lacks a folder that
 * the index only names, and names who would bring it. */
static void no_program_that_a_repository_names_is_run(void **state)
{
	(void)state;
	static const char *const hostile[] = {
		"git config core.fsmonitor '../run'; git update-index --fsmonitor",
		"cp ../run .git/hooks/post-index-change; touch d/f",
		"mkdir own; cp ../run own/post-index-change; git config core.hooksPath own",
		"git config core.pager ../run; git config pager.ls-files true",
		"git sparse-checkout set --cone --sparse-index d; "
		"git config remote.origin.promisor true; "
		"git config extensions.partialClone origin; "
		"git config remote.origin.url 'ext::touch ../ran'; "
		"git config protocol.ext.allow always; git config core.repositoryformatversion 1; "
		"e=$(git rev-parse HEAD:e); rm -f .git/objects/${e%${e#??}}/${e#??}",
	};
	char script[2000];
	test_folder_must_sh(folder, "printf '#!/bin/sh\\ntouch %s/ran\\n' \"$PWD\" > run; "
				    "chmod 755 run");
	for (size_t i = 0; i < SBA_ARRAY_LEN(hostile); i++) {
		SBA_STRV struct sba_strv files = { 0 };
		snprintf(script, sizeof(script),
			 "rm -rf hostile; git init -q -b main hostile; cd hostile; mkdir d e; "
			 "touch d/f e/g; git add .; git commit -qm one; %s; rm -f ../ran",
			 hostile[i]);
		test_folder_must_sh(folder, script);
		int rc = sba_git_files(test_folder_path(folder, "hostile"), sba_until_in(LIMIT_MS),
				       &files, NULL);
		assert_true(rc == 1 || rc == SBA_EREFUSED);
		if (access(test_folder_path(folder, "ran"), F_OK) == 0)
			fail_msg("it ran: %s", hostile[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tracked_and_new_files_are_listed_and_ignored_ones_not),
		cmocka_unit_test(no_program_that_a_repository_names_is_run),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
