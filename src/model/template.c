/* SPDX-License-Identifier: MIT */
/*
 * The {{templates}} of a script: a table of names, each filled from the
 * request. "{{" that is not followed by a name and "}}" stays as it is.
 */
#include "base/limits.h"
#include "model/private.h"

#include <stdlib.h>
#include <string.h>

#define WORKSPACE "/workspace/"

static const char *text_of(const struct sba_buf *b)
{
	return b->data ? b->data : "";
}

typedef void fill_fn(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret);

static void fill_prompt(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_puts(ret, text_of(&v->request->prompt));
}

static void fill_rest(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_puts(ret, v->rest);
}

/* Length of the first word, without a colon at its end. */
static size_t word_len(const char *s)
{
	size_t n = strcspn(s, " \t\n");
	return n && s[n - 1] == ':' ? n - 1 : n;
}

static void fill_word(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_put(ret, v->rest, word_len(v->rest));
}

static void fill_tail(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	const char *s = v->rest + strcspn(v->rest, " \t\n");
	sba_buf_puts(ret, s + strspn(s, " \t\n"));
}

/* A name before a colon may have spaces in it. */
static void fill_before_colon(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_put(ret, v->rest, strcspn(v->rest, ":"));
}

static void fill_after_colon(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	const char *s = strchr(v->rest, ':');
	if (s)
		sba_buf_puts(ret, s + 1 + strspn(s + 1, " \t\n"));
}

static void fill_tool_output(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_puts(ret, text_of(&v->request->tool_output));
}

static void fill_history(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_printf(ret, "%zu", v->request->users);
}

static void fill_user_texts(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	(void)arg;
	sba_buf_puts(ret, text_of(&v->request->user_texts));
}

static bool is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("/._-+@", c));
}

/* The first path in s that ends in `suffix`, absolute ones only unless
 * `relative`; its length or 0. */
static size_t find_path(const char *s, const char *suffix, bool relative, const char **ret)
{
	size_t wanted = strlen(suffix);
	for (char before = ' '; *s; before = *s++) {
		bool starts = *s == '/' || (relative && is_path_char(*s));
		if (!starts || is_path_char(before) || before == ':')
			continue;
		size_t n = 0;
		while (is_path_char(s[n]))
			n++;
		while (n && s[n - 1] == '.')
			n--;
		if (n > 1 && n >= wanted && !memcmp(s + n - wanted, suffix, wanted)) {
			*ret = s;
			return n;
		}
	}
	return 0;
}

/* With a default, only a path with the default's extension is taken, and a
 * name alone is a path too. */
static void fill_path(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	const char *dot = strrchr(arg, '.');
	const char *found = NULL;
	size_t n = find_path(text_of(&v->request->prompt), dot ? dot : "", dot != NULL, &found);
	if (!n) {
		sba_buf_puts(ret, arg);
		return;
	}
	if (found[0] != '/')
		sba_buf_puts(ret, WORKSPACE);
	sba_buf_put(ret, found, n);
}

static bool has_text(const json_t *j, const char *text)
{
	const char *key;
	json_t *member;
	size_t i;
	if (json_is_string(j))
		return strstr(json_string_value(j), text) != NULL;
	/* jansson takes no const, but only reads. */
	json_object_foreach((json_t *)(uintptr_t)j, key, member)
	{
		if (has_text(member, text))
			return true;
	}
	json_array_foreach(j, i, member)
	{
		if (has_text(member, text))
			return true;
	}
	return false;
}

/* What a CLI tells its model beside the conversation: rules, skills, tools. */
static void fill_has(const struct sba_model_vars *v, const char *arg, struct sba_buf *ret)
{
	sba_buf_puts(ret, has_text(v->request->doc, arg) ? "yes" : "no");
}

static const struct {
	const char *name;
	fill_fn *fill;
	bool takes_arg; /* {{name:arg}} */
} templates[] = {
	{ "prompt", fill_prompt, false },
	{ "rest", fill_rest, false },
	{ "word", fill_word, false },
	{ "tail", fill_tail, false },
	{ "before_colon", fill_before_colon, false },
	{ "after_colon", fill_after_colon, false },
	{ "path", fill_path, true },
	{ "tool_output", fill_tool_output, false },
	{ "history", fill_history, false },
	{ "user_texts", fill_user_texts, false },
	{ "has", fill_has, true },
};

/* One {{name}} or {{name:arg}} in a text. */
struct use {
	const char *start, *end; /* the text from "{{" to after "}}" */
	char name[32];
	char arg[256];
};

static bool parse_use(const char *at, struct use *u)
{
	const char *name = at + 2;
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
	if (!n || n >= sizeof(u->name) || (name[n] != ':' && name[n] != '}'))
		return false;
	const char *arg = name + n + (name[n] == ':');
	const char *end = strstr(arg, "}}");
	if (!end || (size_t)(end - arg) >= sizeof(u->arg) || (name[n] == '}' && end != arg))
		return false;
	memcpy(u->name, name, n);
	u->name[n] = '\0';
	memcpy(u->arg, arg, (size_t)(end - arg));
	u->arg[end - arg] = '\0';
	u->start = at;
	u->end = end + 2;
	return true;
}

static bool next_use(const char *s, struct use *u)
{
	while ((s = strstr(s, "{{"))) {
		if (parse_use(s, u))
			return true;
		s++;
	}
	return false;
}

static int find_template(const char *name)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(templates); i++)
		if (!strcmp(templates[i].name, name))
			return (int)i;
	return -1;
}

int sba_model_expand(const char *text, const struct sba_model_vars *vars, struct sba_buf *ret,
		     struct sba_error *err)
{
	struct use u;
	while (next_use(text, &u)) {
		int i = find_template(u.name);
		sba_buf_put(ret, text, (size_t)(u.start - text));
		if (i >= 0)
			templates[i].fill(vars, u.arg, ret);
		text = u.end;
	}
	sba_buf_puts(ret, text);
	return sba_buf_check(ret, "an answer of the script", err);
}

static int unknown_template(const char *name, struct sba_error *err)
{
	const char *names[SBA_ARRAY_LEN(templates)];
	for (size_t i = 0; i < SBA_ARRAY_LEN(templates); i++)
		names[i] = templates[i].name;
	int near = sba_nearest(name, names, SBA_ARRAY_LEN(templates));
	if (near < 0)
		return sba_fail(err, SBA_ECONFIG, "no template {{%s}}", name);
	return sba_fail(err, SBA_ECONFIG, "no template {{%s}}; did you mean {{%s}}?", name,
			names[near]);
}

int sba_model_template_check(const char *text, struct sba_error *err)
{
	struct use u;
	for (; next_use(text, &u); text = u.end) {
		int i = find_template(u.name);
		if (i < 0)
			return unknown_template(u.name, err);
		if (u.arg[0] && !templates[i].takes_arg)
			return sba_fail(err, SBA_ECONFIG, "{{%s}} takes no argument", u.name);
	}
	return 0;
}

static int expand_string(const json_t *value, const struct sba_model_vars *vars, json_t **ret,
			 struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MODEL_ANSWER_MAX);
	int rc = sba_model_expand(json_string_value(value), vars, &b, err);
	if (rc < 0)
		return rc;
	json_t *s = sba_json_text(text_of(&b), b.len);
	if (!s)
		return sba_fail_nomem(err);
	*ret = s;
	return 0;
}

/* Replaces the members of a shallow copy, which `container` is. */
static int expand_members(json_t *container, const struct sba_model_vars *vars,
			  struct sba_error *err)
{
	const char *key;
	json_t *old, *member = NULL;
	size_t i;
	json_object_foreach(container, key, old)
	{
		int rc = sba_model_expand_json(old, vars, &member, err);
		if (rc < 0)
			return rc;
		if (json_object_set_new_nocheck(container, key, member) < 0)
			return sba_fail_nomem(err);
	}
	json_array_foreach(container, i, old)
	{
		int rc = sba_model_expand_json(old, vars, &member, err);
		if (rc < 0)
			return rc;
		if (json_array_set_new(container, i, member) < 0)
			return sba_fail_nomem(err);
	}
	return 0;
}

int sba_model_expand_json(const json_t *value, const struct sba_model_vars *vars, json_t **ret,
			  struct sba_error *err)
{
	if (json_is_string(value))
		return expand_string(value, vars, ret, err);
	/* json_copy takes no const, but only reads. */
	SBA_JSON json_t *copy = json_copy((json_t *)(uintptr_t)value);
	if (!copy)
		return sba_fail_nomem(err);
	int rc = expand_members(copy, vars, err);
	if (rc < 0)
		return rc;
	*ret = sba_move(&copy);
	return 0;
}

int64_t sba_model_number(const json_t *value, const struct sba_model_vars *vars, int64_t otherwise)
{
	if (json_is_integer(value))
		return json_integer_value(value);
	if (!json_is_string(value))
		return otherwise;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MODEL_ANSWER_MAX);
	int64_t n;
	if (sba_model_expand(json_string_value(value), vars, &b, NULL) < 0 ||
	    sba_parse_int(text_of(&b), 0, INT64_MAX, &n) < 0)
		return otherwise;
	return n;
}
