/* SPDX-License-Identifier: MIT */
/* What counts: of all places that say something, the one that beats the others. */
#include "config/private.h"

#include <string.h>

static const struct sba_config_scope nobody = { 0 };

/* What a place says, in the order of precedence: option, environment, the sections of
 * the file, what is built in. */
static const struct sba_entry *at_place(const struct sba_config *c, const char *key,
					const struct sba_config_scope *s, int place)
{
	static const enum sba_config_source sources[] = { SBA_FROM_OPTION, SBA_FROM_ENVIRONMENT };
	const char *names[SBA_SECTION_KINDS] = {
		[SBA_SECTION_TOP] = "",
		[SBA_SECTION_PROVIDER] = s->provider,
		[SBA_SECTION_AGENT] = s->agent,
		[SBA_SECTION_POOL] = s->pool,
	};
	if (place < 2)
		return sba_entry_find(c, key, sources[place], SBA_SECTION_TOP, "");
	if (place >= 2 + SBA_SECTION_KINDS)
		return sba_entry_find(c, key, SBA_FROM_BUILT_IN, SBA_SECTION_TOP, "");
	enum sba_section section = (enum sba_section)(SBA_SECTION_KINDS - 1 - (place - 2));
	return names[section] ? sba_entry_find(c, key, SBA_FROM_FILE, section, names[section])
			      : NULL;
}

enum { PLACES = 2 + SBA_SECTION_KINDS + 1 };

bool sba_config_get(const struct sba_config *c, const char *key,
		    const struct sba_config_scope *scope, struct sba_config_value *ret)
{
	const struct sba_setting *s = sba_setting_find(key);
	if (!s)
		return false;
	for (int place = 0; place < PLACES; place++) {
		const struct sba_entry *e = at_place(c, s->key, scope ? scope : &nobody, place);
		if (!e)
			continue;
		*ret = e->value;
		return true;
	}
	*ret = (struct sba_config_value){ .setting = s, .origin = "built in" };
	return false;
}

const char *sba_config_text(const struct sba_config *c, const char *key,
			    const struct sba_config_scope *scope)
{
	struct sba_config_value v;
	return sba_config_get(c, key, scope, &v) ? v.text : NULL;
}

int64_t sba_config_number(const struct sba_config *c, const char *key,
			  const struct sba_config_scope *scope)
{
	struct sba_config_value v;
	return sba_config_get(c, key, scope, &v) ? v.number : 0;
}

static enum sba_section section_of(const char *kind)
{
	for (enum sba_section i = SBA_SECTION_PROVIDER; i <= SBA_SECTION_POOL; i++) {
		if (!strcmp(sba_section_key(i), kind))
			return i;
	}
	return SBA_SECTION_TOP;
}

const char *const *sba_config_names(const struct sba_config *c, const char *kind)
{
	static const char *const none[] = { NULL };
	const struct sba_strv *names = &c->names[section_of(kind)];
	return names->n ? (const char *const *)names->v : none;
}

bool sba_config_has(const struct sba_config *c, const char *kind, const char *name, const char *key)
{
	const struct sba_setting *s = sba_setting_find(key);
	return s && sba_entry_find(c, s->key, SBA_FROM_FILE, section_of(kind), name);
}

bool sba_config_key(const struct sba_config *c, const struct sba_config_scope *scope,
		    struct sba_config_key *ret)
{
	const struct sba_entry *e = NULL;
	size_t which = 0;
	for (int place = 0; !e && place < PLACES; place++) {
		for (which = 0; which < SBA_KEY_PLACES; which++) {
			e = at_place(c, sba_key_settings[which], scope ? scope : &nobody, place);
			if (e)
				break;
		}
	}
	if (!e)
		return false;
	*ret = (struct sba_config_key){
		.env = which == SBA_KEY_ENV ? e->value.text : NULL,
		.file = which == SBA_KEY_FILE ? e->value.text : NULL,
		.command = which == SBA_KEY_COMMAND ? e->value.list : NULL,
		.origin = e->origin,
	};
	return true;
}
