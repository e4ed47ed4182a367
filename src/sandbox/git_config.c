/* SPDX-License-Identifier: MIT */
/*
 * The configuration that a repository has inside, made anew of what the host's says: its
 * format, whose commits they are, the names of its remotes, and nothing else.
 */
#include "sandbox/git.h"

#include <string.h>

#include "base/limits.h"

enum { KEY_LEN = 512 };

/* Of `git config --list -z`: "key\nvalue" each, the key in lower case but for a name in its
 * middle; the last one counts. Lent; "" if there is none. */
static const char *value_of(const struct sba_buf *all, const char *key)
{
	const char *found = "";
	size_t len = strlen(key);
	for (size_t at = 0; at < all->len; at += strlen(all->data + at) + 1) {
		const char *one = all->data + at;
		if (strncmp(one, key, len) == 0 && (one[len] == '\n' || one[len] == '\0'))
			found = one[len] ? one + len + 1 : "";
	}
	return found;
}

/* Between quotes. */
static void put_escaped(struct sba_buf *config, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			sba_buf_putc(config, '\\');
		sba_buf_putc(config, text[i]);
	}
}

/* The first line of each. */
static void put_values(const struct sba_buf *all, const char *section, const char *const *keys,
		       struct sba_buf *config)
{
	for (; *keys; keys++) {
		char name[KEY_LEN];
		int n = snprintf(name, sizeof(name), "%s.%s", section, *keys);
		const char *value = n > 0 && (size_t)n < sizeof(name) ? value_of(all, name) : "";
		size_t len = strcspn(value, "\n");
		if (len == 0)
			continue;
		sba_buf_printf(config, "\t%s = \"", *keys);
		put_escaped(config, value, len);
		sba_buf_puts(config, "\"\n");
	}
}

/* How objects, index and files are to be read: with other answers than the host's, the
 * same files are broken or all changed. */
static int put_format(const struct sba_buf *all, struct sba_buf *config, struct sba_error *err)
{
	static const char *const extensions[] = { "objectformat", "refstorage", "partialclone",
						  NULL };
	static const char *const core[] = { "filemode", "symlinks",       "autocrlf",
					    "eol",      "sparsecheckout", "sparsecheckoutcone",
					    NULL };
	SBA_BUF struct sba_buf more = SBA_BUF_INIT(SBA_RUN_IO_CHUNK);
	put_values(all, "extensions", extensions, &more);
	sba_buf_printf(config, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n",
		       more.len > 0);
	put_values(all, "core", core, config);
	if (more.len > 0)
		sba_buf_printf(config, "[extensions]\n%s", more.data);
	return sba_buf_check(&more, "git configuration", err);
}

static void put_remote(const struct sba_buf *all, const char *name, struct sba_buf *config)
{
	static const char *const keys[] = { "promisor", "partialclonefilter", NULL };
	char section[KEY_LEN];
	snprintf(section, sizeof(section), "remote.%s", name);
	sba_buf_puts(config, "[remote \"");
	put_escaped(config, name, strlen(name));
	sba_buf_puts(config, "\"]\n\tfetch = \"+refs/heads/*:refs/remotes/");
	put_escaped(config, name, strlen(name));
	sba_buf_puts(config, "/*\"\n");
	put_values(all, section, keys, config);
}

int sba_git_config_make(const char *dir, struct sba_until until, struct sba_buf *config,
			struct sba_error *err)
{
	static const char *const list[] = { "config", "--list", "-z", NULL };
	static const char *const remotes[] = { "remote", NULL };
	static const char *const who[] = { "name", "email", NULL };
	SBA_BUF struct sba_buf all = SBA_BUF_INIT(SBA_MIB);
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(4 * SBA_RUN_IO_CHUNK);
	if (sba_git_run(dir, list, until, &all, NULL) != 0)
		sba_buf_reset(&all);
	int rc = put_format(&all, config, err);
	if (rc < 0)
		return rc;
	sba_buf_puts(config, "[submodule]\n\tactive = .\n[user]\n");
	put_values(&all, "user", who, config);
	if (sba_git_run(dir, remotes, until, &names, NULL) == 0 && names.data) {
		char *rest = names.data, *name;
		while ((name = strsep(&rest, "\n"))) {
			if (*name)
				put_remote(&all, name, config);
		}
	}
	return sba_buf_check(config, "git configuration", err);
}
