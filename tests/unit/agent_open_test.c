/* SPDX-License-Identifier: MIT */
/* Which provider an agent is opened with, and what is said of one that will not do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/agent.h>

#include <string.h>

#include "sandbox/private.h"
#include "sandbox/session.h"

static int command(const struct sba_turn_spec *turn, struct sba_command *ret, struct sba_error *err)
{
	(void)turn;
	(void)ret;
	(void)err;
	return 0;
}

static int line(struct sba_stream *s, void *state, const char *text, size_t len)
{
	(void)s;
	(void)state;
	(void)text;
	(void)len;
	return 0;
}

static void assert_refused(const struct sba_agent_options *o, const char *text, const char *hint)
{
	struct sba_session session = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct sba_sandbox s = { .session = &session,
				 .info = { .name = "fox",
					   .agent = "claude",
					   .program = "",
					   .permissions = "",
					   .login = "" } };
	struct sba_agent *a = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_agent_open(&s, o, &a, &err), SBA_EINVAL);
	assert_null(a);
	assert_string_equal(err.text, text);
	assert_non_null(strstr(err.hint, hint));
}

static void a_provider_that_nobody_knows_is_refused_with_those_there_are(void **state)
{
	(void)state;
	const struct sba_agent_options near = { .agent = "claude", .provider = "antropic" };
	assert_refused(&near, "there is no provider 'antropic'", "did you mean 'anthropic'?");
	const struct sba_agent_options far = { .agent = "claude", .provider = "zzzz" };
	assert_refused(&far, "there is no provider 'zzzz'", "deepseek");
}

static void a_driver_whose_own_provider_nobody_knows_is_refused(void **state)
{
	(void)state;
	const struct sba_driver driver = { .size = sizeof(driver),
					   .name = "parrot",
					   .binary = "parrot",
					   .provider = "zzzz",
					   .command = command,
					   .line = line };
	const struct sba_agent_options none = { .driver = &driver };
	assert_refused(&none, "there is no provider 'zzzz'", "deepseek");
	const struct sba_agent_options other = { .driver = &driver, .provider = "anthropic" };
	assert_refused(&other, "parrot does not speak anthropic's language", "--provider");
}

static void a_provider_of_another_language_is_refused_with_the_agents_own(void **state)
{
	(void)state;
	const struct sba_agent_options o = { .agent = "claude", .provider = "openai" };
	assert_refused(&o, "claude does not speak openai's language", "--provider anthropic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_provider_that_nobody_knows_is_refused_with_those_there_are),
		cmocka_unit_test(a_driver_whose_own_provider_nobody_knows_is_refused),
		cmocka_unit_test(a_provider_of_another_language_is_refused_with_the_agents_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
