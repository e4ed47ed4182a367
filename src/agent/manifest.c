/* SPDX-License-Identifier: MIT */
/* The first entry of a dump, which says what the others are. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/dump.h"

#define PARENT "parent:"

void sba_manifest_fini(struct sba_manifest *m)
{
	free(m->memory.kept);
	m->memory.kept = NULL;
}

/* ---- made ---- */

static json_t *entry_json(const char *name, uint64_t size, const char *sha256)
{
	return json_pack("{s:s, s:I, s:s}", "name", name, "bytes", (json_int_t)size, "sha256",
			 sha256);
}

static int add_parts(json_t *j, const struct sba_parts *parts, struct sba_error *err)
{
	json_t *list = json_array(), *parents = json_array();
	char hash[SBA_SHA256_HEX];
	for (size_t i = 0; i < parts->n; i++) {
		const struct sba_part *p = &parts->v[i];
		if (sba_sha256_hex(p->data, p->len, hash) < 0)
			break;
		json_array_append_new(list, entry_json(p->name, p->len, hash));
		if (sba_starts_with(p->name, PARENT))
			json_array_append_new(parents, json_string(p->name + strlen(PARENT)));
	}
	bool all = json_array_size(list) == parts->n;
	json_object_set_new(j, "parents", parents);
	return json_object_set_new(j, "parts", list) == 0 && all ? 0 : sba_fail_nomem(err);
}

static int add_workspace(json_t *j, const struct sba_dump *d, struct sba_error *err)
{
	char hash[SBA_SHA256_HEX];
	if (d->workspace_fd < 0)
		return 0;
	int rc = sba_dump_hash(d->workspace_fd, d->workspace_size, hash, err);
	if (rc < 0)
		return rc;
	json_t *w = entry_json(SBA_DUMP_WORKSPACE, d->workspace_size, hash);
	json_object_set_new(w, "files", json_integer((json_int_t)d->info.files));
	json_object_set_new(w, "left_out", json_integer((json_int_t)d->info.left_out));
	return json_object_set_new(j, "workspace", w) == 0 ? 0 : sba_fail_nomem(err);
}

int sba_manifest_make(const struct sba_dump *d, char **ret, struct sba_error *err)
{
	const struct sba_dump_info *i = &d->info;
	SBA_JSON json_t *j = json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "format", SBA_DUMP_FORMAT, "v",
		SBA_DUMP_VERSION, "agent", i->agent, "cli_version", i->cli_version, "image",
		i->image, "session", i->session, "workdir", i->workdir, "created_ms",
		(json_int_t)i->created_ms, "memory", sba_memory_json(&d->memory));
	if (!j)
		return sba_fail_nomem(err);
	int rc = add_parts(j, &d->parts, err);
	if (rc == 0)
		rc = add_workspace(j, d, err);
	if (rc < 0)
		return rc;
	*ret = json_dumps(j, JSON_INDENT(1));
	return *ret ? 0 : sba_fail_nomem(err);
}

/* ---- read ---- */

static int damaged(struct sba_error *err, const char *what)
{
	return sba_fail(err, SBA_EREFUSED, "the dump is damaged: its manifest has no %s", what);
}

static int take_text(const json_t *j, const char *key, char *ret, size_t size,
		     struct sba_error *err)
{
	const char *text = sba_json_str(j, key);
	if (!text || strlen(text) >= size)
		return damaged(err, key);
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

static bool is_hash(const char *s)
{
	size_t n = 0;
	while (isdigit((unsigned char)s[n]) || (s[n] >= 'a' && s[n] <= 'f'))
		n++;
	return n == SBA_SHA256_HEX - 1 && s[n] == '\0';
}

static int take_entry(struct sba_manifest *m, const json_t *j, uint64_t max, struct sba_error *err)
{
	struct sba_dump_entry *e = &m->entries[m->n];
	int64_t size = sba_json_int(j, "bytes", -1);
	int rc = take_text(j, "name", e->name, sizeof(e->name), err);
	if (rc == 0)
		rc = take_text(j, "sha256", e->sha256, sizeof(e->sha256), err);
	if (rc == 0 && !is_hash(e->sha256))
		rc = damaged(err, "sha256");
	if (rc == 0 && size < 0)
		rc = damaged(err, "bytes");
	if (rc == 0 && (uint64_t)size > max)
		rc = sba_fail(err, SBA_EREFUSED, "'%s' of the dump is too large: %lld bytes",
			      e->name, (long long)size);
	if (rc < 0)
		return rc;
	e->size = (uint64_t)size;
	m->n++;
	return 0;
}

static bool part_name_ok(const struct sba_manifest *m, size_t i)
{
	const char *name = m->entries[i].name;
	if (i == 0)
		return strcmp(name, "session") == 0;
	for (size_t k = 0; k < i; k++) {
		if (strcmp(m->entries[k].name, name) == 0)
			return false;
	}
	return sba_starts_with(name, PARENT) && sba_session_id_valid(name + strlen(PARENT));
}

static int take_parts(struct sba_manifest *m, const json_t *list, struct sba_error *err)
{
	size_t i, n = json_array_size(list);
	const json_t *j;
	int rc = 0;
	if (n == 0)
		return damaged(err, "parts");
	if (n > SBA_PARTS_MAX)
		return sba_fail(err, SBA_EREFUSED, "the dump has %zu parts, more than %d", n,
				SBA_PARTS_MAX);
	json_array_foreach(list, i, j)
	{
		if (rc == 0)
			rc = take_entry(m, j, SBA_SESSION_MAX, err);
		if (rc == 0 && !part_name_ok(m, i))
			rc = sba_fail(err, SBA_EREFUSED,
				      "the dump is damaged: '%s' is no name of a part",
				      m->entries[i].name);
		if (rc == 0)
			m->info.bytes += m->entries[i].size;
	}
	if (rc == 0 && m->info.bytes > SBA_SESSION_MAX)
		rc = sba_fail(err, SBA_EREFUSED, "the dump's session is too large: %llu bytes",
			      (unsigned long long)m->info.bytes);
	m->info.parts = n;
	return rc;
}

static int take_workspace(struct sba_manifest *m, const json_t *j, struct sba_error *err)
{
	int rc = j ? take_entry(m, j, INT64_MAX, err) : 0;
	if (rc < 0 || !j)
		return rc;
	int64_t left_out = sba_json_int(j, "left_out", 0);
	m->info.workspace = true;
	m->info.left_out = left_out > 0 ? (uint64_t)left_out : 0;
	if (strcmp(m->entries[m->n - 1].name, SBA_DUMP_WORKSPACE) != 0)
		return damaged(err, "workspace");
	return 0;
}

/* What it is, before anything else of it is believed. */
static int check_kind(const json_t *j, const char *agent, struct sba_error *err)
{
	const char *format = sba_json_str(j, "format"), *of = sba_json_str(j, "agent");
	int64_t v = sba_json_int(j, "v", 0);
	if (!format || strcmp(format, SBA_DUMP_FORMAT) != 0 || v < 1)
		return sba_fail(err, SBA_EREFUSED, "this is no dump of a session");
	if (v > SBA_DUMP_VERSION)
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED,
					 "the dump's format is %lld, and %d is the newest that is "
					 "known here",
					 (long long)v, SBA_DUMP_VERSION),
				"it was made by a newer sandbox-agent");
	if (of && agent && strcmp(of, agent) != 0)
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED,
					 "the dump is of %.60s, and the agent here is %s", of,
					 agent),
				"the CLIs do not read each other's sessions");
	return 0;
}

static int take_all(struct sba_manifest *m, const json_t *j, struct sba_error *err)
{
	struct sba_dump_info *i = &m->info;
	int rc = take_text(j, "agent", i->agent, sizeof(i->agent), err);
	if (rc == 0)
		rc = take_text(j, "cli_version", i->cli_version, sizeof(i->cli_version), err);
	if (rc == 0)
		rc = take_text(j, "image", i->image, sizeof(i->image), err);
	if (rc == 0)
		rc = take_text(j, "session", i->session, sizeof(i->session), err);
	if (rc == 0 && !sba_session_id_valid(i->session))
		rc = damaged(err, "session");
	if (rc == 0)
		rc = take_text(j, "workdir", i->workdir, sizeof(i->workdir), err);
	if (rc == 0)
		rc = take_parts(m, json_object_get(j, "parts"), err);
	if (rc == 0)
		rc = take_workspace(m, json_object_get(j, "workspace"), err);
	if (rc == 0)
		rc = sba_memory_parse(json_object_get(j, "memory"), &m->memory, err);
	i->created_ms = sba_json_int(j, "created_ms", 0);
	return rc;
}

int sba_manifest_parse(const char *text, size_t len, const char *agent, struct sba_manifest *ret,
		       struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_manifest m = { 0 };
	int rc = sba_json_parse(text, len, "the dump's manifest", &j, err);
	if (rc < 0 && rc != SBA_ENOMEM)
		return sba_fail(err, SBA_EREFUSED, "this is no dump of a session");
	if (rc == 0)
		rc = check_kind(j, agent, err);
	if (rc == 0)
		rc = take_all(&m, j, err);
	if (rc < 0) {
		sba_manifest_fini(&m);
		return rc;
	}
	*ret = m;
	return 0;
}
