/* SPDX-License-Identifier: MIT */
/*
 * What the files of this module share: opening beneath a held directory, the
 * walk over a tree of this host, tar headers, and libarchive as a parser.
 */
#ifndef SBA_ARCHIVE_PRIVATE_H
#define SBA_ARCHIVE_PRIVATE_H

#include "archive/archive.h"
#include "base/limits.h"

/* ---- opening beneath a directory (beneath.c) ---- */

/* A held directory; nothing that is opened through it can lie outside, even
 * while another process swaps components for links. The parent directory of
 * the last path is kept open. */
struct sba_beneath {
	int root_fd; /* lent */
	bool no_openat2;
	int parent_fd;
	char parent[SBA_LAND_PATH_MAX]; /* path of parent_fd */
};

void sba_beneath_init(struct sba_beneath *b, int root_fd, bool no_openat2);
void sba_beneath_fini(struct sba_beneath *b);
/* Opens rel ("": the root itself), following no link anywhere. Returns a
 * descriptor or -errno. */
int sba_beneath_open(struct sba_beneath *b, const char *rel, int flags) SBA_MUST_CHECK;
/* Lends a descriptor of the directory that holds rel's last component, which
 * is returned in leaf (lent, within rel); or -errno. */
int sba_beneath_parent(struct sba_beneath *b, const char *rel, const char **leaf) SBA_MUST_CHECK;

/* Every component is there, at most SBA_LAND_NAME_MAX long and neither "."
 * nor ".."; fewer than SBA_LAND_PATH_MAX bytes; no leading or trailing '/'.
 * Returns the number of components, 0 if any of this fails. */
int sba_path_components(const char *rel);

/* ---- walking a tree of this host (walk.c) ---- */

struct sba_walk;

struct sba_walk_entry {
	const char *name; /* in the archive; lent until the next step */
	const char *link; /* symlinks: the target; lent until the next step */
	char type;        /* a tar type: '0', '2' or '5' */
	uint32_t mode;
	int64_t mtime;
	uint64_t size; /* of a file */
	int fd;        /* of a file, open at its start; the caller closes */
};

/* The file or tree at host_path, named `name` in the archive; with `only`
 * (NULL-terminated, relative paths), nothing but these and their parents. */
int sba_walk_new(const char *name, const char *host_path, const char *const *only,
		 struct sba_walk **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_walk_free(struct sba_walk *w);
/* 1 with an entry, 0 at the end. Parents come before children, names of a
 * directory in byte order. Adds what cannot be sent to *left_out. */
int sba_walk_next(struct sba_walk *w, struct sba_walk_entry *ret, uint64_t *left_out,
		  struct sba_error *err) SBA_MUST_CHECK;

/* ---- tar headers (header.c) ---- */

enum { SBA_TAR_BLOCK = 512 };

struct sba_tar_entry {
	const char *name; /* without trailing '/' */
	const char *link;
	char type;
	uint32_t mode, uid, gid;
	uint64_t size;
	int64_t mtime;
};

/* Appends the header blocks of an entry: ustar, with a pax header only where
 * something does not fit. Names are bytes. */
void sba_tar_put_header(struct sba_buf *out, const struct sba_tar_entry *e);
/* How many bytes fill up the last block of a content of `size` bytes. */
size_t sba_tar_padding(uint64_t size);

#endif
