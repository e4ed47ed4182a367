/* SPDX-License-Identifier: MIT */
/*
 * MCP servers: one description of them, as claude has it, checked and put into
 * the words of each CLI. Values may be secrets: no message quotes one.
 */
#include "drivers/private.h"

#include "base/limits.h"

#include <string.h>

enum { NAME_MAX_LEN = 32 };

/* ---- checking ---- */

static bool name_valid(const char *name)
{
	return sba_is_word(name, "_-", NAME_MAX_LEN);
}

static bool all_texts(const json_t *list)
{
	size_t i;
	json_t *one;
	json_array_foreach(list, i, one)
	{
		if (!json_is_string(one))
			return false;
	}
	return !list || json_is_array(list);
}

static bool map_of_texts(const json_t *map)
{
	const char *key;
	json_t *one;
	json_object_foreach((json_t *)(uintptr_t)map, key, one)
	{
		if (!json_is_string(one))
			return false;
	}
	return !map || json_is_object(map);
}

/* NULL: all is well, else what is wrong. */
static const char *fault_of(const struct sba_driver *d, const json_t *server)
{
	const char *command = sba_json_str(server, "command"), *url = sba_json_str(server, "url");
	const char *type = sba_json_str(server, "type");
	if (!json_is_object(server))
		return "not an object";
	if (!!command == !!url)
		return "needs either a \"command\" or a \"url\"";
	if (type && strcmp(type, command ? "stdio" : "http") != 0 &&
	    !(url && strcmp(type, "streamable-http") == 0) &&
	    !(url && strcmp(type, "sse") == 0 && d->mcp_form == SBA_MCP_SERVERS))
		return "its \"type\" is none that this agent knows (stdio, http)";
	if (!all_texts(json_object_get(server, "args")))
		return "\"args\" is not a list of texts";
	if (!map_of_texts(json_object_get(server, "env")))
		return "\"env\" is not an object of texts";
	if (!map_of_texts(json_object_get(server, "headers")))
		return "\"headers\" is not an object of texts";
	return NULL;
}

static int check(const struct sba_driver *d, const json_t *servers, struct sba_buf *names,
		 struct sba_error *err)
{
	const char *name;
	json_t *server;
	if (!json_is_object(servers) || json_object_size(servers) == 0)
		return sba_fail(err, SBA_ECONFIG,
				"no servers: it is to be {\"mcpServers\": {\"name\": {\"command\": "
				"…, \"args\": […]}}}");
	json_object_foreach((json_t *)(uintptr_t)servers, name, server)
	{
		if (!name_valid(name))
			return sba_fail(err, SBA_ECONFIG,
					"server '%.40s': a name has up to %d letters, digits, '_' "
					"and '-'",
					name, (int)NAME_MAX_LEN);
		const char *fault = fault_of(d, server);
		if (fault)
			return sba_fail(err, SBA_ECONFIG, "server '%s': %s", name, fault);
		sba_buf_printf(names, "%s%s", names->len ? " " : "", name);
	}
	return 0;
}

/* ---- the words of each ---- */

/* Texts and lists of texts are the same in TOML, objects are not. DEL is the one
 * character that JSON lets stand and TOML does not. */
static void toml_value(struct sba_buf *b, const json_t *value)
{
	SBA_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	if (!text)
		b->failed = SBA_ENOMEM;
	for (const char *p = text; p && *p; p++) {
		if (*p == 0x7F)
			sba_buf_puts(b, "\\u007F");
		else
			sba_buf_putc(b, *p);
	}
}

static void toml_map(struct sba_buf *b, const char *key, const json_t *map)
{
	const char *name, *comma = "";
	json_t *value;
	if (!map)
		return;
	sba_buf_printf(b, "%s = {", key);
	json_object_foreach((json_t *)(uintptr_t)map, name, value)
	{
		SBA_JSON json_t *quoted = json_string(name);
		sba_buf_puts(b, comma);
		toml_value(b, quoted);
		sba_buf_puts(b, " = ");
		toml_value(b, value);
		comma = ", ";
	}
	sba_buf_puts(b, "}\n");
}

static void toml_key(struct sba_buf *b, const char *key, const json_t *value)
{
	if (!value)
		return;
	sba_buf_printf(b, "%s = ", key);
	toml_value(b, value);
	sba_buf_putc(b, '\n');
}

static void for_codex(const json_t *servers, struct sba_buf *ret)
{
	const char *name;
	json_t *s;
	json_object_foreach((json_t *)(uintptr_t)servers, name, s)
	{
		sba_buf_printf(ret, "[mcp_servers.%s]\n", name);
		toml_key(ret, "command", json_object_get(s, "command"));
		toml_key(ret, "args", json_object_get(s, "args"));
		toml_key(ret, "url", json_object_get(s, "url"));
		toml_map(ret, "env", json_object_get(s, "env"));
		toml_map(ret, "http_headers", json_object_get(s, "headers"));
	}
}

static json_t *or_empty(const json_t *map)
{
	return map ? json_incref((json_t *)(uintptr_t)map) : json_object();
}

static json_t *opencode_server(const json_t *s)
{
	const json_t *command = json_object_get(s, "command");
	if (!command)
		return json_pack("{s:s, s:O, s:o, s:b}", "type", "remote", "url",
				 json_object_get(s, "url"), "headers",
				 or_empty(json_object_get(s, "headers")), "enabled", 1);
	const json_t *args = json_object_get(s, "args");
	SBA_JSON json_t *words = json_pack("[O]", command);
	if (!words || (args && json_array_extend(words, (json_t *)(uintptr_t)args)))
		return NULL;
	return json_pack("{s:s, s:O, s:o, s:b}", "type", "local", "command", words, "environment",
			 or_empty(json_object_get(s, "env")), "enabled", 1);
}

static json_t *for_opencode(const json_t *servers)
{
	const char *name;
	json_t *s;
	SBA_JSON json_t *all = json_object();
	json_object_foreach((json_t *)(uintptr_t)servers, name, s)
	{
		if (json_object_set_new(all, name, opencode_server(s)))
			return NULL;
	}
	return json_pack("{s:O}", "mcp", all);
}

static json_t *dsh_config(const char *name, const json_t *s)
{
	static const char *const keys[] = { "command", "args", "env", "url", "headers" };
	SBA_JSON json_t *config =
		json_pack("{s:s, s:s}", "serverName", name, "transport",
			  json_object_get(s, "command") ? "stdio" : "streamable-http");
	for (size_t i = 0; config && i < SBA_ARRAY_LEN(keys); i++) {
		json_t *value = json_object_get(s, keys[i]);
		if (value && json_object_set(config, keys[i], value))
			return NULL;
	}
	return sba_move(&config);
}

/* JSON is YAML too. */
static json_t *for_dsh(const json_t *servers)
{
	const char *name;
	json_t *s;
	SBA_JSON json_t *rows = json_array();
	json_object_foreach((json_t *)(uintptr_t)servers, name, s)
	{
		json_t *row =
			json_pack("{s:o, s:s, s:o}", "id", json_sprintf("mcp-%s", name), "name",
				  "@deepseek-ai/dsh-mcp-client", "config", dsh_config(name, s));
		if (json_array_append_new(rows, row))
			return NULL;
	}
	return json_pack("[{s:O}]", "insert", rows);
}

static json_t *as_json(const struct sba_driver *d, const json_t *servers)
{
	switch (d->mcp_form) {
	case SBA_MCP_OPENCODE:
		return for_opencode(servers);
	case SBA_MCP_DSH:
		return for_dsh(servers);
	case SBA_MCP_SERVERS:
	case SBA_MCP_CODEX:
		break;
	}
	return json_pack("{s:O}", "mcpServers", servers);
}

static int translate(const struct sba_driver *d, const json_t *servers, struct sba_buf *ret,
		     struct sba_error *err)
{
	if (d->mcp_form == SBA_MCP_CODEX) {
		for_codex(servers, ret);
	} else {
		SBA_JSON json_t *j = as_json(d, servers);
		SBA_FREE char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
		if (!text)
			return sba_fail_nomem(err);
		sba_buf_puts(ret, text);
	}
	return sba_buf_check(ret, "MCP servers", err);
}

int sba_mcp_translate(const struct sba_driver *driver, const char *text, size_t len,
		      struct sba_buf *ret_file, struct sba_buf *ret_names, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_error why = { 0 };
	if (!driver->mcp_path)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s takes no MCP servers", driver->name);
	int rc = sba_json_parse(text, len, "MCP servers", &j, &why);
	if (rc < 0)
		return sba_fail(err, SBA_ECONFIG, "%s", why.text);
	const json_t *servers = json_object_get(j, "mcpServers");
	rc = check(driver, servers, ret_names, err);
	if (rc == 0)
		rc = sba_buf_check(ret_names, "names of MCP servers", err);
	return rc == 0 ? translate(driver, servers, ret_file, err) : rc;
}
