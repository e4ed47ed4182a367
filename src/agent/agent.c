/* SPDX-License-Identifier: MIT */
/* Putting driver, sandbox and model together. */
#include "agent/private.h"
#include "agent/provider.h"

#include <stdlib.h>
#include <string.h>

const char *const *sba_agent_names(void)
{
	static const char *names[16];
	const struct sba_driver *const *all = sba_driver_all();
	/* Every thread writes the same pointers. */
	for (size_t i = 0; all[i] && i + 1 < SBA_ARRAY_LEN(names); i++)
		names[i] = all[i]->name;
	return names;
}

static int unknown_agent(const char *name, struct sba_error *err)
{
	const char *const *names = sba_agent_names();
	size_t n = 0;
	while (names[n])
		n++;
	int near = sba_nearest(name, names, n);
	int rc = sba_fail(err, SBA_EINVAL, "there is no agent '%s'", name);
	if (near >= 0)
		return sba_hint(err, rc, "did you mean '%s'?", names[near]);
	return sba_hint(err, rc, "what there is:  sandbox-agent driver ls");
}

/* The scripted model on this host's loopback, reached through the channel. */
static int start_model(struct sba_agent *a, const char *script, struct sba_error *err)
{
	int rc = sba_random_hex(a->token, SBA_TOKEN_BYTES, err);
	if (rc < 0)
		return rc;
	const struct sba_model_options options = { .script = script, .token = a->token };
	rc = sba_model_open(&options, &a->model, err);
	if (rc == 0)
		a->host_port = sba_model_port(a->model);
	return rc;
}

enum { MAX_REQUESTS = 500 };

static int unknown_provider(const char *name, struct sba_error *err)
{
	SBA_BUF struct sba_buf all = SBA_BUF_INIT(SBA_KIB);
	const char *const *names = sba_provider_list();
	size_t n = 0;
	for (; names[n]; n++)
		sba_buf_printf(&all, "%s%s", n ? ", " : "there is: ", names[n]);
	int near = sba_nearest(name, names, n);
	int rc = sba_fail(err, SBA_EINVAL, "there is no provider '%s'", name);
	return near < 0 ? sba_hint(err, rc, "%s", all.data ? all.data : "")
			: sba_hint(err, rc, "did you mean '%s'?", names[near]);
}

static int find_provider(const struct sba_agent *a, const struct sba_agent_options *o,
			 const struct sba_provider **ret, struct sba_error *err)
{
	const struct sba_provider *its_own = sba_provider_default(a->driver);
	const struct sba_provider *p = o->provider ? sba_provider_find(o->provider) : its_own;
	if (!p)
		return unknown_provider(o->provider ? o->provider : a->driver->provider, err);
	if (!sba_provider_speaks(p, a->driver->api))
		return sba_hint(err,
				sba_fail(err, SBA_EINVAL, "%s does not speak %s's language",
					 a->driver->name, p->name),
				"its own:  --provider %s", its_own ? its_own->name : "NAME");
	if (!p->base_url && !o->base_url)
		return sba_hint(
			err, sba_fail(err, SBA_EINVAL, "provider '%s' needs a base URL", p->name),
			"--base-url https://…");
	*ret = p;
	return 0;
}

/* The key goes into the relay and nowhere else. */
static int start_relay(struct sba_agent *a, const struct sba_agent_options *o,
		       struct sba_error *err)
{
	const struct sba_provider *p = NULL;
	int rc = find_provider(a, o, &p, err);
	if (rc == 0)
		rc = sba_random_hex(a->token, SBA_TOKEN_BYTES, err);
	if (rc < 0 || !p)
		return rc;
	a->max_tokens = o->max_tokens;
	const struct sba_relay_options options = {
		.upstream = o->base_url ? o->base_url : p->base_url,
		.key = o->key,
		.key_style = p->key_style,
		.token = a->token,
		.ca_file = o->ca_file,
		.max_tokens = o->max_tokens,
		.max_requests = o->max_requests < 0   ? 0
				: o->max_requests > 0 ? o->max_requests
						      : MAX_REQUESTS,
	};
	rc = sba_relay_open(&options, &a->relay, err);
	if (rc < 0)
		return rc;
	a->host_port = sba_relay_port(a->relay);
	a->secrets.key = sba_relay_secret(a->relay);
	return 0;
}

/* Before any turn: it would get nowhere. */
static int no_way_to_model(const struct sba_agent *a, struct sba_error *err)
{
	return sba_hint(err,
			sba_fail(err, SBA_EUNSUPPORTED,
				 "sandbox '%s': its backend '%s' has not the capability "
				 "'host_url': %s would not reach its model",
				 sba_sandbox_info(a->sandbox)->name,
				 sba_sandbox_backend(a->sandbox), a->driver->name),
			"what reaches its own does there: an agent with its login "
			"(--login-files), or `command`");
}

static int find_driver(struct sba_agent *a, const struct sba_agent_options *o,
		       struct sba_error *err)
{
	if (o->driver) {
		a->driver = &a->own;
		return sba_driver_adopt(o->driver, &a->own, err);
	}
	const struct sba_sandbox_info *info = sba_sandbox_info(a->sandbox);
	int rc = sba_sandbox_find_agent(a->sandbox, err);
	if (rc < 0)
		return rc;
	const char *name = o->agent ? o->agent : info->agent;
	if (!*name)
		return sba_hint(err,
				sba_fail(err, SBA_EINVAL, "sandbox '%s' has no agent", info->name),
				"it was made by `create`; give it one:  sandbox-agent up claude "
				"--in %s",
				info->name);
	a->driver = sba_driver_find(name);
	if (!a->driver)
		return unknown_agent(name, err);
	return 0;
}

static int read_program(struct sba_agent *a, struct sba_error *err)
{
	const char *program = sba_sandbox_info(a->sandbox)->program;
	return *program ? sba_json_parse(program, strlen(program), "the sandbox's program",
					 &a->program, err)
			: 0;
}

static int open_agent(struct sba_agent *a, const struct sba_agent_options *o, struct sba_error *err)
{
	int rc = find_driver(a, o, err);
	if (rc < 0 || !a->driver)
		return rc;
	rc = sba_permissions_parse(sba_sandbox_info(a->sandbox)->permissions, &a->permissions, err);
	if (rc == 0)
		rc = sba_driver_check_permissions(a->driver, a->permissions, err);
	if (rc == 0)
		rc = read_program(a, err);
	if (rc == 0)
		rc = sba_agent_read_login(a, o, err);
	if (rc < 0 || o->no_turns)
		return rc;
	const char *model = o->model ? o->model : o->offline ? a->driver->offline_model : NULL;
	if (!model && !a->login)
		model = a->driver->default_model;
	if (!model && a->driver->needs_model && !a->login)
		return sba_hint(
			err,
			sba_fail(err, SBA_EINVAL, "%s needs the name of a model", a->driver->name),
			"as in:  -m MODEL");
	if (model && !(a->model_name = strdup(model)))
		return sba_fail_nomem(err);
	if (a->login)
		return 0;
	/* A program that needs no model gets none unless one is asked for. */
	if (!o->offline && a->driver->api == SBA_API_ANY && !o->provider && !o->base_url)
		return 0;
	if (!sba_sandbox_can(a->sandbox, SBA_CAN_HOST_URL))
		return no_way_to_model(a, err);
	if (o->offline)
		return start_model(a, o->script, err);
	return start_relay(a, o, err);
}

/* The key is not in the sandbox; the token is, and good for nothing elsewhere. */
static int open_audit(struct sba_agent *a, const struct sba_agent_options *o, struct sba_error *err)
{
	int rc = sba_audit_open(o->audit, a->sandbox, &a->audit, err);
	if (rc == 0)
		rc = sba_audit_hide(a->audit, a->token, err);
	return rc == 0 ? sba_audit_hide(a->audit, o->key, err) : rc;
}

int sba_agent_open(struct sba_sandbox *s, const struct sba_agent_options *options,
		   struct sba_agent **ret, struct sba_error *err)
{
	static const struct sba_agent_options defaults = { 0 };
	const struct sba_agent_options *o = options ? options : &defaults;
	struct sba_agent *a = calloc(1, sizeof(*a));
	if (!a)
		return sba_fail_nomem(err);
	a->sandbox = s;
	a->one_turn = o->one_turn;
	a->state_known = o->one_turn;
	a->no_turns = o->no_turns;
	int rc = open_agent(a, o, err);
	if (rc == 0 && o->audit)
		rc = open_audit(a, o, err);
	if (rc < 0) {
		if (err && o->key)
			sba_hide_secret(err->text, o->key);
		sba_agent_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

void sba_agent_close(struct sba_agent *a)
{
	if (!a)
		return;
	sba_agent_screen_close(a);
	sba_early_save_end(&a->early);
	sba_audit_close(a->audit);
	sba_model_close(a->model);
	sba_relay_close(a->relay);
	sba_secrets_fini(&a->secrets);
	json_decref(a->program);
	free(a->model_name);
	json_decref(a->memory);
	free(a->home);
	free(a);
}

const char *sba_agent_name(const struct sba_agent *a)
{
	return a->driver->name;
}
