/* SPDX-License-Identifier: MIT */
/* The table of drivers, and what their commands have in common. */
#include "drivers/private.h"
#include "drivers/stream.h"

#include <string.h>

static const struct sba_driver *const all[] = { &sba_driver_claude, &sba_driver_opencode, NULL };

const struct sba_driver *const *sba_driver_all(void)
{
	return all;
}

const struct sba_driver *sba_driver_find(const char *name)
{
	for (size_t i = 0; name && all[i]; i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

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
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";
	size_t len = id ? strspn(id, allowed) : 0;
	return len > 0 && len <= SBA_SESSION_ID_MAX && id[len] == '\0' && id[0] != '-';
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

int sba_turn_check(const struct sba_turn_spec *spec, struct sba_error *err)
{
	if (!spec->base_url || !spec->base_url[0])
		return sba_fail(err, SBA_EINVAL, "no address of a model");
	if (!spec->token || !spec->token[0])
		return sba_fail(err, SBA_EINVAL, "no token for the model");
	if (!model_valid(spec->model))
		return sba_fail(err, SBA_EINVAL, "'%s' is no name of a model", spec->model);
	if (spec->session && !sba_session_id_valid(spec->session))
		return sba_fail(err, SBA_EINVAL, "'%s' is no session id", spec->session);
	if (spec->new_session && !sba_session_id_valid(spec->new_session))
		return sba_fail(err, SBA_EINVAL, "'%s' is no session id", spec->new_session);
	return 0;
}

int sba_turn_base_len(const struct sba_turn_spec *spec)
{
	size_t len = strlen(spec->base_url);
	while (len > 0 && spec->base_url[len - 1] == '/')
		len--;
	return (int)len;
}

int sba_strv_add_all(struct sba_strv *v, const char *const *list, struct sba_error *err)
{
	for (; *list; list++) {
		int rc = sba_strv_add(v, *list, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
