/* SPDX-License-Identifier: MIT */
/*
 * A real CLI in a copy of a real repository: what its turns have changed, told, as a patch
 * for git, done to the folder it came from, and as commits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"
#include "support/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must_sh(const char *script)
{
	test_folder_must_sh(live.dir, script);
}

/* A repository, a work tree of it elsewhere, and a sandbox with a copy of that. */
static int begin(void **state)
{
	LIVE_CHILD up;
	(void)state;
	must_sh("rm -rf repo tree; git init -q -b main repo; cd repo; printf 'one\\ntwo\\n' > "
		"text; "
		"printf 'a\\0b' > bytes; printf x > 'odd \"name'; mkdir sub; echo s > sub/moved; "
		"printf '*.o\\n' > .gitignore; git config user.name Ann; "
		"git config user.email ann@example.org; git add .; git commit -qm first; "
		"git worktree add -q ../tree -b work");
	AGENT_RUN(&up, "up", agent.name, "--offline", "--network", "sealed", "--name", "worker",
		  "--keepalive", "15m", "-w", live_path("tree"));
	live_assert_says(&up, 0, NULL);
	return 0;
}

static int end(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "rm", "worker");
	return c.status;
}

static void say(const char *prompt)
{
	LIVE_CHILD c;
	AGENT_RUN(&c, "-q", "chat", "worker", prompt);
	live_assert_says(&c, 0, NULL);
}

static void a_turn_tells_what_it_changed(void **state)
{
	LIVE_CHILD c;
	size_t i, told = 0;
	json_t *one;
	(void)state;
	AGENT_RUN(&c, "--json", "chat", "worker",
		  "run: cd /workspace && echo three >> text && printf 'c\\0d' > bytes && "
		  "git mv sub/moved sub/now && touch x.o && chmod +x text");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	json_array_foreach(lines, i, one)
	{
		const char *path = sba_json_str(one, "path");
		if (!sba_json_bool(one, "measured", false))
			continue;
		told++;
		if (strcmp(path, "/workspace/text") == 0)
			assert_non_null(strstr(sba_json_str(one, "diff"), "+three\n"));
		if (strcmp(path, "/workspace/sub/now") == 0)
			assert_string_equal(sba_json_str(one, "old_path"), "/workspace/sub/moved");
	}
	assert_int_equal(told, 3);
}

static void the_list_and_the_patch_are_what_git_would_say(void **state)
{
	LIVE_CHILD diff, patch;
	(void)state;
	AGENT_RUN(&diff, "diff", "worker");
	live_assert_says(&diff, 0, "3 files changed");
	assert_non_null(strstr(diff.out.data, " R sub/moved -> sub/now"));
	AGENT_RUN(&patch, "patch", "worker", "-o", live_path("work.patch"));
	live_assert_says(&patch, 0, NULL);
	must_sh("rm -rf patched; git clone -q repo patched; cd patched; "
		"git apply --index ../work.patch; test -x text; test ! -e sub/moved; "
		"printf 'c\\0d' | cmp - bytes; printf 'one\\ntwo\\nthree\\n' | cmp - text");
}

static void what_changed_here_meanwhile_is_a_conflict(void **state)
{
	LIVE_CHILD c;
	(void)state;
	must_sh("cp -a tree kept; echo mine > tree/text");
	AGENT_RUN(&c, "apply", "worker", live_path("tree"));
	live_assert_says(&c, 1, "text: it has changed here too");
	must_sh("test -e tree/sub/moved; test ! -e tree/sub/now; cp -a kept/text tree/text");
}

static void the_work_tree_becomes_as_the_one_inside(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "apply", "worker", live_path("tree"));
	live_assert_says(&c, 0, "applied to");
	must_sh("cd tree; test -x text; printf 'c\\0d' | cmp - bytes; test -e sub/now; "
		"test ! -e x.o; test $(git rev-list --count HEAD) = 1");
}

static void commits_come_home_as_commits(void **state)
{
	LIVE_CHILD c, again;
	(void)state;
	say("run: cd /workspace && git add -A && git commit -qm 'inside one' && "
	    "echo four >> text && git commit -qam 'inside two' && echo five >> text");
	AGENT_RUN(&c, "--json", "apply", "worker", live_path("tree"), "--commits");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *j = json_array_get(lines, 0);
	assert_int_equal(sba_json_int(j, "commits", 0), 2);
	assert_int_equal(sba_json_int(j, "uncommitted", 0), 1);
	assert_string_equal(sba_json_str(j, "branch"), "sandbox-agent/worker");
	must_sh("cd repo; test \"$(git log --format=%s,%ae -1 sandbox-agent/worker)\" = "
		"'inside two,ann@example.org'; test $(git rev-list --count sandbox-agent/worker) = "
		"3; "
		"git show sandbox-agent/worker:text | tail -n1 | grep -qx four; "
		"test $(git rev-list --count work) = 1");
	AGENT_RUN(&again, "apply", "worker", live_path("tree"), "--commits");
	live_assert_says(&again, 0, "no new commits");
}

static void commits_that_others_stand_on_are_not_lost(void **state)
{
	LIVE_CHILD c, force;
	(void)state;
	say("run: cd /workspace && git commit -q --amend -m 'inside other'");
	AGENT_RUN(&c, "apply", "worker", live_path("repo"), "--commits");
	live_assert_says(&c, 1, "not built on");
	AGENT_RUN(&force, "apply", "worker", live_path("repo"), "--commits", "--force");
	live_assert_says(&force, 0, "took 1 commit");
}

static void a_git_inside_that_lies_changes_nothing(void **state)
{
	LIVE_CHILD c, up, rm;
	(void)state;
	AGENT_RUN(&up, "up", "command", "--name", "liar", "-w", live_path("tree"), "-e",
		  "PATH=/workspace/bin:/usr/bin:/bin", "--", "sh", "-c",
		  "mkdir -p bin; printf '%s\\n' '#!/bin/sh' 'case $1 in' "
		  "'rev-parse) echo 0123456789012345678901234567890123456789;;' "
		  "'bundle) cat >/dev/null; echo \"# v2 git bundle\"; "
		  "echo 0123456789012345678901234567890123456789 HEAD; echo; cat /bin/ls;;' "
		  "'esac' > bin/git; chmod +x bin/git; echo ok");
	live_assert_says(&up, 0, NULL);
	LIVE_CHILD turn;
	AGENT_RUN(&turn, "chat", "liar", "x");
	live_assert_says(&turn, 0, NULL);
	AGENT_RUN(&c, "apply", "liar", live_path("repo"), "--commits");
	live_assert_says(&c, 3, "does not take the commits");
	must_sh("cd repo; ! git rev-parse -q --verify sandbox-agent/liar");
	AGENT_RUN(&rm, "rm", "liar");
	live_assert_says(&rm, 0, NULL);
}

static void run_brings_all_of_it_home(void **state)
{
	LIVE_CHILD c;
	(void)state;
	must_sh("rm -rf fresh; git clone -q repo fresh");
	AGENT_RUN(&c, "run", agent.name, "--offline", "--network", "sealed", "--name", "once", "-w",
		  live_path("fresh"), "--apply", "--commits", "--branch", "agent",
		  "run: cd /workspace && echo y > y && git add y && git commit -qm 'in a run'");
	live_assert_says(&c, 0, "took 1 commit into branch agent (new)");
	must_sh("cd fresh; test \"$(git log --format=%s -1 agent)\" = 'in a run'; test -e y");
}

int main(void)
{
	const struct CMUnitTest checks[] = {
		CHECK(a_turn_tells_what_it_changed),
		CHECK(the_list_and_the_patch_are_what_git_would_say),
		CHECK(what_changed_here_meanwhile_is_a_conflict),
		CHECK(the_work_tree_becomes_as_the_one_inside),
		CHECK(commits_come_home_as_commits),
		CHECK(commits_that_others_stand_on_are_not_lost),
		CHECK(a_git_inside_that_lies_changes_nothing),
		CHECK(run_brings_all_of_it_home),
	};
	return agents_run(checks, begin, end);
}
