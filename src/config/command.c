/* SPDX-License-Identifier: MIT */
/*
 * A program of this host that prints a key. No shell takes part, and what it
 * prints is shown nowhere: not even where it fails, since it may be the key.
 */
#include "config/private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "engine/engine.h"

enum { KEY_COMMAND_MS = 30 * 1000 };

/* ---- words ---- */

/* One word at *at into b; false: a quote is open. */
static bool take_word(const char **at, struct sba_buf *b)
{
	char quote = '\0';
	const char *c = *at;
	sba_buf_puts(b, "");
	for (; *c && (quote || !strchr(" \t\r\n", *c)); c++) {
		if (quote ? *c == quote : *c == '\'' || *c == '"')
			quote = quote ? '\0' : *c;
		else if (*c == '\\' && quote != '\'' && c[1])
			sba_buf_putc(b, *++c);
		else
			sba_buf_putc(b, *c);
	}
	*at = c;
	return !quote;
}

int sba_command_split(const char *text, char ***ret, struct sba_error *err)
{
	SBA_STRV struct sba_strv words = { 0 };
	for (const char *at = text + strspn(text, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_ARG_MAX);
		if (!take_word(&at, &b))
			return sba_fail(err, SBA_ECONFIG, "a command with a quote left open");
		int rc = sba_buf_check(&b, "a command", err);
		if (rc == 0)
			rc = sba_strv_add(&words, b.data ? b.data : "", err);
		if (rc < 0)
			return rc;
	}
	if (!words.n || !*words.v[0])
		return sba_fail(err, SBA_ECONFIG, "a command without a program");
	*ret = sba_move(&words.v);
	words.n = 0;
	return 0;
}

void sba_command_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/* ---- running it ---- */

static int verdict(int status, const struct sba_buf *b, struct sba_error *err)
{
	if (WIFSIGNALED(status))
		return sba_fail(err, SBA_ECONFIG, "it was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return sba_fail(err, SBA_ECONFIG, "it failed with exit status %d",
				WEXITSTATUS(status));
	size_t len = b->data ? strcspn(b->data, "\r\n") : 0;
	if (len == 0)
		return sba_fail(err, SBA_ECONFIG, "it printed no key");
	if (len < b->len && memchr(b->data, '\0', b->len))
		return sba_fail(err, SBA_ECONFIG, "what it printed is no text");
	return 0;
}

static int run(const char *const *argv, struct sba_until until, struct sba_buf *b,
	       struct sba_error *err)
{
	int status = 0;
	int rc = sba_child_run(argv, NULL, until, b, &status, err);
	if (rc == SBA_ELIMIT)
		return sba_fail(err, rc, "it printed more than a key");
	if (rc == SBA_ENOTFOUND)
		return err ? (err->code = SBA_ECONFIG) : SBA_ECONFIG;
	return rc < 0 ? rc : verdict(status, b, err);
}

int sba_key_command(const char *const *argv, int64_t timeout_ms, struct sba_cancel *cancel,
		    char **ret, struct sba_error *err)
{
	int64_t ms = timeout_ms > 0 ? timeout_ms : KEY_COMMAND_MS;
	struct sba_until until = sba_until_in(ms);
	struct sba_buf b = SBA_BUF_INIT(SBA_KEY_MAX);
	until.cancel_fd = sba_cancel_fd(cancel);
	/* Growing would leave copies behind. */
	if (sba_buf_reserve(&b, SBA_KEY_MAX))
		b.data[0] = '\0';
	int rc = run(argv, until, &b, err);
	if (rc == SBA_ETIMEOUT)
		sba_fail(err, rc, "it did not end within %lld s", (long long)((ms + 999) / 1000));
	char *key = rc == 0 ? strndup(b.data, strcspn(b.data, "\r\n")) : NULL;
	if (b.data)
		explicit_bzero(b.data, b.cap);
	sba_buf_fini(&b);
	if (rc == 0 && !key)
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return sba_wrap(err, rc, "key command '%.200s'", argv[0]);
	*ret = key;
	return 0;
}
