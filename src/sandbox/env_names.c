/* SPDX-License-Identifier: MIT */
/* What a sandbox was given to its environment: names, never values. */
#include "sandbox/private.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox/making.h"

static bool has_text(const json_t *list, const char *text)
{
	size_t i;
	json_t *one;
	json_array_foreach(list, i, one)
	{
		const char *other = json_string_value(one);
		if (other && strcmp(other, text) == 0)
			return true;
	}
	return false;
}

/* Podman (4.3 to 5.4) shows what it adds itself among what it was given. */
static bool is_podmans(const char *name, size_t len)
{
	static const char *const names[] = { "PATH", "HOME", "HOSTNAME", "TERM", "container" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	}
	return false;
}

/* Not the image's, and not what leads to the bundle that a child has as well. */
static int add_own(const json_t *env, const json_t *image, bool podman, struct sba_strv *ret,
		   struct sba_error *err)
{
	size_t i;
	json_t *pair;
	int rc = 0;
	json_array_foreach(env, i, pair)
	{
		const char *text = json_string_value(pair);
		size_t len = text ? strcspn(text, "=") : 0;
		if (rc < 0 || len == 0 || has_text(image, text) ||
		    (podman && is_podmans(text, len)) ||
		    strcmp(text + len + (text[len] == '='), SBA_CA_PATH) == 0)
			continue;
		rc = sba_strv_addf(ret, err, "%.*s", (int)len, text);
	}
	return rc;
}

int sba_sandbox_env_names(struct sba_sandbox *s, char ***ret, struct sba_error *err)
{
	SBA_JSON json_t *container = NULL, *image = NULL;
	SBA_STRV struct sba_strv names = { 0 };
	struct sba_until until = sba_sandbox_until(s, SBA_ENGINE_STEP_MS);
	int rc = sba_sandbox_need(s, SBA_CAN_INSPECT, err);
	if (rc < 0)
		return rc;
	rc = sba_container_inspect(s->engine, s->container, until, &container, err);
	const char *id = rc == 0 ? sba_json_str(container, "Image") : NULL;
	if (rc == 0 && id)
		rc = sba_image_inspect(s->engine, id, until, &image, err);
	if (rc == SBA_ENOTFOUND && container)
		rc = 0; /* its image was removed by force: all counts as its own */
	if (rc == 0)
		rc = add_own(sba_json_get(container, "Config.Env"),
			     sba_json_get(image, "Config.Env"), sba_engine_podman(s->engine) > 0,
			     &names, err);
	if (rc == 0 && !names.v && !(names.v = calloc(1, sizeof(*names.v))))
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return sba_wrap(err, rc, "sandbox '%s'", s->info.name);
	*ret = sba_move(&names.v);
	names.n = 0;
	return 0;
}

void sba_env_names_free(char **names)
{
	for (char **at = names; at && *at; at++)
		free(*at);
	free(names);
}
