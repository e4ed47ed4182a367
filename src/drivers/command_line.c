/* SPDX-License-Identifier: MIT */
/* Command lines under construction, and what may go into one. */
#include "drivers/private.h"
#include "drivers/stream.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sba_command_fini(struct sba_command *c)
{
	if (!c)
		return;
	sba_strv_fini(&c->argv);
	sba_strv_fini(&c->env);
}

/* The inside of a sandbox chooses its session ids, and they come back as
 * arguments: nothing that could be an option or need quoting. */
bool sba_session_id_valid(const char *id)
{
	return sba_is_word(id, "_-.", SBA_SESSION_ID_MAX);
}

static bool model_valid(const char *model)
{
	if (!model)
		return true;
	if (model[0] == '\0' || model[0] == '-' || !sba_utf8_valid(model, strlen(model)))
		return false;
	for (const char *p = model; *p; p++) {
		if ((unsigned char)*p <= ' ' || *p == 0x7F)
			return false;
	}
	return true;
}

static int check_modes(const struct sba_driver *d, const struct sba_turn_spec *spec,
		       struct sba_error *err)
{
	int rc = sba_driver_check_permissions(d, spec->permissions, err);
	if (rc == 0 && spec->screen && !d->has_screen)
		rc = sba_hint(
			err,
			sba_fail(err, SBA_EUNSUPPORTED, "%s has no screen of its own", d->name),
			"give it a prompt, or look around with `shell`");
	return rc;
}

/* What every driver needs of a spec: an address, a token, and neither a model
 * nor a session that the CLI would take for an option. */
static int check_turn(const struct sba_driver *d, const struct sba_turn_spec *spec,
		      struct sba_error *err)
{
	bool may_be_without = d->api == SBA_API_ANY || spec->login;
	if (spec->login && !d->login)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s keeps no login of its own", d->name);
	if ((!spec->base_url && !may_be_without) || (spec->base_url && !spec->base_url[0]))
		return sba_fail(err, SBA_EINVAL, "no address of a model");
	if (spec->base_url && (!spec->token || !spec->token[0]))
		return sba_fail(err, SBA_EINVAL, "no token for the model");
	if (!model_valid(spec->model))
		return sba_fail(err, SBA_EINVAL, "'%s' is no name of a model", spec->model);
	if (spec->session && !sba_session_id_valid(spec->session))
		return sba_fail(err, SBA_EINVAL, "'%s' is no session id", spec->session);
	if (spec->new_session && !sba_session_id_valid(spec->new_session))
		return sba_fail(err, SBA_EINVAL, "'%s' is no session id", spec->new_session);
	return check_modes(d, spec, err);
}

int sba_turn_base_len(const struct sba_turn_spec *spec)
{
	size_t len = strlen(spec->base_url);
	while (len > 0 && spec->base_url[len - 1] == '/')
		len--;
	return (int)len;
}

/* ---- building ---- */

static void add(struct sba_command *c, struct sba_strv *v, const char *text)
{
	if (!c->failed && (!text || sba_strv_add(v, text, NULL) < 0))
		c->failed = SBA_ENOMEM;
}

void sba_command_arg(struct sba_command *c, const char *arg)
{
	add(c, &c->argv, arg);
}

void sba_command_args(struct sba_command *c, const char *const *list)
{
	for (; *list; list++)
		add(c, &c->argv, *list);
}

void sba_command_argf(struct sba_command *c, const char *fmt, ...)
{
	SBA_FREE char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	add(c, &c->argv, text);
}

void sba_command_each(struct sba_command *c, const char *list, const char *prefix)
{
	for (const char *at = list; at && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		sba_command_argf(c, "%s%.*s", prefix, (int)len, at);
		at += len;
	}
}

void sba_command_env(struct sba_command *c, const char *name, const char *value)
{
	if (!c->failed && (!value || sba_strv_addf(&c->env, NULL, "%s=%s", name, value) < 0))
		c->failed = SBA_ENOMEM;
}

void sba_command_envs(struct sba_command *c, const char *const *list)
{
	for (; *list; list++)
		add(c, &c->env, *list);
}

void sba_command_env_url(struct sba_command *c, const char *name, const struct sba_turn_spec *spec,
			 const char *suffix)
{
	if (!c->failed && sba_strv_addf(&c->env, NULL, "%s=%.*s%s", name, sba_turn_base_len(spec),
					spec->base_url, suffix) < 0)
		c->failed = SBA_ENOMEM;
}

static const char *root_of(const struct sba_turn_spec *spec)
{
	return spec->root ? spec->root : "";
}

void sba_command_file(struct sba_command *c, const struct sba_turn_spec *spec, const char *path)
{
	sba_command_argf(c, "%s%s", root_of(spec), path);
}

void sba_command_env_file(struct sba_command *c, const char *name, const struct sba_turn_spec *spec,
			  const char *path)
{
	if (!c->failed && sba_strv_addf(&c->env, NULL, "%s=%s%s", name, root_of(spec), path) < 0)
		c->failed = SBA_ENOMEM;
}

int sba_command_make(const struct sba_driver *driver, const struct sba_turn_spec *spec,
		     struct sba_command *ret, struct sba_error *err)
{
	struct sba_command c = { 0 };
	int rc = check_turn(driver, spec, err);
	if (rc == 0)
		rc = driver->command(spec, &c, err);
	if (rc == 0 && c.failed)
		rc = sba_fail_nomem(err);
	if (rc == 0 && c.argv.n == 0)
		rc = sba_fail(err, SBA_EINVAL, "driver '%s' made no command", driver->name);
	if (rc < 0) {
		sba_command_fini(&c);
		return rc;
	}
	*ret = c;
	return 0;
}
