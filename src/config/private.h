/* SPDX-License-Identifier: MIT */
/* What the files of this module share: entries, and how a value is read. */
#ifndef SBA_CONFIG_PRIVATE_H
#define SBA_CONFIG_PRIVATE_H

#include "base/base.h"

#include <sandbox-agent/config.h>

/* The kinds of sections; SBA_SECTION_TOP is the file itself. */
enum sba_section {
	SBA_SECTION_TOP,
	SBA_SECTION_PROVIDER,
	SBA_SECTION_AGENT,
	SBA_SECTION_POOL,
	SBA_SECTION_KINDS,
};

/* One value of one setting, from one place. */
struct sba_entry {
	enum sba_section section;
	char *name; /* of the section; "" at the top */
	struct sba_config_value value;
	/* what the value lends */
	char *text, *origin;
	struct sba_strv list;
};

struct sba_config {
	char *file;
	char *dir;  /* of the file: what relative paths in it are relative to */
	char *home; /* or NULL */
	struct sba_entry **v;
	size_t n;
	struct sba_strv names[SBA_SECTION_KINDS];
};

/* ---- table.c ---- */

const char *sba_section_key(enum sba_section section); /* "agents"; "" for the top */
unsigned sba_section_level(enum sba_section section);  /* SBA_SETTING_AGENT … */

/* The settings of which one says where a provider's key is, and what each is. */
enum sba_key_place { SBA_KEY_ENV, SBA_KEY_FILE, SBA_KEY_COMMAND, SBA_KEY_PLACES };
extern const char *const sba_key_settings[SBA_KEY_PLACES];

/* ---- value.c: errors say what is wrong, not where ---- */

/* What a value of the setting looks like: "a size (as in 512m, 2g)". */
const char *sba_setting_wants(const struct sba_setting *s, char *buf, size_t size);
int sba_value_from_text(const struct sba_config *c, struct sba_entry *e, const char *text,
			struct sba_error *err) SBA_MUST_CHECK;
int sba_value_from_json(const struct sba_config *c, struct sba_entry *e, const json_t *j,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- entries (config.c) ---- */

/* An entry without a value yet. NULL when out of memory. */
struct sba_entry *sba_entry_new(const struct sba_setting *s, enum sba_section section,
				const char *name, enum sba_config_source source,
				const char *origin);
void sba_entry_free(struct sba_entry *e);
int sba_entry_add(struct sba_config *c, struct sba_entry *take_e,
		  struct sba_error *err) SBA_MUST_CHECK;
/* NULL: that place has no such setting. */
const struct sba_entry *sba_entry_find(const struct sba_config *c, const char *key,
				       enum sba_config_source source, enum sba_section section,
				       const char *name);

/* ---- file.c ---- */

/* All that the text of a file says, into c. */
int sba_config_parse(struct sba_config *c, const struct sba_config_options *o, const char *text,
		     size_t len, struct sba_error *err) SBA_MUST_CHECK;

#endif
