/* SPDX-License-Identifier: MIT */
/* One real CLI at a time: see agents.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CHECK_S = 600,
	KEEP_MS = 15 * 60 * 1000,
	TURN_MS = 240 * 1000,
	PROGRAM_MS = 280 * 1000,
};

struct agent_under_test agent;

bool agent_is(const char *name)
{
	return strcmp(agent.name, name) == 0;
}

int agent_check_begin(void **state)
{
	(void)state;
	alarm(CHECK_S);
	return 0;
}

/* ---- which ---- */

/* A word of AGENTS; all are where it is not set. */
static bool wanted(const char *name)
{
	const char *list = getenv("AGENTS"), *at = list;
	size_t len = strlen(name);
	while (at && *at) {
		at += strspn(at, " ,");
		size_t word = strcspn(at, " ,");
		if (word == len && strncmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return !list || !*list;
}

static int find_image(void)
{
	struct sba_images *images = NULL;
	SBA_JSON json_t *there = NULL;
	struct sba_error err = { 0 };
	if (sba_images_open(NULL, NULL, &images, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	snprintf(agent.image, sizeof(agent.image), "%s", sba_images_ref(images, agent.name));
	sba_images_close(images);
	int rc = sba_image_inspect(live.engine, agent.image, sba_until_in(30000), &there, &err);
	if (rc < 0)
		print_error("image '%s' is missing: make images\n", agent.image);
	return rc;
}

int agents_run_(const struct CMUnitTest *tests, size_t n, CMFixtureFunction begin,
		CMFixtureFunction end)
{
	static const char *const all[] = { "claude", "codex", "dsh", "opencode", "pi" };
	const struct CMUnitTest last[] = { cmocka_unit_test(live_nothing_is_left) };
	int failed = live_begin(NULL) < 0;
	cmocka_set_test_filter(getenv("LIVE_ONLY"));
	for (size_t i = 0; !failed && i < SBA_ARRAY_LEN(all); i++) {
		agent.name = all[i];
		if (!wanted(agent.name))
			continue;
		failed += find_image() < 0 ||
			  _cmocka_run_group_tests(agent.name, tests, n, begin, end);
	}
	return failed + cmocka_run_group_tests(last, NULL, live_end);
}

void agent_program(struct live_child *c, const char *const *argv)
{
	live_start(c, &(struct live_start){ .argv = argv });
	live_child_end(c, PROGRAM_MS);
}

/* ---- in the library ---- */

struct sba_sandbox *agent_sandbox(void)
{
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = agent.image,
					       .agent = agent.name,
					       .network = "sealed",
					       .keepalive_ms = KEEP_MS };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_create(live.engine, &o, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

struct sba_agent *agent_open(struct sba_sandbox *s, const char *script)
{
	struct sba_agent *a = NULL;
	struct sba_error err = { 0 };
	const struct sba_agent_options o = { .agent = agent.name,
					     .offline = true,
					     .script = script };
	if (sba_agent_open(s, &o, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

struct agent_resident resident;

void agent_move_in(const char *script)
{
	resident.box = agent_sandbox();
	resident.agent = agent_open(resident.box, script);
}

int agent_move_out(void **state)
{
	(void)state;
	sba_agent_close(resident.agent);
	live_remove(resident.box);
	resident.box = NULL;
	return 0;
}

char *agent_say(struct sba_agent *a, const struct sba_turn_options *options)
{
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err = { 0 };
	struct sba_turn_options o = *options;
	o.timeout_ms = TURN_MS;
	if (sba_turn_begin(a, &o, &t, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	sba_turn_result(t, &r);
	if (r.verdict != SBA_VERDICT_OK)
		fail_msg("%s: '%s': %s: %s", agent.name, o.prompt, sba_verdict_name(r.verdict),
			 r.error.text);
	char *text = strdup(r.text);
	sba_turn_free(t);
	assert_non_null(text);
	return text;
}

void agent_assert_knows_(struct sba_agent *a, const struct sba_turn_options *o, const char *words,
			 const char *not_words, const char *file, int line)
{
	SBA_FREE char *text = agent_say(a, o);
	bool knows = !words || strstr(text, words), blabs = not_words && strstr(text, not_words);
	if (knows && !blabs)
		return;
	print_error("%s: '%s' has to know %s, not %s: %s\n", agent.name, o->prompt,
		    words ? words : "anything", not_words ? not_words : "anything", text);
	_fail(file, line);
}

const char *agent_main(struct sba_agent *a)
{
	const char *id = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_main(a, &id, &err) < 0)
		fail_msg("%s", err.text);
	return id;
}

size_t agent_count_sessions(struct sba_agent *a)
{
	struct sba_session_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sessions_list(a, &l, &err) < 0)
		fail_msg("%s: %s", agent.name, err.text);
	size_t n = sba_sessions_count(l);
	sba_sessions_free(l);
	return n;
}
