/* SPDX-License-Identifier: MIT */
/* Settings: the table, the file, the environment, and which of them counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "support/folder.h"

#include <sandbox-agent/config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const agents[] = { "claude", "opencode", NULL };
static const char *const providers[] = { "anthropic", "openai", NULL };

/* "NAME=VALUE" strings, NULL-ended, as an environment. */
static const char *look_up(void *user, const char *name)
{
	size_t len = strlen(name);
	for (const char *const *v = user; v && *v; v++) {
		if (!strncmp(*v, name, len) && (*v)[len] == '=')
			return *v + len + 1;
	}
	return NULL;
}

static int load(struct sba_config **ret, const char *text, const char *const *env,
		struct sba_error *err)
{
	const struct sba_config_options o = {
		.file = "/home/u/config.json",
		.text = text ? text : "{}",
		.text_len = strlen(text ? text : "{}"),
		.getenv_fn = look_up,
		.user = (void *)(uintptr_t)env,
		.agents = agents,
		.providers = providers,
	};
	return sba_config_load(&o, ret, err);
}

static struct sba_config *loaded(const char *text, const char *const *env)
{
	struct sba_config *c = NULL;
	struct sba_error err = { 0 };
	int rc = load(&c, text, env, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	assert_int_equal(rc, 0);
	return c;
}

static void refused(const char *text, const char *says, const char *hints)
{
	struct sba_config *c = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(load(&c, text, NULL, &err), SBA_ECONFIG);
	assert_null(c);
	if (!strstr(err.text, says) || !strstr(err.hint, hints))
		fail_msg("%s\nsays: %s\nhint: %s", text, err.text, err.hint);
	assert_true(sba_starts_with(err.text, "/home/u/config.json: "));
}

/* ---- the table ---- */

static void the_table_has_each_key_and_variable_once(void **state)
{
	(void)state;
	const struct sba_setting *a, *b;
	for (size_t i = 0; (a = sba_setting_at(i)); i++) {
		assert_ptr_equal(sba_setting_find(a->key), a);
		assert_true(a->help && a->help[0] && a->levels);
		assert_true(!a->alias || sba_setting_find(a->alias) == a);
		assert_true(!a->variable || sba_starts_with(a->variable, "SANDBOX_AGENT_"));
		assert_false(a->fallback && a->fallback_text);
		for (size_t k = 0; k < i && (b = sba_setting_at(k)); k++) {
			assert_string_not_equal(a->key, b->key);
			if (a->variable && b->variable)
				assert_string_not_equal(a->variable, b->variable);
		}
	}
}

/* What other programs' files say keeps its name and its meaning. */
static void the_known_keys_and_variables_are_there(void **state)
{
	(void)state;
	static const char *const known[][2] = {
		{ "image", "SANDBOX_AGENT_IMAGE_NAME" },
		{ "prefix", "SANDBOX_AGENT_RESOURCE_PREFIX" },
		{ "memory", "SANDBOX_AGENT_CONTAINER_MEMORY" },
		{ "cpus", "SANDBOX_AGENT_CONTAINER_CPUS" },
		{ "keepalive_seconds", "SANDBOX_AGENT_KEEPALIVE_SECONDS" },
		{ "max_containers", "SANDBOX_AGENT_MAX_CONTAINERS" },
		{ "start_timeout", "SANDBOX_AGENT_START_TIMEOUT" },
		{ "stop_timeout", "SANDBOX_AGENT_STOP_TIMEOUT" },
		{ "exec_timeout", "SANDBOX_AGENT_EXEC_TIMEOUT" },
		{ "chat_timeout", "SANDBOX_AGENT_CHAT_TIMEOUT" },
		{ "session_timeout", "SANDBOX_AGENT_SESSION_TIMEOUT" },
		{ "transfer_timeout", "SANDBOX_AGENT_TRANSFER_TIMEOUT" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		const struct sba_setting *s = sba_setting_find(known[i][0]);
		assert_non_null(s);
		assert_string_equal(s->variable, known[i][1]);
	}
}

/* ---- precedence ---- */

struct sample {
	const char *json[2];
	const char *text[3]; /* for a variable, for an option, and what comes of the first JSON */
};

static struct sample sample_of(const struct sba_setting *s)
{
	switch (s->type) {
	case SBA_SETTING_CHOICE:
		return !strcmp(s->key, "network") ? (struct sample){ { "\"open\"", "\"sealed\"" },
								     { "sealed", "open", "open" } }
		       : !strcmp(s->key, "permissions")
			       ? (struct sample){ { "\"edit\"", "\"full\"" },
						  { "full", "read-only", "edit" } }
		       : !strcmp(s->key, "backend")
			       ? (struct sample){ { "\"e2b\"", "\"docker\"" },
						  { "opensandbox", "local", "e2b" } }
		       : !strcmp(s->key, "pull")
			       ? (struct sample){ { "\"never\"", "\"always\"" },
						  { "always", "missing", "never" } }
			       : (struct sample){ { "\"never\"", "\"always\"" },
						  { "always", "auto", "never" } };
	case SBA_SETTING_URL:
		return (struct sample){ { "\"http://a\"", "\"https://b\"" },
					{ "http://c", "http://d", "http://a" } };
	case SBA_SETTING_PATH:
	case SBA_SETTING_PATHS:
		return (struct sample){ { "\"/a\"", "\"/b\"" }, { "/c", "/d", "/a" } };
	case SBA_SETTING_BOOL:
		return (struct sample){ { "true", "false" }, { "false", "true", "true" } };
	case SBA_SETTING_COUNT:
		return (struct sample){ { "3", "4" }, { "5", "6", "3" } };
	case SBA_SETTING_NUMBER:
		return (struct sample){ { "\"1.5\"", "2.5" }, { "3.5", "4.5", "1.5" } };
	case SBA_SETTING_SIZE:
		return (struct sample){ { "\"1.5g\"", "2147483648" }, { "3g", "4g", "1.5g" } };
	case SBA_SETTING_TIME:
		return (struct sample){ { "90", "\"2h\"" }, { "3h", "4h", "90s" } };
	default:
		return (struct sample){ { "\"a\"", "\"b\"" }, { "c", "d", "a" } };
	}
}

static const char *json_of(const struct sba_setting *s, const char *json, char *buf, size_t size)
{
	bool list = s->type == SBA_SETTING_LIST || s->type == SBA_SETTING_PATHS ||
		    s->type == SBA_SETTING_COMMAND;
	if (s->type == SBA_SETTING_ENV)
		snprintf(buf, size, "{\"K\": %s}", json);
	else
		snprintf(buf, size, list ? "[%s]" : "%s", json);
	return buf;
}

static void assert_value(const struct sba_config *c, const char *key,
			 const struct sba_config_scope *scope, enum sba_config_source source,
			 const char *origin, const char *text)
{
	struct sba_config_value v;
	assert_true(sba_config_get(c, key, scope, &v));
	assert_int_equal(v.source, source);
	assert_string_equal(v.origin, origin);
	assert_string_equal(v.text, text);
}

/* Every setting that may stand at the top: built in, file, variable, option. */
static void each_setting_comes_from_the_nearest_place(void **state)
{
	(void)state;
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		char text[256], json[64], variable[128], from[128];
		struct sample of = sample_of(s);
		struct sba_error err;
		if (!(s->levels & SBA_SETTING_TOP) || s->type == SBA_SETTING_ENV)
			continue;
		snprintf(text, sizeof(text), "{\"%s\": %s}", s->key,
			 json_of(s, of.json[0], json, sizeof(json)));
		snprintf(variable, sizeof(variable), "%s=%s", s->variable, of.text[0]);
		snprintf(from, sizeof(from), "/home/u/config.json: %s", s->key);
		const char *const env[] = { variable, NULL };
		struct sba_config *built_in = loaded("{}", NULL), *file = loaded(text, NULL),
				  *both = loaded(text, env);
		struct sba_config_value v;
		assert_int_equal(sba_config_get(built_in, s->key, NULL, &v), s->fallback != NULL);
		assert_int_equal(v.source, SBA_FROM_BUILT_IN);
		assert_value(file, s->key, NULL, SBA_FROM_FILE, from, of.text[2]);
		assert_value(both, s->key, NULL, SBA_FROM_ENVIRONMENT, s->variable, of.text[0]);
		assert_int_equal(sba_config_set(both, s->key, of.text[0], "--first", &err), 0);
		assert_int_equal(sba_config_set(both, s->key, of.text[1], "--it", &err), 0);
		assert_value(both, s->key, NULL, SBA_FROM_OPTION, "--it", of.text[1]);
		sba_config_free(built_in);
		sba_config_free(file);
		sba_config_free(both);
	}
}

/* Every setting in every kind of section that it may stand in, and in no other. */
static void each_setting_stands_where_the_table_says(void **state)
{
	(void)state;
	static const struct {
		unsigned level;
		const char *before, *after;
	} places[] = {
		{ SBA_SETTING_TOP, "{", "}" },
		{ SBA_SETTING_AGENT, "{\"agents\": {\"claude\": {", "}}}" },
		{ SBA_SETTING_PROVIDER, "{\"providers\": {\"openai\": {", "}}}" },
		{ SBA_SETTING_POOL, "{\"pool\": {\"p\": {", "}}}" },
	};
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		for (size_t k = 0; k < SBA_ARRAY_LEN(places); k++) {
			char text[256], json[64];
			struct sba_config *c = NULL;
			struct sba_error err;
			struct sample of = sample_of(s);
			const char *value = !strcmp(s->key, "agent") ? "\"claude\"" : of.json[0];
			bool made_of = !strcmp(s->key, "image") || !strcmp(s->key, "agent");
			bool pool = places[k].level == SBA_SETTING_POOL;
			snprintf(text, sizeof(text), "%s\"%s\": %s%s%s", places[k].before, s->key,
				 json_of(s, value, json, sizeof(json)),
				 pool && !made_of ? ", \"image\": \"i\"" : "", places[k].after);
			int rc = load(&c, text, NULL, &err);
			if (rc != (s->levels & places[k].level ? 0 : SBA_ECONFIG))
				fail_msg("%s: %d", text, rc);
			sba_config_free(c);
		}
	}
}

static const char sections[] =
	"{\"memory\": \"1g\", \"model\": \"top\", \"base_url\": \"http://top\","
	" \"key_command\": \"pass top\","
	" \"providers\": {\"openai\": {\"base_url\": \"http://openai\", \"api_key_env\": \"P\"}},"
	" \"agents\": {\"claude\": {\"model\": \"opus\", \"memory\": \"3g\","
	"                           \"api_key_file\": \"~/key\"}},"
	" \"pool\": {\"warm\": {\"agent\": \"claude\", \"memory\": \"5g\", \"count\": 2},"
	"            \"plain\": {\"image\": \"debian\"}}}";

static void sections_beat_what_is_above_them(void **state)
{
	(void)state;
	struct sba_config *c = loaded(sections, NULL);
	const struct sba_config_scope claude = { .agent = "claude", .provider = "openai" },
				      opencode = { .agent = "opencode", .provider = "openai" },
				      warm = { .agent = "claude", .pool = "warm" };
	assert_string_equal(sba_config_text(c, "model", NULL), "top");
	assert_string_equal(sba_config_text(c, "model", &claude), "opus");
	assert_string_equal(sba_config_text(c, "model", &opencode), "top");
	assert_string_equal(sba_config_text(c, "base_url", NULL), "http://top");
	assert_string_equal(sba_config_text(c, "base_url", &claude), "http://openai");
	assert_int_equal(sba_config_number(c, "memory", &claude), 3LL << 30);
	assert_int_equal(sba_config_number(c, "memory", &warm), 5LL << 30);
	assert_value(c, "memory", &warm, SBA_FROM_FILE, "/home/u/config.json: pool.warm.memory",
		     "5g");
	sba_config_free(c);
}

static void the_environment_beats_every_section(void **state)
{
	(void)state;
	static const char *const env[] = { "SANDBOX_AGENT_MODEL=mine",
					   "SANDBOX_AGENT_USER=", NULL };
	struct sba_config *c = loaded(sections, env);
	const struct sba_config_scope claude = { .agent = "claude" };
	assert_string_equal(sba_config_text(c, "model", &claude), "mine");
	assert_null(sba_config_text(c, "user", NULL));
	sba_config_free(c);
}

static void a_pool_is_listed_with_what_it_says(void **state)
{
	(void)state;
	struct sba_config *c = loaded(sections, NULL);
	const char *const *names = sba_config_names(c, "pool");
	const struct sba_config_scope warm = { .pool = names[0] }, plain = { .pool = names[1] };
	assert_string_equal(names[0], "warm");
	assert_string_equal(names[1], "plain");
	assert_null(names[2]);
	assert_string_equal(sba_config_text(c, "agent", &warm), "claude");
	assert_int_equal(sba_config_number(c, "count", &warm), 2);
	assert_int_equal(sba_config_number(c, "count", &plain), 1);
	assert_null(sba_config_text(c, "agent", &plain));
	assert_true(sba_config_has(c, "pool", "plain", "image"));
	assert_false(sba_config_has(c, "pool", "warm", "image"));
	sba_config_free(c);
}

/* ---- what is wrong ---- */

static void bad_values_name_file_key_and_what_is_wanted(void **state)
{
	(void)state;
	refused("{\"memory\": \"lots\"}", ": memory: 'lots' is not a size (as in", "");
	refused("{\"memory\": \"12k\"}", ": memory: '12k' is too little: at least 1m", "");
	refused("{\"memory\": [1]}", ": memory: a list stands where a size (as in", "");
	refused("{\"memory\": null}", ": memory: null stands where", "");
	refused("{\"cpus\": 0}", ": cpus: '0' is not a number above 0", "");
	refused("{\"cpus\": \"nan\"}", ": cpus: 'nan' is not", "");
	refused("{\"pids\": \"512\"}", ": pids: a text stands where a whole number", "");
	refused("{\"pids\": 0}", ": pids: '0' is not a whole number from 1 on", "");
	refused("{\"pids\": 1.5}", ": pids: '1.5' is not a whole number", "");
	refused("{\"max_requests\": 99999999999}", ": max_requests: '99999999999' is not", "");
	refused("{\"chat_timeout\": -1}", ": chat_timeout: '-1' is not a time", "");
	refused("{\"chat_timeout\": 1e300}", ": chat_timeout: ", "");
	refused("{\"chat_timeout\": true}", ": chat_timeout: true stands where a time", "");
	refused("{\"keepalive_seconds\": \"1y\"}", ": keepalive_seconds: '1y' is not", "");
	refused("{\"network\": \"bridge\"}", ": network: 'bridge' is not one of open|sealed", "");
	refused("{\"offline\": \"true\"}", ": offline: a text stands where true or false", "");
	refused("{\"prefix\": \"-x\"}", ": prefix: '-x' is not a word", "");
	refused("{\"image\": \"\"}", ": image: '' is not a text", "");
	refused("{\"api_key_env\": \"sk-1\"}", ": api_key_env: 'sk-1' is not the name", "");
	refused("{\"base_url\": \"https://u:p@h/\"}", ": base_url: ", "");
	refused("{\"base_url\": \"example.org\"}", ": base_url: 'example.org' is not", "");
	refused("{\"allow\": \"a\"}", ": allow: a text stands where a list", "");
	refused("{\"allow\": [\"a\", 5]}", ": allow: [1]: a number stands where", "");
	refused("{\"env\": [\"A=1\"]}", ": env: a list stands where an object", "");
	refused("{\"env\": {\"A B\": \"1\"}}", ": env: 'A B' is not the name of a variable", "");
	refused("{\"env\": {\"A\": 1}}", ": env: A: a number stands where a text", "");
	refused("{\"key_command\": []}", ": key_command: a command without a program", "");
	refused("{\"key_command\": \"pass 'x\"}", ": key_command: a command with a quote", "");
}

static void an_unknown_key_is_answered_with_the_nearest(void **state)
{
	(void)state;
	refused("{\"meemory\": 1}", ": meemory: there is no such setting", "did you mean memory?");
	refused("{\"max-lifetime\": 1}", ": max-lifetime: ", "did you mean max_lifetime?");
	refused("{\"agent\": {}}", ": agent: ", "pool.NAME");
	refused("{\"agnets\": {}}", ": agnets: ", "did you mean agents?");
	refused("{\"api_key\": \"sk\"}", ": api_key: ", "no key is kept in this file");
	refused("{\"agents\": {\"claude\": {\"mo_del\": 1}}}",
		": agents.claude.mo_del: ", "did you mean model?");
	refused("{\"agents\": {\"claude\": {\"prefix\": \"x\"}}}",
		": agents.claude.prefix: ", "at the top of the file");
	refused("{\"agents\": {\"claud\": {}}}", ": agents.claud: there is no such agent",
		"did you mean claude?");
	refused("{\"agents\": {\"$schema\": {}}}", ": agents.$schema: there is no such agent",
		"claude, opencode");
	refused("{\"providers\": {\"opanai\": {}}}", ": providers.opanai: ", "mean openai?");
	refused("{\"xyzzy\": 1}", ": xyzzy: ", "config show");
}

static void sections_are_objects_of_objects(void **state)
{
	(void)state;
	refused("{\"agents\": []}", ": agents: an object of sections by name belongs here", "");
	refused("{\"agents\": {\"claude\": 1}}", ": agents.claude: an object of settings", "");
	refused("{\"pool\": {\"p\": {}}}", ": pool.p: it says neither agent nor image", "count");
	refused("{\"pool\": {\"p\": {\"agent\": \"clade\"}}}",
		": pool.p.agent: there is no agent 'clade'", "did you mean claude?");
	refused("{\"pool\": {\"p\": {\"agent\": \"claude\", \"count\": 1001}}}",
		": pool.p.count: '1001' is not a whole number from 1 to 1000", "");
	refused("{\"pool\": {\"a/b\": {\"image\": \"i\"}}}", ": pool.a/b: a name is of", "");
	refused("[]", ": it is no JSON object", "");
}

static void what_is_no_json_is_told_with_its_line(void **state)
{
	(void)state;
	refused("{\n  \"memory\": \"1g\",\n  \"cpus\" 2\n}", ": line 3, column ", "");
	refused("{\n\"memory\": 1,\n\"memory\": 2}", ": line 3, column 8: duplicate object key",
		"");
	refused("", ": line 1, column 0: ", "a configuration that says nothing is {}");
	refused("{} x", ": line 1, column 4: end of file expected", "");
	refused("{\"image\": \"\\u0000\"}", ": line 1, column ", "");
}

static void one_setting_has_one_value_in_one_place(void **state)
{
	(void)state;
	refused("{\"max_containers\": 1, \"max_sandboxes\": 1}",
		": max_sandboxes: max_containers is set too", "");
	refused("{\"keepalive\": 1, \"keepalive_seconds\": 1}",
		": keepalive_seconds: keepalive is set too", "");
	refused("{\"api_key_env\": \"A\", \"key_command\": \"b\"}",
		": key_command: api_key_env and it exclude each other", "");
	refused("{\"agents\": {\"claude\": {\"api_key_file\": \"f\", \"api_key_env\": \"A\"}}}",
		": agents.claude.api_key_file: api_key_env and it exclude", "");
}

static void bad_variables_are_named(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{ "SANDBOX_AGENT_CONTAINER_MEMORY=1q", "'1q' is not a size" },
		{ "SANDBOX_AGENT_OFFLINE=maybe", "'maybe' is not true or false" },
		{ "SANDBOX_AGENT_EXEC_TIMEOUT=-5", "'-5' is not a time" },
		{ "SANDBOX_AGENT_NETWORK=none", "'none' is not one of open|sealed" },
		{ "SANDBOX_AGENT_KEY_COMMAND= ", "a command without a program" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		const char *const env[] = { bad[i][0], NULL };
		struct sba_config *c = NULL;
		struct sba_error err;
		assert_int_equal(load(&c, NULL, env, &err), SBA_ECONFIG);
		assert_int_equal(strncmp(err.text, bad[i][0], strcspn(bad[i][0], "=")), 0);
		assert_non_null(strstr(err.text, bad[i][1]));
	}
}

/* ---- values ---- */

static void numbers_and_texts_mean_the_same(void **state)
{
	(void)state;
	struct sba_config *a = loaded("{\"keepalive\": 90, \"memory\": 1610612736, \"cpus\": 1.5,"
				      " \"max_lifetime\": 0}",
				      NULL),
			  *b = loaded("{\"keepalive_seconds\": \"1.5m\", \"memory\": \"1.5g\","
				      " \"cpus\": \"1.5\", \"max_lifetime\": \"0\"}",
				      NULL);
	static const char *const keys[] = { "keepalive_seconds", "memory", "max_lifetime" };
	struct sba_config_value x, y;
	for (size_t i = 0; i < SBA_ARRAY_LEN(keys); i++)
		assert_int_equal(sba_config_number(a, keys[i], NULL),
				 sba_config_number(b, keys[i], NULL));
	assert_true(sba_config_get(a, "cpus", NULL, &x) && sba_config_get(b, "cpus", NULL, &y));
	assert_true(x.real > 1.49 && x.real < 1.51 && y.real > 1.49 && y.real < 1.51);
	assert_string_equal(sba_config_text(a, "keepalive", NULL), "90s");
	assert_string_equal(sba_config_text(a, "memory", NULL), "1536m");
	assert_string_equal(sba_config_text(a, "max_lifetime", NULL), "0");
	sba_config_free(a);
	sba_config_free(b);
}

static void paths_of_the_file_are_beside_it_or_at_home(void **state)
{
	(void)state;
	static const char *const env[] = { "HOME=/root", "SANDBOX_AGENT_SCRIPT=s.json",
					   "SANDBOX_AGENT_ENV_FILE=a:b", NULL };
	struct sba_config *c =
		loaded("{\"ca_file\": \"ca.pem\", \"api_key_file\": \"~/key\"}", env);
	struct sba_config_value v;
	assert_string_equal(sba_config_text(c, "ca_file", NULL), "/home/u/ca.pem");
	assert_string_equal(sba_config_text(c, "api_key_file", NULL), "/root/key");
	assert_string_equal(sba_config_text(c, "script", NULL), "s.json");
	assert_true(sba_config_get(c, "env_file", NULL, &v));
	assert_string_equal(v.list[0], "a");
	assert_string_equal(v.list[1], "b");
	assert_null(v.list[2]);
	sba_config_free(c);
}

static void lists_commands_and_variables_are_vectors(void **state)
{
	(void)state;
	static const char *const env[] = { "SANDBOX_AGENT_ALLOW=a.org, b.org:80", NULL };
	struct sba_config *c = loaded("{\"env\": {\"A\": \"1=2\", \"B\": null, \"C\": \"\"},"
				      " \"key_command\": \"pass 'a b' c\\\\ d \\\"\\\"\"}",
				      env);
	struct sba_config_value v;
	assert_true(sba_config_get(c, "allow", NULL, &v));
	assert_string_equal(v.text, "a.org, b.org:80");
	assert_true(sba_config_get(c, "env", NULL, &v));
	assert_string_equal(v.list[0], "A=1=2");
	assert_string_equal(v.list[1], "B");
	assert_string_equal(v.list[2], "C=");
	assert_true(sba_config_get(c, "key_command", NULL, &v));
	assert_string_equal(v.list[0], "pass");
	assert_string_equal(v.list[1], "a b");
	assert_string_equal(v.list[2], "c d");
	assert_string_equal(v.list[3], "");
	assert_null(v.list[4]);
	sba_config_free(c);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static char dir[64];

static char *place(const char *name)
{
	char *path = NULL;
	assert_true(asprintf(&path, "%s%s", dir, name) > 0);
	return path;
}

static int make_dir(void **state)
{
	(void)state;
	test_folder(dir, sizeof(dir), "sba-config");
	SBA_FREE char *a = place("/sandbox-agent"), *b = place("/sandbox-agent/config.json"),
		      *other = place("/other.json");
	if (mkdir(a, 0700) < 0)
		return -1;
	write_file(b, "{\"model\": \"xdg\"}");
	write_file(other, "{\"model\": \"other\"}");
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	test_folder_remove(dir);
	return 0;
}

static const char *model_of(const char *file, const char *const *env, char buf[64])
{
	const struct sba_config_options o = { .file = file,
					      .getenv_fn = look_up,
					      .user = (void *)(uintptr_t)env };
	struct sba_config *c = NULL;
	struct sba_error err = { 0 };
	if (sba_config_load(&o, &c, &err) < 0) {
		snprintf(buf, 64, "%d", err.code);
		return buf;
	}
	const char *model = sba_config_text(c, "model", NULL);
	snprintf(buf, 64, "%s", model ? model : "none");
	sba_config_free(c);
	return buf;
}

static void the_file_is_found_where_xdg_says(void **state)
{
	(void)state;
	SBA_FREE char *xdg = NULL, *home = NULL, *other = place("/other.json"), *named = NULL,
		      *missing = place("/none.json");
	assert_true(asprintf(&xdg, "XDG_CONFIG_HOME=%s", dir) > 0);
	assert_true(asprintf(&home, "HOME=%s", dir) > 0);
	assert_true(asprintf(&named, "SANDBOX_AGENT_CONFIG=%s", other) > 0);
	char buf[64], code[16];
	snprintf(code, sizeof(code), "%d", SBA_ECONFIG);
	const char *const by_xdg[] = { xdg, NULL }, *const by_home[] = { home, NULL },
			  *const relative[] = { "XDG_CONFIG_HOME=.", home, NULL },
			  *const by_name[] = { xdg, named, NULL };
	assert_string_equal(model_of(NULL, by_xdg, buf), "xdg");
	assert_string_equal(model_of(NULL, by_home, buf), "none");
	assert_string_equal(model_of(NULL, relative, buf), "none");
	assert_string_equal(model_of(NULL, by_name, buf), "other");
	assert_string_equal(model_of(other, by_xdg, buf), "other");
	assert_string_equal(model_of(missing, by_xdg, buf), code);
	assert_string_equal(model_of(dir, by_xdg, buf), code);
	assert_string_equal(model_of(NULL, NULL, buf), "none");
}

/* ---- keys ---- */

static void the_nearest_place_says_where_the_key_is(void **state)
{
	(void)state;
	static const char *const env[] = { "HOME=/root", NULL };
	struct sba_config *c = loaded(sections, env);
	const struct sba_config_scope claude = { .agent = "claude", .provider = "openai" },
				      openai = { .agent = "opencode", .provider = "openai" };
	struct sba_config_key k;
	assert_true(sba_config_key(c, &claude, &k));
	assert_string_equal(k.file, "/root/key");
	assert_true(!k.env && !k.command);
	assert_true(sba_config_key(c, &openai, &k));
	assert_string_equal(k.env, "P");
	assert_true(sba_config_key(c, NULL, &k));
	assert_string_equal(k.command[1], "top");
	assert_string_equal(k.origin, "/home/u/config.json: key_command");
	sba_config_free(c);
	c = loaded("{}", NULL);
	assert_false(sba_config_key(c, &claude, &k));
	sba_config_free(c);
}

static void a_command_prints_the_key_on_its_first_line(void **state)
{
	(void)state;
	static const char *const argv[] = { "printf", "%s\\r\\n%s\\n", "sk-1", "more", NULL };
	char *key = NULL;
	struct sba_error err;
	assert_int_equal(sba_key_command(argv, 0, NULL, &key, &err), 0);
	assert_string_equal(key, "sk-1");
	free(key);
}

static void a_command_that_fails_is_told_without_its_output(void **state)
{
	(void)state;
	static const struct {
		const char *script, *says;
		int64_t ms;
	} cases[] = {
		{ "echo sk-secret; exit 3", "exit status 3", 0 },
		{ "echo sk-secret; kill -9 $$", "signal 9", 0 },
		{ "echo; echo sk-secret", "it printed no key", 0 },
		{ "true", "it printed no key", 0 },
		{ "printf 'sk\\000secret'", "is no text", 0 },
		{ "echo sk-secret; exec sleep 100", "did not end within 1 s", 300 },
		{ "exec sleep 100", "did not end within 1 s", 300 },
		{ "echo sk-secret; head -c 100000 /dev/zero", "more than a key", 0 },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		const char *const argv[] = { "sh", "-c", cases[i].script, NULL };
		char *key = NULL;
		struct sba_error err;
		if (sba_key_command(argv, cases[i].ms, NULL, &key, &err) >= 0)
			fail_msg("%s: %.20s", cases[i].script, key);
		assert_null(key);
		if (!strstr(err.text, cases[i].says) || strstr(err.text, "secret"))
			fail_msg("%s", err.text);
	}
	static const char *const none[] = { "/no/such/program", "sk-secret", NULL };
	char *key = NULL;
	struct sba_error err;
	assert_int_equal(sba_key_command(none, 0, NULL, &key, &err), SBA_ECONFIG);
	/* Beneath valgrind a child that cannot be made to run ends as one of a shell does. */
	assert_true(strstr(err.text, "No such file") || strstr(err.text, "exit status 127"));
	assert_null(strstr(err.text, "secret"));
}

int main(void)
{
	alarm(60);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_each_key_and_variable_once),
		cmocka_unit_test(the_known_keys_and_variables_are_there),
		cmocka_unit_test(each_setting_comes_from_the_nearest_place),
		cmocka_unit_test(each_setting_stands_where_the_table_says),
		cmocka_unit_test(sections_beat_what_is_above_them),
		cmocka_unit_test(the_environment_beats_every_section),
		cmocka_unit_test(a_pool_is_listed_with_what_it_says),
		cmocka_unit_test(bad_values_name_file_key_and_what_is_wanted),
		cmocka_unit_test(an_unknown_key_is_answered_with_the_nearest),
		cmocka_unit_test(sections_are_objects_of_objects),
		cmocka_unit_test(what_is_no_json_is_told_with_its_line),
		cmocka_unit_test(one_setting_has_one_value_in_one_place),
		cmocka_unit_test(bad_variables_are_named),
		cmocka_unit_test(numbers_and_texts_mean_the_same),
		cmocka_unit_test(paths_of_the_file_are_beside_it_or_at_home),
		cmocka_unit_test(lists_commands_and_variables_are_vectors),
		cmocka_unit_test(the_file_is_found_where_xdg_says),
		cmocka_unit_test(the_nearest_place_says_where_the_key_is),
		cmocka_unit_test(a_command_prints_the_key_on_its_first_line),
		cmocka_unit_test(a_command_that_fails_is_told_without_its_output),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
