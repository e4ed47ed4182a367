/* SPDX-License-Identifier: MIT */
/* Tools of every CLI under common names, and what to say of a call in a line. */
#include "drivers/stream.h"

#include "base/limits.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int64_t sba_json_number(const json_t *j, const char *path, int64_t otherwise)
{
	const json_t *v = sba_json_get(j, path);
	if (!json_is_real(v))
		return sba_json_int(j, path, otherwise);
	double d = json_real_value(v);
	if (d >= (double)INT64_MAX)
		return INT64_MAX;
	return d <= (double)INT64_MIN ? INT64_MIN : (int64_t)d;
}

int64_t sba_json_count(const json_t *j, const char *path)
{
	int64_t n = sba_json_number(j, path, 0);
	return n < 0 ? 0 : n;
}

int sba_json_exit_code(const json_t *j, const char *path)
{
	int64_t n = sba_json_number(j, path, 0);
	return n > INT_MAX ? INT_MAX : n < INT_MIN ? INT_MIN : (int)n;
}

size_t sba_text_cut(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	if (len <= max)
		return len;
	for (len = max; len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80;)
		len--;
	return len;
}

void sba_text_keep(char *to, size_t size, const char *text)
{
	size_t len = text ? sba_text_cut(text, size - 1) : 0;
	if (len > 0)
		memcpy(to, text, len);
	to[len] = '\0';
}

static void put_block(struct sba_buf *b, const json_t *block)
{
	const char *type = sba_json_str(block, "type");
	const char *text =
		json_is_string(block) ? json_string_value(block) : sba_json_str(block, "text");
	if (b->len > 0)
		sba_buf_putc(b, '\n');
	if (text)
		sba_buf_puts(b, text);
	else
		sba_buf_printf(b, "[%s]", type ? type : "?");
}

void sba_content_put(struct sba_buf *b, const json_t *content)
{
	if (json_is_string(content)) {
		sba_buf_puts(b, json_string_value(content));
		return;
	}
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) put_block(b, block);
}

const char *sba_tool_name(const struct sba_tool_name *table, size_t n, const char *native)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(table[i].native, native) == 0)
			return table[i].name;
	}
	return native;
}

const char *sba_tool_name_mcp(const struct sba_tool_name *table, size_t n, const char *native,
			      struct sba_buf *scratch)
{
	const char *server = native + strlen("mcp__");
	const char *tool = sba_starts_with(native, "mcp__") ? strstr(server, "__") : NULL;
	if (!tool)
		return sba_tool_name(table, n, native);
	sba_buf_puts(scratch, "mcp:");
	sba_buf_put(scratch, server, (size_t)(tool - server));
	sba_buf_putc(scratch, '.');
	sba_buf_puts(scratch, tool + 2);
	return scratch->failed ? native : scratch->data;
}

/* How long the name of the longest server is that `native` begins with; 0: none. */
static size_t server_of(const char *servers, const char *native)
{
	size_t longest = 0;
	for (const char *at = servers; at && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		if (len > longest && strncmp(native, at, len) == 0 && native[len] == '_')
			longest = len;
		at += len;
	}
	return longest;
}

const char *sba_tool_name_server(const struct sba_stream *s, const struct sba_tool_name *table,
				 size_t n, const char *native, struct sba_buf *scratch)
{
	const char *name = sba_tool_name(table, n, native);
	size_t len = name == native ? server_of(s->mcp, native) : 0;
	if (len == 0)
		return name;
	sba_buf_printf(scratch, "mcp:%.*s.%s", (int)len, native, native + len + 1);
	return scratch->failed ? native : scratch->data;
}

int sba_http_status(int64_t given, const char *text, const char *before)
{
	const char *at = given == 0 && text ? strstr(text, before) : NULL;
	if (at)
		given = strtol(at + strlen(before), NULL, 10);
	return given >= 100 && given <= 599 ? (int)given : 0;
}

bool sba_http_retryable(int status)
{
	return status == 408 || status == 429 || status >= 500;
}

const char *sba_tool_path(const json_t *input)
{
	static const char *const keys[] = { "path", "file_path", "filePath" };
	const char *path = NULL;
	for (size_t i = 0; !path && i < SBA_ARRAY_LEN(keys); i++)
		path = json_string_value(json_object_get(input, keys[i]));
	return path;
}

void sba_tool_summary(struct sba_buf *b, const json_t *input)
{
	/* The first that a call has says most about it. */
	static const char *const telling[] = { "command",       "file_path", "filePath",
					       "notebook_path", "pattern",   "url",
					       "query",         "skill",     "description",
					       "name",          "path" };
	const char *text = NULL;
	for (size_t i = 0; !text && i < SBA_ARRAY_LEN(telling); i++)
		text = json_string_value(json_object_get(input, telling[i]));
	if (!text)
		return;
	text += strspn(text, " \t\r\n");
	size_t line = strcspn(text, "\r\n");
	size_t len = sba_text_cut(text, SBA_SUMMARY_MAX);
	bool cut = len < line;
	len = cut ? len : line;
	sba_buf_put(b, text, len);
	if (cut)
		sba_buf_puts(b, "\xE2\x80\xA6");
}
