/* SPDX-License-Identifier: MIT */
/*
 * pi's sessions: ~/.pi/agent/sessions/--DIRECTORY--/TIME_ID.jsonl. Its first
 * line says where its tools run, whatever the process's directory is (1.6.0).
 */
#include <string.h>
#include <time.h>

#include "drivers/store_files.h"

static bool id_of(const char *path, char ret[SBA_SESSION_ID_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	const char *id = strchr(slash ? slash + 1 : path, '_');
	size_t len = id ? strlen(++id) : 0;
	if (len <= strlen(".jsonl") || len - strlen(".jsonl") > SBA_SESSION_ID_MAX)
		return false;
	snprintf(ret, SBA_SESSION_ID_MAX + 1, "%.*s", (int)(len - strlen(".jsonl")), id);
	return true;
}

static void put_name(struct sba_buf *b, const char *id, const char *workdir)
{
	(void)workdir;
	char text[64] = "";
	time_t now = (time_t)(sba_unix_ms() / 1000);
	struct tm tm;
	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H-%M-%S-000Z", &tm);
	sba_buf_printf(b, "%s_%s.jsonl", text, id);
}

static void put_path(struct sba_buf *b, const char *id, const char *workdir)
{
	sba_kept_put_folder(b, workdir);
	put_name(b, id, workdir);
}

static bool rehead(json_t *line, const char *id, const char *workdir)
{
	const char *type = sba_json_str(line, "type");
	if (!type || strcmp(type, "session") != 0)
		return false;
	/* A path on the machine that it came from. */
	json_object_del(line, "parentSession");
	return json_object_set_new(line, "id", json_string(id)) == 0 &&
	       json_object_set_new(line, "cwd", json_string(workdir)) == 0;
}

static void look(struct sba_kept *k, const json_t *line)
{
	const char *type = sba_json_str(line, "type");
	const char *role = sba_json_str(line, "message.role");
	char parent[SBA_SESSION_ID_MAX + 1];
	if (type && strcmp(type, "session") == 0) {
		const char *from = sba_json_str(line, "parentSession");
		k->created_ms = sba_kept_time(sba_json_str(line, "timestamp"));
		sba_kept_set(&k->workdir, sba_json_str(line, "cwd"));
		if (from && id_of(from, parent))
			sba_kept_set(&k->parent, parent);
	} else if (role && strcmp(role, "user") == 0) {
		sba_kept_title(k, sba_kept_text(sba_json_get(line, "message.content")));
	} else if (role && strcmp(role, "assistant") == 0) {
		sba_kept_set(&k->model, sba_json_str(line, "message.model"));
	}
}

static const struct sba_file_store files = {
	.cli = "pi",
	.root = ".pi/agent/sessions",
	.id_of = id_of,
	.put_path = put_path,
	.rehead = rehead,
	.look = look,
	.scratch_path = put_name,
};

const struct sba_store sba_pi_store = {
	.id_prefix = "",
	.list = sba_files_list,
	.dump = sba_files_dump,
	.load = sba_files_load,
	.remove = sba_files_remove,
	.aside = sba_files_aside,
	.files = &files,
};
