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

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const agents[] = { "claude", "codex", "dsh", "opencode", "pi" };

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"prefix\":\"recall\"},\"steps\":[{\"text\":\"I know: {{user_texts}}.\"}]},"
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
