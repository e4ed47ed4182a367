/* SPDX-License-Identifier: MIT */
/*
 * One value: from the text of a variable or from JSON, by the type of its
 * setting. Where it stands is the caller's to say.
 */
#include "config/private.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* ---- what is wanted ---- */

const char *sba_setting_wants(const struct sba_setting *s, char *buf, size_t size)
{
	static const char *const wants[] = {
		[SBA_SETTING_TEXT] = "a text",
		[SBA_SETTING_WORD] = "a word of letters and digits (_ . - between them)",
		[SBA_SETTING_VARIABLE] = "the name of a variable",
		[SBA_SETTING_URL] = "an http:// or https:// URL without a password",
		[SBA_SETTING_PATH] = "a path",
		[SBA_SETTING_BOOL] = "true or false",
		[SBA_SETTING_NUMBER] = "a number above 0 (as in 2 or 0.5)",
		[SBA_SETTING_SIZE] = "a size (as in 512m, 1.5g)",
		[SBA_SETTING_TIME] = "a time (as in 90s, 30m, 1.5h; 0: none)",
		[SBA_SETTING_LIST] = "a list of texts",
		[SBA_SETTING_PATHS] = "a list of paths",
		[SBA_SETTING_COMMAND] = "a command (a text, or a list of its words)",
		[SBA_SETTING_ENV] = "an object of variables (as in {\"NAME\": \"VALUE\"})",
	};
	if (s->type == SBA_SETTING_CHOICE)
		snprintf(buf, size, "one of %s", s->choices);
	else if (s->type == SBA_SETTING_COUNT && s->max)
		snprintf(buf, size, "a whole number from %" PRId64 " to %" PRId64, s->min, s->max);
	else if (s->type == SBA_SETTING_COUNT)
		snprintf(buf, size, "a whole number from %" PRId64 " on", s->min);
	else
		snprintf(buf, size, "%s", wants[s->type]);
	return buf;
}

static int unwanted(const struct sba_setting *s, const char *text, struct sba_error *err)
{
	char wants[128];
	return sba_fail(err, SBA_ECONFIG, "'%.200s' is not %s", text,
			sba_setting_wants(s, wants, sizeof(wants)));
}

/* ---- checks of text ---- */

static bool is_choice(const char *choices, const char *text)
{
	size_t len = strlen(text);
	for (const char *c = choices; c;) {
		size_t n = strcspn(c, "|");
		if (n == len && !strncmp(c, text, n))
			return true;
		c = c[n] ? c + n + 1 : NULL;
	}
	return false;
}

static bool is_word(const char *text)
{
	return sba_is_word(text, "_.-", SIZE_MAX - 1) && !strchr("_.", *text);
}

static bool is_variable(const char *text)
{
	const char *c = text;
	while (isalpha((unsigned char)*c) || *c == '_' || (c > text && isdigit((unsigned char)*c)))
		c++;
	return c > text && !*c;
}

static bool is_url(const char *text)
{
	const char *host = strstr(text, "://");
	if (!host || (!sba_starts_with(text, "http://") && !sba_starts_with(text, "https://")))
		return false;
	host += 3;
	size_t len = strcspn(host, "/?#");
	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	}
	return len > 0 && !memchr(host, '@', len);
}

static bool is_well_formed(const struct sba_setting *s, const char *text)
{
	switch (s->type) {
	case SBA_SETTING_CHOICE:
		return is_choice(s->choices, text);
	case SBA_SETTING_WORD:
		return is_word(text);
	case SBA_SETTING_VARIABLE:
		return is_variable(text);
	case SBA_SETTING_URL:
		return is_url(text);
	default:
		return *text != '\0';
	}
}

/* ---- what is kept ---- */

static int keep_text(struct sba_entry *e, const char *text, struct sba_error *err)
{
	free(e->text);
	e->text = strdup(text);
	e->value.text = e->text;
	return e->text ? 0 : sba_fail_nomem(err);
}

/* The largest unit in which it is a whole number. */
static int keep_in_units(struct sba_entry *e, const char *const *units, const int64_t *factors,
			 struct sba_error *err)
{
	char text[32];
	size_t i = 0;
	while (units[i + 1] && e->value.number % factors[i] != 0)
		i++;
	snprintf(text, sizeof(text), "%" PRId64 "%s", e->value.number / factors[i], units[i]);
	return keep_text(e, e->value.number == 0 ? "0" : text, err);
}

static int keep_time(struct sba_entry *e, struct sba_error *err)
{
	static const char *const units[] = { "h", "m", "s", "ms", NULL };
	static const int64_t factors[] = { 3600000, 60000, 1000, 1 };
	return keep_in_units(e, units, factors, err);
}

static int keep_size(struct sba_entry *e, struct sba_error *err)
{
	static const char *const units[] = { "g", "m", "k", "", NULL };
	static const int64_t factors[] = { 1 << 30, 1 << 20, 1 << 10, 1 };
	return keep_in_units(e, units, factors, err);
}

/* "a, b": for people; nothing reads it. */
static int keep_list(struct sba_entry *e, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4 * SBA_CONFIG_MAX);
	sba_buf_puts(&b, "");
	for (size_t i = 0; i < e->list.n; i++)
		sba_buf_printf(&b, "%s%s", i ? ", " : "", e->list.v[i]);
	int rc = sba_buf_check(&b, "the list", err);
	if (rc < 0)
		return rc;
	static const char *const none[] = { NULL };
	e->value.list = e->list.v ? (const char *const *)e->list.v : none;
	free(e->text);
	e->text = sba_buf_take(&b);
	e->value.text = e->text;
	return e->text ? 0 : sba_fail_nomem(err);
}

/* In a file "~/x" is beneath the home folder and "x" beside the file. */
static int resolve_path(const struct sba_config *c, const struct sba_entry *e, const char *text,
			char **ret, struct sba_error *err)
{
	char *path = NULL;
	bool file = e->value.source == SBA_FROM_FILE;
	int n;
	if (!*text)
		return unwanted(e->value.setting, text, err);
	if (file && sba_starts_with(text, "~/") && c->home)
		n = asprintf(&path, "%s%s", c->home, text + 1);
	else if (file && *text != '/' && c->dir)
		n = asprintf(&path, "%s/%s", c->dir, text);
	else
		n = asprintf(&path, "%s", text);
	if (n < 0)
		return sba_fail_nomem(err);
	*ret = path;
	return 0;
}

static int add_word(const struct sba_config *c, struct sba_entry *e, const char *text,
		    struct sba_error *err)
{
	SBA_FREE char *path = NULL;
	const struct sba_setting *s = e->value.setting;
	if (!*text && s->type != SBA_SETTING_COMMAND)
		return sba_fail(err, SBA_ECONFIG, "one of the list is empty");
	if (s->type == SBA_SETTING_PATHS) {
		int rc = resolve_path(c, e, text, &path, err);
		if (rc < 0)
			return rc;
	}
	return sba_strv_add(&e->list, path ? path : text, err);
}

/* ---- numbers ---- */

static int64_t upper(const struct sba_setting *s)
{
	return s->max ? s->max : INT32_MAX;
}

static int number_from_text(struct sba_entry *e, const char *text, struct sba_error *err)
{
	const struct sba_setting *s = e->value.setting;
	const char *end;
	switch (s->type) {
	case SBA_SETTING_COUNT:
		if (sba_parse_int(text, s->min, upper(s), &e->value.number) < 0)
			return unwanted(s, text, err);
		return keep_text(e, text, err);
	case SBA_SETTING_NUMBER:
		end = sba_parse_decimal(text, &e->value.real);
		if (!end || *end || !isfinite(e->value.real) || e->value.real <= 0)
			return unwanted(s, text, err);
		return keep_text(e, text, err);
	case SBA_SETTING_SIZE:
		if (sba_parse_size(text, &e->value.number) < 0)
			return unwanted(s, text, err);
		if (e->value.number < s->min)
			return sba_fail(err, SBA_ECONFIG,
					"'%.40s' is too little: at least %" PRId64 "m", text,
					s->min >> 20);
		return strspn(text, "0123456789") == strlen(text) ? keep_size(e, err)
								  : keep_text(e, text, err);
	default:
		if (sba_parse_duration(text, &e->value.number) < 0)
			return unwanted(s, text, err);
		return strspn(text, "0123456789") == strlen(text) ? keep_time(e, err)
								  : keep_text(e, text, err);
	}
}

/* ---- from the text of a variable ---- */

static int bool_from_text(struct sba_entry *e, const char *text, struct sba_error *err)
{
	bool yes = !strcmp(text, "true") || !strcmp(text, "1") || !strcmp(text, "yes");
	if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0 && strcmp(text, "no") != 0)
		return unwanted(e->value.setting, text, err);
	e->value.number = yes;
	return keep_text(e, yes ? "true" : "false", err);
}

/* Rules are separated by commas or blanks, paths by colons as in PATH. */
static int list_from_text(const struct sba_config *c, struct sba_entry *e, const char *text,
			  struct sba_error *err)
{
	const char *between = e->value.setting->type == SBA_SETTING_PATHS ? ":" : ", \t\n";
	for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
		size_t len = strcspn(at, between);
		SBA_FREE char *word = strndup(at, len);
		int rc = word ? add_word(c, e, word, err) : sba_fail_nomem(err);
		if (rc < 0)
			return rc;
		at += len;
	}
	return keep_list(e, err);
}

static int command_from_text(struct sba_entry *e, const char *text, struct sba_error *err)
{
	char **argv = NULL;
	int rc = sba_command_split(text, &argv, err);
	for (size_t i = 0; rc == 0 && argv[i]; i++)
		rc = sba_strv_add(&e->list, argv[i], err);
	sba_command_free(argv);
	return rc == 0 ? keep_list(e, err) : rc;
}

int sba_value_from_text(const struct sba_config *c, struct sba_entry *e, const char *text,
			struct sba_error *err)
{
	SBA_FREE char *path = NULL;
	int rc;
	switch (e->value.setting->type) {
	case SBA_SETTING_BOOL:
		return bool_from_text(e, text, err);
	case SBA_SETTING_COUNT:
	case SBA_SETTING_NUMBER:
	case SBA_SETTING_SIZE:
	case SBA_SETTING_TIME:
		return number_from_text(e, text, err);
	case SBA_SETTING_LIST:
	case SBA_SETTING_PATHS:
		return list_from_text(c, e, text, err);
	case SBA_SETTING_COMMAND:
		return command_from_text(e, text, err);
	case SBA_SETTING_PATH:
		rc = resolve_path(c, e, text, &path, err);
		return rc == 0 ? keep_text(e, path, err) : rc;
	default:
		if (!is_well_formed(e->value.setting, text))
			return unwanted(e->value.setting, text, err);
		return keep_text(e, text, err);
	}
}

/* ---- from JSON ---- */

static const char *type_name(const json_t *j)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
		[JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",      [JSON_NULL] = "null",
	};
	return names[json_typeof(j)];
}

static int wrong_type(const struct sba_setting *s, const json_t *j, struct sba_error *err)
{
	char wants[128];
	return sba_fail(err, SBA_ECONFIG, "%s stands where %s belongs", type_name(j),
			sba_setting_wants(s, wants, sizeof(wants)));
}

static int list_from_json(const struct sba_config *c, struct sba_entry *e, const json_t *j,
			  struct sba_error *err)
{
	const json_t *item;
	size_t i;
	if (!json_is_array(j))
		return wrong_type(e->value.setting, j, err);
	json_array_foreach(j, i, item)
	{
		int rc = json_is_string(item) ? add_word(c, e, json_string_value(item), err)
					      : wrong_type(e->value.setting, item, err);
		if (rc < 0)
			return sba_wrap(err, rc, "[%zu]", i);
	}
	if (e->value.setting->type == SBA_SETTING_COMMAND && (!e->list.n || !*e->list.v[0]))
		return sba_fail(err, SBA_ECONFIG, "a command without a program");
	return keep_list(e, err);
}

/* null: the caller's own value is passed on. */
static int env_from_json(struct sba_entry *e, const json_t *j, struct sba_error *err)
{
	const char *name;
	json_t *value;
	if (!json_is_object(j))
		return wrong_type(e->value.setting, j, err);
	json_object_foreach((json_t *)(uintptr_t)j, name, value)
	{
		int rc = 0;
		if (!is_variable(name))
			rc = sba_fail(err, SBA_ECONFIG, "'%.100s' is not the name of a variable",
				      name);
		else if (!json_is_string(value) && !json_is_null(value))
			rc = sba_fail(err, SBA_ECONFIG, "%.100s: %s stands where a text belongs",
				      name, type_name(value));
		else
			rc = sba_strv_addf(&e->list, err, "%s%s%s", name,
					   json_is_null(value) ? "" : "=",
					   json_is_null(value) ? "" : json_string_value(value));
		if (rc < 0)
			return rc;
	}
	return keep_list(e, err);
}

static int scalar_from_json(const struct sba_config *c, struct sba_entry *e, const json_t *j,
			    struct sba_error *err)
{
	const struct sba_setting *s = e->value.setting;
	char number[64] = "";
	bool counts = s->type == SBA_SETTING_COUNT, text = json_is_string(j) && !counts;
	bool numeric = counts || s->type == SBA_SETTING_NUMBER || s->type == SBA_SETTING_SIZE ||
		       s->type == SBA_SETTING_TIME;
	if (s->type == SBA_SETTING_BOOL)
		return json_is_boolean(j)
			       ? bool_from_text(e, json_is_true(j) ? "true" : "false", err)
			       : wrong_type(s, j, err);
	if (numeric && json_is_integer(j))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(j));
	else if (numeric && json_is_real(j))
		snprintf(number, sizeof(number), "%.10g", json_real_value(j));
	else if (!text)
		return wrong_type(s, j, err);
	return sba_value_from_text(c, e, text ? json_string_value(j) : number, err);
}

int sba_value_from_json(const struct sba_config *c, struct sba_entry *e, const json_t *j,
			struct sba_error *err)
{
	switch (e->value.setting->type) {
	case SBA_SETTING_LIST:
	case SBA_SETTING_PATHS:
		return list_from_json(c, e, j, err);
	case SBA_SETTING_COMMAND:
		return json_is_string(j) ? command_from_text(e, json_string_value(j), err)
					 : list_from_json(c, e, j, err);
	case SBA_SETTING_ENV:
		return env_from_json(e, j, err);
	default:
		return scalar_from_json(c, e, j, err);
	}
}
