/* SPDX-License-Identifier: MIT */
/* Every file below a folder, with its hash. */
#include <sandbox-agent/changes.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/kept.h"

struct sba_snapshot {
	struct sba_records records;
	struct sba_snapshot_file *v;
	char (*hex)[SBA_SHA256_HEX];
	size_t n, left_out;
};

static void fill(struct sba_snapshot *n, const struct sba_record *one)
{
	const struct sba_file_entry *e = &one->fresh.entry;
	char *hex = n->hex[n->n];
	if (e->flags & SBA_ENTRY_HASHED)
		sba_hex(hex, e->sha, sizeof(e->sha));
	n->v[n->n++] = (struct sba_snapshot_file){
		.path = one->path,
		.sha256 = hex,
		.size = e->size,
		.mode = e->mode,
		.mtime_ns = e->mtime_ns,
		.link = e->link,
	};
}

static int make(struct sba_snapshot *n, struct sba_error *err)
{
	n->v = calloc(n->records.n + 1, sizeof(*n->v));
	n->hex = calloc(n->records.n + 1, sizeof(*n->hex));
	if (!n->v || !n->hex)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < n->records.n; i++) {
		if (n->records.v[i].kind == SBA_RECORD_ADDED)
			fill(n, &n->records.v[i]);
		else
			n->left_out++;
	}
	return 0;
}

/* How many files were not known by an earlier look. */
static size_t count_read(const struct sba_records *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		n += r->v[i].kind == SBA_RECORD_ADDED && r->v[i].fresh.why != SBA_CONTENT_SAME;
	return n;
}

/* A list of what was found, for the next one to be spared what was read now: worth a
 * request to the engine where that was much. Without it the next one takes longer. */
static void keep_hashes(struct sba_sandbox *s, const struct sba_look *q,
			const struct sba_records *r)
{
	char path[sizeof(SBA_HASHES_DIR) + SBA_SHA256_HEX];
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(2 * (size_t)SBA_CHANGED_BYTES_MAX);
	struct sba_error why = { 0 };
	if (!sba_sandbox_engine(s) || count_read(r) < SBA_HASHES_MIN)
		return;
	for (size_t i = 0; i < r->n; i++) {
		struct sba_file_entry e = r->v[i].fresh.entry;
		if (r->v[i].kind != SBA_RECORD_ADDED)
			continue;
		e.flags &= (uint8_t)~SBA_ENTRY_KEPT;
		sba_record_put(&list, r->v[i].path, &e);
	}
	memcpy(path, SBA_HASHES_DIR "/", sizeof(SBA_HASHES_DIR));
	int rc = sba_buf_check(&list, "a list of files", &why);
	if (rc == 0)
		rc = sba_sha256_hex(q->folder, strlen(q->folder), path + sizeof(SBA_HASHES_DIR));
	if (rc == 0)
		rc = sba_sandbox_write_small(s, path, list.data, list.len, 0644, &why);
	if (rc < 0)
		sba_log("sandbox", "hashes of '%s' are not kept: %s", q->folder, why.text);
}

/* What is kept saves reading, where it is of the same folder and leaves out no more
 * and no less for .gitignore. */
static int look(struct sba_sandbox *s, const struct sba_snapshot_options *o,
		struct sba_records *ret, struct sba_error *err)
{
	char folder[SBA_INSIDE_PATH_MAX];
	struct sba_kept k = { 0 };
	bool guest = false;
	int rc = o->folder ? sba_inside_path(o->folder, folder, err) : 0;
	if (rc == 0)
		rc = sba_kept_find(s, &k, &guest, err);
	if (rc < 0)
		return rc;
	const char *wanted = o->folder ? folder : k.folder;
	bool same = strcmp(wanted, k.folder) == 0 && k.gitignore == o->gitignore;
	const struct sba_look q = {
		.folder = wanted,
		.flags = SBA_CHANGES_ALL | SBA_CHANGES_HASHES |
			 (o->gitignore ? SBA_CHANGES_IGNORE : 0U) |
			 (o->everything ? SBA_CHANGES_NO_SKIPPED : 0U),
		.last = same ? sba_kept_last(&k) : 0,
		.hash_max = o->max_file_size,
		.until = sba_transfer_until(s, o->timeout_ms),
	};
	rc = guest ? sba_look(s, &q, ret, err) : sba_commands_look(s, &q, ret, err);
	if (rc == 0)
		keep_hashes(s, &q, ret);
	sba_kept_fini(&k);
	return rc;
}

int sba_sandbox_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
			 struct sba_snapshot **ret, struct sba_error *err)
{
	const struct sba_snapshot_options none = { 0 };
	struct sba_snapshot *n = calloc(1, sizeof(*n));
	if (!n)
		return sba_fail_nomem(err);
	sba_records_init(&n->records);
	int rc = look(s, options ? options : &none, &n->records, err);
	if (rc == 0)
		rc = make(n, err);
	if (rc < 0) {
		sba_snapshot_free(n);
		return rc;
	}
	*ret = n;
	return 0;
}

size_t sba_snapshot_count(const struct sba_snapshot *n)
{
	return n->n;
}

const struct sba_snapshot_file *sba_snapshot_at(const struct sba_snapshot *n, size_t i)
{
	return i < n->n ? &n->v[i] : NULL;
}

size_t sba_snapshot_left_out(const struct sba_snapshot *n)
{
	return n->left_out;
}

void sba_snapshot_free(struct sba_snapshot *n)
{
	if (!n)
		return;
	sba_records_fini(&n->records);
	free(n->v);
	free(n->hex);
	free(n);
}
