/* SPDX-License-Identifier: MIT */
/*
 * What the files of this module share: opening beneath a held directory, the
 * walk over a tree of this host, tar headers, and libarchive as a parser.
 */
#ifndef SBA_ARCHIVE_PRIVATE_H
#define SBA_ARCHIVE_PRIVATE_H

#include "archive/archive.h"
#include "base/limits.h"

#include <sys/stat.h>

struct archive_entry;

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

/* ---- temporary names (temp.c) ---- */

/* A name of this kind for what shall be called `name`. */
int sba_temp_name(const char *name, char ret[SBA_LAND_NAME_MAX + 1],
		  struct sba_error *err) SBA_MUST_CHECK;
/* Makes and locks a directory; its descriptor, which holds the lock, or -errno. */
int sba_temp_directory(int dir_fd, const char *name) SBA_MUST_CHECK;
/* Locks a file for as long as fd is open. 0 or -errno. */
int sba_temp_lock(int fd) SBA_MUST_CHECK;
/* Removes what killed clients have left in a directory. */
void sba_temp_sweep(int dir_fd);

/* ---- what is left in a folder (remain.c) ---- */

/* Whether there is more in the folder `name` of dir_fd, at any depth, than folders and what
 * goes (NULL: nothing does). path: the folder's own, as `goes` is to be told of it. 1, and
 * path leads to the first that stays; 0 or -errno. */
int sba_files_remain(int dir_fd, const char *name, bool (*goes)(void *user, const char *path),
		     void *user, char path[SBA_LAND_PATH_MAX]) SBA_MUST_CHECK;

/* ---- patterns of names (exclude.c) ---- */

/* Whether rel, a path from the top of what is copied, stays behind; patterns
 * (NULL-terminated; NULL: none) as in archive.h. _leaf looks at rel alone, _path
 * at the directories above it too. */
bool sba_exclude_leaf(const char *const *patterns, const char *rel, bool is_dir);
bool sba_exclude_path(const char *const *patterns, const char *rel, bool is_dir);

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
 * (NULL-terminated, relative paths), nothing but these and their parents. All
 * but `only` is lent. */
struct sba_walk_options {
	const char *name, *host_path;
	const char *const *only;
	const char *const *exclude;
	bool set_id;
	sba_left_out_fn *left_out; /* may be NULL */
	void *user;
};
int sba_walk_new(const struct sba_walk_options *options, struct sba_walk **ret,
		 struct sba_error *err) SBA_MUST_CHECK;
void sba_walk_free(struct sba_walk *w);
/* 1 with an entry, 0 at the end. Parents come before children, names of a
 * directory in byte order. */
int sba_walk_next(struct sba_walk *w, struct sba_walk_entry *ret,
		  struct sba_error *err) SBA_MUST_CHECK;

/* Whether a link at `rel` with this target stays in the tree, as far as the text
 * tells: the rest is for the other side, where links are followed. */
bool sba_link_stays_inside(const char *rel, const char *target);

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

/* POSIX.1-2001, "ustar Interchange Format". */
struct sba_ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char uname[32];
	char gname[32];
	char major[8];
	char minor[8];
	char prefix[155];
	char pad[12];
};
_Static_assert(sizeof(struct sba_ustar) == SBA_TAR_BLOCK, "a ustar header fills one block");
/* The sum that a header should have, and gives it that. */
unsigned sba_ustar_sum(const struct sba_ustar *h);
void sba_ustar_seal(struct sba_ustar *h);

/* Appends the header blocks of an entry: ustar, with a pax header only where
 * something does not fit. Names are bytes. */
void sba_tar_put_header(struct sba_buf *out, const struct sba_tar_entry *e);
/* The same; a directory as dir_gid and `directory` of the options have it. */
void sba_tar_put_dressed(struct sba_buf *out, const struct sba_tar_entry *e,
			 const struct sba_pack_options *o);
/* SBA_EUNSUPPORTED, and *ret_unfit, for a name beyond name_max. */
int sba_tar_check_name(const char *name, const struct sba_pack_options *o, bool *ret_unfit,
		       struct sba_error *err) SBA_MUST_CHECK;
/* How many bytes fill up the last block of a content of `size` bytes. */
size_t sba_tar_padding(uint64_t size);

/* ---- names that have been there (seen.c) ---- */

/* Zero is empty. */
struct sba_seen {
	uint64_t *slots;
	size_t size, n;
};
/* 1: it has not been there; 0: it has. SBA_ELIMIT: there are half a million. */
int sba_seen_add(struct sba_seen *s, const char *name, struct sba_error *err) SBA_MUST_CHECK;
void sba_seen_fini(struct sba_seen *s);

/* ---- libarchive as a parser (input.c) ---- */

struct sba_tar_in;

/* Everything between _new and _free runs with the calling thread's LC_CTYPE
 * set to "C", which makes names bytes. */
int sba_tar_in_new(sba_tar_read_fn *read, void *user, struct sba_tar_in **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
void sba_tar_in_free(struct sba_tar_in *in);
/* 1 with the next entry (lent until the next call), or 0 at the end: the
 * trailer has been seen and the transport has ended. */
int sba_tar_in_next(struct sba_tar_in *in, struct archive_entry **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* The tar type of an entry: '0', '1', '2' or '5'; NUL for devices, fifos and what is not
 * known. */
char sba_tar_type(struct archive_entry *e);
/* 1 with the next piece of the entry's content (lent), or 0 at its end. Pieces
 * ascend, holes lie between them, and none reaches beyond `size`. */
struct sba_tar_piece {
	const void *data;
	size_t len;
	uint64_t offset;
};
int sba_tar_in_data(struct sba_tar_in *in, uint64_t size, struct sba_tar_piece *ret,
		    struct sba_error *err) SBA_MUST_CHECK;

/* The whole content, holes as zeros, to the sink (one_file.c). */
int sba_tar_in_content(struct sba_tar_in *in, uint64_t size, sba_tar_sink_fn *sink, void *user,
		       struct sba_error *err) SBA_MUST_CHECK;

/* ---- content of landed files (content.c) ---- */

/* Writes at an offset of a new file; blocks of zeros become holes. *ret_end is
 * where the last byte was written, and stays where there was none. */
int sba_content_write(int fd, const struct sba_tar_piece *piece, uint64_t *ret_end,
		      struct sba_error *err) SBA_MUST_CHECK;
/* Copies `size` bytes into a new file: shared extents where the file system
 * can, holes stay holes. */
int sba_content_copy(int from, int to, uint64_t size, struct sba_error *err) SBA_MUST_CHECK;

/* ---- where a landing takes place (place.c) ---- */

/* The final name, the temporary one beside it, and what lies beneath. Paths
 * are relative to the top ("": the top itself), checked by the caller. */
struct sba_place {
	int dir_fd; /* of the directory that holds both names */
	char name[SBA_LAND_NAME_MAX + 1];
	char tmp[SBA_LAND_NAME_MAX + 1];
	enum { SBA_TOP_NONE, SBA_TOP_FILE, SBA_TOP_TREE } top;
	bool top_implied; /* the tree's top has not been named yet */
	bool merge;       /* a directory at dest receives what is in the tree */
	bool into;        /* there is one, and dir_fd is it */
	bool no_openat2, no_renameat2;
	int root_fd; /* of the tree */
	int file_fd; /* of a top that is a file without a name as yet, or -1 */
	struct sba_beneath beneath;
	struct sba_later *later; /* modes and times that have to wait */
	size_t later_n, later_cap, later_bytes;
};

struct sba_attributes {
	mode_t mode;
	struct timespec mtime;
};

int sba_place_open(struct sba_place *p, const char *dest, bool merge,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Removes everything that has not been published. */
void sba_place_close(struct sba_place *p);
/* Creates a file, and its parents if need be. A descriptor or -errno. */
int sba_place_file(struct sba_place *p, const char *rel) SBA_MUST_CHECK;
int sba_place_file_done(struct sba_place *p, const char *rel, int fd,
			const struct sba_attributes *a, struct sba_error *err) SBA_MUST_CHECK;
/* Creates a directory: 0, or -errno; -EEXIST if an entry has made it before. */
int sba_place_directory(struct sba_place *p, const char *rel,
			const struct sba_attributes *a) SBA_MUST_CHECK;
/* Opens a file that has landed, for reading. A descriptor or -errno. */
int sba_place_reopen(struct sba_place *p, const char *rel, struct stat *ret_st) SBA_MUST_CHECK;
/* Gives everything in the tree its mode and time. */
int sba_place_settle(struct sba_place *p, struct sba_error *err) SBA_MUST_CHECK;

/* ---- the final name (publish.c) ---- */

/* Renames to what is not there: 0 or -errno, -EEXIST. no_renameat2: as where the kernel or
 * the file system has no such call. */
int sba_rename_new(bool no_renameat2, int from_fd, const char *from, int to_fd, const char *to,
		   bool is_file);

struct sba_publish {
	bool replace, no_clobber;
};
/* Settles the tree, and gives the top its final name or merges it. *ret_kept:
 * files that were there and stayed. */
int sba_place_publish(struct sba_place *p, const struct sba_publish *o, uint64_t *ret_kept,
		      struct sba_error *err) SBA_MUST_CHECK;

#endif
