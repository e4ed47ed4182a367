/* SPDX-License-Identifier: MIT */
/* The tables of docs/json.md as they are written there; see json_doc.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/json_doc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DOC "docs/json.md"

enum { ROWS_MAX = 400 };

static struct row {
	char table[32], key[32], type[32];
	bool always;
} rows[ROWS_MAX];
static size_t rows_n;

/* "A [sandbox](#sandbox), and": the table has all of that one's keys as well. */
static struct base {
	char table[32], of[32];
} bases[8];
static size_t bases_n;

static void read_line(const char *line, char table[32])
{
	struct row r = { .key = "" };
	struct base b;
	char there[16] = "";
	if (sscanf(line, "### %31[a-z_ ]", table) == 1)
		return;
	snprintf(b.table, sizeof(b.table), "%s", table);
	if (sscanf(line, "A [%31[a-z_]](", b.of) == 1) {
		assert_true(bases_n < sizeof(bases) / sizeof(bases[0]));
		bases[bases_n++] = b;
	}
	if (sscanf(line, "| `%31[a-z0-9_.]` | %31[a-z_] | %15[a-z]", r.key, r.type, there) < 2)
		return;
	snprintf(r.table, sizeof(r.table), "%s", table);
	r.always = strcmp(there, "always") == 0;
	assert_true(rows_n < ROWS_MAX);
	rows[rows_n++] = r;
}

static void read_doc(void)
{
	char line[1000], table[32] = "";
	if (rows_n)
		return;
	FILE *f = fopen(DOC, "re");
	if (!f)
		fail_msg("no " DOC ": tests run in the project's folder");
	while (fgets(line, sizeof(line), f))
		read_line(line, table);
	fclose(f);
	assert_true(rows_n > 100);
}

static bool has_table(const char *name)
{
	for (size_t i = 0; i < rows_n; i++) {
		if (strcmp(rows[i].table, name) == 0)
			return true;
	}
	return false;
}

/* Whether the rows of `other` count for the table. */
static bool counts(const char *table, const char *other)
{
	if (strcmp(table, other) == 0)
		return true;
	for (size_t i = 0; i < bases_n; i++) {
		if (strcmp(bases[i].table, table) == 0 && strcmp(bases[i].of, other) == 0)
			return true;
	}
	return false;
}

static const struct row *find(const char *table, const char *key)
{
	for (size_t i = 0; i < rows_n; i++) {
		if (counts(table, rows[i].table) && strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	return NULL;
}

static void check_texts(const struct row *r, const json_t *value)
{
	size_t i;
	const json_t *text;
	assert_true(json_is_array(value));
	json_array_foreach(value, i, text)
	{
		if (!json_is_string(text))
			fail_msg("%s: %s has what is no text", r->table, r->key);
	}
}

static void check_shape(const char *table, const json_t *value)
{
	size_t i;
	const json_t *item;
	if (!json_is_array(value)) {
		json_doc_check(table, value);
		return;
	}
	json_array_foreach(value, i, item) json_doc_check(table, item);
}

static void check_value(const struct row *r, const json_t *value)
{
	bool fits = true;
	if (strcmp(r->type, "text") == 0)
		fits = json_is_string(value);
	else if (strcmp(r->type, "number") == 0)
		fits = json_is_number(value);
	else if (strcmp(r->type, "bool") == 0)
		fits = json_is_boolean(value);
	else if (strcmp(r->type, "object") == 0)
		fits = json_is_object(value);
	else if (strcmp(r->type, "list") == 0)
		check_texts(r, value);
	else if (has_table(r->type))
		check_shape(r->type, value);
	else
		assert_string_equal(r->type, "any");
	if (!fits)
		fail_msg("%s: %s is no %s", r->table, r->key, r->type);
}

/* The keys of "error" stand in its table with their path. */
static void check_keys(const char *table, const char *before, const json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		char path[80];
		snprintf(path, sizeof(path), "%s%s", before, key);
		const struct row *r = find(table, path);
		if (r) {
			check_value(r, value);
		} else if (!*before && json_is_object(value) && strcmp(table, key) == 0) {
			snprintf(path, sizeof(path), "%s.", key);
			check_keys(table, path, value);
		} else if (strcmp(path, "v") != 0) {
			fail_msg("%s: %s is not in " DOC, table, path);
		}
	}
}

static bool is_there(const json_t *object, const char *path)
{
	const char *dot = strchr(path, '.');
	char first[32];
	if (!dot)
		return json_object_get(object, path) != NULL;
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	return json_object_get(json_object_get(object, first), dot + 1) != NULL;
}

void json_doc_check(const char *table, const json_t *object)
{
	read_doc();
	if (!has_table(table))
		fail_msg(DOC " has no table '%s'", table);
	assert_true(json_is_object(object));
	for (size_t i = 0; i < rows_n; i++) {
		if (counts(table, rows[i].table) && rows[i].always &&
		    !is_there(object, rows[i].key))
			fail_msg("%s: there is no %s", table, rows[i].key);
	}
	check_keys(table, "", object);
}

void json_doc_check_lines(const struct live_child *c, const char *table, const char *types)
{
	size_t i;
	json_t *line;
	SBA_JSON json_t *lines = live_json_lines(c);
	json_array_foreach(lines, i, line)
	{
		const char *type = json_string_value(json_object_get(line, "type"));
		if (!table && (!type || !strstr(types, type)))
			fail_msg("a line of type %s, not of %s", type ? type : "none", types);
		json_doc_check(table ? table : type, line);
	}
}
