/* SPDX-License-Identifier: MIT */
/* How a turn reaches its model: the scripted one, or a provider through the relay. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 16 << 20, KEY_MAX = 64 << 10 };

#define FIELD(name) offsetof(struct cli_way, name)

const struct cli_option cli_way_options[] = {
	{ "offline", 0, CLI_FLAG, NULL, "the scripted model: no key, no network", FIELD(offline),
	  0 },
	{ "model", 'm', CLI_STRING, "MODEL", "the model's name", FIELD(model), 0 },
	{ "provider", 0, CLI_STRING, "NAME", "where model calls go (default: the CLI's own)",
	  FIELD(provider), 0 },
	{ "base-url", 0, CLI_STRING, "URL", "of the provider, without /v1", FIELD(base_url), 0 },
	{ "api-key-env", 0, CLI_STRING, "VAR", "the variable here that holds the key",
	  FIELD(key_env), 0 },
	{ "api-key-file", 0, CLI_STRING, "FILE", "a file here that holds the key", FIELD(key_file),
	  0 },
	{ "max-tokens", 0, CLI_INT, "N", "a budget, input and output together (0: none)",
	  FIELD(max_tokens), 0 },
	{ "max-requests", 0, CLI_INT, "N", "model calls of a turn (500)", FIELD(max_requests), 1 },
	{ "ca-file", 0, CLI_STRING, "FILE", "a CA bundle that programs inside and the relay trust",
	  FIELD(ca_file), 0 },
	{ 0 },
};

int cli_way_check(const struct cli_way *w, const char *agent, struct sba_error *err)
{
	if (w->offline && (w->provider || w->base_url || w->key_env || w->key_file))
		return cli_fail(err, SBA_EINVAL, "one or the other",
				"--offline and a provider exclude each other");
	if (w->key_env && w->key_file)
		return cli_fail(err, SBA_EINVAL, "one or the other",
				"--api-key-env and --api-key-file exclude each other");
	if (w->provider && !sba_provider_key_env(agent, w->provider)) {
		const char *const *names = sba_provider_list();
		size_t n = 0;
		while (names[n])
			n++;
		int near = sba_nearest(w->provider, names, n);
		cli_fail(err, SBA_EINVAL, NULL, "there is no provider '%s'", w->provider);
		snprintf(err->hint, sizeof(err->hint), "did you mean %s?",
			 names[near < 0 ? 0 : near]);
		return SBA_EINVAL;
	}
	return w->ca_file ? cli_check_option_path("ca-file", w->ca_file, false, err) : 0;
}

static int read_script(struct cli_way *w, struct sba_error *err)
{
	size_t len;
	struct sba_model *m = NULL;
	if (!w->offline)
		return cli_fail(err, SBA_EINVAL, "add --offline", "--script is for --offline");
	int rc = cli_read_option_file("script", w->script, SCRIPT_MAX, &w->script_text, &len, err);
	if (rc < 0)
		return rc;
	const struct sba_model_options mo = { .script = w->script_text };
	rc = sba_model_open(&mo, &m, err);
	sba_model_close(m);
	if (rc == SBA_ECONFIG) {
		const struct sba_error why = *err;
		cli_fail(err, rc, why.hint, "--script: %s: %.900s", w->script, why.text);
	}
	return rc;
}

static int no_key(const char *name, struct sba_error *err)
{
	return cli_fail(err, SBA_EINVAL,
			"the key is read here and stays here; it never enters the sandbox\n"
			"no key at hand?  --offline runs the scripted model",
			"%s is not set", name);
}

/* Whoever gives a base URL of their own may have a model that asks for no key. */
static int read_key(const struct cli_way *w, const char *agent, char **ret, struct sba_error *err)
{
	size_t len;
	if (w->key_file) {
		int rc = cli_read_option_file("api-key-file", w->key_file, KEY_MAX, ret, &len, err);
		if (rc == 0)
			(*ret)[strcspn(*ret, "\r\n")] = '\0';
		return rc;
	}
	const char *name = w->key_env ? w->key_env : sba_provider_key_env(agent, w->provider);
	const char *key = name ? getenv(name) : NULL;
	if (!key || !*key)
		return w->key_env || !w->base_url ? no_key(name ? name : "the key", err) : 0;
	*ret = strdup(key);
	return *ret ? 0 : cli_fail_nomem(err);
}

int cli_way_read(struct cli_way *w, const char *agent, struct sba_error *err)
{
	int rc = cli_check_agent(agent, err);
	if (rc == 0)
		rc = cli_way_check(w, agent, err);
	if (rc == 0 && w->script)
		rc = read_script(w, err);
	if (rc == 0 && !w->offline)
		rc = read_key(w, agent, &w->key_text, err);
	return rc;
}

void cli_way_fini(struct cli_way *w)
{
	if (w->key_text)
		explicit_bzero(w->key_text, strlen(w->key_text));
	free(w->key_text);
	free(w->script_text);
	w->key_text = w->script_text = NULL;
}

int cli_way_open(const struct cli_way *w, struct sba_sandbox *s, bool one_turn,
		 struct sba_agent **ret, struct sba_error *err)
{
	const struct sba_agent_options o = {
		.offline = w->offline,
		.script = w->script_text,
		.model = w->model,
		.one_turn = one_turn,
		.provider = w->provider,
		.base_url = w->base_url,
		.key = w->key_text,
		.ca_file = w->ca_file,
		.max_tokens = w->max_tokens,
		.max_requests = w->max_requests,
	};
	return sba_agent_open(s, &o, ret, err);
}
