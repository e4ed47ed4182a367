/* SPDX-License-Identifier: MIT */
/*
 * What users and surroundings do wrong: each has its own clear error, the exit
 * status of the table, and leaves nothing behind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE "claude", "--offline", "--image", live_fake_image()

/* A sandbox for the fake CLI by the program; the tests name it. */
static void up(const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "up", FAKE, "--name", name, "--keepalive", "60s");
	live_assert_says(&c, 0, NULL);
	assert_true(sba_starts_with(c.out.data, name));
}

static struct sba_sandbox *open_box(const char *name)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, name, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* ---- words ---- */

static void an_unknown_agent_suggests_the_nearest(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", "cluade", "--offline", "hi");
	live_assert_says(&c, 2, "did you mean claude");
	LIVE_CHILD far;
	RUN(&far, "run", "zzz", "--offline", "hi");
	live_assert_says(&far, 2, "claude, codex, command, dsh, opencode, pi");
}

static void a_missing_image_says_how_to_get_it(void **state)
{
	(void)state;
	LIVE_CHILD ours, other;
	RUN(&ours, "run", "claude", "--offline", "--image", "sandbox-agent:no-such", "hi");
	live_assert_says(&ours, 3, "sandbox-agent image build");
	assert_non_null(strstr(ours.err.data, "'sandbox-agent:no-such'"));
	RUN(&other, "run", "claude", "--offline", "--image", "other:none", "--pull", "never", "hi");
	live_assert_says(&other, 3, "'other:none'");
}

static void a_pinned_image_that_is_missing_says_build(void **state)
{
	(void)state;
	LIVE_CHILD c;
	char variable[256];
	static const char json[] =
		"{\"docker_repository\":\"sandbox-agent\",\"image_date\":\"20010101\","
		"\"base_image\":\"d:1\",\"claude_version\":\"0.0.0\","
		"\"opencode_version\":\"0.0.0\"}";
	live_write_file(live_path("other.json"), json, sizeof(json) - 1, 0600);
	snprintf(variable, sizeof(variable), "SANDBOX_AGENT_VERSIONS=%s", live_path("other.json"));
	const char *const argv[] = { "run", "claude", "--offline", "hi", NULL };
	const char *const env[] = { variable, NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&c, 60000);
	live_assert_says(&c, 3, "sandbox-agent image build");
	assert_non_null(strstr(c.err.data, "'sandbox-agent:claude-0.0.0-20010101'"));
}

static void an_empty_prompt_is_refused(void **state)
{
	(void)state;
	static const char *const empty[] = { "", "  \n\t" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(empty); i++) {
		LIVE_CHILD c;
		RUN(&c, "run", FAKE, empty[i]);
		live_assert_says(&c, 2, "the prompt is empty");
	}
	LIVE_CHILD none, piped;
	RUN(&none, "run", FAKE);
	live_assert_says(&none, 2, "give a prompt");
	const char *const argv[] = { "run", FAKE, "-", NULL };
	live_start(&piped, &(struct live_start){ .argv = argv, .input = "" });
	live_child_end(&piped, 60000);
	live_assert_says(&piped, 2, "the prompt is empty");
}

static void a_prompt_that_begins_with_a_dash_goes_after_two(void **state)
{
	(void)state;
	LIVE_CHILD refused, taken;
	RUN(&refused, "run", FAKE, "-fix it");
	live_assert_says(&refused, 2, "-- \"-fix it\"");
	RUN(&taken, "run", FAKE, "--", "--fix it");
	live_assert_says(&taken, 0, NULL);
	assert_non_null(strstr(taken.out.data, "heard --fix it"));
}

static void a_prompt_of_a_megabyte_arrives_whole(void **state)
{
	(void)state;
	LIVE_CHILD c;
	size_t len = 1024 * 1024;
	SBA_FREE char *prompt = malloc(len + 1);
	assert_non_null(prompt);
	memset(prompt, 'p', len);
	memcpy(prompt, "--count'\"\n", 10);
	prompt[len] = '\0';
	const char *const argv[] = { "-q", "run", FAKE, "-", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .input = prompt, .input_len = len });
	live_child_end(&c, 60000);
	live_assert_says(&c, 0, NULL);
	assert_string_equal(c.out.data, "got 1048576\n");
}

static void bad_options_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *option, *value, *words;
	} bad[] = {
		{ "--timeout", "soon", "--timeout: 'soon'" },
		{ "--memory", "lots", "--memory: 'lots'" },
		{ "--cpus", "-1", "--cpus: '-1'" },
		{ "--pull", "maybe", "missing|never|always" },
		{ "--nmae", "x", "did you mean --name" },
		{ "--name", "../x", "'../x'" },
		{ "--workspace", "/no/such/dir", "/no/such/dir" },
		{ "--ca-file", "/no/such/ca", "/no/such/ca" },
		{ "-e", "=x", "=x" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		LIVE_CHILD c;
		RUN(&c, "run", FAKE, bad[i].option, bad[i].value, "hi");
		assert_int_not_equal(c.status, 0);
		live_assert_says(&c, c.status, bad[i].words);
	}
}

static void a_mistyped_command_is_answered_with_the_nearest(void **state)
{
	(void)state;
	static const char *const bad[][3] = {
		{ "exce", "nobody", "did you mean exec?" },
		{ "confg", "show", "did you mean config show?" },
		{ "skill", "add", "did you mean skills add?" },
		{ "config", "shw", "did you mean config show?" },
		{ "frobnicate", "now", "sandbox-agent help lists them" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		LIVE_CHILD c;
		RUN(&c, bad[i][0], bad[i][1]);
		live_assert_says(&c, 2, bad[i][2]);
	}
}

static void an_error_in_json_is_one_object_with_its_code(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "--json", "chat", "nobody", "hi");
	assert_int_equal(c.status, 1);
	SBA_JSON json_t *j = json_loads(c.err.data, 0, NULL);
	assert_non_null(j);
	assert_string_equal(sba_json_str(j, "error.code"), "not_found");
	assert_non_null(sba_json_str(j, "error.message"));
	assert_true(json_is_boolean(sba_json_get(j, "error.retry")));
	assert_int_equal(c.out.len, 0);
}

/* ---- engines ---- */

static void a_wrong_socket_is_named_with_what_found_it(void **state)
{
	(void)state;
	LIVE_CHILD by_option, by_env, no_socket;
	RUN(&by_option, "-H", "unix:///no/such.sock", "ps");
	live_assert_says(&by_option, 3, "/no/such.sock");
	const char *const argv[] = { "ps", NULL };
	const char *const env[] = { "DOCKER_HOST=unix:///no/other.sock", NULL };
	live_start(&by_env, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&by_env, 60000);
	live_assert_says(&by_env, 3, "DOCKER_HOST");
	live_write_file(live_path("file"), "x", 1, 0600);
	char host[200];
	snprintf(host, sizeof(host), "unix://%s", live_path("file"));
	RUN(&no_socket, "-H", host, "ps");
	live_assert_says(&no_socket, 3, live_path("file"));
}

static void a_socket_without_permission_says_so(void **state)
{
	(void)state;
	LIVE_CHILD c;
	if (geteuid() != 0)
		skip();
	struct live_proxy *p = live_proxy_start();
	assert_int_equal(chmod(live.dir, 0711), 0);
	assert_int_equal(chmod(live_path("engine.sock"), 0600), 0);
	const char *const argv[] = { "-H", live_proxy_host(p), "ps", NULL };
	const char *const env[] = { "ASAN_OPTIONS=detect_leaks=0", "HOME=/", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env, .uid = 65534 });
	live_child_end(&c, 60000);
	live_proxy_stop(p);
	live_assert_says(&c, 3, "Permission denied");
}

static void an_engine_gone_in_the_middle_is_told_and_the_sandbox_ends_itself(void **state)
{
	(void)state;
	LIVE_CHILD c;
	struct live_proxy *p = live_proxy_start();
	const char *const argv[] = {
		"-H", live_proxy_host(p), "run", FAKE, "--keepalive", "2s", "hang", NULL
	};
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	live_proxy_cut(p);
	live_child_end(&c, 60000);
	live_proxy_stop(p);
	live_assert_says(&c, 3, "engine");
	assert_null(strstr(c.err.data, "nothing is left"));
	live_await_no_containers(20000);
}

/* ---- configuration ---- */

static void a_broken_versions_file_is_named_with_the_place(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "{\"docker_repository\": \"x\",", "versions.json" },
		{ "{\"docker_repository\":\"x\",\"image_date\":\"20261399\",\"base_image\":\"d:"
		  "1\"}",
		  "20261399" },
		{ "{\"docker_repository\":\"x\",\"image_date\":\"20261129\",\"base_image\":\"d:1\","
		  "\"claude_versoin\":\"1\"}",
		  "claude_version" },
		{ "[]", "not an object" },
	};
	const char *path = live_path("versions.json");
	char env_text[256];
	snprintf(env_text, sizeof(env_text), "SANDBOX_AGENT_VERSIONS=%s", path);
	const char *const env[] = { env_text, NULL };
	const char *const argv[] = { "run", "claude", "--offline", "hi", NULL };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		LIVE_CHILD c;
		live_write_file(path, bad[i].text, strlen(bad[i].text), 0600);
		live_start(&c, &(struct live_start){ .argv = argv, .env = env });
		live_child_end(&c, 60000);
		live_assert_says(&c, 2, bad[i].words);
	}
	LIVE_CHILD missing;
	unlink(path);
	live_start(&missing, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&missing, 60000);
	live_assert_says(&missing, 2, "SANDBOX_AGENT_VERSIONS");
}

static void check_says(const char *repository, const char *version, int status, const char *words)
{
	LIVE_CHILD c;
	char json[256], variable[256];
	const char *path = live_path("versions.json");
	snprintf(json, sizeof(json),
		 "{\"docker_repository\":\"%s\",\"image_date\":\"20260101\",\"base_image\":\"d:1\","
		 "\"claude_version\":\"%s\"}",
		 repository, version);
	live_write_file(path, json, strlen(json), 0600);
	snprintf(variable, sizeof(variable), "SANDBOX_AGENT_VERSIONS=%s", path);
	const char *const argv[] = { "--prefix", live.prefix, "image", "check", "claude", NULL };
	const char *const env[] = { variable, NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&c, 60000);
	live_assert_says(&c, status, words);
}

static void an_image_whose_cli_is_not_the_pinned_one_is_told(void **state)
{
	(void)state;
	static const char *const versions[] = { "9.9.9", "9.9.90" };
	struct sba_error err;
	char repository[128], ref[192];
	const char *image = live_image("pins", "COPY claude /usr/local/bin/claude", "claude",
				       "#!/bin/sh\necho '9.9.90 (Claude Code)'\n");
	snprintf(repository, sizeof(repository), "%.*s", (int)strcspn(image, ":"), image);
	for (size_t i = 0; i < SBA_ARRAY_LEN(versions); i++) {
		snprintf(ref, sizeof(ref), "%s:claude-%s-20260101", repository, versions[i]);
		assert_int_equal(sba_image_name(live.engine, image, ref, sba_until_in(30000), &err),
				 0);
	}
	check_says(repository, "9.9.9", 3,
		   "answers '9.9.90 (Claude Code)', and versions.json pins 9.9.9");
	check_says(repository, "9.9.90", 0, "answers as pinned");
	for (size_t i = 0; i < SBA_ARRAY_LEN(versions); i++) {
		snprintf(ref, sizeof(ref), "%s:claude-%s-20260101", repository, versions[i]);
		assert_int_equal(sba_image_remove(live.engine, ref, sba_until_in(30000), &err), 0);
	}
}

static void a_broken_script_is_named_with_the_place(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *path = live_path("script.json");
	live_write_file(path, "{\"v\":1,\"rules\":[{\"mach\":{}}]}", 29, 0600);
	RUN(&c, "run", FAKE, "--script", path, "hi");
	live_assert_says(&c, 2, "match");
}

/* ---- the sandbox ---- */

static void a_missing_cli_says_which_image_lacks_it(void **state)
{
	(void)state;
	LIVE_CHILD c;
	RUN(&c, "run", "claude", "--offline", "--image", live.image, "hi");
	live_assert_says(&c, 1, "claude");
	assert_non_null(strstr(c.err.data, live.image));
	assert_non_null(strstr(c.err.data, "image build claude"));
	LIVE_CHILD j;
	RUN(&j, "--json", "run", "claude", "--offline", "--image", live.image, "hi");
	live_assert_says(&j, 1, "missing_cli");
}

static void a_container_killed_in_the_middle_is_a_broken_sandbox(void **state)
{
	(void)state;
	LIVE_CHILD c;
	const char *const argv[] = { "run", FAKE, "--name", "victim", "hang", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	struct sba_sandbox *s = open_box("victim");
	live_kill_container(sba_sandbox_container(s));
	sba_sandbox_close(s);
	live_child_end(&c, 60000);
	live_assert_says(&c, 4, "from outside");
}

static void a_container_killed_in_a_chat_is_a_broken_sandbox(void **state)
{
	(void)state;
	LIVE_CHILD c;
	up("chatty");
	const char *const argv[] = { "chat", "chatty", "hang", NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	struct sba_sandbox *s = open_box("chatty");
	live_remove(s);
	live_child_end(&c, 60000);
	live_assert_says(&c, 4, "chatty");
}

static void a_name_that_is_taken_is_told(void **state)
{
	(void)state;
	LIVE_CHILD c, rm;
	up("twice");
	RUN(&c, "up", FAKE, "--name", "twice");
	live_assert_says(&c, 1, "already a sandbox 'twice'");
	RUN(&rm, "rm", "twice");
	live_assert_says(&rm, 0, NULL);
}

static void a_file_that_is_not_there_is_told_and_the_rest_comes(void **state)
{
	(void)state;
	LIVE_CHILD c;
	char get[300];
	snprintf(get, sizeof(get), "/etc/hostname:%s", live_path("came"));
	RUN(&c, "run", FAKE, "--get", "/no/such", "--get", get, "hi");
	live_assert_says(&c, 1, "/no/such");
	SBA_FREE char *came = live_read_file(live_path("came"), NULL);
	assert_non_null(came);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(an_unknown_agent_suggests_the_nearest),
		LIVE_TEST(a_missing_image_says_how_to_get_it),
		LIVE_TEST(a_pinned_image_that_is_missing_says_build),
		LIVE_TEST(an_empty_prompt_is_refused),
		LIVE_TEST(a_prompt_that_begins_with_a_dash_goes_after_two),
		LIVE_TEST(a_prompt_of_a_megabyte_arrives_whole),
		LIVE_TEST(bad_options_are_named),
		LIVE_TEST(a_mistyped_command_is_answered_with_the_nearest),
		LIVE_TEST(an_error_in_json_is_one_object_with_its_code),
		LIVE_TEST(a_wrong_socket_is_named_with_what_found_it),
		LIVE_TEST(a_socket_without_permission_says_so),
		LIVE_TEST(an_engine_gone_in_the_middle_is_told_and_the_sandbox_ends_itself),
		LIVE_TEST(a_broken_versions_file_is_named_with_the_place),
		LIVE_TEST(an_image_whose_cli_is_not_the_pinned_one_is_told),
		LIVE_TEST(a_broken_script_is_named_with_the_place),
		LIVE_TEST(a_missing_cli_says_which_image_lacks_it),
		LIVE_TEST(a_container_killed_in_the_middle_is_a_broken_sandbox),
		LIVE_TEST(a_container_killed_in_a_chat_is_a_broken_sandbox),
		LIVE_TEST(a_name_that_is_taken_is_told),
		LIVE_TEST(a_file_that_is_not_there_is_told_and_the_rest_comes),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
