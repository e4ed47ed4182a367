/* SPDX-License-Identifier: MIT */
/* How a turn reaches its model: the scripted one, or a provider through the relay. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 16 << 20, KEY_MAX = 64 << 10, KEY_COMMAND_MS = 30 * 1000 };

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
	{ "api-key-command", 0, CLI_STRING, "COMMAND",
	  "a program here that prints the key (no shell)", FIELD(key_command), 0 },
	{ "max-tokens", 0, CLI_INT, "N", "a budget, input and output together (0: none)",
	  FIELD(max_tokens), 0 },
	{ "max-requests", 0, CLI_INT, "N", "model calls of a turn (500)", FIELD(max_requests), 1 },
	{ "ca-file", 0, CLI_STRING, "FILE", "a CA bundle that programs inside and the relay trust",
	  FIELD(ca_file), 0 },
	{ 0 },
};

/* ---- what was not given ---- */

static bool says_where(const struct cli_way *w)
{
	return w->provider || w->base_url || w->key_env || w->key_file || w->key_command;
}

static bool wants_model(const struct cli_way *w, const char *agent)
{
	return says_where(w) || !sba_agent_takes_program(agent);
}

/* What the sandbox was made for; false: that is left open. */
static bool settle_by_labels(struct cli_way *w, const struct sba_sandbox_info *made_for)
{
	bool elsewhere = says_where(w);
	if (!strcmp(made_for->provider, "scripted")) {
		w->offline = !elsewhere;
		return true;
	}
	if (w->offline)
		return true;
	if (!w->provider && *made_for->provider)
		w->provider = made_for->provider;
	if (!w->base_url && *made_for->base_url)
		w->base_url = made_for->base_url;
	if (!w->key_env && !w->key_file && !w->key_command && *made_for->key_env)
		w->key_env = made_for->key_env;
	return *made_for->provider || *made_for->base_url;
}

struct settling {
	struct cli *cli;
	const struct cli_args *args;
	struct sba_config_scope scope;
};

/* A text of the configuration where nothing else said one. */
static void settle_text(struct settling *t, const char *key, const char **field)
{
	struct sba_config_value v;
	if (*field || !sba_config_get(t->cli->config, key, &t->scope, &v))
		return;
	*field = v.text;
	cli_settings_used(t->cli, &v);
}

/* made_for < 0: the sandbox does not say. */
static void settle_number(struct settling *t, const char *key, const char *option, int64_t made_for,
			  int64_t *field)
{
	struct sba_config_value v;
	if (cli_given(t->args, option))
		return;
	if (made_for > 0) {
		*field = made_for;
	} else if (sba_config_get(t->cli->config, key, &t->scope, &v) &&
		   v.source != SBA_FROM_BUILT_IN) {
		*field = v.number;
		cli_settings_used(t->cli, &v);
	}
}

/* A provider that was given is not one that is scripted, and the reverse. */
static void settle_provider(struct settling *t, struct cli_way *w)
{
	struct sba_config_value v;
	if (!w->offline && !says_where(w) &&
	    sba_config_get(t->cli->config, "offline", &t->scope, &v)) {
		w->offline = v.number != 0;
		cli_settings_used(t->cli, &v);
	}
	/* A program has a model only where the command line asks for one. */
	if (!w->offline && !sba_agent_takes_program(t->scope.agent))
		settle_text(t, "provider", &w->provider);
}

static void settle_key(struct settling *t, struct cli_way *w)
{
	if (w->key_env || w->key_file || w->key_command ||
	    !sba_config_key(t->cli->config, &t->scope, &w->key))
		return;
	w->key_env = w->key.env;
	w->key_file = w->key.file;
}

int cli_way_settle(struct cli *cli, struct cli_way *w, const struct cli_args *args,
		   const char *agent, const struct sba_sandbox_info *made_for,
		   struct sba_error *err)
{
	struct settling t = { .cli = cli, .args = args, .scope = { .agent = agent } };
	int rc = cli_config(cli, err);
	if (rc < 0)
		return rc;
	if (made_for && *made_for->login && !w->offline && !says_where(w))
		w->login = true;
	if (!w->login && (!made_for || !settle_by_labels(w, made_for)))
		settle_provider(&t, w);
	t.scope.provider = w->provider ? w->provider : sba_agent_provider(agent);
	if (!w->offline && !w->login && wants_model(w, agent)) {
		settle_text(&t, "base_url", &w->base_url);
		settle_key(&t, w);
	}
	if (!w->offline && !cli_given(args, "script"))
		w->script = NULL;
	if (!w->model && made_for && *made_for->model)
		w->model = made_for->model;
	settle_text(&t, "model", &w->model);
	settle_text(&t, "ca_file", &w->ca_file);
	settle_number(&t, "max_tokens", "max-tokens", made_for ? made_for->max_tokens : -1,
		      &w->max_tokens);
	settle_number(&t, "max_requests", "max-requests", made_for ? made_for->max_requests : -1,
		      &w->max_requests);
	return 0;
}

/* ---- what makes sense ---- */

static void hint_providers(const char *name, struct sba_error *err)
{
	const char *const *names = sba_provider_list();
	size_t n = 0, len = 0;
	for (; names[n]; n++) {
		if (len < sizeof(err->hint))
			len += (size_t)snprintf(err->hint + len, sizeof(err->hint) - len, "%s%s",
						n ? ", " : "there is: ", names[n]);
	}
	int near = sba_nearest(name, names, n);
	if (near >= 0)
		snprintf(err->hint, sizeof(err->hint), "did you mean %s?", names[near]);
}

/* The one exception to the rule that no key enters a sandbox: nothing that needs the
 * rule goes with it. */
static int check_login(const struct cli_way *w, const char *agent, struct sba_error *err)
{
	if (!sba_agent_login(agent))
		return cli_fail(err, SBA_EINVAL,
				"with a key it works through the relay, as in:  --api-key-env VAR",
				"--login-files: %s keeps no login of its own", agent);
	if (w->offline || says_where(w))
		return cli_fail(err, SBA_EINVAL, "one or the other",
				"--login-files and %s exclude each other",
				w->offline ? "--offline" : "a provider or a key");
	if (w->max_tokens > 0 || w->max_requests > 0)
		return cli_fail(err, SBA_EINVAL,
				"the CLI reaches its provider by itself: nobody counts; "
				"--timeout holds",
				"--login-files: no budget can be kept (%s)",
				w->max_tokens > 0 ? "max-tokens" : "max-requests");
	return 0;
}

int cli_way_check(const struct cli_way *w, const char *agent, struct sba_error *err)
{
	int rc = w->login ? check_login(w, agent, err) : 0;
	if (rc < 0)
		return rc;
	if (w->offline && says_where(w))
		return cli_fail(err, SBA_EINVAL, "one or the other",
				"--offline and a provider exclude each other");
	if (!!w->key_env + !!w->key_file + !!w->key_command > 1)
		return cli_fail(err, SBA_EINVAL, "one of them",
				"--api-key-env, --api-key-file and --api-key-command exclude each "
				"other");
	if (w->provider && !sba_provider_key_env(agent, w->provider)) {
		cli_fail(err, SBA_EINVAL, NULL, "--provider: there is no provider '%s'",
			 w->provider);
		hint_providers(w->provider, err);
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

static int no_key(const struct cli_way *w, const char *name, struct sba_error *err)
{
	if (w->key.env)
		return cli_fail(err, SBA_EINVAL,
				"no key at hand?  --offline runs the scripted model",
				"%s is not set; %s names it", name, w->key.origin);
	return cli_fail(err, SBA_EINVAL,
			"the key is read here and stays here; it never enters the sandbox\n"
			"no key at hand?  --offline runs the scripted model",
			"%s is not set", name);
}

static int read_key_file(const struct cli_way *w, char **ret, struct sba_error *err)
{
	size_t len;
	int rc = cli_read_option_file("api-key-file", w->key_file, KEY_MAX, ret, &len, err);
	if (rc == 0)
		(*ret)[strcspn(*ret, "\r\n")] = '\0';
	else if (w->key.file)
		snprintf(err->hint, sizeof(err->hint), "%s names it", w->key.origin);
	return rc;
}

/* Its errors never quote what it printed. */
static int run_key_command(struct cli *cli, const struct cli_way *w, char **ret,
			   struct sba_error *err)
{
	char **argv = NULL;
	int rc = 0;
	if (w->key_command)
		rc = sba_command_split(w->key_command, &argv, err);
	if (rc == 0)
		rc = sba_key_command(argv ? (const char *const *)argv : w->key.command,
				     KEY_COMMAND_MS, cli->cancel, ret, err);
	sba_command_free(argv);
	if (rc == SBA_ECONFIG)
		snprintf(err->hint, sizeof(err->hint),
			 "%s says so; it runs without a shell, and its first line is the key",
			 w->key_command ? "--api-key-command" : w->key.origin);
	return rc;
}

/* Whoever gives a base URL of their own may have a model that asks for no key. */
static int read_key(struct cli *cli, const struct cli_way *w, const char *agent, char **ret,
		    struct sba_error *err)
{
	if (w->key_file)
		return read_key_file(w, ret, err);
	if (w->key_command || w->key.command)
		return run_key_command(cli, w, ret, err);
	const char *name = w->key_env ? w->key_env : sba_provider_key_env(agent, w->provider);
	const char *key = name ? getenv(name) : NULL;
	if (!key || !*key)
		return w->key_env || !w->base_url ? no_key(w, name ? name : "the key", err) : 0;
	*ret = strdup(key);
	return *ret ? 0 : cli_fail_nomem(err);
}

int cli_way_read(struct cli *cli, struct cli_way *w, const char *agent, struct sba_error *err)
{
	int rc = cli_check_agent(agent, err);
	if (rc == 0)
		rc = cli_way_check(w, agent, err);
	if (rc == 0 && w->script)
		rc = read_script(w, err);
	if (rc == 0 && !w->offline && !w->login && wants_model(w, agent))
		rc = read_key(cli, w, agent, &w->key_text, err);
	if (rc == 0 && w->key_text)
		rc = cli_keep_secret(cli, w->key_text, err);
	return rc;
}

char *cli_way_model(const struct cli_way *w, const char *agent)
{
	const char *provider = w->provider ? w->provider : sba_agent_provider(agent);
	if (w->offline)
		return strdup("scripted");
	if (w->login)
		return strdup("login's");
	if (!w->base_url)
		return strdup(provider && wants_model(w, agent) ? provider : "no");
	const char *host = strstr(w->base_url, "://");
	host = host ? host + 3 : w->base_url;
	size_t len = strcspn(host, "/");
	const char *at = memchr(host, '@', len); /* a password before it is nobody's business */
	return at ? strndup(at + 1, len - (size_t)(at + 1 - host)) : strndup(host, len);
}

void cli_way_hint_key(const struct cli_way *w, const char *agent, struct sba_error *err)
{
	const char *env = sba_provider_key_env(agent, w->provider);
	const char *name = w->key_env       ? w->key_env
			   : w->key_file    ? w->key_file
			   : w->key.origin  ? w->key.origin
			   : w->key_command ? w->key_command
					    : env;
	if (err->hint[0] || !w->key_text)
		return;
	snprintf(err->hint, sizeof(err->hint),
		 "the key is that of %.200s; another:  --api-key-env VAR, --api-key-file FILE",
		 name ? name : "the configuration");
}

void cli_way_fini(struct cli_way *w)
{
	if (w->key_text)
		explicit_bzero(w->key_text, strlen(w->key_text));
	free(w->key_text);
	free(w->script_text);
	w->key_text = w->script_text = NULL;
}

int cli_way_open(struct cli *cli, const struct cli_way *w, struct sba_sandbox *s, bool one_turn,
		 struct sba_agent **ret, struct sba_error *err)
{
	struct sba_audit_options audit = { 0 };
	bool audited = cli_audit_options(cli, sba_sandbox_info(s)->agent, &audit);
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
		.audit = audited ? &audit : NULL,
	};
	return sba_agent_open(s, &o, ret, err);
}
