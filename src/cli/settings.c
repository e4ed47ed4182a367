/* SPDX-License-Identifier: MIT */
/*
 * The configuration and the command line: an option that was not given has the
 * value of its setting, and errors blame what truly set it.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char *look_up(void *user, const char *name)
{
	(void)user;
	return getenv(name);
}

int cli_config(struct cli *cli, struct sba_error *err)
{
	const struct sba_config_options o = {
		.file = cli->config_file,
		.getenv_fn = look_up,
		.agents = sba_agent_names(),
		.providers = sba_provider_list(),
	};
	struct sba_error ignored;
	if (cli->config)
		return 0;
	int rc = sba_config_load(&o, &cli->config, err);
	/* "*" is no word that things are called, yet may be asked for. */
	if (rc == 0 && cli->prefix)
		(void)sba_config_set(cli->config, "prefix", cli->prefix, "--prefix", &ignored);
	if (rc == 0 && cli->color)
		(void)sba_config_set(cli->config, "color", cli->color, "--color", &ignored);
	return rc;
}

/* ---- which setting is behind an option ---- */

/* "run, up, pool fill" has "up". */
static bool has_name(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; (at = strstr(at, name)); at += len) {
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

bool cli_setting_is_for(const struct sba_setting *s, const struct cli_command *c,
			const char *option)
{
	return s->option && !strcmp(s->option, option) &&
	       (!s->commands || has_name(s->commands, c->name));
}

static const struct sba_setting *setting_for(const struct cli_command *c, const char *option)
{
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		if (cli_setting_is_for(s, c, option))
			return s;
	}
	return NULL;
}

/* ---- values ---- */

void cli_settings_used(struct cli *cli, const struct sba_config_value *v)
{
	const struct sba_setting *s = v->setting;
	if (v->source == SBA_FROM_BUILT_IN || !s->option)
		return;
	struct cli_origin *o = NULL;
	for (size_t i = 0; i < cli->origins_n && !o; i++) {
		if (!strcmp(cli->origins[i].option, s->option))
			o = &cli->origins[i];
	}
	if (!o && cli->origins_n < CLI_LEN(cli->origins))
		o = &cli->origins[cli->origins_n++];
	if (!o)
		return;
	*o = (struct cli_origin){ s->option, v->origin, s->secret ? NULL : v->text };
	if (cli->verbose)
		cli_note(cli, "--%s %s  (%s)", s->option, o->text ? o->text : "…", v->origin);
}

static int put_list(struct cli_list *list, const struct sba_config_value *v, struct sba_error *err)
{
	size_t n = 0;
	while (v->list[n])
		n++;
	const char **copy = calloc(n + 1, sizeof(*copy));
	if (!copy)
		return cli_fail_nomem(err);
	memcpy(copy, v->list, n * sizeof(*copy));
	free(list->v);
	*list = (struct cli_list){ copy, n };
	return 0;
}

static int put(const struct cli_option *o, void *options, const struct sba_config_value *v,
	       struct sba_error *err)
{
	void *field = (char *)options + o->offset;
	switch (o->type) {
	case CLI_FLAG:
		*(bool *)field = v->number != 0;
		return 0;
	case CLI_STRING:
		*(const char **)field = v->text;
		return 0;
	case CLI_DURATION:
		*(int64_t *)field = v->number == 0 ? -1 : v->number;
		return 0;
	case CLI_SIZE:
	case CLI_INT:
		*(int64_t *)field = v->number;
		return 0;
	case CLI_DOUBLE:
		*(double *)field = v->real;
		return 0;
	case CLI_LIST:
		return put_list(field, v, err);
	}
	return 0;
}

/* The value of a CLI_STRING of the command; NULL: none, or no such option. */
static const char *text_of(const struct cli_command *c, const void *options, const char *name)
{
	for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
		for (const struct cli_option *o = c->tables[t]; o && o->name; o++) {
			if (!strcmp(o->name, name))
				return *(const char *const *)((const char *)options + o->offset);
		}
	}
	return NULL;
}

/* --allow and --network say one thing together: who contradicts one of them does
 * not get it out of the configuration. */
static bool overruled(const struct cli_command *c, const struct cli_args *args, const void *options,
		      const char *option)
{
	const char *network = cli_given(args, "network") ? text_of(c, options, "network") : NULL;
	return (!strcmp(option, "allow") && network && !strcmp(network, "open")) ||
	       (!strcmp(option, "network") && cli_given(args, "allow"));
}

int cli_settings_apply(struct cli *cli, const struct cli_command *c, const struct cli_args *args,
		       void *options, const struct sba_config_scope *scope, struct sba_error *err)
{
	for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
		const struct cli_option *o = c->tables[t] == cli_way_options ? NULL : c->tables[t];
		for (; o && o->name; o++) {
			const struct sba_setting *s = setting_for(c, o->name);
			struct sba_config_value v;
			if (!s || s->adds || cli_given(args, o->name) ||
			    overruled(c, args, options, o->name) ||
			    !sba_config_get(cli->config, s->key, scope, &v))
				continue;
			int rc = put(o, options, &v, err);
			if (rc < 0)
				return rc;
			cli_settings_used(cli, &v);
		}
	}
	return 0;
}

/* ---- blame ---- */

void cli_settings_blame(const struct cli *cli, struct sba_error *err)
{
	for (size_t i = 0; i < cli->origins_n; i++) {
		const struct cli_origin *o = &cli->origins[i];
		size_t len = strlen(o->option);
		if (strncmp(err->text, "--", 2) != 0 ||
		    strncmp(err->text + 2, o->option, len) != 0 || err->text[2 + len] != ':')
			continue;
		char rest[sizeof(err->text)];
		snprintf(rest, sizeof(rest), "%s", err->text + 2 + len);
		snprintf(err->text, sizeof(err->text), "%.400s%.600s", o->origin, rest);
		return;
	}
}

int cli_settings_timeout(const struct cli *cli, const char *key, int rc, struct sba_error *err)
{
	struct sba_config_value v;
	if (rc != SBA_ETIMEOUT || !cli->config || !sba_config_get(cli->config, key, NULL, &v))
		return rc;
	snprintf(err->hint, sizeof(err->hint),
		 "it may take %s (%.200s); %s in the configuration, or %s, allows more", v.text,
		 v.origin, key, v.setting->variable);
	return rc;
}
