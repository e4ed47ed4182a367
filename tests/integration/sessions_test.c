/* SPDX-License-Identifier: MIT */
/*
 * Turns beside each other, instructions and children, through the program; the CLI
 * is a fake claude (support/live_image.c). What the real ones remember is tested in
 * tests/e2e.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAKE   "claude", "--offline", "--image", live_fake_image()
#define SKILLS "/root/.claude/skills"

static void up(const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "-q", "up", FAKE, "--name", name);
	live_assert_says(&c, 0, NULL);
}

static void rm(const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "-q", "rm", name);
	live_assert_says(&c, 0, NULL);
}

/* What a shell inside says. */
static void assert_inside_(const char *name, const char *script, const char *said, int line)
{
	LIVE_CHILD c;
	RUN(&c, "exec", name, "--", "sh", "-c", script);
	const char *out = c.out.data ? c.out.data : "";
	if (strcmp(out, said) != 0)
		fail_msg("line %d: '%s' says '%s', not '%s'", line, script, out, said);
}
#define assert_inside(name, script, said) assert_inside_(name, script, said, __LINE__)

static const char *folder(const char *name, const char *text)
{
	char path[256];
	const char *dir = live_path(name);
	(void)mkdir(dir, 0755);
	snprintf(path, sizeof(path), "%s/SKILL.md", dir);
	if (text)
		live_write_file(path, text, strlen(text), 0644);
	return dir;
}

#define HEAD "---\nname: n\ndescription: what it is for\n---\n"

/* ---- skills ---- */

static void skills_are_added_listed_replaced_and_removed(void **state)
{
	(void)state;
	LIVE_CHILD add, ls, again, rm_one, left;
	up("ox");
	RUN(&add, "skills", "add", "ox", folder("plain", HEAD), folder("two words", HEAD "one\n"));
	live_assert_says(&add, 0, NULL);
	RUN(&ls, "skills", "ls", "ox");
	live_assert_says(&ls, 0, NULL);
	assert_non_null(strstr(ls.out.data, "two words"));
	assert_non_null(strstr(ls.out.data, "what it is for"));
	assert_inside("ox", "touch '" SKILLS "/two words/old'; ls -A ~/.claude", "skills\n");
	/* What the new one has not goes with the old one. */
	RUN(&again, "skills", "add", "ox", folder("two words", HEAD "two\n"));
	live_assert_says(&again, 0, NULL);
	assert_inside("ox", "ls '" SKILLS "/two words'; tail -n1 '" SKILLS "/two words/SKILL.md'",
		      "SKILL.md\ntwo\n");
	RUN(&rm_one, "skills", "rm", "ox", "two words");
	live_assert_says(&rm_one, 0, NULL);
	RUN(&left, "--json", "skills", "ls", "ox");
	SBA_JSON json_t *lines = live_json_lines(&left);
	const json_t *j = json_array_get(lines, 0);
	assert_int_equal(json_array_size(json_object_get(j, "skills")), 1);
	assert_string_equal(sba_json_str(j, "skills.#0.folder"), "plain");
	rm("ox");
}

static void a_skill_is_removed_by_its_name_where_only_one_has_it(void **state)
{
	(void)state;
	LIVE_CHILD add, both, by_folder, by_name, none;
	up("ox");
	RUN(&add, "skills", "add", "ox", folder("one", HEAD), folder("other", HEAD));
	live_assert_says(&add, 0, NULL);
	RUN(&both, "skills", "rm", "ox", "n");
	live_assert_says(&both, 2, "2 skills are called 'n'");
	RUN(&by_folder, "skills", "rm", "ox", "one");
	live_assert_says(&by_folder, 0, NULL);
	RUN(&by_name, "skills", "rm", "ox", "n");
	live_assert_says(&by_name, 0, NULL);
	RUN(&none, "skills", "rm", "ox", "n");
	live_assert_says(&none, 1, "there is no skill 'n'");
	rm("ox");
}

static void of_several_skills_all_or_none_are_added(void **state)
{
	(void)state;
	LIVE_CHILD broken, missing, leads, gone;
	up("ox");
	RUN(&broken, "skills", "add", "ox", folder("good", HEAD), folder("bad", "no head\n"));
	live_assert_says(&broken, 2, "front matter");
	RUN(&missing, "skills", "add", "ox", folder("good", HEAD), live_path("nowhere"));
	live_assert_says(&missing, 2, "is no skill");
	const char *out = folder("leads out", HEAD);
	char link[256];
	snprintf(link, sizeof(link), "%s/link", out);
	unlink(link);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	RUN(&leads, "skills", "add", "ox", folder("good", HEAD), out);
	live_assert_says(&leads, 1, "leads out");
	assert_inside("ox", "ls -A " SKILLS " 2>/dev/null", "");
	RUN(&gone, "skills", "rm", "ox", "good");
	live_assert_says(&gone, 1, "there is no skill 'good'");
	rm("ox");
}

/* ---- rules ---- */

static void rules_are_set_shown_and_removed(void **state)
{
	(void)state;
	static const char *const set_argv[] = { "rules", "set", "ox", "-", NULL };
	const struct live_start from_stdin = { .argv = set_argv, .input = "be kind\n" };
	const struct live_start nothing = { .argv = set_argv };
	LIVE_CHILD set = { 0 }, show, empty = { 0 }, none;
	up("ox");
	live_start(&set, &from_stdin);
	live_child_end(&set, 30000);
	live_assert_says(&set, 0, NULL);
	RUN(&show, "rules", "show", "ox");
	assert_string_equal(show.out.data, "be kind\n");
	assert_inside("ox", "cat ~/.claude/CLAUDE.md", "be kind\n");
	live_start(&empty, &nothing);
	live_child_end(&empty, 30000);
	live_assert_says(&empty, 0, NULL);
	RUN(&none, "rules", "show", "ox");
	live_assert_says(&none, 0, NULL);
	assert_int_equal(none.out.len, 0);
	assert_inside("ox", "ls ~/.claude", "");
	rm("ox");
}

static void a_sandbox_is_made_with_skills_and_rules_or_not_at_all(void **state)
{
	(void)state;
	LIVE_CHILD made, run, not_made;
	const char *rules = live_path("rules.md");
	live_write_file(rules, "be brief\n", 9, 0644);
	RUN(&made, "-q", "up", FAKE, "--name", "ox", "--skill", folder("plain", HEAD), "--skill",
	    folder("two words", HEAD), "--rules", rules);
	live_assert_says(&made, 0, NULL);
	assert_inside("ox", "ls ~/.claude/skills; cat ~/.claude/CLAUDE.md",
		      "plain\ntwo words\nbe brief\n");
	rm("ox");
	RUN(&run, "-q", "run", FAKE, "--skill", folder("plain", HEAD), "--rules", rules, "hi");
	live_assert_says(&run, 0, NULL);
	RUN(&not_made, "up", FAKE, "--skill", folder("bad", "no head\n"));
	live_assert_says(&not_made, 2, "front matter");
	assert_int_equal(live_container_count(), 0);
}

/* ---- one turn at a time ---- */

static void one_that_is_busy_says_so_or_is_waited_for(void **state)
{
	(void)state;
	static const char *const hang_argv[] = { "chat", "ox", "hang", NULL };
	static const char *const wait_argv[] = { "chat", "--wait", "ox", "hi", NULL };
	const struct live_start hang = { .argv = hang_argv }, waits = { .argv = wait_argv };
	LIVE_CHILD first = { 0 }, second, third = { 0 }, json;
	up("ox");
	live_start(&first, &hang);
	live_child_await(&first, "working", 30000);
	RUN(&second, "chat", "ox", "hi");
	live_assert_says(&second, 1, "a turn of claude in sandbox 'ox' is under way");
	assert_non_null(strstr(second.err.data, "--wait"));
	RUN(&json, "--json", "chat", "ox", "hi");
	live_assert_says(&json, 1, "\"retry\":true");
	live_start(&third, &waits);
	live_child_await(&third, "waits for its end", 30000);
	kill(first.pid, SIGINT);
	live_child_end(&first, 30000);
	live_assert_says(&first, 130, "partial");
	live_child_end(&third, 30000);
	live_assert_says(&third, 0, "ok");
	assert_string_equal(third.out.data, "heard hi\n");
	rm("ox");
}

static void who_waits_can_be_interrupted(void **state)
{
	(void)state;
	static const char *const hang_argv[] = { "chat", "ox", "hang", NULL };
	static const char *const ask_argv[] = { "ask", "ox", "hi", NULL };
	const struct live_start hang = { .argv = hang_argv }, asks = { .argv = ask_argv };
	LIVE_CHILD first = { 0 }, second = { 0 };
	up("ox");
	live_start(&first, &hang);
	live_child_await(&first, "working", 30000);
	live_start(&second, &asks);
	live_child_await(&second, "waits for its end", 30000);
	kill(second.pid, SIGINT);
	live_child_end(&second, 30000);
	live_assert_says(&second, 130, "nothing was begun");
	kill(first.pid, SIGINT);
	live_child_end(&first, 30000);
	rm("ox");
}

static bool interrupted_until_over(void *user)
{
	siginfo_t info = { 0 };
	pid_t pid = *(pid_t *)user;
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == pid)
		return true;
	kill(pid, SIGINT);
	return false;
}

/* It takes no signal; the second one does not wait for the five seconds. */
static void the_second_interrupt_ends_a_stubborn_turn_at_once(void **state)
{
	(void)state;
	static const char *const argv[] = { "chat", "ox", "stubborn", NULL };
	const struct live_start stubborn = { .argv = argv };
	LIVE_CHILD c = { 0 };
	up("ox");
	live_start(&c, &stubborn);
	live_child_await(&c, "working", 30000);
	/* Two that come together are one: as a user does, until it is over. */
	live_await(interrupted_until_over, &c.pid, 4500);
	live_child_end(&c, 30000);
	live_assert_says(&c, 130, "ending it at once");
	assert_non_null(strstr(c.err.data, "partial"));
	assert_inside("ox", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 4244 '",
		      "0\n");
	rm("ox");
}

/* ---- children ---- */

static void children_are_told_with_what_they_do_not_inherit(void **state)
{
	(void)state;
	LIVE_CHILD made, fork, json, rest;
	RUN(&made, "-q", "up", FAKE, "--name", "ox", "-e", "TOKEN_OF_MINE=secretvalue", "-e",
	    "TZ=UTC");
	live_assert_says(&made, 0, NULL);
	assert_inside("ox", "echo changed > /workspace/file", "");
	RUN(&fork, "fork", "ox", "-n", "2", "-e", "TZ=Europe/Vienna");
	live_assert_says(&fork, 0, "not inherited: TOKEN_OF_MINE");
	assert_string_equal(fork.out.data, "ox-1\nox-2\n");
	assert_null(strstr(fork.err.data, "TZ"));
	assert_null(strstr(fork.err.data, "secretvalue"));
	assert_inside("ox-2", "cat /workspace/file; echo $TZ$TOKEN_OF_MINE",
		      "changed\nEurope/Vienna\n");
	RUN(&json, "--json", "fork", "ox", "--name", "calf");
	SBA_JSON json_t *lines = live_json_lines(&json);
	const json_t *j = json_array_get(lines, 0);
	assert_string_equal(sba_json_str(j, "children.#0.name"), "calf");
	assert_int_equal(json_array_size(json_object_get(j, "env_not_inherited")), 2);
	RUN(&rest, "-q", "rm", "ox-1", "ox-2", "calf", "ox");
	live_assert_says(&rest, 0, NULL);
}

/* ---- dumps that are none ---- */

static void what_is_no_dump_is_refused_and_no_file_is_left(void **state)
{
	(void)state;
	LIVE_CHILD load, missing, dump, no_agent;
	char file[256];
	snprintf(file, sizeof(file), "%s", live_path("no.session"));
	live_write_file(file, "hello", 5, 0644);
	up("ox");
	RUN(&load, "sessions", "load", "ox", file);
	live_assert_says(&load, 1, "no dump of a session");
	RUN(&missing, "sessions", "load", "ox", live_path("nowhere"));
	live_assert_says(&missing, 1, "No such file");
	RUN(&dump, "sessions", "dump", "ox", file);
	live_assert_says(&dump, 1, "has not said anything yet");
	SBA_FREE char *still = live_read_file(file, NULL);
	assert_string_equal(still, "hello");
	RUN(&no_agent, "sessions", "rm", "ox", "../../etc");
	live_assert_says(&no_agent, 2, "no session id");
	rm("ox");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(skills_are_added_listed_replaced_and_removed),
		LIVE_TEST(a_skill_is_removed_by_its_name_where_only_one_has_it),
		LIVE_TEST(of_several_skills_all_or_none_are_added),
		LIVE_TEST(rules_are_set_shown_and_removed),
		LIVE_TEST(a_sandbox_is_made_with_skills_and_rules_or_not_at_all),
		LIVE_TEST(one_that_is_busy_says_so_or_is_waited_for),
		LIVE_TEST(who_waits_can_be_interrupted),
		LIVE_TEST(the_second_interrupt_ends_a_stubborn_turn_at_once),
		LIVE_TEST(children_are_told_with_what_they_do_not_inherit),
		LIVE_TEST(what_is_no_dump_is_refused_and_no_file_is_left),
		cmocka_unit_test(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
