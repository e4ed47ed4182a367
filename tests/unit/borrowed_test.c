/* SPDX-License-Identifier: MIT */
/* Objects that a repository borrows go along, and nothing else of who lends them. With
 * the git of this host. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/borrowed.h"
#include "support/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 120 * 1000 };

static char folder[200];

static int begin(void **state)
{
	(void)state;
	test_folder(folder, sizeof(folder), "borrowed");
	setenv("HOME", folder, 1);
	test_folder_must_sh(
		folder,
		"git init -q -b main lender; cd lender; echo shown > f; git add f; "
		"git commit -qm one; git checkout -q -b private; echo private > p; git add p; "
		"git commit -qm two; git checkout -q main; cd ..; "
		"git clone -q --shared --single-branch lender borrower; cd borrower; "
		"echo own > o; git add o; git commit -qm three; echo staged > s; git add s");
	return 0;
}

static int end(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void who_borrows_is_known(void **state)
{
	(void)state;
	assert_true(sba_git_borrows(test_folder_path(folder, "borrower/.git")));
	assert_false(sba_git_borrows(test_folder_path(folder, "lender/.git")));
}

static void all_that_is_reached_is_packed_and_nothing_else_of_the_lender(void **state)
{
	(void)state;
	char packed[SBA_BORROWED_PATH], script[1000];
	struct sba_error err = { 0 };
	if (sba_borrowed_pack(test_folder_path(folder, "borrower"), sba_until_in(LIMIT_MS), packed,
			      &err) < 0)
		fail_msg("%s", err.text);
	snprintf(script, sizeof(script),
		 "git init -q -b main inside; cp %s/pack/* inside/.git/objects/pack/; "
		 "cd inside; has() { git cat-file -e \"$(git -C ../$1 rev-parse \"$2\")\"; }; "
		 "has borrower HEAD; has borrower HEAD:f; has borrower HEAD:o; has borrower :s; "
		 "has lender main; if has lender private || has lender private:p; then false; fi",
		 packed);
	test_folder_must_sh(folder, script);
	sba_borrowed_remove(packed);
	assert_int_equal(access(packed, F_OK), -1);
}

static void a_lender_that_has_gone_is_told(void **state)
{
	(void)state;
	char packed[SBA_BORROWED_PATH];
	struct sba_error err = { 0 };
	test_folder_must_sh(folder, "mv lender moved");
	assert_int_equal(sba_borrowed_pack(test_folder_path(folder, "borrower"),
					   sba_until_in(LIMIT_MS), packed, &err),
			 SBA_EREFUSED);
	assert_non_null(strstr(err.text, "borrows objects from another repository"));
	assert_non_null(strstr(err.hint, "fsck"));
	test_folder_must_sh(folder, "mv moved lender");
}

/* Git would fetch what is missing, by a program that the repository names. */
static void what_is_missing_is_not_fetched(void **state)
{
	(void)state;
	char packed[SBA_BORROWED_PATH];
	struct sba_error err = { 0 };
	test_folder_must_sh(
		folder,
		"cp -r borrower hostile; cd hostile; git config remote.origin.promisor true; "
		"git config extensions.partialClone origin; "
		"git config remote.origin.url 'ext::touch ../ran'; "
		"git config protocol.ext.allow always; "
		"o=$(git rev-parse HEAD:o); rm -f .git/objects/${o%${o#??}}/${o#??}");
	int rc = sba_borrowed_pack(test_folder_path(folder, "hostile"), sba_until_in(LIMIT_MS),
				   packed, &err);
	if (rc == 0)
		sba_borrowed_remove(packed);
	assert_int_equal(access(test_folder_path(folder, "ran"), F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_borrows_is_known),
		cmocka_unit_test(all_that_is_reached_is_packed_and_nothing_else_of_the_lender),
		cmocka_unit_test(a_lender_that_has_gone_is_told),
		cmocka_unit_test(what_is_missing_is_not_fetched),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
