/* SPDX-License-Identifier: MIT */
/* `config schema`: the JSON Schema of the configuration file, for editors. */
#include "cli.h"

#include <string.h>

static json_t *texts(void)
{
	return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
}

static json_t *either(const char *a, const char *b)
{
	return json_pack("{s:[s, s]}", "type", a, b);
}

static json_t *choices_of(const char *choices)
{
	json_t *list = json_array();
	for (const char *c = choices; c;) {
		size_t len = strcspn(c, "|");
		json_array_append_new(list, json_stringn(c, len));
		c = c[len] ? c + len + 1 : NULL;
	}
	return json_pack("{s:o}", "enum", list);
}

static json_t *count(const struct sba_setting *s)
{
	json_t *j = json_pack("{s:s, s:I}", "type", "integer", "minimum", (json_int_t)s->min);
	if (j && s->max)
		json_object_set_new(j, "maximum", json_integer(s->max));
	return j;
}

static json_t *pattern(const char *regex)
{
	return json_pack("{s:s, s:s}", "type", "string", "pattern", regex);
}

static json_t *type_of(const struct sba_setting *s)
{
	switch (s->type) {
	case SBA_SETTING_CHOICE:
		return choices_of(s->choices);
	case SBA_SETTING_WORD:
		return pattern("^[A-Za-z0-9][A-Za-z0-9_.-]*$");
	case SBA_SETTING_VARIABLE:
		return pattern("^[A-Za-z_][A-Za-z0-9_]*$");
	case SBA_SETTING_URL:
		return pattern("^https?://[^/@\\s]+(/\\S*)?$");
	case SBA_SETTING_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case SBA_SETTING_COUNT:
		return count(s);
	case SBA_SETTING_NUMBER:
	case SBA_SETTING_SIZE:
	case SBA_SETTING_TIME:
		return either("number", "string");
	case SBA_SETTING_LIST:
	case SBA_SETTING_PATHS:
		return texts();
	case SBA_SETTING_COMMAND:
		return json_pack("{s:[{s:s}, {s:s, s:{s:s}, s:i}]}", "oneOf", "type", "string",
				 "type", "array", "items", "type", "string", "minItems", 1);
	case SBA_SETTING_ENV:
		return json_pack("{s:s, s:{s:[s, s]}}", "type", "object", "additionalProperties",
				 "type", "string", "null");
	case SBA_SETTING_TEXT:
	case SBA_SETTING_PATH:
		break;
	}
	return json_pack("{s:s, s:i}", "type", "string", "minLength", 1);
}

static void describe(json_t *j, const struct sba_setting *s)
{
	const char *usual = s->fallback ? s->fallback : s->fallback_text;
	json_t *text = usual ? json_sprintf("%s (%s)", s->help, usual) : json_string(s->help);
	json_object_set_new(j, "description", text);
}

/* What may stand in a section of that level. */
static json_t *section(unsigned level)
{
	const struct sba_setting *s;
	json_t *properties = json_object();
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		if (!(s->levels & level))
			continue;
		json_t *type = type_of(s);
		describe(type, s);
		json_object_set(properties, s->key, type);
		if (s->alias)
			json_object_set(properties, s->alias, type);
		json_decref(type);
	}
	return json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
			 "properties", properties);
}

/* Sections of these names alone. */
static json_t *named(const char *const *names, const char *definition)
{
	json_t *properties = json_object();
	for (; *names; names++)
		json_object_set_new(properties, *names, json_pack("{s:s}", "$ref", definition));
	return json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
			 "properties", properties);
}

static json_t *schema(void)
{
	json_t *j = section(SBA_SETTING_TOP), *properties = json_object_get(j, "properties");
	json_object_set_new(properties, "$schema", json_pack("{s:s}", "type", "string"));
	json_object_set_new(properties, "agents", named(sba_agent_names(), "#/definitions/agent"));
	json_object_set_new(properties, "providers",
			    named(sba_provider_list(), "#/definitions/provider"));
	json_object_set_new(properties, "pool",
			    json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties",
				      "$ref", "#/definitions/pool"));
	json_t *pool = section(SBA_SETTING_POOL);
	json_object_set_new(
		pool, "anyOf",
		json_pack("[{s:[s]}, {s:[s]}]", "required", "agent", "required", "image"));
	json_object_set_new(j, "definitions",
			    json_pack("{s:o, s:o, s:o}", "agent", section(SBA_SETTING_AGENT),
				      "provider", section(SBA_SETTING_PROVIDER), "pool", pool));
	json_object_set_new(j, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(j, "title", json_string("The configuration of sandbox-agent"));
	return j;
}

static int config_schema(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	CLI_JSON json_t *j = schema();
	CLI_FREE char *text = json_dumps(j, JSON_INDENT(2));
	struct sba_error err;
	if (!text) {
		cli_fail_nomem(&err);
		return cli_report(cli, &err);
	}
	printf("%s\n", text);
	return 0;
}

const struct cli_command cli_command_config_schema = {
	.name = "config schema",
	.no_config = true,
	.args = "",
	.help = "the JSON Schema of the file, for editors",
	.example = "sandbox-agent config schema > config.schema.json",
	.run = config_schema,
};
