/* SPDX-License-Identifier: MIT */
/*
 * Every verdict that does not depend on the engine, of each real CLI: what made the turn
 * end so is known, whatever the CLI itself makes of it. That the turns of all but the last
 * check begin in one sandbox is part of it: none leaves it unusable.
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

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"prefix\":\"die\"},\"steps\":[{\"tools\":[{\"kind\":\"bash\",\"command\":"
	"\"kill -9 $PPID; sleep 60\"}]},{\"text\":\"alive\"}]},"
	"{\"match\":{\"prefix\":\"work\"},\"steps\":[{\"tools\":[{\"kind\":\"bash\",\"command\":"
	"\"true\"}]},{\"text\":\"done\"}]},"
	"{\"match\":{\"prefix\":\"nothing\"},\"steps\":[{\"text\":\"\"}]},"
	"{\"match\":{\"prefix\":\"slow\"},\"steps\":[{\"text\":\"word \",\"fill\":\"60000\","
	"\"chunk\":5,\"delay_ms\":50}]},"
	"{\"match\":{\"any\":true},\"steps\":[{\"text\":\"noted\"}]}]}";

static int begin(void **state)
{
	(void)state;
	agent_move_in(script);
	return 0;
}

/* What is done once the turn has begun to say something; NULL: nothing. */
typedef void turn_fn(struct sba_turn *t);

static void assert_verdict(struct sba_agent *a, const struct sba_turn_options *o, turn_fn *then,
			   enum sba_verdict verdict, const char *words)
{
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	const struct sba_event *e;
	struct sba_error err = { 0 };
	if (sba_turn_begin(a, o, &t, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	if (then && sba_turn_next(t, -1, &e, &err) == 1)
		then(t);
	sba_turn_result(t, &r);
	if (r.verdict != verdict || (words && !strstr(r.error.text, words)))
		fail_msg("%s: %s (%s), not %s (%s)", agent.name, sba_verdict_name(r.verdict),
			 r.error.text, sba_verdict_name(verdict), words ? words : "");
	assert_int_equal(r.error.code, verdict == SBA_VERDICT_OK ? 0 : sba_verdict_code(verdict));
	sba_turn_free(t);
}

#define assert_ends(text, verdict, words)                                                          \
	assert_verdict(resident.agent, &(struct sba_turn_options){ .prompt = text }, NULL,         \
		       verdict, words)

/* ---- what is tested, for each ---- */

static void a_turn_that_answers_is_ok(void **state)
{
	(void)state;
	assert_ends("hello", SBA_VERDICT_OK, NULL);
}

static void a_cli_that_dies_has_failed(void **state)
{
	(void)state;
	assert_ends("die", SBA_VERDICT_AGENT_FAILED, "was ended by signal 9");
}

static void an_end_without_a_word_is_no_answer(void **state)
{
	(void)state;
	/* dsh takes an answer without content for a failure of the model's. */
	if (agent_is("dsh"))
		assert_ends("nothing", SBA_VERDICT_MODEL_ERROR, "no content");
	else
		assert_ends("nothing", SBA_VERDICT_NO_ANSWER, "without an answer");
}

static void a_turn_beyond_its_time_has_timed_out(void **state)
{
	const struct sba_turn_options o = { .prompt = "slow", .timeout_ms = 4000 };
	(void)state;
	assert_verdict(resident.agent, &o, NULL, SBA_VERDICT_TIMEOUT, "its time was over");
}

static void a_turn_that_is_interrupted_is_canceled(void **state)
{
	const struct sba_turn_options o = { .prompt = "slow" };
	(void)state;
	assert_verdict(resident.agent, &o, sba_turn_cancel, SBA_VERDICT_CANCELED, "interrupted");
}

/* A second request is one too many, whatever the CLI tells of the refusal. */
static void a_turn_beyond_its_budget_says_so(void **state)
{
	char url[64];
	struct sba_model *m = NULL;
	struct sba_agent *a = NULL;
	struct sba_error err = { 0 };
	const struct sba_model_options mo = { .script = script };
	(void)state;
	if (sba_model_open(&mo, &m, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)sba_model_port(m));
	const struct sba_agent_options o = { .provider = sba_agent_provider(agent.name),
					     .base_url = url,
					     .key = "a-key-of-the-tests",
					     .model = "some-model",
					     .max_requests = 1 };
	if (sba_agent_open(resident.box, &o, &a, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	assert_verdict(a, &(struct sba_turn_options){ .prompt = "work" }, NULL, SBA_VERDICT_BUDGET,
		       "budget of requests");
	sba_agent_close(a);
	sba_model_close(m);
}

static void break_the_sandbox(struct sba_turn *t)
{
	(void)t;
	live_kill_container(sba_sandbox_container(resident.box));
}

/* The last of the group: nothing comes after it. */
static void a_sandbox_that_dies_is_told_as_broken(void **state)
{
	(void)state;
	assert_ends("hello again", SBA_VERDICT_OK, NULL);
	assert_verdict(resident.agent, &(struct sba_turn_options){ .prompt = "slow" },
		       break_the_sandbox, SBA_VERDICT_SANDBOX_BROKEN, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHECK(a_turn_that_answers_is_ok),
		CHECK(a_cli_that_dies_has_failed),
		CHECK(an_end_without_a_word_is_no_answer),
		CHECK(a_turn_beyond_its_time_has_timed_out),
		CHECK(a_turn_that_is_interrupted_is_canceled),
		CHECK(a_turn_beyond_its_budget_says_so),
		CHECK(a_sandbox_that_dies_is_told_as_broken),
	};
	return agents_run(tests, begin, agent_move_out);
}
