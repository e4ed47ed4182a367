/* SPDX-License-Identifier: MIT */
/*
 * Codex's sessions: ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl. The
 * databases beside them are an index that it makes anew. The file of a fork
 * holds only what is its own, so that a dump takes its parents along (0.171).
 */
#include <string.h>
#include <time.h>

#include "drivers/drivers.h"
#include "drivers/store_files.h"

enum { PARENTS_MAX = 32 };

static bool id_of(const char *path, char ret[SBA_SESSION_ID_MAX + 1])
{
	static const char head[] = "rollout-YYYY-MM-DDTHH-MM-SS-";
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t len = strlen(name), around = strlen(head) + strlen(".jsonl");
	if (!sba_starts_with(name, "rollout-") || len <= around ||
	    len - around > SBA_SESSION_ID_MAX)
		return false;
	snprintf(ret, SBA_SESSION_ID_MAX + 1, "%.*s", (int)(len - around), name + strlen(head));
	return true;
}

static void put_path(struct sba_buf *b, const char *id, const char *workdir)
{
	char text[64] = "";
	time_t now = (time_t)(sba_unix_ms() / 1000);
	struct tm tm;
	(void)workdir;
	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S", &tm);
	sba_buf_printf(b, "%s-%s.jsonl", text, id);
}

static bool rehead(json_t *line, const char *id, const char *workdir)
{
	const char *type = sba_json_str(line, "type");
	json_t *payload = json_object_get(line, "payload");
	if (!type || strcmp(type, "session_meta") != 0 || !json_is_object(payload))
		return false;
	if (json_object_get(payload, "session_id"))
		json_object_set_new(payload, "session_id", json_string(id));
	json_object_set_new(payload, "cwd", json_string(workdir));
	return json_object_set_new(payload, "id", json_string(id)) == 0;
}

static void look(struct sba_kept *k, const json_t *line)
{
	const char *type = sba_json_str(line, "type");
	const json_t *payload = json_object_get(line, "payload");
	if (!type)
		return;
	if (strcmp(type, "session_meta") == 0) {
		k->created_ms = sba_kept_time(sba_json_str(line, "timestamp"));
		sba_kept_set(&k->workdir, sba_json_str(payload, "cwd"));
		sba_kept_set(&k->parent, sba_json_str(payload, "forked_from_id"));
	} else if (strcmp(type, "turn_context") == 0) {
		sba_kept_set(&k->model, sba_json_str(payload, "model"));
	} else if (strcmp(type, "event_msg") == 0) {
		const char *what = sba_json_str(payload, "type");
		const char *item = sba_json_str(payload, "item.type");
		if (what && strcmp(what, "user_message") == 0)
			sba_kept_title(k, sba_json_str(payload, "message"));
		else if (item && strcmp(item, "UserMessage") == 0)
			sba_kept_title(k, sba_kept_text(sba_json_get(payload, "item.content")));
	}
}

static const struct sba_file_store files = {
	.cli = "codex",
	.root = ".codex/sessions",
	.id_of = id_of,
	.put_path = put_path,
	.rehead = rehead,
	.look = look,
	.keeps_path = true,
};

/* NULL: its name does not say one. */
static const char *parent_id(const struct sba_part *part)
{
	const char *colon = strchr(part->name, ':');
	return colon && sba_session_id_valid(colon + 1) ? colon + 1 : NULL;
}

static json_t *head_of(const struct sba_part *part)
{
	json_t *line = NULL;
	bool whole = sba_json_parse(part->data, sba_part_head(part), "line", &line, NULL) == 0;
	return whole ? line : NULL;
}

static int dump(const struct sba_store *st, const struct sba_inside *in, const char *id,
		struct sba_parts *ret, struct sba_error *err)
{
	struct sba_parts p = { 0 };
	int rc = sba_files_dump(st, in, id, &p, err);
	while (rc == 0 && p.n < PARENTS_MAX) {
		SBA_JSON json_t *head = head_of(&p.v[p.n - 1]);
		const char *parent = sba_json_str(head, "payload.forked_from_id");
		if (!parent || !sba_session_id_valid(parent))
			break;
		rc = sba_files_dump(st, in, parent, &p, err);
	}
	if (rc < 0) {
		sba_parts_fini(&p);
		return rc;
	}
	*ret = p;
	return 0;
}

/* All of them before any is put in. */
static int check_parts(const struct sba_parts *parts, struct sba_error *err)
{
	for (size_t i = 0; i < parts->n; i++) {
		SBA_JSON json_t *head = head_of(&parts->v[i]);
		const char *type = sba_json_str(head, "type");
		if (!type || strcmp(type, "session_meta") != 0 ||
		    !json_is_object(json_object_get(head, "payload")))
			return sba_fail(err, SBA_EPROTO, "this is no session of codex");
		if (i > 0 && !parent_id(&parts->v[i]))
			return sba_fail(err, SBA_EPROTO, "a part of the dump has no session's id");
	}
	return 0;
}

static int load(const struct sba_store *st, const struct sba_inside *in,
		const struct sba_parts *parts, const char *was, const char *id,
		struct sba_error *err)
{
	int rc = check_parts(parts, err);
	(void)was;
	/* The parents first: what is half loaded is not yet a session that lacks one. */
	for (size_t i = parts->n; rc == 0 && i-- > 0;)
		rc = sba_files_load_part(st->files, in, &parts->v[i],
					 i == 0 ? id : parent_id(&parts->v[i]), err);
	return rc;
}

/* Without it, those that were forked from it by codex itself could be neither resumed
 * nor dumped: their files hold only what is their own. */
static int check_forks(const struct sba_store *st, const struct sba_inside *in, const char *id,
		       struct sba_error *err)
{
	struct sba_kept_list l = { 0 };
	int rc = sba_files_list(st, in, &l, err);
	for (size_t i = 0; rc == 0 && i < l.n; i++) {
		if (strcmp(l.v[i].parent, id) == 0)
			rc = sba_hint(err,
				      sba_fail(err, SBA_EREFUSED,
					       "session '%s' was forked from it, and codex keeps "
					       "their common past in '%s' alone",
					       l.v[i].id, id),
				      "remove that one first");
	}
	sba_kept_list_fini(&l);
	return rc;
}

static int remove_session(const struct sba_store *st, const struct sba_inside *in, const char *id,
			  struct sba_error *err)
{
	int rc = check_forks(st, in, id, err);
	return rc == 0 ? sba_files_remove(st, in, id, err) : rc;
}

const struct sba_store sba_codex_store = {
	.id_prefix = "",
	.list = sba_files_list,
	.dump = dump,
	.load = load,
	.remove = remove_session,
	.files = &files,
};
