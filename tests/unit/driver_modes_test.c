/* SPDX-License-Identifier: MIT */
/*
 * What an agent may do, which servers it gets, and a screen instead of a turn: the
 * same words for every CLI, put into the arguments of each.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/private.h"
#include "drivers/drivers.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 64 * 1024 };

static bool strv_has(const struct sba_strv *v, const char *text)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->v[i], text) == 0)
			return true;
	}
	return false;
}

static int command_of(const char *agent, struct sba_turn_spec spec, struct sba_command *ret,
		      struct sba_error *err)
{
	spec.base_url = "http://h:1";
	spec.token = "secret";
	return sba_command_make(sba_driver_find(agent), &spec, ret, err);
}

/* The command of `agent` has (or has not) that argument or variable. */
static void assert_command(const char *agent, struct sba_turn_spec spec, const char *word, bool has)
{
	struct sba_command c;
	struct sba_error err = { 0 };
	if (command_of(agent, spec, &c, &err) < 0)
		fail_msg("%s: %s", agent, err.text);
	bool there = strv_has(&c.argv, word) || strv_has(&c.env, word);
	if (there != has)
		fail_msg("%s: '%s' is %s", agent, word, there ? "there" : "not there");
	sba_command_fini(&c);
}

static void words_of_permissions_are_three(void **state)
{
	enum sba_permissions p;
	struct sba_error err;
	(void)state;
	assert_int_equal(sba_permissions_parse("read-only", &p, &err), 0);
	assert_int_equal(p, SBA_PERMISSIONS_READ_ONLY);
	assert_int_equal(sba_permissions_parse("edit", &p, &err), 0);
	assert_int_equal(p, SBA_PERMISSIONS_EDIT);
	assert_int_equal(sba_permissions_parse("", &p, &err), 0);
	assert_int_equal(p, SBA_PERMISSIONS_FULL);
	assert_int_equal(sba_permissions_parse("readonly", &p, &err), SBA_EINVAL);
	assert_non_null(strstr(err.text, "read-only, edit or full"));
}

static void read_only_leaves_no_tool_that_writes(void **state)
{
	const struct sba_turn_spec ro = { .permissions = SBA_PERMISSIONS_READ_ONLY };
	(void)state;
	assert_command("claude", ro, "Read,Glob,Grep", true);
	assert_command("claude", ro, "--strict-mcp-config", true);
	assert_command("pi", ro, "read,grep,find,ls", true);
	assert_command("pi", ro, "--approve", false);
	assert_command("dsh", ro, "DSH_PERMISSION_MODE=read-only", true);
	assert_command("opencode", ro, "OPENCODE_DISABLE_PROJECT_CONFIG=1", true);
}

static void edit_asks_nobody_and_runs_nothing(void **state)
{
	const struct sba_turn_spec edit = { .permissions = SBA_PERMISSIONS_EDIT, .mcp = "one two" };
	(void)state;
	assert_command("claude", edit, "acceptEdits", true);
	assert_command("claude", edit, "--dangerously-skip-permissions", false);
	assert_command("claude", edit, "mcp__one", true);
	assert_command("claude", edit, "mcp__two", true);
	assert_command("pi", edit, "read,grep,find,ls,edit,write", true);
	assert_command("dsh", edit, "DSH_PERMISSION_MODE=workspace-write", true);
}

static void opencodes_rules_are_in_its_configuration(void **state)
{
	struct sba_command c;
	struct sba_error err;
	json_t *j = NULL;
	(void)state;
	assert_int_equal(
		command_of("opencode",
			   (struct sba_turn_spec){ .permissions = SBA_PERMISSIONS_READ_ONLY }, &c,
			   &err),
		0);
	for (size_t i = 0; i < c.env.n; i++) {
		const char *value = strchr(c.env.v[i], '=') + 1;
		if (sba_starts_with(c.env.v[i], "OPENCODE_CONFIG_CONTENT="))
			assert_int_equal(sba_json_parse(value, strlen(value), "it", &j, &err), 0);
	}
	assert_string_equal(sba_json_str(j, "permission.edit"), "deny");
	assert_string_equal(sba_json_str(j, "permission.bash"), "deny");
	json_decref(j);
	sba_command_fini(&c);
}

static void who_cannot_be_held_to_it_says_so(void **state)
{
	static const char *const none[] = { "codex", "command" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(none); i++) {
		struct sba_error err;
		const struct sba_driver *d = sba_driver_find(none[i]);
		assert_int_equal(sba_driver_check_permissions(d, SBA_PERMISSIONS_READ_ONLY, &err),
				 SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "cannot be held to 'read-only'"));
		assert_int_equal(sba_driver_check_permissions(d, SBA_PERMISSIONS_FULL, &err), 0);
	}
}

static void a_screen_is_the_cli_without_a_prompt(void **state)
{
	const struct sba_turn_spec screen = { .screen = true, .session = "s-1" };
	struct sba_command c;
	struct sba_error err;
	(void)state;
	assert_command("claude", screen, "-p", false);
	assert_command("claude", screen, "ANTHROPIC_AUTH_TOKEN=secret", true);
	assert_command("codex", screen, "exec", false);
	assert_command("codex", screen, "-", false);
	assert_command("opencode", screen, "run", false);
	assert_command("opencode", screen, "-s", true);
	assert_command("pi", screen, "json", false);
	assert_int_equal(command_of("dsh", screen, &c, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "dsh has no screen"));
}

static void what_codex_asks_at_its_first_start_is_answered(void **state)
{
	static const char answer[] = "notice.model_migrations={\"gpt-5.5\"=\"gpt-6-sol\"}";
	const struct sba_turn_spec screen = { .screen = true, .model = "gpt-5.5" };
	const struct sba_turn_spec turn = { .model = "gpt-5.5" };
	const struct sba_turn_spec odd = { .screen = true, .model = "a\"=1}" };
	struct sba_command c;
	struct sba_error err;
	(void)state;
	assert_command("codex", screen, answer, true);
	assert_command("codex", turn, answer, false);
	/* What would have to be quoted is asked about, rather. */
	assert_int_equal(command_of("codex", odd, &c, &err), 0);
	for (size_t i = 0; i < c.argv.n; i++)
		assert_null(strstr(c.argv.v[i], "model_migrations"));
	sba_command_fini(&c);
}

/* ---- MCP servers ---- */

static const char servers[] =
	"{\"mcpServers\": {\"one\": {\"command\": \"/bin/x\", \"args\": [\"a \\\"b\\\"\"],"
	" \"env\": {\"K\": \"v\\u007f\"}}, \"two\": {\"type\": \"http\", \"url\": \"http://h/m\","
	" \"headers\": {\"A\": \"b\"}}}}";

static int translate(const char *agent, const char *text, struct sba_buf *file,
		     struct sba_error *err)
{
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(LARGE);
	int rc = sba_mcp_translate(sba_driver_find(agent), text, strlen(text), file, &names, err);
	if (rc == 0)
		assert_string_equal(names.data, "one two");
	return rc;
}

static void servers_come_in_the_words_of_each_cli(void **state)
{
	static const struct {
		const char *agent, *holds[3];
	} rows[] = {
		{ "claude", { "\"mcpServers\"", "\"command\": \"/bin/x\"", "\"url\"" } },
		{ "pi", { "\"mcpServers\"", "\"args\"", "\"headers\"" } },
		{ "codex",
		  { "[mcp_servers.one]\ncommand = \"/bin/x\"\nargs = [\"a \\\"b\\\"\"]\n"
		    "env = {\"K\" = \"v\\u007F\"}\n",
		    "[mcp_servers.two]\nurl = \"http://h/m\"\n",
		    "http_headers = {\"A\" = \"b\"}" } },
		{ "opencode", { "\"mcp\"", "\"type\": \"local\"", "\"type\": \"remote\"" } },
		{ "dsh",
		  { "\"insert\"", "\"transport\": \"stdio\"",
		    "\"transport\": \"streamable-http\"" } },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		SBA_BUF struct sba_buf file = SBA_BUF_INIT(LARGE);
		struct sba_error err = { 0 };
		assert_int_equal(translate(rows[i].agent, servers, &file, &err), 0);
		for (size_t k = 0; k < 3; k++) {
			if (!strstr(file.data, rows[i].holds[k]))
				fail_msg("%s: no %s in\n%s", rows[i].agent, rows[i].holds[k],
					 file.data);
		}
	}
}

static void servers_that_make_no_sense_are_named(void **state)
{
	static const char *const rows[][2] = {
		{ "{", "not JSON" },
		{ "{}", "no servers" },
		{ "{\"mcpServers\": {}}", "no servers" },
		{ "{\"mcpServers\": {\"a b\": {\"command\": \"x\"}}}", "'a b'" },
		{ "{\"mcpServers\": {\"a\": {}}}", "either" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"url\": \"y\"}}}", "either" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"y\"}}}", "\"args\"" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"k\": 1}}}}",
		  "\"env\"" },
		{ "{\"mcpServers\": {\"a\": {\"type\": \"sse\", \"url\": \"y\"}}}", "\"type\"" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		SBA_BUF struct sba_buf file = SBA_BUF_INIT(LARGE);
		struct sba_error err = { 0 };
		assert_int_equal(translate("codex", rows[i][0], &file, &err), SBA_ECONFIG);
		if (!strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
	}
	struct sba_error err;
	SBA_BUF struct sba_buf file = SBA_BUF_INIT(LARGE);
	assert_int_equal(translate("command", servers, &file, &err), SBA_EUNSUPPORTED);
}

static int note_tool(void *user, const struct sba_event *e)
{
	if (e->kind == SBA_EVENT_TOOL_CALL)
		snprintf(user, 64, "%s", e->tool);
	return 0;
}

static void opencodes_servers_are_told_from_its_tools(void **state)
{
	static const struct {
		const char *native, *name;
	} rows[] = { { "one_ping", "mcp:one.ping" },
		     { "one_x_ping", "mcp:one_x.ping" },
		     { "other_ping", "other_ping" },
		     { "bash", "bash" } };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		char tool[64] = "", line[256];
		struct sba_stream *s = NULL;
		struct sba_error err;
		const struct sba_stream_options o = { .driver = sba_driver_find("opencode"),
						      .mcp = "one one_x",
						      .fn = note_tool,
						      .user = tool };
		assert_int_equal(sba_stream_new(&o, &s, &err), 0);
		int n = snprintf(
			line, sizeof(line),
			"{\"type\":\"tool_use\",\"part\":{\"tool\":\"%s\",\"callID\":\"c\","
			"\"state\":{\"status\":\"completed\",\"output\":\"\"}}}",
			rows[i].native);
		sba_stream_line(s, line, (size_t)n);
		assert_string_equal(tool, rows[i].name);
		sba_stream_free(s);
	}
}

/* ---- a login instead of a key ---- */

static int login_command(const char *agent, const char *model, struct sba_command *ret,
			 struct sba_error *err)
{
	const struct sba_turn_spec spec = { .login = true, .model = model, .new_session = "id-1" };
	return sba_command_make(sba_driver_find(agent), &spec, ret, err);
}

static void a_login_goes_without_address_token_and_provider_of_ours(void **state)
{
	static const char *const agents[] = { "claude", "codex", "opencode", "pi" };
	static const char *const never[] = { "_KEY=", "BASE_URL", "model_provider", "MODEL_URL",
					     "AUTH_TOKEN" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(agents); i++) {
		struct sba_command c;
		struct sba_error err = { 0 };
		if (login_command(agents[i], "anthropic/some-model", &c, &err) < 0)
			fail_msg("%s: %s", agents[i], err.text);
		assert_true(strv_has(&c.argv, "anthropic/some-model"));
		for (size_t k = 0; k < SBA_ARRAY_LEN(never); k++) {
			for (size_t n = 0; n < c.argv.n; n++)
				assert_null(strstr(c.argv.v[n], never[k]));
			for (size_t n = 0; n < c.env.n; n++)
				assert_null(strstr(c.env.v[n], never[k]));
		}
		sba_command_fini(&c);
		/* Without a model it is the CLI's own default. */
		assert_int_equal(login_command(agents[i], NULL, &c, &err), 0);
		for (size_t n = 0; n < c.argv.n; n++)
			assert_true(strcmp(c.argv.v[n], "-m") != 0 &&
				    strcmp(c.argv.v[n], "--model") != 0);
		sba_command_fini(&c);
	}
}

static void who_keeps_no_login_is_refused(void **state)
{
	static const char *const agents[] = { "dsh", "command" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(agents); i++) {
		struct sba_command c;
		struct sba_error err = { 0 };
		assert_int_equal(login_command(agents[i], NULL, &c, &err), SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "keeps no login of its own"));
		assert_null(sba_agent_login(agents[i]));
		assert_int_equal(sba_agent_check_login(agents[i], "{}", 2, &err), SBA_EUNSUPPORTED);
	}
	assert_null(sba_agent_login("nobody"));
	assert_string_equal(sba_agent_login("codex")->path, ".codex/auth.json");
}

static int check_login(const char *text, struct sba_error *err)
{
	return sba_agent_check_login("claude", text, strlen(text), err);
}

static void a_login_is_an_object_with_something_secret_in_it(void **state)
{
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(check_login("", &err), SBA_ECONFIG);
	assert_int_equal(check_login("sk-ant-oat01-0123456789abcdef", &err), SBA_ECONFIG);
	assert_int_equal(check_login("[\"sk-ant-oat01-0123456789abcdef\"]", &err), SBA_ECONFIG);
	assert_non_null(strstr(err.text, "not a JSON object"));
	assert_int_equal(check_login("{\"claudeAiOauth\":{\"scopes\":[\"user:inference\"]}}", &err),
			 SBA_ECONFIG);
	assert_non_null(strstr(err.text, "no login of claude"));
	assert_int_equal(
		check_login("{\"a\":{\"accessToken\":\"sk-ant-oat01-0123456789abcdef\"}}", &err),
		0);
}

static void what_is_secret_in_a_login_is_long_and_one_word(void **state)
{
	static const char text[] =
		"{\"type\":\"oauth\",\"when\":\"2026-11-29T10:11:12.123456Z\","
		"\"url\":\"https://auth.example.org/some/where\",\"note\":\"words that are a "
		"note\","
		"\"tokens\":{\"access\":\"eyJhbGciOiJub25lIn0.e30.x\",\"all\":[\"rt-0123456789-"
		"0123456789\"]}}";
	SBA_STRV struct sba_strv v = { 0 };
	SBA_JSON json_t *j = json_loads(text, 0, NULL);
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_login_secrets(j, &v, &err), 0);
	assert_int_equal(v.n, 2);
	assert_true(strv_has(&v, "eyJhbGciOiJub25lIn0.e30.x"));
	assert_true(strv_has(&v, "rt-0123456789-0123456789"));
	SBA_JSON json_t *many = json_array();
	for (int i = 0; i <= SBA_LOGIN_SECRETS_MAX; i++)
		json_array_append_new(many, json_string("rt-0123456789-0123456789"));
	sba_strv_fini(&v);
	v = (struct sba_strv){ 0 };
	assert_int_equal(sba_login_secrets(many, &v, &err), SBA_ELIMIT);
}

static void every_secret_is_hidden_wherever_it_stands(void **state)
{
	struct sba_secrets s = { 0 };
	struct sba_redact *key = NULL;
	struct sba_error err = { 0 };
	char text[] = "a first-secret-of-all b second-secret-here c the-relays-own-key d";
	char none[] = "nothing to hide";
	(void)state;
	assert_int_equal(sba_redact_new("first-secret-of-all", &s.own[0], &err), 0);
	assert_int_equal(sba_redact_new("second-secret-here", &s.own[1], &err), 0);
	assert_int_equal(sba_redact_new("the-relays-own-key", &key, &err), 0);
	s.own_n = 2;
	s.key = key;
	assert_int_equal(sba_secrets_hide(&s, text, strlen(text), true), strlen(text));
	assert_null(strstr(text, "secret"));
	assert_null(strstr(text, "relays"));
	assert_int_equal(sba_secrets_hide(&s, none, strlen(none), true), strlen(none));
	assert_string_equal(none, "nothing to hide");
	sba_secrets_fini(&s);
	assert_int_equal(sba_secrets_hide(&s, none, strlen(none), true), strlen(none));
	sba_redact_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_permissions_are_three),
		cmocka_unit_test(read_only_leaves_no_tool_that_writes),
		cmocka_unit_test(edit_asks_nobody_and_runs_nothing),
		cmocka_unit_test(opencodes_rules_are_in_its_configuration),
		cmocka_unit_test(who_cannot_be_held_to_it_says_so),
		cmocka_unit_test(a_screen_is_the_cli_without_a_prompt),
		cmocka_unit_test(what_codex_asks_at_its_first_start_is_answered),
		cmocka_unit_test(servers_come_in_the_words_of_each_cli),
		cmocka_unit_test(servers_that_make_no_sense_are_named),
		cmocka_unit_test(opencodes_servers_are_told_from_its_tools),
		cmocka_unit_test(a_login_goes_without_address_token_and_provider_of_ours),
		cmocka_unit_test(who_keeps_no_login_is_refused),
		cmocka_unit_test(a_login_is_an_object_with_something_secret_in_it),
		cmocka_unit_test(what_is_secret_in_a_login_is_long_and_one_word),
		cmocka_unit_test(every_secret_is_hidden_wherever_it_stands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
