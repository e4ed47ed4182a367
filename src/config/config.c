/* SPDX-License-Identifier: MIT */
/* Loading: file and environment into entries, and which of them counts. */
#include "config/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* ---- entries ---- */

struct sba_entry *sba_entry_new(const struct sba_setting *s, enum sba_section section,
				const char *name, enum sba_config_source source, const char *origin)
{
	struct sba_entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct sba_entry){
		.section = section,
		.value = { .setting = s, .source = source },
		.name = strdup(name),
		.origin = strdup(origin),
	};
	e->value.origin = e->origin;
	if (!e->name || !e->origin) {
		sba_entry_free(e);
		return NULL;
	}
	return e;
}

void sba_entry_free(struct sba_entry *e)
{
	if (!e)
		return;
	sba_strv_fini(&e->list);
	free(e->name);
	free(e->text);
	free(e->origin);
	free(e);
}

int sba_entry_add(struct sba_config *c, struct sba_entry *take_e, struct sba_error *err)
{
	struct sba_entry **v = realloc(c->v, (c->n + 1) * sizeof(struct sba_entry *));
	if (!v) {
		sba_entry_free(take_e);
		return sba_fail_nomem(err);
	}
	c->v = v;
	v[c->n++] = take_e;
	return 0;
}

const struct sba_entry *sba_entry_find(const struct sba_config *c, const char *key,
				       enum sba_config_source source, enum sba_section section,
				       const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct sba_entry *e = c->v[i];
		if (e->value.source == source && e->section == section && !strcmp(e->name, name) &&
		    !strcmp(e->value.setting->key, key))
			return e;
	}
	return NULL;
}

static int add_text(struct sba_config *c, const struct sba_setting *s,
		    enum sba_config_source source, const char *origin, const char *text,
		    struct sba_error *err)
{
	struct sba_entry *e = sba_entry_new(s, SBA_SECTION_TOP, "", source, origin);
	if (!e)
		return sba_fail_nomem(err);
	int rc = sba_value_from_text(c, e, text, err);
	if (rc < 0) {
		sba_entry_free(e);
		return sba_wrap(err, rc, "%s", origin);
	}
	return sba_entry_add(c, e, err);
}

/* ---- where from ---- */

/* What is set to nothing counts as not set. */
static const char *look_up(const struct sba_config_options *o, const char *name)
{
	const char *value = o->getenv_fn ? o->getenv_fn(o->user, name) : NULL;
	return value && *value ? value : NULL;
}

/* XDG: a relative path there is to be ignored. */
static int default_file(const struct sba_config_options *o, char **ret, struct sba_error *err)
{
	const char *xdg = look_up(o, "XDG_CONFIG_HOME"), *home = look_up(o, "HOME");
	int n = 0;
	if (xdg && *xdg == '/')
		n = asprintf(ret, "%s/sandbox-agent/config.json", xdg);
	else if (home && *home == '/')
		n = asprintf(ret, "%s/.config/sandbox-agent/config.json", home);
	return n < 0 ? sba_fail_nomem(err) : 0;
}

static int name_file(struct sba_config *c, const char *file, struct sba_error *err)
{
	const char *slash = strrchr(file, '/');
	free(c->file);
	c->file = strdup(file);
	c->dir = slash ? strndup(file, slash == file ? 1 : (size_t)(slash - file)) : NULL;
	return c->file && (!slash || c->dir) ? 0 : sba_fail_nomem(err);
}

static int read_file(struct sba_config *c, const struct sba_config_options *o, const char *file,
		     bool required, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_CONFIG_MAX);
	struct sba_error why = { 0 };
	int rc = sba_read_file(file, SBA_CONFIG_MAX, &text, &why);
	if (rc == SBA_ENOTFOUND && !required)
		return 0;
	if (rc == SBA_ENOMEM)
		return sba_fail_nomem(err);
	if (rc < 0)
		return sba_fail(err, SBA_ECONFIG, "configuration: %s", why.text);
	rc = name_file(c, file, err);
	return rc == 0 ? sba_config_parse(c, o, text.data ? text.data : "", text.len, err) : rc;
}

static int load_file(struct sba_config *c, const struct sba_config_options *o,
		     struct sba_error *err)
{
	SBA_FREE char *found = NULL;
	const char *named = o->file ? o->file : look_up(o, "SANDBOX_AGENT_CONFIG");
	int rc = 0;
	if (o->text) {
		rc = name_file(c, named ? named : "config.json", err);
		return rc == 0 ? sba_config_parse(c, o, o->text, o->text_len, err) : rc;
	}
	if (!named)
		rc = default_file(o, &found, err);
	if (rc == 0 && (named || found))
		rc = read_file(c, o, named ? named : found, named, err);
	return rc == SBA_ECONFIG && named && !o->file && !c->file
		       ? sba_hint(err, rc, "SANDBOX_AGENT_CONFIG names it")
		       : rc;
}

static int load_environment(struct sba_config *c, const struct sba_config_options *o,
			    struct sba_error *err)
{
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		const char *value = s->variable ? look_up(o, s->variable) : NULL;
		if (!value)
			continue;
		int rc = add_text(c, s, SBA_FROM_ENVIRONMENT, s->variable, value, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int load_built_in(struct sba_config *c, struct sba_error *err)
{
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		if (!s->fallback)
			continue;
		int rc = add_text(c, s, SBA_FROM_BUILT_IN, "built in", s->fallback, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Two of them in one place would leave open which counts. */
static int check_keys(const struct sba_config *c, struct sba_error *err)
{
	const struct sba_entry *found = NULL;
	for (size_t i = 0; i < SBA_KEY_PLACES; i++) {
		const struct sba_entry *e = sba_entry_find(
			c, sba_key_settings[i], SBA_FROM_ENVIRONMENT, SBA_SECTION_TOP, "");
		if (found && e)
			return sba_fail(err, SBA_ECONFIG, "%s and %s exclude each other",
					found->origin, e->origin);
		found = e ? e : found;
	}
	return 0;
}

int sba_config_load(const struct sba_config_options *options, struct sba_config **ret,
		    struct sba_error *err)
{
	static const struct sba_config_options nothing = { 0 };
	const struct sba_config_options *o = options ? options : &nothing;
	struct sba_config *c = calloc(1, sizeof(*c));
	const char *home = look_up(o, "HOME");
	if (!c || (home && !(c->home = strdup(home)))) {
		sba_config_free(c);
		return sba_fail_nomem(err);
	}
	int rc = load_built_in(c, err);
	if (rc == 0)
		rc = load_file(c, o, err);
	if (rc == 0)
		rc = load_environment(c, o, err);
	if (rc == 0)
		rc = check_keys(c, err);
	if (rc < 0) {
		sba_config_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void sba_config_free(struct sba_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		sba_entry_free(c->v[i]);
	for (size_t i = 0; i < SBA_ARRAY_LEN(c->names); i++)
		sba_strv_fini(&c->names[i]);
	free(c->v);
	free(c->file);
	free(c->dir);
	free(c->home);
	free(c);
}

const char *sba_config_file(const struct sba_config *c)
{
	return c->file;
}

int sba_config_set(struct sba_config *c, const char *key, const char *value, const char *origin,
		   struct sba_error *err)
{
	const struct sba_setting *s = sba_setting_find(key);
	if (!s || s->type == SBA_SETTING_ENV)
		return sba_fail(err, SBA_EINVAL, "no setting '%s' that a text could be for", key);
	size_t before = c->n;
	int rc = add_text(c, s, SBA_FROM_OPTION, origin, value, err);
	for (size_t i = 0; rc == 0 && i < before; i++) {
		if (c->v[i]->value.setting != s || c->v[i]->value.source != SBA_FROM_OPTION)
			continue;
		sba_entry_free(c->v[i]);
		c->v[i] = c->v[--c->n];
		break;
	}
	return rc;
}
