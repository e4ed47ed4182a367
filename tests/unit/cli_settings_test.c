/* SPDX-License-Identifier: MIT */
/* Options that were not given come from the configuration; what is said of the
 * settings anywhere comes from their table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "support/folder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64], path[80];

static int make_file(void **state)
{
	(void)state;
	test_folder(dir, sizeof(dir), "sba-settings");
	snprintf(path, sizeof(path), "%s/config", dir);
	unsetenv("XDG_CONFIG_HOME");
	setenv("HOME", "/nowhere", 1);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	test_folder_remove(dir);
	return 0;
}

static void write_config(const char *text)
{
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A command with its options as they are after the words, and the configuration. */
struct line {
	struct cli cli;
	struct cli_args args;
	struct cli_scope scopes[CLI_TABLES_MAX + 1];
	void *options;
};

static void line_begin(struct line *l, const struct cli_command *c, const char *const *words)
{
	struct sba_error err = { 0 };
	*l = (struct line){ .cli = { .config_file = path, .command = c } };
	l->options = calloc(1, c->options_size + 1);
	assert_non_null(l->options);
	for (size_t t = 0; t < CLI_TABLES_MAX; t++)
		l->scopes[t] = (struct cli_scope){ c->tables[t], l->options };
	l->scopes[CLI_TABLES_MAX] = (struct cli_scope){ cli_global_options, &l->cli };
	int rc = cli_parse(l->scopes, CLI_LEN(l->scopes), (char **)(uintptr_t)words, INT_MAX,
			   &l->args, &err);
	if (rc == 0)
		rc = cli_config(&l->cli, &err);
	if (rc == 0)
		rc = cli_settings_apply(&l->cli, c, &l->args, l->options, NULL, &err);
	if (rc < 0)
		fail_msg("%s", err.text);
}

static void line_end(struct line *l)
{
	cli_scopes_free(l->scopes, CLI_LEN(l->scopes));
	cli_args_free(&l->args);
	cli_close(&l->cli);
	free(l->options);
}

/* ---- every option of every command ---- */

/* In the file, in the environment, on the command line. */
struct sample {
	const char *v[3];
};

static struct sample sample_of(const struct cli_option *o)
{
	switch (o->type) {
	case CLI_DURATION:
		return (struct sample){ { "1h", "2h", "3h" } };
	case CLI_SIZE:
		return (struct sample){ { "1g", "2g", "3g" } };
	case CLI_INT:
		return (struct sample){ { "11", "12", "13" } };
	case CLI_DOUBLE:
		return (struct sample){ { "1.5", "2.5", "3.5" } };
	case CLI_FLAG:
		return (struct sample){ { "true", "false", "true" } };
	default:
		break;
	}
	if (!strcmp(o->name, "pull"))
		return (struct sample){ { "never", "always", "missing" } };
	if (!strcmp(o->name, "permissions"))
		return (struct sample){ { "edit", "full", "read-only" } };
	if (!strcmp(o->name, "network"))
		return (struct sample){ { "sealed", "open", "sealed" } };
	if (!strcmp(o->name, "backend"))
		return (struct sample){ { "e2b", "local", "opensandbox" } };
	if (!strcmp(o->name, "tag"))
		return (struct sample){ { "a", "b", "c" } };
	return (struct sample){ { "/a", "/b", "/c" } };
}

static void assert_field(const struct cli_option *o, const void *options, const char *expected)
{
	const void *field = (const char *)options + o->offset;
	int64_t n = -2;
	switch (o->type) {
	case CLI_STRING:
		assert_string_equal(*(const char *const *)field, expected);
		return;
	case CLI_DURATION:
		assert_int_equal(sba_parse_duration(expected, &n), 0);
		break;
	case CLI_SIZE:
		assert_int_equal(sba_parse_size(expected, &n), 0);
		break;
	case CLI_INT:
		n = strtoll(expected, NULL, 10);
		break;
	case CLI_DOUBLE:
		assert_true(*(const double *)field * 10 > strtod(expected, NULL) * 10 - 1e-6);
		assert_true(*(const double *)field * 10 < strtod(expected, NULL) * 10 + 1e-6);
		return;
	case CLI_LIST:
		assert_int_equal(((const struct cli_list *)field)->n, 1);
		assert_string_equal(((const struct cli_list *)field)->v[0], expected);
		return;
	case CLI_FLAG:
		assert_int_equal(*(const bool *)field, !strcmp(expected, "true"));
		return;
	}
	assert_int_equal(*(const int64_t *)field, n);
}

static const struct sba_setting *setting_of(const struct cli_command *c, const struct cli_option *o)
{
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		if (cli_setting_is_for(s, c, o->name) && !s->adds)
			return s;
	}
	return NULL;
}

static void check_option(const struct cli_command *c, const struct cli_option *o,
			 const struct sba_setting *s)
{
	struct sample of = sample_of(o);
	char text[128], option[64];
	bool number = s->type == SBA_SETTING_COUNT || s->type == SBA_SETTING_BOOL;
	bool list = s->type == SBA_SETTING_LIST;
	snprintf(text, sizeof(text), "{\"%s\": %s%s%s}", s->key,
		 list     ? "[\""
		 : number ? ""
			  : "\"",
		 of.v[0],
		 list     ? "\"]"
		 : number ? ""
			  : "\"");
	snprintf(option, sizeof(option), "--%s", o->name);
	const char *const none[] = { NULL }, *const given[] = {
		option, o->type == CLI_FLAG ? NULL : of.v[2], NULL
	};
	struct line l;
	write_config(text);
	line_begin(&l, c, none);
	assert_field(o, l.options, of.v[0]);
	line_end(&l);
	setenv(s->variable, of.v[1], 1);
	line_begin(&l, c, none);
	assert_field(o, l.options, of.v[1]);
	line_end(&l);
	line_begin(&l, c, given);
	assert_field(o, l.options, of.v[2]);
	line_end(&l);
	unsetenv(s->variable);
}

static void every_option_falls_back_on_its_setting(void **state)
{
	(void)state;
	unsigned checked = 0;
	for (size_t i = 0; cli_commands[i]; i++) {
		const struct cli_command *c = cli_commands[i];
		for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
			const struct cli_option *o =
				c->tables[t] == cli_way_options ? NULL : c->tables[t];
			for (; o && o->name; o++) {
				const struct sba_setting *s = setting_of(c, o);
				if (s)
					check_option(c, o, s);
				checked += s != NULL;
			}
		}
	}
	assert_true(checked > 30);
}

/* An option that the table speaks of exists in the commands that it names. */
static void the_table_speaks_of_options_that_there_are(void **state)
{
	(void)state;
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		unsigned found = 0;
		for (const struct cli_option *o = cli_global_options; s->option && o->name; o++)
			found += !strcmp(o->name, s->option);
		for (size_t k = 0; s->option && cli_commands[k]; k++) {
			for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
				const struct cli_option *o = cli_commands[k]->tables[t];
				for (; o && o->name; o++)
					found += cli_setting_is_for(s, cli_commands[k], o->name);
			}
		}
		if (s->option && !found)
			fail_msg("%s: no command has --%s", s->key, s->option);
	}
}

/* ---- what belongs together ---- */

static void zero_is_none(void **state)
{
	(void)state;
	static const char *const none[] = { NULL };
	struct line l;
	write_config("{\"keepalive\": 0, \"chat_timeout\": 0}");
	line_begin(&l, &cli_command_run, none);
	const struct cli_spawn *o = l.options;
	assert_int_equal(o->keepalive, -1);
	assert_int_equal(o->timeout, -1);
	line_end(&l);
}

static void an_open_network_leaves_configured_rules_out(void **state)
{
	(void)state;
	static const char *const open_one[] = { "--network", "open", NULL };
	static const char *const sealed_one[] = { "--network", "sealed", NULL };
	static const char *const rule[] = { "--allow", "b.org", NULL };
	struct line l;
	write_config("{\"allow\": [\"a.org\"]}");
	line_begin(&l, &cli_command_up, open_one);
	assert_int_equal(((struct cli_spawn *)l.options)->allow.n, 0);
	line_end(&l);
	line_begin(&l, &cli_command_up, sealed_one);
	assert_int_equal(((struct cli_spawn *)l.options)->allow.n, 1);
	line_end(&l);
	write_config("{\"network\": \"open\"}");
	line_begin(&l, &cli_command_up, rule);
	assert_null(((struct cli_spawn *)l.options)->network);
	line_end(&l);
}

static void variables_of_all_places_add_up(void **state)
{
	(void)state;
	static const char *const none[] = { NULL };
	struct cli_list vars = { (const char *[]){ "C=option", NULL }, 1 }, files = { 0 };
	struct cli_env env = { 0 };
	struct sba_error err;
	struct line l;
	setenv("OURS", "passed", 1);
	write_config("{\"env\": {\"A\": \"top\", \"B\": \"top\", \"C\": \"top\", \"OURS\": null},"
		     " \"agents\": {\"claude\": {\"env\": {\"B\": \"claude\"}}}}");
	line_begin(&l, &cli_command_up, none);
	assert_int_equal(cli_env_collect_config(&env, &l.cli, "claude", &err), 0);
	assert_int_equal(cli_env_collect(&env, &files, &vars, &err), 0);
	assert_int_equal(env.n, 4);
	assert_string_equal(env.v[0], "A=top");
	assert_string_equal(env.v[1], "B=claude");
	assert_string_equal(env.v[2], "C=option");
	assert_string_equal(env.v[3], "OURS=passed");
	cli_env_fini(&env);
	line_end(&l);
}

static void blame_goes_to_what_set_the_value(void **state)
{
	(void)state;
	static const char *const none[] = { NULL }, *const given[] = { "--runtime", "x", NULL };
	struct sba_error err = { .text = "--runtime: there is none" };
	char expected[128];
	struct line l;
	write_config("{\"runtime\": \"runsc\"}");
	line_begin(&l, &cli_command_up, given);
	cli_settings_blame(&l.cli, &err);
	assert_string_equal(err.text, "--runtime: there is none");
	line_end(&l);
	line_begin(&l, &cli_command_up, none);
	cli_settings_blame(&l.cli, &err);
	snprintf(expected, sizeof(expected), "%s: runtime: there is none", path);
	assert_string_equal(err.text, expected);
	line_end(&l);
}

/* ---- the way to a model ---- */

static struct cli_way settled(struct line *l, const char *config, const char *const *words,
			      const struct sba_sandbox_info *made_for)
{
	struct sba_error err;
	write_config(config);
	line_begin(l, &cli_command_run, words);
	struct cli_way *w = l->options;
	assert_int_equal(cli_way_settle(&l->cli, w, &l->args, "claude", made_for, &err), 0);
	return *w;
}

static const char all[] =
	"{\"model\": \"top\", \"max_tokens\": 5, \"max_requests\": 6, \"ca_file\": \"/ca\","
	" \"agents\": {\"claude\": {\"model\": \"opus\"}},"
	" \"providers\": {\"anthropic\": {\"base_url\": \"http://a\", \"api_key_env\": \"KEY_A\"},"
	"                 \"openai\": {\"base_url\": \"http://o\", \"key_command\": \"k\"}}}";

static void a_way_is_settled_by_agent_and_provider(void **state)
{
	(void)state;
	static const char *const none[] = { NULL };
	static const char *const given[] = { "--provider",   "openai", "-m", "mine",
					     "--max-tokens", "0",      NULL };
	struct line l;
	struct cli_way w = settled(&l, all, none, NULL);
	assert_string_equal(w.model, "opus");
	assert_string_equal(w.base_url, "http://a");
	assert_string_equal(w.key_env, "KEY_A");
	assert_string_equal(w.ca_file, "/ca");
	assert_int_equal(w.max_tokens, 5);
	assert_int_equal(w.max_requests, 6);
	line_end(&l);
	w = settled(&l, all, given, NULL);
	assert_string_equal(w.model, "mine");
	assert_string_equal(w.base_url, "http://o");
	assert_null(w.key_env);
	assert_string_equal(w.key.command[0], "k");
	assert_int_equal(w.max_tokens, 0);
	line_end(&l);
}

static void offline_and_a_provider_overrule_each_other(void **state)
{
	(void)state;
	static const char *const none[] = { NULL }, *const offline[] = { "--offline", NULL },
				 *const online[] = { "--provider", "anthropic", NULL };
	struct line l;
	struct cli_way w = settled(&l, all, offline, NULL);
	assert_true(w.offline && !w.base_url && !w.key_env && !w.provider);
	line_end(&l);
	static const char scripted[] = "{\"offline\": true, \"provider\": \"openai\","
				       " \"script\": \"s\"}";
	w = settled(&l, scripted, none, NULL);
	assert_true(w.offline && !w.provider && w.script);
	line_end(&l);
	w = settled(&l, scripted, online, NULL);
	assert_true(!w.offline && !w.script);
	assert_string_equal(w.provider, "anthropic");
	line_end(&l);
}

static void what_a_sandbox_was_made_for_beats_the_configuration(void **state)
{
	(void)state;
	static const char *const none[] = { NULL }, *const given[] = { "-m", "mine", NULL };
	const struct sba_sandbox_info plain = {
		.provider = "", .base_url = "", .key_env = "", .model = "", .login = ""
	};
	struct sba_sandbox_info made = plain, scripted = plain;
	struct line l;
	made.base_url = "http://made";
	made.key_env = "MADE";
	made.model = "made";
	made.max_tokens = 7;
	scripted.provider = "scripted";
	struct cli_way w = settled(&l, all, none, &made);
	assert_string_equal(w.base_url, "http://made");
	assert_string_equal(w.key_env, "MADE");
	assert_string_equal(w.model, "made");
	assert_int_equal(w.max_tokens, 7);
	assert_int_equal(w.max_requests, 6);
	line_end(&l);
	w = settled(&l, all, given, &made);
	assert_string_equal(w.model, "mine");
	line_end(&l);
	w = settled(&l, all, none, &plain);
	assert_string_equal(w.base_url, "http://a");
	line_end(&l);
	w = settled(&l, all, none, &scripted);
	assert_true(w.offline && !w.base_url);
	line_end(&l);
}

/* ---- documentation ---- */

static void the_committed_documentation_is_what_the_table_makes(void **state)
{
	(void)state;
	char *made = NULL, *kept = NULL;
	size_t made_len, kept_len;
	struct sba_error err = { 0 };
	FILE *f = open_memstream(&made, &made_len);
	assert_non_null(f);
	assert_true(cli_config_doc(f, "markdown"));
	assert_int_equal(fclose(f), 0);
	if (cli_read_file("docs/config.md", 1 << 20, &kept, &kept_len, &err) < 0)
		fail_msg("%s", err.text);
	if (strcmp(made, kept) != 0)
		fail_msg("docs/config.md is not what the table makes: make docs");
	free(made);
	free(kept);
}

int main(void)
{
	alarm(60);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_falls_back_on_its_setting),
		cmocka_unit_test(the_table_speaks_of_options_that_there_are),
		cmocka_unit_test(zero_is_none),
		cmocka_unit_test(an_open_network_leaves_configured_rules_out),
		cmocka_unit_test(variables_of_all_places_add_up),
		cmocka_unit_test(blame_goes_to_what_set_the_value),
		cmocka_unit_test(a_way_is_settled_by_agent_and_provider),
		cmocka_unit_test(offline_and_a_provider_overrule_each_other),
		cmocka_unit_test(what_a_sandbox_was_made_for_beats_the_configuration),
		cmocka_unit_test(the_committed_documentation_is_what_the_table_makes),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
