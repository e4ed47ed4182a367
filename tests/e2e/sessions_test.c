/* SPDX-License-Identifier: MIT */
/*
 * What the real CLIs remember, and what they do not: turns aside, copies,
 * children, two turns at once. The scripted model says what it was told.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"prefix\":\"recall\"},\"steps\":[{\"text\":\"I know: {{user_texts}}.\"}]},"
	"{\"match\":{\"prefix\":\"told\"},\"steps\":[{\"text\":\"rule {{has:RULEMARK}}, skill "
	"{{has:SKILLMARK}}, spaced {{has:SPACEMARK}}\"}]},"
	"{\"match\":{\"prefix\":\"slow\"},\"steps\":[{\"text\":\"word \",\"fill\":\"4000\","
	"\"chunk\":5,\"delay_ms\":50}]},"
	"{\"match\":{\"any\":true},\"steps\":[{\"text\":\"noted\"}]}]}";

/* What the CLI keeps of a session, as one number. */
static char *sum_of(struct sba_sandbox *s, const char *id)
{
	char text[512];
	if (strcmp(agent.name, "opencode") == 0)
		snprintf(text, sizeof(text), "opencode export %s 2>/dev/null | sha256sum", id);
	else
		snprintf(text, sizeof(text),
			 "find \"$HOME\" -path '*%s*' -type f -print0 | sort -z | "
			 "xargs -0r sha256sum",
			 id);
	char *sum = live_sh_out(s, text);
	assert_true(strlen(sum) > 60);
	return sum;
}

static int begin(void **state)
{
	(void)state;
	agent_move_in(script);
	return 0;
}

/* ---- what is tested, for each ---- */

static void a_turn_aside_knows_all_and_leaves_no_trace(void **state)
{
	(void)state;
	assert_knows(resident.agent, "APPLE", "noted", NULL);
	char id[SBA_SESSION_NAME_MAX];
	snprintf(id, sizeof(id), "%s", agent_main(resident.agent));
	SBA_FREE char *before = sum_of(resident.box, id);
	assert_knows_aside(resident.agent, "recall BANANA", "APPLE", NULL);
	SBA_FREE char *after = sum_of(resident.box, id);
	assert_string_equal(before, after);
	assert_string_equal(agent_main(resident.agent), id);
	assert_int_equal(agent_count_sessions(resident.agent), 1);
	assert_knows(resident.agent, "recall CHERRY", "APPLE", "BANANA");
	SBA_FREE char *left =
		live_sh_out(resident.box, "ls -d /tmp/sandbox-agent-* 2>/dev/null; true");
	assert_string_equal(left, "");
}

static void the_list_tells_of_the_session(void **state)
{
	(void)state;
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_list(resident.agent, &l, &err) < 0)
		fail_msg("%s", err.text);
	const struct sba_session_info *i = sba_sessions_at(l, 0);
	assert_true(i->main);
	assert_string_equal(i->id, agent_main(resident.agent));
	assert_string_equal(i->workdir, "/workspace");
	assert_true(i->created_ms > 0 && i->updated_ms >= i->created_ms - 1000);
	assert_string_equal(i->title, "APPLE");
	if (!*i->model)
		fail_msg("%s: a session without a model", agent.name);
	sba_sessions_free(l);
}

static void a_copy_goes_its_own_way(void **state)
{
	(void)state;
	char first[SBA_SESSION_NAME_MAX], copy[SBA_SESSION_NAME_MAX];
	struct sba_error err = { 0 };
	snprintf(first, sizeof(first), "%s", agent_main(resident.agent));
	if (sba_sessions_copy(resident.agent, NULL, copy, &err) < 0 ||
	    sba_sessions_use(resident.agent, copy, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_int_equal(agent_count_sessions(resident.agent), 2);
	assert_knows(resident.agent, "recall DATE", "APPLE", NULL);
	assert_string_equal(agent_main(resident.agent), copy);
	assert_int_equal(sba_sessions_use(resident.agent, first, &err), 0);
	assert_knows(resident.agent, "recall ELDER", "APPLE", "DATE");
	if (sba_sessions_remove(resident.agent, copy, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_int_equal(agent_count_sessions(resident.agent), 1);
	assert_int_equal(sba_sessions_remove(resident.agent, copy, &err), SBA_ENOTFOUND);
}

static void three_children_have_the_same_past_and_their_own_future(void **state)
{
	enum { N = 3 };
	static const char *const words[N] = { "recall FIG", "recall GRAPE", "recall HAZEL" };
	(void)state;
	struct sba_sandbox *v[N] = { NULL };
	struct sba_agent *child[N];
	struct sba_error err = { 0 };
	const struct sba_fork_options o = { .count = N };
	free(live_sh_out(resident.box, "echo parent > /workspace/file"));
	if (sba_agent_fork(resident.agent, &o, v, NULL, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	for (int i = 0; i < N; i++)
		child[i] = agent_open(v[i], script);
	for (int i = 0; i < N; i++) {
		assert_string_not_equal(agent_main(child[i]), agent_main(resident.agent));
		assert_string_not_equal(agent_main(child[i]), agent_main(child[(i + 1) % N]));
	}
	/* Each after the other, so that one that hears another would say so. */
	assert_knows(child[0], words[0], "APPLE", NULL);
	assert_knows(child[1], words[1], "APPLE", "FIG");
	assert_knows(child[2], words[2], "APPLE", "GRAPE");
	assert_knows(resident.agent, "recall INDIGO", "APPLE", "FIG");
	free(live_sh_out(v[0], "echo child > /workspace/file; touch /workspace/own"));
	for (int i = 0; i < N; i++) {
		SBA_FREE char *text = live_sh_out(v[i], "cat /workspace/file");
		assert_string_equal(text, i == 0 ? "child\n" : "parent\n");
		assert_int_equal(agent_count_sessions(child[i]), 1);
	}
	SBA_FREE char *files = live_sh_out(resident.box, "cat /workspace/file; ls /workspace");
	assert_string_equal(files, "parent\nfile\n");
	for (int i = 0; i < N; i++) {
		sba_agent_close(child[i]);
		live_remove(v[i]);
	}
}

static void a_parent_in_the_middle_of_a_turn_is_forked_with_its_past(void **state)
{
	(void)state;
	struct sba_sandbox *v[1] = { NULL };
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	const struct sba_event *event;
	const struct sba_turn_options slow = { .prompt = "slow" };
	const struct sba_fork_options o = { .count = 1 };
	assert_int_equal(sba_turn_begin(resident.agent, &slow, &t, &err), 0);
	assert_true(sba_turn_next(t, 240000, &event, &err) > 0);
	if (sba_agent_fork(resident.agent, &o, v, NULL, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	struct sba_agent *child = agent_open(v[0], script);
	assert_knows(child, "recall JUNIPER", "APPLE", NULL);
	sba_turn_cancel(t);
	sba_turn_result(t, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_CANCELED);
	sba_turn_free(t);
	sba_agent_close(child);
	live_remove(v[0]);
}

static void two_turns_at_once_are_refused_or_wait(void **state)
{
	(void)state;
	struct sba_sandbox *other = NULL;
	struct sba_turn *t = NULL, *second = NULL;
	struct sba_error err = { 0 };
	const struct sba_event *event;
	const struct sba_turn_options slow = { .prompt = "slow" };
	const struct sba_turn_options now = { .prompt = "recall IVY" };
	const struct sba_turn_options later = { .prompt = "recall IVY", .wait_ms = 240000 };
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix,
					  sba_sandbox_info(resident.box)->name, &other, &err),
			 0);
	struct sba_agent *a = agent_open(other, script);
	assert_int_equal(sba_turn_begin(resident.agent, &slow, &t, &err), 0);
	assert_true(sba_turn_next(t, 240000, &event, &err) > 0);
	assert_int_equal(sba_turn_begin(a, &now, &second, &err), SBA_EBUSY);
	/* By the CLI's own means; the one that waits begins then. */
	struct sba_turn_result r;
	sba_turn_cancel(t);
	sba_turn_result(t, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_CANCELED);
	if (sba_turn_begin(a, &later, &second, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	sba_turn_free(t);
	sba_turn_result(second, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_OK);
	assert_non_null(strstr(r.text, "APPLE"));
	sba_turn_free(second);
	sba_agent_close(a);
	sba_sandbox_close(other);
}

/* ---- to another sandbox ---- */

static void say_elsewhere(struct sba_agent *a, const char *prompt)
{
	const struct sba_turn_options o = { .prompt = prompt, .workdir = "/tmp/elsewhere" };
	free(agent_say(a, &o));
}

static int dump_of(struct sba_agent *a, bool workspace)
{
	const struct sba_dump_options o = { .workspace = workspace };
	struct sba_error err = { 0 };
	int fd = open(live_path("dump"), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (sba_sessions_dump(a, &o, fd, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* The one that it was begun in is gone by then. */
static void a_session_goes_on_in_a_new_container(void **state)
{
	struct sba_error err = { 0 };
	struct sba_dump_info info;
	char id[SBA_SESSION_NAME_MAX];
	(void)state;
	snprintf(id, sizeof(id), "%s", agent_main(resident.agent));
	SBA_CLOSE int fd = dump_of(resident.agent, true);
	agent_move_out(NULL);
	begin(NULL);
	if (sba_sessions_load(resident.agent, fd, &info, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_string_equal(agent_main(resident.agent), id);
	SBA_FREE char *file = live_sh_out(resident.box, "cat /workspace/file");
	assert_string_equal(file, "parent\n");
	assert_knows(resident.agent, "recall JASMINE", "APPLE", "BANANA");
	assert_string_equal(agent_main(resident.agent), id);
}

/* Another sandbox, another directory: the whole of the past is there, and the future
 * is its own. */
static void a_dump_goes_on_in_another_sandbox_and_directory(void **state)
{
	(void)state;
	struct sba_sandbox *there = agent_sandbox();
	struct sba_sandbox *back = agent_sandbox();
	struct sba_agent *a = agent_open(there, script), *b = agent_open(back, script);
	struct sba_dump_info info;
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	free(live_sh_out(there, "mkdir -p /tmp/elsewhere; echo kept > /workspace/file"));
	say_elsewhere(a, "JUNIPER");
	say_elsewhere(a, "KIWI");
	SBA_CLOSE int fd = dump_of(a, true);
	if (sba_sessions_load(b, fd, &info, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_string_equal(info.session, agent_main(a));
	assert_string_equal(agent_main(b), info.session);
	assert_string_equal(info.agent, agent.name);
	if (!strpbrk(info.cli_version, "0123456789"))
		fail_msg("%s: no version: '%s'", agent.name, info.cli_version);
	assert_int_equal(info.files, 1);
	assert_false(info.replaced);
	SBA_FREE char *file = live_sh_out(back, "cat /workspace/file");
	assert_string_equal(file, "kept\n");
	assert_knows(b, "recall LEMON", "JUNIPER | KIWI", NULL);
	assert_int_equal(agent_count_sessions(b), 1);
	/* Tokens go on with the session: two turns there, one here. */
	assert_int_equal(sba_sessions_list(b, &l, &err), 0);
	const struct sba_session_info *i = sba_sessions_at(l, 0);
	assert_int_equal(i->turns, 3);
	assert_true(i->usage.input > 0 && i->usage.output > 0);
	sba_sessions_free(l);
	/* Loaded once more, it is what it was. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	if (sba_sessions_load(b, fd, &info, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_true(info.replaced);
	assert_knows(b, "recall MANGO", "JUNIPER | KIWI", "LEMON");
	sba_agent_close(a);
	sba_agent_close(b);
	live_remove(there);
	live_remove(back);
}

static void a_damaged_dump_changes_nothing(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	char id[SBA_SESSION_NAME_MAX];
	snprintf(id, sizeof(id), "%s", agent_main(resident.agent));
	SBA_CLOSE int fd = dump_of(resident.agent, false);
	SBA_FREE char *before = sum_of(resident.box, id);
	off_t size = lseek(fd, 0, SEEK_END);
	/* In the middle of the session. */
	assert_int_equal(pwrite(fd, "\x01\x02\x03", 3, size / 2), 3);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sba_sessions_load(resident.agent, fd, NULL, &err), SBA_EREFUSED);
	assert_non_null(strstr(err.text, "damaged"));
	SBA_FREE char *after = sum_of(resident.box, id);
	assert_string_equal(before, after);
	assert_string_equal(agent_main(resident.agent), id);
}

/* ---- instructions ---- */

static const char *skill_here(const char *folder, const char *mark)
{
	char text[256], path[256];
	const char *dir = live_path(folder);
	(void)mkdir(dir, 0755);
	snprintf(path, sizeof(path), "%s/SKILL.md", dir);
	snprintf(text, sizeof(text), "---\nname: %s\ndescription: %s, when asked.\n---\nDo it.\n",
		 *mark == 'S' && mark[1] == 'P' ? "spaced-out" : "plain", mark);
	live_write_file(path, text, strlen(text), 0644);
	return dir;
}

static void rules_and_skills_reach_the_model(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	SBA_FREE char *plain = strdup(skill_here("plain", "SKILLMARK"));
	SBA_FREE char *spaced = strdup(skill_here("spaced out", "SPACEMARK"));
	const char *const dirs[] = { plain, spaced, NULL }, *const gone[] = { "spaced out", NULL };
	struct sba_sandbox *s = agent_sandbox();
	struct sba_agent *a = agent_open(s, script);
	assert_knows(a, "told at first", "rule no, skill no, spaced no", NULL);
	if (sba_skills_add(a, dirs, &err) < 0 || sba_rules_set(a, "RULEMARK\n", 9, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	/* The session that has begun, and another. */
	assert_knows(a, "told then", "rule yes", NULL);
	assert_int_equal(sba_sessions_remove(a, agent_main(a), &err), 0);
	assert_knows(a, "told anew", "rule yes, skill yes, spaced yes", NULL);
	if (sba_skills_remove(a, gone, &err) < 0 || sba_rules_set(a, NULL, 0, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_int_equal(sba_sessions_remove(a, agent_main(a), &err), 0);
	assert_knows(a, "told at last", "rule no, skill yes, spaced no", NULL);
	sba_agent_close(a);
	live_remove(s);
}

/* ---- removed ---- */

static void a_removed_session_is_gone(void **state)
{
	struct sba_error err = { 0 };
	char id[SBA_SESSION_NAME_MAX];
	(void)state;
	snprintf(id, sizeof(id), "%s", agent_main(resident.agent));
	if (sba_sessions_remove(resident.agent, id, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_int_equal(agent_count_sessions(resident.agent), 0);
	assert_string_equal(agent_main(resident.agent), "");
	assert_int_equal(sba_sessions_remove(resident.agent, id, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_sessions_use(resident.agent, id, &err), SBA_ENOTFOUND);
	assert_knows(resident.agent, "recall RAISIN", "RAISIN", "APPLE");
	assert_string_not_equal(agent_main(resident.agent), id);
}

/* ---- interrupted, killed ---- */

static void an_interrupted_turn_is_part_of_the_past(void **state)
{
	(void)state;
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	const struct sba_event *event;
	struct sba_error err = { 0 };
	const struct sba_turn_options slow = { .prompt = "slow NUTMEG" };
	assert_int_equal(sba_turn_begin(resident.agent, &slow, &t, &err), 0);
	while (sba_turn_next(t, 240000, &event, &err) > 0 && event->kind != SBA_EVENT_SESSION)
		;
	sba_turn_cancel(t);
	int64_t began = sba_now_ms();
	sba_turn_result(t, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_CANCELED);
	assert_true(sba_now_ms() - began < 60000);
	sba_turn_free(t);
	assert_knows(resident.agent, "recall OLIVE", "APPLE", NULL);
}

/* The client that dies in the middle of a turn, as kill -9 leaves it. */
static void die_in_a_turn(const char *name)
{
	struct sba_engine *engine = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_turn *t = NULL;
	const struct sba_event *event;
	const struct sba_turn_options slow = { .prompt = "slow PLUM" };
	alarm(400);
	if (sba_engine_open(NULL, &engine, NULL) < 0 ||
	    sba_sandbox_open(engine, live.prefix, name, &s, NULL) < 0 ||
	    sba_turn_begin(agent_open(s, script), &slow, &t, NULL) < 0)
		_exit(1);
	while (sba_turn_next(t, 240000, &event, NULL) > 0 && event->kind != SBA_EVENT_SESSION)
		;
	raise(SIGKILL);
}

static void a_killed_client_loses_no_session(void **state)
{
	(void)state;
	const struct sba_turn_options later = { .prompt = "recall QUINCE", .wait_ms = 240000 };
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		die_in_a_turn(sba_sandbox_info(resident.box)->name);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	if (sba_turn_begin(resident.agent, &later, &t, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK || !strstr(r.text, "APPLE"))
		fail_msg("%s: %s %s %s", agent.name, sba_verdict_name(r.verdict), r.error.text,
			 r.text);
	sba_turn_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHECK(a_turn_aside_knows_all_and_leaves_no_trace),
		CHECK(the_list_tells_of_the_session),
		CHECK(a_copy_goes_its_own_way),
		CHECK(three_children_have_the_same_past_and_their_own_future),
		CHECK(a_parent_in_the_middle_of_a_turn_is_forked_with_its_past),
		CHECK(two_turns_at_once_are_refused_or_wait),
		CHECK(an_interrupted_turn_is_part_of_the_past),
		CHECK(a_killed_client_loses_no_session),
		CHECK(a_session_goes_on_in_a_new_container),
		CHECK(a_dump_goes_on_in_another_sandbox_and_directory),
		CHECK(a_damaged_dump_changes_nothing),
		CHECK(rules_and_skills_reach_the_model),
		CHECK(a_removed_session_is_gone),
	};
	return agents_run(tests, begin, agent_move_out);
}
