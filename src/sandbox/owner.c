/* SPDX-License-Identifier: MIT */
/*
 * Users inside by name: looked up in the sandbox's own passwd and group, which
 * may lie, but only about its own files.
 */
#include <string.h>

#include "base/limits.h"
#include "sandbox/files.h"

enum { ACCOUNTS_MAX = SBA_MIB, FIELD_MAX = 64, FIELDS = 4 };

/* The first fields of a line "name:x:id:…". */
static const char *take_line(const char *line, char fields[FIELDS][FIELD_MAX])
{
	const char *at = line;
	for (int i = 0; i < FIELDS; i++) {
		size_t len = strcspn(at, ":\n");
		snprintf(fields[i], FIELD_MAX, "%.*s", (int)(len < FIELD_MAX ? len : FIELD_MAX),
			 at);
		at += len + (at[len] == ':');
	}
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

/* The line whose name, or third field, is `who`; its third and fourth field. */
static bool find(const char *text, const char *who, int64_t *id, int64_t *gid)
{
	while (*text) {
		char fields[FIELDS][FIELD_MAX] = { { 0 } };
		text = take_line(text, fields);
		if (strcmp(fields[0], who) != 0 && strcmp(fields[2], who) != 0)
			continue;
		if (sba_parse_int(fields[2], 0, UINT32_MAX, id) == 0 &&
		    (!gid || sba_parse_int(fields[3], 0, UINT32_MAX, gid) == 0))
			return true;
	}
	return false;
}

static int look_up(struct sba_sandbox *s, const char *file, const char *who, int64_t *id,
		   int64_t *gid, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(ACCOUNTS_MAX);
	bool numeric = sba_parse_int(who, 0, UINT32_MAX, id) == 0;
	/* A number needs the file only for the group that goes with it; root's is 0. */
	if (numeric && (!gid || *id == 0)) {
		if (gid)
			*gid = 0;
		return 0;
	}
	if (sba_sandbox_read_small(s, file, ACCOUNTS_MAX, &text, NULL) == 0 &&
	    find(text.data ? text.data : "", who, id, gid))
		return 0;
	if (!numeric)
		return sba_fail(err, SBA_ENOTFOUND, "'%s' is not in the sandbox's %s", who, file);
	if (gid)
		*gid = 0;
	return 0;
}

int sba_sandbox_ids(struct sba_sandbox *s, const char *owner, uint32_t *uid, uint32_t *gid,
		    struct sba_error *err)
{
	char user[2 * FIELD_MAX];
	int64_t u = 0, g = 0;
	if (strlen(owner) >= sizeof(user) || owner[0] == ':' || !*owner)
		return sba_fail(err, SBA_EINVAL, "owner '%.80s': as in USER[:GROUP]", owner);
	snprintf(user, sizeof(user), "%s", owner);
	char *group = strchr(user, ':');
	if (group)
		*group++ = '\0';
	int rc = look_up(s, "/etc/passwd", user, &u, group && *group ? NULL : &g, err);
	if (rc == 0 && group && *group)
		rc = look_up(s, "/etc/group", group, &g, NULL, err);
	if (rc < 0)
		return rc;
	*uid = (uint32_t)u;
	*gid = (uint32_t)g;
	return 0;
}

static int user_of(struct sba_sandbox *s, char ret[128], struct sba_error *err)
{
	if (*s->info.user) {
		snprintf(ret, 128, "%s", s->info.user);
		return 0;
	}
	SBA_JSON json_t *j = NULL;
	int rc = sba_container_inspect(s->engine, s->container, sba_small_until(s), &j, err);
	if (rc < 0)
		return rc;
	const char *user = sba_json_str(j, "Config.User");
	snprintf(ret, 128, "%s", user && *user ? user : "0:0");
	return 0;
}

int sba_sandbox_owner(struct sba_sandbox *s, uint32_t *uid, uint32_t *gid, struct sba_error *err)
{
	char user[128];
	int rc = user_of(s, user, err);
	return rc < 0 ? rc : sba_sandbox_ids(s, user, uid, gid, err);
}
