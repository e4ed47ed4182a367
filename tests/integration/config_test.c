/* SPDX-License-Identifier: MIT */
/* The configuration through the program: what it shows, refuses and makes of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROGRAM_MS = 60 * 1000 };

/* Runs with this configuration file and variable (may be NULL). */
static void run_with(struct live_child *c, const char *config, const char *variable,
		     const char *const *argv)
{
	char named[256];
	const char *path = live_path("config.json");
	live_write_file(path, config, strlen(config), 0600);
	snprintf(named, sizeof(named), "SANDBOX_AGENT_CONFIG=%s", path);
	const char *const env[] = { named, variable, NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(c, PROGRAM_MS);
}
#define CONFIG_RUN(c, config, variable, ...)                                                       \
	run_with(c, config, variable, (const char *const[]){ __VA_ARGS__, NULL })

/* The setting of that key in the output of config show --json; lent. */
static const json_t *setting(const json_t *shown, const char *key)
{
	size_t i;
	const json_t *s;
	json_array_foreach(sba_json_get(shown, "settings"), i, s)
	{
		if (!strcmp(sba_json_str(s, "key"), key))
			return s;
	}
	fail_msg("%s is not shown", key);
	return NULL;
}

/* ---- config show ---- */

static void show_tells_every_value_and_its_source(void **state)
{
	(void)state;
	LIVE_CHILD c;
	CONFIG_RUN(&c, "{\"memory\": \"1.5g\", \"agents\": {\"claude\": {\"model\": \"opus\"}}}",
		   "SANDBOX_AGENT_MODEL=haiku", "--json", "--color", "never", "config", "show");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *shown = json_array_get(lines, 0);
	static const char *const expected[][4] = {
		{ "memory", "1.5g", "file", ": memory" },
		{ "model", "haiku", "environment", "SANDBOX_AGENT_MODEL" },
		{ "agents.claude.model", "haiku", "environment", "SANDBOX_AGENT_MODEL" },
		{ "chat_timeout", "30m", "built_in", "built in" },
		{ "color", "never", "option", "--color" },
		{ "prefix", live.prefix, "environment", "SANDBOX_AGENT_RESOURCE_PREFIX" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(expected); i++) {
		const json_t *s = setting(shown, expected[i][0]);
		assert_string_equal(sba_json_str(s, "value"), expected[i][1]);
		assert_string_equal(sba_json_str(s, "source"), expected[i][2]);
		assert_true(sba_ends_with(sba_json_str(s, "origin"), expected[i][3]));
	}
	assert_int_equal(sba_json_int(setting(shown, "memory"), "bytes", 0), 3LL << 29);
	for (size_t i = 0; sba_setting_at(i); i++) {
		if (sba_setting_at(i)->levels & SBA_SETTING_TOP)
			setting(shown, sba_setting_at(i)->key);
	}
}

static void show_notes_variables_that_nobody_reads(void **state)
{
	(void)state;
	LIVE_CHILD c;
	CONFIG_RUN(&c, "{}", "SANDBOX_AGENT_CONTAINER_MEMORI=1g", "config", "show", "memory");
	live_assert_says(&c, 0, "did you mean SANDBOX_AGENT_CONTAINER_MEMORY?");
}

static void show_keeps_secrets(void **state)
{
	(void)state;
	static const char config[] = "{\"key_command\": \"pass hidden\","
				     " \"env\": {\"TOKEN\": \"hidden\"},"
				     " \"agents\": {\"claude\": {\"api_key_env\": \"MY_KEY\"}}}";
	LIVE_CHILD text, json;
	CONFIG_RUN(&text, config, "MY_KEY=hidden", "config", "show");
	CONFIG_RUN(&json, config, "MY_KEY=hidden", "--json", "config", "show");
	live_assert_says(&text, 0, NULL);
	live_assert_says(&json, 0, NULL);
	assert_null(strstr(text.out.data, "hidden"));
	assert_null(strstr(json.out.data, "hidden"));
	assert_non_null(strstr(text.out.data, "MY_KEY (set)"));
	SBA_JSON json_t *lines = live_json_lines(&json);
	assert_true(sba_json_bool(setting(json_array_get(lines, 0), "key_command"), "set", false));
}

/* ---- errors ---- */

static void a_mistake_is_named_with_file_key_and_remedy(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
		{ "{\"memo_ry\": 1}", "config.json: memo_ry: there is no such setting",
		  "did you mean memory?" },
		{ "{\"agents\": {\"claude\": {\"cpus\": \"many\"}}}",
		  "config.json: agents.claude.cpus: 'many' is not a number above 0", "" },
		{ "{\n\"memory\" 1}", "config.json: line 2, column ", "" },
		{ "{\"pids\": 1, \"pids\": 2}", "duplicate object key", "" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		static const char *const commands[] = { "ps", "gc", "doctor" };
		LIVE_CHILD c;
		CONFIG_RUN(&c, cases[i][0], NULL, commands[i % 3]);
		live_assert_says(&c, 2, cases[i][1]);
		live_assert_says(&c, 2, cases[i][2]);
		assert_int_equal(c.out.len, 0);
	}
}

static void a_bad_variable_and_a_missing_file_are_usage_errors(void **state)
{
	(void)state;
	LIVE_CHILD variable, file, json, help;
	CONFIG_RUN(&variable, "{}", "SANDBOX_AGENT_EXEC_TIMEOUT=soon", "ps");
	live_assert_says(&variable, 2, "SANDBOX_AGENT_EXEC_TIMEOUT: 'soon' is not a time");
	RUN(&file, "--config", "/no/such/file", "ps");
	live_assert_says(&file, 2, "/no/such/file: No such file");
	RUN(&json, "--json", "--config", "/no/such/file", "ps");
	assert_int_equal(json.status, 2);
	assert_non_null(strstr(json.err.data, "{\"error\":{\"code\":\"config\""));
	RUN(&help, "--config", "/no/such/file", "version");
	live_assert_says(&help, 0, NULL);
}

static void what_a_setting_broke_is_blamed_on_it(void **state)
{
	(void)state;
	LIVE_CHILD file, variable, provider;
	CONFIG_RUN(&file, "{\"ca_file\": \"/no/such/ca\"}", NULL, "run", "claude", "--offline",
		   "hi");
	live_assert_says(&file, 2, "config.json: ca_file: '/no/such/ca': No such file");
	CONFIG_RUN(&variable, "{}", "SANDBOX_AGENT_ALLOW=http://example.org", "up", "claude",
		   "--offline");
	live_assert_says(&variable, 2, "SANDBOX_AGENT_ALLOW: 'http://example.org' is a URL");
	CONFIG_RUN(&provider, "{}", "SANDBOX_AGENT_PROVIDER=opanai", "run", "claude", "hi");
	live_assert_says(&provider, 2, "SANDBOX_AGENT_PROVIDER: there is no provider 'opanai'");
}

/* ---- effect ---- */

static void a_sandbox_is_made_as_the_configuration_says(void **state)
{
	(void)state;
	char config[1024];
	LIVE_CHILD up, inside, told;
	snprintf(config, sizeof(config),
		 "{\"image\": \"%s\", \"memory\": \"300m\", \"pids\": 77, \"cpus\": 0.5,"
		 " \"network\": \"sealed\", \"offline\": true, \"max_requests\": 9,"
		 " \"keepalive_seconds\": \"90s\", \"max_lifetime\": 600, \"tag\": \"top\","
		 " \"env\": {\"A\": \"1\"},"
		 " \"agents\": {\"claude\": {\"tag\": \"mine\", \"env\": {\"B\": \"2\"}}}}",
		 live_fake_image());
	CONFIG_RUN(&up, config, NULL, "up", "claude", "--name", "configured", "--pids", "78");
	live_assert_says(&up, 0, NULL);
	CONFIG_RUN(&told, config, NULL, "inspect", "configured");
	static const char *const expected[] = { "\"Memory\": 314572800", "\"PidsLimit\": 78",
						"\"NanoCpus\": 500000000" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(expected); i++)
		assert_non_null(strstr(told.out.data, expected[i]));
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "configured", &s, &err), 0);
	const struct sba_sandbox_info *i = sba_sandbox_info(s);
	assert_string_equal(i->network, "sealed");
	assert_string_equal(i->provider, "scripted");
	assert_string_equal(i->tag, "mine");
	assert_int_equal(i->keepalive_ms, 90 * 1000);
	assert_int_equal(i->max_lifetime_ms, 600 * 1000);
	assert_int_equal(i->max_requests, 9);
	CONFIG_RUN(&inside, config, NULL, "exec", "configured", "--", "sh", "-c", "echo $A$B");
	assert_string_equal(inside.out.data, "12\n");
	live_remove(s);
}

static void the_deadline_of_exec_is_configured(void **state)
{
	(void)state;
	LIVE_CHILD late, longer;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "deadline" });
	CONFIG_RUN(&late, "{\"exec_timeout\": \"300ms\"}", NULL, "exec", "deadline", "--", "sleep",
		   "7021");
	live_assert_says(&late, 124, "did not end within");
	CONFIG_RUN(&longer, "{\"exec_timeout\": \"300ms\"}", NULL, "exec", "--timeout", "30s",
		   "deadline", "--", "sleep", "0.5");
	live_assert_says(&longer, 0, NULL);
	live_remove(s);
}

/* What the engine begins in time goes on: these leave the sandbox as it is. */
static void a_timeout_of_a_kind_is_configured_and_told(void **state)
{
	(void)state;
	LIVE_CHILD copy, stop, none;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "slow" });
	CONFIG_RUN(&copy, "{\"transfer_timeout\": \"1ms\"}", NULL, "cp", "slow:/usr",
		   live_path("usr"));
	live_assert_says(&copy, 124, "it may take 1ms (");
	live_assert_says(&copy, 124, "SANDBOX_AGENT_TRANSFER_TIMEOUT, allows more");
	CONFIG_RUN(&stop, "{}", "SANDBOX_AGENT_STOP_TIMEOUT=1ms", "stop", "slow");
	live_assert_says(&stop, 124, "stop_timeout in the configuration");
	CONFIG_RUN(&none, "{\"transfer_timeout\": 0, \"stop_timeout\": 0}", NULL, "cp",
		   "slow:/etc/hostname", live_path("hostname"));
	live_assert_says(&none, 0, NULL);
	live_remove(s);
}

/* C-71 */
static void a_limit_for_calls_is_not_how_long_a_sandbox_lives(void **state)
{
	(void)state;
	LIVE_CHILD c;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	CONFIG_RUN(&c, "{\"start_timeout\": \"50s\", \"transfer_timeout\": \"20s\"}", NULL,
		   "create", "--image", live.image, "--name", "lasting");
	live_assert_says(&c, 0, NULL);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "lasting", &s, &err), 0);
	assert_int_equal(sba_sandbox_info(s)->keepalive_ms, 60 * 60 * 1000);
	assert_int_equal(sba_sandbox_info(s)->max_lifetime_ms, 24 * 60 * 60 * 1000);
	live_remove(s);
}

static void so_many_sandboxes_are_let_be(void **state)
{
	(void)state;
	LIVE_CHILD c;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "only" });
	CONFIG_RUN(&c, "{\"max_sandboxes\": 1}", NULL, "up", "claude", "--offline", "--image",
		   live.image);
	assert_int_equal(c.status, 1);
	live_remove(s);
}

/* ---- keys ---- */

static void a_key_command_that_fails_is_told_before_anything_is_made(void **state)
{
	(void)state;
	LIVE_CHILD config, option, missing;
	CONFIG_RUN(&config, "{\"key_command\": [\"sh\", \"-c\", \"echo sk-hidden; exit 3\"]}", NULL,
		   "-v", "run", "claude", "hi");
	live_assert_says(&config, 2, "key command 'sh': it failed with exit status 3");
	live_assert_says(&config, 2, "config.json: key_command says so");
	assert_null(strstr(config.err.data, "hidden"));
	RUN(&option, "run", "claude", "--api-key-command", "sh -c 'echo sk-hidden >&2; exit 4'",
	    "hi");
	live_assert_says(&option, 2, "exit status 4");
	CONFIG_RUN(&missing, "{\"agents\": {\"claude\": {\"api_key_env\": \"NO_SUCH_KEY\"}}}", NULL,
		   "run", "claude", "hi");
	live_assert_says(&missing, 2, "NO_SUCH_KEY is not set; ");
	live_assert_says(&missing, 2, "agents.claude.api_key_env names it");
	assert_int_equal(live_container_count(), 0);
}

static void up_refuses_a_key_that_it_would_not_keep(void **state)
{
	(void)state;
	LIVE_CHILD file, command;
	RUN(&file, "up", "claude", "--api-key-file", "/etc/hostname");
	live_assert_says(&file, 2, "--api-key-file: up keeps no key");
	RUN(&command, "up", "claude", "--api-key-command", "true");
	live_assert_says(&command, 2, "--api-key-command: up keeps no key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(show_tells_every_value_and_its_source),
		LIVE_TEST(show_keeps_secrets),
		LIVE_TEST(show_notes_variables_that_nobody_reads),
		LIVE_TEST(a_mistake_is_named_with_file_key_and_remedy),
		LIVE_TEST(a_bad_variable_and_a_missing_file_are_usage_errors),
		LIVE_TEST(what_a_setting_broke_is_blamed_on_it),
		LIVE_TEST(a_sandbox_is_made_as_the_configuration_says),
		LIVE_TEST(the_deadline_of_exec_is_configured),
		LIVE_TEST(a_timeout_of_a_kind_is_configured_and_told),
		LIVE_TEST(a_limit_for_calls_is_not_how_long_a_sandbox_lives),
		LIVE_TEST(so_many_sandboxes_are_let_be),
		LIVE_TEST(a_key_command_that_fails_is_told_before_anything_is_made),
		LIVE_TEST(up_refuses_a_key_that_it_would_not_keep),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
