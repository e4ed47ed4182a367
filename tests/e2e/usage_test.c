/* SPDX-License-Identifier: MIT */
/*
 * Tokens, as each CLI tells them and as they are added up: one meaning for all, a turn's
 * own whether it begins a session or goes on with one, and the sum of a session's turns
 * wherever it goes. The scripted model says what each answer is to have cost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of one request; a turn with a tool has two. */
enum { INPUT = 1000, CACHED = 400, OUTPUT = 30 };

#define USAGE "\"usage\":{\"input\":1000,\"output\":30,\"cached\":400}"

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"prefix\":\"work\"},\"steps\":[{\"tools\":[{\"kind\":\"bash\",\"command\":"
	"\"true\"}]," USAGE "},{\"text\":\"done\"," USAGE "}]},"
	"{\"match\":{\"any\":true},\"steps\":[{\"text\":\"noted\"," USAGE "}]}]}";

static int begin(void **state)
{
	(void)state;
	agent_move_in(script);
	return 0;
}

static void assert_usage(const struct sba_usage *u, int requests, const char *of)
{
	if (u->input != requests * INPUT || u->cached_input != requests * CACHED ||
	    u->output != requests * OUTPUT)
		fail_msg("%s: %s: %lld in (%lld cached) %lld out, not of %d requests", agent.name,
			 of, (long long)u->input, (long long)u->cached_input, (long long)u->output,
			 requests);
}

static void assert_turn(struct sba_agent *a, const struct sba_turn_options *o, int requests)
{
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	if (sba_turn_begin(a, o, &t, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK)
		fail_msg("%s: %s", agent.name, r.error.text);
	assert_usage(&r.usage, requests, "a turn");
	sba_turn_free(t);
}

#define assert_says(a, text, requests)                                                             \
	assert_turn(a, &(struct sba_turn_options){ .prompt = text }, requests)

static void assert_session(struct sba_agent *a, const char *id, int turns, int requests)
{
	struct sba_session_list *l = NULL;
	const struct sba_session_info *i = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_list(a, &l, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	for (size_t n = 0; n < sba_sessions_count(l) && !i; n++) {
		i = sba_sessions_at(l, n);
		i = strcmp(i->id, id) == 0 ? i : NULL;
	}
	if (!i)
		fail_msg("%s: no session %s", agent.name, id);
	assert_int_equal(i->turns, turns);
	assert_usage(&i->usage, requests, "a session");
	sba_sessions_free(l);
}

/* ---- what is tested, for each ---- */

static void a_turn_has_the_tokens_of_its_requests(void **state)
{
	(void)state;
	assert_says(resident.agent, "first", 1);
	assert_says(resident.agent, "work", 2);
	assert_session(resident.agent, agent_main(resident.agent), 2, 3);
}

static void a_turn_that_resumes_has_its_own_tokens_alone(void **state)
{
	(void)state;
	/* As another process would. */
	sba_agent_close(resident.agent);
	resident.agent = agent_open(resident.box, script);
	assert_says(resident.agent, "second", 1);
	assert_session(resident.agent, agent_main(resident.agent), 3, 4);
}

static void a_turn_aside_has_its_own_tokens_and_adds_none(void **state)
{
	(void)state;
	assert_turn(resident.agent, &(struct sba_turn_options){ .prompt = "aside", .aside = true },
		    1);
	assert_says(resident.agent, "third", 1);
	assert_session(resident.agent, agent_main(resident.agent), 4, 5);
}

static void a_copys_turn_has_its_own_tokens_and_its_sum_begins_with_the_past(void **state)
{
	char first[SBA_SESSION_NAME_MAX], copy[SBA_SESSION_NAME_MAX];
	struct sba_error err = { 0 };
	(void)state;
	snprintf(first, sizeof(first), "%s", agent_main(resident.agent));
	if (sba_sessions_copy(resident.agent, NULL, copy, &err) < 0 ||
	    sba_sessions_use(resident.agent, copy, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_says(resident.agent, "in the copy", 1);
	assert_session(resident.agent, copy, 5, 6);
	assert_session(resident.agent, first, 4, 5);
	if (sba_sessions_use(resident.agent, first, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_says(resident.agent, "back", 1);
	assert_session(resident.agent, first, 5, 6);
}

static void a_childs_turn_has_its_own_tokens_and_its_sum_begins_with_the_past(void **state)
{
	struct sba_sandbox *box = NULL;
	struct sba_error err = { 0 };
	(void)state;
	if (sba_agent_fork(resident.agent, NULL, &box, NULL, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	struct sba_agent *child = agent_open(box, script);
	assert_says(child, "a child's", 1);
	assert_says(child, "work", 2);
	assert_session(child, agent_main(child), 7, 9);
	assert_session(resident.agent, agent_main(resident.agent), 5, 6);
	sba_agent_close(child);
	live_remove(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHECK(a_turn_has_the_tokens_of_its_requests),
		CHECK(a_turn_that_resumes_has_its_own_tokens_alone),
		CHECK(a_turn_aside_has_its_own_tokens_and_adds_none),
		CHECK(a_copys_turn_has_its_own_tokens_and_its_sum_begins_with_the_past),
		CHECK(a_childs_turn_has_its_own_tokens_and_its_sum_begins_with_the_past),
	};
	return agents_run(tests, begin, agent_move_out);
}
