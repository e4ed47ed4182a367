/* SPDX-License-Identifier: MIT */
/* A snapshot by the guest, which reads nothing again that an earlier look has told of. */
#include <string.h>

#include "sandbox/snapshot.h"

uint32_t sba_snapshot_flags(const struct sba_snapshot_options *o)
{
	return SBA_CHANGES_ALL | SBA_CHANGES_HASHES | (o->gitignore ? SBA_CHANGES_IGNORE : 0U) |
	       (o->everything ? SBA_CHANGES_NO_SKIPPED : 0U);
}

size_t sba_snapshot_read(const struct sba_records *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		n += r->v[i].kind == SBA_RECORD_ADDED &&
		     r->v[i].fresh.entry.flags & SBA_ENTRY_HASHED &&
		     r->v[i].fresh.why != SBA_CONTENT_SAME;
	return n;
}

void sba_snapshot_list(const struct sba_records *r, struct sba_buf *ret)
{
	for (size_t i = 0; i < r->n; i++) {
		struct sba_file_entry e = r->v[i].fresh.entry;
		if (r->v[i].kind != SBA_RECORD_ADDED)
			continue;
		e.flags &= (uint8_t)~SBA_ENTRY_KEPT;
		sba_record_put(ret, r->v[i].path, &e);
	}
}

/* Worth a request to the engine where much was read. Without it the next one takes longer. */
static void keep_hashes(struct sba_sandbox *s, const struct sba_look *q,
			const struct sba_records *r)
{
	char path[sizeof(SBA_HASHES_DIR) + SBA_SHA256_HEX];
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(2 * (size_t)SBA_CHANGED_BYTES_MAX);
	struct sba_error why = { 0 };
	if (!sba_kept_is_inside(s) || sba_snapshot_read(r) < SBA_HASHES_MIN)
		return;
	sba_snapshot_list(r, &list);
	memcpy(path, SBA_HASHES_DIR "/", sizeof(SBA_HASHES_DIR));
	int rc = sba_buf_check(&list, "a list of files", &why);
	if (rc == 0)
		rc = sba_sha256_hex(q->folder, strlen(q->folder), path + sizeof(SBA_HASHES_DIR));
	if (rc == 0)
		rc = sba_sandbox_write_small(s, path, list.data, list.len, 0644, &why);
	if (rc < 0)
		sba_log("sandbox", "hashes of '%s' are not kept: %s", q->folder, why.text);
}

int sba_snapshot_tell(const struct sba_records *r, sba_snapshot_fn *tell, void *user,
		      struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		const struct sba_file_entry *e = &r->v[i].fresh.entry;
		bool is_there = r->v[i].kind == SBA_RECORD_ADDED;
		char hex[SBA_SHA256_HEX] = "";
		if (is_there && (e->flags & SBA_ENTRY_HASHED))
			sba_hex(hex, e->sha, sizeof(e->sha));
		const struct sba_snapshot_file f = { .path = r->v[i].path,
						     .sha256 = hex,
						     .size = e->size,
						     .mode = is_there ? e->mode : 0,
						     .mtime_ns = e->mtime_ns,
						     .link = e->link };
		rc = tell(user, &f, err);
	}
	return rc;
}

/* What is kept saves reading, where it is of the same folder and leaves out no more
 * and no less for .gitignore. */
static int look(struct sba_sandbox *s, const struct sba_snapshot_options *o,
		const struct sba_kept *k, struct sba_records *ret, struct sba_error *err)
{
	const char *folder = o->folder ? o->folder : k->folder;
	bool same = strcmp(folder, k->folder) == 0 && k->gitignore == o->gitignore;
	const struct sba_look q = {
		.folder = folder,
		.flags = sba_snapshot_flags(o),
		.last = same ? sba_kept_last(k) : 0,
		.hash_max = o->max_file_size,
		.until = sba_transfer_until(s, o->timeout_ms),
	};
	int rc = sba_look(s, &q, ret, err);
	if (rc == 0)
		keep_hashes(s, &q, ret);
	return rc;
}

int sba_guest_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *o,
		       sba_snapshot_fn *tell, void *user, struct sba_error *err)
{
	struct sba_kept k = { 0 };
	struct sba_records r;
	bool guest = false;
	int rc = sba_kept_find(s, &k, &guest, err);
	if (rc == 0 && !guest)
		rc = sba_commands_snapshot(s, o, tell, user, err);
	else if (rc == 0 && (rc = look(s, o, &k, &r, err)) == 0) {
		rc = sba_snapshot_tell(&r, tell, user, err);
		sba_records_fini(&r);
	}
	sba_kept_fini(&k);
	return rc;
}
