/* SPDX-License-Identifier: MIT */
/*
 * The text of a configuration file: which keys may stand where, and that no
 * other does. Every error names the file and the path of the key.
 */
#include "config/private.h"

#include <errno.h>
#include <string.h>

enum { NAMES_MAX = 128, KEY_PATH_MAX = 512 };

struct reader {
	struct sba_config *c;
	const struct sba_config_options *o;
	const char *file;
	enum sba_section section;
	const char *name; /* of the section */
};

/* "agents.claude.memory", "memory". */
static const char *path_of(const struct reader *r, const char *key, char *buf, size_t size)
{
	bool top = r->section == SBA_SECTION_TOP;
	snprintf(buf, size, "%s%s%.64s%s%.128s", sba_section_key(r->section), top ? "" : ".",
		 top ? "" : r->name, top || !*key ? "" : ".", key);
	return buf;
}

static int fail_at(const struct reader *r, const char *key, struct sba_error *err, const char *why)
{
	char path[KEY_PATH_MAX];
	return sba_fail(err, SBA_ECONFIG, "%s: %s: %s", r->file,
			path_of(r, key, path, sizeof(path)), why);
}

/* ---- unknown keys ---- */

/* What may stand in a section of that kind. */
static size_t keys_of(enum sba_section section, const char *ret[NAMES_MAX])
{
	size_t n = 0;
	const struct sba_setting *s;
	for (size_t i = 0; (s = sba_setting_at(i)) && n + 2 < NAMES_MAX; i++) {
		if (!(s->levels & sba_section_level(section)))
			continue;
		ret[n++] = s->key;
		if (s->alias)
			ret[n++] = s->alias;
	}
	for (enum sba_section i = SBA_SECTION_PROVIDER;
	     section == SBA_SECTION_TOP && i <= SBA_SECTION_POOL; i++)
		ret[n++] = sba_section_key(i);
	return n;
}

/* Keys of other places, and words for what is kept elsewhere. */
static void hint_elsewhere(const char *key, struct sba_error *err)
{
	const struct sba_setting *s = sba_setting_find(key);
	const char *where = NULL;
	if (s && s->levels & SBA_SETTING_TOP)
		where = "it stands at the top of the file";
	else if (s)
		where = "it stands in pool.NAME";
	else if (!strcmp(key, "api_key") || !strcmp(key, "key"))
		where = "no key is kept in this file: api_key_env, api_key_file and key_command "
			"say where it is";
	else
		where = "sandbox-agent config show lists what there is";
	sba_hint(err, err->code, "%s", where);
}

static int unknown_key(const struct reader *r, const char *key, struct sba_error *err)
{
	const char *keys[NAMES_MAX];
	struct sba_error ignored;
	err = err ? err : &ignored;
	int rc = fail_at(r, key, err, "there is no such setting");
	size_t n = keys_of(r->section, keys);
	int near = sba_nearest(key, keys, n);
	if (sba_setting_find(key) || near < 0)
		hint_elsewhere(key, err);
	else
		sba_hint(err, rc, "did you mean %s?", keys[near]);
	return rc;
}

/* ---- values ---- */

static int read_value(const struct reader *r, const struct sba_setting *s, const char *key,
		      const json_t *j, struct sba_error *err)
{
	char path[KEY_PATH_MAX], origin[KEY_PATH_MAX + 4096];
	snprintf(origin, sizeof(origin), "%s: %s", r->file, path_of(r, key, path, sizeof(path)));
	if (sba_entry_find(r->c, s->key, SBA_FROM_FILE, r->section, r->name)) {
		sba_fail(err, SBA_ECONFIG, "%s: %s is set too, which is the same", origin,
			 strcmp(key, s->key) != 0 ? s->key : s->alias);
		return SBA_ECONFIG;
	}
	struct sba_entry *e = sba_entry_new(s, r->section, r->name, SBA_FROM_FILE, origin);
	if (!e)
		return sba_fail_nomem(err);
	int rc = sba_value_from_json(r->c, e, j, err);
	if (rc < 0) {
		sba_entry_free(e);
		return sba_wrap(err, rc, "%s", origin);
	}
	return sba_entry_add(r->c, e, err);
}

static int read_section(struct reader *r, const json_t *section, struct sba_error *err);

/* Where the key of a provider is can be said once in each place. */
static int check_keys(const struct reader *r, struct sba_error *err)
{
	const char *found = NULL;
	for (size_t i = 0; i < SBA_KEY_PLACES; i++) {
		const char *key = sba_key_settings[i];
		if (!sba_entry_find(r->c, key, SBA_FROM_FILE, r->section, r->name))
			continue;
		if (found) {
			char why[128];
			snprintf(why, sizeof(why), "%s and it exclude each other", found);
			return fail_at(r, key, err, why);
		}
		found = key;
	}
	return 0;
}

/* ---- sections ---- */

static int unknown_name(const struct reader *r, const char *name, const char *const *known,
			struct sba_error *err)
{
	char all[256] = "";
	size_t n = 0, len = 0;
	for (; known[n]; n++) {
		if (len < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
						n ? ", " : "there is: ", known[n]);
	}
	int near = sba_nearest(name, known, n);
	bool agents = r->section != SBA_SECTION_PROVIDER;
	int rc = fail_at(r, "", err,
			 agents ? "there is no such agent" : "there is no such provider");
	return near < 0 ? sba_hint(err, rc, "%s", all)
			: sba_hint(err, rc, "did you mean %s?", known[near]);
}

static bool is_known(const char *const *known, const char *name)
{
	for (; known && *known; known++) {
		if (!strcmp(*known, name))
			return true;
	}
	return false;
}

static int check_name(const struct reader *r, struct sba_error *err)
{
	const char *const *known = r->section == SBA_SECTION_AGENT      ? r->o->agents
				   : r->section == SBA_SECTION_PROVIDER ? r->o->providers
									: NULL;
	if (known && !is_known(known, r->name))
		return unknown_name(r, r->name, known, err);
	if (!sba_is_word(r->name, "_.-", 64) || strchr("_.", r->name[0]))
		return fail_at(r, "", err, "a name is of letters and digits, _ . - between them");
	return 0;
}

/* A pool has to know what it is made of. */
static int check_pool(const struct reader *r, struct sba_error *err)
{
	const struct sba_entry *agent =
		sba_entry_find(r->c, "agent", SBA_FROM_FILE, r->section, r->name);
	if (!agent && !sba_entry_find(r->c, "image", SBA_FROM_FILE, r->section, r->name))
		return sba_hint(
			err, fail_at(r, "", err, "it says neither agent nor image"),
			"as in:  \"pool\": {\"claude\": {\"agent\": \"claude\", \"count\": 2}}");
	if (agent && r->o->agents && !is_known(r->o->agents, agent->text)) {
		int rc = unknown_name(r, agent->text, r->o->agents, err);
		char path[KEY_PATH_MAX];
		if (rc < 0 && err)
			snprintf(err->text, sizeof(err->text),
				 "%.300s: %s: there is no agent '%.64s'", r->file,
				 path_of(r, "agent", path, sizeof(path)), agent->text);
		return rc;
	}
	return 0;
}

/* "agents": {NAME: {…}, …} and its like. */
static int read_kind(const struct reader *top, enum sba_section section, const json_t *j,
		     struct sba_error *err)
{
	const char *name;
	json_t *inner;
	if (!json_is_object(j))
		return fail_at(top, sba_section_key(section), err,
			       "an object of sections by name belongs here");
	json_object_foreach((json_t *)(uintptr_t)j, name, inner)
	{
		struct reader r = *top;
		r.section = section;
		r.name = name;
		int rc = check_name(&r, err);
		if (rc == 0 && !json_is_object(inner))
			rc = fail_at(&r, "", err, "an object of settings belongs here");
		if (rc == 0)
			rc = sba_strv_add(&r.c->names[section], name, err);
		if (rc == 0)
			rc = read_section(&r, inner, err);
		if (rc == 0 && section == SBA_SECTION_POOL)
			rc = check_pool(&r, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* SBA_SECTION_TOP: it is no kind of section. */
static enum sba_section kind_of(const struct reader *r, const char *key)
{
	enum sba_section found = SBA_SECTION_TOP;
	for (enum sba_section i = SBA_SECTION_PROVIDER;
	     r->section == SBA_SECTION_TOP && i <= SBA_SECTION_POOL; i++) {
		if (!strcmp(sba_section_key(i), key))
			found = i;
	}
	return found;
}

static int read_section(struct reader *r, const json_t *section, struct sba_error *err)
{
	const char *key;
	json_t *j;
	json_object_foreach((json_t *)(uintptr_t)section, key, j)
	{
		const struct sba_setting *s = sba_setting_find(key);
		enum sba_section kind = kind_of(r, key);
		int rc = 0;
		if (kind != SBA_SECTION_TOP)
			rc = read_kind(r, kind, j, err);
		else if (s && s->levels & sba_section_level(r->section))
			rc = read_value(r, s, key, j, err);
		else if (r->section != SBA_SECTION_TOP || strcmp(key, "$schema") != 0)
			rc = unknown_key(r, key, err);
		if (rc < 0)
			return rc;
	}
	return check_keys(r, err);
}

int sba_config_parse(struct sba_config *c, const struct sba_config_options *o, const char *text,
		     size_t len, struct sba_error *err)
{
	json_error_t e;
	struct reader r = { .c = c, .o = o, .file = c->file, .name = "" };
	SBA_JSON json_t *j = sba_json_load(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!j && errno == ENOMEM)
		return sba_fail_nomem(err);
	if (!j) {
		int rc = sba_fail(err, SBA_ECONFIG, "%s: line %d, column %d: %s", c->file, e.line,
				  e.column, e.text);
		return strspn(text, " \t\r\n") >= len
			       ? sba_hint(err, rc, "a configuration that says nothing is {}")
			       : rc;
	}
	if (!json_is_object(j))
		return sba_fail(err, SBA_ECONFIG, "%s: it is no JSON object: {\"KEY\": VALUE, …}",
				c->file);
	return read_section(&r, j, err);
}
