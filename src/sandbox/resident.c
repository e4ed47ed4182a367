/* SPDX-License-Identifier: MIT */
/*
 * An agent that moved into a sandbox which was made without one. Labels never
 * change, so it is a file of root's inside, which comes along in a fork. Where the
 * sandbox runs as root it is the agent's own to write: nothing in it says where a
 * key goes, or what may be spent.
 */
#include <string.h>

#include "base/limits.h"
#include "sandbox/session.h"

#define RESIDENT_PATH "/etc/sandbox-agent/agent.json"

enum { RESIDENT_MAX = 64 * SBA_KIB, WORD_LEN_MAX = 4096 };

static const char *const keys[] = { "agent", "provider", "permissions", "mcp", "program" };

static int program_text(const char *const *program, char **ret, struct sba_error *err)
{
	SBA_JSON json_t *list = json_array();
	for (; program && *program; program++)
		json_array_append_new(list, json_string(*program));
	*ret = json_array_size(list) ? sba_json_dump(list) : strdup("");
	return *ret ? 0 : sba_fail_nomem(err);
}

int sba_sandbox_set_agent(struct sba_sandbox *s, const struct sba_sandbox_options *o,
			  struct sba_error *err)
{
	SBA_FREE char *program = NULL;
	int rc = program_text(o->program, &program, err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *j = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "v", 1, "agent", o->agent,
				       "provider", o->provider ? o->provider : "", "permissions",
				       o->permissions ? o->permissions : "", "mcp",
				       o->mcp ? o->mcp : "", "program", program);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	if (!text)
		return sba_fail(err, SBA_EINVAL, "agent: not valid UTF-8");
	rc = sba_sandbox_write_small(s, RESIDENT_PATH, text, strlen(text), 0644, err);
	return rc < 0 ? rc : sba_sandbox_find_agent(s, err);
}

/* True for what may stand in a message and in a label. */
static bool value_ok(const char *key, const char *value)
{
	for (const char *p = value; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7F)
			return false;
	}
	if (strcmp(key, "provider") == 0)
		return !*value || strcmp(value, "scripted") == 0;
	return strlen(value) <= WORD_LEN_MAX || strcmp(key, "program") == 0;
}

static int check(const json_t *j, struct sba_error *err)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(keys); i++) {
		const char *value = sba_json_str(j, keys[i]);
		if (!value || !value_ok(keys[i], value))
			return sba_fail(err, SBA_EPROTO, "%s: not what this version writes",
					RESIDENT_PATH);
	}
	return 0;
}

/* An entry of a list has no session, and one thread alone. */
static void lock(struct sba_sandbox *s)
{
	if (s->session)
		pthread_mutex_lock(&s->session->lock);
}

static void unlock(struct sba_sandbox *s)
{
	if (s->session)
		pthread_mutex_unlock(&s->session->lock);
}

/* Two threads may have looked at once: the first one's stays, since its strings are lent. */
static void take_in(struct sba_sandbox *s, const json_t *j)
{
	struct sba_sandbox_info *i = &s->info;
	lock(s);
	if (!s->resident) {
		s->resident = json_incref((json_t *)(uintptr_t)j);
		i->provider = sba_json_str(j, "provider");
		i->permissions = sba_json_str(j, "permissions");
		i->mcp = sba_json_str(j, "mcp");
		i->program = sba_json_str(j, "program");
		i->agent = sba_json_str(j, "agent");
	}
	unlock(s);
}

static bool is_known(struct sba_sandbox *s)
{
	lock(s);
	bool known = *s->info.agent;
	unlock(s);
	return known;
}

int sba_sandbox_find_agent(struct sba_sandbox *s, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(RESIDENT_MAX);
	SBA_JSON json_t *j = NULL;
	struct sba_error why = { 0 };
	if (is_known(s))
		return 0;
	int rc = sba_sandbox_read_small(s, RESIDENT_PATH, RESIDENT_MAX, &text, &why);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc == 0)
		rc = sba_json_parse(text.data ? text.data : "", text.len, RESIDENT_PATH, &j, &why);
	if (rc == 0)
		rc = check(j, &why);
	if (rc == 0)
		take_in(s, j);
	if (rc < 0 && rc != SBA_EBROKEN)
		return sba_fail(err, rc, "sandbox '%s': %s", s->info.name, why.text);
	if (rc < 0 && err)
		*err = why; /* which names it */
	return rc;
}
