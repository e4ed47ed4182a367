/* SPDX-License-Identifier: MIT */
/*
 * The little that changes about an agent: its main session and the number of
 * turns, in a root-owned file inside, so that any later process finds it. What
 * is read back is hostile input all the same.
 */
#include "agent/private.h"

#include <sandbox-agent/files.h>

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "channel/protocol.h"

enum { TURNS_MAX = 1 << 30 };

#define STATE_PATH SBA_STATE_DIR "/" SBA_STATE_NAME

/* ---- what is remembered of sessions ---- */

/* Puts it last: what was not used for longest goes first where there are many. */
static int put_memory(json_t *all, const char *session, const struct sba_memory *m,
		      struct sba_error *err)
{
	json_object_del(all, session);
	if (m && json_object_set_new(all, session, sba_memory_json(m)) < 0)
		return sba_fail_nomem(err);
	while (json_object_size(all) > SBA_REMEMBERED_MAX)
		json_object_del(all, json_object_iter_key(json_object_iter(all)));
	return 0;
}

static int parse_memory(struct sba_agent *a, const json_t *from, struct sba_error *err)
{
	SBA_JSON json_t *all = json_object();
	const char *session;
	json_t *j;
	int rc = all ? 0 : sba_fail_nomem(err);
	/* jansson takes no const, but only reads. */
	json_object_foreach((json_t *)(uintptr_t)from, session, j)
	{
		struct sba_memory m = { 0 };
		if (rc < 0 || !sba_session_id_valid(session))
			continue;
		rc = sba_memory_parse(j, &m, err);
		if (rc == 0)
			rc = put_memory(all, session, &m, err);
		free(m.kept);
	}
	if (rc < 0)
		return rc;
	json_decref(a->memory);
	a->memory = sba_move(&all);
	return 0;
}

int sba_agent_recall(const struct sba_agent *a, const char *session, struct sba_memory *ret,
		     struct sba_error *err)
{
	return sba_memory_parse(json_object_get(a->memory, session), ret, err);
}

/* ---- the file ---- */

int sba_agent_parse_state(struct sba_agent *a, const char *text, size_t len, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(text, len, STATE_PATH, &j, err);
	if (rc < 0)
		return rc;
	const char *session = sba_json_str(j, "session");
	const char *agent = sba_json_str(j, "agent");
	if (sba_json_int(j, "v", 0) != 1 || !session || !agent)
		return sba_hint(
			err,
			sba_fail(err, SBA_EPROTO, "%s: not what this version writes", STATE_PATH),
			"a newer sandbox-agent has written it, or what runs inside: make a "
			"new sandbox");
	if (strcmp(agent, a->driver->name) != 0)
		return sba_hint(
			err,
			sba_fail(err, SBA_EINVAL, "the sandbox's conversation is %s's, not %s's",
				 agent, a->driver->name),
			"make one for %s:  sandbox-agent up %s", a->driver->name, a->driver->name);
	if (*session && !sba_session_id_valid(session))
		return sba_fail(err, SBA_EPROTO, "%s: impossible session id", STATE_PATH);
	snprintf(a->session, sizeof(a->session), "%s", session);
	const char *files = sba_json_str(j, "files");
	if (files && strlen(files) < sizeof(a->files))
		memcpy(a->files, files, strlen(files) + 1);
	rc = parse_memory(a, json_object_get(j, "sessions"), err);
	if (rc < 0)
		return rc;
	int64_t turns = sba_json_int(j, "turns", 0);
	a->turns = turns > 0 && turns < TURNS_MAX ? turns : 0;
	return 0;
}

static int keep_bytes(void *user, const void *data, size_t len, struct sba_error *err)
{
	sba_buf_put(user, data, len);
	return sba_buf_check(user, STATE_PATH, err);
}

/* By the channel, which a turn needs anyway: the engine takes thirty times as long. */
int sba_agent_load_state(struct sba_agent *a, struct sba_error *err)
{
	if (a->state_known)
		return 0;
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_STATE_MAX);
	struct sba_error why = { 0 };
	const char *root = "";
	SBA_FREE char *path = NULL;
	int rc = sba_sandbox_root(a->sandbox, &root, &why);
	if (rc == 0 && asprintf(&path, "%s" STATE_PATH, root) < 0)
		rc = sba_fail_nomem(&why);
	if (rc == 0)
		rc = sba_sandbox_read(a->sandbox, path, 0, keep_bytes, &text, &why);
	if (rc == 0)
		rc = sba_agent_parse_state(a, text.data ? text.data : "", text.len, &why);
	if (rc < 0 && rc != SBA_ENOTFOUND) {
		if (err)
			*err = why;
		return rc;
	}
	a->state_known = true;
	return 0;
}

int sba_agent_write_state(struct sba_sandbox *s, const char *text, struct sba_error *err)
{
	return sba_sandbox_write_small(s, STATE_PATH, text, strlen(text), 0644, err);
}

struct state {
	const char *session;
	int64_t turns;
	const char *of; /* the session that m is of; NULL: what is remembered stays */
	const struct sba_memory *m;
};

/* NULL: out of memory. The caller frees both. */
static char *state_text(const struct sba_agent *a, const struct state *to, json_t **ret_memory)
{
	SBA_JSON json_t *all = a->memory ? json_copy(a->memory) : json_object();
	if (!all || (to->of && put_memory(all, to->of, to->m, NULL) < 0))
		return NULL;
	SBA_JSON json_t *j = json_pack("{s:i, s:s, s:s, s:I, s:s, s:O}", "v", 1, "agent",
				       a->driver->name, "session", to->session, "turns",
				       (json_int_t)to->turns, "files", a->files, "sessions", all);
	char *text = j ? sba_json_dump(j) : NULL;
	if (text)
		*ret_memory = sba_move(&all);
	return text;
}

/* Writes it, and only then believes it. */
static int write_state(struct sba_agent *a, const struct state *to, struct sba_error *err)
{
	SBA_JSON json_t *all = NULL;
	SBA_FREE char *text = state_text(a, to, &all);
	int rc = 0;
	if (!text)
		return sba_fail_nomem(err);
	if (!a->one_turn && !sba_early_save_has(&a->early, text))
		rc = sba_agent_write_state(a->sandbox, text, err);
	if (rc < 0)
		return rc;
	json_decref(a->memory);
	a->memory = sba_move(&all);
	if (to->session != a->session)
		snprintf(a->session, sizeof(a->session), "%s", to->session);
	a->turns = to->turns;
	a->state_known = true;
	return 0;
}

int sba_agent_save_state(struct sba_agent *a, const char *session, const char *kept,
			 struct sba_error *err)
{
	const struct sba_memory m = { .kept = (char *)(uintptr_t)kept };
	if (!sba_session_id_valid(session))
		return sba_fail(err, SBA_EPROTO, "the CLI gave an impossible session id");
	/* That is known there; the count goes with the end of the turn. */
	if (a->state_known && strcmp(session, a->session) == 0) {
		a->turns++;
		return 0;
	}
	return write_state(a, &(struct state){ session, a->turns + 1, kept ? session : NULL, &m },
			   err);
}

int sba_agent_set_session(struct sba_agent *a, const char *session, const struct sba_memory *m,
			  struct sba_error *err)
{
	return write_state(a, &(struct state){ session, a->turns, m ? session : NULL, m }, err);
}

int sba_agent_remember(struct sba_agent *a, const char *session, const struct sba_memory *m,
		       struct sba_error *err)
{
	return write_state(a, &(struct state){ a->session, a->turns, session, m }, err);
}

/* What is remembered of the main session after one more turn; the caller frees .kept. */
static int after_turn(const struct sba_agent *a, const char *kept, const struct sba_usage *usage,
		      struct sba_memory *ret, struct sba_error *err)
{
	int rc = sba_agent_recall(a, a->session, ret, err);
	if (rc < 0)
		return rc;
	ret->turns++;
	sba_usage_add(&ret->usage, usage);
	if (!kept)
		return 0;
	free(ret->kept);
	ret->kept = strdup(kept);
	return ret->kept ? 0 : sba_fail_nomem(err);
}

int sba_agent_save_turn(struct sba_agent *a, const char *kept, const struct sba_usage *usage,
			struct sba_error *err)
{
	struct sba_memory m = { 0 };
	if (!a->session[0])
		return 0;
	int rc = after_turn(a, kept, usage, &m, err);
	if (rc == 0)
		rc = write_state(a, &(struct state){ a->session, a->turns, a->session, &m }, err);
	free(m.kept);
	return rc;
}

void sba_agent_save_early(struct sba_agent *a, int64_t turns, const char *kept,
			  const struct sba_usage *usage)
{
	struct sba_memory m = { 0 };
	SBA_JSON json_t *all = NULL;
	SBA_FREE char *text = NULL;
	if (a->one_turn || !a->session[0])
		return;
	if (after_turn(a, kept, usage, &m, NULL) == 0)
		text = state_text(a, &(struct state){ a->session, turns, a->session, &m }, &all);
	free(m.kept);
	/* Without memory for it now it is written at the end. */
	if (text)
		sba_early_save_begin(&a->early, a->sandbox, sba_move(&text));
}
