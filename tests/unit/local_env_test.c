/* SPDX-License-Identifier: MIT */
/* What of an environment goes into a local sandbox: the words of docs/backends.md. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "sandbox/local.h"

struct pair {
	const char *name, *value;
};

static void names_of_providers_and_ways_to_agents_never_go_in(void **state)
{
	static const char *const names[] = {
		"ANTHROPIC_BASE_URL", "openai_organization", "LITELLM_X",      "AZURE_REGION",
		"AWS_REGION",         "GEMINI_MODEL",        "CODEX_HOME",     "CURSOR_X",
		"GOOGLE_API_KEY",     "SSH_AUTH_SOCK",       "GPG_AGENT_INFO", "DOCKER_HOST",
		"XDG_CONFIG_HOME",    "CLAUDE_CONFIG_DIR",   "HOME",           "TMPDIR",
	};
	static const char *const inherited[] = { "AWS_REGION=x", "SSH_AUTH_SOCK=/s", "A=1", NULL };
	const struct sba_local_options o = { .environment = inherited, .keep_env = true };
	SBA_STRV struct sba_strv env = { 0 };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++)
		assert_true(sba_local_hides(names[i], "plain"));
	assert_int_equal(sba_local_env(&o, "/f", "/own", &env, NULL), 0);
	assert_int_equal(env.n, 4);
	assert_string_equal(env.v[0], "A=1");
}

static void what_looks_like_a_secret_is_left_out(void **state)
{
	static const struct pair secrets[] = {
		{ "HF_TOKEN", "x" },
		{ "my_secret_x", "x" },
		{ "NPM_CONFIG__AUTH", "x" },
		{ "GH_PAT", "x" },
		{ "SENTRY_DSN", "x" },
		{ "E2B_API_KEY", "x" },
		{ "OPEN_SANDBOX_API_KEY", "x" },
		{ "DB_PASSWORD", "x" },
		{ "A", "sk-abc" },
		{ "A", "ghp_abc" },
		{ "A", "-----BEGIN RSA PRIVATE KEY-----" },
		{ "A", "postgres://u:p@host/db" },
		{ "A", "see https://u:p@host/" },
		{ "A", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(secrets); i++) {
		if (!sba_local_hides(secrets[i].name, secrets[i].value))
			fail_msg("%s=%s", secrets[i].name, secrets[i].value);
	}
}

static void what_is_none_stays(void **state)
{
	static const struct pair plain[] = {
		{ "PATH", "/bin" },
		{ "LANG", "C.UTF-8" },
		{ "TOKENIZERS_PARALLELISM", "False" },
		{ "USE_TOKEN", "1" },
		{ "SECRET_SANTA", "" },
		{ "MONKEY", "banana" },
		{ "COMPAT", "x" },
		{ "URL", "https://host/path:with@signs" },
		{ "MAIL", "user@host" },
		{ "A", "eyJust a word" },
		{ "A", "task-list" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(plain); i++) {
		if (sba_local_hides(plain[i].name, plain[i].value))
			fail_msg("%s=%s", plain[i].name, plain[i].value);
	}
}

static void folders_of_its_own_take_the_place_of_the_users(void **state)
{
	static const char *const inherited[] = { "HOME=/root", "TMP=/t", "=odd", "novalue", NULL };
	static const char *const want[] = { "HOME=/own/home", "TMPDIR=/own/tmp", "PWD=/f" };
	const struct sba_local_options o = { .environment = inherited };
	SBA_STRV struct sba_strv env = { 0 };
	(void)state;
	assert_int_equal(sba_local_env(&o, "/f", "/own", &env, NULL), 0);
	assert_int_equal(env.n, SBA_ARRAY_LEN(want));
	for (size_t i = 0; i < SBA_ARRAY_LEN(want); i++)
		assert_string_equal(env.v[i], want[i]);
}

static void without_an_environment_there_is_a_path(void **state)
{
	const struct sba_local_options o = { 0 };
	SBA_STRV struct sba_strv env = { 0 };
	(void)state;
	assert_int_equal(sba_local_env(&o, "/f", "/own", &env, NULL), 0);
	assert_true(sba_starts_with(env.v[0], "PATH=/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_providers_and_ways_to_agents_never_go_in),
		cmocka_unit_test(what_looks_like_a_secret_is_left_out),
		cmocka_unit_test(what_is_none_stays),
		cmocka_unit_test(folders_of_its_own_take_the_place_of_the_users),
		cmocka_unit_test(without_an_environment_there_is_a_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
