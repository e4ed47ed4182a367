/* SPDX-License-Identifier: MIT */
/*
 * What a local sandbox inherits of an environment. Keys of model providers never, so that
 * an agent has no way to its model but ours; what looks like a secret only on request.
 */
#include <stdlib.h>
#include <string.h>

#include "sandbox/local.h"

enum { VALUE_LOOK_MAX = 4096 };

/* The prefixes and the name that LiteLLM's harness takes away too. */
static const char *const provider_prefixes[] = { "ANTHROPIC_", "OPENAI_", "LITELLM_", "AZURE_",
						 "AWS_",       "GEMINI_", "CODEX_",   "CURSOR_" };
/* Ways to somebody who signs, decrypts or starts things for the user; and folders of the
 * user's that are not the sandbox's. */
static const char *const never[] = {
	"GOOGLE_API_KEY",
	"SSH_AUTH_SOCK",
	"SSH_AGENT_PID",
	"SSH_ASKPASS",
	"GIT_ASKPASS",
	"GPG_AGENT_INFO",
	"GNOME_KEYRING_CONTROL",
	"DBUS_SESSION_BUS_ADDRESS",
	"XAUTHORITY",
	"DOCKER_HOST",
	"XDG_RUNTIME_DIR",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"XDG_STATE_HOME",
	"XDG_CACHE_HOME",
	"CLAUDE_CONFIG_DIR",
	"HOME",
	"TMPDIR",
	"TMP",
	"TEMP",
	"PWD",
	"OLDPWD",
};
static const char *const secret_words[] = {
	"API_KEY",  "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "SECRET", "TOKEN",
	"PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL",  "COOKIE", "SIGNING_KEY"
};
static const char *const secret_ends[] = { "_PAT", "_PWD", "_AUTH", "_DSN", "_KEY" };
static const char *const secret_starts[] = {
	"sk-",    "sk_live_", "rk_live_", "ghp_",    "gho_", "ghs_",      "ghu_",  "github_pat_",
	"glpat-", "xoxb-",    "xoxp-",    "xapp-",   "hf_",  "npm_",      "pypi-", "AKIA",
	"ASIA",   "AIza",     "ya29.",    "dop_v1_", "SG.",  "-----BEGIN"
};

static bool begins_with_any(const char *s, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sba_starts_with(s, v[i]))
			return true;
	}
	return false;
}

static bool is_provider(const char *name)
{
	char upper[64];
	size_t i = 0;
	for (; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
	upper[i] = '\0';
	return begins_with_any(upper, provider_prefixes, SBA_ARRAY_LEN(provider_prefixes));
}

static bool is_never(const char *name)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(never); i++) {
		if (strcmp(name, never[i]) == 0)
			return true;
	}
	return is_provider(name);
}

/* TOKENIZERS_PARALLELISM=false is none. */
static bool is_switch(const char *value)
{
	static const char *const words[] = {
		"", "0", "1", "true", "false", "yes", "no", "on", "off"
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		if (strcasecmp(value, words[i]) == 0)
			return true;
	}
	return false;
}

static bool name_tells(const char *name)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(secret_words); i++) {
		if (strcasestr(name, secret_words[i]))
			return true;
	}
	size_t len = strlen(name);
	for (size_t i = 0; i < SBA_ARRAY_LEN(secret_ends); i++) {
		size_t n = strlen(secret_ends[i]);
		if (len > n && strcasecmp(name + len - n, secret_ends[i]) == 0)
			return true;
	}
	return false;
}

/* scheme://user:password@host */
static bool has_password(const char *value)
{
	const char *at = strstr(value, "://");
	if (!at)
		return false;
	at += 3;
	size_t authority = strcspn(at, "/?# ");
	const char *end = memchr(at, '@', authority);
	return end && memchr(at, ':', (size_t)(end - at));
}

/* Three parts in base64, the first a JSON object. */
static bool is_web_token(const char *value)
{
	const char *dot = sba_starts_with(value, "eyJ") ? strchr(value, '.') : NULL;
	return dot && strchr(dot + 1, '.');
}

static bool value_tells(const char *value)
{
	return begins_with_any(value, secret_starts, SBA_ARRAY_LEN(secret_starts)) ||
	       has_password(value) || is_web_token(value);
}

bool sba_local_hides(const char *name, const char *value)
{
	return is_never(name) || (!is_switch(value) && (name_tells(name) || value_tells(value)));
}

static int add_inherited(const struct sba_local_options *o, struct sba_strv *ret,
			 struct sba_error *err)
{
	char name[VALUE_LOOK_MAX];
	for (size_t i = 0; o->environment && o->environment[i]; i++) {
		const char *pair = o->environment[i];
		size_t len = strcspn(pair, "=");
		if (!pair[len] || len == 0 || len >= sizeof(name))
			continue;
		memcpy(name, pair, len);
		name[len] = '\0';
		if (o->keep_env ? is_never(name) : sba_local_hides(name, pair + len + 1))
			continue;
		int rc = sba_strv_add(ret, pair, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sba_local_env(const struct sba_local_options *o, const char *folder, const char *own,
		  struct sba_strv *ret, struct sba_error *err)
{
	int rc = add_inherited(o, ret, err);
	if (rc == 0 && !o->environment)
		rc = sba_strv_add(ret, "PATH=/usr/local/bin:/usr/bin:/bin", err);
	if (rc == 0)
		rc = sba_strv_addf(ret, err, "HOME=%s/home", own);
	if (rc == 0)
		rc = sba_strv_addf(ret, err, "TMPDIR=%s/tmp", own);
	if (rc == 0)
		rc = sba_strv_addf(ret, err, "PWD=%s", folder);
	return rc;
}
