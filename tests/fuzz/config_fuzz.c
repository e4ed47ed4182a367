/* SPDX-License-Identifier: MIT */
/* The text of a configuration file, and the last line of it as the value of every
 * variable: what is taken can be asked for, and is what a second reading says. */
#include <sandbox-agent/config.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *last_line(void *user, const char *name)
{
	return !strncmp(name, "SANDBOX_AGENT_", 14) ? user : NULL;
}

static void check_value(const struct sba_config *c, const struct sba_config *again,
			const struct sba_setting *s, const struct sba_config_scope *scope)
{
	struct sba_config_value v, w;
	if (!sba_config_get(c, s->key, scope, &v)) {
		assert(!v.text && v.setting == s);
		return;
	}
	assert(v.text && v.origin && v.number >= 0);
	assert(sba_config_get(again, s->key, scope, &w));
	assert(!strcmp(v.text, w.text) && v.number == w.number);
}

static void check(const struct sba_config *c, const struct sba_config *again)
{
	const struct sba_setting *s;
	struct sba_config_key key;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		check_value(c, again, s, NULL);
		for (const char *const *n = sba_config_names(c, "agents"); *n; n++)
			check_value(c, again, s, &(struct sba_config_scope){ .agent = *n });
		for (const char *const *n = sba_config_names(c, "pool"); *n; n++)
			check_value(c, again, s, &(struct sba_config_scope){ .pool = *n });
	}
	if (sba_config_key(c, NULL, &key))
		assert(!key.env + !key.file + !key.command == 2);
}

static void read_text(const char *text, size_t len)
{
	const struct sba_config_options o = { .text = text, .text_len = len };
	struct sba_config *c = NULL, *again = NULL;
	struct sba_error err = { 0 };
	int rc = sba_config_load(&o, &c, &err);
	assert(rc == 0 || (rc == SBA_ECONFIG && !c && err.text[0]));
	if (rc == 0) {
		assert(sba_config_load(&o, &again, &err) == 0);
		check(c, again);
	}
	sba_config_free(c);
	sba_config_free(again);
}

static void read_variables(char *value)
{
	const struct sba_setting *s;
	struct sba_config *c = NULL;
	struct sba_error err;
	for (size_t i = 0; (s = sba_setting_at(i)); i++) {
		const struct sba_config_options none = { .text = "{}", .text_len = 2 };
		assert(sba_config_load(&none, &c, &err) == 0);
		int rc = sba_config_set(c, s->key, value, "here", &err);
		assert(rc == 0 || rc == SBA_ECONFIG || rc == SBA_EINVAL);
		if (rc == 0)
			check_value(c, c, s, NULL);
		sba_config_free(c);
		c = NULL;
	}
	const struct sba_config_options o = {
		.text = "{}", .text_len = 2, .getenv_fn = last_line, .user = value
	};
	if (sba_config_load(&o, &c, &err) == 0)
		sba_config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	char *line = memrchr(text, '\n', size);
	read_text(text, size);
	if (line && size < 4096)
		read_variables(line + 1);
	free(text);
	return 0;
}
