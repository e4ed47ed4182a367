/* SPDX-License-Identifier: MIT */
/*
 * What tests of the real CLIs share: one of the five at a time, those in the variable
 * AGENTS ("claude codex") or all, and turns with it. Each check is a test of the agent's
 * group; ci/e2e makes its table of their names and results.
 */
#ifndef SBA_TEST_AGENTS_H
#define SBA_TEST_AGENTS_H

#include "support/live.h"

/* The agent under test, and its pinned image. */
extern struct agent_under_test {
	const char *name;
	char image[256];
} agent;
bool agent_is(const char *name);

/* One group of the tests for each wanted agent. A begin that fails fails the group. */
int agents_run_(const struct CMUnitTest *tests, size_t n, CMFixtureFunction begin,
		CMFixtureFunction end);
#define agents_run(tests, begin, end) agents_run_(tests, SBA_ARRAY_LEN(tests), begin, end)
/* Its setup: a CLI of half a gigabyte, several turns, a machine with other work. */
int agent_check_begin(void **state);
#define CHECK(f) cmocka_unit_test_setup(f, agent_check_begin)

/* As RUN(), with more time: a CLI's start alone takes a minute on a machine that is
 * busy enough. */
void agent_program(struct live_child *c, const char *const *argv);
#define AGENT_RUN(c, ...) agent_program(c, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- in the library ---- */

/* A sealed sandbox for the agent; the caller removes it. */
struct sba_sandbox *agent_sandbox(void);
/* Of that script; the caller closes it. */
struct sba_agent *agent_open(struct sba_sandbox *s, const char *script);
/* Both, for a group whose checks build on each other: what its setup calls, and its
 * teardown. */
extern struct agent_resident {
	struct sba_sandbox *box;
	struct sba_agent *agent;
} resident;
void agent_move_in(const char *script);
int agent_move_out(void **state);
/* One turn to its end, which must be OK; the answer, which the caller frees. */
char *agent_say(struct sba_agent *a, const struct sba_turn_options *o);
/* The answer has these words and not those; NULL: any. */
void agent_assert_knows_(struct sba_agent *a, const struct sba_turn_options *o, const char *words,
			 const char *not_words, const char *file, int line);
#define assert_knows(a, text, words, not_words)                                                    \
	agent_assert_knows_(a, &(struct sba_turn_options){ .prompt = text }, words, not_words,     \
			    __FILE__, __LINE__)
#define assert_knows_aside(a, text, words, not_words)                                              \
	agent_assert_knows_(a, &(struct sba_turn_options){ .prompt = text, .aside = true }, words, \
			    not_words, __FILE__, __LINE__)
/* The id of its main session, lent. */
const char *agent_main(struct sba_agent *a);
size_t agent_count_sessions(struct sba_agent *a);

#endif
