/* SPDX-License-Identifier: MIT */
/*
 * Commits that somebody else packed: what is no whole and harmless bundle stays out, and
 * only the branch that was named moves. With the git of this host.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/bundle.h"
#include "sandbox/git.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 120 * 1000 };

#define NAME_A "0123456789abcdef0123456789abcdef01234567"

/* ---- the header ---- */

static void assert_head_(const char *text, const char *wrong, int line)
{
	struct sba_bundle_head h = { 0 };
	struct sba_error err = { 0 };
	int rc = sba_bundle_head(text, strlen(text), &h, &err);
	if (!wrong &&
	    (rc < 0 || strcmp(h.tip, NAME_A) != 0 || strncmp(text + h.len, "PACK", 4) != 0))
		fail_msg("line %d: %d %s", line, rc, err.text);
	if (wrong && (rc != SBA_EPROTO || !strstr(err.text, wrong)))
		fail_msg("line %d: %d %s", line, rc, err.text);
}
#define assert_head(text, wrong) assert_head_(text, wrong, __LINE__)

static void a_header_is_taken_as_far_as_it_is_understood(void **state)
{
	(void)state;
	assert_head("# v2 git bundle\n" NAME_A " HEAD\n\nPACK", NULL);
	assert_head("# v2 git bundle\n-" NAME_A " what\n-" NAME_A "\n" NAME_A " HEAD\n\nPACK",
		    NULL);
	assert_head("# v3 git bundle\n@object-format=sha1\n" NAME_A " HEAD\n\nPACK", NULL);
	assert_head("", "does not begin");
	assert_head("PACK", "does not begin");
	assert_head("# v4 git bundle\n" NAME_A " HEAD\n\n", "does not begin");
	assert_head("# v3 git bundle\n@filter=blob:none\n" NAME_A " HEAD\n\n", "asks for");
	assert_head("# v2 git bundle\n" NAME_A " HEAD\n" NAME_A " x\n\n", "more than one");
	assert_head("# v2 git bundle\n--upload-pack=x HEAD\n\n", "no reference");
	assert_head("# v2 git bundle\nHEAD HEAD\n\n", "no name");
	assert_head("# v2 git bundle\n" NAME_A "\n\n", "no name");
	assert_head("# v2 git bundle\n\nPACK", "no reference");
	assert_head("# v2 git bundle\n" NAME_A " HEAD\n", "does not end");
}

/* ---- two repositories ---- */

static char folder[200], here[256], there[256];

static int sh(const char *script)
{
	return test_folder_sh(folder, script);
}

static void must_sh(const char *script)
{
	test_folder_must_sh(folder, script);
}

static int begin(void **state)
{
	(void)state;
	test_folder(folder, sizeof(folder), "bundle");
	setenv("HOME", folder, 1);
	snprintf(here, sizeof(here), "%s/here", folder);
	snprintf(there, sizeof(there), "%s/there", folder);
	must_sh("git init -q -b main here; cd here; echo 1 > f; git add f; git commit -qm one; "
		"cp -r . ../there; cd ../there; echo 2 >> f; git commit -qam two");
	return 0;
}

static int end(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static struct sba_home home_of(const char *branch)
{
	struct sba_home h = { .dir = here, .branch = branch, .until = sba_until_in(LIMIT_MS) };
	struct sba_error err = { 0 };
	if (sba_home_open(&h, &err) < 0)
		fail_msg("%s", err.text);
	return h;
}

/* A file `name` in the folder, as a bundle. */
static int take(const struct sba_home *h, const char *name, uint64_t max,
		struct sba_bundle_head *head, struct sba_error *err)
{
	char path[400];
	uint64_t commits;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	SBA_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	int rc = sba_home_take(h, fd, max, head, &commits, err);
	if (rc == 0)
		assert_int_equal(commits, 1);
	return rc;
}

static void a_bundle_goes_into_its_branch_and_nowhere_else(void **state)
{
	struct sba_home h = home_of("in/box");
	struct sba_bundle_head head = { 0 };
	struct sba_error err = { 0 };
	(void)state;
	must_sh("cd there; git bundle create -q ../good HEAD ^HEAD~1");
	assert_string_equal(h.old, "");
	if (take(&h, "good", SBA_BUNDLE_MAX, &head, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_not_equal(sh("cd here; git rev-parse -q --verify in/box"), 0);
	if (sba_home_move(&h, head.tip, false, &err) < 0)
		fail_msg("%s", err.text);
	must_sh("cd here; test $(git rev-parse in/box) = $(git -C ../there rev-parse HEAD); "
		"test -z \"$(git status --porcelain)\"; test $(git rev-list --count HEAD) = 1");
	/* Who believes that there is no such branch does not overrun it. */
	assert_int_equal(sba_home_move(&h, head.tip, true, &err), SBA_ECONFLICT);
	SBA_FREE char *holder = NULL;
	assert_int_equal(sba_home_holder(&h, head.tip, &holder, &err), 0);
	assert_string_equal(holder, "in/box");
}

static void a_branch_with_other_commits_moves_by_force_alone(void **state)
{
	struct sba_bundle_head head = { 0 };
	struct sba_error err = { 0 };
	(void)state;
	must_sh("cd there; git commit -q --amend -m other; "
		"git bundle create -q ../amended HEAD ^HEAD~1");
	struct sba_home h = home_of("in/box");
	assert_int_equal(take(&h, "amended", SBA_BUNDLE_MAX, &head, &err), 0);
	assert_int_equal(sba_home_move(&h, head.tip, false, &err), SBA_ECONFLICT);
	assert_non_null(strstr(err.hint, "--force"));
	assert_int_equal(sba_home_move(&h, head.tip, true, &err), 0);
}

static void assert_refused(const char *dir, const char *branch, int code, const char *words)
{
	struct sba_home h = { .dir = dir, .branch = branch, .until = sba_until_in(LIMIT_MS) };
	struct sba_error err = { 0 };
	assert_int_equal(sba_home_open(&h, &err), code);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

static void what_could_not_take_them_is_refused_before(void **state)
{
	(void)state;
	assert_refused(folder, "x", SBA_EREFUSED, "no git repository");
	assert_refused(here, "main", SBA_EREFUSED, "checked out");
	assert_refused(here, "bad..name", SBA_EINVAL, "no branch can be called");
	assert_refused(here, "-x", SBA_EINVAL, "no branch can be called");
	must_sh("cd here; git worktree add -q ../tree -b other");
	assert_refused(here, "other", SBA_EREFUSED, "checked out");
}

/* ---- hostile ones ---- */

static void assert_stays_out(const char *name, uint64_t max)
{
	struct sba_home h = home_of("hostile");
	struct sba_bundle_head head;
	struct sba_error err = { 0 };
	int rc = take(&h, name, max, &head, &err);
	if (rc != SBA_EPROTO)
		fail_msg("%s: %d %s", name, rc, err.text);
	assert_int_not_equal(sh("cd here; git rev-parse -q --verify hostile"), 0);
}

/* A commit of a tree that no `git add` makes, as a bundle. */
static void pack_tree(const char *entry, const char *name)
{
	char script[600];
	snprintf(script, sizeof(script),
		 "cd there; t=$(git rev-parse main^{tree}); t=$(printf '%s' $t | git mktree); "
		 "git update-ref refs/heads/evil $(git commit-tree -p main -m evil $t); "
		 "git symbolic-ref HEAD refs/heads/evil; git bundle create -q ../%s HEAD ^main",
		 entry, name);
	must_sh(script);
}

static void objects_that_would_harm_a_checkout_stay_out(void **state)
{
	(void)state;
	must_sh("cd there; git branch -f main HEAD~1 2>/dev/null || git checkout -q -B main "
		"HEAD~1");
	pack_tree("040000 tree %s\\t.git\\n", "dotgit");
	assert_stays_out("dotgit", SBA_BUNDLE_MAX);
	pack_tree("040000 tree %s\\t..\\n", "dotdot");
	assert_stays_out("dotdot", SBA_BUNDLE_MAX);
	must_sh("cd there; git symbolic-ref HEAD refs/heads/main; git reset -q --hard main; "
		"printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./evil\\n' > .gitmodules; "
		"git add .gitmodules; git commit -qm sub; "
		"git bundle create -q ../submodule HEAD ^HEAD~1");
	assert_stays_out("submodule", SBA_BUNDLE_MAX);
}

static void what_is_not_whole_stays_out(void **state)
{
	(void)state;
	must_sh("cd there; git reset -q --hard HEAD~1; head -c 200000 /dev/urandom > big; "
		"git add big; git commit -qm big; git bundle create -q ../whole HEAD ^HEAD~1; "
		"cd ..; head -c 100000 whole > cut; head -c 4000 /dev/urandom > junk; "
		"(head -c 1000 whole; cat junk) > mixed; "
		/* Its second commit alone: the first is nowhere here. */
		"cd there; echo x > x; git add x; git commit -qm x; "
		"git bundle create -q ../second HEAD ^HEAD~1");
	assert_stays_out("cut", SBA_BUNDLE_MAX);
	assert_stays_out("junk", SBA_BUNDLE_MAX);
	assert_stays_out("mixed", SBA_BUNDLE_MAX);
	assert_stays_out("second", SBA_BUNDLE_MAX);
	assert_stays_out("whole", 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_taken_as_far_as_it_is_understood),
		cmocka_unit_test(a_bundle_goes_into_its_branch_and_nowhere_else),
		cmocka_unit_test(a_branch_with_other_commits_moves_by_force_alone),
		cmocka_unit_test(what_could_not_take_them_is_refused_before),
		cmocka_unit_test(objects_that_would_harm_a_checkout_stay_out),
		cmocka_unit_test(what_is_not_whole_stays_out),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
