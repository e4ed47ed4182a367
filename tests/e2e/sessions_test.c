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

#include "support/live.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const agents[] = { "claude", "codex", "dsh", "opencode", "pi" };

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"prefix\":\"recall\"},\"steps\":[{\"text\":\"I know: {{user_texts}}.\"}]},"
	"{\"match\":{\"prefix\":\"told\"},\"steps\":[{\"text\":\"rule {{has:RULEMARK}}, skill "
	"{{has:SKILLMARK}}, spaced {{has:SPACEMARK}}\"}]},"
	"{\"match\":{\"prefix\":\"slow\"},\"steps\":[{\"text\":\"word \",\"fill\":\"4000\","
	"\"chunk\":5,\"delay_ms\":50}]},"
	"{\"match\":{\"any\":true},\"steps\":[{\"text\":\"noted\"}]}]}";

/* One agent under test, in a sealed sandbox of its pinned image. */
static struct {
	const char *name;
	char image[256];
	struct sba_sandbox *box;
	struct sba_agent *agent;
} one;

static struct sba_agent *open_agent(struct sba_sandbox *s)
{
	struct sba_agent *a = NULL;
	struct sba_error err = { 0 };
	const struct sba_agent_options o = { .agent = one.name, .offline = true, .script = script };
	if (sba_agent_open(s, &o, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

/* One turn to its end; the answer, which the caller frees. */
static char *say(struct sba_agent *a, const char *prompt, bool aside)
{
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	const struct sba_turn_options o = { .prompt = prompt, .aside = aside, .timeout_ms = 90000 };
	if (sba_turn_begin(a, &o, &t, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK)
		fail_msg("%s: '%s': %s: %s", one.name, prompt, sba_verdict_name(r.verdict),
			 r.error.text);
	char *text = strdup(r.text);
	sba_turn_free(t);
	return text;
}

static void assert_knows_(struct sba_agent *a, const char *prompt, bool aside, const char *words,
			  const char *not_words, int line)
{
	SBA_FREE char *text = say(a, prompt, aside);
	if (words && !strstr(text, words))
		fail_msg("line %d: %s does not know %s: %s", line, one.name, words, text);
	if (not_words && strstr(text, not_words))
		fail_msg("line %d: %s knows %s: %s", line, one.name, not_words, text);
}
#define assert_knows(a, prompt, words, not_words)                                                  \
	assert_knows_(a, prompt, false, words, not_words, __LINE__)
#define assert_knows_aside(a, prompt, words, not_words)                                            \
	assert_knows_(a, prompt, true, words, not_words, __LINE__)

static const char *main_of(struct sba_agent *a)
{
	const char *id = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_main(a, &id, &err) < 0)
		fail_msg("%s", err.text);
	return id;
}

static size_t count_sessions(struct sba_agent *a)
{
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_list(a, &l, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	size_t n = sba_sessions_count(l);
	sba_sessions_free(l);
	return n;
}

/* What the CLI keeps of a session, as one number. */
static char *sum_of(struct sba_sandbox *s, const char *id)
{
	char text[512];
	if (strcmp(one.name, "opencode") == 0)
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
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	if (sba_images_open(NULL, NULL, &images, NULL) < 0)
		return -1;
	snprintf(one.image, sizeof(one.image), "%s", sba_images_ref(images, one.name));
	sba_images_close(images);
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = one.image,
					       .agent = one.name,
					       .network = "sealed",
					       .keepalive_ms = 5 * 60 * 1000 };
	if (sba_sandbox_create(live.engine, &o, &one.box, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	one.agent = open_agent(one.box);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sba_agent_close(one.agent);
	live_remove(one.box);
	one.box = NULL;
	return 0;
}

/* ---- what is tested, for each ---- */

static void a_turn_aside_knows_all_and_leaves_no_trace(void **state)
{
	(void)state;
	assert_knows(one.agent, "APPLE", "noted", NULL);
	char id[SBA_SESSION_NAME_MAX];
	snprintf(id, sizeof(id), "%s", main_of(one.agent));
	SBA_FREE char *before = sum_of(one.box, id);
	assert_knows_aside(one.agent, "recall BANANA", "APPLE", NULL);
	SBA_FREE char *after = sum_of(one.box, id);
	assert_string_equal(before, after);
	assert_string_equal(main_of(one.agent), id);
	assert_int_equal(count_sessions(one.agent), 1);
	assert_knows(one.agent, "recall CHERRY", "APPLE", "BANANA");
	SBA_FREE char *left = live_sh_out(one.box, "ls -d /tmp/sandbox-agent-* 2>/dev/null; true");
	assert_string_equal(left, "");
}

static void the_list_tells_of_the_session(void **state)
{
	(void)state;
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_list(one.agent, &l, &err) < 0)
		fail_msg("%s", err.text);
	const struct sba_session_info *i = sba_sessions_at(l, 0);
	assert_true(i->main);
	assert_string_equal(i->id, main_of(one.agent));
	assert_string_equal(i->workdir, "/workspace");
	assert_true(i->created_ms > 0 && i->updated_ms >= i->created_ms - 1000);
	if (!*i->title)
		fail_msg("%s: a session without a title", one.name);
	sba_sessions_free(l);
}

static void a_copy_goes_its_own_way(void **state)
{
	(void)state;
	char first[SBA_SESSION_NAME_MAX], copy[SBA_SESSION_NAME_MAX];
	struct sba_error err = { 0 };
	snprintf(first, sizeof(first), "%s", main_of(one.agent));
	if (sba_sessions_copy(one.agent, NULL, copy, &err) < 0 ||
	    sba_sessions_use(one.agent, copy, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	assert_int_equal(count_sessions(one.agent), 2);
	assert_knows(one.agent, "recall DATE", "APPLE", NULL);
	assert_string_equal(main_of(one.agent), copy);
	assert_int_equal(sba_sessions_use(one.agent, first, &err), 0);
	assert_knows(one.agent, "recall ELDER", "APPLE", "DATE");
	if (sba_sessions_remove(one.agent, copy, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	assert_int_equal(count_sessions(one.agent), 1);
	assert_int_equal(sba_sessions_remove(one.agent, copy, &err), SBA_ENOTFOUND);
}

static void children_have_the_same_past_and_their_own_future(void **state)
{
	(void)state;
	struct sba_sandbox *v[2] = { NULL };
	struct sba_agent *child[2];
	struct sba_error err = { 0 };
	const struct sba_fork_options o = { .count = 2 };
	free(live_sh_out(one.box, "echo parent > /workspace/file"));
	if (sba_agent_fork(one.agent, &o, v, NULL, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	for (int i = 0; i < 2; i++)
		child[i] = open_agent(v[i]);
	assert_string_not_equal(main_of(child[0]), main_of(one.agent));
	assert_string_not_equal(main_of(child[0]), main_of(child[1]));
	assert_knows(child[0], "recall FIG", "APPLE", NULL);
	assert_knows(child[1], "recall GRAPE", "APPLE", "FIG");
	assert_knows(one.agent, "recall HAZEL", "APPLE", "FIG");
	for (int i = 0; i < 2; i++) {
		SBA_FREE char *text = live_sh_out(v[i], "cat /workspace/file");
		assert_string_equal(text, "parent\n");
		assert_int_equal(count_sessions(child[i]), 1);
		sba_agent_close(child[i]);
		live_remove(v[i]);
	}
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
	const struct sba_turn_options later = { .prompt = "recall IVY", .wait_ms = 60000 };
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, sba_sandbox_info(one.box)->name,
					  &other, &err),
			 0);
	struct sba_agent *a = open_agent(other);
	assert_int_equal(sba_turn_begin(one.agent, &slow, &t, &err), 0);
	assert_true(sba_turn_next(t, 60000, &event, &err) > 0);
	assert_int_equal(sba_turn_begin(a, &now, &second, &err), SBA_EBUSY);
	/* By the CLI's own means; the one that waits begins then. */
	struct sba_turn_result r;
	sba_turn_cancel(t);
	sba_turn_result(t, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_CANCELED);
	if (sba_turn_begin(a, &later, &second, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	sba_turn_free(t);
	sba_turn_result(second, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_OK);
	assert_non_null(strstr(r.text, "APPLE"));
	sba_turn_free(second);
	sba_agent_close(a);
	sba_sandbox_close(other);
}

/* ---- to another sandbox ---- */

static struct sba_sandbox *another(void)
{
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = one.image,
					       .agent = one.name,
					       .network = "sealed",
					       .keepalive_ms = 5 * 60 * 1000 };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_create(live.engine, &o, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* One turn in a directory of its own. */
static void say_elsewhere(struct sba_agent *a, const char *prompt, const char *workdir)
{
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	const struct sba_turn_options o = { .prompt = prompt, .workdir = workdir };
	if (sba_turn_begin(a, &o, &t, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK)
		fail_msg("%s: %s", one.name, r.error.text);
	sba_turn_free(t);
}

static int dump_of(struct sba_agent *a, bool workspace)
{
	const struct sba_dump_options o = { .workspace = workspace };
	struct sba_error err = { 0 };
	int fd = open(live_path("dump"), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (sba_sessions_dump(a, &o, fd, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* Another sandbox, another directory: the whole of the past is there, and the future
 * is its own. */
static void a_dump_goes_on_in_another_sandbox(void **state)
{
	(void)state;
	struct sba_sandbox *there = another();
	struct sba_sandbox *back = another();
	struct sba_agent *a = open_agent(there), *b = open_agent(back);
	struct sba_dump_info info;
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	free(live_sh_out(there, "mkdir -p /tmp/elsewhere; echo kept > /workspace/file"));
	say_elsewhere(a, "JUNIPER", "/tmp/elsewhere");
	say_elsewhere(a, "KIWI", "/tmp/elsewhere");
	SBA_CLOSE int fd = dump_of(a, true);
	if (sba_sessions_load(b, fd, &info, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	assert_string_equal(info.session, main_of(a));
	assert_string_equal(main_of(b), info.session);
	assert_string_equal(info.agent, one.name);
	if (!strpbrk(info.cli_version, "0123456789"))
		fail_msg("%s: no version: '%s'", one.name, info.cli_version);
	assert_int_equal(info.files, 1);
	assert_false(info.replaced);
	SBA_FREE char *file = live_sh_out(back, "cat /workspace/file");
	assert_string_equal(file, "kept\n");
	assert_knows(b, "recall LEMON", "JUNIPER | KIWI", NULL);
	assert_int_equal(count_sessions(b), 1);
	/* Tokens go on with the session: two turns there, one here. */
	assert_int_equal(sba_sessions_list(b, &l, &err), 0);
	const struct sba_session_info *i = sba_sessions_at(l, 0);
	assert_int_equal(i->turns, 3);
	assert_true(i->usage.input > 0 && i->usage.output > 0);
	sba_sessions_free(l);
	/* Loaded once more, it is what it was. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	if (sba_sessions_load(b, fd, &info, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
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
	snprintf(id, sizeof(id), "%s", main_of(one.agent));
	SBA_CLOSE int fd = dump_of(one.agent, false);
	SBA_FREE char *before = sum_of(one.box, id);
	off_t size = lseek(fd, 0, SEEK_END);
	/* In the middle of the session. */
	assert_int_equal(pwrite(fd, "\x01\x02\x03", 3, size / 2), 3);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sba_sessions_load(one.agent, fd, NULL, &err), SBA_EREFUSED);
	assert_non_null(strstr(err.text, "damaged"));
	SBA_FREE char *after = sum_of(one.box, id);
	assert_string_equal(before, after);
	assert_string_equal(main_of(one.agent), id);
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
	struct sba_sandbox *s = another();
	struct sba_agent *a = open_agent(s);
	assert_knows(a, "told at first", "rule no, skill no, spaced no", NULL);
	if (sba_skills_add(a, dirs, &err) < 0 || sba_rules_set(a, "RULEMARK\n", 9, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	/* The session that has begun, and another. */
	assert_knows(a, "told then", "rule yes", NULL);
	assert_int_equal(sba_sessions_remove(a, main_of(a), &err), 0);
	assert_knows(a, "told anew", "rule yes, skill yes, spaced yes", NULL);
	if (sba_skills_remove(a, gone, &err) < 0 || sba_rules_set(a, NULL, 0, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	assert_int_equal(sba_sessions_remove(a, main_of(a), &err), 0);
	assert_knows(a, "told at last", "rule no, skill yes, spaced no", NULL);
	sba_agent_close(a);
	live_remove(s);
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
	assert_int_equal(sba_turn_begin(one.agent, &slow, &t, &err), 0);
	while (sba_turn_next(t, 60000, &event, &err) > 0 && event->kind != SBA_EVENT_SESSION)
		;
	sba_turn_cancel(t);
	int64_t began = sba_now_ms();
	sba_turn_result(t, &r);
	assert_int_equal(r.verdict, SBA_VERDICT_CANCELED);
	assert_true(sba_now_ms() - began < 15000);
	sba_turn_free(t);
	assert_knows(one.agent, "recall OLIVE", "APPLE", NULL);
}

/* The client that dies in the middle of a turn, as kill -9 leaves it. */
static void die_in_a_turn(const char *name)
{
	struct sba_engine *engine = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_turn *t = NULL;
	const struct sba_event *event;
	const struct sba_turn_options slow = { .prompt = "slow PLUM" };
	alarm(120);
	if (sba_engine_open(NULL, &engine, NULL) < 0 ||
	    sba_sandbox_open(engine, live.prefix, name, &s, NULL) < 0 ||
	    sba_turn_begin(open_agent(s), &slow, &t, NULL) < 0)
		_exit(1);
	while (sba_turn_next(t, 60000, &event, NULL) > 0 && event->kind != SBA_EVENT_SESSION)
		;
	raise(SIGKILL);
}

static void a_killed_client_loses_no_session(void **state)
{
	(void)state;
	const struct sba_turn_options later = { .prompt = "recall QUINCE", .wait_ms = 60000 };
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		die_in_a_turn(sba_sandbox_info(one.box)->name);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	if (sba_turn_begin(one.agent, &later, &t, &err) < 0)
		fail_msg("%s: %s", one.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK || !strstr(r.text, "APPLE"))
		fail_msg("%s: %s %s %s", one.name, sba_verdict_name(r.verdict), r.error.text,
			 r.text);
	sba_turn_free(t);
}

/* Five turns of a CLI of half a gigabyte, on a machine with other work. */
static int begin_step(void **state)
{
	(void)state;
	alarm(300);
	return 0;
}
#define STEP(f) cmocka_unit_test_setup(f, begin_step)

int main(void)
{
	/* They build on each other: one sandbox, one conversation. */
	const struct CMUnitTest tests[] = {
		STEP(a_turn_aside_knows_all_and_leaves_no_trace),
		STEP(the_list_tells_of_the_session),
		STEP(a_copy_goes_its_own_way),
		STEP(children_have_the_same_past_and_their_own_future),
		STEP(two_turns_at_once_are_refused_or_wait),
		STEP(a_dump_goes_on_in_another_sandbox),
		STEP(a_damaged_dump_changes_nothing),
		STEP(rules_and_skills_reach_the_model),
		STEP(an_interrupted_turn_is_part_of_the_past),
		STEP(a_killed_client_loses_no_session),
	};
	const struct CMUnitTest last[] = { cmocka_unit_test(live_nothing_is_left) };
	const char *only = getenv("AGENTS");
	int failed = live_begin(NULL) < 0;
	for (size_t i = 0; !failed && i < SBA_ARRAY_LEN(agents); i++) {
		one.name = agents[i];
		if (!only || strstr(only, one.name))
			failed += cmocka_run_group_tests_name(one.name, tests, begin, end);
	}
	return failed + cmocka_run_group_tests(last, NULL, live_end);
}
