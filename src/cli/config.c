/* SPDX-License-Identifier: MIT */
/* `config show`: the effective value of every setting, and where it comes from. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

struct show {
	struct cli *cli;
	const struct cli_args *keys; /* only these; none: all */
	struct cli_table *table;
	json_t *list;
};

static const char *source_name(enum sba_config_source source)
{
	static const char *const names[] = { "built_in", "file", "environment", "option" };
	return names[source];
}

static bool is_asked(const struct show *s, const struct sba_setting *setting, const char *path)
{
	for (int i = 0; i < s->keys->n; i++) {
		const char *key = s->keys->v[i];
		if (!strcmp(key, setting->key) || !strcmp(key, path) ||
		    (setting->alias && !strcmp(key, setting->alias)))
			return true;
	}
	return s->keys->n == 0;
}

/* Secrets, and variables that hold them, are there or not. */
static void put_value(char *buf, size_t size, const struct sba_config_value *v)
{
	const struct sba_setting *s = v->setting;
	const char *held = s->type == SBA_SETTING_VARIABLE && v->text ? getenv(v->text) : NULL;
	if (s->secret)
		snprintf(buf, size, "%s", v->text ? "set" : "unset");
	else if (s->type == SBA_SETTING_VARIABLE && v->text)
		snprintf(buf, size, "%s (%s)", v->text, held && *held ? "set" : "unset");
	else if (v->text)
		snprintf(buf, size, "%s", v->text);
	else
		snprintf(buf, size, "%s", s->fallback_text ? s->fallback_text : "-");
}

static void add_row(struct show *s, const char *path, const struct sba_config_value *v)
{
	char value[512];
	const char *file = sba_config_file(s->cli->config);
	put_value(value, sizeof(value), v);
	const char *const cells[] = { path, value,
				      v->source == SBA_FROM_FILE && file ? file : v->origin };
	cli_table_add(s->table, cells);
}

static json_t *list_json(const char *const *list)
{
	json_t *j = json_array();
	for (; list && *list; list++)
		json_array_append_new(j, json_string(*list));
	return j;
}

static json_t *value_json(const struct sba_config_value *v)
{
	if (!v->text)
		return json_null();
	switch (v->setting->type) {
	case SBA_SETTING_BOOL:
		return json_boolean(v->number);
	case SBA_SETTING_COUNT:
		return json_integer(v->number);
	case SBA_SETTING_NUMBER:
		return json_real(v->real);
	case SBA_SETTING_LIST:
	case SBA_SETTING_PATHS:
		return list_json(v->list);
	default:
		return json_string(v->text);
	}
}

static void add_json(struct show *s, const char *path, const struct sba_config_value *v)
{
	const struct sba_setting *setting = v->setting;
	json_t *j = json_pack("{s:s, s:s, s:s}", "key", path, "source", source_name(v->source),
			      "origin", v->origin);
	if (setting->secret)
		json_object_set_new(j, "set", json_boolean(v->text));
	else
		json_object_set_new(j, "value", value_json(v));
	if (setting->type == SBA_SETTING_TIME && v->text)
		json_object_set_new(j, "ms", json_integer(v->number));
	if (setting->type == SBA_SETTING_SIZE && v->text)
		json_object_set_new(j, "bytes", json_integer(v->number));
	if (setting->type == SBA_SETTING_VARIABLE && v->text)
		json_object_set_new(j, "set", json_boolean(getenv(v->text) && *getenv(v->text)));
	if (!v->text && setting->fallback_text)
		json_object_set_new(j, "default", json_string(setting->fallback_text));
	json_array_append_new(s->list, j);
}

static void show_one(struct show *s, const struct sba_setting *setting, const char *path,
		     const struct sba_config_scope *scope)
{
	struct sba_config_value v;
	if (!is_asked(s, setting, path))
		return;
	sba_config_get(s->cli->config, setting->key, scope, &v);
	(s->cli->json ? add_json : add_row)(s, path, &v);
}

static void show_top(struct show *s)
{
	const struct sba_setting *setting;
	for (size_t i = 0; (setting = sba_setting_at(i)); i++) {
		if (setting->levels & SBA_SETTING_TOP)
			show_one(s, setting, setting->key, NULL);
	}
}

/* What a section says, though it may be overruled. */
static void show_section(struct show *s, const char *kind, const char *name,
			 const struct sba_config_scope *scope)
{
	const struct sba_setting *setting;
	for (size_t i = 0; (setting = sba_setting_at(i)); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s.%s.%s", kind, name, setting->key);
		if (sba_config_has(s->cli->config, kind, name, setting->key))
			show_one(s, setting, path, scope);
	}
}

static void show_sections(struct show *s)
{
	const struct sba_config *c = s->cli->config;
	for (const char *const *n = sba_config_names(c, "providers"); *n; n++)
		show_section(s, "providers", *n, &(struct sba_config_scope){ .provider = *n });
	for (const char *const *n = sba_config_names(c, "agents"); *n; n++)
		show_section(s, "agents", *n, &(struct sba_config_scope){ .agent = *n });
	for (const char *const *n = sba_config_names(c, "pool"); *n; n++)
		show_section(s, "pool", *n, &(struct sba_config_scope){ .pool = *n });
}

static int check_keys(const struct cli_args *args, struct sba_error *err)
{
	for (int i = 0; i < args->n; i++) {
		const char *names[96], *dot = strrchr(args->v[i], '.');
		const char *key = dot ? dot + 1 : args->v[i];
		const struct sba_setting *s;
		size_t n = 0;
		if (sba_setting_find(key))
			continue;
		for (; (s = sba_setting_at(n)) && n < CLI_LEN(names); n++)
			names[n] = s->key;
		int near = sba_nearest(key, names, n);
		cli_fail(err, SBA_EINVAL, "sandbox-agent config show lists them", "no setting '%s'",
			 args->v[i]);
		if (near >= 0)
			snprintf(err->hint, sizeof(err->hint), "did you mean %s?", names[near]);
		return SBA_EINVAL;
	}
	return 0;
}

/* Nobody would miss the effect of a misspelt variable. */
static void note_unknown_variables(struct cli *cli)
{
	static const char prefix[] = "SANDBOX_AGENT_";
	for (char **e = environ; *e; e++) {
		const char *names[96] = { "SANDBOX_AGENT_CONFIG" };
		const struct sba_setting *s;
		char name[64];
		size_t n = 1;
		if (strncmp(*e, prefix, sizeof(prefix) - 1) != 0 ||
		    !strncmp(*e, "SANDBOX_AGENT_TEST_", 19))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		bool known = !strcmp(name, names[0]);
		for (size_t i = 0; (s = sba_setting_at(i)) && n < CLI_LEN(names); i++) {
			known = known || (s->variable && !strcmp(s->variable, name));
			if (s->variable)
				names[n++] = s->variable;
		}
		int near = sba_nearest(name, names, n);
		if (!known)
			cli_note(cli, "%s is no variable of ours%s%s%s", name,
				 near < 0 ? "" : "; did you mean ", near < 0 ? "" : names[near],
				 near < 0 ? "" : "?");
	}
}

static void print(struct show *s)
{
	const char *file = sba_config_file(s->cli->config);
	if (s->cli->json) {
		cli_json_first(json_pack("{s:s?, s:O}", "file", file, "settings", s->list));
		return;
	}
	cli_table_print(s->table, stdout, s->cli->look.out_tty ? s->cli->look.columns : 0);
	if (!file)
		cli_note(s->cli, "there is no configuration file");
	note_unknown_variables(s->cli);
}

static int show(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	static const char *const head[] = { "SETTING", "VALUE", "FROM" };
	struct cli_table table = { .columns = CLI_LEN(head) };
	CLI_JSON json_t *list = json_array();
	struct show s = { .cli = cli, .keys = args, .table = &table, .list = list };
	struct sba_error err;
	if (check_keys(args, &err) < 0)
		return cli_report(cli, &err);
	cli_table_add(&table, head);
	show_top(&s);
	show_sections(&s);
	print(&s);
	cli_table_fini(&table);
	return 0;
}

const struct cli_command cli_command_config_show = {
	.name = "config show",
	.args = "[KEY...]",
	.help = "every setting: its value, and where that comes from",
	.more = "Settings come from options, the environment, a file and what is built in, in\n"
		"this order; see docs/config.md or man sandbox-agent-config.",
	.example = "sandbox-agent config show memory",
	.max_args = -1,
	.run = show,
};
