/* SPDX-License-Identifier: MIT */
/*
 * Claude Code's sessions: ~/.claude/projects/DIRECTORY/UUID.jsonl. The file's
 * name is the session's id, whatever its lines say (2.1.332).
 */
#include <string.h>

#include "drivers/store_files.h"

static bool id_of(const char *path, char ret[SBA_SESSION_ID_MAX + 1])
{
	const char *name = strchr(path, '/');
	size_t len = name ? strlen(++name) : 0;
	/* Deeper ones are a subagent's. */
	if (len <= strlen(".jsonl") || strchr(name, '/'))
		return false;
	len -= strlen(".jsonl");
	if (len > SBA_SESSION_ID_MAX)
		return false;
	snprintf(ret, SBA_SESSION_ID_MAX + 1, "%.*s", (int)len, name);
	return true;
}

static void put_path(struct sba_buf *b, const char *id, const char *workdir)
{
	sba_kept_mangle(b, workdir);
	sba_buf_printf(b, "/%s.jsonl", id);
}

/* What the CLI itself says in the model's place, of an error, is "<synthetic>". */
static void set_model(struct sba_kept *k, const char *model)
{
	if (model && model[0] != '<')
		sba_kept_set(&k->model, model);
}

static void look(struct sba_kept *k, const json_t *line)
{
	const char *type = sba_json_str(line, "type");
	if (!k->created_ms)
		k->created_ms = sba_kept_time(sba_json_str(line, "timestamp"));
	sba_kept_set(&k->workdir, sba_json_str(line, "cwd"));
	if (!type || sba_json_bool(line, "isMeta", false) ||
	    sba_json_bool(line, "isSidechain", false))
		return;
	if (strcmp(type, "user") == 0)
		sba_kept_title(k, sba_kept_text(sba_json_get(line, "message.content")));
	else if (strcmp(type, "assistant") == 0)
		set_model(k, sba_json_str(line, "message.model"));
}

static const struct sba_file_store files = {
	.cli = "claude",
	.root = ".claude/projects",
	.id_of = id_of,
	.put_path = put_path,
	.look = look,
};

const struct sba_store sba_claude_store = {
	.id_prefix = "",
	.list = sba_files_list,
	.dump = sba_files_dump,
	.load = sba_files_load,
	.remove = sba_files_remove,
	.files = &files,
};
