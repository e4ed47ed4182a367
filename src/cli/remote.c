/* SPDX-License-Identifier: MIT */
/* Sandboxes of services: `--backend opensandbox|e2b`, and the names SERVICE/NAME. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 64 << 10, KEY_MS = 30 * 1000, URL_MAX = 1024 };

/* ---- which ---- */

static int service_at(const char *name, size_t len)
{
	const char *const *names = sba_remote_names();
	for (int i = 0; names[i]; i++) {
		if (strlen(names[i]) == len && !strncmp(names[i], name, len))
			return i;
	}
	return -1;
}

bool cli_remote_is(const char *backend)
{
	return backend && service_at(backend, strlen(backend)) >= 0;
}

size_t cli_remote_prefix(const char *name)
{
	size_t len = strcspn(name, "/");
	return name[len] == '/' && service_at(name, len) >= 0 ? len + 1 : 0;
}

/* ---- settings ---- */

/* "SERVICE_what" in the configuration. */
static bool setting_of(const struct cli *cli, const char *service, const char *what,
		       const char *agent, struct sba_config_value *ret)
{
	const struct sba_config_scope scope = { .agent = agent };
	char key[64];
	snprintf(key, sizeof(key), "%s_%s", service, what);
	return sba_config_get(cli->config, key, &scope, ret);
}

static const char *text_of(const struct cli *cli, const char *service, const char *what,
			   const char *agent)
{
	struct sba_config_value v;
	return setting_of(cli, service, what, agent, &v) ? v.text : NULL;
}

/* The variables that the service's own clients know: a URL, or what one is made of. */
static const struct {
	const char *service, *url, *domain, *before, *after;
} variables[] = {
	{ "opensandbox", "OPEN_SANDBOX_API_BASE", "OPEN_SANDBOX_DOMAIN", "http://", "/v1" },
	{ "e2b", "E2B_API_URL", "E2B_DOMAIN", "https://api.", "" },
};

/* NULL: the usual one. Lent, or in buf. */
static const char *url_of(const struct cli *cli, const char *service, char buf[URL_MAX])
{
	const char *text = text_of(cli, service, "url", NULL);
	size_t i = 0;
	while (strcmp(variables[i].service, service) != 0)
		i++;
	const char *url = getenv(variables[i].url), *domain = getenv(variables[i].domain);
	if (text || (url && *url))
		return text ? text : url;
	if (!domain || !*domain)
		return NULL;
	snprintf(buf, URL_MAX, "%s%s%s", strstr(domain, "://") ? "" : variables[i].before, domain,
		 variables[i].after);
	return buf;
}

static const char *sandbox_url_of(const struct cli *cli, const char *service)
{
	const char *text = text_of(cli, service, "sandbox_url", NULL);
	const char *theirs = !strcmp(service, "e2b") ? getenv("E2B_SANDBOX_URL") : NULL;
	return text ? text : theirs && *theirs ? theirs : NULL;
}

static int key_from_file(const struct sba_config_value *v, char **ret, struct sba_error *err)
{
	size_t len;
	int rc = cli_read_file(v->text, KEY_MAX, ret, &len, err);
	if (rc == 0)
		(*ret)[strcspn(*ret, "\r\n")] = '\0';
	else
		snprintf(err->hint, sizeof(err->hint), "%s names it", v->origin);
	return rc;
}

static int key_from_command(struct cli *cli, const struct sba_config_value *v, char **ret,
			    struct sba_error *err)
{
	int rc = sba_key_command(v->list, KEY_MS, cli->cancel, ret, err);
	if (rc == SBA_ECONFIG)
		snprintf(err->hint, sizeof(err->hint),
			 "%s says so; it runs without a shell, and its first line is the key",
			 v->origin);
	return rc;
}

/* A server of OpenSandbox may want none. */
static int key_from_variable(const char *service, const struct sba_config_value *v, char **ret,
			     const char **ret_from, struct sba_error *err)
{
	const char *key = v ? getenv(v->text) : NULL;
	*ret_from = v ? v->text : NULL;
	if (key && *key)
		return (*ret = strdup(key)) ? 0 : cli_fail_nomem(err);
	if (v && !strcmp(service, "e2b"))
		return cli_fail(err, SBA_EINVAL,
				"the key is read here and stays here; e2b_api_key_file or "
				"e2b_key_command in the configuration say where else it is",
				"--backend e2b: %s is not set", v->text);
	return 0;
}

/* What is nearest says where it is; a variable is what is built in. *ret NULL: none. */
static int read_key(struct cli *cli, const char *service, char **ret, const char **ret_from,
		    struct sba_error *err)
{
	struct sba_config_value file, command, variable;
	bool by_file = setting_of(cli, service, "api_key_file", NULL, &file);
	bool by_command = setting_of(cli, service, "key_command", NULL, &command);
	bool by_name = setting_of(cli, service, "api_key_env", NULL, &variable);
	if (by_file && by_command && file.source == command.source)
		return cli_fail(err, SBA_ECONFIG, "one of them", "%s and %s exclude each other",
				file.origin, command.origin);
	if (by_file && (!by_command || file.source > command.source) &&
	    (!by_name || file.source >= variable.source)) {
		*ret_from = file.text;
		return key_from_file(&file, ret, err);
	}
	if (by_command && (!by_name || command.source >= variable.source)) {
		*ret_from = command.origin;
		return key_from_command(cli, &command, ret, err);
	}
	return key_from_variable(service, by_name ? &variable : NULL, ret, ret_from, err);
}

bool cli_remote_is_set_up(const struct cli *cli, const char *service)
{
	static const char *const keys[] = { "api_key_file", "key_command" };
	struct sba_config_value v;
	for (size_t i = 0; i < CLI_LEN(keys); i++) {
		if (setting_of(cli, service, keys[i], NULL, &v))
			return true;
	}
	const char *variable = text_of(cli, service, "api_key_env", NULL);
	const char *key = variable ? getenv(variable) : NULL;
	const char *backend = sba_config_text(cli->config, "backend", NULL);
	char url[URL_MAX];
	return url_of(cli, service, url) || (key && *key) || (backend && !strcmp(backend, service));
}

/* ---- the service ---- */

static void forget(char *key)
{
	if (key)
		explicit_bzero(key, strlen(key));
	free(key);
}

static int open_service(struct cli *cli, const char *service, struct sba_remote **ret,
			struct sba_error *err)
{
	struct sba_config_value through = { 0 };
	const char *from = NULL;
	char *key = NULL, url[URL_MAX];
	int rc = read_key(cli, service, &key, &from, err);
	(void)setting_of(cli, service, "through_server", NULL, &through);
	const struct sba_remote_options o = {
		.url = url_of(cli, service, url),
		.key = key,
		.key_from = from,
		.ca_file = sba_config_text(cli->config, "ca_file", NULL),
		.through_server = through.number != 0,
		.sandbox_url = sandbox_url_of(cli, service),
		.workdir = sba_config_text(cli->config, "service_workdir", NULL),
		.cancel = cli->cancel,
	};
	if (rc == 0)
		rc = sba_remote_open(service, &o, ret, err);
	forget(key);
	return rc;
}

int cli_remote(struct cli *cli, const char *service, size_t len, struct sba_remote **ret,
	       struct sba_error *err)
{
	int i = service_at(service, len);
	int rc = cli_begin(cli, err);
	if (rc == 0 && !cli->remotes[i])
		rc = open_service(cli, sba_remote_names()[i], &cli->remotes[i], err);
	if (rc == 0)
		*ret = cli->remotes[i];
	return rc;
}

int cli_remote_find(struct cli *cli, const char *name, struct sba_sandbox **ret,
		    struct sba_error *err)
{
	size_t len = cli_remote_prefix(name);
	struct sba_remote *r = NULL;
	int rc = cli_remote(cli, name, len - 1, &r, err);
	return rc == 0 ? sba_remote_find(r, cli->prefix, name + len, ret, err) : rc;
}

/* ---- making one ---- */

/* What its image is called at the service: --image, not the engine's of the configuration. */
static const char *image_of(const struct cli *cli, const struct cli_spawn *o,
			    const struct cli_args *args, const char *agent)
{
	if (cli_given(args, "image"))
		return o->image;
	return text_of(cli, o->backend, !strcmp(o->backend, "e2b") ? "template" : "image", agent);
}

/* Only an engine knows what these are about. */
static int check_options(const struct cli_spawn *o, const struct cli_args *args,
			 struct sba_error *err)
{
	static const char *const others[] = { "pull",    "locked", "mount",    "user",       "pids",
					      "runtime", "in",     "keep-env", "no-landlock" };
	for (size_t i = 0; i < CLI_LEN(others); i++) {
		if (cli_given(args, others[i]))
			return cli_fail(
				err, SBA_EUNSUPPORTED, "a container can:  leave out --backend",
				"--%s: a sandbox of %s cannot keep it", others[i], o->backend);
	}
	if (strcmp(o->backend, "e2b") != 0 ||
	    (!cli_given(args, "memory") && !cli_given(args, "cpus")))
		return 0;
	return cli_fail(err, SBA_EUNSUPPORTED, "choose a template that has it:  --image NAME",
			"--%s: at e2b it is the template's",
			cli_given(args, "memory") ? "memory" : "cpus");
}

static int create(struct cli *cli, const struct cli_spawn *o, const struct cli_args *args,
		  const char *agent, struct sba_sandbox **ret, struct sba_error *err)
{
	bool own_size = strcmp(o->backend, "e2b") != 0;
	struct cli_env env = { 0 };
	struct sba_remote *r = NULL;
	int rc = cli_remote(cli, o->backend, strlen(o->backend), &r, err);
	if (rc == 0)
		rc = cli_env_collect_config(&env, cli, agent, err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	if (rc == 0) {
		const struct sba_sandbox_options so = {
			.name = o->name,
			.prefix = cli->prefix,
			.tag = o->tag,
			.image = image_of(cli, o, args, agent),
			.env = (const char *const *)env.v,
			.keepalive_ms = o->keepalive,
			.max_lifetime_ms = o->max_lifetime,
			.memory = own_size ? o->memory : 0,
			.cpus = own_size ? o->cpus : 0,
			.network = o->network,
			.allow = o->allow.v,
			.max_sandboxes = sba_config_number(cli->config, "max_containers", NULL),
		};
		rc = sba_remote_create(r, &so, ret, err);
	}
	cli_env_fini(&env);
	return rc;
}

int cli_remote_spawn(struct cli *cli, struct cli_spawn *o, const struct cli_args *args,
		     const char *agent, struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = check_options(o, args, err);
	if (rc == 0 && agent)
		rc = cli_way_check(&o->way, agent, err);
	if (rc == 0 && agent)
		rc = cli_lodging_read(o, agent, err);
	if (rc == 0 && o->workspace)
		rc = cli_spawn_check_workspace(o->workspace, err);
	if (rc == 0)
		rc = create(cli, o, args, agent, &s, err);
	if (rc == 0 && agent)
		rc = cli_lodging_move_in(cli, o, agent, s, err);
	cli_lodging_forget(o);
	if (rc == 0 && o->workspace)
		rc = cli_spawn_add_workspace(cli, o->workspace, s, err);
	if (rc < 0 && s) {
		cli_remove(cli, s);
		sba_sandbox_close(s);
	}
	if (rc == 0)
		*ret = s;
	return rc;
}
