/* SPDX-License-Identifier: MIT */
/*
 * A dump: one file that holds a session (docs/sessions.md). What is read of one
 * is hostile; it is whole and checked when it is there at all.
 */
#ifndef SBA_AGENT_DUMP_H
#define SBA_AGENT_DUMP_H

#include <sandbox-agent/session.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "drivers/drivers.h"

#define SBA_DUMP_FORMAT    "sandbox-agent session"
#define SBA_DUMP_MANIFEST  "manifest.json"
#define SBA_DUMP_WORKSPACE "workspace.tar"
enum { SBA_DUMP_VERSION = 1 };

/* What is remembered of a session beside what its CLI keeps. */
struct sba_memory {
	char *kept;                          /* by the driver; NULL: nothing */
	char parent[SBA_SESSION_ID_MAX + 1]; /* that it was copied from; "": it was not */
	int64_t turns;
	struct sba_usage usage;
};

struct sba_dump {
	struct sba_dump_info info;
	struct sba_parts parts;
	struct sba_memory memory;
	int workspace_fd; /* a tar; -1: none */
	uint64_t workspace_size;
};
void sba_dump_init(struct sba_dump *d);
void sba_dump_fini(struct sba_dump *d);

int sba_dump_write(const struct sba_dump *d, int fd, struct sba_error *err) SBA_MUST_CHECK;
/* agent: whose it must be. SBA_EREFUSED: it is not, or not whole, or not of a
 * format that is known here. What read() fails with is told as it is. */
int sba_dump_read(sba_tar_read_fn *read, void *user, const char *agent, struct sba_dump *ret,
		  struct sba_error *err) SBA_MUST_CHECK;

/* Counts the files of a workspace's tar. SBA_EREFUSED: a name leads out, or it holds
 * more than it has bytes. */
int sba_dump_look(int fd, uint64_t size, uint64_t *ret_files, struct sba_error *err) SBA_MUST_CHECK;
/* SHA-256 of a file's first bytes. */
int sba_dump_hash(int fd, uint64_t size, char ret[SBA_SHA256_HEX],
		  struct sba_error *err) SBA_MUST_CHECK;

/* ---- manifest.c ---- */

/* What the manifest says of each entry behind it; the workspace is the last. */
struct sba_dump_entry {
	char name[SBA_PART_NAME_MAX];
	uint64_t size;
	char sha256[SBA_SHA256_HEX];
};
struct sba_manifest {
	struct sba_dump_info info;
	struct sba_memory memory;
	struct sba_dump_entry entries[SBA_PARTS_MAX + 1];
	size_t n;
};
void sba_manifest_fini(struct sba_manifest *m);
/* The caller frees. */
int sba_manifest_make(const struct sba_dump *d, char **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_manifest_parse(const char *text, size_t len, const char *agent, struct sba_manifest *ret,
		       struct sba_error *err) SBA_MUST_CHECK;

/* As JSON, and back; also what state.json has of a session. */
json_t *sba_memory_json(const struct sba_memory *m);
/* What makes no sense is nothing. */
int sba_memory_parse(const json_t *j, struct sba_memory *ret, struct sba_error *err) SBA_MUST_CHECK;

#endif
