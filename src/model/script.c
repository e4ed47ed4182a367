/* SPDX-License-Identifier: MIT */
/*
 * The format of a script as tables of fields, and the one checker that walks
 * them. What passes here needs no further check at run time. The tables are
 * the reference that docs/model-script.md puts into words.
 */
#include "base/limits.h"
#include "model/private.h"

#include <string.h>

enum type {
	TYPE_TEMPLATE, /* a text with {{templates}} */
	TYPE_STRING,   /* a text without */
	TYPE_NUMBER,   /* within [min, max] */
	TYPE_COMPUTED, /* a number, or a template that yields one */
	TYPE_TRUE,     /* true and nothing else */
	TYPE_WORD,     /* one of `words` */
	TYPE_OBJECT,   /* of `shape` */
	TYPE_LIST,     /* at least one object of `shape` */
	TYPE_INPUT,    /* any object; its strings are templates */
};

struct shape;
struct field {
	const char *name;
	enum type type;
	bool required;
	int64_t min, max;
	const char *const *words;
	const struct shape *shape;
};

/* Where in the document: "rules[2].steps[0].text". */
struct place {
	const struct place *up;
	const char *key;
	size_t index; /* if key is NULL */
};

struct shape {
	const struct field *fields;
	size_t n;
	/* What the table cannot say; NULL: nothing. */
	int (*check)(const json_t *j, const struct place *at, struct sba_error *err);
};

static void put_place(struct sba_buf *b, const struct place *p)
{
	if (!p)
		return;
	put_place(b, p->up);
	if (!p->key)
		sba_buf_printf(b, "[%zu]", p->index);
	else
		sba_buf_printf(b, "%s%s", p->up ? "." : "", p->key);
}

static int wrong(const struct place *at, struct sba_error *err, const char *what)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	put_place(&b, at);
	return sba_fail(err, SBA_ECONFIG, "script: %s: %s", b.data ? b.data : "the document", what);
}

/* Puts the place before the reason that is already in err. */
static int wrap_place(const struct place *at, int rc, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	put_place(&b, at);
	return sba_wrap(err, rc, "script: %s", b.data ? b.data : "the document");
}

static int check_match(const json_t *j, const struct place *at, struct sba_error *err)
{
	return json_object_size(j) ? 0 : wrong(at, err, "needs a condition");
}

static const struct {
	const char *kind;
	const char *needs[4];
} kinds[] = {
	{ "bash", { "command" } },
	{ "write", { "path", "content" } },
	{ "read", { "path" } },
	{ "edit", { "path", "old", "new" } },
};

static bool needed_by(size_t kind, const char *key)
{
	for (const char *const *k = kinds[kind].needs; *k; k++)
		if (!strcmp(*k, key))
			return true;
	return false;
}

static int check_kind(const json_t *j, size_t kind, const struct place *at, struct sba_error *err)
{
	const char *key;
	json_t *value;
	for (const char *const *k = kinds[kind].needs; *k; k++)
		if (!json_object_get(j, *k))
			return wrong(&(struct place){ at, *k, 0 }, err, "missing");
	json_object_foreach(
		(json_t *)(uintptr_t)j, key,
		value) if (strcmp(key, "kind") != 0 &&
			   !needed_by(kind, key)) return wrong(&(struct place){ at, key, 0 }, err,
							       "not of this kind of tool");
	return 0;
}

static int check_tool(const json_t *j, const struct place *at, struct sba_error *err)
{
	const char *kind = sba_json_str(j, "kind");
	if (!kind && !json_object_get(j, "name"))
		return wrong(at, err, "needs 'kind', or 'name' and 'input'");
	for (size_t i = 0; kind && i < SBA_ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].kind, kind))
			return check_kind(j, i, at, err);
	if (json_object_size(j) != 1 + (json_object_get(j, "input") != NULL))
		return wrong(at, err, "a tool by name takes only 'input'");
	return 0;
}

static const char *const kind_words[] = { "bash", "write", "read", "edit", NULL };
static const char *const after_words[] = { "last", "repeat", NULL };
static const char *const stop_words[] = { "length", NULL };

static const struct field tool_fields[] = {
	{ .name = "kind", .type = TYPE_WORD, .words = kind_words },
	{ .name = "command", .type = TYPE_TEMPLATE },
	{ .name = "path", .type = TYPE_TEMPLATE },
	{ .name = "content", .type = TYPE_TEMPLATE },
	{ .name = "old", .type = TYPE_TEMPLATE },
	{ .name = "new", .type = TYPE_TEMPLATE },
	{ .name = "name", .type = TYPE_STRING },
	{ .name = "input", .type = TYPE_INPUT },
};
static const struct shape tool_shape = { tool_fields, SBA_ARRAY_LEN(tool_fields), check_tool };

static const struct field usage_fields[] = {
	{ .name = "input", .type = TYPE_NUMBER, .max = INT32_MAX },
	{ .name = "output", .type = TYPE_NUMBER, .max = INT32_MAX },
	{ .name = "cached", .type = TYPE_NUMBER, .max = INT32_MAX },
};
static const struct shape usage_shape = { usage_fields, SBA_ARRAY_LEN(usage_fields), NULL };

static const struct field error_fields[] = {
	{ .name = "status", .type = TYPE_COMPUTED, .required = true, .min = 400, .max = 599 },
	{ .name = "message", .type = TYPE_TEMPLATE },
	{ .name = "retry_after", .type = TYPE_COMPUTED, .max = INT32_MAX },
};
static const struct shape error_shape = { error_fields, SBA_ARRAY_LEN(error_fields), NULL };

static const struct field step_fields[] = {
	{ .name = "thinking", .type = TYPE_TEMPLATE },
	{ .name = "text", .type = TYPE_TEMPLATE },
	{ .name = "fill", .type = TYPE_COMPUTED, .max = SBA_MODEL_ANSWER_MAX },
	{ .name = "tools", .type = TYPE_LIST, .shape = &tool_shape },
	{ .name = "usage", .type = TYPE_OBJECT, .shape = &usage_shape },
	{ .name = "error", .type = TYPE_OBJECT, .shape = &error_shape },
	{ .name = "chunk", .type = TYPE_NUMBER, .min = 1, .max = SBA_MODEL_ANSWER_MAX },
	{ .name = "delay_ms", .type = TYPE_NUMBER, .max = SBA_MODEL_WAIT_MAX_MS },
	{ .name = "stall_ms", .type = TYPE_NUMBER, .max = SBA_MODEL_WAIT_MAX_MS },
	{ .name = "cut_after_bytes", .type = TYPE_NUMBER, .min = 1, .max = SBA_MODEL_ANSWER_MAX },
	{ .name = "stop", .type = TYPE_WORD, .words = stop_words },
};
static const struct shape step_shape = { step_fields, SBA_ARRAY_LEN(step_fields), NULL };

static const struct field match_fields[] = {
	{ .name = "contains", .type = TYPE_STRING },
	{ .name = "equals", .type = TYPE_STRING },
	{ .name = "prefix", .type = TYPE_STRING },
	{ .name = "any", .type = TYPE_TRUE },
};
static const struct shape match_shape = { match_fields, SBA_ARRAY_LEN(match_fields), check_match };

static const struct field rule_fields[] = {
	{ .name = "match", .type = TYPE_OBJECT, .required = true, .shape = &match_shape },
	{ .name = "steps", .type = TYPE_LIST, .required = true, .shape = &step_shape },
	{ .name = "after", .type = TYPE_WORD, .words = after_words },
};
static const struct shape rule_shape = { rule_fields, SBA_ARRAY_LEN(rule_fields), NULL };

static const struct field script_fields[] = {
	{ .name = "v", .type = TYPE_NUMBER, .required = true, .min = 1, .max = 1 },
	{ .name = "rules", .type = TYPE_LIST, .required = true, .shape = &rule_shape },
};
static const struct shape script_shape = { script_fields, SBA_ARRAY_LEN(script_fields), NULL };

/* Recurses as deep as the tables are nested. */
static int check_object(const json_t *j, const struct shape *shape, const struct place *at,
			struct sba_error *err);

static int check_template(const json_t *j, const struct place *at, struct sba_error *err)
{
	if (!json_is_string(j))
		return wrong(at, err, "must be a text");
	int rc = sba_model_template_check(json_string_value(j), err);
	return rc < 0 ? wrap_place(at, rc, err) : 0;
}

static int check_number(const json_t *j, const struct field *f, const struct place *at,
			struct sba_error *err)
{
	char what[96];
	json_int_t n = json_integer_value(j);
	if (json_is_integer(j) && n >= f->min && n <= f->max)
		return 0;
	if (f->min == f->max)
		snprintf(what, sizeof(what), "must be %lld", (long long)f->min);
	else
		snprintf(what, sizeof(what), "must be a whole number from %lld to %lld",
			 (long long)f->min, (long long)f->max);
	return wrong(at, err, what);
}

static int check_word(const json_t *j, const char *const *words, const struct place *at,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf what = SBA_BUF_INIT(SBA_KIB);
	sba_buf_puts(&what, "must be one of:");
	for (; *words; words++) {
		if (json_is_string(j) && !strcmp(json_string_value(j), *words))
			return 0;
		sba_buf_printf(&what, " '%s'", *words);
	}
	return wrong(at, err, what.data ? what.data : "unknown word");
}

static int check_list(const json_t *j, const struct shape *shape, const struct place *at,
		      struct sba_error *err)
{
	size_t i;
	json_t *member;
	if (!json_array_size(j))
		return wrong(at, err, "must be a list with at least one member");
	json_array_foreach(j, i, member)
	{
		int rc = check_object(member, shape, &(struct place){ at, NULL, i }, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_inputs(const json_t *j, const struct place *at, struct sba_error *err)
{
	const char *key;
	json_t *member;
	size_t i;
	if (json_is_string(j))
		return check_template(j, at, err);
	json_object_foreach((json_t *)(uintptr_t)j, key, member)
	{
		int rc = check_inputs(member, &(struct place){ at, key, 0 }, err);
		if (rc < 0)
			return rc;
	}
	json_array_foreach(j, i, member)
	{
		int rc = check_inputs(member, &(struct place){ at, NULL, i }, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_value(const json_t *j, const struct field *f, const struct place *at,
		       struct sba_error *err)
{
	switch (f->type) {
	case TYPE_TEMPLATE:
		return check_template(j, at, err);
	case TYPE_STRING:
		return json_is_string(j) ? 0 : wrong(at, err, "must be a text");
	case TYPE_NUMBER:
		return check_number(j, f, at, err);
	case TYPE_COMPUTED:
		return json_is_string(j) ? check_template(j, at, err) : check_number(j, f, at, err);
	case TYPE_TRUE:
		return json_is_true(j) ? 0 : wrong(at, err, "must be true");
	case TYPE_WORD:
		return check_word(j, f->words, at, err);
	case TYPE_OBJECT:
		return check_object(j, f->shape, at, err);
	case TYPE_LIST:
		return check_list(j, f->shape, at, err);
	case TYPE_INPUT:
		return json_is_object(j) ? check_inputs(j, at, err)
					 : wrong(at, err, "must be an object");
	}
	return wrong(at, err, "unknown type");
}

static const struct field *find_field(const struct shape *shape, const char *name)
{
	for (size_t i = 0; i < shape->n; i++)
		if (!strcmp(shape->fields[i].name, name))
			return &shape->fields[i];
	return NULL;
}

static int unknown_key(const struct shape *shape, const char *key, const struct place *at,
		       struct sba_error *err)
{
	const char *names[16];
	char what[96] = "unknown key";
	size_t n = 0;
	for (; n < shape->n && n < SBA_ARRAY_LEN(names); n++)
		names[n] = shape->fields[n].name;
	int near = sba_nearest(key, names, n);
	if (near >= 0)
		snprintf(what, sizeof(what), "unknown key; did you mean '%s'?", names[near]);
	return wrong(&(struct place){ at, key, 0 }, err, what);
}

static int check_object(const json_t *j, const struct shape *shape, const struct place *at,
			struct sba_error *err)
{
	const char *key;
	json_t *value;
	if (!json_is_object(j))
		return wrong(at, err, "must be an object");
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
	{
		const struct field *f = find_field(shape, key);
		if (!f)
			return unknown_key(shape, key, at, err);
		int rc = check_value(value, f, &(struct place){ at, key, 0 }, err);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < shape->n; i++)
		if (shape->fields[i].required && !json_object_get(j, shape->fields[i].name))
			return wrong(&(struct place){ at, shape->fields[i].name, 0 }, err,
				     "missing");
	return shape->check ? shape->check(j, at, err) : 0;
}

int sba_model_script_parse(const char *text, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(text, strlen(text), "script", &j, err);
	if (rc == SBA_EPROTO && err)
		err->code = SBA_ECONFIG;
	if (rc < 0)
		return rc == SBA_EPROTO ? SBA_ECONFIG : rc;
	rc = check_object(j, &script_shape, NULL, err);
	if (rc < 0)
		return rc;
	*ret = sba_move(&j);
	return 0;
}
