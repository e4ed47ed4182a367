/* SPDX-License-Identifier: MIT */
/* Dumps written and read: a plain tar whose entries are exactly those that its
 * first one, the manifest, names in that order. */
#include "agent/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 256 * SBA_KIB };

void sba_dump_init(struct sba_dump *d)
{
	*d = (struct sba_dump){ .workspace_fd = -1 };
}

void sba_dump_fini(struct sba_dump *d)
{
	sba_parts_fini(&d->parts);
	free(d->memory.kept);
	d->memory.kept = NULL;
	sba_cleanup_close(&d->workspace_fd);
	d->workspace_fd = -1;
}

int sba_dump_hash(int fd, uint64_t size, char ret[SBA_SHA256_HEX], struct sba_error *err)
{
	if (size == 0)
		return sba_sha256_hex("", 0, ret) < 0 ? sba_fail_nomem(err) : 0;
	void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return sba_fail_errno(err, SBA_EIO, errno, "map a temporary file");
	int rc = sba_sha256_hex(p, size, ret);
	munmap(p, size);
	return rc < 0 ? sba_fail_nomem(err) : 0;
}

/* ---- out ---- */

static int pack_all(const struct sba_dump *d, const char *manifest, struct sba_pack *pack,
		    struct sba_error *err)
{
	char path[64];
	int rc = sba_pack_bytes(pack, SBA_DUMP_MANIFEST, manifest, strlen(manifest), 0644, err);
	for (size_t i = 0; rc == 0 && i < d->parts.n; i++)
		rc = sba_pack_bytes(pack, d->parts.v[i].name, d->parts.v[i].data, d->parts.v[i].len,
				    0600, err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->workspace_fd);
	if (rc == 0 && d->workspace_fd >= 0)
		rc = sba_pack_path(pack, SBA_DUMP_WORKSPACE, path, err);
	return rc;
}

static int put_all(struct sba_pack *pack, int fd, struct sba_error *err)
{
	SBA_FREE char *piece = malloc(PIECE);
	ssize_t n;
	if (!piece)
		return sba_fail_nomem(err);
	while ((n = sba_pack_read(pack, piece, PIECE, err)) > 0) {
		int rc = sba_write_all(fd, piece, (size_t)n, err);
		if (rc < 0)
			return rc;
	}
	return (int)n;
}

int sba_dump_write(const struct sba_dump *d, int fd, struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = d->info.created_ms / 1000 };
	SBA_FREE char *manifest = NULL;
	struct sba_pack *pack = NULL;
	int rc = sba_manifest_make(d, &manifest, err);
	if (rc == 0)
		rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = pack_all(d, manifest, pack, err);
	if (rc == 0)
		rc = put_all(pack, fd, err);
	sba_pack_free(pack);
	return rc;
}

/* ---- in ---- */

struct reading {
	const char *agent;
	struct sba_manifest manifest;
	bool has_manifest;
	size_t begun; /* entries, the manifest included */
	struct sba_buf content;
	int spool; /* where the content goes instead; -1: it does not */
	struct sba_dump *dump;
	sba_tar_read_fn *read;
	void *user;
	int failed; /* what read() said */
};

static int check_hash(const struct sba_dump_entry *e, const char *hash, struct sba_error *err)
{
	return strcmp(hash, e->sha256) == 0
		       ? 0
		       : sba_fail(err, SBA_EREFUSED,
				  "the dump is damaged: '%s' is not what the manifest says",
				  e->name);
}

static int end_workspace(struct reading *r, const struct sba_dump_entry *e, struct sba_error *err)
{
	struct sba_dump *d = r->dump;
	char hash[SBA_SHA256_HEX];
	d->workspace_fd = sba_move_fd(&r->spool);
	d->workspace_size = e->size;
	int rc = sba_dump_hash(d->workspace_fd, e->size, hash, err);
	if (rc == 0)
		rc = check_hash(e, hash, err);
	return rc < 0 ? rc : sba_dump_look(d->workspace_fd, e->size, &r->manifest.info.files, err);
}

static int end_part(struct reading *r, const struct sba_dump_entry *e, struct sba_error *err)
{
	const char *data = r->content.data ? r->content.data : "";
	char hash[SBA_SHA256_HEX];
	if (sba_sha256_hex(data, r->content.len, hash) < 0)
		return sba_fail_nomem(err);
	int rc = check_hash(e, hash, err);
	return rc < 0 ? rc : sba_parts_add(&r->dump->parts, e->name, &r->content, err);
}

/* What has been read of the entry before this one. */
static int end_entry(struct reading *r, struct sba_error *err)
{
	if (r->begun == 0)
		return 0;
	if (r->begun > 1) {
		const struct sba_dump_entry *e = &r->manifest.entries[r->begun - 2];
		return r->spool >= 0 ? end_workspace(r, e, err) : end_part(r, e, err);
	}
	int rc = sba_manifest_parse(r->content.data ? r->content.data : "", r->content.len,
				    r->agent, &r->manifest, err);
	r->has_manifest = rc == 0;
	sba_buf_fini(&r->content);
	return rc;
}

static int begin_manifest(struct reading *r, const struct sba_tar_seen *seen, struct sba_error *err)
{
	if (strcmp(seen->name, SBA_DUMP_MANIFEST) != 0 || seen->type != '0' ||
	    seen->size > SBA_MANIFEST_MAX)
		return sba_fail(err, SBA_EREFUSED, "this is no dump of a session");
	sba_buf_init(&r->content, SBA_MANIFEST_MAX);
	r->begun++;
	return 0;
}

static int on_entry(void *user, const struct sba_tar_seen *seen, struct sba_error *err)
{
	struct reading *r = user;
	int rc = end_entry(r, err);
	if (rc < 0)
		return rc;
	if (r->begun == 0)
		return begin_manifest(r, seen, err);
	const struct sba_dump_entry *e =
		r->begun <= r->manifest.n ? &r->manifest.entries[r->begun - 1] : NULL;
	if (!e || strcmp(seen->name, e->name) != 0 || seen->type != '0' || seen->size != e->size)
		return sba_fail(err, SBA_EREFUSED,
				"the dump is damaged: its manifest does not tell of '%.200s'",
				seen->name);
	sba_buf_init(&r->content, (size_t)e->size + 1);
	r->begun++;
	return r->begun == r->manifest.n + 1 && r->manifest.info.workspace
		       ? sba_open_unnamed(&r->spool, err)
		       : 0;
}

static int on_bytes(void *user, const void *data, size_t len, struct sba_error *err)
{
	struct reading *r = user;
	if (r->spool >= 0)
		return sba_write_all(r->spool, data, len, err);
	sba_buf_put(&r->content, data, len);
	return sba_buf_check(&r->content, "a part of the dump", err);
}

static ssize_t read_on(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct reading *r = user;
	ssize_t n = r->read(r->user, buf, size, err);
	if (n < 0)
		r->failed = (int)n;
	return n;
}

static int read_all(struct reading *r, struct sba_error *err)
{
	const struct sba_tar_visitor v = { on_entry, on_bytes, r };
	struct sba_error why = { 0 };
	int rc = sba_tar_each(read_on, r, &v, &why);
	if (rc < 0) {
		bool broken = rc == SBA_EPROTO && !r->failed;
		if (err)
			*err = why;
		return !broken ? rc
			       : sba_fail(err, SBA_EREFUSED, "%s: %s",
					  r->has_manifest ? "the dump is damaged"
							  : "this is no dump of a session",
					  why.text);
	}
	rc = end_entry(r, err);
	if (rc == 0 && (r->begun == 0 || r->begun != r->manifest.n + 1))
		rc = sba_fail(err, SBA_EREFUSED, "the dump is damaged: parts are missing");
	return rc;
}

int sba_dump_read(sba_tar_read_fn *read, void *user, const char *agent, struct sba_dump *ret,
		  struct sba_error *err)
{
	struct sba_dump d;
	sba_dump_init(&d);
	struct reading r = { .agent = agent, .spool = -1, .dump = &d, .read = read, .user = user };
	int rc = read_all(&r, err);
	sba_buf_fini(&r.content);
	sba_cleanup_close(&r.spool);
	if (rc == 0) {
		d.info = r.manifest.info;
		d.memory = r.manifest.memory;
		*ret = d;
		return 0;
	}
	sba_manifest_fini(&r.manifest);
	sba_dump_fini(&d);
	return rc;
}

/* ---- a workspace's tar ---- */

struct look {
	uint64_t files, entries, bytes, size;
};

static bool leads_out(const char *name)
{
	if (*name == '/')
		return true;
	for (const char *at = name; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
			return true;
	}
	return false;
}

static int look_at(void *user, const struct sba_tar_seen *seen, struct sba_error *err)
{
	struct look *l = user;
	l->files += seen->type == '0' || seen->type == '1';
	if (leads_out(seen->name))
		return sba_fail(err, SBA_EREFUSED,
				"the workspace has a name that leads out: %.200s", seen->name);
	if (++l->entries > SBA_DUMP_FILES_MAX)
		return sba_fail(err, SBA_EREFUSED, "the workspace has more than %d files",
				SBA_DUMP_FILES_MAX);
	/* Holes are how a small tar fills a disk; no tar of ours has them. */
	if (seen->size > l->size || l->bytes > l->size - seen->size)
		return sba_fail(err, SBA_EREFUSED,
				"the workspace says that it is larger than it is");
	l->bytes += seen->size;
	return 1;
}

int sba_dump_look(int fd, uint64_t size, uint64_t *ret_files, struct sba_error *err)
{
	struct sba_carry_reader reader = { .fd = fd, .size = size };
	struct look l = { .size = size };
	const struct sba_tar_visitor v = { .entry = look_at, .user = &l };
	int rc = sba_tar_each(sba_carry_read, &reader, &v, err);
	if (rc == SBA_EPROTO)
		return sba_fail(err, SBA_EREFUSED, "the workspace's files are a broken tar");
	if (rc == 0)
		*ret_files = l.files;
	return rc;
}
