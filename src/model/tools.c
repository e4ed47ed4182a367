/* SPDX-License-Identifier: MIT */
/*
 * Says what a script wants done with the tools that a request offers: every
 * CLI names its tools and their arguments its own way. It must not know the
 * CLIs, only names that tools and arguments of a kind go by.
 */
#include "base/limits.h"
#include "model/private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAMES_MAX = 10 };

/* A script's argument and the names it goes by in schemas. */
struct argument {
	const char *key;
	const char *names[NAMES_MAX];
};

struct kind {
	const char *name;
	const char *description; /* where a schema asks for one */
	const char *tools[NAMES_MAX];
	struct argument arguments[4];
};

#define PATH_ARGUMENT                                                                              \
	{                                                                                          \
		"path",                                                                            \
		{                                                                                  \
			"file_path", "filePath", "path", "filename", "file", "target_file"         \
		}                                                                                  \
	}

static const struct kind kinds[] = {
	{ "bash",
	  "Run the command",
	  { "bash", "shell", "exec_command", "shell_command", "local_shell", "run_shell_command",
	    "run_command", "execute_command", "terminal" },
	  { { "command", { "command", "cmd", "script" } } } },
	{ "write",
	  "Write the file",
	  { "write", "write_file", "create_file", "writefile" },
	  { PATH_ARGUMENT, { "content", { "content", "contents", "text", "file_text" } } } },
	{ "read", "Read the file", { "read", "read_file", "view", "readfile" }, { PATH_ARGUMENT } },
	{ "edit",
	  "Edit the file",
	  { "edit", "edit_file", "str_replace", "replace" },
	  { PATH_ARGUMENT,
	    { "old", { "old_string", "oldString", "old_str", "oldText", "old_text", "old" } },
	    { "new", { "new_string", "newString", "new_str", "newText", "new_text", "new" } } } },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static const struct sba_model_tool *find_offered(const struct sba_model_request *r,
						 const char *name)
{
	for (size_t i = 0; i < r->n_tools; i++)
		if (!strcasecmp(r->tools[i].name, name))
			return &r->tools[i];
	return NULL;
}

static const char *find_property(const json_t *schema, const struct argument *a)
{
	const json_t *properties = json_object_get(schema, "properties");
	for (const char *const *name = a->names; *name; name++)
		if (json_object_get(properties, *name))
			return *name;
	return NULL;
}

/* True if the schema has a place for every argument of the kind. */
static bool fits(const struct sba_model_tool *tool, const struct kind *kind)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(kind->arguments) && kind->arguments[i].key; i++)
		if (!find_property(tool->schema, &kind->arguments[i]))
			return false;
	return true;
}

static const struct sba_model_tool *choose(const struct sba_model_request *r,
					   const struct kind *kind)
{
	for (size_t i = 0; i < NAMES_MAX && kind->tools[i]; i++) {
		const struct sba_model_tool *tool = find_offered(r, kind->tools[i]);
		if (tool && fits(tool, kind))
			return tool;
	}
	return NULL;
}

/* "type" may be one name or a list of them. */
static bool is_type(const json_t *property, const char *name)
{
	const json_t *type = json_object_get(property, "type");
	if (json_is_array(type))
		type = json_array_get(type, 0);
	return json_is_string(type) && !strcmp(json_string_value(type), name);
}

static json_t *filler(const char *name, const json_t *property, const struct kind *kind)
{
	json_t *first = json_array_get(json_object_get(property, "enum"), 0);
	if (first)
		return json_incref(first);
	if (is_type(property, "integer") || is_type(property, "number"))
		return json_integer(sba_json_int(property, "minimum", 0));
	if (is_type(property, "boolean"))
		return json_false();
	if (is_type(property, "array"))
		return json_array();
	if (is_type(property, "object"))
		return json_object();
	return json_string(!strcmp(name, "description") ? kind->description : "");
}

static int fill_required(json_t *input, const struct sba_model_tool *tool, const struct kind *kind,
			 struct sba_error *err)
{
	size_t i;
	json_t *name;
	json_array_foreach(json_object_get(tool->schema, "required"), i, name)
	{
		const char *key = json_string_value(name);
		if (!key || json_object_get(input, key))
			continue;
		const json_t *property =
			json_object_get(json_object_get(tool->schema, "properties"), key);
		if (json_object_set_new(input, key, filler(key, property, kind)) < 0)
			return sba_fail_nomem(err);
	}
	return 0;
}

/* A command whose schema wants a list is an argv for a shell. */
static json_t *argument_value(const json_t *property, json_t *value)
{
	if (is_type(property, "array"))
		return json_pack("[ssO]", "bash", "-lc", value);
	return json_incref(value);
}

static int build_input(const struct sba_model_tool *tool, const struct kind *kind,
		       const json_t *call, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *input = json_object();
	for (size_t i = 0; i < SBA_ARRAY_LEN(kind->arguments) && kind->arguments[i].key; i++) {
		const char *name = find_property(tool->schema, &kind->arguments[i]);
		const json_t *property =
			json_object_get(json_object_get(tool->schema, "properties"), name);
		json_t *value = json_object_get(call, kind->arguments[i].key);
		if (json_object_set_new(input, name, argument_value(property, value)) < 0)
			return sba_fail_nomem(err);
	}
	int rc = fill_required(input, tool, kind, err);
	if (rc < 0)
		return rc;
	*ret = sba_move(&input);
	return 0;
}

static int set_call(struct sba_model_part *ret, const struct sba_model_tool *tool, const char *name,
		    const json_t *input, struct sba_error *err)
{
	const char *free_text = tool && tool->custom ? sba_json_str(input, "input") : NULL;
	SBA_FREE char *text = free_text ? strdup(free_text) : sba_json_dump(input);
	SBA_FREE char *copy = strdup(name);
	if (!text || !copy)
		return sba_fail_nomem(err);
	ret->kind = SBA_MODEL_TOOL;
	ret->custom = free_text != NULL;
	ret->len = strlen(text);
	ret->text = sba_move(&text);
	ret->name = sba_move(&copy);
	return 0;
}

static int call_tool(const struct sba_model_tool *tool, const struct kind *kind, const json_t *call,
		     struct sba_model_part *ret, struct sba_error *err)
{
	SBA_JSON json_t *input = NULL;
	int rc = build_input(tool, kind, call, &input, err);
	return rc < 0 ? rc : set_call(ret, tool, tool->name, input, err);
}

static void put_quoted(struct sba_buf *b, const char *s)
{
	sba_buf_putc(b, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			sba_buf_puts(b, "'\\''");
		else
			sba_buf_putc(b, *s);
	}
	sba_buf_putc(b, '\'');
}

/* The end mark must not be a line of the content. */
static void put_heredoc(struct sba_buf *b, const char *path, const char *content)
{
	char mark[24] = "END_OF_FILE";
	for (unsigned i = 1; strstr(content, mark); i++)
		snprintf(mark, sizeof(mark), "END_OF_FILE_%u", i);
	sba_buf_puts(b, "cat > ");
	put_quoted(b, path);
	sba_buf_printf(b, " <<'%s'\n", mark);
	sba_buf_puts(b, content);
	size_t len = strlen(content);
	if (len && content[len - 1] != '\n')
		sba_buf_putc(b, '\n');
	sba_buf_puts(b, mark);
}

/* The shell command that does the same, or nothing. */
static void put_as_command(struct sba_buf *b, const char *kind, const json_t *call)
{
	if (!strcmp(kind, "write")) {
		put_heredoc(b, sba_json_str(call, "path"), sba_json_str(call, "content"));
	} else if (!strcmp(kind, "read")) {
		sba_buf_puts(b, "cat -- ");
		put_quoted(b, sba_json_str(call, "path"));
	}
}

static int say_no_tool(const char *kind, struct sba_model_part *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	sba_buf_printf(&b, "(The script wants a tool of kind %s, but the request offers none.)",
		       kind);
	size_t len = b.len;
	char *text = sba_buf_take(&b);
	if (!text)
		return sba_fail_nomem(err);
	*ret = (struct sba_model_part){ .kind = SBA_MODEL_TEXT, .text = text, .len = len };
	return 0;
}

static int call_through_shell(const struct sba_model_request *r, const char *kind,
			      const json_t *call, struct sba_model_part *ret, struct sba_error *err)
{
	const struct kind *shell = find_kind("bash");
	const struct sba_model_tool *tool = choose(r, shell);
	SBA_BUF struct sba_buf command = SBA_BUF_INIT(2 * (size_t)SBA_MODEL_ANSWER_MAX);
	put_as_command(&command, kind, call);
	if (!tool || !command.len)
		return say_no_tool(kind, ret, err);
	SBA_JSON json_t *as_bash = json_pack("{s:s}", "command", command.data);
	return as_bash ? call_tool(tool, shell, as_bash, ret, err) : sba_fail_nomem(err);
}

static int call_by_name(const struct sba_model_request *r, const json_t *call,
			struct sba_model_part *ret, struct sba_error *err)
{
	SBA_JSON json_t *none = json_object();
	const char *name = sba_json_str(call, "name");
	const json_t *input = json_object_get(call, "input");
	return set_call(ret, find_offered(r, name), name, input ? input : none, err);
}

int sba_model_map_tool(const struct sba_model_request *r, const json_t *call,
		       struct sba_model_part *ret, struct sba_error *err)
{
	const char *name = sba_json_str(call, "kind");
	if (!name)
		return call_by_name(r, call, ret, err);
	const struct kind *kind = find_kind(name);
	const struct sba_model_tool *tool = kind ? choose(r, kind) : NULL;
	if (tool)
		return call_tool(tool, kind, call, ret, err);
	return call_through_shell(r, name, call, ret, err);
}
