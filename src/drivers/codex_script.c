/* SPDX-License-Identifier: MIT */
/* Codex tells a command as the shell line that it ran: "/bin/bash -lc 'a b'". */
#include "drivers/private.h"

#include <string.h>

/* Copies what is between a quote and its end; NULL if there is no end. */
static const char *put_quoted(struct sba_buf *b, const char *p, char quote)
{
	for (; *p && *p != quote; p++) {
		if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		sba_buf_putc(b, *p);
	}
	return *p ? p + 1 : NULL;
}

/* One word of a shell; NULL if it is none, or if there is more behind it. */
static bool put_word(struct sba_buf *b, const char *p)
{
	while (p && *p) {
		if (*p == '\'' || *p == '"') {
			p = put_quoted(b, p + 1, *p);
		} else if (*p == '\\' && p[1]) {
			sba_buf_putc(b, p[1]);
			p += 2;
		} else if (strchr(" \t\n|&;<>()$`*?[#~=%!{", *p)) {
			return false;
		} else {
			sba_buf_putc(b, *p++);
		}
	}
	return p != NULL;
}

/* Behind "/usr/bin/bash -lc "; NULL if it does not begin so. */
static const char *skip_shell(const char *line)
{
	size_t len = strcspn(line, " ");
	const char *slash = memrchr(line, '/', len);
	const char *name = slash ? slash + 1 : line;
	size_t name_len = (size_t)(line + len - name);
	static const char *const shells[] = { "bash", "sh", "zsh", "dash" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(shells); i++) {
		if (strlen(shells[i]) != name_len || memcmp(name, shells[i], name_len) != 0)
			continue;
		if (sba_starts_with(line + len, " -lc "))
			return line + len + strlen(" -lc ");
		if (sba_starts_with(line + len, " -c "))
			return line + len + strlen(" -c ");
	}
	return NULL;
}

void sba_codex_script(struct sba_buf *ret, const char *line)
{
	const char *word = skip_shell(line);
	if (word && put_word(ret, word) && ret->len > 0)
		return;
	sba_buf_reset(ret);
	sba_buf_puts(ret, line);
}
