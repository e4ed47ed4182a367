/* SPDX-License-Identifier: MIT */
/*
 * dsh's sessions: ~/.dsh/sessions/--DIRECTORY--/ID/session.jsonl, one event a
 * line as our runner has it write them. The first line says where its tools
 * run, and must agree with the folder's name (0.1.0-rc.8).
 */
#include <string.h>

#include "drivers/store_files.h"

static bool id_of(const char *path, char ret[SBA_SESSION_ID_MAX + 1])
{
	const char *folder = strchr(path, '/');
	const char *end = folder ? strchr(++folder, '/') : NULL;
	if (!end || strcmp(end, "/session.jsonl") != 0 || end == folder ||
	    end - folder > SBA_SESSION_ID_MAX)
		return false;
	snprintf(ret, SBA_SESSION_ID_MAX + 1, "%.*s", (int)(end - folder), folder);
	return true;
}

static void put_path(struct sba_buf *b, const char *id, const char *workdir)
{
	sba_kept_put_folder(b, workdir);
	sba_buf_printf(b, "%s/session.jsonl", id);
}

static bool rehead(json_t *line, const char *id, const char *workdir)
{
	const char *type = sba_json_str(line, "type");
	if ((type && strcmp(type, "session") != 0) || !json_object_get(line, "createdAt"))
		return false;
	return json_object_set_new(line, "id", json_string(id)) == 0 &&
	       json_object_set_new(line, "cwd", json_string(workdir)) == 0;
}

static void look(struct sba_kept *k, const json_t *line)
{
	const char *type = sba_json_str(line, "type");
	if (json_object_get(line, "createdAt")) {
		k->created_ms = sba_json_int(line, "createdAt", 0);
		sba_kept_set(&k->workdir, sba_json_str(line, "cwd"));
	}
	if (!type)
		return;
	if (strcmp(type, "user/message") == 0)
		sba_kept_title(k, sba_kept_text(sba_json_get(line, "data.content")));
	else if (strcmp(type, "assistant/message") == 0)
		sba_kept_set(&k->model, sba_json_str(line, "data.message.source.model"));
}

static const struct sba_file_store files = {
	.cli = "dsh",
	.root = ".dsh/sessions",
	.id_of = id_of,
	.put_path = put_path,
	.rehead = rehead,
	.look = look,
	.scratch_path = put_path,
	.own_folder = true,
};

const struct sba_store sba_dsh_store = {
	.id_prefix = "session-",
	.list = sba_files_list,
	.dump = sba_files_dump,
	.load = sba_files_load,
	.remove = sba_files_remove,
	.aside = sba_files_aside,
	.files = &files,
};
