/* SPDX-License-Identifier: MIT */
/*
 * What is secret in the login that a sandbox has (its label "login"): whoever shows or
 * writes down what comes out of it stars that out. The file is the agent's by now, and
 * may say anything.
 */
#include <string.h>

#include "base/limits.h"
#include "sandbox/private.h"
#include "sandbox/sandbox.h"

enum { READ_MS = 30 * 1000 };

/* Tokens and keys, account numbers too: long, of one word, no address and no time. */
static bool is_secret(const char *text)
{
	size_t len = strlen(text);
	return len >= SBA_LOGIN_SECRET_MIN && strcspn(text, " \t\r\n") == len &&
	       !strstr(text, "://") && !(len > 10 && text[4] == '-' && text[10] == 'T');
}

int sba_login_secrets(const json_t *j, struct sba_strv *ret, struct sba_error *err)
{
	const char *text = json_string_value(j), *key;
	json_t *value;
	size_t i;
	int rc = 0;
	if (text && is_secret(text)) {
		if (ret->n == SBA_LOGIN_SECRETS_MAX)
			return sba_fail(err, SBA_ELIMIT, "a login with more than %d secrets",
					SBA_LOGIN_SECRETS_MAX);
		return sba_strv_add(ret, text, err);
	}
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
	{
		if (rc == 0)
			rc = sba_login_secrets(value, ret, err);
	}
	json_array_foreach(j, i, value)
	{
		if (rc == 0)
			rc = sba_login_secrets(value, ret, err);
	}
	return rc;
}

static int read_login(struct sba_sandbox *s, struct sba_buf *ret, struct sba_error *err)
{
	static const char script[] = "cat -- \"$HOME/$1\" 2>/dev/null; true";
	const char *const argv[] = { "sh", "-c", script, "sh", s->info.login, NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = READ_MS };
	struct sba_process *p = NULL;
	enum sba_output which;
	const char *data;
	ssize_t n = sba_sandbox_exec(s, &o, &p, err);
	while (n == 0 && (n = sba_process_read(p, -1, &which, &data, err)) > 0) {
		sba_buf_put(ret, data, (size_t)n);
		n = 0;
		if (ret->failed)
			break;
	}
	sba_process_free(p);
	return n < 0 ? (int)n : sba_buf_check(ret, "the login", err);
}

int sba_sandbox_login_secrets(struct sba_sandbox *s, struct sba_strv *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_LOGIN_MAX);
	SBA_JSON json_t *j = NULL;
	if (!*s->info.login)
		return 0;
	int rc = read_login(s, &text, err);
	if (rc < 0)
		return sba_wrap(err, rc, "sandbox '%s': its login", s->info.name);
	/* What is not there, or no login any more, has no secrets; the agent may have
	 * written more of them than any login has. */
	if (text.len > 0 && sba_json_parse(text.data, text.len, "login", &j, NULL) < 0)
		return 0;
	rc = sba_login_secrets(j, ret, err);
	return rc == SBA_ELIMIT ? 0 : rc;
}
