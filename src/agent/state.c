/* SPDX-License-Identifier: MIT */
/*
 * The little that changes about an agent: its main session and the number of
 * turns, in a root-owned file inside, so that any later process finds it. What
 * is read back is hostile input all the same.
 */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "channel/protocol.h"

enum { TURNS_MAX = 1 << 30 };

#define STATE_PATH SBA_STATE_DIR "/" SBA_STATE_NAME

static int parse(struct sba_agent *a, const struct sba_buf *text, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(text->data ? text->data : "", text->len, STATE_PATH, &j, err);
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
	const char *files = sba_json_str(j, "files"), *kept = sba_json_str(j, "kept");
	if (files && strlen(files) < sizeof(a->files))
		memcpy(a->files, files, strlen(files) + 1);
	free(a->kept);
	a->kept = NULL;
	if (kept && strlen(kept) <= SBA_KEPT_MAX && !(a->kept = strdup(kept)))
		return sba_fail_nomem(err);
	int64_t turns = sba_json_int(j, "turns", 0);
	a->turns = turns > 0 && turns < TURNS_MAX ? turns : 0;
	return 0;
}

int sba_agent_load_state(struct sba_agent *a, struct sba_error *err)
{
	if (a->state_known)
		return 0;
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_STATE_MAX);
	struct sba_error why = { 0 };
	int rc = sba_sandbox_read_small(a->sandbox, STATE_PATH, SBA_STATE_MAX, &text, &why);
	if (rc == 0)
		rc = parse(a, &text, &why);
	if (rc < 0 && rc != SBA_ENOTFOUND) {
		if (err)
			*err = why;
		return rc;
	}
	a->state_known = true;
	return 0;
}

static int write_state(struct sba_agent *a, const char *session, int64_t turns, const char *kept,
		       struct sba_error *err)
{
	SBA_JSON json_t *j = json_pack("{s:i, s:s, s:s, s:I, s:s, s:s*}", "v", 1, "agent",
				       a->driver->name, "session", session, "turns",
				       (json_int_t)turns, "files", a->files, "kept", kept);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	if (!text)
		return sba_fail_nomem(err);
	return a->one_turn ? 0
			   : sba_sandbox_write_small(a->sandbox, STATE_PATH, text, strlen(text),
						     0644, err);
}

int sba_agent_save_state(struct sba_agent *a, const char *session, struct sba_error *err)
{
	if (!sba_session_id_valid(session))
		return sba_fail(err, SBA_EPROTO, "the CLI gave an impossible session id");
	/* What was kept is the other session's. */
	bool same = strcmp(a->session, session) == 0;
	int rc = write_state(a, session, a->turns + 1, same ? a->kept : NULL, err);
	if (rc < 0)
		return rc;
	if (!same) {
		free(a->kept);
		a->kept = NULL;
	}
	snprintf(a->session, sizeof(a->session), "%s", session);
	a->turns++;
	a->state_known = true;
	return 0;
}

int sba_agent_set_session(struct sba_agent *a, const char *session, const char *kept,
			  struct sba_error *err)
{
	SBA_FREE char *copy = kept ? strdup(kept) : NULL;
	if (kept && !copy)
		return sba_fail_nomem(err);
	int rc = write_state(a, session, a->turns, copy, err);
	if (rc < 0)
		return rc;
	snprintf(a->session, sizeof(a->session), "%s", session);
	free(a->kept);
	a->kept = sba_move(&copy);
	return 0;
}

int sba_agent_save_kept(struct sba_agent *a, const char *kept, struct sba_error *err)
{
	if (!kept || !a->session[0] || (a->kept && strcmp(a->kept, kept) == 0))
		return 0;
	SBA_FREE char *copy = strdup(kept);
	int rc = copy ? write_state(a, a->session, a->turns, kept, err) : sba_fail_nomem(err);
	if (rc < 0)
		return rc;
	free(a->kept);
	a->kept = sba_move(&copy);
	return 0;
}
